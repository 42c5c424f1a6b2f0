//! What is written down about a work tree, so that whoever comes after a crash goes on where we stopped.

use std::io;
use std::path::{Path, PathBuf};

use posse_core::plan::machine::RunId;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::in_place::Start;
use super::{WorktreeError, Worktrees, work_of};
use crate::disk::{self, Disk};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct WorktreeRecord {
    pub(super) branch: String,
    pub(super) directory: PathBuf,
    pub(super) base: String,
    /// The directory has all its files. Before that no session was in it.
    pub(super) ready: bool,
    /// The last commit of the work. What comes after it is not merged.
    pub(super) final_commit: Option<String>,
    /// What the branch of the user is about to become, or has become.
    pub(super) planned: Option<PlannedMerge>,
    /// Whose it is. Notes of older versions do not say.
    #[serde(default)]
    pub(super) run: Option<RunId>,
    /// It is no work tree of its own: the session works in the user's checkout.
    #[serde(default)]
    pub(super) in_place: Option<Start>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PlannedMerge {
    pub(super) onto: String,
    pub(super) result: String,
}

impl WorktreeRecord {
    pub(super) fn new(run: &RunId, branch: String, directory: PathBuf, base: String) -> Self {
        let run = Some(work_of(run));
        Self { branch, directory, base, ready: false, final_commit: None, planned: None, run, in_place: None }
    }

    /// Until something of the user's is at stake, all of it can be found out again or done anew.
    fn needs_sync(&self) -> bool {
        self.planned.is_some() || self.in_place.is_some()
    }
}

/// Takes over work trees of an earlier run.
pub(crate) struct Adoption {
    earlier: PathBuf,
    state: PathBuf,
    in_place: bool,
}

impl Adoption {
    /// Knows this work tree too. Both runs have the record then: the work is there as long as one of them needs it. Whether there is
    /// one.
    pub(in crate::plans) fn adopt(&self, disk: &Disk, run: &RunId) -> Result<bool, WorktreeError> {
        let known: Option<WorktreeRecord> = read_on(disk, &record_path(&self.earlier, run))?;
        match known.filter(|record| record.ready && record.in_place.is_some() == self.in_place) {
            Some(record) => write_on(disk, &record_path(&self.state, run), &record, record.needs_sync()).map(|()| true),
            None => Ok(false),
        }
    }
}

fn record_path(state: &Path, run: &RunId) -> PathBuf {
    state.join("records").join(format!("{}.json", work_of(run)))
}

impl Worktrees {
    pub(super) fn record_path(&self, run: &RunId) -> PathBuf {
        record_path(&self.state, run)
    }

    pub(super) async fn record(&self, run: &RunId) -> Result<Option<WorktreeRecord>, WorktreeError> {
        read(&self.record_path(run)).await
    }

    /// Of a work tree that was made.
    pub(super) async fn known_record(&self, run: &RunId) -> Result<WorktreeRecord, WorktreeError> {
        self.record(run).await?.ok_or_else(|| WorktreeError::NotMade(run.to_string()))
    }

    pub(super) async fn write_record(&self, run: &RunId, record: &WorktreeRecord) -> Result<(), WorktreeError> {
        let sync = record.needs_sync();
        write_as(self.record_path(run), record, sync).await
    }

    /// For work trees that an earlier run of the plan has made, in the user's checkout or not as this run wants it.
    pub(crate) fn adoption(&self, earlier: PathBuf, in_place: bool) -> Adoption {
        Adoption { earlier, state: self.state.clone(), in_place }
    }

    /// All of them, with their files.
    pub(super) async fn records(&self) -> Result<Vec<(PathBuf, WorktreeRecord)>, WorktreeError> {
        disk::at(self.state.join("records"), all_in).await
    }
}

/// Whether there are notes of work trees in the directory of a run. What cannot be looked at may hold anything.
pub(crate) fn has_records(disk: &Disk, state: &Path) -> bool {
    match disk.read_dir(&state.join("records")) {
        Ok(mut entries) => entries.any(|entry| entry.map_or(true, |entry| is_record(&entry.path()))),
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    }
}

/// A record, and not what a crash has left of the writing of one.
fn is_record(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "json")
}

fn all_in(disk: &Disk, directory: &Path) -> Result<Vec<(PathBuf, WorktreeRecord)>, WorktreeError> {
    let failed = |error| WorktreeError::Write { path: directory.to_owned(), error };
    let mut records = Vec::new();
    for entry in disk.read_dir(directory).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if is_record(&path)
            && let Some(record) = read_on(disk, &path)?
        {
            records.push((path, record));
        }
    }
    records.sort_by(|(a, _), (b, _)| a.cmp(b));
    Ok(records)
}

pub(super) async fn read<T: DeserializeOwned + Send + 'static>(path: &Path) -> Result<Option<T>, WorktreeError> {
    disk::at(path, read_on).await
}

fn read_on<T: DeserializeOwned>(disk: &Disk, path: &Path) -> Result<Option<T>, WorktreeError> {
    let text = match disk.read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        text => text.map_err(|error| WorktreeError::Write { path: path.to_owned(), error })?,
    };
    serde_json::from_slice(&text)
        .map(Some)
        .map_err(|error| WorktreeError::WorktreeRecord { path: path.to_owned(), error })
}

/// As a whole or not at all, and not lost when the power goes.
pub(super) async fn write(
    path: PathBuf,
    value: &(impl Serialize + Clone + Send + 'static),
) -> Result<(), WorktreeError> {
    write_as(path, value, true).await
}

async fn write_as(
    path: PathBuf,
    value: &(impl Serialize + Clone + Send + 'static),
    sync: bool,
) -> Result<(), WorktreeError> {
    let value = value.clone();
    disk::at(path, move |disk, path| write_on(disk, path, &value, sync)).await
}

fn write_on(disk: &Disk, path: &Path, value: &impl Serialize, sync: bool) -> Result<(), WorktreeError> {
    let text =
        serde_json::to_vec(value).map_err(|error| WorktreeError::WorktreeRecord { path: path.to_owned(), error })?;
    let written = match sync {
        true => disk.write_private(path, &text).and_then(|()| disk.sync_dir(path.parent().unwrap_or(path))),
        false => disk.write_private_unsynced(path, &text),
    };
    written.map_err(|error| WorktreeError::Write { path: path.to_owned(), error })
}
