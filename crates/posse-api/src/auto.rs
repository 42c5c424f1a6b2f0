//! Pipelines: runs over a backlog.

use std::collections::BTreeMap;

use jiff::Timestamp;
use posse_agents::headless::{Policy, Sandbox};
use posse_core::auto::memory::Standing;
use posse_core::auto::messages::{DeedId, Event};
use posse_core::auto::settings::Mode;
use posse_core::auto::{Carried, Settings};
use posse_core::backlog::{BacklogDirs, Kind, Priority, Slug};
use posse_core::engine::RunOutcome;
use posse_core::ids::RunId;
use posse_core::plan::budget::Total;
use posse_core::plan::config::PlanConfig;
use posse_core::prompts::PromptTemplates;
use posse_core::rounds::config::Notifications;
use posse_core::time::Wall;
use posse_core::turn::Level;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::{ConfigFile, HoldView, LimitView, MeansIn, PlanRunStatus};

/// A request to start a pipeline. The client resolves the configuration and the environment.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AutoIn {
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
    /// What the user and the project have configured; see docs/configuration.md.
    #[serde(default, deserialize_with = "crate::over_defaults")]
    #[schema(value_type = Object)]
    pub config: PlanConfig,
    /// The project's file of it.
    pub config_file: Option<ConfigFile>,
    /// When the operator asked for it; now unless given. A stop file from before that is not meant for this pipeline.
    pub asked: Option<Timestamp>,
    /// Whose sessions carry it out; `claude_code` unless given.
    pub provider: Option<String>,
    /// Sessions may do everything. Only if the operator said so.
    #[serde(default)]
    pub no_sandbox: bool,
    /// The branch that gathers the results; the one that is checked out unless given.
    pub branch: Option<String>,
    /// Files of the project that say how things are done there. Those that are not there are left out.
    #[serde(default)]
    pub conventions: Vec<String>,
    /// End instead of waiting for the quota to come back.
    #[serde(default)]
    pub no_wait: bool,
    /// What this pipeline may spend, in US dollars.
    pub cap_usd: Option<f64>,
    #[serde(default, deserialize_with = "crate::over_defaults")]
    #[schema(value_type = Object)]
    pub notifications: Notifications,
    #[serde(default)]
    pub means: MeansIn,
}

/// An item to be taken up again.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AutoRetryIn {
    pub item: String,
}

#[derive(Clone, Debug, Serialize, Deserialize, ToSchema, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct WhyQuery {
    /// The project. Absolute.
    pub directory: String,
    pub item: String,
}

/// One entry of a pipeline's journal.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct AutoJournalView {
    /// Its place in the journal, from 1.
    pub seq: i64,
    pub at: Timestamp,
    /// What happened: `entry` names it, the rest are its facts.
    #[serde(flatten)]
    #[schema(value_type = Object)]
    pub entry: AutoEntry,
}

/// A pipeline.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct AutoView {
    #[schema(value_type = String)]
    pub id: RunId,
    /// `running` or `over`.
    #[schema(value_type = String)]
    pub status: PlanRunStatus,
    /// The project.
    pub directory: String,
    /// `watch`, `drain` or `once`.
    #[schema(value_type = String)]
    pub mode: Mode,
    /// How it ended; the words are those of a run of a plan.
    #[schema(value_type = Option<String>)]
    pub outcome: Option<RunOutcome>,
    pub reason: Option<String>,
    /// What is done now, for each item that is worked on. Nothing: it waits for something to do.
    pub doing: Vec<DoingView>,
    /// What is in the backlog, those that can be begun first and in their order; then what this pipeline has done.
    pub items: Vec<ItemView>,
    /// No session is started before then: the quota is used up.
    pub hold: Option<HoldView>,
    /// The daemon was restarted and does not know the environment for the next session. Running `posse auto` again provides it.
    pub waits: bool,
    /// Something else is checked out, and everything waits: what to do about it.
    pub away: Option<String>,
    /// What its sessions have used.
    #[schema(value_type = Object)]
    pub used: Total,
    /// Limits on money that hold for all items, and what is spent of them, by this pipeline and by all others that count.
    pub limits: Vec<LimitView>,
    /// Whose sessions they are.
    pub provider: String,
    /// Whether sessions are confined: `on` or `off`.
    #[schema(value_type = String)]
    pub sandbox: Sandbox,
    pub created: Timestamp,
    pub changed: Timestamp,
    /// Where prompts, streams and work areas are kept.
    pub files: String,
}

#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct DoingView {
    #[schema(value_type = String)]
    pub item: Slug,
    /// `planning`, `executing`, `verifying`, …
    pub step: String,
    /// When work on the item began.
    pub since: Timestamp,
    /// The run of its plan, while that is carried out (`GET /plans/{id}`).
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
    /// The pipeline that knows it.
    #[schema(value_type = String)]
    pub run: RunId,
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
    /// What the user and the project had configured.
    pub config: PlanConfig,
    /// The project's file of it, if there was one.
    pub config_file: Option<ConfigFile>,
    /// When the operator asked for it. A stop file from before that is not meant for this pipeline.
    pub asked: Wall,
    pub settings: Settings,
    /// What the pipelines before knew of this project.
    pub carried: Carried,
    /// Items that are to be tried again.
    pub retry: Vec<Slug>,
    /// Whose sessions they are: `claude_code`, `codex`.
    pub provider: String,
    /// The program. Absolute.
    pub program: String,
    pub sandbox: Sandbox,
    /// The branch that gathers the results; the one that is checked out unless given.
    pub branch: Option<String>,
    /// The branch that was checked out when it began: items are read there, and archived there.
    pub home: Option<String>,
    /// The project's own agents, as they were written then: name, text.
    pub agents: BTreeMap<String, String>,
    /// The user's prompt templates when the pipeline began.
    pub prompts: PromptTemplates,
    /// Files of the project that say how things are done there.
    pub conventions: Vec<String>,
    pub notifications: Notifications,
}

impl AutoSpec {
    /// Commands that check the work of every task: name, command.
    pub fn gates(&self) -> Vec<(String, String)> {
        self.config.checks().into_iter().map(|gate| (gate.name, gate.command)).collect()
    }

    /// What sessions may do at most.
    pub fn policy(&self) -> Policy {
        Policy::configured(&self.config.sandbox)
    }
}

/// One entry.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "entry", rename_all = "snake_case")]
pub enum AutoEntry {
    Created {
        spec: Box<AutoSpec>,
    },
    /// What the machine was told. A pipeline is read back from these.
    Happened {
        event: Box<Event>,
    },
    /// A session was started, and what it may do.
    Launched {
        id: DeedId,
        agent: String,
        profile: String,
        model: Option<String>,
        /// Without the prompt.
        flags: Vec<String>,
    },
    /// For people.
    Said {
        level: Level,
        item: Option<Slug>,
        text: String,
    },
    /// Nothing follows.
    Closed,
}
