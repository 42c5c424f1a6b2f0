//! What a run of a plan goes by: what the operator says, the plan's own words, the configuration, the defaults.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::TaskId;
use super::breaker::BreakerSettings;
use super::budget::{BacklogCap, Level, levels};
use super::config::PlanConfig;
use super::file::{BudgetMeta, GateWhen, Parallel, Plan};
use crate::engine::retry::Backoff;

/// What the operator says for one run: on the command line, else in the environment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Given {
    /// Sessions at once; 0: as many as the configuration allows.
    pub workers: Option<u32>,
    pub no_wait: bool,
    /// Checks of the whole plan are left out.
    pub skip_after_plan: bool,
    /// What the run may spend. Zero is nothing.
    pub cap_usd: Option<f64>,
    /// Over what the plan says.
    pub budget: BudgetMeta,
    /// What may be spent on the item that the plan is for.
    pub item_limit_usd: Option<f64>,
    /// The same of all items, if a pipeline has begun it.
    pub backlog: Option<BacklogCap>,
}

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
    pub after_plan: bool,
    /// Which are left out, because the operator wants it.
    pub skip_after_plan: bool,
    /// The run before completed the plan. Its checks are due again only when something is done.
    pub was_complete: bool,
    pub timeout: Duration,
    pub backoff: Backoff,
    pub breaker: BreakerSettings,
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
        Self::merge(&Given::default(), plan, &PlanConfig::default())
    }

    /// Everything that is said about a run, one over the other: the command line and the environment, the plan, the
    /// configuration, the defaults.
    pub fn merge(given: &Given, plan: &Plan, config: &PlanConfig) -> Self {
        let meta = &plan.meta;
        let (backoff, gates) = (Backoff::default(), config.gates(plan));
        let workers = given.workers.or(match meta.parallel {
            None | Some(Parallel::Off) => Some(1),
            Some(Parallel::On) => None,
            Some(Parallel::Workers(n)) => Some(n),
        });
        let workers = workers.filter(|workers| *workers > 0).unwrap_or(config.task.max_parallel);
        Self {
            workers: workers.max(1) as usize,
            only: None,
            from: None,
            has_gates: !gates.is_empty(),
            after_plan: gates.iter().any(|gate| gate.when == GateWhen::AfterPlan),
            skip_after_plan: given.skip_after_plan,
            was_complete: false,
            timeout: meta.timeout.unwrap_or(config.task.timeout),
            backoff: Backoff {
                base: meta.backoff_base.unwrap_or(backoff.base),
                max: meta.backoff_max.unwrap_or(backoff.max),
            },
            breaker: BreakerSettings {
                threshold: meta.breaker_threshold.unwrap_or(config.breaker.threshold),
                reset: meta.breaker_reset.unwrap_or(config.breaker.reset),
                max_trips: config.breaker.max_trips,
            },
            levels: levels(plan, config, given),
            no_wait: given.no_wait,
            agent_models: BTreeMap::new(),
            taken: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Command line and environment over plan over configuration over default, key by key.
    #[test]
    fn who_is_heard() {
        let plan = |meta: &str| {
            let text = format!("meta: {{name: p, {meta}}}\nsections: [{{id: s, tasks: [{{id: t, name: T}}]}}]");
            Plan::read("p", &text).unwrap().0
        };
        let mut configured = PlanConfig::default();
        configured.task.timeout = Duration::from_secs(20);
        configured.task.max_parallel = 7;
        configured.breaker = BreakerSettings { threshold: 9, reset: Duration::from_secs(8), max_trips: 5 };
        let given = |workers| Given { workers, ..Given::default() };
        let (none, default) = (given(None), PlanConfig::default());
        for (name, given, meta, config, timeout, workers, threshold) in [
            ("default", &none, "", &default, 900, 1, 3),
            ("configuration", &none, "", &configured, 20, 1, 9),
            ("configured number", &none, "parallel: true", &configured, 20, 7, 9),
            ("plan", &none, "timeout_default: 40, parallel: 2, circuit_breaker_threshold: 1", &configured, 40, 2, 1),
            ("command line", &given(Some(3)), "timeout_default: 40, parallel: 2", &configured, 40, 3, 9),
            ("as configured", &given(Some(0)), "parallel: 2", &configured, 20, 7, 9),
            ("one at a time", &given(Some(1)), "parallel: 2", &configured, 20, 1, 9),
        ] {
            let settings = Settings::merge(given, &plan(meta), config);
            let found = (settings.timeout.as_secs(), settings.workers, settings.breaker.threshold);
            assert_eq!(found, (timeout, workers, threshold), "{name}");
        }
        let gates = PlanConfig { test_command: Some("make test".into()), ..PlanConfig::default() };
        assert!(!Settings::of(&plan("")).has_gates && Settings::merge(&none, &plan(""), &gates).has_gates);
    }
}
