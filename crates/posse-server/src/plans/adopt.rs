//! What an earlier run left done but not judged, or not merged: it was stopped before the validators came, or something of the
//! user's was in the way. The next run continues that work and does not do it again.

use posse_api::PlanSpec;
use posse_core::plan::file::Isolation;
use posse_core::plan::machine::{Part, RunId, resume};
use posse_core::plan::{Plan, TaskId};

use super::PlanLedger;
use super::Plans;
use super::worktrees::{WorktreeError, Worktrees};
use crate::disk::{self, Disk};
use crate::run::SupervisorError;

impl Plans {
    /// Makes the work trees of such tasks this run's too. A task whose work tree is gone is done again, as if it had not been tried.
    /// May be interrupted: the records of the earlier run stay.
    pub(super) async fn adopt(
        &self,
        worktrees: &Worktrees,
        spec: &mut PlanSpec,
        plan: Plan,
        last: Option<&PlanLedger>,
    ) -> Result<(), SupervisorError> {
        let same_branch = last.is_some_and(|last| last.spec.branch == spec.branch);
        let in_place = spec.git.isolation == Isolation::InPlace;
        let adoption =
            last.filter(|_| same_branch).map(|last| worktrees.adoption(self.state_of(last.spec.id), in_place));
        let last = last.map(|last| last.machine.clone());
        let starts = spec.starts.clone();
        let mut state = spec.state.clone();
        let resume = move |disk: &Disk| {
            let there = |task: &TaskId| match (&adoption, starts.get(task)) {
                (Some(adoption), Some(&start)) => {
                    adoption(disk, &RunId { task: task.clone(), start, part: Part::Work })
                }
                _ => Ok(false),
            };
            let resumed = resume(&plan, &mut state, last.as_ref(), there)?;
            Ok::<_, WorktreeError>((state, resumed))
        };
        let (state, resumed) = disk::run(resume).await?;
        spec.state = state;
        spec.left = resumed.left;
        spec.remarks.extend(resumed.gone.iter().map(|task| {
            format!("task {task} was done, but its work is not there for this run any more; it is done again")
        }));
        Ok(())
    }
}
