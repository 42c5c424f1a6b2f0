//! A work tree for a session. Everything may have been begun by somebody who was interrupted.

use posse_core::plan::machine::RunId;
use posse_core::plan::names;

use super::record::WorktreeRecord;
use super::{TaskWorktree, WorktreeError, Worktrees, obstacle, private, text, worktree};
use crate::disk::{self, Disk};
use crate::git;

/// So many names are tried for one work tree; then something else is wrong.
pub(super) const NAMES: u32 = 100;

impl Worktrees {
    /// Makes the work tree of a session, with the files of this commit. Asked again, it is the same work tree, whatever the commit.
    pub(crate) async fn make(&self, run: &RunId, base: &str) -> Result<TaskWorktree, WorktreeError> {
        self.make_on(run, Some(base)).await
    }

    /// On this commit, or on the last one of the branch that gathers the results.
    pub(super) async fn make_on(&self, run: &RunId, base: Option<&str>) -> Result<TaskWorktree, WorktreeError> {
        let _list = self.list.lock().await;
        let mut record = match self.record(run).await? {
            Some(record) => record,
            None => {
                let base = match base {
                    Some(base) => base.to_owned(),
                    None => self.tip().await?,
                };
                let record = self.unused(run, &base).await?;
                self.write_record(run, &record).await?;
                record
            }
        };
        if !record.ready || !disk::at(&record.directory, Disk::exists).await {
            self.furnish(&record).await?;
            record.ready = true;
            self.write_record(run, &record).await?;
        }
        Ok(worktree(run, record))
    }

    /// A name that nobody has used. What is there under a name, from a run of which nothing else is known, may be work.
    pub(super) async fn unused(&self, run: &RunId, base: &str) -> Result<WorktreeRecord, WorktreeError> {
        if !self.is_simple(base) {
            if let Some(path) = obstacle::submodule(&self.root, base).await? {
                return Err(WorktreeError::Submodule(path));
            }
            self.found_simple(base);
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
    async fn furnish(&self, record: &WorktreeRecord) -> Result<(), WorktreeError> {
        let (directory, branch) = (&record.directory, record.branch.as_str());
        if let Some(parent) = directory.parent() {
            disk::at(parent, private).await?;
        }
        if !disk::at(directory.join(".git"), Disk::exists).await {
            let place = text(directory)?;
            // Without files yet: git locks the work tree until it has written them, and one who is killed leaves it locked.
            // Twice --force: git may have a record of this directory although it is gone, from one who was interrupted.
            let mut arguments = vec!["worktree", "add", "--quiet", "--no-checkout", "--force", "--force"];
            if self.home.last_of(&format!("refs/heads/{branch}")).await?.is_some() {
                arguments.extend(["--", place, branch]);
            } else {
                arguments.extend(["--no-track", "-b", branch, "--", place, &record.base]);
            }
            git::write_files(&self.root, &arguments).await?;
        }
        if let Some(tree) = self.tree_in(directory).await? {
            self.settle(&tree).await;
        }
        // By force, because half of the files may be there already.
        git::write_files(directory, &["checkout", "--quiet", "--force", branch, "--"]).await?;
        Ok(())
    }
}
