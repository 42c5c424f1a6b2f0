//! One run of the loop, from its first terminal to PASS or FAIL, through any number of crashes.
//!
//! `review_loop` decides which turn comes next, `turn` decides when a turn is over. `Run` puts them together: it starts
//! the terminals, begins turns, parks while a model is not available, stops, and resumes where it was. It is a value
//! like the other machines (`engine::Machine`): it takes what happened and answers with what it wants done.
//!
//! Its journal has what happened (`Input`), each before anything that follows from it is done. What people read of it (`Entry`)
//! is derived when an input is taken in. A run that is read back from its journal *is* the run that wrote it. What was under way
//! when posse died is then decided from evidence (`resume`), never repeated blindly.
//!
//! Nothing here knows of processes, files or databases: those are the driver's, in `posse-server`.

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

/// A person who has come just now.
#[cfg(test)]
const HURRIED: Option<Caller> = Some(Caller { hurry: true, auto_accept: None });

use crate::ids::{Name, RunId, TerminalId};
use crate::prompts::PromptTemplates;
use crate::review_loop::config::LoopConfig;
use crate::review_loop::{Key, Prompt, Role, Rounds};

/// What a run was asked to do. Never changes; the environment of its agents is no part of it, because that may hold
/// secrets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spec {
    pub id: RunId,
    pub config: LoopConfig,
    pub prompt: Prompt,
    /// The project, resolved.
    pub directory: String,
    /// The project has an `openspec/` directory: prompts may speak of its commands.
    pub openspec: bool,
    /// The user's prompt templates when the run began.
    pub prompts: PromptTemplates,
    /// When it began, as the name of its archive folder.
    pub stamp: String,
    pub state_file: String,
    pub session: Name,
    /// The operator confirmed the directory: agents that ask whether they may trust it get a yes.
    pub trusted: bool,
    /// The time zone of the user, by name: agents say when a limit ends in local time.
    pub zone: Option<String>,
    /// SHA-256 of the configuration file the operator named, so that it is known later what was in force.
    pub config_hash: Option<String>,
    /// A run that began elsewhere and is known by its state file only.
    pub imported: Option<Imported>,
}

/// What a state file knew.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Imported {
    pub rounds: Rounds,
    pub terminals: BTreeMap<Role, TerminalId>,
    /// The turn that was under way: whose, and where. Its prompt is not sent again as long as its answer may come.
    pub in_flight: Option<(Key, TerminalId)>,
}

impl Spec {
    /// The name of a role's terminal; every replacement gets one of its own.
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
    /// Nothing more will ever happen.
    pub fn is_over(self) -> bool {
        matches!(self, Self::Passed | Self::Failed)
    }
}
