//! The daemon's record of a terminal: enough to show it, to find it after a crash, and to report how it ended. The
//! record never includes its environment, which may hold secrets.

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
    /// The operator's confirmation when an agent was started.
    pub confirmed: Option<Confirmed>,
    pub directory: String,
    pub command: Vec<String>,
    /// The initial size, restored when no client is attached.
    pub size: Size,
    pub created: Wall,
    pub last_active: Wall,
    pub pid: Option<u32>,
    pub exit: Option<Exit>,
    pub status: Status,
}

#[cfg(test)]
impl Record {
    /// A command that has just been started.
    pub(crate) fn sample(number: u32) -> Self {
        Self {
            id: TerminalId::from_random(number),
            name: format!("t{number}").parse().unwrap(),
            session: "posse-x".parse().unwrap(),
            provider: posse_api::COMMAND.into(),
            agent_profile: None,
            confirmed: None,
            directory: "/".into(),
            command: vec!["x".into()],
            size: Size::DEFAULT,
            created: Wall(0),
            last_active: Wall(0),
            pid: Some(9),
            exit: None,
            status: posse_core::status::Life::starting(Wall(0)).status().clone(),
        }
    }
}
