//! What travels about pipelines.

use jiff::Timestamp;
use posse_core::auto::settings::Mode;
use posse_core::rounds::config::Notifications;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::MeansIn;
use crate::auto::entry::{Entry, GateSpec};
use crate::backlog::Shelves;

/// A pipeline to begin. Configuration and environment are resolved by whoever asks.
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
    #[serde(default)]
    pub item: Option<String>,
    /// No more than so many items.
    #[serde(default)]
    pub max_items: Option<u32>,
    /// Items to be taken up again, whatever became of them.
    #[serde(default)]
    pub retry: Vec<String>,
    /// The directories of the backlog, within the project: `defects`, `features`, `completed`, `failed`.
    #[serde(default)]
    #[schema(value_type = Object)]
    pub shelves: Shelves,
    /// Where plans go, within the project; `.posse/plans` unless given.
    #[serde(default)]
    pub plans: Option<String>,
    /// Where designs go, within the project; `docs/plans` unless given.
    #[serde(default)]
    pub designs: Option<String>,
    /// Whose sessions carry it out; `claude_code` unless given.
    #[serde(default)]
    pub provider: Option<String>,
    /// Sessions may do everything. Only if the operator said so.
    #[serde(default)]
    pub no_sandbox: bool,
    /// The branch that gathers the results; the one that is checked out unless given.
    #[serde(default)]
    pub branch: Option<String>,
    /// Commands that check the work of every task.
    #[serde(default)]
    pub gates: Vec<GateSpec>,
    /// Files of the project that say how things are done there. Those that are not there are left out.
    #[serde(default)]
    pub conventions: Vec<String>,
    /// End instead of waiting for the quota to come back.
    #[serde(default)]
    pub no_wait: bool,
    /// What this pipeline may spend, in US dollars.
    #[serde(default)]
    pub cap_usd: Option<f64>,
    /// What may be spent within the last hours, whatever the pipeline.
    #[serde(default)]
    pub window: Option<WindowIn>,
    #[serde(default)]
    pub limits: AutoLimitsIn,
    #[serde(default)]
    #[schema(value_type = Object)]
    pub notifications: Notifications,
    #[serde(default)]
    pub means: MeansIn,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WindowIn {
    pub hours: u64,
    pub limit_usd: f64,
}

/// What bounds a pipeline. What is not given is as usual.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AutoLimitsIn {
    /// How often an item may fail. 2.
    #[serde(default)]
    pub max_attempts: Option<u32>,
    /// How often an item may be verified in vain. 3.
    #[serde(default)]
    pub max_verifications: Option<u32>,
    /// How often one item may be begun within an hour. 6.
    #[serde(default)]
    pub item_starts_per_hour: Option<u32>,
    /// How many items may be begun within an hour. 30.
    #[serde(default)]
    pub items_per_hour: Option<u32>,
    /// 600.
    #[serde(default)]
    pub plan_timeout_seconds: Option<u64>,
    /// 900.
    #[serde(default)]
    pub verify_timeout_seconds: Option<u64>,
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
    pub entry: Entry,
}
