//! What people and programs are told of a run.

use serde::{Deserialize, Serialize};

use super::Spec;
use crate::finalize::Snapshot;
use crate::ids::TerminalId;
use crate::rounds::{Final, Key, Role};
use crate::time::Wall;
use crate::turn::{AnswerFrom, Cause, ErrorKind, Level};

/// One thing that happened to a run, or is about to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "entry", rename_all = "snake_case")]
pub enum Entry {
    Created {
        spec: Box<Spec>,
    },
    /// What was uncommitted in the project before any agent touched it; nothing, if it is no repository or git failed.
    Snapshot {
        snapshot: Option<Snapshot>,
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
    /// What an earlier turn left in the response file was moved away, if there was something. From here on a response
    /// file is an answer to this turn, and the prompt may be on its way.
    Dispatching {
        turn: u64,
        stale: Option<String>,
        /// How much the terminal had printed by then.
        printed: Option<u64>,
    },
    /// The prompt was seen to be taken.
    Sent {
        turn: u64,
    },
    /// It certainly never reached the agent, but its number is spent: the turn is begun again under the next one.
    Unsent {
        turn: u64,
        why: String,
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
    /// What became of it. Refused means: nothing was typed, and it does not count.
    Accepted {
        turn: u64,
        n: u32,
        refused: bool,
        why: Option<String>,
    },
    Reminding {
        turn: u64,
        n: u32,
    },
    /// A person was notified that an answer is wanted.
    HumanTold {
        turn: u64,
    },
    /// The turn is over, and this is what it gave.
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
        kind: ErrorKind,
        cause: Cause,
        message: String,
    },
    /// A failed turn is reopened: its agent is still at it, or its answer has come.
    Reopened {
        turn: u64,
    },
    /// An answer that came too late is in the archive under this name.
    KeptLate {
        name: String,
    },
    /// Waits until then, and tries the turn again. `times` in a row, for a usage limit or for other reasons.
    Parked {
        until: Wall,
        times: u32,
        #[serde(default)]
        limit: bool,
        why: String,
    },
    Unparked,
    /// For people.
    Said {
        level: Level,
        text: String,
    },
    /// It stops for this reason as soon as its agents have been asked to leave. They are no longer its agents.
    Leaving {
        stop: Stop,
        why: String,
    },
    Stopped {
        stop: Stop,
        why: String,
    },
    Resumed,
    /// The person who resumed it has said whether permissions are accepted; that holds from now on.
    AutoAccept {
        on: bool,
    },
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    OpenspecArchive,
    GitCommit,
}

pub use crate::finalize::Step as StepOutcome;

/// Why a run stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// A person asked for it.
    Asked,
    /// A terminal could not be started.
    Start,
    /// A turn failed.
    Turn,
    /// A terminal is to be started, and no client provides the environment.
    Alone,
    /// It goes round in circles, or the journal makes no sense.
    Stuck,
}
