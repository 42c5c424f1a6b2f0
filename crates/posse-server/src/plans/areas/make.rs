//! A work tree for a session. Everything may have been begun by somebody who was interrupted.

use std::collections::BTreeSet;

use posse_core::plan::machine::RunId;
use posse_core::plan::names;

use super::note::Note;
use super::{Area, AreaError, Areas, area, exists, obstacle, private, text};
use crate::disk::{self, Disk};
use crate::git;

/// So many names are tried for one area; then something else is wrong.
pub(super) const NAMES: u32 = 100;

/// What there is of branches when an area is made.
#[derive(Default)]
struct Branches {
    tip: Option<String>,
    /// In full, and the one that gathers the results with them.
    of_task: BTreeSet<String>,
}

/// What is known of the branch of an area.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Branch {
    IsNew,
    MayBeThere,
}

impl Areas {
    /// Makes the area of a session, with the files of this commit. Asked again, it is the same area, whatever the commit.
    pub(crate) async fn make(&self, run: &RunId, base: &str) -> Result<Area, AreaError> {
        self.make_on(run, Some(base)).await
    }

    /// On this commit, or on the last one of the branch that gathers the results.
    pub(super) async fn make_on(&self, run: &RunId, base: Option<&str>) -> Result<Area, AreaError> {
        let _list = self.list.lock().await;
        let (mut note, branch) = match self.note(run).await? {
            Some(note) => (note, Branch::MayBeThere),
            None => {
                let there = self.branches(run).await?;
                let base = match base {
                    Some(base) => base.to_owned(),
                    None => there.tip.ok_or_else(|| AreaError::BranchGone(self.target.clone()))?,
                };
                let note = self.unused_beside(run, &base, &there.of_task).await?;
                self.write_note(run, &note).await?;
                (note, Branch::IsNew)
            }
        };
        if !note.ready || !disk::at(&note.directory, Disk::exists).await {
            self.furnish(&note, branch).await?;
            note.ready = true;
            self.write_note(run, &note).await?;
        }
        Ok(area(run, note))
    }

    /// The last commit of the branch that gathers the results, and the branches of a task, asked for at once.
    async fn branches(&self, run: &RunId) -> Result<Branches, AreaError> {
        let first = format!("refs/heads/{}", names::branch(&self.plan_slug, &run.task, run.start));
        let of_task = first.rsplit_once('/').map_or(&*first, |(of_task, _)| of_task);
        let arguments = ["for-each-ref", "--format=%(objectname) %(refname)", &self.target, of_task];
        let said = git::hear(&self.root, None, &arguments, b"").await?;
        let mut branches = Branches::default();
        for line in String::from_utf8_lossy(&said).lines() {
            let Some((commit, name)) = line.split_once(' ') else { continue };
            if name == self.target {
                branches.tip = Some(commit.to_owned());
            }
            branches.of_task.insert(name.to_owned());
        }
        Ok(branches)
    }

    #[cfg(test)]
    pub(super) async fn unused(&self, run: &RunId, base: &str) -> Result<Note, AreaError> {
        self.unused_beside(run, base, &self.branches(run).await?.of_task).await
    }

    /// A name that nobody has used. What is there under a name, from a run of which nothing else is known, may be work.
    async fn unused_beside(&self, run: &RunId, base: &str, taken: &BTreeSet<String>) -> Result<Note, AreaError> {
        if !self.is_simple(base) {
            if let Some(path) = obstacle::submodule(&self.root, base).await? {
                return Err(AreaError::Submodule(path));
            }
            self.found_simple(base);
        }
        let branch = names::branch(&self.plan_slug, &run.task, run.start);
        let directory = names::area(&self.plan_slug, &run.task, run.start);
        for number in 1..=NAMES {
            let numbered = |name: &str| if number == 1 { name.to_owned() } else { format!("{name}-{number}") };
            let (branch, directory) = (numbered(&branch), self.state.join("worktrees").join(numbered(&directory)));
            if !taken.contains(&format!("refs/heads/{branch}"))
                && disk::at(&directory, Disk::symlink_metadata).await.is_err()
            {
                return Ok(Note::new(run, branch, directory, base.to_owned()));
            }
        }
        Err(AreaError::NoName(run.to_string()))
    }

    /// Every step may have been done already, or half. No session was there yet.
    async fn furnish(&self, note: &Note, known: Branch) -> Result<(), AreaError> {
        let (directory, branch) = (&note.directory, note.branch.as_str());
        if let Some(parent) = directory.parent() {
            disk::at(parent, private).await?;
        }
        if !disk::at(directory.join(".git"), Disk::exists).await {
            let place = text(directory)?;
            // Without files yet: git locks the area until it has written them, and one who is killed leaves it locked.
            // Twice --force: git may have a record of this directory although it is gone, from one who was interrupted.
            let mut arguments = vec!["worktree", "add", "--quiet", "--no-checkout", "--force", "--force"];
            let full_name = format!("refs/heads/{branch}");
            if known == Branch::MayBeThere && exists(&self.root, &full_name).await? {
                arguments.extend(["--", place, branch]);
            } else {
                arguments.extend(["--no-track", "-b", branch, "--", place, &note.base]);
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
