//! Decides whether a task that was not done is retried after a pause, suspended with a question, or failed.

use std::time::Duration;

use super::{Memory, Run, time};
use crate::engine::notice::NoticeKind;
use crate::plan::breaker::Counts;
use crate::plan::outcome::{FailedHow, Failure, denial_advice, denied_again};
use crate::plan::select::attempts_of;
use crate::plan::{FailureKind, Record, TaskId, TaskStatus};

impl Run {
    /// Makes a task pending again, at no cost.
    pub(super) fn refund(&mut self, task: &TaskId, counts: Counts) {
        self.breaker.ended(counts, self.progress.now, &self.settings.breaker);
        let record = self.state.of(task);
        record.status = TaskStatus::Pending;
        record.attempts = record.attempts.saturating_sub(1);
        self.stages.remove(task);
    }

    pub(super) fn suspend(&mut self, task: &TaskId, question: String) {
        self.refund(task, Counts::Nothing);
        self.ask_person(task, question);
    }

    pub(super) fn ask_person(&mut self, task: &TaskId, question: String) {
        let hint = format!("`posse run answer {} {task} TEXT` answers", self.file);
        self.tell(NoticeKind::Question, format!("task {task} asks: {question}\n{hint}"));
        let record = self.state.of(task);
        record.status = TaskStatus::Suspended;
        record.suspended_at = Some(time(self.progress.now));
        record.question = Some(question);
        record.answer = None;
    }

    pub(super) fn infra(&mut self, task: &TaskId, failure: Failure) {
        self.refund(task, Counts::Failure);
        let memory = self.memory(task);
        memory.infra += 1;
        let infra = memory.infra;
        match self.settings.backoff.infra_pause(infra) {
            Some(pause) => self.rest(task, failure, pause),
            None => self.give_up(task, FailureKind::Config, format!("{infra} times in a row: {}", failure.message)),
        }
    }

    pub(super) fn fail(&mut self, task: &TaskId, failure: Failure, counts: Counts) {
        self.breaker.ended(counts, self.progress.now, &self.settings.breaker);
        let attempts = self.state.get(task).map_or(0, |record| record.attempts);
        let memory = self.memory(task);
        memory.infra = 0;
        let denied_before = std::mem::replace(&mut memory.denied, failure.denials.clone());
        if let Some(denial) = denied_again(&denied_before, &failure.denials) {
            self.give_up(task, FailureKind::Denied, denial_advice(denial));
        } else if failure.kind == FailedHow::UsersWork {
            // Another attempt would build on the problem, and only a person can fix it.
            self.give_up(task, FailureKind::Config, failure.message);
        } else if attempts >= self.attempts_of(task) {
            self.give_up(task, FailureKind::AttemptsExhausted, failure.message);
        } else {
            self.state.of(task).status = TaskStatus::Pending;
            self.stages.remove(task);
            self.rest(task, failure, self.settings.backoff.pause(attempts));
        }
    }

    pub(super) fn attempts_of(&self, task: &TaskId) -> u32 {
        self.plan.task(task.as_str()).map_or(1, |task| attempts_of(&self.plan, task))
    }

    pub(super) fn rest(&mut self, task: &TaskId, failure: Failure, pause: Duration) {
        self.state.of(task).last_error = Some(failure.message.clone());
        self.memory(task).before = Some(failure);
        self.resting.insert(task.clone(), self.progress.now.after(pause));
    }

    pub(super) fn give_up(&mut self, task: &TaskId, kind: FailureKind, message: String) {
        self.tell(NoticeKind::TaskFailed, format!("task {task} failed: {message}"));
        let record = self.state.of(task);
        record.status = TaskStatus::Failed;
        record.failure_kind = Some(kind);
        record.last_error = Some(message);
        self.stages.remove(task);
    }

    pub(super) fn retry(&mut self, task: &TaskId) {
        // A task that waits for a person or a validator starts again; one with a session does not.
        let busy = self.stages.get(task).is_some_and(|stage| !stage.waits());
        if busy || self.plan.task(task.as_str()).is_none() {
            return;
        }
        self.stages.remove(task);
        let starts = self.memory.get(task).map_or(0, |memory| memory.starts);
        *self.state.of(task) = Record::default();
        self.memory.insert(task.clone(), Memory { starts, ..Memory::default() });
        self.resting.remove(task);
    }
}
