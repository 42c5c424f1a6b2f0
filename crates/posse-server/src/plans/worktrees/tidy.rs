//! Removes work trees whose work is merged and in which nothing else is; and, after a while, what failed attempts left of tasks
//! that are done all the same (`posse_core::plan::keep`). Everything else is kept, and reported.
//!
//! Any removal may be cut off and repeated: the record goes last.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use posse_core::plan::keep::{Fate, fate};
use posse_core::plan::machine::RunId;
use posse_core::plan::names::commit_message;
use posse_core::plan::{State, TaskStatus};
use posse_core::time::Wall;

use super::record::WorktreeRecord;
use super::{Result, TRASH, WorktreeError, Worktrees, text};
use crate::disk::{self, Disk};
use crate::git::{GitError, WorkTree};

/// A work tree that stays, for a person to look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kept {
    pub directory: PathBuf,
    pub branch: String,
    pub why: String,
    pub fate: Fate,
}

/// What is known of the plan, and for how long work is kept that is not merged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keeping<'a> {
    /// As the newest run of the plan knows it.
    pub state: &'a State,
    pub keep: Duration,
    pub now: Wall,
}

impl<'a> Keeping<'a> {
    /// Nothing is known of the tasks: what is not merged stays.
    fn of_unknown(state: &'a State) -> Self {
        Self { state, keep: Duration::ZERO, now: crate::now() }
    }

    /// Whether the next run needs to know what was done in the user's checkout: git does not tell.
    fn waits(&self, record: &WorktreeRecord) -> Option<Why> {
        record.in_place.as_ref()?;
        let status = self.state.status(&record.worktree.run.task);
        matches!(status, TaskStatus::Completed | TaskStatus::Suspended).then_some(UNFINISHED)
    }
}

/// Why a work tree is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Why {
    /// It waits for its time, or for somebody.
    Waits(&'static str),
    Uncommitted(String),
    /// Only a person can tell.
    Odd(String),
}

/// Something of the user's that was not committed when a session began in their checkout.
const SAVED: Why = Why::Waits("what was not committed when it began");
const NOT_MERGED: Why = Why::Waits("its work is not merged");
/// What was done in the user's checkout is not judged, or not committed.
const UNFINISHED: Why = Why::Waits("its task waits for a validator, or for you");
const UNKNOWN: &str = "git does not know it any more";

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Why::Waits(text) => f.write_str(text),
            Why::Uncommitted(path) => write!(f, "it has changes that are not committed: {path}"),
            Why::Odd(text) => f.write_str(text),
        }
    }
}

/// What is done about what may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sweep {
    /// Nothing; only report.
    Look,
    Remove,
}

impl Worktrees {
    /// Removes what is merged. Returns the rest.
    pub(crate) async fn tidy(&self) -> Result<Vec<Kept>> {
        let mut kept = self.clean(&Keeping::of_unknown(&State::default()), Sweep::Remove).await?;
        kept.retain(|kept| kept.fate != Fate::Goes);
        Ok(kept)
    }

    /// The work trees in which no session works any more, and what becomes of them. Those with `Fate::Goes` are gone, or may go.
    pub(crate) async fn clean(&self, keeping: &Keeping<'_>, sweep: Sweep) -> Result<Vec<Kept>> {
        let tip = self.tip().await?;
        let mut all = Vec::new();
        for (file, record) in self.records().await? {
            let _list = self.list.lock().await;
            // A merged work tree may have been removed while this sweep waited for the lock.
            if disk::at(&file, Disk::exists).await {
                all.push(self.remove_or_keep(record, &tip, keeping, sweep).await?);
            }
        }
        let scratch = self.scratch_directory();
        if sweep == Sweep::Remove && disk::at(&scratch, Disk::exists).await {
            let _scratch = self.scratch.lock().await;
            // By force: no session works there, and commands always leave something.
            self.remove_by_git(&scratch).await?;
        }
        Ok(all)
    }

