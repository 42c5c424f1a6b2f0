//! Work that never got into the user's branch, of all runs that are over: how long it is kept, and its end.

use std::collections::BTreeMap;
use std::path::PathBuf;

use posse_api::{PlanRunStatus, PlanView};
use posse_core::ids::RunId;
use posse_core::plan::State;
use posse_core::plan::keep::Fate;
use serde::Serialize;

use super::areas::{Keeping, Kept, Sweep, has_notes};
use super::{PlanError, Plans};
use crate::{disk, git};

/// Something that a run has left behind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct KeptWork {
    pub run: RunId,
    /// The plan's file.
    pub file: String,
    pub directory: PathBuf,
    /// The branch, or the ref in full.
    pub branch: String,
    pub why: String,
    /// It is not needed any more: it may go, or is gone.
    pub goes: bool,
}

impl Plans {
    /// What runs that are over have left, of one plan or of all, and what of it may go, or is gone now. Cut off at any moment it
    /// does the rest when it is asked again.
    pub(crate) async fn clean(&self, file: Option<&str>, sweep: Sweep) -> Result<Vec<KeptWork>, PlanError> {
        let _cleaning = self.cleaning.lock().await;
        self.left_by_runs(file, sweep).await
    }

    /// When the daemon starts and when a run is over. Nobody waits for it.
    pub(crate) async fn clean_up(&self, file: Option<&str>) {
        match self.clean(file, Sweep::Remove).await {
            Ok(works) => {
                for work in works.iter().filter(|work| work.goes) {
                    tracing::info!(run = %work.run, "removed {}: {}", work.branch, work.why);
                }
            }
            Err(error) => tracing::warn!("what old runs have left cannot be looked at: {error}"),
        }
    }

    async fn left_by_runs(&self, file: Option<&str>, sweep: Sweep) -> Result<Vec<KeptWork>, PlanError> {
        let views = self.list(usize::MAX >> 1).await?;
        // Newest first: what has become of the tasks by now.
        let mut states: BTreeMap<&str, State> = BTreeMap::new();
        for view in &views {
            states.entry(&view.file).or_insert_with(|| view.state());
        }
        let mut works = Vec::new();
        for view in views.iter().filter(|view| file.is_none_or(|file| view.file == file)) {
            let over = view.status == PlanRunStatus::Over;
            let Some(state) = states.get(view.file.as_str()).filter(|_| over) else { continue };
            if !disk::at(self.state_of(view.id), has_notes).await {
                continue;
            }
            match self.left_by(view, state, sweep).await {
                Ok(kept) => works.extend(kept.into_iter().map(|kept| work(view, kept))),
                // The project is gone, or on a disk that is not there: another time.
                Err(error) => tracing::debug!(run = %view.id, "what it left cannot be looked at: {error}"),
            }
        }
        Ok(works)
    }

    async fn left_by(&self, view: &PlanView, state: &State, sweep: Sweep) -> Result<Vec<Kept>, PlanError> {
        let (ledger, _) = self.load(view.id).await?;
        let spec = &ledger.spec;
        if let Some(branch) = &spec.branch {
            // To look must not make it.
            let full = format!("refs/heads/{branch}");
            let there = git::holds(spec.directory.as_ref(), &["rev-parse", "--verify", "--quiet", &full]).await;
            if !there.map_err(super::AreaError::from)? {
                return Err(super::AreaError::BranchGone(full).into());
            }
        }
        let areas = self.areas(spec).await?;
        let keeping = Keeping { state, keep: spec.config.git.keep_failed, now: crate::now() };
        Ok(areas.clean(&keeping, sweep).await?)
    }
}

fn work(view: &PlanView, kept: Kept) -> KeptWork {
    KeptWork {
        run: view.id,
        file: view.file.clone(),
        directory: kept.directory,
        branch: kept.branch,
        why: kept.why,
        goes: kept.fate == Some(Fate::Goes),
    }
}
