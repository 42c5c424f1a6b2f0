//! What validators say of a task's work, and what follows for the task.

use super::{Effect, Notice, Run, RunId, Stage};
use crate::plan::breaker::Counts;
use crate::plan::outcome::{FailedHow, Failure, Outcome};
use crate::plan::verdict::{AfterVerdict, Judgement, Verdict, follow};
use crate::plan::{FailureKind, TaskId};

impl Run {
    pub(super) fn validator_ended(&mut self, run: &RunId, judgement: Judgement, outcome: Outcome) {
        let task = &run.task;
        let Some(&Stage::Validation { validator, errors, .. }) = self.stages.get(task) else { return };
        let again = |errors| Stage::Validation { validator, errors, asked: false };
        let judgement = match outcome {
            Outcome::Interrupted => return self.stage(task, again(errors)),
            Outcome::Limited(hold) => {
                self.hold_begins(hold);
                return self.stage(task, again(errors));
            }
            Outcome::Done(_) => judgement,
            Outcome::Infra(failure) | Outcome::Failed(failure) => {
                Judgement { verdict: Verdict::Error, findings: vec![failure.message] }
            }
            Outcome::Suspended { question, .. } => {
                Judgement { verdict: Verdict::Error, findings: vec![format!("it asks: {question}")] }
            }
        };
        let failed = self.state.get(task).map_or(0, |record| record.validation_attempts);
        match follow(judgement, &self.plan.meta.validation, failed, errors) {
            AfterVerdict::Pass(findings) => self.next_validator(task, validator, findings),
            AfterVerdict::Fail { findings, is_last } => self.found_wanting(task, &findings, is_last),
            AfterVerdict::AskAgain => self.stage(task, again(errors + 1)),
            AfterVerdict::Suspend(why) => {
                // The work is there and its attempt counts. Only the verdict is missing.
                self.stage(task, again(0));
                self.ask_person(task, why);
            }
        }
    }

    pub(super) fn next_validator(&mut self, task: &TaskId, validator: usize, warnings: Vec<String>) {
        let record = self.state.of(task);
        if validator == 0 {
            record.validation_findings.clear();
        }
        record.validation_findings.extend(warnings);
        if validator + 1 < self.plan.meta.validation.validators.len() {
            self.stage(task, Stage::Validation { validator: validator + 1, errors: 0, asked: false });
        } else {
            self.begin_merge(task);
        }
    }

    pub(super) fn found_wanting(&mut self, task: &TaskId, findings: &[String], exhausted: bool) {
        self.progress.request(Effect::Notify(Notice::ValidationFailed(task.clone(), findings.to_vec())));
        let record = self.state.of(task);
        record.validation_attempts += 1;
        record.validation_findings = findings.to_vec();
        let last = exhausted || record.attempts >= self.attempts_of(task);
        let message = format!("validation failed: {}", findings.join("; "));
        if last {
            self.give_up(task, FailureKind::ValidationExhausted, message);
        } else {
            self.fail(task, Failure::new(FailedHow::Validation, message), Counts::Nothing);
        }
    }
}
