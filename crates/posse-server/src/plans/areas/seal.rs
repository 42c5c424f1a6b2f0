//! The end of the work on a task. What the session left uncommitted is committed for it, and the last commit is written
//! down: what checks, validators or curious people leave in the area afterwards does not become part of the result.

use posse_core::aftermath::Step;
use posse_core::plan::names::CommitWords;

use super::{Area, AreaError, Areas, not_committed, nothing_of_the_users};
use crate::aftermath::{CommitIn, commit_in};
use crate::git;

impl Areas {
    /// The last commit of the work. To be asked as soon as the session is over, before anything else runs in the area.
    pub(crate) async fn seal(&self, area: &Area, words: &CommitWords) -> Result<String, AreaError> {
        let mut note = self.known(&area.run).await?;
        if let Some(sealed) = note.sealed {
            return Ok(sealed);
        }
        let sealed = match &note.in_place {
            Some(start) => self.commit_in_place(area, start, words).await?,
            None => self.commit_leftovers(area, words).await?,
        };
        note.sealed = Some(sealed.clone());
        self.write_note(&area.run, &note).await?;
        Ok(sealed)
    }

    /// Commits, with explicit paths, what the session has not committed, but for files whose names look like a slip: these
    /// are put aside. A commit that is refused, by a hook of the user's for example, is an error.
    pub(super) async fn commit_leftovers(&self, area: &Area, words: &CommitWords) -> Result<String, AreaError> {
        let tree = self.tree(area).await?;
        self.settle(&tree).await;
        let unfinished = |what| AreaError::Unfinished { directory: area.directory.clone(), what };
        if let Some(what) = tree.under_way().await {
            return Err(unfinished(what));
        }
        let quarantine = self.state.join("quarantine").join(area.run.to_string());
        let nothing = nothing_of_the_users(&tree);
        let seen = CommitIn::Area(self.facts.take_seen(&tree.root));
        let committed = commit_in(&tree, seen, &words.message(), &quarantine, Some(&nothing)).await;
        match committed.step {
            Step::Failed(text) => return Err(not_committed(committed.error, text)),
            Step::Done(text) | Step::Skipped(text) => tracing::debug!("{}: {text}", area.run),
        }
        if committed.before.changes.iter().any(|change| change.unmerged) {
            return Err(unfinished("a merge with conflicts"));
        }
        // Nothing was committed, and nobody knows why.
        let Some(head) = committed.head else {
            return Err(AreaError::Broken { directory: area.directory.clone(), branch: area.branch.clone() });
        };
        if let Some(parent) = committed.before.commit.filter(|parent| *parent != head) {
            self.found_child(&parent, &head);
        }
        // What is committed on the area's branch is there already.
        if committed.before.branch.as_ref() != Some(&area.branch) {
            self.lead_branch(area, &head).await?;
        }
        Ok(head)
    }

    /// A session may have gone to a branch of its own, or to none. Ours then follows, so that it holds all of the work.
    async fn lead_branch(&self, area: &Area, head: &str) -> Result<(), AreaError> {
        let branch = format!("refs/heads/{}", area.branch);
        let strayed = || AreaError::Strayed { directory: area.directory.clone(), branch: area.branch.clone() };
        // Nothing, if it was renamed or deleted.
        let tip = self.home.last_of(&branch).await?.unwrap_or_default();
        if tip == head {
            return Ok(());
        }
        if !tip.is_empty() && !self.has(head, &tip).await? {
            return Err(strayed());
        }
        git::ask(&area.directory, &["update-ref", "-m", "posse: the work of the session", &branch, head, &tip]).await?;
        Ok(())
    }
}
