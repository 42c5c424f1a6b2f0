//! Commands that look at the plan as a whole, on what the branch has become. On the scratch work tree; or, where sessions work in the
//! user's checkout, there.

use std::path::PathBuf;

use posse_core::plan::file::{Gate, GateWhen, Isolation};
use posse_core::plan::gates::{GateRun, GateVerdict, compare};
use posse_core::plan::machine::{GateFailure, PlanCheck};

use super::gates::{Base, Place};
use super::{Gates, Stopped, WorktreeError, Worktrees, record};

impl Worktrees {
    #[cfg(test)]
    pub(crate) async fn check_plan(&self, base: Option<&str>, gates: &Gates) -> Vec<PlanCheck> {
        self.check_plan_unless_stopped(base, gates).await.expect("nobody stops it")
    }

    /// All of them, one after the other. `base`: the commit that the plan began with. A check that we could not make is red. An
    /// error is that they were stopped.
    pub(crate) async fn check_plan_unless_stopped(
        &self,
        base: Option<&str>,
        gates: &Gates,
    ) -> Result<Vec<PlanCheck>, Stopped> {
        let mut checks = Vec::new();
        for gate in gates.commands.iter().filter(|gate| gate.when == GateWhen::AfterPlan) {
            let said = match self.isolation {
                Isolation::Worktree => self.check_branch(base, gate, gates).await,
                Isolation::InPlace => self.check_checkout(gate, gates).await,
            };
            let verdict = match said {
                Ok(verdict) => verdict,
                Err(WorktreeError::Stopped(stopped)) => return Err(stopped),
                Err(error) => {
                    let message = format!("it could not be run: {error}");
                    GateVerdict::Red(GateFailure { gate: gate.name.clone(), message, output: String::new() })
                }
            };
            checks.push(PlanCheck { gate: gate.name.clone(), verdict });
        }
        Ok(checks)
    }

    async fn check_branch(&self, base: Option<&str>, gate: &Gate, gates: &Gates) -> Result<GateVerdict, WorktreeError> {
        let tip = self.tip().await?;
        let tree = self.tree_of(&tip).await?;
        // Of a branch that was rewritten nobody knows what was red before.
        let base = match base {
            Some(base) if self.has(&tip, base).await? => Base::Commit(base),
            _ => Base::Seen(""),
        };
        self.verdict(&tree, base, gate, gates, Place::Scratch(&tip)).await
    }

    async fn check_checkout(&self, gate: &Gate, gates: &Gates) -> Result<GateVerdict, WorktreeError> {
        let before = self.plan_base().await?.unwrap_or_default();
        let before = before.iter().find(|(command, _)| *command == gate.command).map(|(_, run)| run);
        let directory = self.root.clone();
        let run = self.checking(|| self.run(gate, gates, Place::Worktree(&directory))).await?;
        Ok(compare(before, &run))
    }

    fn plan_base_path(&self) -> PathBuf {
        self.state.join("plan-base.json")
    }

    /// What the commands said before the first session.
    async fn plan_base(&self) -> Result<Option<Vec<(String, GateRun)>>, WorktreeError> {
        record::read(&self.plan_base_path()).await
    }

    /// Runs them in the user's checkout before anything is done in it: later nobody can tell any more what was red before.
    pub(super) async fn look_at_plan_before(&self, gates: &Gates) -> Result<(), WorktreeError> {
        let of_plan = || gates.commands.iter().filter(|gate| gate.when == GateWhen::AfterPlan);
        if of_plan().next().is_none() || self.plan_base().await?.is_some() {
            return Ok(());
        }
        let mut said = Vec::new();
        for gate in of_plan() {
            let directory = self.root.clone();
            let run = self.checking(|| self.run(gate, gates, Place::Worktree(&directory))).await?;
            said.push((gate.command.clone(), run));
        }
        record::write(self.plan_base_path(), &said).await
    }

    /// A run that goes on with the plan of an earlier one compares with what that one began with.
    pub(super) async fn inherit_plan_base(&self, earlier: &std::path::Path) -> Result<(), WorktreeError> {
        let Some(said) = record::read::<Vec<(String, GateRun)>>(&earlier.join("plan-base.json")).await? else {
            return Ok(());
        };
        record::write(self.plan_base_path(), &said).await
    }
}
