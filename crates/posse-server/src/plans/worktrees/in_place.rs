//! Tasks that are worked on in the user's own checkout, one after the other. Nothing is merged: what a session commits is on the
//! user's branch at once, and what it leaves is committed there for it, by explicit paths and past the user's index.
//!
//! The checkout is never stashed, reset, cleaned or checked out over, so the work of an attempt stays there, and the next one
//! continues it. Before a session begins, everything that is not committed is kept under a ref of its own (`refs/posse/…`):
//! whatever a session does to it, nothing is lost. `posse_core::plan::checkout` decides who owns which change, and `loose.json`
//! records it; a change that neither a task nor a check is known to have left is the user's, and no session may commit it.
//!
//! What was red before a session can only be found out before it, so the checks are run then too, if these files are new to them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use posse_core::finalize::{self, Change, GitPath, Snapshot, Was};
use posse_core::plan::checkout::Loose;
use posse_core::plan::fast_forward::in_the_way;
use posse_core::plan::file::{Gate, Isolation};
use posse_core::plan::machine::{GateFailure, MergeResult, Part, RunId};
use serde::{Deserialize, Serialize};

use super::after_plan::BEFORE;
use super::gates::{Base, Place};
use super::record::WorktreeRecord;
use super::{Gates, Result, TaskWorktree, WorktreeError, Worktrees, obstacle, record};
use crate::disk::{self, Disk};
use crate::finalize::{TreeEntryKind, inspect, named, of_kind, on_disk, snapshot_of};
use crate::git::{self, WorkTree};

/// So much may be uncommitted. It is copied into the repository before every session.
const KEPT_MAX: u64 = 256 << 20;

/// How the checkout was when a session began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Start {
    /// All that was not committed.
    before: Snapshot,
    /// Of that: what the session may not commit.
    guarded: Vec<GitPath>,
    /// Of that: what earlier sessions of this task have left.
    own: Vec<GitPath>,
    /// The ref under which it is kept.
    pub(super) saved: String,
    /// The files that the checks were run on.
    files: String,
    /// The last commit when the session was over.
    end: Option<String>,
}

/// The run of this plan before.
#[derive(Clone, Debug)]
pub(crate) struct Earlier {
    pub state: PathBuf,
    /// The plan was not done then.
    pub unfinished: bool,
}

/// What a session did that it should not have done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Traces {
    /// Why its work cannot count, and what to do.
    pub trespass: Option<String>,
    /// Worth knowing for the user.
    pub notes: Vec<String>,
}

impl Worktrees {
    /// Whether tasks may be worked on in the checkout, before a run begins.
    pub(crate) async fn may_begin(&self, allow_dirty: bool, earlier: Option<&Earlier>) -> Result<()> {
        if self.isolation == Isolation::Worktree {
            return Ok(());
        }
        let (_, now, _) = self.fit().await?;
        let mut loose = match earlier {
            Some(earlier) => loose_of(&earlier.state).await?,
            None => Loose::default(),
        };
        loose.refresh(&now.dirty);
        let users = loose.users(&now.dirty);
        if !allow_dirty && !users.is_empty() {
            return Err(WorktreeError::NotClean { directory: self.root().to_owned(), files: named(&users) });
        }
        if let Some(path) = self.dirty_submodule().await? {
            return Err(WorktreeError::DirtySubmodule(path));
        }
        self.small_enough(&now).await?;
        if let Some(earlier) = earlier.filter(|earlier| earlier.unfinished) {
            self.inherit_results(&earlier.state).await?;
        }
        self.write_loose(loose).await
    }

    /// A repository within this one that has changes of its own. Git is not let into it by itself: it would obey the
    /// configuration in there.
    async fn dirty_submodule(&self) -> Result<Option<GitPath>> {
        let said = self.home.hear(&["ls-files", "--stage", "-z"]).await?;
        for path in obstacle::repositories(&said) {
            let root = on_disk(self.root(), &path);
            if disk::at(root.join(".git"), Disk::symlink_metadata).await.is_err() {
                continue;
            }
            if let Some(tree) = WorkTree::find(&root).await?.filter(|tree| tree.root == root)
                && !tree.status().await?.is_empty()
            {
                return Ok(Some(path));
            }
        }
        Ok(None)
    }

