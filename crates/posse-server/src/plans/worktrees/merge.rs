//! The way back: a real three-way merge, made by git without any checkout; checked; and only then the user's branch moves.
//!
//! If that branch is checked out somewhere, the user's own git fast-forwards it there, as `git merge --ff-only`: it writes the
//! files, the index and the branch, and refuses as a whole if it would have to overwrite anything that is not committed.
//! Elsewhere only the branch moves, unless it has moved meanwhile.

use std::collections::BTreeSet;
use std::path::Path;

use posse_core::finalize::GitPath;
use posse_core::plan::fast_forward::{AheadBehind, Difference, in_the_way, together};
use posse_core::plan::file::Isolation;
use posse_core::plan::machine::{GateFailure, MergeResult};

use super::{Gates, Result, TaskWorktree, WorktreeError, Worktrees};
use crate::disk::{self, Disk};
use crate::finalize::{TreeEntryKind, inspect, named, of_kind, on_disk};
use crate::git::{GitError, WorkTree};

/// How often the branch may move while we merge into it.
const TRIES: usize = 5;

/// The result of an attempt to move the user's branch.
enum FastForward {
    Yes,
    /// The branch has moved meanwhile.
    Moved,
    NotNow(String),
}

/// What the user's branch is about to become.
pub(super) struct PlannedMerge {
    pub(super) onto: String,
    pub(super) result: String,
}

/// What two sides give.
enum Joined {
    /// The commit that has both, and what the user's branch gets with it.
    Commit(String, Difference),
    Conflict(Vec<GitPath>),
}

impl Worktrees {
    /// Merges the work of a work tree into the user's branch. Asked again, it says the same and does nothing twice.
    pub(crate) async fn merge(&self, worktree: &TaskWorktree, message: &str, gates: &Gates) -> MergeResult {
        match self.try_to_merge(worktree, message, gates).await {
            Ok(result) => result,
            Err(WorktreeError::Stopped) => MergeResult::Stopped,
            // The work is not fit to be committed: only its author can mend that.
            Err(error) => match at_fault(&error) {
                Some(failure) => MergeResult::RedTogether(failure),
                None => MergeResult::NotNow { why: error.to_string() },
            },
        }
    }

    async fn try_to_merge(&self, worktree: &TaskWorktree, message: &str, gates: &Gates) -> Result<MergeResult> {
        if self.isolation == Isolation::InPlace {
            return self.merge_in_place(worktree, message).await;
        }
        let final_commit = self.commit_leftovers(worktree, message).await?;
        let _merging = self.merging.lock().await;
        for _ in 0..TRIES {
            let tip = self.tip().await?;
            let ahead_behind = self.ahead_behind(&tip, &final_commit).await?;
            if ahead_behind.ahead.is_empty() {
                // It is merged already: by us before a crash, or by the user.
                return Ok(MergeResult::Merged { commits: self.commits(&worktree.base, &final_commit).await? });
            }
            let (result, difference) = match self.join(&tip, &final_commit, &ahead_behind, message).await? {
                Joined::Conflict(paths) => {
                    return Ok(MergeResult::Conflict { paths: paths.iter().map(ToString::to_string).collect() });
                }
                Joined::Commit(result, difference) => (result, difference),
            };
            let planned = PlannedMerge { onto: tip, result };
            if let Some(failure) = self.check_result(&planned, gates).await? {
                return Ok(MergeResult::RedTogether(failure));
            }
            match self.fast_forward(worktree, &planned, &difference).await? {
                FastForward::Yes => {
                    self.remember_simple(&planned, &difference);
                    return Ok(MergeResult::Merged { commits: ahead_behind.ahead });
                }
                FastForward::Moved => {}
                FastForward::NotNow(why) => return Ok(MergeResult::NotNow { why }),
            }
        }
        let why = format!("{} moves all the time; wait until nobody commits to it", self.target);
        Ok(MergeResult::NotNow { why })
    }

