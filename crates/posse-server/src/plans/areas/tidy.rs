//! What can go: areas whose work is merged and in which nothing else is. Everything else is kept, and named.

use std::collections::BTreeSet;
use std::path::PathBuf;

use posse_core::plan::machine::RunId;

use super::note::Note;
use super::{AreaError, Areas, exists, text, work_of};
use crate::git::{self, GitError, WorkTree};

/// An area that stays, for a person to look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    pub directory: PathBuf,
    pub branch: String,
    pub why: String,
}

impl Areas {
    /// Removes what is done with. What these sessions use stays.
    pub async fn tidy(&self, in_use: &BTreeSet<RunId>) -> Result<Vec<Kept>, AreaError> {
        let in_use: BTreeSet<String> = in_use.iter().map(|run| work_of(run).to_string()).collect();
        let tip = self.tip().await?;
        let mut kept = Vec::new();
        for (file, note) in self.notes()? {
            if file.file_stem().is_some_and(|name| in_use.contains(name.to_string_lossy().as_ref())) {
                continue;
            }
            kept.extend(self.tidy_one(file, note, &tip).await?);
        }
        let bench = self.bench_directory();
        if in_use.is_empty() && bench.exists() {
            let _bench = self.bench.lock().await;
            // By force: nobody ever worked there, and commands always leave something.
            git::write_files(&self.root, &["worktree", "remove", "--force", "--", text(&bench)?]).await?;
        }
        Ok(kept)
    }

    /// Removes the area of a session whose work is merged, while others may be at work.
    pub async fn done_with(&self, run: &RunId) -> Result<Option<Kept>, AreaError> {
        let Some(note) = self.note(run)? else { return Ok(None) };
        let tip = self.tip().await?;
        self.tidy_one(self.note_path(run), note, &tip).await
    }

    async fn tidy_one(&self, file: PathBuf, note: Note, tip: &str) -> Result<Option<Kept>, AreaError> {
        let _list = self.list.lock().await;
        if let Some(why) = self.why_kept(&note, tip).await? {
            return Ok(Some(Kept { directory: note.directory, branch: note.branch, why }));
        }
        match self.remove(&note, tip).await {
            Ok(()) => {}
            Err(AreaError::Git(error @ GitError::Failed { .. })) => {
                return Ok(Some(Kept { directory: note.directory, branch: note.branch, why: error.to_string() }));
            }
            Err(error) => return Err(error),
        }
        match std::fs::remove_file(&file) {
            // Somebody else was here too.
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(AreaError::Write { path: file, error }),
            _ => Ok(None),
        }
    }

    async fn why_kept(&self, note: &Note, tip: &str) -> Result<Option<String>, AreaError> {
        let branch = format!("refs/heads/{}", note.branch);
        if exists(&self.root, &branch).await? && !self.has(tip, &branch).await? {
            return Ok(Some("its work is not merged".into()));
        }
        if !note.directory.join(".git").is_file() {
            let is_there = note.directory.exists();
            return Ok(is_there.then(|| "it is not a work area any more, but something is there".into()));
        }
        let tree = WorkTree::find(&note.directory).await?;
        let Some(tree) = tree.filter(|tree| tree.root == note.directory) else {
            return Ok(Some("git does not know it any more".into()));
        };
        if let Some(what) = tree.under_way() {
            return Ok(Some(format!("{what} is under way in it")));
        }
        if let Some(change) = tree.status().await?.first() {
            return Ok(Some(format!("it has changes that are not committed: {}", change.path)));
        }
        // The session may have gone to a branch of its own, or to none.
        match tree.head().await? {
            Some(head) if !self.has(tip, &head).await? => Ok(Some("what is checked out in it is not merged".into())),
            _ => Ok(None),
        }
    }

    /// Git looks once more whether the directory is clean.
    async fn remove(&self, note: &Note, tip: &str) -> Result<(), AreaError> {
        let list = git::hear(&self.root, None, &["worktree", "list", "--porcelain", "-z"], b"").await?;
        let known = posse_core::plan::landing::worktrees(&list);
        let directory = text(&note.directory)?;
        if known.iter().any(|found| found.path.0 == directory.as_bytes()) {
            git::write_files(&self.root, &["worktree", "remove", "--", directory]).await?;
        }
        let branch = format!("refs/heads/{}", note.branch);
        if exists(&self.root, &branch).await? {
            let last = git::ask(&self.root, &["rev-parse", "--verify", &branch]).await?;
            if self.has(tip, &last).await? {
                // Only if it is still there.
                git::ask(&self.root, &["update-ref", "-d", &branch, &last]).await?;
            }
        }
        Ok(())
    }
}
