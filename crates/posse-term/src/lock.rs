//! Locks for one daemon and one keeper per home, and one run of the loop per project. The kernel holds the lock, so it ends
//! with its process; the file names the holder for people.

use std::fs::{File, TryLockError};
use std::io::{self, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    pub pid: u32,
    pub started: jiff::Timestamp,
    /// The purpose of the lock, if the file name does not show it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub purpose: Option<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum LockError {
    #[error("another one runs for this home{}: stop it with `posse stop`", describe(.0.as_ref()))]
    Held(Option<Holder>),
    #[error("cannot lock {path}: {error}")]
    Io { path: PathBuf, error: io::Error },
}

/// Describes the holder, in parentheses.
pub fn describe(holder: Option<&Holder>) -> String {
    holder.map(|h| format!(" (process {}, since {})", h.pid, h.started.strftime("%F %T UTC"))).unwrap_or_default()
}

/// A lock that is held as long as this value lives.
#[derive(Debug)]
pub struct Lock {
    _file: File,
    /// The file to remove with the lock, so that it does not stay in the project.
    remove: Option<PathBuf>,
}

impl Lock {
    /// Keeps the lock until the process exits, so that waiting for the lock waits for the exit.
    pub fn until_exit(self) {
        std::mem::forget(self);
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Removed while the lock is held: a process that waits for this file then sees that it is gone, and takes a new one.
        if let Some(path) = &self.remove {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Takes the lock, or returns its holder as an error. Waits up to `patience` for a holder that is about to exit: the kernel
/// closes the files of a dying process one by one, and the lock may be the last.
pub fn acquire(path: &Path, patience: Duration) -> Result<Lock, LockError> {
    take(path, patience, None)
}

/// Like [`acquire`], for a file that is removed with the lock and names its purpose.
pub fn acquire_for(purpose: &str, path: &Path, patience: Duration) -> Result<Lock, LockError> {
    take(path, patience, Some(purpose))
}

fn take(path: &Path, patience: Duration, purpose: Option<&str>) -> Result<Lock, LockError> {
    let io = |error| LockError::Io { path: path.to_owned(), error };
    // A lock file in a project could have become a link to any file of the user.
    let no_link = rustix::fs::OFlags::NOFOLLOW.bits() as i32;
    let mut options = File::options();
    options.create(true).truncate(false).read(true).write(true).mode(0o600).custom_flags(no_link);
    let mut file = loop {
        let file = options.open(path).map_err(io)?;
        if !lock_within(&file, patience).map_err(io)? {
            return Err(LockError::Held(serde_json::from_reader(file).ok()));
        }
        // The holder may have removed the file meanwhile.
        let place = |metadata: std::fs::Metadata| (metadata.dev(), metadata.ino());
        let locked = place(file.metadata().map_err(io)?);
        if std::fs::metadata(path).is_ok_and(|found| place(found) == locked) {
            break file;
        }
    };
    let holder =
        Holder { pid: std::process::id(), started: jiff::Timestamp::now(), purpose: purpose.map(str::to_owned) };
    // A full disk is no reason not to run: the lock itself holds.
    let written = serde_json::to_vec(&holder).unwrap_or_default();
    let _ = file.set_len(0).and_then(|()| file.rewind()).and_then(|()| file.write_all(&written));
    Ok(Lock { _file: file, remove: purpose.map(|_| path.to_owned()) })
}

fn lock_within(file: &File, patience: Duration) -> io::Result<bool> {
    match file.try_lock() {
        Ok(()) => return Ok(true),
        Err(TryLockError::Error(error)) => return Err(error),
        Err(TryLockError::WouldBlock) => {}
    }
    if patience.is_zero() {
        return Ok(false);
    }
    // Waiting with a timeout needs a thread. After the timeout the thread takes the lock when it is free, and releases it.
    let (waiting, (done, outcome)) = (file.try_clone()?, mpsc::channel());
    std::thread::spawn(move || done.send(waiting.lock()));
    match outcome.recv_timeout(patience) {
        Ok(locked) => locked.map(|()| true),
        Err(_) => Ok(false),
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LockStatus {
    Free,
    /// The holder is unknown if it could not be written to the file.
    Held(Option<Holder>),
}

/// Returns the state of the lock, without creating the file and without taking the lock.
pub fn look(path: &Path) -> io::Result<LockStatus> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(LockStatus::Free),
        Err(error) => return Err(error),
    };
    match file.try_lock_shared() {
        Ok(()) => Ok(LockStatus::Free),
        Err(TryLockError::Error(error)) => Err(error),
        Err(TryLockError::WouldBlock) => Ok(LockStatus::Held(serde_json::from_reader(file).ok())),
    }
}

/// Waits until the lock is free, which is when the process that held it has exited.
pub fn wait_until_free(path: &Path) -> io::Result<()> {
    match File::open(path) {
        Ok(file) => file.lock_shared(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn second_process_learns_the_holder_of_the_lock() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        assert_eq!(look(&path).unwrap(), LockStatus::Free);
        assert!(!path.exists(), "a look makes nothing");
        let first = acquire(&path, Duration::ZERO).unwrap();
        let second = acquire(&path, Duration::ZERO);
        let Err(LockError::Held(Some(holder))) = second else { panic!("the lock was given twice") };
        assert_eq!(holder.pid, std::process::id());
        assert_eq!(look(&path).unwrap(), LockStatus::Held(Some(holder)));
        drop(first);
        assert_eq!(look(&path).unwrap(), LockStatus::Free);
        acquire(&path, Duration::from_secs(10)).unwrap();
    }

    #[test]
    fn lock_is_taken_anew_if_its_file_was_removed_during_the_wait() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        let first = acquire_for("the first", &path, Duration::ZERO).unwrap();
        let Err(LockError::Held(Some(holder))) = acquire_for("another", &path, Duration::ZERO) else {
            panic!("the lock was given twice")
        };
        assert_eq!(holder.purpose.as_deref(), Some("the first"));
        let waiting = std::thread::spawn({
            let path = path.clone();
            move || acquire_for("the second", &path, Duration::from_secs(30)).unwrap()
        });
        drop(first);
        let second = waiting.join().unwrap();
        let third = acquire_for("a third", &path, Duration::ZERO);
        assert!(third.is_err(), "others must find the file that is locked");
        drop(second);
        assert!(!path.exists());
    }

    /// A process with this id, new or old, holds nothing: only the lock does.
    #[test]
    fn t88_what_is_written_in_the_file_does_not_hold_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        drop(acquire(&path, Duration::ZERO).unwrap());
        let left = std::fs::read_to_string(&path).unwrap();
        assert!(left.contains(&format!("\"pid\":{}", std::process::id())), "a living process: {left}");
        acquire(&path, Duration::ZERO).unwrap();
    }
}