    /// Removes the work trees of sessions whose work is merged, while others may be at work. What cannot go now stays, for
    /// `clean`.
    pub(crate) async fn done_with(&self, runs: &[RunId]) -> Result<()> {
        let mut removed = Vec::new();
        for run in runs {
            let _list = self.list.lock().await;
            // The user's checkout is swept at the end of the run, when no session works there.
            let record = self.record(run).await?.filter(|record| record.in_place.is_none());
            let (Some(record), tip) = (record, self.tip().await?) else { continue };
            let last = self.home.last_of(&record.kept_at()).await?;
            let stays = match self.why_kept(&record, last.as_deref(), &tip, false).await? {
                None => self.remove_tree(&record.worktree.directory).await?,
                why => why,
            };
            match stays {
                Some(why) => tracing::debug!("the work area of {run} stays for now: {why}"),
                None => removed.push((record, last)),
            }
        }
        let _list = self.list.lock().await;
        let mut known = Vec::new();
        for (record, last) in removed {
            // `clean` may have been faster.
            if disk::at(self.record_path(&record.worktree.run), Disk::exists).await {
                known.push((record, last));
            }
        }
        self.forget(&known).await
    }

    /// Removes a work tree that may go, and its record.
    async fn remove_or_keep(
        &self,
        record: WorktreeRecord,
        tip: &str,
        keeping: &Keeping<'_>,
        sweep: Sweep,
    ) -> Result<Kept> {
        // Before it is looked at: what comes on top meanwhile is not removed.
        let last = self.home.last_of(&record.kept_at()).await?;
        let why = self.why_kept(&record, last.as_deref(), tip, true).await?;
        let mut why = why.or_else(|| keeping.waits(&record));
        let mut fate = match &why {
            Some(why) => self.fate(&record, why, keeping, sweep).await?,
            None => Fate::Goes,
        };
        if fate == Fate::Goes
            && sweep == Sweep::Remove
            && let Some(refused) = self.remove(record.clone(), last).await?
        {
            (why, fate) = (Some(refused), Fate::Needed);
        }
        let why = match why {
            None => "it is merged".into(),
            Some(why) if fate == Fate::Goes => why.to_string(),
            Some(why) => format!("{why}; {fate}"),
        };
        let branch = if record.in_place.is_some() { record.kept_at() } else { record.worktree.branch };
        Ok(Kept { directory: record.worktree.directory, branch, why, fate })
    }

    /// Why a work tree stays. `with_files`: also for what is not committed in a merged one, which `remove` finds in any case.
    async fn why_kept(
        &self,
        record: &WorktreeRecord,
        last: Option<&str>,
        tip: &str,
        with_files: bool,
    ) -> Result<Option<Why>> {
        let odd = |text: &str| Ok(Some(Why::Odd(text.to_owned())));
        let merged = match last {
            Some(last) => self.has(tip, last).await?,
            // Nothing could be lost.
            None => true,
        };
        if record.in_place.is_some() {
            return Ok((!merged).then_some(SAVED));
        }
        let not_merged = (!merged).then_some(NOT_MERGED);
        let directory = &record.worktree.directory;
        if !disk::at(directory.join(".git"), Disk::is_file).await {
            return match disk::at(directory, Disk::exists).await {
                true => odd("it is not a work area any more, but something is there"),
                false => Ok(not_merged),
            };
        }
        let Some(tree) = self.tree_in(directory).await? else {
            return odd(UNKNOWN);
        };
        if let Some(what) = tree.under_way().await {
            return odd(&format!("{what} is under way in it"));
        }
        // The session may have gone to a branch of its own, or to none.
        if let Some(head) = tree.head().await?
            && !self.has(last.unwrap_or(tip), &head).await?
            && !self.has(tip, &head).await?
        {
            return odd("what is checked out in it is not merged");
        }
        match not_merged {
            None if !with_files => Ok(None),
            _ => Ok(uncommitted(&tree).await?.or(not_merged)),
        }
    }

