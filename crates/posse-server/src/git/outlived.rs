//! Gits that outlive the daemon that started them, and what a killed git leaves: the lock on an index, because of which every
//! later git fails.

use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use posse_files::child::ends_within;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::{COMMIT, WorkTree};
use crate::disk::{self, Disk};

/// A git that no daemon waits for.
#[derive(Debug)]
pub(crate) struct Outlived {
    /// Its current directory: git changes to the root of its work tree first.
    directory: PathBuf,
    process: Arc<OwnedFd>,
}

impl Outlived {
    pub(crate) fn is_in(&self, directory: &Path) -> bool {
        self.directory.starts_with(directory)
    }

    /// Waits for its end, as long as a commit may take.
    pub(crate) async fn ends(&self) {
        let process = self.process.clone();
        let _ = disk::run(move |_| ends_within(&process, COMMIT)).await;
    }
}

/// All gits that run below this directory now.
pub(crate) fn in_directory(disk: &Disk, directory: &Path) -> Vec<Outlived> {
    let is_git = |process: &Path| disk.read(&process.join("comm")).is_ok_and(|name| name.starts_with(b"git"));
    let gits = processes(disk).filter(|(_, process)| is_git(process));
    let outlived = gits.filter_map(|(pid, process)| {
        let handle = pidfd_open(pid, PidfdFlags::empty()).ok()?;
        // Only now: before, the number could have become another's.
        let works_in = disk.read_link(&process.join("cwd")).ok().filter(|cwd| cwd.starts_with(directory))?;
        Some(Outlived { directory: works_in, process: Arc::new(handle) })
    });
    outlived.collect()
}

/// All processes that run now, and what tells of them.
pub(crate) fn processes(disk: &Disk) -> impl Iterator<Item = (Pid, PathBuf)> {
    let entries = disk.read_dir(Path::new("/proc")).into_iter().flatten().flatten();
    entries.filter_map(|entry| Some((Pid::from_raw(entry.file_name().to_str()?.parse().ok()?)?, entry.path())))
}

impl WorkTree {
    /// Removes the lock on its index if the git that made it is gone. Only for work trees of ours: in the user's checkout it may
    /// belong to a git that is at work.
    pub(crate) async fn unlock(&self) {
        let lock = self.lock();
        let found = |disk: &Disk, lock: &Path| {
            disk.symlink_metadata(lock).ok().map(|found| (found.ino(), found.mtime(), found.mtime_nsec()))
        };
        let Some(before) = disk::at(&lock, found).await else { return };
        for git in disk::at(&self.root, in_directory).await {
            git.ends().await;
        }
        let remove = move |disk: &Disk, lock: &Path| {
            if found(disk, lock) == Some(before) {
                tracing::warn!("removing {}: the git that made it has died", lock.display());
                let _ = disk.remove_file(lock);
            }
        };
        disk::at(lock, remove).await;
    }
}
