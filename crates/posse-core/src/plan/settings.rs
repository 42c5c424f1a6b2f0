//! What a run of a plan goes by: the plan's own words, else the defaults.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::budget::Level;
use super::file::{GateWhen, Parallel, Plan};
use super::retry::Backoff;
use super::select::DEFAULT_WORKERS;
use super::{TaskId, breaker};

/// How long a session may take if nobody says.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(15 * 60);

/// Kept with the journal: a run is the same again only under the same settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// Sessions at once.
    pub workers: usize,
    /// Only this task.
    pub only: Option<TaskId>,
    /// This task and those behind it.
    pub from: Option<TaskId>,
    /// There are commands to check work with.
    pub has_gates: bool,
    /// Of these, some that look at the plan as a whole, when all is done.
    #[serde(default)]
    pub after_plan: bool,
    pub timeout: Duration,
    pub backoff: Backoff,
    pub breaker: breaker::Settings,
    /// Limits on money, with what was spent before this run.
    pub levels: Vec<Level>,
    /// End instead of waiting for the quota to come back.
    pub no_wait: bool,
    /// The model that an agent's file asks for.
    pub agent_models: BTreeMap<String, String>,
    /// Resources that other runs hold, and who.
    pub taken: Vec<(String, String)>,
}

impl Settings {
    /// What the plan says, and the defaults for the rest.
    pub fn of(plan: &Plan) -> Self {
        let meta = &plan.meta;
        let (backoff, breaker) = (Backoff::default(), breaker::Settings::default());
        Self {
            workers: match meta.parallel {
                None | Some(Parallel::Off) => 1,
                Some(Parallel::On) => DEFAULT_WORKERS,
                Some(Parallel::Workers(n)) => usize::try_from(n).unwrap_or(DEFAULT_WORKERS),
            },
            only: None,
            from: None,
            has_gates: !meta.gates.is_empty(),
            after_plan: meta.gates.iter().any(|gate| gate.when == GateWhen::AfterPlan),
            timeout: meta.timeout.unwrap_or(DEFAULT_TIMEOUT),
            backoff: Backoff {
                base: meta.backoff_base.unwrap_or(backoff.base),
                max: meta.backoff_max.unwrap_or(backoff.max),
            },
            breaker: breaker::Settings {
                threshold: meta.breaker_threshold.unwrap_or(breaker.threshold),
                reset: meta.breaker_reset.unwrap_or(breaker.reset),
                ..breaker
            },
            levels: Vec::new(),
            no_wait: false,
            agent_models: BTreeMap::new(),
            taken: Vec::new(),
        }
    }
}
