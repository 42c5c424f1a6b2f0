//! Work that never got into the user's branch, of all runs that are over: how long it is kept, and its end.

use std::collections::BTreeMap;

use posse_api::{CleanItem, CleanWhat, PlanView};
use posse_core::plan::State;
use posse_core::plan::keep::Fate;

use super::Plans;
use super::worktrees::{Keeping, Kept, Sweep, has_records};
use crate::disk;
use crate::run::SupervisorError;
use crate::run::retention::ALL;

impl Plans {
    /// Lists the remains of finished runs, of one plan or of all, and what is or can be removed. If interrupted, the
    /// next call does the rest.
    pub(crate) async fn clean(
        &self,
        file: Option<&str>,
        sweep: Sweep,
    ) -> Result<Vec<(CleanItem, bool)>, SupervisorError> {
        let _cleaning = self.services.cleaning.lock().await;
        let views = self.list(ALL).await?;
        // Newest first: what has become of the tasks by now.
        let mut states: BTreeMap<&str, State> = BTreeMap::new();
        for view in &views {
            states.entry(&view.file).or_insert_with(|| view.state());
        }
        let mut works = Vec::new();
        for view in views.iter().filter(|view| file.is_none_or(|file| view.file == file)) {
            let Some(state) = states.get(view.file.as_str()).filter(|_| !view.is_active()) else { continue };
            if !disk::at(self.state_of(view.id), has_records).await {
                continue;
            }
            let work = |kept: Kept| {
                let name = format!("{} (branch {})", kept.directory.display(), kept.branch);
                let (run, file) = (view.id, view.file.clone());
                (CleanItem { what: CleanWhat::WorkTree, name, run, file, why: kept.why }, kept.fate == Fate::Goes)
            };
            match self.left_by(view, state, sweep).await {
                Ok(kept) => works.extend(kept.into_iter().map(work)),
                // The project is gone, or on a disk that is not there: another time.
                Err(error) => tracing::debug!(run = %view.id, "what it left cannot be looked at: {error}"),
            }
        }
        Ok(works)
    }

    /// Called when the daemon starts and when a run is over. Errors are only logged.
    pub(crate) async fn clean_up(&self, file: Option<&str>) {
        match self.clean(file, Sweep::Remove).await {
            Ok(works) => {
                for (work, _) in works.iter().filter(|(_, gone)| *gone) {
                    tracing::info!(run = %work.run, "removed {}: {}", work.name, work.why);
                }
            }
            Err(error) => tracing::warn!("what old runs have left cannot be looked at: {error}"),
        }
    }

    async fn left_by(&self, view: &PlanView, state: &State, sweep: Sweep) -> Result<Vec<Kept>, SupervisorError> {
        let (ledger, _) = self.load(view.id).await?;
        let spec = &ledger.spec;
        let worktrees = self.worktrees(spec, ledger.machine.plan()).await?;
        let keeping = Keeping { state, keep: spec.config.git.keep_failed, now: crate::now() };
        Ok(worktrees.clean(&keeping, sweep).await?)
    }
}
