//! What is written down about an area, so that whoever comes after a crash goes on where we stopped.

use std::io;
use std::path::{Path, PathBuf};

use posse_core::plan::machine::RunId;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::in_place::Start;
use super::{AreaError, Areas, work_of};
use crate::disk::{self, Disk};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Note {
    pub(super) branch: String,
    pub(super) directory: PathBuf,
    pub(super) base: String,
    /// The directory has all its files. Before that no session was in it.
    pub(super) ready: bool,
    /// The last commit of the work. What comes after it is not merged.
    pub(super) sealed: Option<String>,
    /// What the branch of the user is about to become, or has become.
    pub(super) landing: Option<Landing>,
    /// Whose it is. Notes of older versions do not say.
    #[serde(default)]
    pub(super) run: Option<RunId>,
    /// It is no area of its own: the session works in the user's checkout.
    #[serde(default)]
    pub(super) in_place: Option<Start>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Landing {
    pub(super) onto: String,
    pub(super) result: String,
}

impl Note {
    pub(super) fn new(run: &RunId, branch: String, directory: PathBuf, base: String) -> Self {
        let run = Some(work_of(run));
        Self { branch, directory, base, ready: false, sealed: None, landing: None, run, in_place: None }
    }

    /// Until something of the user's is at stake, all of it can be found out again or done anew.
    fn needs_sync(&self) -> bool {
        self.landing.is_some() || self.in_place.is_some()
    }
}

/// Takes over areas of an earlier run.
pub(crate) struct Adoption {
    earlier: PathBuf,
    state: PathBuf,
    in_place: bool,
}

impl Adoption {
    /// Knows this area too. Both runs have the note then: the work is there as long as one of them needs it. Whether there is
    /// one.
    pub(in crate::plans) fn adopt(&self, disk: &Disk, run: &RunId) -> Result<bool, AreaError> {
        let known: Option<Note> = read_on(disk, &note_path(&self.earlier, run))?;
        match known.filter(|note| note.ready && note.in_place.is_some() == self.in_place) {
            Some(note) => write_on(disk, &note_path(&self.state, run), &note, note.needs_sync()).map(|()| true),
            None => Ok(false),
        }
    }
}

fn note_path(state: &Path, run: &RunId) -> PathBuf {
    state.join("areas").join(format!("{}.json", work_of(run)))
}

impl Areas {
    pub(super) fn note_path(&self, run: &RunId) -> PathBuf {
        note_path(&self.state, run)
    }

    pub(super) async fn note(&self, run: &RunId) -> Result<Option<Note>, AreaError> {
        read(&self.note_path(run)).await
    }

    /// Of an area that was made.
    pub(super) async fn known(&self, run: &RunId) -> Result<Note, AreaError> {
        self.note(run).await?.ok_or_else(|| AreaError::NotMade(run.to_string()))
    }

    pub(super) async fn write_note(&self, run: &RunId, note: &Note) -> Result<(), AreaError> {
        let sync = note.needs_sync();
        write_as(self.note_path(run), note, sync).await
    }

    /// For areas that an earlier run of the plan has made, in the user's checkout or not as this run wants it.
    pub(crate) fn adoption(&self, earlier: PathBuf, in_place: bool) -> Adoption {
        Adoption { earlier, state: self.state.clone(), in_place }
    }

    /// All of them, with their files.
    pub(super) async fn notes(&self) -> Result<Vec<(PathBuf, Note)>, AreaError> {
        disk::at(self.state.join("areas"), all_in).await
    }
}

/// Whether there are notes of areas in the directory of a run. What cannot be looked at may hold anything.
pub(crate) fn has_notes(disk: &Disk, state: &Path) -> bool {
    match disk.read_dir(&state.join("areas")) {
        Ok(mut entries) => entries.any(|entry| entry.map_or(true, |entry| is_note(&entry.path()))),
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    }
}

/// A note, and not what a crash has left of the writing of one.
fn is_note(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "json")
}

fn all_in(disk: &Disk, directory: &Path) -> Result<Vec<(PathBuf, Note)>, AreaError> {
    let failed = |error| AreaError::Write { path: directory.to_owned(), error };
    let mut notes = Vec::new();
    for entry in disk.read_dir(directory).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if is_note(&path)
            && let Some(note) = read_on(disk, &path)?
        {
            notes.push((path, note));
        }
    }
    notes.sort_by(|(a, _), (b, _)| a.cmp(b));
    Ok(notes)
}

pub(super) async fn read<T: DeserializeOwned + Send + 'static>(path: &Path) -> Result<Option<T>, AreaError> {
    disk::at(path, read_on).await
}

fn read_on<T: DeserializeOwned>(disk: &Disk, path: &Path) -> Result<Option<T>, AreaError> {
    let text = match disk.read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        text => text.map_err(|error| AreaError::Write { path: path.to_owned(), error })?,
    };
    serde_json::from_slice(&text).map(Some).map_err(|error| AreaError::Note { path: path.to_owned(), error })
}

/// As a whole or not at all, and not lost when the power goes.
pub(super) async fn write(path: PathBuf, value: &(impl Serialize + Clone + Send + 'static)) -> Result<(), AreaError> {
    write_as(path, value, true).await
}

async fn write_as(
    path: PathBuf,
    value: &(impl Serialize + Clone + Send + 'static),
    sync: bool,
) -> Result<(), AreaError> {
    let value = value.clone();
    disk::at(path, move |disk, path| write_on(disk, path, &value, sync)).await
}

fn write_on(disk: &Disk, path: &Path, value: &impl Serialize, sync: bool) -> Result<(), AreaError> {
    let text = serde_json::to_vec(value).map_err(|error| AreaError::Note { path: path.to_owned(), error })?;
    let written = match sync {
        true => disk.write_private(path, &text).and_then(|()| disk.sync_dir(path.parent().unwrap_or(path))),
        false => disk.write_private_unsynced(path, &text),
    };
    written.map_err(|error| AreaError::Write { path: path.to_owned(), error })
}
