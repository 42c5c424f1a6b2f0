//! The stop file: a file that stops the runs and pipelines of a project, for users who cannot or do not want to call a command.
//!
//! Every run of the project journals the stop, and the last one to do so removes the file. A file that is older than a run
//! does not stop it. After a restart no file is removed before all runs are resumed.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, UNIX_EPOCH};

use posse_core::engine::StopHow;
use posse_core::ids::RunId;
use posse_core::time::Wall;
use tokio::sync::mpsc;

use super::lock;
use crate::disk::{self, Disk};
use crate::watched_files::{FileWatch, WatchScope, WatchedFiles};

/// The name of the file in the state directory.
const NAME: &str = "stop";
/// Where the original orchestrator looks for it.
const LEGACY: &str = ".claude/plans/.stop";
/// The clock of the file system is a little behind the clock that dates the start of a run.
const CLOCKS_MS: i64 = 20;
/// An empty file that is younger than this may still be written: one in a new directory is found before its writer closes it.
const WRITING_MS: i64 = 100;

#[derive(Clone)]
pub(crate) struct StopFiles {
    watcher: WatchedFiles,
    /// Never locked while a thread waits for the disk.
    subscribers: Arc<Mutex<StopSubscribers>>,
    /// Serializes the removal of files. Only blocking threads take it.
    removal: Arc<Mutex<()>>,
}

#[derive(Default)]
struct StopSubscribers {
    /// All runs that were active when the last daemon ended are subscribed again.
    complete: bool,
    files: HashMap<PathBuf, WatchedStopFile>,
}

struct WatchedStopFile {
    _watch: FileWatch,
    runs: BTreeMap<RunId, StopSubscriber>,
    /// The time of the file that a run dealt with which ended before all runs were resumed.
    used: Option<i64>,
}

struct StopSubscriber {
    changed: mpsc::UnboundedSender<()>,
    /// The time of the file that this run dealt with.
    dealt_with: Option<i64>,
}

/// A stop file that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FoundStopFile {
    pub(crate) path: PathBuf,
    pub(crate) meaning: StopFileMeaning,
    modified: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StopFileMeaning {
    Stop(StopHow),
    /// The file is older than the run.
    Stale,
}

impl StopFiles {
    pub(crate) fn new(watcher: WatchedFiles) -> Self {
        Self { watcher, subscribers: Arc::default(), removal: Arc::default() }
    }

    /// Called when all runs are resumed: files that all of them dealt with may be removed.
    pub(crate) async fn all_are_resumed(&self) {
        let files: Vec<PathBuf> = {
            let mut all = lock(&self.subscribers);
            all.complete = true;
            all.files.keys().cloned().collect()
        };
        for file in files {
            self.remove_if_used(file).await;
        }
    }

    /// Watches the stop files of a project for a run that began at `since`. `state` is relative to the project; a run without
    /// has no stop files.
    pub(crate) fn watch(&self, project: &Path, state: Option<&str>, run: RunId, since: Wall) -> StopWatch {
        let (send, changed) = mpsc::unbounded_channel();
        let paths = state.map(|state| [project.join(state).join(NAME), project.join(LEGACY)]);
        let paths: Vec<PathBuf> = paths.into_iter().flatten().collect();
        let mut all = lock(&self.subscribers);
        for path in &paths {
            let add = || WatchedStopFile { _watch: self.watch_file(path), runs: BTreeMap::new(), used: None };
            let subscriber = StopSubscriber { changed: send.clone(), dealt_with: None };
            all.files.entry(path.clone()).or_insert_with(add).runs.insert(run, subscriber);
        }
        // The file may exist already, and another run may have begun the watch.
        let _ = send.send(());
        drop(all);
        StopWatch { of: self.clone(), run, since, paths, changed, look_again: send }
    }

    /// Notifies the subscribers of this file whenever it may have changed.
    fn watch_file(&self, path: &Path) -> FileWatch {
        let subscribers = Arc::downgrade(&self.subscribers);
        let file = path.to_owned();
        self.watcher.watch(path, WatchScope::CompleteFile, move |_, _| {
            let Some(subscribers) = subscribers.upgrade() else { return };
            for subscriber in lock(&subscribers).files.get(&file).iter().flat_map(|watched| watched.runs.values()) {
                let _ = subscriber.changed.send(());
            }
        })
    }

