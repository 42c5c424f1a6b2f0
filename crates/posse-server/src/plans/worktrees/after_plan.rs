//! Commands that check the plan as a whole, on what the branch has become: in the scratch work tree or, where sessions work in
//! the user's checkout, there.

use std::fmt::Display;
use std::path::Path;

use posse_core::plan::file::{Gate, Isolation};
use posse_core::plan::gates::{GateVerdict, compare};
use posse_core::plan::machine::{GateFailure, PlanCheck};

use super::gates::{Base, Place};
use super::{Gates, Result, WorktreeError, Worktrees};
use crate::disk::{self, Disk};

/// Stands for the files before the first session in the user's checkout. What was red then cannot be found out later.
pub(super) const BEFORE: &str = "before";

/// A check that could not be made has not passed.
pub(crate) fn not_made(gate: &Gate, why: &impl Display) -> PlanCheck {
    let (gate, message) = (gate.name.clone(), format!("it could not be run: {why}"));
    let failure = GateFailure { gate: gate.clone(), message, output: String::new() };
    PlanCheck { gate, verdict: GateVerdict::Red(failure) }
}

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
        let before = self.said(BEFORE, gate).await?;
        let run = self.checking(|| self.run(gate, gates, Place::Worktree(self.root()))).await?;
        Ok(compare(before.as_ref(), &run))
    }

    /// Takes over what an earlier run of the plan, which this run continues, has found before its first session.
    pub(super) async fn inherit_results(&self, earlier: &Path) -> Result<()> {
        let own = self.state.join("gates");
        let copy = move |disk: &Disk, earlier: &Path| {
            for found in disk.read_dir(earlier).into_iter().flatten().flatten() {
                if found.file_name().to_string_lossy().starts_with(BEFORE) {
                    disk.copy(&found.path(), &own.join(found.file_name())).map_err(WorktreeError::write(&own))?;
                }
            }
            Ok(())
        };
        disk::at(earlier.join("gates"), copy).await
    }
}
