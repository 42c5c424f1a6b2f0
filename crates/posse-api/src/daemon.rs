//! The daemon itself: its listeners, settings, health, and its end.

use std::collections::BTreeMap;

use posse_core::ids::TerminalId;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Terminal;

/// The address to listen on besides the private socket.
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
    pub token_file: Option<std::path::PathBuf>,
}

/// Settings that are kept over restarts. A setting that is left out stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    pub recordings: Option<bool>,
}

/// The place of the requesting process, as the kernel reports it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RequesterView {
    /// The process may answer questions and confirm commands, as a person may.
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
    pub problem: Option<String>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Stop {
    /// End the terminals too.
    pub all: Option<bool>,
}

#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Stopped {
    /// Terminals that run on without the daemon.
    pub running: Vec<Terminal>,
    /// The daemon has stopped, but the keeper does not answer.
    #[serde(default)]
    pub problem: Option<String>,
    /// Why the database did not take how terminals ended. The keeper stays and remembers it for the next daemon.
    #[serde(default)]
    pub unsaved: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DatabaseCondition {
    /// The database does not exist. The next daemon creates it.
    Absent,
    Sound,
    /// The content cannot be read. posse works without it.
    Damaged(String),
    /// It cannot be used for a reason that setting it aside would not remove: permissions, the disk, a newer posse.
    Unusable(String),
}