    /// Removes the file if all its subscribers dealt with it as it is now, and forgets it if it has no subscribers.
    async fn remove_if_used(&self, path: PathBuf) {
        let stop_files = self.clone();
        disk::run(move |disk| {
            let _removal = lock(&stop_files.removal);
            let modified = modified(disk, &path);
            if !lock(&stop_files.subscribers).is_used(&path, modified) {
                return;
            }
            match disk.remove_file(&path) {
                // The next file may be written within the same tick of the clock.
                Ok(()) => lock(&stop_files.subscribers).forget_time(&path),
                Err(error) => tracing::warn!("{error}"),
            }
        })
        .await;
    }
}

impl StopSubscribers {
    /// Reports whether all subscribers dealt with the file of this time. A file without subscribers is used only if its last
    /// subscriber dealt with it before all runs were resumed.
    fn is_used(&mut self, path: &Path, modified: Option<i64>) -> bool {
        let Some(watched) = self.files.get_mut(path).filter(|_| self.complete) else { return false };
        let used = watched.used.take();
        if watched.runs.is_empty() {
            self.files.remove(path);
            return modified.is_some() && used == modified;
        }
        modified.is_some() && watched.runs.values().all(|run| run.dealt_with == modified)
    }

    fn forget_time(&mut self, path: &Path) {
        for run in self.files.get_mut(path).into_iter().flat_map(|watched| watched.runs.values_mut()) {
            run.dealt_with = None;
        }
    }
}

/// The subscription of one run to its stop files.
pub(crate) struct StopWatch {
    of: StopFiles,
    run: RunId,
    since: Wall,
    paths: Vec<PathBuf>,
    /// A stop file may have changed.
    pub(crate) changed: mpsc::UnboundedReceiver<()>,
    look_again: mpsc::UnboundedSender<()>,
}

impl StopWatch {
    /// Returns a stop file that this run has not dealt with yet.
    pub(crate) async fn look(&mut self) -> Option<FoundStopFile> {
        if self.paths.is_empty() {
            return None;
        }
        let dealt_with = |path: &PathBuf| {
            let all = lock(&self.of.subscribers);
            (path.clone(), all.files.get(path).and_then(|watched| watched.runs.get(&self.run)?.dealt_with))
        };
        let known: Vec<_> = self.paths.iter().map(dealt_with).collect();
        let since = self.since;
        let now = crate::now();
        let find = move |disk: &Disk| {
            let mut being_written = false;
            let found = known.into_iter().find_map(|(path, dealt_with)| {
                let modified = modified(disk, &path).filter(|modified| dealt_with != Some(*modified))?;
                let meaning = if modified + CLOCKS_MS < since.0 {
                    StopFileMeaning::Stale
                } else {
                    let text = disk.read_text(&path).unwrap_or_default();
                    if may_be_unfinished(&text, modified, now) {
                        being_written = true;
                        return None;
                    }
                    StopFileMeaning::Stop(how(&text))
                };
                Some(FoundStopFile { path, meaning, modified })
            });
            (found, being_written)
        };
        let (found, being_written) = disk::run(find).await;
        if being_written {
            let look_again = self.look_again.clone();
            crate::spawn(async move {
                tokio::time::sleep(Duration::from_millis(WRITING_MS.unsigned_abs())).await;
                let _ = look_again.send(());
            });
        }
        found
    }

    /// Called when the run has journaled what it found. The last run to do so removes the file.
    pub(crate) async fn dealt_with(&self, found: &FoundStopFile) {
        if let Some(watched) = lock(&self.of.subscribers).files.get_mut(&found.path)
            && let Some(run) = watched.runs.get_mut(&self.run)
        {
            run.dealt_with = Some(found.modified);
        }
        self.of.remove_if_used(found.path.clone()).await;
    }

    /// Ends the subscription. The future removes files that only this run had not dealt with.
    fn leave(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut all = lock(&self.of.subscribers);
        let StopSubscribers { complete, files } = &mut *all;
        for path in &self.paths {
            let Some(watched) = files.get_mut(path) else { continue };
            let left = watched.runs.remove(&self.run);
            if !*complete {
                watched.used = left.and_then(|run| run.dealt_with).or(watched.used);
            }
        }
        let (stop_files, paths) = (self.of.clone(), self.paths.clone());
        async move {
            for path in paths {
                stop_files.remove_if_used(path).await;
            }
        }
    }
}

