//! What can happen to a run, and what it wants done.

use std::collections::{BTreeMap, BTreeSet};

use super::{Entry, Step, StepOutcome};
use crate::aftermath::Snapshot;
use crate::ids::TerminalId;
use crate::rounds::config::AgentChoice;
use crate::rounds::state::StateFile;
use crate::rounds::{Key, Role};
use crate::time::Wall;
use crate::turn::{self, Notice, Seen};

/// Somebody who is there and knows the environment of its agents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Caller {
    /// A person, just now: what the run waits for is tried at once.
    pub hurry: bool,
    /// Whether permissions are accepted from now on, by the environment of a person who goes on with a run that was stopped. If
    /// it says nothing about it, what is configured holds.
    pub auto_accept: Option<bool>,
}

/// What can happen to a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Happened {
    /// It begins, or goes on after a stop or a crash. These of its terminals live, and these were being started when posse
    /// died.
    Go {
        alive: BTreeSet<TerminalId>,
        adopted: BTreeMap<Role, TerminalId>,
        caller: Option<Caller>,
    },
    Came(Caller),
    TerminalStarted {
        role: Role,
        result: Result<TerminalId, String>,
    },
    /// What a watched terminal is now.
    Status {
        terminal: TerminalId,
        seen: Seen,
    },
    /// What an earlier turn left in the response file was moved away, under this name, or could not be. So much had the
    /// terminal printed by then.
    StaleCleared {
        turn: u64,
        stale: Result<Option<String>, String>,
        printed: Option<u64>,
    },
    Sent {
        turn: u64,
        sent: Sent,
    },
    Traces {
        turn: u64,
        traces: Traces,
    },
    /// Something about the turn that is under way.
    Turn {
        turn: u64,
        event: turn::Event,
    },
    Archived {
        turn: u64,
        name: Option<String>,
    },
    /// An answer that came too late was kept, under this name.
    KeptLate {
        turn: u64,
        name: Option<String>,
    },
    Snapshot(Option<Snapshot>),
    StepDone {
        step: Step,
        outcome: StepOutcome,
    },
    /// Those who were to be asked to exit have been.
    TerminalsAsked,
    Stop {
        why: String,
    },
    Time,
}

/// What became of a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sent {
    Taken,
    /// Nothing of it is with the agent.
    Not(String),
    /// Nobody knows.
    Uncertain(String),
    Gone(String),
}

/// What a terminal shows of a prompt nobody is sure of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Traces {
    /// It is in the conversation, or the agent has worked since.
    Taken,
    /// The agent has been quiet since before, and shows nothing of it.
    NotTaken,
    Unclear(String),
}

/// What a run wants done, in this order.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// To be durable before anything after it is done.
    Record(Entry),
    StartTerminal {
        role: Role,
        choice: AgentChoice,
        name: String,
    },
    /// Its status is told, now and at every change, and no other terminal's.
    Watch(TerminalId),
    ClearStale {
        turn: u64,
        key: Key,
        terminal: TerminalId,
        number: u32,
    },
    /// Typed once for all times, whoever asks how often.
    Send {
        turn: u64,
        terminal: TerminalId,
        text: String,
    },
    LookForTraces {
        turn: u64,
        terminal: TerminalId,
        key: Key,
        text: String,
        since: Wall,
        printed: Option<u64>,
    },
    LookAtFile {
        turn: u64,
        key: Key,
    },
    Accept {
        turn: u64,
        terminal: TerminalId,
        role: Role,
        n: u32,
        cap: u32,
        question: Option<String>,
        epoch: u64,
    },
    AskLastOutput {
        turn: u64,
        terminal: TerminalId,
    },
    Remind {
        turn: u64,
        terminal: TerminalId,
        n: u32,
        text: String,
    },
    /// The response file goes to the archive under this number.
    Archive {
        turn: u64,
        key: Key,
        number: u32,
    },
    /// As `Archive`, as an answer that came too late.
    KeepLate {
        turn: u64,
        key: Key,
        number: u32,
    },
    /// `event` is what happened, in one word for programs.
    Notify {
        event: &'static str,
        notice: Notice,
    },
    /// See what is uncommitted in the project.
    TakeSnapshot,
    /// The state file is to say this, with these times.
    Mirror {
        state: Box<StateFile>,
        at: Wall,
        dispatched: Option<Wall>,
    },
    Step {
        step: Step,
        before: Option<Snapshot>,
    },
    /// Ask these to exit, and tell when all have been asked.
    EndTerminals(Vec<TerminalId>),
    /// The state file goes to the archive.
    ArchiveState,
    /// Nothing more will come until `Go`.
    Rest,
}
