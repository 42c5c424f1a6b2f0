//! What an earlier run left done but not judged: it was stopped before the validators came. The next run goes on with that work
//! and does not do it again.

use posse_core::plan::file::Isolation;
use posse_core::plan::machine::{Part, RunId};
use posse_core::plan::{Plan, TaskId, TaskStatus};

use super::areas::Areas;
use super::entry::Spec;
use super::ledger::Ledger;
use super::{PlanError, Plans};

impl Plans {
    /// Makes the work areas of such tasks this run's too. A task whose area is gone is done again, as if it had not been tried.
    /// To be cut off here harms nobody: what the earlier run knows of its areas stays.
    pub(super) fn adopt(&self, areas: &Areas, spec: &mut Spec, last: Option<&Ledger>) -> Result<(), PlanError> {
        if spec.git.isolation == Isolation::InPlace {
            return Ok(());
        }
        let (plan, _) = Plan::read(&spec.file, &spec.text).map_err(PlanError::Invalid)?;
        let due = plan.tasks().filter(|task| plan.validates(task)).map(|task| task.id.clone());
        let due: Vec<TaskId> = due.filter(|task| spec.state.status(task) == TaskStatus::Completed).collect();
        for task in due {
            let adopted = match (last, spec.starts.get(&task)) {
                (Some(last), Some(&start)) => {
                    let run = RunId { task: task.clone(), start, part: Part::Work };
                    areas.adopt(&self.state_of(last.spec.id), &run)?
                }
                _ => false,
            };
            if !adopted {
                let record = spec.state.of(&task);
                record.status = TaskStatus::Pending;
                record.attempts = record.attempts.saturating_sub(1);
            }
        }
        Ok(())
    }
}
