//! The files of a run: what agents answer with, where that is kept, and the state file.

use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use posse_core::review_loop::Key;
use posse_core::review_loop::state::{FinalStatus, StateFile};
use posse_core::time::Wall;
use posse_core::turn::Look;
use posse_core::turn::files::{self, SETTLED, Sighting, Suffix};
use serde_json::{Map, Value};
use tokio::sync::mpsc::UnboundedSender;

use crate::disk::{self, Disk};
use crate::project_files::{make_directory, make_room};
use crate::watched_files::{FileHint, FileWatch, WatchScope, WatchedFiles};

/// More than is ever taken of an answer (`files::decode` cuts at 1 MB).
const MOST: u64 = 2 << 20;

/// Below the project.
const TMP: &str = ".tmp";
const RESPONSES: &str = ".tmp/agent-responses";

#[derive(Clone, Debug)]
pub(crate) struct RunFiles {
    project: PathBuf,
    responses: PathBuf,
    archive: PathBuf,
    state_file: PathBuf,
}

impl RunFiles {
    pub(super) fn new(directory: &str, stamp: &str, state_file: &str) -> Self {
        let directory = Path::new(directory);
        Self {
            project: directory.to_owned(),
            responses: directory.join(RESPONSES),
            archive: directory.join(".tmp").join(stamp),
            state_file: state_file.into(),
        }
    }

    /// Returns the path of this turn's response in this project.
    pub(crate) fn response_in(directory: &Path, key: Key) -> PathBuf {
        directory.join(RESPONSES).join(key.file_name())
    }

    pub(super) fn archive(&self) -> &Path {
        &self.archive
    }

    /// Makes the directories, again if they were removed.
    pub(super) fn prepare(&self, disk: &Disk) -> io::Result<()> {
        for directory in [&self.responses, &self.archive] {
            make_directory(disk, &self.project, directory.strip_prefix(&self.project).unwrap_or(directory))?;
        }
        ignore_in_git(disk, &self.project)
    }

    pub(super) fn response(&self, key: Key) -> PathBuf {
        self.responses.join(key.file_name())
    }

    /// Sends a message whenever the response file of this turn may have changed: whether it was renamed into place.
    pub(super) async fn watch(&self, files: &WatchedFiles, key: Key, tell: UnboundedSender<bool>) -> FileWatch {
        let run_files = self.clone();
        if let Err(error) = disk::run(move |disk| run_files.prepare(disk)).await {
            tracing::warn!("{error}");
        }
        files.watch(&self.response(key), WatchScope::CompleteFile, move |_, hint| {
            let _ = tell.send(matches!(hint, FileHint::Renamed(_)));
        })
    }

    /// Reads the response file. `placed`: it is known to have been renamed into place. `lived_until`: as in the effect.
    pub(super) async fn look(&self, key: Key, lived_until: Option<Wall>, placed: bool) -> Look {
        let path = self.response(key);
        let first = match disk::at(&path, sight).await {
            Ok(Some(sighting)) => sighting,
            Ok(None) => return Look::NotRegular,
            Err(error) if error.kind() == ErrorKind::NotFound => return Look::Absent,
            Err(error) => return Look::Unreadable(error.to_string()),
        };
        let settled = jiff::Timestamp::try_from(first.modified + SETTLED);
        let is_whole = |until: Wall| first.renamed || settled.is_ok_and(|settled| settled <= until.timestamp());
        if lived_until.is_some_and(|until| !is_whole(until)) {
            tracing::warn!("{} may be cut short and is not used: its agent is gone", key.file_name());
            return Look::Absent;
        }
        if !placed {
            tokio::time::sleep(SETTLED).await;
        }
        match disk::at(path, read).await {
            Ok((second, bytes)) if second == first => {
                let (look, notes) = Look::at(&bytes);
                for note in notes {
                    tracing::warn!("{}: {note}", key.file_name());
                }
                look
            }
            Ok(_) => Look::Unsettled,
            Err(error) if error.kind() == ErrorKind::NotFound => Look::Absent,
            Err(error) => Look::Unreadable(error.to_string()),
        }
    }

