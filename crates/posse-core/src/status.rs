//! What we believe about a terminal, and why.
//!
//! `Life` takes in what happens to one terminal and decides its status: what its screen was read to say (`detect`),
//! what the agent said of itself (`signal`), what we did, and the end of the process. Who is believed, first to last:
//! the end of the process, what the agent says of itself, its title and progress, the screen, silence.
//!
//! What an agent says is an edge, not a level: it holds until the screen shows something else, because agents do not
//! report everything (nothing is said when a question is answered or when someone presses Esc) and because what they
//! say can be lost, late or said twice. How long each word holds against each screen is in `weigh`.

mod life;
#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tables;
mod weigh;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use life::Life;

use crate::detect::{Dialog, Reading};
use crate::time::Wall;
use crate::words;

words! {
    #[derive(Hash, utoipa::ToSchema)]
    pub enum StatusKind ("status") {
        Idle = "idle",
        Processing = "processing",
        WaitingUserAnswer = "waiting_user_answer",
        Completed = "completed",
        Error = "error",
    }
}

words! {
    /// What kind of answer a waiting terminal wants.
    #[derive(Default, utoipa::ToSchema)]
    pub enum WaitingKind ("kind of question") {
        #[default]
        Permission = "permission",
        Question = "question",
        Plan = "plan",
        Startup = "startup",
    }
}

/// What we believe about a terminal, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    #[serde(rename = "status")]
    pub kind: StatusKind,
    /// The rule or the fact that decided, in words for people.
    pub reason: String,
    pub waiting_kind: Option<WaitingKind>,
    /// The question, once it is on the screen and could be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dialog: Option<Dialog>,
    /// When this status began.
    pub since: Wall,
    /// Counts the changes of this terminal's status. A command that carries the epoch it was decided
    /// on can be refused when the world has moved on.
    pub epoch: u64,
    /// An input was submitted, and nothing has been observed of the agent since. The status is the last observed one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub awaiting_reaction: bool,
    /// A prompt was submitted, and by then nothing was seen of the agent being at it: not a working screen, not a word.
    #[serde(skip)]
    pub unproven: bool,
}

impl Status {
    /// A first status, about which no more is known.
    pub fn new(kind: StatusKind, reason: impl Into<String>, since: Wall) -> Self {
        Self {
            kind,
            reason: reason.into(),
            waiting_kind: None,
            dialog: None,
            since,
            epoch: 0,
            awaiting_reaction: false,
            unproven: false,
        }
    }

    /// Whether the agent works, or was given something to work on and has not reacted yet.
    pub fn is_busy(&self) -> bool {
        self.kind == StatusKind::Processing || self.awaiting_reaction
    }
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    Code(i32),
    Signal(i32),
    /// Whoever held the terminal is gone; nobody saw the end.
    Lost,
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Exit::Code(code) => write!(f, "exited with {code}"),
            Exit::Signal(signal) => match signal_name(*signal) {
                Some(name) => write!(f, "ended by {name}"),
                None => write!(f, "ended by signal {signal}"),
            },
            Exit::Lost => f.write_str("lost: its keeper is gone"),
        }
    }
}

fn signal_name(signal: i32) -> Option<&'static str> {
    Some(match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        15 => "SIGTERM",
        _ => return None,
    })
}

/// Where an agent said something of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = SignalSource)]
pub enum Source {
    /// OSC 7501.
    Osc,
    Hook,
    SessionFile,
    Title,
    /// OSC 9;4.
    Progress,
}

impl Source {
    pub const ALL: [Source; 5] = [Self::Osc, Self::Hook, Self::SessionFile, Self::Title, Self::Progress];
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Source::Osc => "OSC 7501",
            Source::Hook => "hook",
            Source::SessionFile => "session file",
            Source::Title => "title",
            Source::Progress => "progress",
        })
    }
}

/// What an agent says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Claim {
    Working,
    /// It asks, or is about to: the question may not be on the screen yet.
    Asking(Option<WaitingKind>),
    /// It waits for a prompt, whether or not there was a turn before.
    Ready,
    /// A turn has ended.
    TurnOver,
    /// A turn has ended in an error, of this class.
    Failed(String),
    /// It takes back what it said here, and says nothing instead.
    Nothing,
}

impl fmt::Display for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Claim::Working => f.write_str("working"),
            Claim::Asking(_) => f.write_str("asking"),
            Claim::Ready => f.write_str("ready"),
            Claim::TurnOver => f.write_str("turn over"),
            Claim::Failed(class) => write!(f, "failed: {class}"),
            Claim::Nothing => f.write_str("nothing"),
        }
    }
}

/// What can happen to a terminal, as far as its status is concerned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
// An event is made, handled and gone. A box would be an allocation for every look at a screen.
#[allow(clippy::large_enum_variant)]
pub enum Event {
    /// It runs, and we know nothing more about it: a program without a manifest. An agent stays `starting` until there
    /// is evidence.
    #[serde(skip)]
    Running,
    #[serde(skip)]
    Exited(Exit),
    /// Its screen was looked at.
    #[serde(skip)]
    Read(Reading),
    /// It said something of itself.
    Said(Source, Claim),
    /// It said so in output that a daemon before this one has read. That changes no status by itself.
    #[serde(skip)]
    Recalled(Source, Claim),
    /// We submitted a prompt, and saw it taken.
    Prompted,
    /// The same with one of the tool's own commands: maybe it begins a turn, maybe it is over at once.
    Commanded,
    /// We answered the question.
    Answered,
    /// We refused what the question asked for. With most agents that is the end of the turn, and the screen shows it.
    Denied,
    /// The question was answered, and the next one in the very same words is on the screen.
    AskedAgain,
    /// Output was lost, and with it perhaps the end of what was said before.
    #[serde(skip)]
    Missed,
    /// The deadline has come, or may have.
    #[serde(skip)]
    Time,
}

impl Event {
    /// Returns whether the terminal's output does not contain this evidence. Recordings keep such events, so that a replay
    /// decides as the live terminal did.
    pub fn is_beyond_output(&self) -> bool {
        match self {
            Event::Said(source, _) => matches!(source, Source::Hook | Source::SessionFile),
            Event::Prompted | Event::Commanded | Event::Answered | Event::Denied | Event::AskedAgain => true,
            Event::Running | Event::Exited(_) | Event::Read(_) | Event::Recalled(..) | Event::Missed | Event::Time => {
                false
            }
        }
    }
}