    /// The checkout, if a session can begin in it, and what is not committed there.
    async fn fit(&self) -> Result<(WorkTree, Snapshot, Vec<Change>)> {
        let tree = self.stands().await?;
        if let Some(what) = tree.under_way().await {
            return Err(WorktreeError::UnderWay { directory: tree.root.clone(), what });
        }
        let (now, changes) = self.uncommitted(&tree).await?;
        match changes.iter().find(|change| change.unmerged) {
            Some(change) => Err(WorktreeError::Conflicts(change.path.clone())),
            None => Ok((tree, now, changes)),
        }
    }

    async fn checkout(&self) -> Result<WorkTree> {
        let found = WorkTree::find(self.root()).await?.filter(|tree| tree.root == self.root());
        found.ok_or_else(|| WorktreeError::NoRepository(self.root().to_owned()))
    }

    /// The checkout, if it is on the branch that it was on.
    async fn stands(&self) -> Result<WorkTree> {
        let tree = self.checkout().await?;
        if tree.branch().await?.as_deref() != Some(self.branch()) {
            return Err(WorktreeError::OtherBranch {
                directory: self.root().to_owned(),
                branch: self.branch().to_owned(),
            });
        }
        tree.unlocked().await?;
        Ok(tree)
    }

    /// All that is not committed, but for what is posse's own; and all changes.
    async fn uncommitted(&self, tree: &WorkTree) -> Result<(Snapshot, Vec<Change>)> {
        let (mut now, changes) = snapshot_of(tree).await?;
        now.dirty.retain(|was| !self.is_ours(&was.path));
        Ok((now, changes))
    }

    fn is_ours(&self, path: &GitPath) -> bool {
        let in_state = on_disk(self.root(), path).starts_with(&self.state);
        in_state || finalize::is_ours(path) || self.plan_file.as_ref() == Some(path)
    }

    async fn small_enough(&self, now: &Snapshot) -> Result<()> {
        let files: Vec<PathBuf> = now.dirty.iter().map(|was| on_disk(self.root(), &was.path)).collect();
        let length = |disk: &Disk, file: &PathBuf| disk.symlink_metadata(file).map_or(0, |found| found.len());
        let bytes = disk::run(move |disk| files.iter().map(|file| length(disk, file)).sum()).await;
        match bytes > KEPT_MAX {
            true => Err(WorktreeError::TooMuch { directory: self.root().to_owned(), bytes }),
            false => Ok(()),
        }
    }

    async fn write_loose(&self, loose: Loose) -> Result<()> {
        disk::at(loose_in(&self.state), move |disk, file| record::write(disk, file, &loose, true)).await
    }

    /// Brings the record of who owns which change up to date with what is not committed now.
    async fn change_loose<T>(&self, change: impl FnOnce(&mut Loose, &[Was]) -> T) -> Result<(T, Snapshot)> {
        let mut loose = loose_of(&self.state).await?;
        let (now, _) = self.uncommitted(&self.checkout().await?).await?;
        let done = change(&mut loose, &now.dirty);
        self.write_loose(loose).await?;
        Ok((done, now))
    }

    /// Asked again, it looks anew: no session was there yet.
    pub(super) async fn begin_in_place(&self, run: &RunId, gates: &Gates) -> Result<TaskWorktree> {
        self.fit().await?;
        let (guarded, _) = {
            let _checkout = self.checkout.lock().await;
            let guarded = |loose: &mut Loose, dirty: &[Was]| {
                loose.refresh(dirty);
                // Before the checks: what they leave may be committed by mistake, what is the user's may not.
                loose.guarded(dirty, &run.task)
            };
            self.change_loose(guarded).await?
        };
        let files = self.files_now().await?;
        self.look_before(&files, gates.of_tasks(), gates).await?;
        self.look_before(BEFORE, gates.of_plan(), gates).await?;

        let (tree, before, changes) = self.fit().await?;
        let Some(base) = tree.head().await? else { return Err(WorktreeError::NoCommit(tree.root.clone())) };
        self.small_enough(&before).await?;
        let own = loose_of(&self.state).await?.of(&run.task);
        // No other run has this name.
        let state = self.state.file_name().unwrap_or_default().to_string_lossy();
        let saved = format!("refs/posse/{}/{state}/{run}", self.plan_slug);
        let mut record = WorktreeRecord::new(run, self.branch().to_owned(), tree.root.clone(), base.clone());
        record.in_place = Some(Start { before: before.clone(), guarded, own, saved: saved.clone(), files, end: None });
        // Not ready yet, but after a crash the ref is known to be ours.
        self.write_record(&record).await?;
        self.save(&tree, &saved, &base, &before, &changes, run).await?;
        record.ready = true;
        self.write_record(&record).await?;
        Ok(record.worktree)
    }

