//! What travels about runs of plans.

use jiff::Timestamp;
use posse_core::ids::RunId;
use posse_core::plan::config::PlanConfig;
use posse_core::plan::file::BudgetMeta;
use posse_core::plan::machine::StopHow;
use posse_core::rounds::config::Notifications;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::MeansIn;
use crate::plans::entry::{ConfigFile, Entry};

/// A run of a plan to begin, or to go on with if one uses the file. Configuration and environment are resolved by whoever
/// asks.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PlanIn {
    /// The plan. Absolute.
    pub file: String,
    /// The project. Absolute.
    pub directory: String,
    /// Whose sessions carry it out; `claude_code` unless given.
    #[serde(default)]
    pub provider: Option<String>,
    /// Sessions may do everything. Only if the operator said so.
    #[serde(default)]
    pub no_sandbox: bool,
    /// The branch that gathers the results; the one that is checked out unless given.
    #[serde(default)]
    pub branch: Option<String>,
    /// With `isolation: in_place`: sessions may begin in a checkout with uncommitted changes. They may not commit these.
    #[serde(default)]
    pub allow_dirty: bool,
    /// Only this task.
    #[serde(default)]
    pub only: Option<String>,
    /// This task and those behind it.
    #[serde(default)]
    pub from: Option<String>,
    /// Only the task that is next.
    #[serde(default)]
    pub single: bool,
    /// Tasks to be done again from the beginning.
    #[serde(default)]
    pub reset: Vec<String>,
    /// Sessions at once; as the plan says unless given. 0: as many as configured.
    #[serde(default)]
    pub workers: Option<u32>,
    /// End instead of waiting for the quota to come back.
    #[serde(default)]
    pub no_wait: bool,
    /// Leave out checks with `when: after_plan`. The report says so.
    #[serde(default)]
    pub skip_after_plan: bool,
    /// Everything special about this run, as the operator has said it. Who joins the run can tell by this whether it does what they
    /// want.
    #[serde(default)]
    pub wishes: Vec<String>,
    /// Start sessions though the quota was found to be used up.
    #[serde(default)]
    pub try_now: bool,
    /// What this run may spend, in US dollars.
    #[serde(default)]
    pub cap_usd: Option<f64>,
    /// Over what the plan says.
    #[serde(default)]
    pub budget: BudgetIn,
    #[serde(default)]
    #[schema(value_type = Object)]
    pub notifications: Notifications,
    /// What the user and the project have configured, as `posse plan config --json` shows it.
    #[serde(default)]
    #[schema(value_type = Object)]
    pub config: PlanConfig,
    /// The project's file of it. If it is not as in the last run of this plan, the run says so.
    #[serde(default)]
    pub config_file: Option<ConfigFile>,
    /// When the operator asked for it; now unless given. A stop file from before is not meant for this run.
    #[serde(default)]
    pub asked: Option<Timestamp>,
    #[serde(default)]
    pub means: MeansIn,
}

/// Which sessions. What is not said does not matter.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct UsageQuery {
    /// Not before this time.
    pub since: Option<Timestamp>,
    /// Of this run of a plan.
    pub run: Option<String>,
    /// Of plans of this project. Absolute.
    pub directory: Option<String>,
    /// Of this plan. Absolute, without links.
    pub file: Option<String>,
}

/// Money, in US dollars.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BudgetIn {
    /// Zero is no limit.
    #[serde(default)]
    pub ceiling_usd: Option<f64>,
    /// How much of the ceiling.
    #[serde(default)]
    pub percent: Option<f64>,
    /// What stays of it.
    #[serde(default)]
    pub reserved_usd: Option<f64>,
}

impl From<BudgetIn> for BudgetMeta {
    fn from(budget: BudgetIn) -> Self {
        Self { ceiling_usd: budget.ceiling_usd, percent: budget.percent, reserved_usd: budget.reserved_usd }
    }
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StopPlan {
    /// `after_task`: what runs may finish; or `now`.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    pub how: Option<StopHow>,
}

/// An answer to a task that asked.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskAnswerIn {
    /// The plan. Absolute.
    pub file: String,
    pub task: String,
    pub answer: String,
}

/// A task to be tried again from the beginning.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RetryIn {
    /// The plan. Absolute.
    pub file: String,
    pub task: String,
}

/// One entry of the journal of a plan's run.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PlanJournalView {
    /// Its place in the run's journal, from 1.
    pub seq: i64,
    pub at: Timestamp,
    /// What happened: `entry` names it, the rest are its facts.
    #[serde(flatten)]
    #[schema(value_type = Object)]
    pub entry: Entry,
}

/// What a session was asked and left behind. Tokens of well-known shapes are masked.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct SessionFiles {
    /// What it was asked. Nothing if its files are gone.
    pub prompt: Option<String>,
    /// Its own report, as it wrote it.
    pub report: Option<String>,
    /// The end of its standard error.
    pub stderr: String,
    /// Where its files are, the raw stream among them.
    pub directory: String,
}

#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct PlanQuery {
    /// `false`: without its tasks, which may be many.
    #[serde(default, deserialize_with = "super::super::params::lenient")]
    #[param(value_type = Option<bool>)]
    pub tasks: Option<bool>,
}

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct SessionLogQuery {
    /// Where to begin: `next` of the answer before.
    #[serde(default, deserialize_with = "super::super::params::lenient")]
    #[param(value_type = Option<u64>)]
    pub after: Option<u64>,
    /// The lines as the agent printed them, instead of what posse made of them.
    #[serde(default, deserialize_with = "super::super::params::lenient")]
    #[param(value_type = Option<bool>)]
    pub raw: Option<bool>,
}

/// Lines of a session's log.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct SessionLines {
    /// Whole lines, in order: `{"at", "event"}`, or what the agent printed. Empty if there is no more yet.
    pub lines: Vec<String>,
    /// Where the next ones begin.
    pub next: u64,
}

/// What may be removed.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CleanIn {
    /// Only what runs of this plan left behind. Absolute.
    #[serde(default)]
    pub file: Option<String>,
    /// Remove it. Otherwise it is only named.
    #[serde(default)]
    pub remove: bool,
}

/// What runs of plans and pipelines left behind.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct CleanView {
    /// What may go, or has gone.
    pub gone: Vec<CleanItem>,
    /// What stays, and why.
    pub kept: Vec<CleanItem>,
    /// What the files of runs that may go take.
    pub bytes: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct CleanItem {
    pub what: CleanWhat,
    /// A path, or a branch.
    pub name: String,
    /// The run it is of.
    #[schema(value_type = String)]
    pub run: RunId,
    /// The plan, or the item.
    pub file: String,
    pub why: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CleanWhat {
    /// Prompts, streams and reports of a run.
    Run,
    /// A work tree and its branch.
    WorkTree,
    /// Prompts and streams of those who planned and verified an item.
    Item,
}
