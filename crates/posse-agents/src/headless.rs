//! Agents without a terminal (`claude -p`, `codex exec`): permissions, command lines and streams.
//!
//! Two separate questions are decided before a start: which tools exist, and what happens if a tool needs an approval.
//! No person can answer a prompt here and stdin is a file that ends, so a session with an open second question does
//! nothing. [`build_permission_flags`] creates all headless flags; [`check_flags`] checks the finished command line
//! before each start.
//!
//! Pure: nothing is started or read here. The flags are a guard rail and not a jail: a permitted program is not
//! restricted, unless the tool has a sandbox of its own (Codex) or is put into one.

pub mod agent_file;
pub mod check;
pub mod claude;
pub mod codex;
pub mod command;
pub mod event;
pub mod explain;
mod fields;
pub mod flags;
mod outside;
pub mod permission;
pub mod reader;
pub mod texts;

use serde::{Deserialize, Serialize};

pub use agent_file::AgentFile;
pub use check::{FailedCheck, check_flags};
pub use command::{Spawn, command_line};
pub use event::Event;
pub use explain::explain_flags;
pub use flags::{FlagError, Request, Scope, build_permission_flags};
pub use permission::{Granted, PermissionProfile, Policy};
pub use reader::Reader;
pub use texts::HeadlessRules;

/// The default provider of plan sessions.
pub const DEFAULT_PROVIDER: &str = "claude_code";

/// The format of permissions and streams. A manifest names it (`[headless] dialect`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dialect {
    /// `claude -p --output-format stream-json`
    Claude,
    /// `codex exec --json`
    Codex,
}

impl Dialect {
    /// Returns whether sessions report their costs. Unreported costs cannot be limited.
    pub fn tells_costs(self) -> bool {
        self == Dialect::Claude
    }
}

/// Whether sessions are confined. The key `plans.sandbox.enabled` decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Sandbox {
    #[default]
    On,
    /// Sessions may do everything and are never asked. Commands that start such sessions print a warning.
    Off,
}
