//! The daemon itself: its listeners, settings, health, and its end.

use std::collections::BTreeMap;

use jiff::Timestamp;
use posse_core::ids::TerminalId;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Terminal;

/// Where to listen besides the private socket.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Listen {
    /// `None`: nowhere.
    pub address: Option<std::net::SocketAddr>,
    pub auth: bool,
    /// For terminals started by clients that send none.
    pub environment: BTreeMap<String, String>,
    pub working_directory: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Listening {
    pub address: Option<std::net::SocketAddr>,
    /// Where the token is.
    pub token_file: Option<std::path::PathBuf>,
}

/// What the daemon shall do from now on, and after a restart. What is left out stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Whether what terminals print is recorded.
    pub recordings: Option<bool>,
}

/// Where the process runs that asks, as the kernel says.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RequesterView {
    /// Whether it may answer questions and confirm commands, as a person may.
    pub may_answer: bool,
    /// The terminal in which it runs, if it is in one that is known.
    pub terminal: Option<TerminalId>,
}

#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Health {
    pub status: String,
    pub service: String,
    pub version: String,
    pub pid: u32,
    /// What is wrong, when something is.
    pub problem: Option<String>,
}

/// What posse takes on disk.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Usage {
    pub home: String,
    pub database_bytes: u64,
    pub log_bytes: u64,
    /// The last screens of ended terminals.
    pub screens_bytes: u64,
    /// What terminals have printed; see `recordings` beside the database.
    pub recordings_bytes: u64,
    pub events: i64,
    pub oldest_event: Option<Timestamp>,
    /// How long ended terminals and events are kept.
    pub kept_days: u64,
    /// How many events are kept at most.
    pub kept_events: i64,
    /// How much of recordings is kept at most.
    pub kept_recordings_bytes: u64,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Stop {
    /// End the terminals too.
    pub all: Option<bool>,
}

#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Stopped {
    /// Terminals that go on without the daemon.
    pub running: Vec<Terminal>,
    /// The daemon has stopped, but the keeper does not answer.
    #[serde(default)]
    pub problem: Option<String>,
    /// Why the database did not take how terminals ended. The keeper stays and remembers it for the next daemon.
    #[serde(default)]
    pub unsaved: Option<String>,
}

/// Whether the database can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DatabaseCondition {
    /// The database does not exist. The next daemon creates it.
    Absent,
    Sound,
    /// What is in it cannot be read. Without it posse works.
    Damaged(String),
    /// It cannot be used for a reason that setting it aside would not remove: permissions, the disk, a newer posse.
    Unusable(String),
}
