//! What the daemon remembers of a terminal: enough to show it, to find it again after a crash, and to say how
//! it ended. Never the environment it was started with: that may hold secrets.

use posse_agents::start::Confirmed;
use posse_core::ids::{Name, TerminalId};
use posse_core::screen::Size;
use posse_core::status::{Exit, Status};
use posse_core::time::Wall;
use serde::{Deserialize, Serialize};

/// The provider of a terminal that runs a plain command.
pub const COMMAND: &str = "command";

/// The provider of a terminal that runs the user's shell.
pub const SHELL: &str = "shell";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    pub id: TerminalId,
    pub name: Name,
    pub session: Name,
    pub provider: String,
    pub agent_profile: Option<String>,
    /// What the operator said when an agent was started.
    #[serde(default)]
    pub confirmed: Option<Confirmed>,
    pub directory: String,
    pub command: Vec<String>,
    /// The size it was started with, and has again when nobody is attached.
    pub size: Size,
    pub created: Wall,
    pub last_active: Wall,
    pub pid: Option<u32>,
    pub exit: Option<Exit>,
    pub status: Status,
}

/// Something that happened, as the log and every listener get it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct LogEvent {
    /// Its place in the log. Absent for what is not kept: changes of title, bells, that a session of a plan said something.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seq: Option<i64>,
    pub at: jiff::Timestamp,
    pub kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub terminal: Option<TerminalId>,
    /// The facts of this kind of event.
    #[schema(value_type = Object)]
    pub data: serde_json::Value,
}

/// Kinds of events of terminals that are told and not kept, because they change nothing else. One without a number may also be
/// something that the disk refused for now.
const PASSING: [&str; 3] = ["title_changed", "resized", "signal"];

impl LogEvent {
    /// Whether this terminal may be in another state since.
    pub fn changes(&self, terminal: TerminalId) -> bool {
        self.terminal == Some(terminal) && !PASSING.contains(&self.kind.as_str())
    }
}