    /// Keeps all that is not committed, in the files and in the index, in a commit that no branch has.
    async fn save(
        &self,
        tree: &WorkTree,
        name: &str,
        base: &str,
        before: &Snapshot,
        changes: &[Change],
        run: &RunId,
    ) -> Result<()> {
        let mut commit = base.to_owned();
        if !before.dirty.is_empty() {
            let message = |what: &str| format!("posse: what was {what} when task {} began", run.task);
            let staged = tree.staged_tree().await?;
            let paths: Vec<GitPath> = before.dirty.iter().map(|was| was.path.clone()).collect();
            let files = self.tree_with(tree, &paths, changes).await?;
            let index = self.commit_tree(&staged, &[base], &message("staged")).await?;
            commit = self.commit_tree(&files, &[base, &index], &message("not committed")).await?;
        }
        self.home.ask(&["update-ref", "-m", "posse: kept safe", name, &commit]).await?;
        Ok(())
    }

    /// What is committed, with these files as they are on disk. What is in repositories of their own cannot be had.
    async fn tree_with(&self, tree: &WorkTree, paths: &[GitPath], changes: &[Change]) -> Result<String> {
        let repositories: BTreeSet<&GitPath> =
            changes.iter().filter(|change| change.repository).map(|change| &change.path).collect();
        let files = paths.iter().filter(|path| !repositories.contains(path));
        let found = inspect(self.root(), files.cloned().collect()).await;
        let draft = tree.draft().await?;
        // git reports the file, and a directory is in its place: the file is deleted.
        let deleted = of_kind(&found, TreeEntryKind::Missing).chain(of_kind(&found, TreeEntryKind::Directory));
        tree.stage(Some(&draft), of_kind(&found, TreeEntryKind::File), deleted).await?;
        Ok(tree.tree(&draft).await?)
    }

    async fn commit_tree(&self, tree: &str, parents: &[&str], message: &str) -> Result<String> {
        // By posse itself: the commit is never part of a branch.
        let mut arguments = vec!["-c", "user.name=posse", "-c", "user.email=posse@localhost", "commit-tree", tree];
        parents.iter().for_each(|parent| arguments.extend(["-p", *parent]));
        arguments.extend(["-m", message]);
        Ok(self.home.ask(&arguments).await?)
    }

    /// The files as they are, without what checks have left: so they are the same before a check and after it.
    async fn files_now(&self) -> Result<String> {
        let tree = self.stands().await?;
        let (now, changes) = self.uncommitted(&tree).await?;
        let of_checks = loose_of(&self.state).await?.of_checks();
        let paths: Vec<GitPath> =
            now.dirty.into_iter().map(|was| was.path).filter(|path| !of_checks.contains(path)).collect();
        self.tree_with(&tree, &paths, &changes).await
    }

    /// Runs checks that have no result for these files. Later failures are compared with the results.
    async fn look_before(&self, files: &str, of: impl Iterator<Item = &Gate>, gates: &Gates) -> Result<()> {
        for gate in of {
            if self.said(files, gate).await?.is_none() {
                let run = self.checking(|| self.run(gate, gates, Place::Worktree(self.root()))).await?;
                self.keep(files, gate, &run).await?;
            }
        }
        Ok(())
    }

    /// Runs a check, which may leave files behind that are no task's work.
    pub(super) async fn checking<T, F: Future<Output = Result<T>>>(&self, check: impl FnOnce() -> F) -> Result<T> {
        let _checkout = self.checkout.lock().await;
        self.change_loose(Loose::check_begins).await?;
        let done = check().await;
        self.change_loose(Loose::check_ended).await?;
        done
    }

    async fn start(&self, run: &RunId) -> Result<Start> {
        self.known_record(run).await?.in_place.ok_or_else(|| WorktreeError::NotMade(run.to_string()))
    }

    /// What a session of this work tree may not commit.
    pub(crate) async fn not_its_own(&self, worktree: &TaskWorktree) -> Result<Vec<String>> {
        match self.isolation {
            Isolation::Worktree => Ok(Vec::new()),
            Isolation::InPlace => {
                Ok(self.start(&worktree.run).await?.guarded.iter().map(ToString::to_string).collect())
            }
        }
    }

    /// Called before a validator is started: what it leaves is no task's work. A second call while it runs changes nothing.
    pub(crate) async fn validator_begins(&self) -> Result<()> {
        if self.isolation == Isolation::InPlace {
            let _checkout = self.checkout.lock().await;
            self.change_loose(Loose::check_begins).await?;
        }
        Ok(())
    }

