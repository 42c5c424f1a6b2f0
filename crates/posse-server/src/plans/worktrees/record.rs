//! What is written down about a work tree, so that the next daemon continues after a crash. git does not know these facts: which
//! commit a session began with, which commit its work ends with, and what was the user's in a shared checkout.

use std::io;
use std::path::{Path, PathBuf};

use posse_core::plan::machine::RunId;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::in_place::Start;
use super::{Result, TaskWorktree, WorktreeError, Worktrees, work_of};
use crate::disk::{self, Disk};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct WorktreeRecord {
    pub(super) worktree: TaskWorktree,
    /// The directory has all its files. Before that no session was in it.
    pub(super) ready: bool,
    /// The last commit of the work. What comes after it is not merged.
    pub(super) final_commit: Option<String>,
    /// Set if the session works in the user's checkout.
    pub(super) in_place: Option<Start>,
}

impl WorktreeRecord {
    pub(super) fn new(run: &RunId, branch: String, directory: PathBuf, base: String) -> Self {
        let worktree = TaskWorktree { run: work_of(run), directory, branch, base };
        Self { worktree, ready: false, final_commit: None, in_place: None }
    }

    /// The ref that holds the work; in the user's checkout, the ref of what was there before.
    pub(super) fn kept_at(&self) -> String {
        match &self.in_place {
            Some(start) => start.saved.clone(),
            None => format!("refs/heads/{}", self.worktree.branch),
        }
    }
}

fn path_in(state: &Path, run: &RunId) -> PathBuf {
    state.join("records").join(format!("{}.json", work_of(run)))
}

impl Worktrees {
    pub(super) fn record_path(&self, run: &RunId) -> PathBuf {
        path_in(&self.state, run)
    }

    pub(super) async fn record(&self, run: &RunId) -> Result<Option<WorktreeRecord>> {
        disk::at(self.record_path(run), read).await
    }

    /// The record of a work tree that was made.
    pub(super) async fn known_record(&self, run: &RunId) -> Result<WorktreeRecord> {
        self.record(run).await?.ok_or_else(|| WorktreeError::NotMade(run.to_string()))
    }

    /// Without anything of the user's at stake, what is lost when the power goes can be found out again or done anew.
    pub(super) async fn write_record(&self, record: &WorktreeRecord) -> Result<()> {
        let (path, record) = (self.record_path(&record.worktree.run), record.clone());
        disk::at(path, move |disk, path| write(disk, path, &record, record.in_place.is_some())).await
    }

    /// Returns a function that takes over a work tree of an earlier run, if there is one, in the user's checkout or not as this
    /// run wants it. Both runs have the record then: the work is kept as long as one of them needs it.
    pub(crate) fn adoption(
        &self,
        earlier: PathBuf,
        in_place: bool,
    ) -> impl Fn(&Disk, &RunId) -> Result<bool> + Send + use<> {
        let state = self.state.clone();
        move |disk, run| {
            let known: Option<WorktreeRecord> = read(disk, &path_in(&earlier, run))?;
            match known.filter(|record| record.ready && record.in_place.is_some() == in_place) {
                Some(record) => write(disk, &path_in(&state, run), &record, record.in_place.is_some()).map(|()| true),
                None => Ok(false),
            }
        }
    }

    pub(super) async fn records(&self) -> Result<Vec<(PathBuf, WorktreeRecord)>> {
        let read_all = |disk: &Disk, directory: &Path| {
            let mut files: Vec<PathBuf> = Vec::new();
            for entry in disk.read_dir(directory).map_err(WorktreeError::write(directory))? {
                files.extend(entry.map(|entry| entry.path()).ok().filter(|path| is_record(path)));
            }
            files.sort();
            let record = |file: PathBuf| Ok(read(disk, &file)?.map(|record| (file, record)));
            files.into_iter().filter_map(|file| record(file).transpose()).collect()
        };
        disk::at(self.state.join("records"), read_all).await
    }
}

/// Whether there are records of work trees in the directory of a run. A directory that cannot be read may hold any.
pub(crate) fn has_records(disk: &Disk, state: &Path) -> bool {
    match disk.read_dir(&state.join("records")) {
        Ok(mut entries) => entries.any(|entry| entry.map_or(true, |entry| is_record(&entry.path()))),
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    }
}

/// Distinguishes a record from what a crash has left of the writing of one.
fn is_record(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "json")
}

pub(super) fn read<T: DeserializeOwned>(disk: &Disk, path: &Path) -> Result<Option<T>> {
    let text = match disk.read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        text => text.map_err(WorktreeError::write(path))?,
    };
    serde_json::from_slice(&text).map(Some).map_err(|error| WorktreeError::Record { path: path.to_owned(), error })
}

/// Writes a file as a whole or not at all. With `sync` it is not lost when the power goes.
pub(super) fn write(disk: &Disk, path: &Path, value: &impl Serialize, sync: bool) -> Result<()> {
    let text = serde_json::to_vec(value).map_err(|error| WorktreeError::Record { path: path.to_owned(), error })?;
    let written = match sync {
        true => disk.write_private(path, &text).and_then(|()| disk.sync_dir(path.parent().unwrap_or(path))),
        false => disk.write_private_unsynced(path, &text),
    };
    written.map_err(WorktreeError::write(path))
}
