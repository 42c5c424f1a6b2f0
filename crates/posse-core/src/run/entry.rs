//! The entries of a run that people and programs read.

use serde::{Deserialize, Serialize};

use super::Spec;
use crate::ids::TerminalId;
use crate::review_loop::{Final, Key, Role};
use crate::turn::{AnswerFrom, Cause, Level};

/// One thing that happened to a run, or is about to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "entry", rename_all = "snake_case")]
pub enum Entry {
    Created {
        spec: Box<Spec>,
    },
    /// A terminal is about to be started for this role, under this name.
    TerminalWanted {
        role: Role,
        name: String,
    },
    TerminalReady {
        role: Role,
        terminal: TerminalId,
    },
    /// It could not be started, or it is gone.
    TerminalLost {
        role: Role,
        why: String,
    },
    /// A turn begins; nothing has been sent yet.
    TurnBegun {
        turn: u64,
        key: Key,
        terminal: TerminalId,
        /// The number of the attempt, from 1.
        attempt: u32,
        text: String,
    },
    /// The prompt may be on its way. What an earlier turn left in the response file is in the archive under this name.
    Dispatching {
        turn: u64,
        stale: Option<String>,
    },
    /// The prompt was seen to be taken.
    Sent {
        turn: u64,
    },
    /// A permission is about to be accepted, by this count of the turn.
    Accepting {
        turn: u64,
        n: u32,
        cap: u32,
        role: Role,
        terminal: TerminalId,
        /// A few lines that show what is accepted.
        shown: Vec<String>,
    },
    /// The result of accepting it, and why it failed.
    Accepted {
        turn: u64,
        n: u32,
        why: Option<String>,
    },
    /// The answer of the turn.
    Answered {
        turn: u64,
        text: String,
        from: AnswerFrom,
    },
    /// Where the response file went. `None`: it could not be moved, or there was none.
    Archived {
        turn: u64,
        name: Option<String>,
    },
    TurnFailed {
        turn: u64,
        cause: Cause,
        message: String,
    },
    /// An answer that came too late is in the archive under this name.
    KeptLate {
        name: String,
    },
    /// For people.
    Said {
        level: Level,
        text: String,
    },
    Stopped {
        stop: Stop,
        why: String,
    },
    Resumed,
    /// The verdict stands; what follows is what happens after it.
    Decided {
        verdict: Final,
    },
    /// One step of what comes after PASS.
    StepDone {
        step: Step,
        outcome: StepOutcome,
    },
    Finished,
}

/// What happens after PASS, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = FinalStep)]
pub enum Step {
    OpenspecArchive,
    GitCommit,
}

pub use crate::finalize::Step as StepOutcome;

/// Why a run stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = LoopStop)]
pub enum Stop {
    /// A person asked for it.
    Asked,
    /// A terminal could not be started.
    Start,
    /// A turn failed.
    Turn,
    /// A terminal is to be started, and no client provides the environment.
    Alone,
}
