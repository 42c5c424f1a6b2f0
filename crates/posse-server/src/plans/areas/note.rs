//! What is written down about an area, so that whoever comes after a crash goes on where we stopped.

use std::io;
use std::path::{Path, PathBuf};

use posse_core::plan::machine::RunId;
use serde::{Deserialize, Serialize};

use super::in_place::Start;
use super::{AreaError, Areas, work_of};
use crate::serve::{write_private, write_private_unsynced};

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
}

impl Areas {
    pub(super) fn note_path(&self, run: &RunId) -> PathBuf {
        self.state.join("areas").join(format!("{}.json", work_of(run)))
    }

    pub(super) fn note(&self, run: &RunId) -> Result<Option<Note>, AreaError> {
        read(&self.note_path(run))
    }

    /// Of an area that was made.
    pub(super) fn known(&self, run: &RunId) -> Result<Note, AreaError> {
        self.note(run)?.ok_or_else(|| AreaError::NotMade(run.to_string()))
    }

    pub(super) fn write_note(&self, run: &RunId, note: &Note) -> Result<(), AreaError> {
        let path = self.note_path(run);
        // Until something of the user's is at stake, all of it can be found out again or done anew.
        let written = match note.landing.is_some() || note.in_place.is_some() {
            true => write(&path, note),
            false => {
                serde_json::to_vec(note).map_err(io::Error::from).and_then(|text| write_private_unsynced(&path, &text))
            }
        };
        written.map_err(|error| AreaError::Write { path, error })
    }

    /// Knows this area too, which an earlier run of the plan has made. Both runs have the note then: the work is there as long
    /// as one of them needs it. Whether there is one, in the user's checkout or not as this run wants it.
    pub fn adopt(&self, earlier: &Path, run: &RunId, in_place: bool) -> Result<bool, AreaError> {
        let path = self.note_path(run);
        let known: Option<Note> = read(&earlier.join("areas").join(path.file_name().unwrap_or_default()))?;
        match known.filter(|note| note.ready && note.in_place.is_some() == in_place) {
            Some(note) => self.write_note(run, &note).map(|()| true),
            None => Ok(false),
        }
    }

    /// All of them, with their files.
    pub(super) fn notes(&self) -> Result<Vec<(PathBuf, Note)>, AreaError> {
        let directory = self.state.join("areas");
        let failed = |error| AreaError::Write { path: directory.clone(), error };
        let mut notes = Vec::new();
        for entry in directory.read_dir().map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            if is_note(&path)
                && let Some(note) = read(&path)?
            {
                notes.push((path, note));
            }
        }
        notes.sort_by(|(a, _), (b, _)| a.cmp(b));
        Ok(notes)
    }
}

/// Whether there are notes of areas in the directory of a run. What cannot be looked at may hold anything.
pub(in crate::plans) fn has_notes(state: &Path) -> bool {
    match state.join("areas").read_dir() {
        Ok(mut entries) => entries.any(|entry| entry.map_or(true, |entry| is_note(&entry.path()))),
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    }
}

/// A note, and not what a crash has left of the writing of one.
fn is_note(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "json")
}

pub(super) fn read<T: serde::de::DeserializeOwned>(path: &Path) -> Result<Option<T>, AreaError> {
    let text = match std::fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        text => text.map_err(|error| AreaError::Write { path: path.to_owned(), error })?,
    };
    serde_json::from_slice(&text).map(Some).map_err(|error| AreaError::Note { path: path.to_owned(), error })
}

/// As a whole or not at all, and not lost when the power goes.
pub(super) fn write(path: &Path, value: &impl Serialize) -> io::Result<()> {
    write_private(path, &serde_json::to_vec(value)?)?;
    std::fs::File::open(path.parent().unwrap_or(Path::new(".")))?.sync_all()
}
