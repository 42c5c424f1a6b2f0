//! Where the tasks of a run are worked on: decided once, when it begins.

use posse_api::PlanSpec;
use posse_core::engine::Machine;
use posse_core::plan::Plan;
use posse_core::plan::file::Isolation;
use posse_core::plan::isolation::choose;

use super::PlanLedger;
use super::Plans;
use super::worktrees::{self, Earlier, WorktreeError, Worktrees};
use crate::environment::Environment;
use crate::git;
use crate::run::{SupervisorError, lock};

impl Plans {
    /// Finds the place, makes sure that it is fit, and enters into the spec what was found. `last` is the run before.
    pub(super) async fn find_place(
        &self,
        spec: &mut PlanSpec,
        plan: &Plan,
        last: Option<&PlanLedger>,
    ) -> Result<Worktrees, SupervisorError> {
        let unused = git::begin(&Environment::default(), spec.directory.as_ref()).await.map_err(WorktreeError::from)?;
        spec.remarks.extend(unused.iter().map(|what| format!("not used by posse's git: {what}")));
        let said = spec.config.isolation(plan);
        let obstacle = match said {
            Some(Isolation::InPlace) => None,
            _ => worktrees::obstacle(spec.directory.as_ref()).await?,
        };
        let chosen = choose(said, obstacle.as_ref(), spec.settings.workers)?;
        spec.git.isolation = chosen.0;
        spec.remarks.extend(chosen.1);
        let worktrees = self.worktrees(spec, plan).await?;
        worktrees.knows_who_commits().await?;
        if spec.git.isolation == Isolation::InPlace {
            self.nobody_is_there(&worktrees)?;
        }
        let done = |last: &PlanLedger| last.machine.outcome().is_some_and(|(outcome, _)| outcome.is_success());
        let unfinished = last.filter(|last| !done(last));
        let earlier = last.map(|last| Earlier { state: self.state_of(last.spec.id), unfinished: !done(last) });
        worktrees.may_begin(spec.git.allow_dirty, earlier.as_ref()).await?;
        // Whatever is checked out later, this is the branch of the run.
        spec.sessions.branch = Some(worktrees.branch().to_owned());
        spec.git.base = match unfinished.and_then(|last| last.spec.git.base.clone()) {
            Some(base) => Some(base),
            None => Some(worktrees.tip().await?),
        };
        Ok(worktrees)
    }

    /// Two runs in one checkout could not tell whose is what.
    fn nobody_is_there(&self, worktrees: &Worktrees) -> Result<(), SupervisorError> {
        let in_place = lock(&self.services.in_place);
        match in_place.iter().find(|(_, root)| *root == worktrees.root()) {
            None => Ok(()),
            Some((run, root)) => Err(SupervisorError::Wrong(format!(
                "run {run} of another plan works in {}; wait until it is over, or stop it",
                root.display()
            ))),
        }
    }
}
