//! The stop file: a file that stops what goes on in a project, for who cannot or will not call a command.
//!
//! Everyone who goes on in the project is told, and writes it down; then the file goes. A file from before somebody was
//! started is not meant for them. After a restart nothing goes before everyone has been taken up again.

#![expect(clippy::disallowed_methods, reason = "not moved to the disk module yet")]

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::UNIX_EPOCH;

use posse_core::ids::RunId;
use posse_core::plan::machine::StopHow;
use posse_core::time::Wall;
use posse_term::text_file;
use tokio::sync::mpsc;

use super::lock;
use crate::watched_files::{FileWatch, WatchScope, WatchedFiles};

/// Its name in the state directory.
const NAME: &str = "stop";
/// Where the original orchestrator looks for it.
const LEGACY: &str = ".claude/plans/.stop";
/// The clock of files is a little behind the one that tells when somebody was started.
const CLOCKS_MS: i64 = 20;

type All = Arc<Mutex<Everyone>>;

#[derive(Default)]
struct Everyone {
    /// All who went on when the last daemon ended are there again.
    complete: bool,
    /// The stop files that somebody watches for, by their paths.
    files: HashMap<PathBuf, WatchedStopFile>,
}

struct WatchedStopFile {
    _watch: FileWatch,
    runs: BTreeMap<RunId, StopSubscriber>,
    /// The time of the file that somebody had dealt with who left before everyone was there.
    used: Option<i64>,
}

struct StopSubscriber {
    changed: mpsc::UnboundedSender<()>,
    /// The time of the file that was dealt with.
    dealt_with: Option<i64>,
}

#[derive(Clone)]
pub(crate) struct StopFiles {
    files: WatchedFiles,
    all: All,
}

/// A stop file that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) path: PathBuf,
    pub(crate) says: Says,
    modified: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Says {
    Stop(StopHow),
    /// It is older than who looks at it.
    Stale,
}

impl StopFiles {
    pub(crate) fn new(files: WatchedFiles) -> Self {
        Self { files, all: All::default() }
    }

    /// Everyone who went on when the last daemon ended watches again: what all of them have dealt with may go.
    pub(crate) fn everyone_is_there(&self) {
        let mut all = lock(&self.all);
        all.complete = true;
        all.files.retain(|path, watched| {
            watched.tidy(path);
            !watched.runs.is_empty()
        });
    }

    /// Watches for the stop files of a project, for a run that was begun then. `state` is relative to the project.
    pub(crate) fn watch(&self, project: &Path, state: &str, run: RunId, since: Wall) -> StopWatch {
        let (send, changed) = mpsc::unbounded_channel();
        let paths = [project.join(state).join(NAME), project.join(LEGACY)];
        let mut all = lock(&self.all);
        for path in &paths {
            let add = || WatchedStopFile { _watch: self.watch_file(path), runs: BTreeMap::new(), used: None };
            let subscriber = StopSubscriber { changed: send.clone(), dealt_with: None };
            all.files.entry(path.clone()).or_insert_with(add).runs.insert(run, subscriber);
        }
        // The file may be there already, and other runs may have begun the watch.
        let _ = send.send(());
        drop(all);
        StopWatch { of: self.clone(), run, since, paths, changed }
    }

    /// Notifies the subscribers of this file whenever it may have changed.
    fn watch_file(&self, path: &Path) -> FileWatch {
        let all = Arc::downgrade(&self.all);
        let file = path.to_owned();
        self.files.watch(path, WatchScope::CompleteFile, move |_| {
            let Some(all) = all.upgrade() else { return };
            for subscriber in lock(&all).files.get(&file).iter().flat_map(|watched| watched.runs.values()) {
                let _ = subscriber.changed.send(());
            }
        })
    }
}

/// One run's eye on the stop files.
pub(crate) struct StopWatch {
    of: StopFiles,
    run: RunId,
    since: Wall,
    paths: [PathBuf; 2],
    /// A stop file may have changed.
    pub(crate) changed: mpsc::UnboundedReceiver<()>,
}

impl StopWatch {
    /// A stop file that this run has not dealt with yet.
    pub(crate) fn look(&mut self) -> Option<Found> {
        self.paths.iter().find_map(|path| {
            let modified = modified(path)?;
            let dealt_with =
                lock(&self.of.all).files.get(path).and_then(|watched| watched.runs.get(&self.run)?.dealt_with);
            if dealt_with == Some(modified) {
                return None;
            }
            let says = match modified + CLOCKS_MS < self.since.0 {
                true => Says::Stale,
                false => Says::Stop(how(&text_file::read(path).unwrap_or_default())),
            };
            Some(Found { path: path.clone(), says, modified })
        })
    }

