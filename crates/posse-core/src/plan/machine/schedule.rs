//! Decides what starts next, and when a run is over.

use std::collections::BTreeSet;

use super::{Effect, Launch, Part, Run, RunId, Stage, time};
use crate::engine::RunOutcome;
use crate::engine::notice::NoticeKind;
use crate::plan::breaker::BreakerGate;
use crate::plan::budget::exhausted;
use crate::plan::escalate::{model, validator_model};
use crate::plan::select::{Limits, Selection, Standing, Why, next, select};
use crate::plan::{Plan, State, TaskId, TaskStatus};

impl Run {
    pub(super) fn schedule(&mut self) {
        let now = self.progress.now;
        self.resting.retain(|_, until| *until > now);
        if self.quota.lift_if_over(now) {
            self.tell(NoticeKind::HoldEnds, "sessions may be started again".into());
        }
        let selection = self.selection(next);
        if self.idle() && self.over(selection.standing) {
            return;
        }
        // Checks of the whole plan must not see a session's half-done work.
        if self.checks_plan() || self.may_not_start() {
            return;
        }
        let probing = self.breaker.gate(now, &self.settings.breaker) == BreakerGate::Probe;
        let most = if probing { 1 } else { usize::MAX };
        for task in selection.validate.iter().take(most) {
            self.ask_validator(task);
        }
        for task in selection.start.iter().take(most.saturating_sub(selection.validate.len())) {
            self.start(task);
        }
    }

    fn idle(&self) -> bool {
        self.stages.values().all(Stage::waits)
    }

    /// Checks stop, breaker, quota and budgets, in this order. If one of them forbids starts and nothing is in
    /// progress, the run ends.
    fn may_not_start(&mut self) -> bool {
        let gate = self.breaker.gate(self.progress.now, &self.settings.breaker);
        let (outcome, reason) = if self.progress.stop.is_some() {
            (RunOutcome::Stopped, "stopped on request".to_owned())
        } else if gate == BreakerGate::Broken {
            let reason = format!("sessions failed one after the other, {} times over", self.breaker.trips());
            (RunOutcome::CircuitOpen, reason)
        } else if matches!(gate, BreakerGate::Wait(_)) {
            return true;
        } else if let Some(hold) = self.quota.hold() {
            if !self.settings.no_wait {
                return true;
            }
            (RunOutcome::RateLimited, hold.reason.clone())
        } else if let Some(reason) = exhausted(&self.settings.levels) {
            (RunOutcome::BudgetExhausted, reason)
        } else {
            return false;
        };
        if self.idle() {
            self.finish(outcome, reason);
        }
        true
    }