    /// What becomes of work that is not merged. What is not committed is, before its time is over; then it begins anew.
    async fn fate(&self, record: &WorktreeRecord, why: &Why, keeping: &Keeping<'_>, sweep: Sweep) -> Result<Fate> {
        if matches!(why, Why::Odd(_)) {
            return Ok(Fate::Needed);
        }
        let commit = record.kept_at();
        let touched = match self.home.last_of(&commit).await?.is_some() {
            true => {
                let seconds = self.home.ask(&["log", "-1", "--format=%ct", &commit, "--"]).await?;
                Wall(seconds.parse::<i64>().map_or(i64::MAX, |seconds| seconds.saturating_mul(1000)))
            }
            // Nothing was committed there.
            false => Wall(0),
        };
        let task = &record.worktree.run.task;
        let decided = fate(touched, keeping.state.get(task), keeping.keep, keeping.now);
        if decided != Fate::Goes || !matches!(why, Why::Uncommitted(_)) {
            return Ok(decided);
        }
        if sweep == Sweep::Remove {
            let (name, run) = ("what was left uncommitted", record.worktree.run.to_string());
            let message = commit_message(&self.plan_slug, (task, name), &run, record.worktree.run.start);
            if let Err(error) = self.commit_in_worktree(&record.worktree, &message).await {
                tracing::warn!("{}: {error}", record.worktree.directory.display());
                return Ok(Fate::Needed);
            }
        }
        Ok(fate(keeping.now, keeping.state.get(task), keeping.keep, keeping.now))
    }

    /// Removes a work tree, its ref and its record, unless it has changed. Returns why it stays.
    async fn remove(&self, record: WorktreeRecord, last: Option<String>) -> Result<Option<Why>> {
        let remove = async {
            if record.in_place.is_none()
                && let Some(why) = self.remove_tree(&record.worktree.directory).await?
            {
                return Ok(Some(why));
            }
            self.forget(&[(record, last)]).await.map(|()| None)
        };
        match remove.await {
            Err(WorktreeError::Git(error @ GitError::Failed { .. })) => Ok(Some(Why::Odd(error.to_string()))),
            stays => stays,
        }
    }

    /// Removes the refs and the records of work trees that are gone.
    async fn forget(&self, removed: &[(WorktreeRecord, Option<String>)]) -> Result<()> {
        // git compares each ref with this commit.
        let delete = |(record, last): &(WorktreeRecord, Option<String>)| {
            Some(format!("delete {} {}\n", record.kept_at(), last.as_ref()?))
        };
        let refs: String = removed.iter().filter_map(delete).collect();
        if !refs.is_empty() {
            self.home.tell(&["update-ref", "--stdin"], refs.as_bytes()).await?;
        }
        for (record, _) in removed {
            let file = self.record_path(&record.worktree.run);
            // Another call may have removed it too.
            disk::at(&file, Disk::remove_file_if_exists).await.map_err(WorktreeError::write(&file))?;
        }
        Ok(())
    }

    async fn remove_tree(&self, directory: &Path) -> Result<Option<Why>> {
        if !disk::at(directory, Disk::exists).await {
            if self.home.recorded().await?.iter().any(|(root, _)| root == directory) {
                self.remove_by_git(directory).await?;
            }
            return Ok(None);
        }
        let Some(tree) = self.tree_in(directory).await? else { return Ok(Some(Why::Odd(UNKNOWN.into()))) };
        if let Some(why) = uncommitted(&tree).await? {
            return Ok(Some(why));
        }
        tree.remove(self.state.join(TRASH).join(directory.file_name().unwrap_or_default())).await?;
        Ok(None)
    }

    async fn remove_by_git(&self, directory: &Path) -> Result<()> {
        Ok(self.home.write_files(&["worktree", "remove", "--force", "--", text(directory)?]).await?)
    }
}

async fn uncommitted(tree: &WorkTree) -> Result<Option<Why>> {
    Ok(tree.status().await?.first().map(|change| Why::Uncommitted(change.path.to_string())))
}
