//! What travels: the bodies of requests and answers. The command line reads the same types.

use std::collections::BTreeMap;

use jiff::Timestamp;
use posse_core::ids::{Name, TerminalId};
use posse_core::screen::Size;
use posse_core::status::{Exit, Status, StatusKind, WaitingKind};
use serde::{Deserialize, Serialize};

use crate::hub::View;

/// One terminal.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Terminal {
    pub id: TerminalId,
    pub name: Name,
    pub session_name: Name,
    pub provider: String,
    pub agent_profile: Option<String>,
    #[serde(flatten)]
    pub status: StatusView,
    pub title: String,
    pub working_directory: String,
    pub command: Vec<String>,
    pub size: Size,
    pub pid: Option<u32>,
    /// How it ended; null while it runs.
    pub exit: Option<Exit>,
    pub created_at: Timestamp,
    pub last_active: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusView {
    pub status: StatusKind,
    pub reason: String,
    pub waiting_kind: Option<WaitingKind>,
    pub since: Timestamp,
    pub epoch: u64,
}

impl From<&Status> for StatusView {
    fn from(status: &Status) -> Self {
        Self {
            status: status.kind,
            reason: status.reason.clone(),
            waiting_kind: status.waiting_kind,
            since: crate::timestamp(status.since),
            epoch: status.epoch,
        }
    }
}

impl From<View> for Terminal {
    fn from(View { record, title, size }: View) -> Self {
        Self {
            id: record.id,
            name: record.name,
            session_name: record.session,
            provider: record.provider,
            agent_profile: record.agent_profile,
            status: StatusView::from(&record.status),
            title,
            working_directory: record.directory,
            command: record.command,
            size,
            pid: record.pid.filter(|_| record.exit.is_none()),
            exit: record.exit,
            created_at: crate::timestamp(record.created),
            last_active: crate::timestamp(record.last_active),
        }
    }
}

/// A terminal to start.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Create {
    /// The program and its arguments.
    pub command: Vec<String>,
    pub name: Option<String>,
    pub session_name: Option<String>,
    /// Absolute.
    pub working_directory: String,
    /// All of it: nothing is taken from the daemon's own.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    pub size: Option<Size>,
    /// How many bytes of output survive a crash of the daemon. 1 MiB unless given.
    pub ring_bytes: Option<u32>,
}

/// Text for a terminal.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Input {
    pub message: String,
    /// Press Enter after it.
    #[serde(default = "yes")]
    pub enter: bool,
    /// Type it as it is, instead of pasting it.
    #[serde(default)]
    pub raw: bool,
    /// Who sends this, as a number chosen at random. With it a request may be repeated after a lost connection
    /// without being applied twice.
    pub writer: Option<u64>,
    /// Counted up by that writer, from 1.
    pub sequence: Option<u64>,
}

fn yes() -> bool {
    true
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Success {
    pub success: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Deleted {
    pub success: bool,
    /// Processes that could not be ended.
    pub processes_left: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputMode {
    #[default]
    Full,
    Last,
    Tail,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OutputQuery {
    #[serde(default)]
    pub mode: OutputMode,
    /// How many lines of `tail`.
    pub lines: Option<usize>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Output {
    pub output: String,
    pub mode: OutputMode,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DeleteQuery {
    /// How long its processes may take to end by themselves.
    pub grace_ms: Option<u32>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Health {
    pub status: String,
    pub service: String,
    pub version: String,
    pub pid: u32,
    /// What is wrong, when something is.
    pub problem: Option<String>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stop {
    /// End the terminals too.
    #[serde(default)]
    pub all: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Stopped {
    /// Terminals that go on without the daemon.
    pub running: Vec<Terminal>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct LogQuery {
    pub terminal: Option<TerminalId>,
    pub after: Option<i64>,
    pub limit: Option<usize>,
}

/// How every error looks.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Problem {
    pub detail: String,
    /// A stable word for programs.
    pub kind: String,
    /// What to do next.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub hint: Option<String>,
}

/// The text messages on a stream, server to client. Binary ones are output: eight bytes of offset, most
/// significant first, and the bytes.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum StreamMessage {
    /// How it begins. The next binary message is a picture of the screen as of `offset`, to be drawn on a
    /// cleared terminal, or, if `continued`, plainly the output from `offset` on.
    Start {
        offset: u64,
        size: Size,
        continued: bool,
    },
    Resized {
        offset: u64,
        size: Size,
    },
    /// This input, and all before it, has reached the terminal.
    InputDone {
        sequence: u64,
    },
    InputRefused {
        sequence: u64,
        why: String,
    },
    Exited {
        exit: Exit,
    },
}

/// The text messages on a stream, client to server. Binary ones are input: eight bytes of sequence number,
/// most significant first, and the bytes.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum StreamRequest {
    /// The window the terminal is looked at through. Among all who say so the smallest decides.
    View { size: Size },
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct StreamQuery {
    /// Go on from this offset, if its output is still there.
    pub from: Option<u64>,
    /// Who types on this stream; see `Input::writer`.
    pub writer: Option<u64>,
}
