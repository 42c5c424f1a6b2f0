//! Runs of the loop.

use std::collections::BTreeMap;

use jiff::Timestamp;
use posse_core::ids::{RunId, TerminalId};
use posse_core::rounds::config::LoopConfig;
use posse_core::rounds::{Key, Prompt, Role};
use posse_core::run::{Entry, RunStatus, Step, Stop};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::lenient;

/// A request to start a run of the loop. The client resolves the configuration and the environment.
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
    pub zone: Option<String>,
    /// SHA-256 of the configuration file the operator named.
    pub config_hash: Option<String>,
    /// The text of a state file to go on from.
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
    pub auto_accept: Option<bool>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StopRun {
    /// For the journal.
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
pub struct LoopJournalView {
    /// Its place in the run's journal, from 1.
    pub seq: i64,
    pub at: Timestamp,
    /// What happened: `entry` names it, the rest are its facts.
    #[serde(flatten)]
    #[schema(value_type = Object)]
    pub entry: Entry,
}

/// A run of the loop.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct RunView {
    #[schema(value_type = String)]
    pub id: RunId,
    /// `running`, `parked`, `stopped`, `passed` or `failed`.
    #[schema(value_type = String)]
    pub status: RunStatus,
    pub directory: String,
    pub session_name: String,
    pub round: u32,
    pub max_rounds: u32,
    /// Which review of this phase.
    pub cycle: u32,
    pub phase: String,
    /// The turn that is under way.
    pub turn: Option<TurnView>,
    /// Turns so far.
    pub turns: u64,
    /// By role.
    #[schema(value_type = BTreeMap<String, String>)]
    pub terminals: BTreeMap<Role, TerminalId>,
    /// Permissions are accepted by posse itself.
    pub auto_accept: bool,
    /// When a parked run tries again.
    pub parked_until: Option<Timestamp>,
    /// Why it stopped.
    pub stopped: Option<StoppedView>,
    /// What happened after PASS.
    pub steps: Vec<StepView>,
    pub created: Timestamp,
    pub changed: Timestamp,
    pub state_file: String,
    /// Where its answers are kept.
    pub archive: String,
    /// SHA-256 of the configuration the operator named.
    pub config_hash: Option<String>,
}

/// A turn that is under way.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct TurnView {
    pub number: u64,
    /// Which of the five turns.
    #[schema(value_type = String)]
    pub key: Key,
    #[schema(value_type = String)]
    pub role: Role,
    #[schema(value_type = String)]
    pub terminal: TerminalId,
    /// The number of the attempt, from 1.
    pub attempt: u32,
    pub since: Timestamp,
    /// Its prompt was taken.
    pub sent: bool,
    /// Permissions accepted in it.
    pub accepts: u32,
}

/// Why a run stopped.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct StoppedView {
    /// `asked`, `start`, `turn`, `alone` or `stuck`.
    #[schema(value_type = String)]
    pub stop: Stop,
    pub why: String,
}

/// What happened after PASS.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct StepView {
    /// `openspec_archive` or `git_commit`.
    #[schema(value_type = String)]
    pub step: Step,
    /// `done`, `skipped` or `failed`.
    pub outcome: String,
    pub text: String,
}