    fn selection(&self, choose: impl Fn(&Plan, &State, &Limits<'_>) -> Selection) -> Selection {
        let is_asked = |stage: &Stage| !matches!(stage, Stage::Validation { asked: false, .. });
        let asked = self.stages.iter().filter(|(_, stage)| is_asked(stage)).map(|(task, _)| task);
        let validating = asked.filter(|task| self.state.status(task) == TaskStatus::Completed).cloned().collect();
        choose(&self.plan, &self.state, &self.limits(&self.resting.keys().cloned().collect(), &validating))
    }

    fn limits<'a>(&'a self, resting: &'a BTreeSet<TaskId>, validating: &'a BTreeSet<TaskId>) -> Limits<'a> {
        Limits {
            workers: self.settings.workers,
            only: self.settings.only.as_ref(),
            from: self.settings.from.as_ref(),
            resting,
            validating,
            taken: &self.settings.taken,
        }
    }

    /// Ends the run if its plan is over. This has priority: a complete plan does not count as stopped.
    fn over(&mut self, standing: Standing) -> bool {
        if standing == Standing::Going {
            return false;
        }
        let blocked = self.selection(select).blocked;
        let chains = || blocked.iter().map(|(id, why)| format!("{id}: {why}")).collect::<Vec<_>>().join("; ");
        match standing {
            Standing::Going => {}
            Standing::Complete => self.complete(),
            Standing::Failed => self.finish(RunOutcome::Failed, self.failed_tasks()),
            Standing::Suspended => self.finish(RunOutcome::Suspended, chains()),
            Standing::Deadlocked => self.finish(RunOutcome::Deadlocked, chains()),
            Standing::Partial => {
                let asked = self.asked();
                let waiting = blocked.iter().any(|(id, why)| asked.contains(id) && matches!(why, Why::Needs(_)));
                let failed = asked.iter().any(|id| self.state.status(id) == TaskStatus::Failed);
                match (waiting, failed) {
                    (_, true) => self.finish(RunOutcome::Failed, self.failed_tasks()),
                    (true, false) => self.finish(RunOutcome::Deadlocked, chains()),
                    (false, false) => self.finish(RunOutcome::Verified, "what was asked for is done".into()),
                }
            }
        }
        true
    }

    /// Returns the tasks that this run was asked to do.
    pub(super) fn asked(&self) -> BTreeSet<TaskId> {
        let ids = self.plan.tasks().map(|task| &task.id);
        let behind = ids.skip_while(|id| self.settings.from.as_ref().is_some_and(|from| from != *id));
        behind.filter(|id| self.settings.only.as_ref().is_none_or(|only| only == *id)).cloned().collect()
    }

    pub(super) fn has_warnings(&self) -> bool {
        self.state
            .iter()
            .any(|(_, record)| record.status == TaskStatus::Verified && !record.validation_findings.is_empty())
    }

    fn failed_tasks(&self) -> String {
        let failed = self.plan.tasks().filter(|task| self.state.status(&task.id) == TaskStatus::Failed);
        let told = failed.map(|task| {
            let error = self.state.get(&task.id).and_then(|record| record.last_error.as_deref()).unwrap_or("failed");
            format!("{}: {error}", task.id)
        });
        told.collect::<Vec<_>>().join("; ")
    }

    pub(super) fn finish(&mut self, outcome: RunOutcome, reason: String) {
        self.left_in_file = self.state.statuses().map(|(task, status)| (task.clone(), status)).collect();
        self.progress.finish(outcome, reason, Effect::Finish);
    }

    fn start(&mut self, task: &TaskId) {
        self.breaker.started();
        self.work_begins();
        self.memory(task).starts += 1;
        let record = self.state.of(task);
        record.status = TaskStatus::InProgress;
        record.attempts += 1;
        record.last_attempt = Some(time(self.progress.now));
        self.stages.insert(task.clone(), Stage::Area);
        let run = self.session(task, Part::Work);
        self.progress.request(Effect::MakeArea { run });
    }

    pub(super) fn launch_work(&mut self, run: RunId) {
        let Some(task) = self.plan.task(run.task.as_str()) else { return };
        let agent = task.agent().to_owned();
        let group = task.parallel_group.clone();
        let timeout = task.timeout.unwrap_or(self.settings.timeout);
        let attempt = self.state.get(&run.task).map_or(1, |record| record.attempts.max(1));
        let judges = matches!(agent.as_str(), "planner" | "design-judge");
        let pinned = self.plan.meta.judge_model.as_ref().filter(|_| judges).or(task.model.as_ref());
        let wanted = pinned.or_else(|| self.settings.agent_models.get(&agent)).map(String::as_str);
        let model = model(wanted, attempt - 1, &self.plan.meta.escalation);
        let siblings = self.stages.keys().filter(|id| {
            **id != run.task
                && group.is_some()
                && self.plan.task(id.as_str()).is_some_and(|task| task.parallel_group == group)
        });
        let siblings = siblings.cloned().collect();
        self.state.of(&run.task).model_used.clone_from(&model);
        let memory = self.memory(&run.task);
        let launch = Launch {
            agent,
            model,
            timeout,
            attempt,
            before: memory.before.clone(),
            siblings,
            rejected: std::mem::take(&mut memory.rejected),
        };
        self.progress.request(Effect::StartSession { run, launch });
    }

    fn ask_validator(&mut self, task: &TaskId) {
        let memory = self.memory(task);
        memory.asks += 1;
        let time = memory.asks;
        // Missing for a task that an earlier run left without its validation.
        let stage = self.stages.entry(task.clone()).or_insert(Stage::UNJUDGED);
        let Stage::Validation { validator, asked, .. } = stage else { return };
        *asked = true;
        let validator = *validator;
        let run = self.session(task, Part::Validation { validator, time });
        let Some(agent) = self.plan.meta.validation.validators.get(validator).cloned() else { return };
        let work = self.state.get(task).and_then(|record| record.model_used.clone());
        let wanted = self.settings.agent_models.get(&agent).map(String::as_str);
        let launch = Launch {
            model: validator_model(wanted, work.as_deref(), &self.plan.meta.escalation),
            agent,
            timeout: self.settings.timeout,
            attempt: self.state.get(task).map_or(1, |record| record.attempts.max(1)),
            before: None,
            siblings: Vec::new(),
            rejected: Vec::new(),
        };
        self.progress.request(Effect::StartSession { run, launch });
    }
}
