//! Errors as clients get them.

use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    pub detail: String,
    pub kind: ProblemKind,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub hint: Option<String>,
}

/// A stable word for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProblemKind {
    BadId,
    BadName,
    BadSize,
    Busy,
    Disk,
    Ended,
    ForeignHook,
    ForeignHost,
    ForeignOrigin,
    FromTerminal,
    InUse,
    Invalid,
    InvalidPlan,
    KeeperSilent,
    LimitReached,
    Listen,
    Locked,
    Looking,
    Lost,
    Malformed,
    MovedOn,
    NameTaken,
    NoAgent,
    NoArea,
    NoDirectory,
    NoFile,
    NoItem,
    NoJournal,
    NoKeeper,
    NoMessage,
    NoMethod,
    NoProgram,
    NoQuestion,
    NoRoute,
    NoRun,
    NoSession,
    NoTask,
    NoTerminal,
    NoWords,
    #[serde(rename = "not_a_websocket")]
    NotAWebSocket,
    NotAnswered,
    NotAsking,
    NotDelivered,
    NotExecutable,
    NotReading,
    NotTold,
    NotTyped,
    OutOfReach,
    Over,
    QuestionChanged,
    Rests,
    SessionTaken,
    StartFailed,
    StartTimeout,
    Status,
    Stopping,
    Store,
    TooLarge,
    TooManyConnections,
    TooMuchInput,
    TooSlow,
    Unauthorized,
    Uncertain,
    Unproven,
    Waiting,
    Widens,
    // Of the command line itself.
    Ambiguous,
    Database,
    Failed,
    HungUp,
    Interrupted,
    Io,
    Keeper,
    LostConnection,
    NoTmux,
    Nonsense,
    Paths,
    Running,
    Serve,
    Stopped,
    Terminated,
    Usage,
    /// A word that only a newer daemon knows. The detail and the hint still say what happened.
    #[serde(other)]
    Unknown,
}

impl ProblemKind {
    /// The HTTP status of an answer with this problem.
    pub fn http_status(self) -> u16 {
        match self {
            Self::BadName
            | Self::Invalid
            | Self::InvalidPlan
            | Self::NameTaken
            | Self::NoDirectory
            | Self::NoFile
            | Self::NoProgram
            | Self::NotAWebSocket
            | Self::NotExecutable
            | Self::SessionTaken => 400,
            Self::Unauthorized => 401,
            Self::ForeignHook | Self::ForeignHost | Self::ForeignOrigin | Self::FromTerminal => 403,
            Self::NoItem
            | Self::NoMessage
            | Self::NoRoute
            | Self::NoRun
            | Self::NoSession
            | Self::NoTask
            | Self::NoTerminal => 404,
            Self::NoMethod => 405,
            Self::TooSlow => 408,
            Self::TooLarge | Self::TooMuchInput => 413,
            Self::BadId | Self::BadSize | Self::Malformed => 422,
            Self::NotTyped | Self::StartFailed | Self::Store => 500,
            Self::KeeperSilent
            | Self::LimitReached
            | Self::NoKeeper
            | Self::OutOfReach
            | Self::Stopping
            | Self::TooManyConnections => 503,
            Self::NotTold | Self::StartTimeout => 504,
            Self::Disk => 507,
            _ => 409,
        }
    }
}

/// The word as it is on the wire.
impl fmt::Display for ProblemKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}
