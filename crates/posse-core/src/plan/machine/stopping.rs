//! Stopping a run: sessions finish or are ended. An ended session costs no attempt.

use super::{Effect, Run, RunId, Stage};
use crate::engine::StopHow;
use crate::plan::breaker::Counts;
use crate::plan::{TaskId, TaskStatus};

impl Run {
    pub(super) fn stop_requested(&mut self, how: StopHow) {
        self.progress.request_stop(how);
        if how == StopHow::AfterTask {
            return;
        }
        // This also applies to checks that would start later.
        if !self.progress.outstanding().contains(&Effect::EndChecks) {
            self.progress.request(Effect::EndChecks);
        }
        let running: Vec<RunId> = self
            .progress
            .outstanding()
            .iter()
            .filter_map(|effect| match effect {
                Effect::StartSession { run, .. } => Some(run.clone()),
                _ => None,
            })
            .collect();
        running.into_iter().for_each(|run| self.progress.request(Effect::EndSession { run }));
    }

    /// The result of the checks is unknown, so the attempt does not count. Work that was validated before is validated again.
    pub(super) fn checks_stopped(&mut self, task: &TaskId) {
        match self.state.status(task) {
            TaskStatus::Completed => self.stage(task, Stage::UNJUDGED),
            _ => self.refund(task, Counts::Nothing),
        }
    }
}
