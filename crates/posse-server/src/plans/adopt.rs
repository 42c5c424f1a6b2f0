//! What earlier runs left done but not judged: a run that was stopped before the validators came. The next run goes on with that
//! work and does not do it again.

use posse_core::plan::file::Isolation;
use posse_core::plan::machine::{Part, RunId};
use posse_core::plan::{Plan, TaskId, TaskStatus};

use super::entry::Spec;
use super::{PlanError, Plans};

impl Plans {
    /// Makes the work areas of such tasks this run's too. A task whose area is gone is done again, as if it had not been tried.
    /// To be cut off here harms nobody: what the earlier run knows of its areas stays.
    pub(super) async fn adopt(&self, spec: &mut Spec) -> Result<(), PlanError> {
        let (plan, _) = Plan::read(&spec.file, &spec.text).map_err(PlanError::Invalid)?;
        let due = plan.tasks().filter(|task| plan.validates(task)).map(|task| task.id.clone());
        let due: Vec<TaskId> = due.filter(|task| spec.state.status(task) == TaskStatus::Completed).collect();
        if due.is_empty() || spec.git.isolation == Isolation::InPlace {
            return Ok(());
        }
        let views = self.list(i32::MAX as usize).await?;
        let earlier: Vec<_> = views.iter().filter(|view| view.file == spec.file).collect();
        let here = self.state_of(spec.id).join("areas");
        for task in due {
            let start = spec.starts.get(&task).copied().unwrap_or(0);
            let note = format!("{}.json", RunId { task: task.clone(), start, part: Part::Work });
            let mut there = earlier.iter().map(|view| self.state_of(view.id).join("areas").join(&note));
            let adopted = there.find(|path| path.exists()).is_some_and(|path| {
                let copied = std::fs::copy(&path, here.join(&note));
                copied.inspect_err(|error| tracing::warn!("{}: {error}", path.display())).is_ok()
            });
            if !adopted {
                let record = spec.state.of(&task);
                record.status = TaskStatus::Pending;
                record.attempts = record.attempts.saturating_sub(1);
            }
        }
        Ok(())
    }
}
