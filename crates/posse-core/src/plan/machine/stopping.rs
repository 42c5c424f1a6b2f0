//! A run that is to stop: what runs is let finish, or ended. What was ended costs nothing.

use super::{Effect, Run, RunId, Stage, StopHow};
use crate::plan::breaker::Counts;
use crate::plan::{TaskId, TaskStatus};
use crate::time::Wall;

impl Run {
    pub(super) fn stop_requested(&mut self, how: StopHow) {
        self.stop = self.stop.max(Some(how));
        if how == StopHow::AfterTask {
            return;
        }
        // It holds for the rest of the run: also for those that would be begun later.
        if !self.outstanding.contains(&Effect::EndChecks) {
            self.effects.push(Effect::EndChecks);
        }
        let running: Vec<RunId> = self
            .outstanding
            .iter()
            .filter_map(|effect| match effect {
                Effect::StartSession { run, .. } => Some(run.clone()),
                _ => None,
            })
            .collect();
        self.effects.extend(running.into_iter().map(|run| Effect::EndSession { run }));
    }

    /// Nobody knows whether the work is good: it is as if it had not been tried. What was done and validated before counts as
    /// done, and is validated again.
    pub(super) fn checks_stopped(&mut self, task: &TaskId, now: Wall) {
        match self.state.status(task) {
            TaskStatus::Completed => {
                self.stage(task, Stage::Validation { validator: 0, errors: 0, asked: false });
            }
            _ => self.refund(task, Counts::Nothing, now),
        }
    }
}
