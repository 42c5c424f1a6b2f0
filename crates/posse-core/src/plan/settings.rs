//! The settings of a run of a plan: the operator's options, the plan, the configuration, the defaults.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::TaskId;
use super::breaker::BreakerSettings;
use super::budget::{BacklogCap, Level, levels};
use super::config::PlanConfig;
use super::file::{BudgetMeta, GateWhen, Parallel, Plan};
use crate::engine::retry::Backoff;

/// The operator's options for one run, from the command line or else the environment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Given {
    /// The maximum number of parallel sessions. 0: as many as the configuration allows.
    pub workers: Option<u32>,
    pub no_wait: bool,
    /// Skips the checks of the whole plan.
    pub skip_after_plan: bool,
    /// The budget of the run. Zero permits no spending.
    pub cap_usd: Option<f64>,
    /// Overrides the budget of the plan.
    pub budget: BudgetMeta,
    /// The budget of the plan's item.
    pub item_limit_usd: Option<f64>,
    /// The budget of all items, if a pipeline has started the run.
    pub backlog: Option<BacklogCap>,
}

/// The settings of a run. Kept with the journal, because a replay needs the same settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// The maximum number of parallel sessions.
    pub workers: usize,
    /// Only this task.
    pub only: Option<TaskId>,
    /// Only this task and its dependents.
    pub from: Option<TaskId>,
    /// The project or the plan has commands to check work with.
    pub has_gates: bool,
    /// Some of these commands check the whole plan, when all tasks are done.
    pub after_plan: bool,
    /// The operator skips the checks of the whole plan.
    pub skip_after_plan: bool,
    /// The previous run completed the plan. Its checks are due again only after new work.
    pub was_complete: bool,
    pub timeout: Duration,
    pub backoff: Backoff,
    pub breaker: BreakerSettings,
    /// Budgets, with the spending before this run.
    pub levels: Vec<Level>,
    /// End instead of waiting for the quota to come back.
    pub no_wait: bool,
    /// The models that the agents' files request.
    pub agent_models: BTreeMap<String, String>,
    /// Resources that other runs hold, and their holders.
    pub taken: Vec<(String, String)>,
}

impl Settings {
    /// Returns the plan's settings, with defaults for the rest.
    pub fn of(plan: &Plan) -> Self {
        Self::merge(&Given::default(), plan, &PlanConfig::default())
    }

    /// Merges all settings of a run. The command line and the environment take precedence, then the plan, the
    /// configuration, and the defaults.
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

    /// For each key, the command line and the environment take precedence over the plan, the configuration and the
    /// default.
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
