//! The stop file: a file that stops the runs and pipelines of a project, for users who cannot or do not want to call a command.
//!
//! A stop file is delivered to every run that watches it, and removed when all of them have journaled it. A file that
//! is older than a run does not stop it. After a restart, stop files are read only once all runs are resumed, because a
//! file applies to all of them.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, UNIX_EPOCH};

use posse_core::engine::StopHow;
use posse_core::ids::RunId;
use posse_core::time::Wall;
use tokio::runtime::Handle;
use tokio::sync::mpsc;

use super::lock;
use crate::disk::{self, Disk};
use crate::watched_files::{FileWatch, WatchScope, WatchedFiles};

const NAME: &str = "stop";
/// The path that the original orchestrator checks.
const LEGACY: &str = ".claude/plans/.stop";
/// The clock of the file system is a little behind the clock that dates the start of a run.
const CLOCKS_MS: i64 = 20;
/// An empty file that is younger than this may still be written: one in a new directory is found before its writer closes it.
const WRITING_MS: i64 = 100;

#[derive(Clone)]
pub(crate) struct StopFiles {
    watcher: WatchedFiles,
    /// Never locked while a thread waits for the disk.
    watched: Arc<Mutex<WatchedStopFiles>>,
}

#[derive(Default)]
struct WatchedStopFiles {
    /// All runs that were active when the last daemon ended watch their files again.
    complete: bool,
    files: HashMap<PathBuf, WatchedStopFile>,
}

struct WatchedStopFile {
    _watch: FileWatch,
    runs: BTreeMap<RunId, mpsc::UnboundedSender<Arc<StopFile>>>,
}

/// A stop file that was found. It is removed when every notified run has dropped this, if one has journaled it.
#[derive(Debug)]
pub(crate) struct StopFile {
    pub(crate) path: PathBuf,
    modified: i64,
    how: StopHow,
    journaled: AtomicBool,
}

impl StopFile {
    pub(crate) fn is_journaled(&self) {
        self.journaled.store(true, Ordering::Relaxed);
    }
}

impl Drop for StopFile {
    fn drop(&mut self) {
        if *self.journaled.get_mut()
            && let Ok(runtime) = Handle::try_current()
        {
            let (path, found) = (std::mem::take(&mut self.path), self.modified);
            runtime.spawn(disk::at(path, move |disk, path| {
                if modified(disk, path) == Some(found) {
                    let _ = disk.remove_file(path).inspect_err(|error| tracing::warn!("{error}"));
                }
            }));
        }
    }
}

impl StopFiles {
    pub(crate) fn new(watcher: WatchedFiles) -> Self {
        Self { watcher, watched: Arc::default() }
    }

    /// Called when all runs are resumed.
    pub(crate) fn all_are_resumed(&self) {
        let mut watched = lock(&self.watched);
        watched.complete = true;
        watched.files.keys().for_each(|path| look(&Handle::current(), &self.watched, path));
    }

    /// Watches the stop files of a project for a run that began at `since`. `state` is relative to the project; a run without
    /// has no stop files.
    pub(crate) fn watch(&self, project: &Path, state: Option<&str>, run: RunId, since: Wall) -> StopWatch {
        let (send, found) = mpsc::unbounded_channel();
        let paths = state.map(|state| [project.join(state).join(NAME), project.join(LEGACY)]);
        let paths: Vec<PathBuf> = paths.into_iter().flatten().collect();
        let mut watched = lock(&self.watched);
        for path in &paths {
            let add = || WatchedStopFile { _watch: self.watch_file(path), runs: BTreeMap::new() };
            watched.files.entry(path.clone()).or_insert_with(add).runs.insert(run, send.clone());
        }
        drop(watched);
        let watch =
            StopWatch { watched: self.watched.clone(), run, since, paths, found, told: Vec::new(), _open: send };
        // Another run may have begun the watch, and the file may be there.
        watch.look();
        watch
    }

    fn watch_file(&self, path: &Path) -> FileWatch {
        let (watched, file, runtime) = (Arc::downgrade(&self.watched), path.to_owned(), Handle::current());
        self.watcher.watch(path, WatchScope::CompleteFile, move |_, _| {
            if let Some(watched) = watched.upgrade() {
                look(&runtime, &watched, &file);
            }
        })
    }
}

