//! Out-of-band output of a program: escape sequences that do not change a cell. Signals are edges, never levels. A
//! manifest defines their meaning (`rules`), `listener` turns them into claims, and `status` decides what is believed.

pub mod listener;
pub mod rules;

pub use rules::SignalRules;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "signal", rename_all = "snake_case")]
pub enum Signal {
    /// OSC 0 or 2.
    Title { title: String },
    /// BEL outside of a sequence, or the visual bell.
    Bell,
    /// OSC 9;4: 0 none, 1 normal, 2 error, 3 indeterminate, 4 warning.
    Progress { state: u8 },
    /// OSC 7501: an agent's report of its own state. The payload as sent, e.g. `state=idle:app=codex`.
    AgentState { payload: String },
    /// OSC 777 or OSC 9 with free text: a desktop notification.
    Notification { payload: String },
}
