//! What can go: work trees whose work is merged and in which nothing else is; and, when its time is over, what failed attempts of
//! tasks left that are done all the same (`posse_core::plan::keep`). Everything else is kept, and named.
//!
//! Everything here may be cut off at any moment and asked for again: the note goes last.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use posse_core::plan::keep::{Attempt, Fate, fate};
use posse_core::plan::machine::RunId;
use posse_core::plan::names::CommitWords;
use posse_core::plan::{State, TaskStatus};
use posse_core::time::Wall;

use super::record::WorktreeRecord;
use super::{TRASH, TaskWorktree, WorktreeError, Worktrees, text, work_of};
use crate::disk::{self, Disk};
use crate::git::{self, GitError, WorkTree};

/// A work tree that stays, for a person to look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kept {
    pub directory: PathBuf,
    pub branch: String,
    pub why: String,
    /// What becomes of it later, if that was asked.
    pub fate: Option<Fate>,
}

/// What is known of the plan, and for how long work is kept that is not merged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keeping<'a> {
    /// As the newest run of the plan knows it.
    pub state: &'a State,
    pub keep: Duration,
    pub now: Wall,
}

impl Keeping<'_> {
    /// Whether the next run needs to know what was done in the user's checkout: git does not tell.
    fn waits(&self, record: &WorktreeRecord) -> Option<Why> {
        let status =
            record.run.as_ref().filter(|_| record.in_place.is_some()).map(|run| self.state.status(&run.task))?;
        matches!(status, TaskStatus::Completed | TaskStatus::Suspended).then_some(Why::Unfinished)
    }
}

/// Why a work tree is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Why {
    NotMerged,
    /// Something of the user's that was not committed when a session began in their checkout.
    Saved,
    /// What was done in the user's checkout is not judged, or not committed.
    Unfinished,
    Uncommitted(String),
    /// Only a person can tell.
    Odd(String),
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Why::NotMerged => f.write_str("its work is not merged"),
            Why::Saved => f.write_str("what was not committed when it began"),
            Why::Unfinished => f.write_str("its task waits for a validator, or for you"),
            Why::Uncommitted(path) => write!(f, "it has changes that are not committed: {path}"),
            Why::Odd(text) => f.write_str(text),
        }
    }
}

/// What is done about what may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sweep {
    /// Nothing; only to be told.
    Look,
    Remove,
}

impl Worktrees {
    /// Removes what is done with. What these sessions use stays.
    pub(crate) async fn tidy(&self, in_use: &BTreeSet<RunId>) -> Result<Vec<Kept>, WorktreeError> {
        self.sweep(in_use, None, Sweep::Remove).await
    }

    /// What is there of a run that is over, and what becomes of it. What is told of with `Fate::Goes` is gone, or may go.
    pub(crate) async fn clean(&self, keeping: &Keeping<'_>, sweep: Sweep) -> Result<Vec<Kept>, WorktreeError> {
        self.sweep(&BTreeSet::new(), Some(keeping), sweep).await
    }

    async fn sweep(
        &self,
        in_use: &BTreeSet<RunId>,
        keeping: Option<&Keeping<'_>>,
        sweep: Sweep,
    ) -> Result<Vec<Kept>, WorktreeError> {
        let in_use: BTreeSet<String> = in_use.iter().map(|run| work_of(run).to_string()).collect();
        let tip = self.tip().await?;
        let mut kept = Vec::new();
        for (file, record) in self.records().await? {
            if file.file_stem().is_some_and(|name| in_use.contains(name.to_string_lossy().as_ref())) {
                continue;
            }
            let _list = self.list.lock().await;
            // A merged work tree may have been removed while this sweep waited for the lock.
            if !disk::at(&file, Disk::exists).await {
                continue;
            }
            let found = |why: String, fate| Kept {
                directory: record.directory.clone(),
                branch: record.in_place.as_ref().map_or(&*record.branch, |start| start.saved()).to_owned(),
                why,
                fate,
            };
            // Before it is looked at: what comes on top meanwhile is not removed.
            let held = self.held(&record, &tip).await?;
            let waits = || keeping.and_then(|keeping| keeping.waits(&record));
            let why = self.why_kept(&record, &held, &tip).await?.or_else(waits);
            let fate = match (&why, keeping) {
                (Some(why), Some(keeping)) => Some(self.fate(&record, why, keeping, sweep).await?),
                (None, Some(_)) => Some(Fate::Goes),
                (_, None) => None,
            };
            if let Some(why) = why.as_ref().filter(|_| fate != Some(Fate::Goes)) {
                let later = fate.map(|fate| format!("; {fate}")).unwrap_or_default();
                kept.push(found(format!("{why}{later}"), fate));
                continue;
            }
            if sweep == Sweep::Remove {
                match self.remove(&record, held.last.as_deref()).await {
                    Ok(()) => forget(file).await?,
                    Err(WorktreeError::Git(error @ GitError::Failed { .. })) => {
                        kept.push(found(error.to_string(), Some(Fate::Needed).filter(|_| keeping.is_some())));
                        continue;
                    }
                    Err(error) => return Err(error),
                }
            }
            if keeping.is_some() {
                kept.push(found(why.map_or("it is merged".into(), |why| why.to_string()), fate));
            }
        }
        let scratch = self.scratch_directory();
        if sweep == Sweep::Remove && in_use.is_empty() && disk::at(&scratch, Disk::exists).await {
            let _scratch = self.scratch.lock().await;
            // By force: nobody ever worked there, and commands always leave something.
            git::write_files(&self.root, &["worktree", "remove", "--force", "--", text(&scratch)?]).await?;
        }
        Ok(kept)
    }

