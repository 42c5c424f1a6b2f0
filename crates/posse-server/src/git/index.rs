//! The index of a work tree, and drafts: indexes in which a commit is put together without touching the user's own.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use posse_core::finalize::{Change, GitPath, Status, changes, ignored};

use super::{GitError, NOT_INSIDE, WorkTree, failed};
use crate::disk::{self, Disk, ScratchDir};
use crate::watched_files::gone_within;

/// How long another git may hold the index: editors look at the state now and then.
const LOCKED: Duration = Duration::from_secs(3);
const STATUS: [&str; 6] = ["status", "--porcelain=v2", "-z", "--untracked-files=all", "--no-renames", NOT_INSIDE];

/// An index in which a commit is put together. The user's own is not touched by that.
#[derive(Debug)]
pub(crate) struct Draft {
    /// A git that runs keeps it, because a git that finds no index commits that all files are gone.
    pub(super) directory: Arc<ScratchDir>,
    /// The commit it starts from; `None` before the first commit.
    pub(super) base: Option<String>,
}

impl Draft {
    pub(super) fn index(&self) -> PathBuf {
        self.directory.path().join("index")
    }
}

/// Paths in the form that git reads on standard input.
fn joined<'a>(paths: impl IntoIterator<Item = &'a GitPath>) -> Vec<u8> {
    paths.into_iter().flat_map(|path| [path.0.as_slice(), b"\0"].concat()).collect()
}

impl WorkTree {
    fn index(&self) -> PathBuf {
        self.directory.join("index")
    }

    pub(super) fn lock(&self) -> PathBuf {
        self.directory.join("index.lock")
    }

    /// Waits until no other git holds the index.
    pub(crate) async fn unlocked(&self) -> Result<(), GitError> {
        let lock = self.lock();
        let is_gone = disk::at(&lock, |disk, lock| gone_within(disk, lock, LOCKED)).await;
        if is_gone { Ok(()) } else { Err(GitError::Locked(lock)) }
    }

    pub(crate) async fn status(&self) -> Result<Vec<Change>, GitError> {
        Ok(changes(&self.hear(&STATUS).await?)?)
    }

    /// What is changed, and what is ignored: of an ignored directory only its name.
    pub(crate) async fn status_and_ignored(&self) -> Result<(Vec<Change>, Vec<GitPath>), GitError> {
        let said = self.hear(&[&STATUS[..], &["--ignored=matching"]].concat()).await?;
        Ok((changes(&said)?, ignored(&said)))
    }

    /// What is changed and where HEAD is, and a draft of that moment.
    pub(crate) async fn look(&self) -> Result<(Status, Draft), GitError> {
        let mut draft = self.copied().await?;
        let arguments = [&STATUS[..], &["--branch", "--no-ahead-behind"]].concat();
        let status = Status::read(&self.git(Some(&draft), &arguments, b"").await?.success()?)?;
        draft.base.clone_from(&status.commit);
        Ok((status, draft))
    }

    /// A draft that has the files of HEAD.
    pub(crate) async fn draft(&self) -> Result<Draft, GitError> {
        let mut draft = self.copied().await?;
        draft.base = self.head().await?;
        self.reset(&draft).await?;
        Ok(draft)
    }

