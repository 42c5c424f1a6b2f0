//! Terminals and the agents in them.

use std::collections::BTreeMap;

use jiff::Timestamp;
use posse_agents::launch::Mode;
use posse_agents::profile::Profile;
use posse_core::detect::{Dialog, Explanation};
use posse_core::ids::{Name, TerminalId};
use posse_core::screen::Size;
use posse_core::status::{Exit, Status, StatusKind, WaitingKind};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::ProblemKind;

/// The provider of a terminal that runs a plain command.
pub const COMMAND: &str = "command";

/// The provider of a terminal that runs the user's shell.
pub const SHELL: &str = "shell";

/// The number of output bytes that survive a crash of the daemon, unless a request says otherwise.
pub const RING_BYTES: u32 = 1 << 20;

#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Terminal {
    pub id: TerminalId,
    pub name: Name,
    pub session_name: Name,
    pub provider: String,
    pub agent_profile: Option<String>,
    /// The permissions of the agent (`ask`, `edits` or `bypass`); null if no agent runs in the terminal.
    pub mode: Option<Mode>,
    #[serde(flatten)]
    pub status: StatusView,
    pub title: String,
    pub working_directory: String,
    pub command: Vec<String>,
    pub size: Size,
    pub pid: Option<u32>,
    /// The exit status of the program, `{"code": N}`, `{"signal": N}` or `"lost"`; null while it runs.
    pub exit: Option<Exit>,
    pub created_at: Timestamp,
    pub last_active: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StatusView {
    pub status: StatusKind,
    pub reason: String,
    pub waiting_kind: Option<WaitingKind>,
    pub dialog: Option<Dialog>,
    pub since: Timestamp,
    pub epoch: u64,
    /// An input was submitted, and nothing has been observed of the agent since. `status` is the last observed one.
    pub awaiting_reaction: bool,
}

impl From<&Status> for StatusView {
    fn from(status: &Status) -> Self {
        Self {
            status: status.kind,
            reason: status.reason.clone(),
            waiting_kind: status.waiting_kind,
            dialog: status.dialog.clone(),
            since: status.since.timestamp(),
            epoch: status.epoch,
            awaiting_reaction: status.awaiting_reaction,
        }
    }
}

/// A terminal to start.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Create {
    /// The agent to start; without one the command is.
    pub provider: Option<String>,
    /// The permissions of the agent: `ask` (unless given), `edits` or `bypass`.
    pub mode: Option<Mode>,
    pub model: Option<String>,
    /// Its role: `name`, `description`, `model`, `mcp_servers`, `text`.
    pub profile: Option<Profile>,
    /// Its role, by the name under which it is kept.
    pub agent_profile: Option<String>,
    /// The operator has confirmed that the directory is trusted.
    #[serde(default)]
    pub trusted: bool,
    /// `false`: answer as soon as the agent runs, before it is ready.
    pub wait: Option<bool>,
    /// The program and its arguments; after an agent, more arguments for it.
    #[serde(default)]
    pub command: Vec<String>,
    pub name: Option<String>,
    pub session_name: Option<String>,
    /// Absolute.
    pub working_directory: String,
    /// All of it: nothing is taken from the daemon's own.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    pub size: Option<Size>,
    /// The number of bytes of output that survive a crash of the daemon. 1 MiB unless given.
    pub ring_bytes: Option<u32>,
}

