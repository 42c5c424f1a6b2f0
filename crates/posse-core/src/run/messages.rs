//! The events and effects of a run.

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

/// A journal entry of a run: an event and its monotonic time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Input {
    pub mono: Mono,
    pub event: RunEvent,
}

/// A client that provides the environment of the agents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Caller {
    /// A person just connected, so pending retries run at once.
    pub hurry: bool,
    /// Whether permissions are accepted from now on, from the environment of the person who resumes a stopped run. If
    /// unset, the configuration applies.
    pub auto_accept: Option<bool>,
}

/// An event of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
// Events are short-lived, so their size does not matter.
#[allow(clippy::large_enum_variant)]
pub enum RunEvent {
    /// Starts the run, or resumes it after a stop or a crash; earlier effects get no result. Lists the live terminals,
    /// and those that were starting when posse died.
    Go {
        alive: BTreeSet<TerminalId>,
        adopted: BTreeMap<Role, TerminalId>,
        caller: Option<Caller>,
    },
    Came(Caller),
    /// A terminal was started or failed to start.
    TerminalStarted {
        role: Role,
        terminal: Result<TerminalId, String>,
    },
    /// The new status of a watched terminal.
    Status {
        terminal: TerminalId,
        seen: Seen,
    },
    /// An event of this turn.
    Turn {
        turn: u64,
        event: TurnEvent,
    },
    Snapshot(Option<Snapshot>),
    StepDone {
        step: Step,
        outcome: StepOutcome,
    },
    /// The effect `Close` was executed.
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

/// An event of a turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(clippy::large_enum_variant)]
pub enum TurnEvent {
    /// An old response file was moved away under this name, or could not be. `printed` is the terminal's output count
    /// at that time.
    StaleCleared {
        stale: Result<Option<String>, String>,
        printed: Option<u64>,
    },
    Sent(Sent),
    /// An event while the answer is awaited.
    Waiting(turn::Event),
    /// The response file was archived under this name, if it existed and could be moved.
    Archived(Option<String>),
}

/// The result of a delivery.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sent {
    /// The prompt is in the conversation, or the agent has worked since.
    Taken,
    /// No part of the prompt reached the agent.
    Not(String),
    /// No part of the prompt reached the agent, but its number is used up.
    Lost,
    /// The delivery is unknown, and the terminal does not show it.
    Uncertain(String),
    Gone(String),
}

/// The effects of a run, in order. After a crash none of them is repeated: evidence decides the next step.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    StartTerminal {
        role: Role,
        choice: AgentChoice,
        name: String,
    },
    /// Report this terminal's status, now and at every change, and stop watching any other.
    Watch(TerminalId),
    /// An effect for this turn.
    Turn(Box<TurnRecord>, TurnEffect),
    /// `event` is one word that names the event for programs.
    Notify {
        event: &'static str,
        notice: Notice,
    },
    /// Record the uncommitted changes of the project.
    TakeSnapshot,
    WriteState(Box<StateFile>),
    Step {
        step: Step,
        before: Option<Snapshot>,
    },
    /// Ask these terminals to exit, then write the state file, and archive it if the run is over. Answered by `Closed`;
    /// the end is published after that.
    Close {
        terminals: Vec<TerminalId>,
        state: Option<Box<StateFile>>,
        over: bool,
    },
}

/// An effect of a turn, on its terminal or its response file.
#[derive(Clone, Debug, PartialEq)]
pub enum TurnEffect {
    /// Move an old response file to the archive, under this number.
    ClearStale {
        number: u32,
    },
    /// Type the prompt once, even if requested repeatedly. If the prompt may already be typed, check the terminal
    /// first.
    Send,
    /// Type the reminder of this number, from 1 on, once, even if requested repeatedly.
    Remind {
        n: u32,
        text: String,
    },
    /// Read the response file. If the agent is gone, `lived_until` is the last time it was known to be alive. Only a
    /// file completed by then, or renamed into place, counts.
    LookAtFile {
        lived_until: Option<Wall>,
    },
    Accept {
        n: u32,
        cap: u32,
        question: Option<String>,
    },
    AskLastOutput,
    /// Move the response file to the archive under this number. `suffix`: the file came too late.
    Archive {
        number: u32,
        suffix: Option<Suffix>,
    },
}
