//! The switch that confines sessions.

use serde::{Deserialize, Serialize};

/// Whether sessions are confined. The key `plans.sandbox.enabled` decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sandbox {
    #[default]
    On,
    /// Sessions may do everything and are never asked. Commands that start such sessions print a warning.
    Off,
}

impl Sandbox {
    pub fn from_enabled(enabled: bool) -> Self {
        if enabled { Sandbox::On } else { Sandbox::Off }
    }
}