    /// Called as soon as a session is over. Records what it left as its own, and returns what it did to the user's work.
    pub(crate) async fn session_over(&self, id: &RunId, worktree: &TaskWorktree) -> Result<Traces> {
        if self.isolation == Isolation::Worktree {
            return Ok(Traces::default());
        }
        let _checkout = self.checkout.lock().await;
        let mut record = self.known_record(id).await?;
        let Some(start) = &mut record.in_place else { return Err(WorktreeError::NotMade(id.to_string())) };
        if id.part != Part::Work {
            self.change_loose(Loose::check_ended).await?;
            return Ok(Traces::default());
        }
        let (head, tip, now) = match &start.end {
            // Asked again after a crash: what came on top since, in files and in commits, is the user's.
            Some(end) => (end.clone(), end.clone(), self.uncommitted(&self.checkout().await?).await?.0),
            None => {
                let ended =
                    |loose: &mut Loose, dirty: &[Was]| loose.session_ended(&id.task, &start.before.dirty, dirty);
                let ((), now) = self.change_loose(ended).await?;
                (self.home.ask(&["rev-parse", "--verify", "HEAD^{commit}"]).await?, self.tip().await?, now)
            }
        };
        start.end = Some(head.clone());
        let traces = match self.trespass(worktree, start, &head, &tip).await? {
            Some(text) => Traces { trespass: Some(text), notes: Vec::new() },
            None => Traces { trespass: None, notes: changed_since(start, &now).into_iter().collect() },
        };
        self.write_record(&record).await?;
        Ok(traces)
    }

    /// What it committed and must not have, or what it took away.
    async fn trespass(&self, worktree: &TaskWorktree, start: &Start, head: &str, tip: &str) -> Result<Option<String>> {
        if !self.has(tip, &worktree.base).await? {
            let error = WorktreeError::Rewritten { branch: self.branch().to_owned(), saved: start.saved.clone() };
            return Ok(Some(format!("{error}; `git log {}` shows it, and `git merge` brings it back", start.saved)));
        }
        let commits = self.home.ask(&["rev-list", head, tip, &format!("^{}", worktree.base), "--"]).await?;
        let change =
            |path| Change { path, new: false, present: true, tracked: true, repository: false, unmerged: false };
        let guarded: Vec<Change> = start.guarded.iter().cloned().map(change).collect();
        for commit in commits.lines() {
            let arguments =
                ["diff-tree", "-r", "-z", "-m", "--root", "--no-commit-id", "--name-only", "--no-renames", commit];
            let written: Vec<GitPath> = git::paths(&self.home.hear(&arguments).await?).collect();
            let taken = in_the_way(&written, &guarded, &[]);
            if let Some(first) = taken.first() {
                return Ok(Some(format!(
                    "commit {} has files that had uncommitted changes before the session began: {}. As they were then they \
                     are kept: `git show {}:{first}`. Put it right, commit your changes or put them elsewhere, then `posse \
                     run retry`",
                    &commit[..commit.len().min(10)],
                    named(&taken),
                    start.saved,
                )));
            }
        }
        Ok(None)
    }

    /// What this attempt has left uncommitted, and all changes. What was there before it is no evidence.
    async fn left_by(&self, start: &Start, tree: &WorkTree) -> Result<(Vec<GitPath>, Vec<Change>)> {
        let (now, changes) = self.uncommitted(tree).await?;
        let is_new = |was: &Was| match start.before.dirty.iter().find(|before| before.path == was.path) {
            None => true,
            Some(before) => start.own.contains(&was.path) && before.content != was.content,
        };
        let is_repository = |path: &GitPath| changes.iter().any(|change| change.repository && change.path == *path);
        let new = now.dirty.into_iter().filter(is_new).map(|was| was.path);
        let new = new.filter(|path| !is_repository(path)).collect();
        Ok((new, changes))
    }

    pub(super) async fn has_work_in_place(&self, worktree: &TaskWorktree) -> Result<bool> {
        let (start, tree) = (self.start(&worktree.run).await?, self.checkout().await?);
        if !self.left_by(&start, &tree).await?.0.is_empty() {
            return Ok(true);
        }
        let head = tree.head().await?.unwrap_or_else(|| worktree.base.clone());
        Ok(!self.commits(&worktree.base, &head).await?.is_empty())
    }

