//! The end of the work on a task. What the session left uncommitted is committed for it, and the last commit is written
//! down: what checks, validators or curious people leave in the work tree afterwards does not become part of the result.

use posse_core::finalize::{self, GitPath, Snapshot, Status, Step};
use posse_core::plan::fast_forward::{AheadBehind, Difference};
use posse_core::plan::file::Isolation;

use super::{Result, TaskWorktree, WorktreeError, Worktrees, not_committed, nothing_of_the_users};
use crate::finalize::{CommitRequest, Committed};
use crate::git::{Draft, WorkTree};

impl Worktrees {
    /// The last commit of the work. To be asked as soon as the session is over, before anything else runs in the work tree.
    pub(crate) async fn commit_leftovers(&self, worktree: &TaskWorktree, message: &str) -> Result<String> {
        let mut record = self.known_record(&worktree.run).await?;
        if let Some(final_commit) = record.final_commit {
            return Ok(final_commit);
        }
        let final_commit = match &record.in_place {
            Some(start) => self.commit_in_place(worktree, start, message).await?,
            None => self.commit_in_worktree(worktree, message).await?,
        };
        record.final_commit = Some(final_commit.clone());
        self.write_record(&record).await?;
        Ok(final_commit)
    }

    /// Commits what is uncommitted in a work tree, but for what was there `before` and for files whose names look like a slip:
    /// these are put aside. A commit that is refused, by a hook of the user's for example, is an error.
    pub(super) async fn commit_changes(
        &self,
        tree: &WorkTree,
        worktree: &TaskWorktree,
        message: &str,
        before: &Snapshot,
        seen: Option<(Status, Draft)>,
    ) -> Result<Committed> {
        let unfinished = |what| WorktreeError::Unfinished { directory: tree.root.clone(), what };
        if let Some(what) = tree.under_way().await {
            return Err(unfinished(what));
        }
        let request = CommitRequest {
            tree,
            is_sessions: self.isolation == Isolation::Worktree,
            message,
            quarantine: &self.state.join("quarantine").join(worktree.run.to_string()),
            before: Some(before),
        };
        let committed = request.commit(seen).await;
        match &committed.step {
            Step::Failed(text) => return Err(not_committed(committed.error, text.clone())),
            Step::Done(text) | Step::Skipped(text) => tracing::debug!("{}: {text}", worktree.run),
        }
        if committed.before.changes.iter().any(|change| change.unmerged) {
            return Err(unfinished("a merge with conflicts"));
        }
        Ok(committed)
    }

    /// Commits what the session has not committed in a work tree of its own.
    pub(super) async fn commit_in_worktree(&self, worktree: &TaskWorktree, message: &str) -> Result<String> {
        let tree = self.tree(worktree).await?;
        self.settle(&tree).await;
        // The status when the session ended counts once.
        let seen = self.facts().seen.take_if(|(root, _)| *root == tree.root).map(|(_, seen)| seen);
        let nothing = nothing_of_the_users(&tree);
        let committed = self.commit_changes(&tree, worktree, message, &nothing, seen).await?;
        // Nothing was committed, for an unknown reason.
        let head = committed.head.ok_or_else(|| worktree.broken())?;
        if let Some(parent) = committed.before.commit.clone().filter(|parent| *parent != head) {
            // Hooks may add to a commit.
            let is_certain = !committed.before.staged && !tree.has_hooks().await;
            let difference = is_certain.then(|| difference(&committed.before, &nothing));
            let ahead_behind = AheadBehind { behind: Vec::new(), ahead: vec![head.clone()] };
            let mut facts = self.facts();
            facts.compared = Some((parent.clone(), head.clone(), ahead_behind));
            facts.difference = difference.map(|difference| (parent, head.clone(), difference));
        }
        // What is committed on the work tree's branch is there already.
        if committed.before.branch.as_ref() != Some(&worktree.branch) {
            self.lead_branch(worktree, &head).await?;
        }
        Ok(head)
    }

    /// A session may have gone to a branch of its own, or to none. Ours then follows, so that it holds all of the work.
    async fn lead_branch(&self, worktree: &TaskWorktree, head: &str) -> Result<()> {
        let branch = format!("refs/heads/{}", worktree.branch);
        let strayed =
            || WorktreeError::Strayed { directory: worktree.directory.clone(), branch: worktree.branch.clone() };
        // Nothing, if it was renamed or deleted.
        let tip = self.home.last_of(&branch).await?.unwrap_or_default();
        if tip == head {
            return Ok(());
        }
        if !tip.is_empty() && !self.has(head, &tip).await? {
            return Err(strayed());
        }
        self.home.ask(&["update-ref", "-m", "posse: the work of the session", &branch, head, &tip]).await?;
        Ok(())
    }
}

/// In what a commit of all that was found in a work tree differs from its parent.
fn difference(before: &Status, nothing: &Snapshot) -> Difference {
    let plan = finalize::plan(&before.changes, nothing, None);
    let paths: Vec<GitPath> = plan.add.into_iter().chain(plan.remove).collect();
    let was_there = |path: &&GitPath| before.changes.iter().any(|change| change.path == **path && !change.new);
    Difference { existing: paths.iter().filter(was_there).cloned().collect(), paths, repositories: false }
}
