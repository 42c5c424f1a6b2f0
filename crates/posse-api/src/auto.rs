//! Pipelines: runs over a backlog.

use std::collections::BTreeMap;

use jiff::Timestamp;
use posse_agents::headless::Sandbox;
use posse_core::auto::memory::Standing;
use posse_core::auto::messages::{Event, StepId};
use posse_core::auto::settings::Mode;
use posse_core::auto::{Carried, Settings};
use posse_core::backlog::{BacklogDirs, Kind, Priority, Slug};
use posse_core::ids::RunId;
use posse_core::prompts::PromptTemplates;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{RunEntry, RunSummary, SessionRules};

/// A request to start a pipeline. The client resolves the configuration and the environment.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BacklogIn {
    /// The project. Absolute.
    pub directory: String,
    /// `watch`: until it is stopped; `drain`: until nothing is left to begin; `once`: one item.
    #[serde(default)]
    pub mode: Mode,
    pub item: Option<String>,
    pub max_items: Option<u32>,
    /// Items to try again, even if they failed or wait for a person.
    #[serde(default)]
    pub retry: Vec<String>,
    /// The directories of the backlog, within the project: `defects`, `features`, `completed`, `failed`; as configured
    /// unless given.
    pub shelves: Option<BacklogDirs>,
    #[serde(flatten)]
    pub sessions: SessionRules,
    /// Files of the project that say how things are done there. Those that are not there are left out.
    #[serde(default)]
    pub conventions: Vec<String>,
    /// End instead of waiting for the quota to come back.
    #[serde(default)]
    pub no_wait: bool,
    pub cap_usd: Option<f64>,
    /// The environment of its sessions. Never stored.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct BacklogView {
    #[serde(flatten)]
    pub run: RunSummary,
    pub mode: Mode,
    /// The items that are worked on. Empty if the pipeline waits for something to do.
    pub doing: Vec<DoingView>,
    /// The items of the backlog, in the order of work; then the items that this pipeline has finished.
    pub items: Vec<ItemView>,
    /// Something else is checked out, and everything waits: what to do about it.
    pub away: Option<String>,
    pub sandbox: Sandbox,
}

#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct DoingView {
    pub item: Slug,
    /// `planning`, `executing`, `verifying`, …
    pub step: String,
    pub since: Timestamp,
    /// The run of its plan, while that is carried out (`GET /runs/{id}`).
    pub plan_run: Option<RunId>,
    pub session: Option<AutoSessionView>,
}

/// A planner or verifier that runs.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct AutoSessionView {
    pub agent: String,
    pub model: Option<String>,
    pub since: Timestamp,
    /// A short description of what the session does. Null until it has printed something.
    pub doing: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ItemView {
    pub item: Slug,
    /// Within the project. Nothing if it is not in the backlog any more.
    pub path: Option<String>,
    pub title: Option<String>,
    pub kind: Option<Kind>,
    pub priority: Option<Priority>,
    pub standing: Standing,
    pub reason: String,
    /// Attempts that failed, and verifications that found it wanting.
    pub attempts: u32,
    pub verifications_failed: u32,
    /// The cost of its sessions, in words.
    pub cost: String,
}

/// The state of an item, and the decisions that led to it.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct WhyView {
    /// The pipeline that knows it. Without one the files say what there is to say.
    pub run: Option<RunId>,
    pub item: ItemView,
    /// Every decision, oldest first.
    pub history: Vec<WhyLine>,
}

#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct WhyLine {
    pub at: Timestamp,
    pub text: String,
}

/// Everything a pipeline was begun with. Files that change later do not count: a session must not be able to change how it
/// is guarded.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AutoSpec {
    pub id: RunId,
    /// The project. Absolute, without links.
    pub directory: String,
    pub shelves: BacklogDirs,
    #[serde(flatten)]
    pub sessions: SessionRules,
    pub settings: Settings,
    /// The memory of earlier pipelines of this project.
    pub carried: Carried,
    pub retry: Vec<Slug>,
    /// The program. Absolute.
    pub program: String,
    /// The branch that was checked out when it began: items are read there, and archived there.
    pub home: Option<String>,
    /// The project's own agents, as they were written then: name, text.
    pub agents: BTreeMap<String, String>,
    /// The user's prompt templates when the pipeline began.
    pub prompts: PromptTemplates,
    /// Files of the project that say how things are done there.
    pub conventions: Vec<String>,
}

impl AutoSpec {
    /// Commands that check the work of every task: name, command.
    pub fn gates(&self) -> Vec<(String, String)> {
        self.config.checks().into_iter().map(|gate| (gate.name, gate.command)).collect()
    }
}

pub type AutoEntry = RunEntry<AutoSpec, Event, StepId>;