    /// The checkout, and the tree of what is committed there with what sessions of the task have left.
    pub(super) async fn files_in_place(&self, worktree: &TaskWorktree) -> Result<(WorkTree, String)> {
        let (start, tree) = (self.start(&worktree.run).await?, self.checkout().await?);
        let (mut left, changes) = self.left_by(&start, &tree).await?;
        left.extend(start.own);
        let files = self.tree_with(&tree, &left, &changes).await?;
        Ok((tree, files))
    }

    /// Commits what sessions of the task have left, by explicit paths, past the user's index.
    pub(super) async fn commit_in_place(
        &self,
        worktree: &TaskWorktree,
        start: &Start,
        message: &str,
    ) -> Result<String> {
        let tree = self.stands().await?;
        let _checkout = self.checkout.lock().await;
        let own = loose_of(&self.state).await?.of(&worktree.run.task);
        let (mut before, _) = snapshot_of(&tree).await?;
        before.dirty.retain(|was| !own.contains(&was.path));
        before.ignored.clone_from(&start.before.ignored);
        self.commit_changes(&tree, worktree, message, &before, None).await?;
        let left = tree.status().await?;
        let ignored = |path: &GitPath| start.before.ignored.iter().any(|other| path == other || path.is_in(other));
        let left = left.into_iter().filter(|change| !change.repository && own.contains(&change.path));
        let left: Vec<GitPath> = left.map(|change| change.path).filter(|path| !ignored(path)).collect();
        if !left.is_empty() {
            return Err(WorktreeError::NotCommitted(format!(
                "uncommitted work of yours is in the way: {}",
                named(&left)
            )));
        }
        let Some(head) = tree.head().await? else { return Err(WorktreeError::NoCommit(self.root().to_owned())) };
        if !self.has(&head, &worktree.base).await? {
            return Err(WorktreeError::Rewritten { branch: self.branch().to_owned(), saved: start.saved.clone() });
        }
        Ok(head)
    }

    /// Checks the work where it is. It is committed already.
    pub(super) async fn check_in_place(&self, worktree: &TaskWorktree, gates: &Gates) -> Result<Option<GateFailure>> {
        let start = self.start(&worktree.run).await?;
        let files = self.files_now().await?;
        self.checking(|| self.first_red(&files, Base::Seen(&start.files), gates, Place::Worktree(self.root()))).await
    }

    /// There is nothing to merge: when it is committed, it is where it belongs.
    pub(super) async fn merge_in_place(&self, worktree: &TaskWorktree, message: &str) -> Result<MergeResult> {
        let final_commit = self.commit_leftovers(worktree, message).await?;
        if !self.has(&self.tip().await?, &final_commit).await? {
            let text = "does not have the commits of the task any more; bring them back";
            return Ok(MergeResult::NotNow { why: format!("{} {text} ({final_commit})", self.branch()) });
        }
        Ok(MergeResult::Merged { commits: self.commits_of_task(&worktree.run, &final_commit).await? })
    }

    /// What this attempt and those before it have committed.
    async fn commits_of_task(&self, run: &RunId, final_commit: &str) -> Result<Vec<String>> {
        let mut records: Vec<WorktreeRecord> = self.records().await?.into_iter().map(|(_, record)| record).collect();
        records.retain(|record| record.worktree.run.task == run.task);
        records.sort_by_key(|record| record.worktree.run.start);
        let mut commits = Vec::new();
        for WorktreeRecord { worktree, in_place, .. } in records {
            let is_this = worktree.run.start == run.start;
            let end = if is_this { Some(final_commit.to_owned()) } else { in_place.and_then(|start| start.end) };
            if let Some(end) = end {
                commits.extend(self.commits(&worktree.base, &end).await?);
            }
        }
        let mut seen = BTreeSet::new();
        commits.retain(|commit| seen.insert(commit.clone()));
        Ok(commits)
    }
}

fn loose_in(state: &Path) -> PathBuf {
    state.join("loose.json")
}

async fn loose_of(state: &Path) -> Result<Loose> {
    Ok(disk::at(loose_in(state), record::read).await?.unwrap_or_default())
}

/// What had uncommitted changes and is not as it was.
fn changed_since(start: &Start, now: &Snapshot) -> Option<String> {
    let same = |was: &Was| now.dirty.iter().any(|now| now == was);
    let guarded = start.before.dirty.iter().filter(|was| start.guarded.contains(&was.path));
    let changed: Vec<GitPath> = guarded.filter(|was| !same(was)).map(|was| was.path.clone()).collect();
    let first = changed.first()?;
    Some(format!(
        "had uncommitted changes before the session and are not as they were, by its hand or by yours: {}; as they were: `git \
         show {}:{first}`",
        named(&changed),
        start.saved
    ))
}
