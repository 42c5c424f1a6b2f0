//! Makes the work tree of a session. An earlier, interrupted call may have done any part of it.

use std::path::Path;

use posse_core::plan::machine::RunId;
use posse_core::plan::names;

use super::record::WorktreeRecord;
use super::{Result, TaskWorktree, WorktreeError, Worktrees, obstacle, private, text};
use crate::disk::{self, Disk};
use crate::git::GitError;

/// How many names are tried for one work tree; then something else is wrong.
const NAMES: u32 = 100;

impl Worktrees {
    /// Makes the work tree of a session, with the files of the branch that gathers the results. A second call returns the same
    /// work tree.
    pub(crate) async fn make(&self, run: &RunId) -> Result<TaskWorktree> {
        let _list = self.list.lock().await;
        let mut record = match self.record(run).await? {
            Some(record) => record,
            None => {
                let record = self.unused(run, &self.tip().await?).await?;
                self.write_record(&record).await?;
                record
            }
        };
        if !record.ready || !disk::at(&record.worktree.directory, Disk::exists).await {
            self.furnish(&record.worktree).await?;
            record.ready = true;
            self.write_record(&record).await?;
        }
        Ok(record.worktree)
    }

    /// Returns a record with an unused name. A branch or directory that exists may be the work of a forgotten run.
    pub(super) async fn unused(&self, run: &RunId, base: &str) -> Result<WorktreeRecord> {
        if self.facts().simple != base {
            if let Some(path) = obstacle::submodule(&self.home, base).await? {
                return Err(WorktreeError::Submodule(path));
            }
            base.clone_into(&mut self.facts().simple);
        }
        let branch = names::branch(&self.plan_slug, &run.task, run.start);
        let directory = names::area(&self.plan_slug, &run.task, run.start);
        for number in 1..=NAMES {
            let numbered = |name: &str| if number == 1 { name.to_owned() } else { format!("{name}-{number}") };
            let (branch, directory) = (numbered(&branch), self.state.join("worktrees").join(numbered(&directory)));
            if self.home.last_of(&format!("refs/heads/{branch}")).await?.is_none()
                && disk::at(&directory, Disk::symlink_metadata).await.is_err()
            {
                return Ok(WorktreeRecord::new(run, branch, directory, base.to_owned()));
            }
        }
        Err(WorktreeError::NoName(run.to_string()))
    }

    /// Every step may have been done already, or half. No session was there yet.
    async fn furnish(&self, TaskWorktree { directory, branch, base, .. }: &TaskWorktree) -> Result<()> {
        if let Some(parent) = directory.parent() {
            disk::at(parent, private).await?;
        }
        self.make_empty(directory, base).await?;
        // By force, because half of the files may be there already.
        let what = match self.home.last_of(&format!("refs/heads/{branch}")).await? {
            Some(_) => vec!["--force", branch],
            None => vec!["--force", "--no-track", "-b", branch, base],
        };
        self.check_out(directory, &what).await
    }

    /// Makes a work tree without files, unless there is one in this directory.
    pub(super) async fn make_empty(&self, directory: &Path, commit: &str) -> Result<()> {
        if disk::at(directory.join(".git"), Disk::exists).await || self.home.add(directory, commit).await? {
            return Ok(());
        }
        // Without files yet: git locks the work tree until it has written them, and a killed git leaves it locked.
        // Twice --force: an interrupted run may have left a record of this directory in git although it is gone.
        let arguments = ["worktree", "add", "--quiet", "--no-checkout", "--force", "--force", "--detach", "--"];
        Ok(self.home.write_files(&[&arguments[..], &[text(directory)?, commit]].concat()).await?)
    }

    /// Checks out files in a directory of ours that is a work tree, without a look at what is there.
    pub(super) async fn check_out(&self, directory: &Path, what: &[&str]) -> Result<()> {
        let broken = || GitError::Elsewhere(directory.join(".git"));
        let tree = self.tree_in(directory).await?.ok_or_else(broken)?;
        self.settle(&tree).await;
        Ok(tree.write_files(&[&["checkout", "--quiet"], what, &["--"]].concat()).await?)
    }
}