    /// Removes the work tree of a session whose work is merged, while others may be at work. What is kept all the same is said.
    pub(crate) async fn done_with(&self, run: &RunId) -> Result<Option<Kept>, WorktreeError> {
        let _list = self.list.lock().await;
        // Work trees in the user's checkout are swept at the end of the run, when no session works there.
        let Some(record) = self.record(run).await?.filter(|record| record.in_place.is_none()) else { return Ok(None) };
        let tip = self.tip().await?;
        let held = self.held(&record, &tip).await?;
        let (tree, why) = self.why_needed(&record, &held, &tip).await?;
        let mut refused = None;
        if why.is_none() {
            // Whether all of it is committed, git looks itself before it removes it. Only if it is not we look what.
            match self.remove(&record, held.last.as_deref()).await {
                Ok(()) => return forget(self.record_path(run)).await.map(|()| None),
                Err(error) => refused = Some(error),
            }
        }
        match (uncommitted(tree.as_ref()).await?.or(why), refused) {
            (None, Some(error)) => Err(error),
            (why, _) => {
                let why = why.map(|why| why.to_string());
                Ok(why.map(|why| Kept { directory: record.directory, branch: record.branch, why, fate: None }))
            }
        }
    }

    async fn why_kept(&self, record: &WorktreeRecord, held: &Held, tip: &str) -> Result<Option<Why>, WorktreeError> {
        if record.in_place.is_some() {
            return Ok((!held.merged).then_some(Why::Saved));
        }
        let (tree, why) = self.why_needed(record, held, tip).await?;
        Ok(uncommitted(tree.as_ref()).await?.or(why))
    }

    /// Why a work tree is kept whatever its files are like, and its work tree, if it is one.
    async fn why_needed(
        &self,
        record: &WorktreeRecord,
        held: &Held,
        tip: &str,
    ) -> Result<(Option<WorkTree>, Option<Why>), WorktreeError> {
        let odd = |text: &str| Ok((None, Some(Why::Odd(text.to_owned()))));
        let not_merged = (!held.merged).then_some(Why::NotMerged);
        if !disk::at(record.directory.join(".git"), Disk::is_file).await {
            return match disk::at(&record.directory, Disk::exists).await {
                true => odd("it is not a work area any more, but something is there"),
                false => Ok((None, not_merged)),
            };
        }
        let Some(tree) = self.tree_in(&record.directory).await? else {
            return odd("git does not know it any more");
        };
        if let Some(what) = tree.under_way().await {
            return odd(&format!("{what} is under way in it"));
        }
        // The session may have gone to a branch of its own, or to none.
        let here = held.checked_out
            || match &tree.head().await? {
                Some(head) => self.has(tip, head).await? || self.has(&record.kept_at(), head).await.unwrap_or(false),
                None => true,
            };
        if !here {
            return odd("what is checked out in it is not merged");
        }
        Ok((Some(tree), not_merged))
    }

    /// The ref that holds the work of a work tree.
    async fn held(&self, record: &WorktreeRecord, tip: &str) -> Result<Held, WorktreeError> {
        let name = record.kept_at();
        // There is nothing that could be lost.
        let Some(last) = self.home.last_of(&name).await? else {
            return Ok(Held { last: None, merged: true, checked_out: false });
        };
        let checked_out = match self.home.beside(&record.directory).await {
            Some(tree) => tree.branch().await?.as_ref() == Some(&record.branch),
            None => false,
        };
        Ok(Held { merged: self.has(tip, &last).await?, last: Some(last), checked_out })
    }