/// Text for a terminal.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct Input {
    pub message: String,
    /// Press Enter after it; yes unless this says no.
    pub enter: Option<bool>,
    /// Type it as it is, instead of pasting it.
    pub raw: Option<bool>,
    /// Type nothing, and answer 409, unless this is the terminal's status.
    pub expect_status: Option<StatusKind>,
    /// Type nothing, and answer 409, unless the terminal's status is still the one with this epoch.
    pub epoch: Option<u64>,
    /// The sender, as a number chosen at random. With it a request may be repeated after a lost connection
    /// without being applied twice.
    pub writer: Option<u64>,
    /// Counted up by that writer, from 1.
    pub sequence: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Question {
    /// Another question has another one. `approve` and `deny` want it.
    pub id: String,
    pub waiting_kind: Option<WaitingKind>,
    /// The subject, in a line.
    pub text: String,
    /// All that is known about it, line by line: the whole command or change as the agent reports it, the model's own words
    /// marked as such, and what speaks against it.
    pub full: Vec<String>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct AnswerIn {
    /// The question that is meant, by the id it has in `GET /terminals/{id}/question` and in the terminal's `dialog`. If
    /// another one is open, nothing is typed.
    pub dialog: String,
    /// Choose this option, counted from 1.
    pub option: Option<u32>,
    /// Answer in these words, where the question has an option that takes some.
    pub text: Option<String>,
    /// The reason for a refusal: the agent's next prompt, once it is ready for one.
    pub reason: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ExplanationView {
    /// The status of the terminal, which more than the screen decides.
    #[serde(flatten)]
    pub status: StatusView,
    pub title: String,
    /// The last signals of the agent, by their source.
    pub signals: Vec<SignalView>,
    #[schema(value_type = Object)]
    pub explanation: Explanation,
}

#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct SignalView {
    pub source: String,
    pub said: String,
}

/// A terminal to start the way the session routes do: by provider.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct CreateIn {
    pub provider: String,
    pub agent_profile: Option<String>,
    pub session_name: Option<String>,
    /// The directory of the command that made the daemon listen, unless given.
    pub working_directory: Option<String>,
    /// The permissions of the agent: `ask` (unless given), `edits` or `bypass`.
    pub mode: Option<Mode>,
    pub model: Option<String>,
    /// The operator has confirmed that the directory is trusted.
    pub trusted: Option<bool>,
    /// `false`: answer at once, while the terminal is still starting.
    pub wait: Option<bool>,
}

#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Session {
    pub id: String,
    pub name: String,
    pub status: SessionStatus,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SessionStatus {
    /// A viewer is attached to one of its terminals.
    Active,
    Detached,
}

#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct SessionDetail {
    pub session: Session,
    pub terminals: Vec<Terminal>,
}

#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct WorkingDirectory {
    /// The directory of the program in the foreground; null if that is unknown.
    pub working_directory: Option<String>,
}

/// A size, in the query or in a body.
#[derive(Clone, Copy, Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct SizeIn {
    pub rows: Option<u16>,
    pub cols: Option<u16>,
}

#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Success {
    pub success: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Answered {
    pub success: bool,
    /// Its entry in the audit.
    pub audit: Option<i64>,
}

#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Deleted {
    pub success: bool,
    /// Processes that could not be ended.
    pub processes_left: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OutputMode {
    #[default]
    Full,
    Last,
    Tail,
}

#[derive(Clone, Debug, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct OutputQuery {
    #[serde(default)]
    #[param(inline)]
    pub mode: OutputMode,
    /// The number of lines of `tail`.
    pub lines: Option<u32>,
}

#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Output {
    pub output: String,
    pub mode: OutputMode,
}

#[derive(Clone, Debug, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct DeleteQuery {
    /// The time that its processes have to end by themselves.
    pub grace_ms: Option<u32>,
}

/// The text messages on a stream, server to client. Binary ones are output: eight bytes of offset, most
/// significant first, and the bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum StreamMessage {
    /// The first message. The next binary message is a picture of the screen as of `offset`, to be drawn on a
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
        why: ProblemKind,
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
    /// A viewer is attached. With a size it asks the terminal to take that size; the smallest size asked for counts. Without
    /// one the terminal keeps its size.
    View { size: Option<Size> },
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct StreamQuery {
    /// Go on from this offset, if its output is still there.
    pub from: Option<u64>,
    /// The sender of input on this stream; see `Input::writer`.
    pub writer: Option<u64>,
}