impl Drop for StopWatch {
    fn drop(&mut self) {
        let left = self.leave();
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(left);
        }
    }
}

/// Returns when a regular file was written, in milliseconds.
fn modified(disk: &Disk, path: &Path) -> Option<i64> {
    let found = disk.symlink_metadata(path).ok().filter(std::fs::Metadata::is_file)?;
    let since_1970 = found.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    i64::try_from(since_1970.as_millis()).ok()
}

/// Whether the writer of a file may not have written its content yet.
fn may_be_unfinished(text: &str, modified: i64, now: Wall) -> bool {
    text.is_empty() && now.0.abs_diff(modified) < WRITING_MS.unsigned_abs()
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

    /// As they are once everyone has been taken up.
    async fn stop_files() -> StopFiles {
        let files = StopFiles::new(WatchedFiles::start());
        files.all_are_resumed().await;
        files
    }

    async fn found(watch: &mut StopWatch) -> FoundStopFile {
        loop {
            if let Some(found) = watch.look().await {
                return found;
            }
            let changed = tokio::time::timeout(std::time::Duration::from_secs(20), watch.changed.recv()).await;
            changed.expect("the file is seen").unwrap();
        }
    }

    /// Does something, and waits until that is noticed.
    async fn stirs(watch: &mut StopWatch, something: impl FnOnce()) {
        assert_eq!(watch.look().await, None);
        while watch.changed.try_recv().is_ok() {}
        something();
        let changed = tokio::time::timeout(std::time::Duration::from_secs(20), watch.changed.recv()).await;
        changed.expect("it is noticed").unwrap();
    }

    #[tokio::test]
    async fn it_is_seen_wherever_its_directories_come_from() {
        let project = tempfile::tempdir().unwrap();
        let files = stop_files().await;
        let mut watch = files.watch(project.path(), Some(".posse/state"), run(1), Wall(0));
        let state = project.path().join(".posse/state");
        let write = |text: &str| {
            std::fs::create_dir_all(&state).unwrap();
            std::fs::write(state.join("stop"), text).unwrap();
        };
        stirs(&mut watch, || write("")).await;
        let first = found(&mut watch).await;
        assert_eq!((first.meaning, &first.path), (StopFileMeaning::Stop(StopHow::AfterTask), &state.join("stop")));
        watch.dealt_with(&first).await;
        assert!(!state.join("stop").exists(), "it is used up");
        // The place of the original, later.
        let old = project.path().join(".claude/plans");
        stirs(&mut watch, || std::fs::create_dir_all(&old).unwrap()).await;
        std::fs::write(old.join(".new"), "now\n").unwrap();
        stirs(&mut watch, || std::fs::rename(old.join(".new"), old.join(".stop")).unwrap()).await;
        let second = found(&mut watch).await;
        assert_eq!(second.meaning, StopFileMeaning::Stop(StopHow::Now));
        watch.dealt_with(&second).await;
        // A directory that goes and comes again is no hiding place.
        stirs(&mut watch, || std::fs::remove_dir_all(project.path().join(".posse")).unwrap()).await;
        stirs(&mut watch, || write("now")).await;
        let third = found(&mut watch).await;
        watch.dealt_with(&third).await;
        watch.leave().await;
        // Nor is it one for who comes later.
        let mut later = files.watch(project.path(), Some(".posse/state"), run(2), Wall(0));
        stirs(&mut later, || write("")).await;
        assert_eq!(found(&mut later).await.meaning, StopFileMeaning::Stop(StopHow::AfterTask));
    }

    #[test]
    fn only_a_new_and_empty_file_may_be_unfinished() {
        for (text, now, unfinished) in [("", 1_050, true), ("", 950, true), ("now", 1_050, false), ("", 1_100, false)] {
            assert_eq!(may_be_unfinished(text, 1_000, Wall(now)), unfinished, "{text:?} at {now}");
        }
        assert!(!may_be_unfinished("", 1_000_000, Wall(0)), "the clock of the file system is wrong");
    }

    #[tokio::test]
    async fn it_goes_when_everyone_has_dealt_with_it() {
        let project = tempfile::tempdir().unwrap();
        std::fs::create_dir(project.path().join("state")).unwrap();
        let file = project.path().join("state/stop");
        let files = stop_files().await;
        let watch = |number, since| files.watch(project.path(), Some("state"), run(number), Wall(since));
        let (mut one, mut two, mut three) = (watch(1, 0), watch(2, 0), watch(3, 0));
        std::fs::write(&file, "after-task").unwrap();
        let first = found(&mut one).await;
        one.dealt_with(&first).await;
        assert!(file.exists() && one.look().await.is_none(), "others have not seen it yet; it is told once");
        let second = found(&mut two).await;
        two.dealt_with(&second).await;
        assert!(file.exists());
        // One that ends before it has dealt with it does not hold it up for ever.
        assert_eq!(three.look().await.map(|found| found.meaning), Some(StopFileMeaning::Stop(StopHow::AfterTask)));
        three.leave().await;
        assert!(!file.exists(), "all that are left have");
        // But it does not use it up if nobody has.
        std::fs::write(&file, "after-task").unwrap();
        one.leave().await;
        two.leave().await;
        assert!(file.exists());
    }

    #[tokio::test]
    async fn a_file_from_before_is_not_meant_for_who_comes_later() {
        let project = tempfile::tempdir().unwrap();
        std::fs::create_dir(project.path().join("state")).unwrap();
        let file = project.path().join("state/stop");
        std::fs::write(&file, "now").unwrap();
        let written = modified(DISK, &file).unwrap();
        let files = stop_files().await;
        let mut late = files.watch(project.path(), Some("state"), run(1), Wall(written + 1000));
        let stale = late.look().await.unwrap();
        assert_eq!(stale.meaning, StopFileMeaning::Stale);
        late.dealt_with(&stale).await;
        assert!(!file.exists(), "it is cleared");
        // Written while it was being started.
        std::fs::write(&file, "now").unwrap();
        let mut during = files.watch(project.path(), Some("state"), run(2), Wall(modified(DISK, &file).unwrap() + 5));
        assert_eq!(during.look().await.unwrap().meaning, StopFileMeaning::Stop(StopHow::Now));
        // No link leads anywhere.
        std::fs::remove_file(&file).unwrap();
        std::os::unix::fs::symlink("/etc/hostname", &file).unwrap();
        assert_eq!(during.look().await, None);
    }

    /// After a restart runs are taken up one after the other. The first must not use up what is meant for all.
    #[tokio::test]
    async fn nothing_goes_before_everyone_is_taken_up() {
        // Whether the first is over before everyone is there, and whether there is a second.
        for (first_ends, second) in [(false, true), (true, true), (false, false), (true, false)] {
            let name = format!("the first ends: {first_ends}, there is a second: {second}");
            let project = tempfile::tempdir().unwrap();
            std::fs::create_dir(project.path().join("state")).unwrap();
            let file = project.path().join("state/stop");
            std::fs::write(&file, "now").unwrap();
            let files = StopFiles::new(WatchedFiles::start());
            let watch = |number| files.watch(project.path(), Some("state"), run(number), Wall(0));
            let mut one = watch(1);
            let found = one.look().await.unwrap();
            one.dealt_with(&found).await;
            assert!(one.look().await.is_none(), "{name}: told once");
            if first_ends {
                one.leave().await;
            }
            assert!(file.exists(), "{name}: others may come");
            let mut two = second.then(|| watch(2));
            files.all_are_resumed().await;
            assert_eq!(file.exists(), second, "{name}");
            if let Some(two) = &mut two {
                let found = two.look().await.unwrap();
                assert_eq!(found.meaning, StopFileMeaning::Stop(StopHow::Now), "{name}");
                two.dealt_with(&found).await;
                assert!(!file.exists(), "{name}: it is used up");
            }
        }
        // One that nobody has dealt with stays, whoever was there.
        let project = tempfile::tempdir().unwrap();
        std::fs::create_dir(project.path().join("state")).unwrap();
        let file = project.path().join("state/stop");
        std::fs::write(&file, "now").unwrap();
        let files = StopFiles::new(WatchedFiles::start());
        files.watch(project.path(), Some("state"), run(1), Wall(0)).leave().await;
        files.all_are_resumed().await;
        assert!(file.exists());
    }
}
