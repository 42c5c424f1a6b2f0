//! What the journal of a plan's run is made of.

use std::collections::BTreeMap;

use posse_agents::headless::Sandbox;
use posse_core::ids::RunId;
use posse_core::plan::budget::Total;
use posse_core::plan::machine::{self, Event};
use posse_core::plan::settings::Settings;
use posse_core::plan::{State, TaskId};
use posse_core::rounds::config::Notifications;
use posse_core::turn::Level;
use serde::{Deserialize, Serialize};

/// Everything a run was begun with. It goes by this and not by what files say later: a session must not be able to change
/// how it is guarded.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Spec {
    pub id: RunId,
    /// The plan. Absolute.
    pub file: String,
    /// As it was read.
    pub text: String,
    pub state: State,
    pub settings: Settings,
    /// How often tasks were started in earlier runs.
    pub starts: BTreeMap<TaskId, u32>,
    /// What earlier runs of this plan have used.
    pub spent: Total,
    /// The project. Absolute, without links.
    pub directory: String,
    /// Whose sessions they are: `claude_code`, `codex`.
    pub provider: String,
    /// The program. Absolute.
    pub program: String,
    pub sandbox: Sandbox,
    /// The run of this plan in whose directory the work areas are: the first. What an earlier run left unmerged is found
    /// there. `None`: this one.
    #[serde(default)]
    pub areas: Option<RunId>,
    /// The branch that gathers the results; the one that is checked out unless given.
    pub branch: Option<String>,
    /// The project's own agents, as they were written then: name, text.
    pub agents: BTreeMap<String, String>,
    pub notifications: Notifications,
}

/// One entry.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "entry", rename_all = "snake_case")]
pub enum Entry {
    Created {
        spec: Box<Spec>,
    },
    /// What the machine was told. A run is read back from these.
    Happened {
        event: Box<Event>,
    },
    /// A session was started, and what it may do.
    Launched {
        run: machine::RunId,
        agent: String,
        profile: String,
        model: Option<String>,
        attempt: u32,
        /// Without the prompt.
        flags: Vec<String>,
    },
    /// For people.
    Said {
        level: Level,
        text: String,
    },
    /// Its end is written into the plan, and the report is there. Nothing follows.
    Closed {
        /// Where the report is.
        report: Option<String>,
    },
}