/// Notifies all runs of the file if it exists.
fn look(runtime: &Handle, watched: &Arc<Mutex<WatchedStopFiles>>, path: &Path) {
    let (watched, path) = (watched.clone(), path.to_owned());
    runtime.spawn(async move {
        let Some((modified, how)) = complete(&path).await else { return };
        let watched = lock(&watched);
        let Some(runs) = watched.files.get(&path).map(|file| &file.runs).filter(|_| watched.complete) else { return };
        let file = Arc::new(StopFile { path, modified, how, journaled: AtomicBool::new(false) });
        for run in runs.values() {
            let _ = run.send(file.clone());
        }
    });
}

/// The subscription of one run to its stop files.
pub(crate) struct StopWatch {
    watched: Arc<Mutex<WatchedStopFiles>>,
    run: RunId,
    since: Wall,
    paths: Vec<PathBuf>,
    found: mpsc::UnboundedReceiver<Arc<StopFile>>,
    /// The files that this run knows, and their times.
    told: Vec<(PathBuf, i64)>,
    /// Keeps the channel of a run without stop files open.
    _open: mpsc::UnboundedSender<Arc<StopFile>>,
}

impl StopWatch {
    /// Looks for the files, of which some change may not have been reported.
    pub(crate) fn look(&self) {
        self.paths.iter().for_each(|path| look(&Handle::current(), &self.watched, path));
    }

    /// Waits for a stop file. Returns it with what it asks for, which is nothing if it is older than the run.
    pub(crate) async fn next(&mut self) -> (Arc<StopFile>, Option<StopHow>) {
        loop {
            let Some(file) = self.found.recv().await else { return std::future::pending().await };
            let known = (file.path.clone(), file.modified);
            if !self.told.contains(&known) {
                self.told.push(known);
                let how = (file.modified + CLOCKS_MS >= self.since.0).then_some(file.how);
                return (file, how);
            }
        }
    }
}

impl Drop for StopWatch {
    fn drop(&mut self) {
        let mut watched = lock(&self.watched);
        for path in &self.paths {
            if let Some(file) = watched.files.get_mut(path) {
                file.runs.remove(&self.run);
            }
        }
        watched.files.retain(|_, file| !file.runs.is_empty());
    }
}

/// The time of the file and what it asks for, if it is there. Waits until its writer has had the time to write it.
async fn complete(path: &Path) -> Option<(i64, StopHow)> {
    loop {
        let read = |disk: &Disk, path: &Path| Some((modified(disk, path)?, disk.read_text(path).unwrap_or_default()));
        let (modified, text) = disk::at(path, read).await?;
        let may_be_unfinished = text.is_empty() && crate::now().0.abs_diff(modified) < WRITING_MS.unsigned_abs();
        if !may_be_unfinished {
            return Some((modified, how(&text)));
        }
        tokio::time::sleep(Duration::from_millis(WRITING_MS.unsigned_abs())).await;
    }
}

/// Returns when a regular file was written, in milliseconds.
fn modified(disk: &Disk, path: &Path) -> Option<i64> {
    let found = disk.symlink_metadata(path).ok().filter(std::fs::Metadata::is_file)?;
    let since_1970 = found.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    i64::try_from(since_1970.as_millis()).ok()
}

