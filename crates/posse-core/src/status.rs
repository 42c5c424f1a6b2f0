//! Decides the status of a terminal, with a reason.
//!
//! `Life` processes the events of one terminal: readings of its screen (`detect`), claims of the agent (`signal`),
//! actions of posse, and the end of the process. In order of credibility: the end of the process, the agent's claims,
//! its title and progress, the screen, silence.
//!
//! A claim is an edge, not a level: it holds until the screen shows something else. Agents do not report everything
//! (there is no report when a question is answered or a person presses Esc), and reports can be lost, late or
//! duplicated. `weigh` defines how long each claim holds against each screen.

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
    /// The kind of answer that a waiting terminal needs.
    #[derive(Default, utoipa::ToSchema)]
    pub enum WaitingKind ("kind of question") {
        #[default]
        Permission = "permission",
        Question = "question",
        Plan = "plan",
        Startup = "startup",
    }
}

/// The status of a terminal, with its reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    #[serde(rename = "status")]
    pub kind: StatusKind,
    /// The deciding rule or fact, in words for people.
    pub reason: String,
    pub waiting_kind: Option<WaitingKind>,
    /// The question, once it is on the screen and readable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dialog: Option<Dialog>,
    /// The start of this status.
    pub since: Wall,
    /// Counts the changes of this terminal's status. A command that names the epoch it was decided on is refused if the
    /// status has changed since.
    pub epoch: u64,
    /// An input was submitted, and the agent has not reacted visibly since. The status is the last observed one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub awaiting_reaction: bool,
    /// A prompt was submitted, and no work of the agent was seen or reported since.
    #[serde(skip)]
    pub unproven: bool,
}

impl Status {
    /// Creates a status without further details.
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

    /// Returns whether the agent works, or was given something to work on and has not reacted yet.
    pub fn is_busy(&self) -> bool {
        self.kind == StatusKind::Processing || self.awaiting_reaction
    }
}

/// The exit status of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    Code(i32),
    Signal(i32),
    /// The keeper of the terminal is gone; the end was not observed.
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

/// The source of an agent's claim about itself.
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

/// An agent's claim about itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Claim {
    Working,
    /// The agent asks, or is about to: the question may not be on the screen yet.
    Asking(Option<WaitingKind>),
    /// The agent waits for a prompt, with or without a turn before.
    Ready,
    /// A turn has ended.
    TurnOver,
    /// A turn has ended in an error, of this class.
    Failed(String),
    /// The source withdraws its last claim.
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

/// An event that concerns the status of a terminal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
// Events are short-lived. Boxing would allocate for every look at a screen.
#[allow(clippy::large_enum_variant)]
pub enum Event {
    /// A program without a manifest runs, and no more will be known. An agent stays `starting` until there is evidence.
    #[serde(skip)]
    Running,
    #[serde(skip)]
    Exited(Exit),
    /// The screen was read.
    #[serde(skip)]
    Read(Reading),
    /// A source made a claim.
    Said(Source, Claim),
    /// A source made a claim in output that an earlier daemon has read. This alone changes no status.
    #[serde(skip)]
    Recalled(Source, Claim),
    /// posse submitted a prompt and saw it taken.
    Prompted,
    /// Like `Prompted`, with a command of the tool itself: it may start a turn, or end at once.
    Commanded,
    /// posse answered the question.
    Answered,
    /// posse refused what the question asked for. With most agents that ends the turn, and the screen shows it.
    Denied,
    /// The question was answered, and the next one in the same words is on the screen.
    AskedAgain,
    /// Output was lost, perhaps including the end of an earlier claim.
    #[serde(skip)]
    Missed,
    /// The deadline has arrived, or may have.
    #[serde(skip)]
    Time,
}

impl Event {
    /// Returns whether the terminal's output lacks this evidence. Recordings store such events, so that a replay
    /// decides like the live terminal.
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
