//! Commands that check the plan as a whole, on what the branch has become: in the scratch work tree or, where sessions work in
//! the user's checkout, there.

use std::fmt::Display;
use std::path::Path;

use posse_core::plan::file::{Gate, Isolation};
use posse_core::plan::gates::{GateRun, GateVerdict, compare};
use posse_core::plan::machine::{GateFailure, PlanCheck};

use super::gates::{Base, Place};
use super::{Gates, Result, WorktreeError, Worktrees, record};
use crate::disk::{self, Disk};

/// The file with the results of the plan's checks before the first session in the user's checkout.
const PLAN_BASE: &str = "plan-base.json";

/// A check that could not be made has not passed.
pub(crate) fn not_made(gate: &Gate, why: &impl Display) -> PlanCheck {
    let (gate, message) = (gate.name.clone(), format!("it could not be run: {why}"));
    let failure = GateFailure { gate: gate.clone(), message, output: String::new() };
    PlanCheck { gate, verdict: GateVerdict::Red(failure) }
}

/// Commands and their results.
type PlanBase = Vec<(String, GateRun)>;

impl Worktrees {
    /// All of them, one after the other. `base`: the commit that the plan began with. A check that we could not make is red. An
    /// error is that they were stopped.
    pub(crate) async fn check_plan(&self, base: Option<&str>, gates: &Gates) -> Result<Vec<PlanCheck>> {
        let mut checks = Vec::new();
        for gate in gates.of_plan() {
            let said = match self.isolation {
                Isolation::Worktree => self.check_branch(base, gate, gates).await,
                Isolation::InPlace => self.check_checkout(gate, gates).await,
            };
            checks.push(match said {
                Ok(verdict) => PlanCheck { gate: gate.name.clone(), verdict },
                Err(stopped @ WorktreeError::Stopped) => return Err(stopped),
                Err(error) => not_made(gate, &error),
            });
        }
        Ok(checks)
    }

    async fn check_branch(&self, base: Option<&str>, gate: &Gate, gates: &Gates) -> Result<GateVerdict> {
        let tip = self.tip().await?;
        let tree = self.tree_of(&tip).await?;
        // What was red before is unknown if the branch was rewritten.
        let base = match base {
            Some(base) if self.has(&tip, base).await? => Base::Commit(base),
            _ => Base::Seen(""),
        };
        self.verdict(&tree, base, gate, gates, Place::Scratch(&tip)).await
    }

    async fn check_checkout(&self, gate: &Gate, gates: &Gates) -> Result<GateVerdict> {
        let before = disk::at(self.state.join(PLAN_BASE), record::read::<PlanBase>).await?.unwrap_or_default();
        let before = before.iter().find(|(command, _)| *command == gate.command).map(|(_, run)| run);
        let run = self.checking(|| self.run(gate, gates, Place::Worktree(self.root()))).await?;
        Ok(compare(before, &run))
    }

    /// Runs the checks of the plan in the user's checkout before the first session: what was red before cannot be found out later.
    pub(super) async fn look_at_plan_before(&self, gates: &Gates) -> Result<()> {
        let file = self.state.join(PLAN_BASE);
        if gates.of_plan().next().is_none() || disk::at(&file, Disk::exists).await {
            return Ok(());
        }
        let mut said = PlanBase::new();
        for gate in gates.of_plan() {
            let run = self.checking(|| self.run(gate, gates, Place::Worktree(self.root()))).await?;
            said.push((gate.command.clone(), run));
        }
        disk::at(file, move |disk, file| record::write(disk, file, &said, true)).await
    }

    /// Takes over the results from before an earlier run of the plan, which this run continues.
    pub(super) async fn inherit_plan_base(&self, earlier: &Path) -> Result<()> {
        let file = self.state.join(PLAN_BASE);
        let copy = move |disk: &Disk, earlier: &Path| match record::read::<PlanBase>(disk, earlier)? {
            Some(said) => record::write(disk, &file, &said, true),
            None => Ok(()),
        };
        disk::at(earlier.join(PLAN_BASE), copy).await
    }
}
