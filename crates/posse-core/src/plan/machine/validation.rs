//! The verdicts of validators, and their consequences for the task.

use super::{Run, RunId, Stage};
use crate::engine::notice::NoticeKind;
use crate::plan::breaker::Counts;
use crate::plan::file::OnWarning;
use crate::plan::outcome::{FailedHow, Failure, Outcome};
use crate::plan::verdict::{Judgement, Verdict};
use crate::plan::{FailureKind, TaskId};

/// The number of retries for a validator that gave no verdict.
const VALIDATOR_RETRIES: u32 = 2;

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
        let validation = &self.plan.meta.validation;
        let is_last = failed + 1 >= validation.max_attempts;
        let findings = judgement.findings;
        match (judgement.verdict, validation.on_warning) {
            (Verdict::Pass, _) => self.next_validator(task, validator, Vec::new()),
            (Verdict::Warn, OnWarning::Accept) => self.next_validator(task, validator, findings),
            (Verdict::Warn, OnWarning::Retry) if failed > 0 => self.next_validator(task, validator, findings),
            (Verdict::Warn, OnWarning::Retry | OnWarning::Fail) | (Verdict::Fail, _) => {
                self.found_wanting(task, &findings, is_last);
            }
            (Verdict::Error, _) if errors < VALIDATOR_RETRIES => self.stage(task, again(errors + 1)),
            (Verdict::Error, _) => {
                // The work exists and its attempt counts. Only the verdict is missing.
                self.stage(task, again(0));
                let (tries, why) = (errors + 1, findings.join("; "));
                let question =
                    format!("the validator gave no verdict in {tries} tries: {why}; answer, and it is asked again");
                self.ask_person(task, question);
            }
        }
    }

    /// Continues after a validator's PASS: with the next validator or the merge. `warnings` are kept.
    fn next_validator(&mut self, task: &TaskId, validator: usize, warnings: Vec<String>) {
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

    /// Sends the work back to the agent, with the findings. Counts as an attempt, not for the breaker.
    fn found_wanting(&mut self, task: &TaskId, findings: &[String], exhausted: bool) {
        self.tell(NoticeKind::ValidationFailed, format!("task {task} was found wanting: {}", findings.join("; ")));
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
