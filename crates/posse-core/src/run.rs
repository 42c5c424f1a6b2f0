//! One run of the loop, from its first terminal to PASS or FAIL, through any number of crashes.
//!
//! `review_loop` chooses the next turn, and `turn` decides when a turn ends. `Run` combines them: it starts terminals,
//! begins turns, parks while a model is unavailable, stops, and resumes. Like the other machines (`engine::Machine`) it
//! is a value that takes events and returns effects.
//!
//! The journal holds every event (`Input`), written before its effects are executed. Entries for people (`Entry`) are
//! derived when an input is applied. Replaying the journal reproduces the run. After a crash, `resume` decides pending
//! effects from evidence and never repeats them blindly.
//!
//! Nothing here uses processes, files or databases: the driver in `posse-server` does.

mod ending;
mod entry;
mod machine;
mod messages;
mod park;
mod resume;
#[cfg(test)]
mod scenarios;
mod sending;
#[cfg(test)]
mod simulation;
mod traces;
mod waiting;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use crate::turn::TurnRecord;
pub use entry::{Entry, Step, StepOutcome, Stop};
pub use machine::Run;
pub use messages::{Caller, Effect, Input, RunEvent, Sent, TurnEffect, TurnEvent};
pub use traces::{Shown, judge_traces};

/// A person who just connected.
#[cfg(test)]
const HURRIED: Option<Caller> = Some(Caller { hurry: true, auto_accept: None });

use crate::ids::{Name, RunId, TerminalId};
use crate::prompts::PromptTemplates;
use crate::review_loop::config::LoopConfig;
use crate::review_loop::{Key, Prompt, Role, Rounds};

/// The parameters of a run. They never change. The agents' environment is excluded, because it may hold secrets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spec {
    pub id: RunId,
    pub config: LoopConfig,
    pub prompt: Prompt,
    /// The project's resolved path.
    pub directory: String,
    /// The project has an `openspec/` directory, so prompts may mention its commands.
    pub openspec: bool,
    /// The user's prompt templates at the start of the run.
    pub prompts: PromptTemplates,
    /// The start time, used as the name of the archive folder.
    pub stamp: String,
    pub state_file: String,
    pub session: Name,
    /// The operator confirmed the directory: agents that ask for trust get a yes.
    pub trusted: bool,
    /// The name of the user's time zone, because agents report the end of a limit in local time.
    pub zone: Option<String>,
    /// SHA-256 of the operator's configuration file, as evidence of the settings in force.
    pub config_hash: Option<String>,
    /// A run that began elsewhere and is known only by its state file.
    pub imported: Option<Imported>,
}

/// The contents of a state file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Imported {
    pub rounds: Rounds,
    pub terminals: BTreeMap<Role, TerminalId>,
    /// The running turn and its terminal. Its prompt is not sent again while an answer may still come.
    pub in_flight: Option<(Key, TerminalId)>,
}

impl Spec {
    /// Returns the name of a role's terminal; every replacement gets its own.
    pub fn terminal_name(&self, role: Role, nth: u32) -> String {
        let run = &self.id.as_str()[..4];
        if nth <= 1 { format!("{role}-{run}") } else { format!("{role}-{run}-{nth}") }
    }
}

crate::words! {
    /// What a run does now, in one word.
    #[derive(Hash, utoipa::ToSchema)]
    pub enum RunStatus ("status") {
        Running = "running",
        /// Until a model is to be had again.
        Parked = "parked",
        /// By a person, or because a turn failed. Goes on when it is resumed.
        Stopped = "stopped",
        Passed = "passed",
        Failed = "failed",
    }
}

impl RunStatus {
    /// Returns whether the run is over for good.
    pub fn is_over(self) -> bool {
        matches!(self, Self::Passed | Self::Failed)
    }
}