/// Returns what the content asks for. Any content stops.
fn how(text: &str) -> StopHow {
    match text.split_whitespace().next() {
        Some(word) if word.eq_ignore_ascii_case("now") => StopHow::Now,
        _ => StopHow::AfterTask,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::DISK;

    fn run(number: u32) -> RunId {
        RunId::from_random(number)
    }

    async fn soon<T>(future: impl Future<Output = T>) -> T {
        tokio::time::timeout(Duration::from_secs(20), future).await.expect("it happens")
    }

    /// Waits for the next stop file, which the run journals.
    async fn told(watch: &mut StopWatch) -> (PathBuf, Option<StopHow>) {
        let (file, how) = soon(watch.next()).await;
        file.is_journaled();
        (file.path.clone(), how)
    }

    async fn is_told_nothing(watch: &mut StopWatch) -> bool {
        tokio::time::timeout(Duration::from_millis(50), watch.next()).await.is_err()
    }

    async fn gone(file: &Path) {
        soon(async {
            while std::fs::symlink_metadata(file).is_ok() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
    }

    #[tokio::test]
    async fn it_is_seen_wherever_its_directories_come_from() {
        let project = tempfile::tempdir().unwrap();
        let files = StopFiles::new(WatchedFiles::start());
        files.all_are_resumed();
        let (state, old) = (project.path().join(".posse/state"), project.path().join(".claude/plans"));
        let write = |text: &str| {
            std::fs::create_dir_all(&state).unwrap();
            std::fs::write(state.join("stop"), text).unwrap();
        };
        let mut watch = files.watch(project.path(), Some(".posse/state"), run(1), Wall(0));
        write("");
        assert_eq!(told(&mut watch).await, (state.join("stop"), Some(StopHow::AfterTask)));
        gone(&state.join("stop")).await;
        // The place of the original, later.
        std::fs::create_dir_all(&old).unwrap();
        std::fs::write(old.join(".new"), "now\n").unwrap();
        std::fs::rename(old.join(".new"), old.join(".stop")).unwrap();
        assert_eq!(told(&mut watch).await, (old.join(".stop"), Some(StopHow::Now)));
        // A directory that goes and comes again is no hiding place.
        std::fs::remove_dir_all(project.path().join(".posse")).unwrap();
        write("now");
        assert_eq!(told(&mut watch).await.1, Some(StopHow::Now));
        gone(&state.join("stop")).await;
        drop(watch);
        // Nor does it affect later watchers.
        let mut later = files.watch(project.path(), Some(".posse/state"), run(2), Wall(0));
        write("after-task");
        assert_eq!(told(&mut later).await.1, Some(StopHow::AfterTask));
    }

    #[tokio::test]
    async fn it_goes_when_everyone_who_is_left_has_journaled_it() {
        let project = tempfile::tempdir().unwrap();
        std::fs::create_dir(project.path().join("state")).unwrap();
        let file = project.path().join("state/stop");
        let files = StopFiles::new(WatchedFiles::start());
        let watch = |number| files.watch(project.path(), Some("state"), run(number), Wall(0));
        // After a restart runs are resumed one after the other. The first must not use up what is meant for all.
        std::fs::write(&file, "now").unwrap();
        let (mut one, two) = (watch(1), watch(2));
        one.look();
        assert!(is_told_nothing(&mut one).await, "others may come");
        files.all_are_resumed();
        assert_eq!(told(&mut one).await.1, Some(StopHow::Now));
        // A run that joins meanwhile is notified too.
        let mut three = watch(3);
        one.look();
        assert!(is_told_nothing(&mut one).await && file.exists(), "others have not journaled it; it is told once");
        // A run that ends before does not block the removal.
        drop(two);
        assert_eq!(told(&mut three).await.1, Some(StopHow::Now));
        gone(&file).await;
        // But the file stays if no run has journaled it.
        std::fs::write(&file, "now").unwrap();
        let found = (soon(one.next()).await, soon(three.next()).await);
        drop((one, three, found));
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert!(file.exists());
    }

    #[tokio::test]
    async fn a_file_from_before_is_not_meant_for_who_comes_later() {
        let project = tempfile::tempdir().unwrap();
        std::fs::create_dir(project.path().join("state")).unwrap();
        let file = project.path().join("state/stop");
        std::fs::write(&file, "now").unwrap();
        let written = modified(DISK, &file).unwrap();
        let files = StopFiles::new(WatchedFiles::start());
        files.all_are_resumed();
        let mut late = files.watch(project.path(), Some("state"), run(1), Wall(written + 1000));
        assert_eq!(told(&mut late).await.1, None);
        gone(&file).await;
        drop(late);
        // Written while it was being started.
        std::fs::write(&file, "now").unwrap();
        let mut during = files.watch(project.path(), Some("state"), run(2), Wall(modified(DISK, &file).unwrap() + 5));
        assert_eq!(told(&mut during).await.1, Some(StopHow::Now));
        gone(&file).await;
        // No link leads anywhere.
        std::os::unix::fs::symlink("/etc/hostname", &file).unwrap();
        during.look();
        assert!(is_told_nothing(&mut during).await);
    }
}