    /// A draft that has the entries of the index, because that knows which files need not be read again.
    async fn copied(&self) -> Result<Draft, GitError> {
        let copy = |disk: &Disk, index: &Path| {
            let directory = Arc::new(disk::scratch_dir(disk, "posse-index-")?);
            let draft = Draft { directory, base: None };
            // What is as new as the index is read again: by a younger one git would take it for unchanged.
            match disk.copy_with_time(index, &draft.index()) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => Ok(draft),
            }
        };
        disk::at(self.index(), copy).await.map_err(failed("cannot make an index"))
    }

    /// Gives a draft the entries of its base.
    async fn reset(&self, draft: &Draft) -> Result<(), GitError> {
        // With -i the work tree is neither looked at nor changed.
        let arguments = match &draft.base {
            Some(base) => &["read-tree", "-m", "-i", base][..],
            None => &["read-tree", "--empty"],
        };
        self.git(Some(draft), arguments, b"").await?.success().map(drop)
    }

    /// Enters files as they are in the work tree, and removes others; in a draft, or in the user's index.
    pub(crate) async fn stage<'a>(
        &self,
        draft: Option<&Draft>,
        add: impl IntoIterator<Item = &'a GitPath>,
        remove: impl IntoIterator<Item = &'a GitPath>,
    ) -> Result<(), GitError> {
        for (how, paths) in [(&["--force-remove"][..], joined(remove)), (&["--add", "--replace"], joined(add))] {
            if !paths.is_empty() {
                let arguments = [&["update-index"], how, &["-z", "--stdin"]].concat();
                self.git(draft, &arguments, &paths).await?.success()?;
            }
        }
        Ok(())
    }

    pub(crate) async fn tree(&self, draft: &Draft) -> Result<String, GitError> {
        self.git(Some(draft), &["write-tree"], b"").await?.line()
    }

    /// The tree of all files in the user's index. In a copy: git would write into the index itself.
    pub(crate) async fn staged_tree(&self) -> Result<String, GitError> {
        self.tree(&self.copied().await?).await
    }

    /// A tree, but for one file, which is as that commit has it.
    pub(crate) async fn with_file_of(&self, tree: &str, commit: &str, file: &GitPath) -> Result<String, GitError> {
        let path = String::from_utf8_lossy(&file.0);
        let arguments = ["--literal-pathspecs", "ls-tree", "-z", "--full-tree", commit, "--", &path];
        // Mode, kind and id.
        let entry = self.hear(&arguments).await?;
        let directory = disk::run(|disk| disk::scratch_dir(disk, "posse-index-")).await;
        let directory = directory.map_err(failed("cannot make an index"))?;
        let draft = Draft { directory: Arc::new(directory), base: Some(tree.to_owned()) };
        self.reset(&draft).await?;
        if entry.is_empty() {
            self.stage(Some(&draft), [], [file]).await?;
        } else {
            self.git(Some(&draft), &["update-index", "-z", "--index-info"], &entry).await?.success()?;
        }
        self.tree(&draft).await
    }

    /// Whether there is anything to commit in a draft.
    async fn differs(&self, draft: &Draft) -> Result<bool, GitError> {
        let Some(base) = &draft.base else {
            return Ok(!self.git(Some(draft), &["ls-files", "-z"], b"").await?.success()?.is_empty());
        };
        let base = self.ask(&["rev-parse", "--verify", &format!("{base}^{{tree}}")]).await?;
        Ok(self.tree(draft).await? != base)
    }

    /// Makes a draft that was committed the index. For work trees of ours: all that is in their index is in the commit too.
    pub(crate) async fn adopt(&self, draft: &Draft) -> Result<(), GitError> {
        let draft = draft.index();
        let adopt = move |disk: &Disk, index: &Path| {
            // A new file that is renamed, because a session could have put a link to somewhere else there.
            let mut copy = disk.temporary_file(index.parent().unwrap_or(index), "posse-index-")?;
            copy.write_all(&disk.read(&draft)?)?;
            // With its time, by which git knows what it has to read again.
            copy.as_file().set_modified(disk.metadata(&draft)?.modified()?)?;
            disk.persist(copy, index)
        };
        disk::at(self.index(), adopt).await.map_err(failed("cannot write an index"))
    }

    /// Commits files as they are in the work tree, without others, and nothing else; `None` if that is what HEAD says. `staged`:
    /// the draft may differ from HEAD. The user's index is not touched: `stage` brings it up to date.
    pub(crate) async fn commit_only<'a>(
        &self,
        draft: &Draft,
        staged: bool,
        add: impl IntoIterator<Item = &'a GitPath>,
        remove: impl IntoIterator<Item = &'a GitPath>,
        message: &str,
    ) -> Result<Option<String>, GitError> {
        let from_scratch = staged || draft.base.is_none();
        if from_scratch {
            self.reset(draft).await?;
        }
        self.stage(Some(draft), add, remove).await?;
        if from_scratch && !self.differs(draft).await? {
            return Ok(None);
        }
        match self.commit(draft, message).await {
            // Changed to the eye, but for git the same once it is entered.
            Err(GitError::Failed { .. }) if !self.differs(draft).await? => Ok(None),
            committed => committed.map(Some),
        }
    }

    /// Whether the user does not want git to see a path.
    pub(crate) async fn ignores(&self, path: &GitPath) -> Result<bool, GitError> {
        Ok(self.git(None, &["check-ignore", "-z", "--stdin"], &joined([path])).await?.either()?.0)
    }

    /// The paths in which a draft, or the user's index, and a commit differ.
    pub(crate) async fn unlike(&self, draft: Option<&Draft>, commit: &str) -> Result<BTreeSet<GitPath>, GitError> {
        let arguments = ["diff-index", "--cached", "-z", "--name-only", "--no-renames", commit, "--"];
        let said = self.git(draft, &arguments, b"").await?.success()?;
        Ok(paths(&said).collect())
    }
}

pub(crate) fn paths(said: &[u8]) -> impl Iterator<Item = GitPath> {
    said.split(|byte| *byte == 0).filter(|path| !path.is_empty()).map(|path| GitPath(path.to_vec()))
}
