//! One daemon and one keeper per home. The lock is the kernel's, so it dies with its holder; what is written into
//! the file tells people who holds it.

use std::fs::{File, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Who holds the lock. The boot id tells a holder from before a reboot apart.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    pub pid: u32,
    pub started: jiff::Timestamp,
    pub boot_id: String,
}

#[derive(Debug, thiserror::Error)]
pub enum LockError {
    #[error("another one runs for this home{}: stop it with `posse stop`", describe(.0.as_ref()))]
    Held(Option<Holder>),
    #[error("cannot lock {path}: {error}")]
    Io { path: std::path::PathBuf, error: io::Error },
}

fn describe(holder: Option<&Holder>) -> String {
    holder.map(|h| format!(" (process {}, since {})", h.pid, h.started.strftime("%F %T UTC"))).unwrap_or_default()
}

/// Held as long as this value lives.
pub struct Lock {
    file: File,
}

impl Lock {
    /// Keeps the lock until the process has ended, so that whoever waits for the lock waits for that.
    pub fn until_exit(self) {
        std::mem::forget(self.file);
    }
}

/// Takes the lock, or says who has it. A holder that is about to end is waited for, for a moment: the kernel closes
/// a dying process's files one after the other, and the lock may be the last.
pub fn acquire(path: &Path, patience: Duration) -> Result<Lock, LockError> {
    let io = |error| LockError::Io { path: path.to_owned(), error };
    let mut options = File::options();
    let mut file = options.create(true).truncate(false).read(true).write(true).mode(0o600).open(path).map_err(io)?;
    if !lock_within(&file, patience).map_err(io)? {
        let mut text = String::new();
        let _ = file.read_to_string(&mut text);
        return Err(LockError::Held(serde_json::from_str(&text).ok()));
    }
    let holder = Holder {
        pid: std::process::id(),
        started: jiff::Timestamp::now(),
        boot_id: std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().into(),
    };
    // A disk too full for these few bytes is no reason not to run: the lock itself holds.
    let _ = file.set_len(0).and_then(|()| file.rewind()).and_then(|()| {
        let text = serde_json::to_string(&holder)?;
        file.write_all(text.as_bytes())
    });
    Ok(Lock { file })
}

fn lock_within(file: &File, patience: Duration) -> io::Result<bool> {
    match file.try_lock() {
        Ok(()) => return Ok(true),
        Err(TryLockError::Error(error)) => return Err(error),
        Err(TryLockError::WouldBlock) => {}
    }
    // Waiting with a limit takes a thread; given up on, it ends with the process, which is what comes next.
    let (waiting, (done, outcome)) = (file.try_clone()?, mpsc::channel());
    std::thread::spawn(move || done.send(waiting.lock()));
    match outcome.recv_timeout(patience) {
        Ok(locked) => locked.map(|()| true),
        Err(_) => Ok(false),
    }
}

/// Waits until nobody holds the lock: until the process that held it has ended.
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
    fn the_second_is_told_who_the_first_is() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        let first = acquire(&path, Duration::ZERO).unwrap();
        let second = acquire(&path, Duration::ZERO);
        let Err(LockError::Held(Some(holder))) = second else { panic!("the lock was given twice") };
        assert_eq!(holder.pid, std::process::id());
        drop(first);
        acquire(&path, Duration::from_secs(10)).unwrap();
    }

    /// T88: the file names a process that lives, but it is another one that got the number of the holder.
    #[test]
    fn a_number_in_the_file_holds_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        let (started, boot_id) = (jiff::Timestamp::UNIX_EPOCH, "another boot".to_owned());
        let stale = Holder { pid: std::process::id(), started, boot_id };
        std::fs::write(&path, serde_json::to_string(&stale).unwrap()).unwrap();
        let lock = acquire(&path, Duration::ZERO).unwrap();
        let holder: Holder = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        assert_ne!((holder.started, &holder.boot_id), (stale.started, &stale.boot_id));
        drop(lock);
    }
}