    /// It is written down what came of it. When that is so everywhere, the file goes.
    pub(crate) fn dealt_with(&self, found: &Found) {
        let mut all = lock(&self.of.all);
        let complete = all.complete;
        let Some(watched) = all.files.get_mut(&found.path) else { return };
        if let Some(watcher) = watched.runs.get_mut(&self.run) {
            watcher.dealt_with = Some(found.modified);
        }
        if complete {
            watched.tidy(&found.path);
        }
    }
}

impl Drop for StopWatch {
    fn drop(&mut self) {
        let mut all = lock(&self.of.all);
        for path in &self.paths {
            let complete = all.complete;
            let Some(watched) = all.files.get_mut(path) else { continue };
            let gone = watched.runs.remove(&self.run);
            if complete {
                watched.tidy(path);
                if watched.runs.is_empty() {
                    all.files.remove(path);
                }
            } else {
                watched.used = gone.and_then(|watcher| watcher.dealt_with).or(watched.used);
            }
        }
    }
}

impl WatchedStopFile {
    /// Removes the file if all who watch for it have dealt with it as it is now. If nobody is left, nobody has.
    fn tidy(&mut self, path: &Path) {
        let used = self.used.take();
        let Some(modified) = modified(path).filter(|at| !self.runs.is_empty() || used == Some(*at)) else { return };
        if self.runs.values().any(|watcher| watcher.dealt_with != Some(modified)) {
            return;
        }
        match std::fs::remove_file(path) {
            // The next one may be written within the same tick of the clock.
            Ok(()) => self.runs.values_mut().for_each(|watcher| watcher.dealt_with = None),
            Err(error) => tracing::warn!("{} stays: {error}", path.display()),
        }
    }
}

/// When it was written, in milliseconds. Nothing if it is not a plain file.
fn modified(path: &Path) -> Option<i64> {
    let found = std::fs::symlink_metadata(path).ok().filter(std::fs::Metadata::is_file)?;
    let since_1970 = found.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    i64::try_from(since_1970.as_millis()).ok()
}