    /// What becomes of work that is not merged. What is not committed is, before its time is over; then it begins anew.
    async fn fate(
        &self,
        record: &WorktreeRecord,
        why: &Why,
        keeping: &Keeping<'_>,
        sweep: Sweep,
    ) -> Result<Fate, WorktreeError> {
        let (Some(run), false) = (&record.run, matches!(why, Why::Odd(_))) else { return Ok(Fate::Needed) };
        let commit = record.kept_at();
        let touched = match self.home.last_of(&commit).await?.is_some() {
            true => {
                let seconds = git::ask(&self.root, &["log", "-1", "--format=%ct", &commit, "--"]).await?;
                Wall(seconds.parse::<i64>().map_or(i64::MAX, |seconds| seconds.saturating_mul(1000)))
            }
            // Nothing was committed there.
            false => Wall(0),
        };
        let attempt = Attempt { in_use: false, touched, record: keeping.state.get(&run.task) };
        let decided = fate(&attempt, keeping.keep, keeping.now);
        if decided != Fate::Goes || !matches!(why, Why::Uncommitted(_)) {
            return Ok(decided);
        }
        if sweep == Sweep::Remove
            && let Err(error) = self.commit_before_it_goes(record, run).await
        {
            tracing::warn!("{}: {error}", record.directory.display());
            return Ok(Fate::Needed);
        }
        Ok(fate(&Attempt { touched: keeping.now, ..attempt }, keeping.keep, keeping.now))
    }

    async fn commit_before_it_goes(&self, record: &WorktreeRecord, run: &RunId) -> Result<(), WorktreeError> {
        let worktree = TaskWorktree {
            run: run.clone(),
            directory: record.directory.clone(),
            branch: record.branch.clone(),
            base: record.base.clone(),
        };
        let words = CommitWords {
            plan: self.plan_slug.clone(),
            task: run.task.clone(),
            task_name: "what was left uncommitted".into(),
            run: run.to_string(),
            attempt: run.start,
        };
        self.commit_in_worktree(&worktree, &words).await.map(drop)
    }

    /// Looks once more whether the directory is clean; git looks whether this is still the last commit.
    async fn remove(&self, record: &WorktreeRecord, last: Option<&str>) -> Result<(), WorktreeError> {
        if record.in_place.is_none() {
            self.remove_tree(&record.directory).await?;
        }
        if let Some(last) = last {
            git::ask(&self.root, &["update-ref", "-d", &record.kept_at(), last]).await?;
        }
        Ok(())
    }

    async fn remove_tree(&self, directory: &Path) -> Result<(), WorktreeError> {
        let known = self.home.beside(directory).await;
        let tree = match &known {
            Some(tree) => Some(tree.clone()),
            None if disk::at(directory, Disk::exists).await => self.tree_in(directory).await?,
            None => None,
        };
        if let Some(why) = uncommitted(tree.as_ref()).await? {
            return Err(GitError::Failed { command: "worktree".into(), words: why.to_string() }.into());
        }
        if let (Some(tree), Some(name)) = (known, directory.file_name()) {
            return Ok(tree.remove(self.state.join(TRASH).join(name)).await?);
        }
        // Git may have a record of it though it is gone. By force, because git would look by a git of its own whether it is
        // clean, which obeys what a session wrote.
        if self.home.recorded().await?.iter().any(|(root, _)| root == directory) {
            git::write_files(&self.root, &["worktree", "remove", "--force", "--", text(directory)?]).await?;
        }
        Ok(())
    }
}

async fn uncommitted(tree: Option<&WorkTree>) -> Result<Option<Why>, WorktreeError> {
    let Some(tree) = tree else { return Ok(None) };
    Ok(tree.status().await?.first().map(|change| Why::Uncommitted(change.path.to_string())))
}

/// The ref that holds the work of a work tree.
struct Held {
    /// Its last commit.
    last: Option<String>,
    /// All of it is in the branch that gathers the results.
    merged: bool,
    /// It is what is checked out in the work tree. If that is not known, it is not.
    checked_out: bool,
}

/// The end of a note. Somebody else may have been here too.
async fn forget(file: PathBuf) -> Result<(), WorktreeError> {
    let removed = disk::at(&file, Disk::remove_file_if_exists).await;
    removed.map_err(|error| WorktreeError::Write { path: file, error })
}

impl WorktreeRecord {
    /// The ref that holds the work.
    fn kept_at(&self) -> String {
        match &self.in_place {
            Some(start) => start.saved().to_owned(),
            None => format!("refs/heads/{}", self.branch),
        }
    }
}