    /// The commit that has both. Where one side has all of the other already, that is the commit itself.
    async fn join(&self, tip: &str, final_commit: &str, ahead_behind: &AheadBehind, message: &str) -> Result<Joined> {
        let is_plan = |path: &GitPath| self.plan_file.as_ref() == Some(path);
        if ahead_behind.behind.is_empty() {
            let difference = self.changed(tip, final_commit).await?;
            if !difference.paths.iter().any(is_plan) {
                return Ok(Joined::Commit(final_commit.to_owned(), difference));
            }
        }
        let arguments = ["merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", tip, final_commit];
        let (_, said) = self.home.hear_either(&arguments).await?;
        let mut both = together(&said).ok_or_else(|| GitError::unexpected("merge-tree"))?;
        both.conflicts.retain(|path| !is_plan(path));
        if !both.conflicts.is_empty() {
            return Ok(Joined::Conflict(both.conflicts));
        }
        let mut difference = self.changed(tip, &both.tree).await?;
        if let Some(file) = &self.plan_file
            && difference.paths.contains(file)
        {
            both.tree = self.home.with_file_of(&both.tree, tip, file).await?;
            difference.paths.retain(|path| path != file);
            difference.existing.retain(|path| path != file);
        }
        let mut arguments = vec!["commit-tree", &both.tree, "-p", tip, "-p", final_commit, "-m", message.trim_end()];
        let signs = ["config", "--type=bool", "--get", "commit.gpgSign"];
        if matches!(self.home.hear_either(&signs).await?, (true, said) if said.trim_ascii() == b"true") {
            arguments.push("-S");
        }
        Ok(Joined::Commit(self.home.ask(&arguments).await?, difference))
    }

    /// A commit without submodules stays so with changes that have none.
    fn remember_simple(&self, planned: &PlannedMerge, difference: &Difference) {
        let mut facts = self.facts();
        if facts.simple == planned.onto && !difference.repositories {
            facts.simple.clone_from(&planned.result);
        }
    }

    /// Moves the user's branch, with whatever checkout it is in.
    async fn fast_forward(
        &self,
        worktree: &TaskWorktree,
        planned: &PlannedMerge,
        difference: &Difference,
    ) -> Result<FastForward> {
        let mut checkout: Option<WorkTree> = None;
        for (path, branch) in self.home.recorded().await? {
            if !disk::at(path.join(".git"), Disk::exists).await {
                continue;
            }
            let (tree, here) = match self.checkout_at(&path).await {
                Ok(Some(found)) => found,
                Err(error) if branch.as_deref() == Some(self.branch()) => return Err(error.into()),
                // Broken, or the work tree of another task, which is removed just now.
                _ => continue,
            };
            // A rebase or a bisection goes back to its branch at the end, to where that was.
            if !here && tree.comes_back_to(&self.target).await {
                let what = tree.under_way().await.unwrap_or("something");
                return Ok(FastForward::NotNow(format!("{what} is under way in {}; finish it", path.display())));
            }
            if here && let Some(other) = checkout.replace(tree) {
                let text = "is checked out twice; leave it checked out in one place";
                return Ok(FastForward::NotNow(format!("{} {text}, not in {} too", self.target, other.root.display())));
            }
        }
        match checkout {
            Some(checkout) => self.fast_forward_in(&checkout, planned, difference).await,
            None => {
                let log = format!("posse: task {}", worktree.run.task);
                let arguments = ["update-ref", "-m", &log, &self.target, &planned.result, &planned.onto];
                match self.home.ask(&arguments).await {
                    Ok(_) => Ok(FastForward::Yes),
                    Err(GitError::Failed { .. }) if self.tip().await? != planned.onto => Ok(FastForward::Moved),
                    Err(error) => Err(error.into()),
                }
            }
        }
    }

    /// The work tree at this path, and whether the user's branch is checked out in it.
    async fn checkout_at(&self, path: &Path) -> Result<Option<(WorkTree, bool)>, GitError> {
        let found = WorkTree::find(path).await?.filter(|tree| tree.common == self.home.common);
        let Some(tree) = found else { return Ok(None) };
        let branch = tree.branch().await?;
        Ok(Some((tree, branch.as_deref() == Some(self.branch()))))
    }

    async fn fast_forward_in(
        &self,
        checkout: &WorkTree,
        planned: &PlannedMerge,
        difference: &Difference,
    ) -> Result<FastForward> {
        let (place, written) = (checkout.root.display(), &difference.paths);
        if let Some(what) = checkout.under_way().await {
            return Ok(FastForward::NotNow(format!("{what} is under way in {place}; finish it")));
        }
        let _alone = checkout.alone().await;
        checkout.unlocked().await?;
        // Git itself writes over nothing that is not committed. But it takes a file that the user has deleted for one that may
        // come back, and it writes into other repositories.
        if all_there(&checkout.root, difference.existing.clone()).await
            && all_ours(&checkout.root, written.clone()).await
            && let Ok(done) = self.forward(checkout, planned).await
        {
            return Ok(done);
        }
        let users = self.in_the_way(checkout, written).await?;
        if !users.is_empty() && !self.take_up(checkout, planned, written, &users).await? {
            let text =
                "there are changes that are not committed, where it would write; commit them or put them elsewhere";
            return Ok(FastForward::NotNow(format!("in {place} {text}: {}", named(&users))));
        }
        self.forward(checkout, planned).await
    }