    /// Moves the response file to the archive under this number, and returns its new name; `None` if there is none.
    pub(super) async fn keep(&self, key: Key, number: u32, suffix: Option<Suffix>) -> io::Result<Option<String>> {
        let files = self.clone();
        let keep = move |disk: &Disk, from: &Path| {
            if disk.symlink_metadata(from).is_err_and(|error| error.kind() == ErrorKind::NotFound) {
                return Ok(None);
            }
            files.prepare(disk)?;
            let taken = |name: &str| disk.symlink_metadata(&files.archive.join(name)).is_ok();
            let name = files::archive_name(number, key.as_str(), suffix, &taken);
            match disk.rename(from, &files.archive.join(&name)) {
                // Another process removed it in between.
                Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
                moved => moved.map(|()| Some(name)),
            }
        };
        disk::at(self.response(key), keep).await
    }

    /// As `keep`, for an answer that is in the journal already, or came too late: if it cannot be moved it is left where it is.
    pub(super) async fn keep_if_possible(&self, key: Key, number: u32, suffix: Option<Suffix>) -> Option<String> {
        self.keep(key, number, suffix).await.unwrap_or_else(|error| {
            tracing::warn!("the response file is left where it is: {error}");
            None
        })
    }

    pub(super) fn write_state(&self, disk: &Disk, mut state: StateFile) {
        for (name, value) in self.of_others(disk) {
            state.other.entry(name).or_insert(value);
        }
        let write = || {
            let text = state.write()?;
            make_room(disk, &self.project, &self.state_file)?;
            disk.write_private(&self.state_file, text.as_bytes())
        };
        if let Err(error) = write() {
            tracing::warn!("the state file {} cannot be written: {error}", self.state_file.display());
        }
    }

    /// Returns the fields that other programs have written into the state file of a run that is not over (LOOP-48).
    fn of_others(&self, disk: &Disk) -> Map<String, Value> {
        let text = disk.read_text(&self.state_file).unwrap_or_default();
        let known = StateFile::read(&text).ok().filter(|state| state.final_status == FinalStatus::Running);
        known.map(|state| state.other).unwrap_or_default()
    }

    /// The run is over: its state file goes to its archive.
    pub(super) fn archive_state(&self, disk: &Disk) {
        let Some(name) = self.state_file.file_name().and_then(|name| name.to_str()) else { return };
        let (stem, extension) = name.rsplit_once('.').unwrap_or((name, "json"));
        let free = (1..).map(|n| if n == 1 { name.to_owned() } else { format!("{stem}-{n}.{extension}") });
        let Some(to) = free.map(|name| self.archive.join(name)).find(|path| !disk.exists(path)) else { return };
        match self.prepare(disk).and_then(|()| disk.rename(&self.state_file, &to)) {
            Err(error) if error.kind() != ErrorKind::NotFound => tracing::warn!("{error}"),
            _ => {}
        }
    }
}

/// Creates the project's directory for temporary files, and makes git ignore it.
pub(super) fn ignore_in_git(disk: &Disk, project: &Path) -> io::Result<()> {
    make_directory(disk, project, Path::new(TMP))?;
    let mut new_file = std::fs::File::options();
    new_file.write(true).create_new(true);
    match disk.open(&project.join(TMP).join(".gitignore"), &new_file) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        made => made?.write_all(b"*\n"),
    }
}

/// `None`: it is no regular file.
fn sight(disk: &Disk, path: &Path) -> io::Result<Option<Sighting>> {
    let metadata = disk.symlink_metadata(path)?;
    Ok(metadata.is_file().then(|| sighting(&metadata)))
}

fn sighting(metadata: &std::fs::Metadata) -> Sighting {
    let modified = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
    let (changed, written) = ((metadata.ctime(), metadata.ctime_nsec()), (metadata.mtime(), metadata.mtime_nsec()));
    Sighting { len: metadata.len(), modified, inode: metadata.ino(), renamed: changed > written }
}

/// Its content, and what it was when it had been read.
fn read(disk: &Disk, path: &Path) -> io::Result<(Sighting, Vec<u8>)> {
    let file = disk.open_regular(path)?;
    let mut bytes = Vec::new();
    (&file).take(MOST).read_to_end(&mut bytes)?;
    Ok((sighting(&file.metadata()?), bytes))
}

#[cfg(test)]
mod tests;
