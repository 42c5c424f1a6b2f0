//! What can happen to a run, and what it wants done.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::{Step, StepOutcome, TurnRecord};
use crate::finalize::Snapshot;
use crate::ids::TerminalId;
use crate::review_loop::Role;
use crate::review_loop::config::AgentChoice;
use crate::review_loop::state::StateFile;
use crate::time::{Mono, Wall};
use crate::turn::files::Suffix;
use crate::turn::{self, Level, Notice, Seen};

/// An entry of the journal of a run: what happened, and when by the clock that never jumps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Input {
    pub mono: Mono,
    pub event: RunEvent,
}

/// A client that provides the environment of the agents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Caller {
    /// A person, just now: what the run waits for is tried at once.
    pub hurry: bool,
    /// Whether permissions are accepted from now on, by the environment of the person who resumes a stopped run. If
    /// it says nothing about it, what is configured holds.
    pub auto_accept: Option<bool>,
}

/// What can happen to a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
// An event is made, handled and gone.
#[allow(clippy::large_enum_variant)]
pub enum RunEvent {
    /// It begins, or resumes after a stop or a crash: nothing that it had asked for before comes back. These of its terminals
    /// live, and these were being started when posse died.
    Go {
        alive: BTreeSet<TerminalId>,
        adopted: BTreeMap<Role, TerminalId>,
        caller: Option<Caller>,
    },
    Came(Caller),
    /// A terminal was started, or could not be.
    TerminalStarted {
        role: Role,
        terminal: Result<TerminalId, String>,
    },
    /// What a watched terminal is now.
    Status {
        terminal: TerminalId,
        seen: Seen,
    },
    /// Something about this turn.
    Turn {
        turn: u64,
        event: TurnEvent,
    },
    Snapshot(Option<Snapshot>),
    StepDone {
        step: Step,
        outcome: StepOutcome,
    },
    /// The effect `Close` is carried out.
    Closed,
    Stop {
        why: String,
    },
    /// The run was not resumed, because another run uses its files.
    NotResumed {
        why: String,
    },
    /// A message for people.
    Said {
        level: Level,
        text: String,
    },
    Time,
}

/// What can happen to a turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(clippy::large_enum_variant)]
pub enum TurnEvent {
    /// What an earlier turn left in the response file was moved away, under this name, or could not be. So much had the
    /// terminal printed by then.
    StaleCleared {
        stale: Result<Option<String>, String>,
        printed: Option<u64>,
    },
    Sent(Sent),
    /// While the answer is awaited.
    Waiting(turn::Event),
    /// The response file is in the archive under this name, if there was one and it could be moved.
    Archived(Option<String>),
}

/// What became of a prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sent {
    /// It is in the conversation, or the agent has worked since.
    Taken,
    /// Nothing of it is with the agent.
    Not(String),
    /// The same, but its number is used up.
    Lost,
    /// It is not known whether the agent has it, and the terminal does not show it.
    Uncertain(String),
    Gone(String),
}

/// What a run wants done, in this order. After a crash none of it is repeated: what comes next is decided from evidence.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    StartTerminal {
        role: Role,
        choice: AgentChoice,
        name: String,
    },
    /// Report the status of this terminal, now and at every change, and of no other one.
    Watch(TerminalId),
    /// Something for this turn.
    Turn(Box<TurnRecord>, TurnEffect),
    /// `event` is what happened, in one word for programs.
    Notify {
        event: &'static str,
        notice: Notice,
    },
    /// See what is uncommitted in the project.
    TakeSnapshot,
    WriteState(Box<StateFile>),
    Step {
        step: Step,
        before: Option<Snapshot>,
    },
    /// Ask these terminals to exit, then write the state file, and archive the file if the run is over. Answered by `Closed`;
    /// the end is published after that.
    Close {
        terminals: Vec<TerminalId>,
        state: Option<Box<StateFile>>,
        over: bool,
    },
}

/// What a run wants done for a turn, in its terminal or with its response file.
#[derive(Clone, Debug, PartialEq)]
pub enum TurnEffect {
    /// Move what an earlier turn left in the response file to the archive, under this number.
    ClearStale {
        number: u32,
    },
    /// Type the prompt: once, however often it is asked for. If it may be there already, see whether it is.
    Send,
    /// Type a reminder of this number, from 1 on: once, however often it is asked for.
    Remind {
        n: u32,
        text: String,
    },
    /// `lived_until`: if its agent is gone, the last time at which the agent was known to live. Only a file that was complete by
    /// then, or was renamed into place, counts.
    LookAtFile {
        lived_until: Option<Wall>,
    },
    Accept {
        n: u32,
        cap: u32,
        question: Option<String>,
    },
    AskLastOutput,
    /// The response file goes to the archive under this number. `suffix`: it came too late.
    Archive {
        number: u32,
        suffix: Option<Suffix>,
    },
}
