//! What travels about pipelines.

use jiff::Timestamp;
use posse_core::auto::settings::Mode;
use posse_core::plan::config::PlanConfig;
use posse_core::rounds::config::Notifications;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::MeansIn;
use crate::auto::entry::Entry;
use crate::backlog::Shelves;
use crate::plans::entry::ConfigFile;

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
    /// The directories of the backlog, within the project: `defects`, `features`, `completed`, `failed`; as configured
    /// unless given.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    pub shelves: Option<Shelves>,
    /// What the user and the project have configured; see docs/configuration.md.
    #[serde(default)]
    #[schema(value_type = Object)]
    pub config: PlanConfig,
    /// The project's file of it.
    #[serde(default)]
    pub config_file: Option<ConfigFile>,
    /// When the operator asked for it; now unless given. A stop file from before that is not meant for this pipeline.
    #[serde(default)]
    pub asked: Option<Timestamp>,
    /// Whose sessions carry it out; `claude_code` unless given.
    #[serde(default)]
    pub provider: Option<String>,
    /// Sessions may do everything. Only if the operator said so.
    #[serde(default)]
    pub no_sandbox: bool,
    /// The branch that gathers the results; the one that is checked out unless given.
    #[serde(default)]
    pub branch: Option<String>,
    /// Files of the project that say how things are done there. Those that are not there are left out.
    #[serde(default)]
    pub conventions: Vec<String>,
    /// End instead of waiting for the quota to come back.
    #[serde(default)]
    pub no_wait: bool,
    /// What this pipeline may spend, in US dollars.
    #[serde(default)]
    pub cap_usd: Option<f64>,
    #[serde(default)]
    pub limits: AutoLimitsIn,
    #[serde(default)]
    #[schema(value_type = Object)]
    pub notifications: Notifications,
    #[serde(default)]
    pub means: MeansIn,
}

/// What bounds a pipeline. What is not given is as configured.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AutoLimitsIn {
    /// Items at once. 1.
    #[serde(default)]
    pub max_parallel_items: Option<u32>,
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
