//! What the daemon remembers of a terminal: enough to show it, to find it again after a crash, and to say how
//! it ended. Never the environment it was started with: that may hold secrets.

use posse_agents::start::Confirmed;
use posse_core::ids::{Name, TerminalId};
use posse_core::screen::Size;
use posse_core::status::{Exit, Status};
use posse_core::time::Wall;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
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
