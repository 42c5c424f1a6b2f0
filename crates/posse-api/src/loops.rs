//! Runs of the loop.

use std::collections::BTreeMap;

use jiff::Timestamp;
use posse_core::ids::TerminalId;
use posse_core::review_loop::config::LoopConfig;
use posse_core::review_loop::{Key, Prompt, Role};
use posse_core::run::{Step, Stop};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::RunSummary;

/// A request to start a run of the loop. The client resolves the configuration and the environment.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LoopIn {
    /// As resolved: every role has its agent. See docs/loop.md.
    #[schema(value_type = Object)]
    pub config: LoopConfig,
    /// Its task and its test: `explore` and `scenario`.
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
    /// The text of a state file to continue.
    pub state: Option<String>,
    /// The environment that its agents start with. Never stored.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct LoopView {
    #[serde(flatten)]
    pub run: RunSummary,
    pub session_name: String,
    pub round: u32,
    pub max_rounds: u32,
    /// The number of the review in this phase.
    pub cycle: u32,
    pub phase: String,
    pub turn: Option<TurnView>,
    pub turns: u64,
    pub terminals: BTreeMap<Role, TerminalId>,
    /// Permissions are accepted by posse itself.
    pub auto_accept: bool,
    /// The cause of a stop: `asked`, `start`, `turn` or `alone`. `reason` says why.
    pub stop: Option<Stop>,
    pub steps: Vec<StepView>,
    pub state_file: String,
    pub config_hash: Option<String>,
}

/// A turn that is under way.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct TurnView {
    pub number: u64,
    pub key: Key,
    pub role: Role,
    pub terminal: TerminalId,
    /// The number of the attempt, from 1.
    pub attempt: u32,
    pub since: Timestamp,
    pub sent: bool,
    /// Permissions accepted in it.
    pub accepts: u32,
}

/// A step after PASS.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct StepView {
    pub step: Step,
    /// `done`, `skipped` or `failed`.
    pub outcome: String,
    pub text: String,
}
