//! Pipelines: runs over a backlog.

use std::collections::BTreeMap;

use jiff::Timestamp;
use posse_agents::headless::Sandbox;
use posse_core::auto::memory::Standing;
use posse_core::auto::settings::Mode;
use posse_core::auto::words::{DeedId, Event};
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
    #[schema(value_type = String)]
    pub mode: Mode,
    /// Only this item.
    pub item: Option<String>,
    /// No more than so many items.
    pub max_items: Option<u32>,
    /// Items to try again, even if they failed or wait for a person.
    #[serde(default)]
    pub retry: Vec<String>,
    /// The directories of the backlog, within the project: `defects`, `features`, `completed`, `failed`; as configured
    /// unless given.
    #[schema(value_type = Option<Object>)]
    pub shelves: Option<BacklogDirs>,
    #[serde(flatten)]
    pub sessions: SessionRules,
    /// Files of the project that say how things are done there. Those that are not there are left out.
    #[serde(default)]
    pub conventions: Vec<String>,
    /// End instead of waiting for the quota to come back.
    #[serde(default)]
    pub no_wait: bool,
    /// What this pipeline may spend, in US dollars.
    pub cap_usd: Option<f64>,
    /// The environment of its sessions. Never stored.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
}

/// A pipeline.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct BacklogView {
    #[serde(flatten)]
    pub run: RunSummary,
    /// `watch`, `drain` or `once`.
    #[schema(value_type = String)]
    pub mode: Mode,
    /// What is done now, for each item that is worked on. Nothing: it waits for something to do.
    pub doing: Vec<DoingView>,
    /// What is in the backlog, those that can be begun first and in their order; then what this pipeline has done.
    pub items: Vec<ItemView>,
    /// Something else is checked out, and everything waits: what to do about it.
    pub away: Option<String>,
    /// Whether sessions are confined: `on` or `off`.
    #[schema(value_type = String)]
    pub sandbox: Sandbox,
}

#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct DoingView {
    #[schema(value_type = String)]
    pub item: Slug,
    /// `planning`, `executing`, `verifying`, …
    pub step: String,
    /// When work on the item began.
    pub since: Timestamp,
    /// The run of its plan, while that is carried out (`GET /runs/{id}`).
    #[schema(value_type = Option<String>)]
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
    #[schema(value_type = String)]
    pub item: Slug,
    /// Within the project. Nothing if it is not in the backlog any more.
    pub path: Option<String>,
    pub title: Option<String>,
    /// `defect` or `feature`.
    #[schema(value_type = Option<String>)]
    pub kind: Option<Kind>,
    /// `critical`, `high`, `medium` or `low`.
    #[schema(value_type = Option<String>)]
    pub priority: Option<Priority>,
    /// `waiting`, `held`, `in_progress`, `parked`, `ended` or `gone`.
    #[schema(value_type = String)]
    pub standing: Standing,
    pub reason: String,
    /// Attempts that failed, and verifications that found it wanting.
    pub attempts: u32,
    pub verifications_failed: u32,
    /// What its sessions have used, in words.
    pub cost: String,
}

/// Why an item stands as it does, and how it came to that.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct WhyView {
    /// The pipeline that knows it. Without one the files say what there is to say.
    #[schema(value_type = Option<String>)]
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

/// Everything a pipeline was begun with. It goes by this and not by what files say later: a session must not be able to
/// change how it is guarded.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AutoSpec {
    pub id: RunId,
    /// The project. Absolute, without links.
    pub directory: String,
    pub shelves: BacklogDirs,
    #[serde(flatten)]
    pub sessions: SessionRules,
    pub settings: Settings,
    /// What the pipelines before knew of this project.
    pub carried: Carried,
    /// Items that are to be tried again.
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

/// An entry of the journal of a pipeline.
pub type AutoEntry = RunEntry<AutoSpec, Event, DeedId>;