/// `now`, or whatever else: a stop is a stop.
fn how(text: &str) -> StopHow {
    match text.split_whitespace().next() {
        Some(word) if word.eq_ignore_ascii_case("now") => StopHow::Now,
        _ => StopHow::AfterTask,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(number: u32) -> RunId {
        RunId::from_random(number)
    }

    /// As they are once everyone has been taken up.
    fn stop_files() -> StopFiles {
        let files = StopFiles::new(WatchedFiles::start());
        files.everyone_is_there();
        files
    }

    async fn found(watch: &mut StopWatch) -> Found {
        loop {
            if let Some(found) = watch.look() {
                return found;
            }
            let changed = tokio::time::timeout(std::time::Duration::from_secs(20), watch.changed.recv()).await;
            changed.expect("the file is seen").unwrap();
        }
    }

    /// Does something, and waits until that is noticed.
    async fn stirs(watch: &mut StopWatch, something: impl FnOnce()) {
        assert_eq!(watch.look(), None);
        while watch.changed.try_recv().is_ok() {}
        something();
        let changed = tokio::time::timeout(std::time::Duration::from_secs(20), watch.changed.recv()).await;
        changed.expect("it is noticed").unwrap();
    }

    #[tokio::test]
    async fn it_is_seen_wherever_its_directories_come_from() {
        let project = tempfile::tempdir().unwrap();
        let files = stop_files();
        let mut watch = files.watch(project.path(), ".posse/state", run(1), Wall(0));
        let state = project.path().join(".posse/state");
        let write = |text: &str| {
            std::fs::create_dir_all(&state).unwrap();
            std::fs::write(state.join("stop"), text).unwrap();
        };
        stirs(&mut watch, || write("")).await;
        let first = found(&mut watch).await;
        assert_eq!((first.says, &first.path), (Says::Stop(StopHow::AfterTask), &state.join("stop")));
        watch.dealt_with(&first);
        assert!(!state.join("stop").exists(), "it is used up");
        // The place of the original, later.
        let old = project.path().join(".claude/plans");
        stirs(&mut watch, || std::fs::create_dir_all(&old).unwrap()).await;
        std::fs::write(old.join(".new"), "now\n").unwrap();
        stirs(&mut watch, || std::fs::rename(old.join(".new"), old.join(".stop")).unwrap()).await;
        let second = found(&mut watch).await;
        assert_eq!(second.says, Says::Stop(StopHow::Now));
        watch.dealt_with(&second);
        // A directory that goes and comes again is no hiding place.
        stirs(&mut watch, || std::fs::remove_dir_all(project.path().join(".posse")).unwrap()).await;
        stirs(&mut watch, || write("now")).await;
        let third = found(&mut watch).await;
        watch.dealt_with(&third);
        drop(watch);
        // Nor is it one for who comes later.
        let mut later = files.watch(project.path(), ".posse/state", run(2), Wall(0));
        stirs(&mut later, || write("")).await;
        assert_eq!(found(&mut later).await.says, Says::Stop(StopHow::AfterTask));
    }

    #[tokio::test]
    async fn it_goes_when_everyone_has_dealt_with_it() {
        let project = tempfile::tempdir().unwrap();
        std::fs::create_dir(project.path().join("state")).unwrap();
        let file = project.path().join("state/stop");
        let files = stop_files();
        let watch = |number, since| files.watch(project.path(), "state", run(number), Wall(since));
        let (mut one, mut two, mut three) = (watch(1, 0), watch(2, 0), watch(3, 0));
        std::fs::write(&file, "after-task").unwrap();
        let first = found(&mut one).await;
        one.dealt_with(&first);
        assert!(file.exists() && one.look().is_none(), "others have not seen it yet; it is told once");
        let second = found(&mut two).await;
        two.dealt_with(&second);
        assert!(file.exists());
        // One that ends before it has dealt with it does not hold it up for ever.
        assert_eq!(three.look().map(|found| found.says), Some(Says::Stop(StopHow::AfterTask)));
        drop(three);
        assert!(!file.exists(), "all that are left have");
        // But it does not use it up if nobody has.
        std::fs::write(&file, "after-task").unwrap();
        drop((one, two));
        assert!(file.exists());
    }

    #[tokio::test]
    async fn a_file_from_before_is_not_meant_for_who_comes_later() {
        let project = tempfile::tempdir().unwrap();
        std::fs::create_dir(project.path().join("state")).unwrap();
        let file = project.path().join("state/stop");
        std::fs::write(&file, "now").unwrap();
        let written = modified(&file).unwrap();
        let files = stop_files();
        let mut late = files.watch(project.path(), "state", run(1), Wall(written + 1000));
        let stale = late.look().unwrap();
        assert_eq!(stale.says, Says::Stale);
        late.dealt_with(&stale);
        assert!(!file.exists(), "it is cleared");
        // Written while it was being started.
        std::fs::write(&file, "now").unwrap();
        let mut during = files.watch(project.path(), "state", run(2), Wall(modified(&file).unwrap() + 5));
        assert_eq!(during.look().unwrap().says, Says::Stop(StopHow::Now));
        // No link leads anywhere.
        std::fs::remove_file(&file).unwrap();
        std::os::unix::fs::symlink("/etc/hostname", &file).unwrap();
        assert_eq!(during.look(), None);
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
            let watch = |number| files.watch(project.path(), "state", run(number), Wall(0));
            let mut one = watch(1);
            let found = one.look().unwrap();
            one.dealt_with(&found);
            assert!(one.look().is_none(), "{name}: told once");
            let _one = (!first_ends).then_some(one);
            assert!(file.exists(), "{name}: others may come");
            let mut two = second.then(|| watch(2));
            files.everyone_is_there();
            assert_eq!(file.exists(), second, "{name}");
            if let Some(two) = &mut two {
                let found = two.look().unwrap();
                assert_eq!(found.says, Says::Stop(StopHow::Now), "{name}");
                two.dealt_with(&found);
                assert!(!file.exists(), "{name}: it is used up");
            }
        }
        // One that nobody has dealt with stays, whoever was there.
        let project = tempfile::tempdir().unwrap();
        std::fs::create_dir(project.path().join("state")).unwrap();
        let file = project.path().join("state/stop");
        std::fs::write(&file, "now").unwrap();
        let files = StopFiles::new(WatchedFiles::start());
        drop(files.watch(project.path(), "state", run(1), Wall(0)));
        files.everyone_is_there();
        assert!(file.exists());
    }
}
