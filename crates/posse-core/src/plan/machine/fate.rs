//! What becomes of a task that was not done: tried again, after a pause; asked about; given up.

use std::time::Duration;

use super::{Effect, Memory, Notice, Run, time};
use crate::plan::breaker::Counts;
use crate::plan::outcome::Failure;
use crate::plan::retry::{After, Tries, after_failure, after_infra};
use crate::plan::select::attempts_of;
use crate::plan::{FailureKind, Record, TaskId, TaskStatus};
use crate::time::Wall;

impl Run {
    /// Back to pending, as if it had not been tried.
    pub(super) fn refund(&mut self, task: &TaskId, counts: Counts, now: Wall) {
        self.breaker.ended(counts, now, &self.settings.breaker);
        let record = self.state.of(task);
        record.status = TaskStatus::Pending;
        record.attempts = record.attempts.saturating_sub(1);
        self.flights.remove(task);
    }

    pub(super) fn suspend(&mut self, task: &TaskId, question: String, now: Wall) {
        self.refund(task, Counts::Nothing, now);
        self.ask_person(task, question, now);
    }

    pub(super) fn ask_person(&mut self, task: &TaskId, question: String, now: Wall) {
        self.effects.push(Effect::Notify(Notice::Question(task.clone(), question.clone())));
        let record = self.state.of(task);
        record.status = TaskStatus::Suspended;
        record.suspended_at = Some(time(now));
        record.question = Some(question);
        record.answer = None;
    }

    pub(super) fn infra(&mut self, task: &TaskId, failure: Failure, now: Wall) {
        self.refund(task, Counts::Failure, now);
        self.memory(task).infra += 1;
        match after_infra(&failure, &self.tries(task), &self.settings.backoff) {
            After::Again(pause) => self.rest(task, failure, pause, now),
            After::GiveUp { kind, message } => self.give_up(task, kind, message),
        }
    }

    pub(super) fn fail(&mut self, task: &TaskId, failure: Failure, counts: Counts, now: Wall) {
        self.breaker.ended(counts, now, &self.settings.breaker);
        self.memory(task).infra = 0;
        let after = after_failure(&failure, &self.tries(task), &self.settings.backoff);
        self.memory(task).denied.clone_from(&failure.denials);
        match after {
            After::Again(pause) => {
                self.state.of(task).status = TaskStatus::Pending;
                self.flights.remove(task);
                self.rest(task, failure, pause, now);
            }
            After::GiveUp { kind, message } => self.give_up(task, kind, message),
        }
    }

    fn tries(&self, task: &TaskId) -> Tries<'_> {
        let memory = self.memory.get(task);
        Tries {
            attempts: self.state.get(task).map_or(0, |record| record.attempts),
            max_attempts: self.attempts_of(task),
            infra: memory.map_or(0, |memory| memory.infra),
            denied_before: memory.map_or(&[], |memory| &memory.denied),
        }
    }

    pub(super) fn attempts_of(&self, task: &TaskId) -> u32 {
        self.plan.task(task.as_str()).map_or(1, |task| attempts_of(&self.plan, task))
    }

    pub(super) fn rest(&mut self, task: &TaskId, failure: Failure, pause: Duration, now: Wall) {
        self.state.of(task).last_error = Some(failure.message.clone());
        self.memory(task).before = Some(failure);
        let pause = i64::try_from(pause.as_millis()).unwrap_or(i64::MAX);
        self.resting.insert(task.clone(), Wall(now.0.saturating_add(pause)));
    }

    pub(super) fn give_up(&mut self, task: &TaskId, kind: FailureKind, message: String) {
        let record = self.state.of(task);
        record.status = TaskStatus::Failed;
        record.failure_kind = Some(kind);
        record.last_error = Some(message.clone());
        self.flights.remove(task);
        self.effects.push(Effect::Notify(Notice::TaskFailed(task.clone(), message)));
    }

    pub(super) fn retry(&mut self, task: &TaskId) {
        // What waits for a person, or for a validator to be started, is given up; what somebody works on is not.
        let busy = self.flights.get(task).is_some_and(|flight| !flight.stage.waits());
        if busy || self.plan.task(task.as_str()).is_none() {
            return;
        }
        self.flights.remove(task);
        let starts = self.memory.get(task).map_or(0, |memory| memory.starts);
        *self.state.of(task) = Record::default();
        self.memory.insert(task.clone(), Memory { starts, ..Memory::default() });
        self.resting.remove(task);
    }
}
