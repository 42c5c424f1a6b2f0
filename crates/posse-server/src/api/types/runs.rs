//! What travels about runs.

use std::collections::BTreeMap;

use jiff::Timestamp;
use posse_core::rounds::Prompt;
use posse_core::rounds::config::LoopConfig;
use posse_core::run::Entry;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::super::params::lenient;

/// A run of the loop to begin. Configuration and environment are resolved by whoever asks.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RunIn {
    /// As resolved: every role has its agent. See docs/loop.md.
    #[schema(value_type = Object)]
    pub config: LoopConfig,
    #[schema(value_type = PromptView)]
    pub prompt: Prompt,
    /// The project. Absolute.
    pub directory: String,
    /// The name of its archive folder below `.tmp`.
    pub stamp: String,
    /// Absolute.
    pub state_file: String,
    /// The operator has confirmed that the directory is trusted.
    #[serde(default)]
    pub trusted: bool,
    /// The operator's time zone, by its IANA name.
    #[serde(default)]
    pub zone: Option<String>,
    /// SHA-256 of the configuration file the operator named.
    #[serde(default)]
    pub config_hash: Option<String>,
    /// The text of a state file to go on from.
    #[serde(default)]
    pub state: Option<String>,
    #[serde(default)]
    pub means: MeansIn,
}

/// What to do, and how to see that it is done.
#[derive(ToSchema)]
#[allow(dead_code)] // Only for the description; `Prompt` travels.
pub struct PromptView {
    pub explore: String,
    pub scenario: String,
}

/// What starting its agents takes. Never stored.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MeansIn {
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
}

/// What starting its agents takes, never stored; and whether there is no hurry.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ResumeIn {
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// A run that is parked stays so: nobody has asked for it, only the connection was lost.
    #[serde(default)]
    pub patient: bool,
    /// Whether permissions are accepted from now on. As the run is configured unless given.
    #[serde(default)]
    pub auto_accept: Option<bool>,
}

impl ResumeIn {
    pub fn new(means: &MeansIn, patient: bool, auto_accept: Option<bool>) -> Self {
        Self { environment: means.environment.clone(), patient, auto_accept }
    }
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StopRun {
    /// For the journal.
    #[serde(default)]
    pub why: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct RunsQuery {
    /// At most so many; 100 unless given.
    #[serde(default, deserialize_with = "lenient")]
    pub limit: Option<u32>,
}

#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct JournalQuery {
    /// Only what came after this entry.
    #[serde(default, deserialize_with = "lenient")]
    pub after: Option<i64>,
}

/// One entry of a run's journal.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct JournalView {
    /// Its place in the run's journal, from 1.
    pub seq: i64,
    pub at: Timestamp,
    /// What happened: `entry` names it, the rest are its facts.
    #[serde(flatten)]
    #[schema(value_type = Object)]
    pub entry: Entry,
}