    /// Has git take the checkout forward. It is an error if something is in the way.
    async fn forward(&self, checkout: &WorkTree, planned: &PlannedMerge) -> Result<FastForward> {
        let arguments = [
            "merge",
            "--ff-only",
            "--quiet",
            "--no-stat",
            "--no-autostash",
            "--no-verify-signatures",
            // What git ignores may be all the user has of it.
            "--no-overwrite-ignore",
            &planned.result,
        ];
        let Err(error) = checkout.write_files(&arguments).await else { return Ok(FastForward::Yes) };
        match self.tip().await? {
            tip if tip == planned.result => Ok(FastForward::Yes),
            tip if tip == planned.onto => Err(error.into()),
            _ => Ok(FastForward::Moved),
        }
    }

    /// What of the user's would be written over.
    async fn in_the_way(&self, checkout: &WorkTree, written: &[GitPath]) -> Result<Vec<GitPath>> {
        let (changes, mut ignored) = checkout.status_and_ignored().await?;
        // Of an ignored directory git tells only the name. Other files in it may stay where they are.
        let ignored_too = written.iter().filter(|path| ignored.iter().any(|directory| path.is_in(directory)));
        let found = inspect(&checkout.root, ignored_too.cloned().collect()).await;
        let harmless = |directory: &GitPath| {
            let mut within = found.iter().filter(|(path, _)| path.is_in(directory)).peekable();
            within.peek().is_some() && within.all(|(_, entry)| *entry == TreeEntryKind::Missing)
        };
        ignored.retain(|path| !harmless(path));
        Ok(in_the_way(written, &changes, &ignored))
    }

    /// A git that was killed while it took the checkout forward has written some of the files, and nothing into the index.
    /// To git they look like changes of the user's. If all that is in the way is already as it will be, it is entered in
    /// the index, and git continues from there. Otherwise nothing is done.
    async fn take_up(
        &self,
        checkout: &WorkTree,
        planned: &PlannedMerge,
        written: &[GitPath],
        users: &[GitPath],
    ) -> Result<bool> {
        let found = inspect(&checkout.root, users.to_vec()).await;
        if found.iter().any(|(path, entry)| !written.contains(path) || *entry == TreeEntryKind::Directory) {
            return Ok(false);
        }
        let draft = checkout.draft().await?;
        checkout
            .stage(Some(&draft), of_kind(&found, TreeEntryKind::File), of_kind(&found, TreeEntryKind::Missing))
            .await?;
        let files = checkout.unlike(Some(&draft), &planned.result).await?;
        let (old, new) = (checkout.unlike(None, &planned.onto).await?, checkout.unlike(None, &planned.result).await?);
        // In the index it is as it was, or as it will be: git writes that last.
        if users.iter().any(|path| files.contains(path) || (old.contains(path) && new.contains(path))) {
            return Ok(false);
        }
        checkout.stage(None, of_kind(&found, TreeEntryKind::File), []).await?;
        Ok(true)
    }
}

/// Whether a work tree has all of these, and not by way of a link.
async fn all_there(root: &Path, paths: Vec<GitPath>) -> bool {
    let is_there = |disk: &Disk, root: &Path, path: &GitPath| {
        let path = on_disk(root, path);
        let directory = path.parent().unwrap_or(root);
        disk.symlink_metadata(&path).is_ok() && disk.canonicalize(directory).is_ok_and(|real| real == directory)
    };
    disk::at(root, move |disk, root| paths.iter().all(|path| is_there(disk, root, path))).await
}

/// Whether none of these lies in another repository within a work tree.
async fn all_ours(root: &Path, paths: Vec<GitPath>) -> bool {
    let look = move |disk: &Disk, root: &Path| {
        let mut directories = BTreeSet::new();
        for path in &paths {
            let path = on_disk(root, path);
            directories.extend(path.ancestors().skip(1).take_while(|above| *above != root).map(Path::to_owned));
        }
        directories.iter().all(|directory| disk.symlink_metadata(&directory.join(".git")).is_err())
    };
    disk::at(root, look).await
}

/// Only what git says about the work is the author's to mend: not that another git is in the way, or takes too long.
pub(super) fn not_committed(error: Option<GitError>, text: String) -> WorktreeError {
    match error {
        None | Some(GitError::Failed { .. }) => WorktreeError::NotCommitted(text),
        Some(error) => WorktreeError::Git(error),
    }
}

/// Failures of the work itself, in the form of a failed check.
pub(in crate::plans) fn at_fault(error: &WorktreeError) -> Option<GateFailure> {
    let output = match error {
        WorktreeError::NotCommitted(text) => text.clone(),
        WorktreeError::Unfinished { .. } | WorktreeError::Strayed { .. } | WorktreeError::Broken { .. } => {
            String::new()
        }
        _ => return None,
    };
    Some(GateFailure { gate: "commit".into(), message: error.to_string(), output })
}
