//! The stop file: a file that stops what goes on in a project, for who cannot or will not call a command. The kernel tells
//! when it is there.
//!
//! Everyone who goes on in the project is told, and writes it down; then the file goes. A file from before somebody was
//! started is not meant for them.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::UNIX_EPOCH;

use posse_core::ids::RunId;
use posse_core::plan::machine::StopHow;
use posse_core::time::Wall;
use tokio::sync::mpsc;

use super::lock;
use crate::watched_files::{Changed, WatchedFiles};

/// Its name in the state directory.
const NAME: &str = "stop";
/// Where the original orchestrator looks for it.
const LEGACY: &str = ".claude/plans/.stop";
/// The clock of files is a little behind the one that tells when somebody was started.
const CLOCKS_MS: i64 = 20;

/// Who watches which file, and the time of the one that they have dealt with.
type Watching = Arc<Mutex<HashMap<PathBuf, BTreeMap<RunId, Option<i64>>>>>;

#[derive(Clone)]
pub(crate) struct StopFiles {
    files: WatchedFiles,
    watching: Watching,
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
        Self { files, watching: Watching::default() }
    }

    /// Watches for the stop files of a project, for a run that was begun then. `state` is relative to the project.
    pub(crate) fn watch(&self, project: &Path, state: &str, run: RunId, since: Wall) -> StopWatch {
        let (stir, stirred) = mpsc::unbounded_channel();
        let paths = [project.join(state).join(NAME), project.join(LEGACY)];
        for path in &paths {
            lock(&self.watching).entry(path.clone()).or_default().insert(run, None);
        }
        let watched = paths.into_iter().map(|path| (path, PathBuf::new())).collect();
        let mut watch = StopWatch { of: self.clone(), run, since, watched, stir, stirred };
        watch.arm();
        watch
    }
}

/// One run's eye on the stop files.
pub(crate) struct StopWatch {
    of: StopFiles,
    run: RunId,
    since: Wall,
    /// The file, and what is watched for it: itself, or as long as there is no directory for it, that.
    watched: Vec<(PathBuf, PathBuf)>,
    stir: mpsc::UnboundedSender<()>,
    /// Something happened: look.
    pub(crate) stirred: mpsc::UnboundedReceiver<()>,
}

impl StopWatch {
    fn arm(&mut self) {
        for (path, watched) in &mut self.watched {
            let next = nearest(path);
            if *watched == next {
                continue;
            }
            watched.clone_from(&next);
            let (stir, is_file) = (self.stir.clone(), next == *path);
            let tell = move |_: &Path, how| stir.send(()).is_ok() && (is_file || how == Changed::Perhaps);
            match is_file {
                true => self.of.files.watch(&next, tell),
                false => self.of.files.watch_appearing(&next, tell),
            }
        }
    }

    /// A stop file that this run has not dealt with yet.
    pub(crate) fn look(&mut self) -> Option<Found> {
        self.arm();
        self.watched.iter().find_map(|(path, _)| {
            let modified = modified(path)?;
            let dealt_with = lock(&self.of.watching).get(path).and_then(|runs| runs.get(&self.run).copied().flatten());
            if dealt_with == Some(modified) {
                return None;
            }
            let says = match modified + CLOCKS_MS < self.since.0 {
                true => Says::Stale,
                false => Says::Stop(how(&std::fs::read_to_string(path).unwrap_or_default())),
            };
            Some(Found { path: path.clone(), says, modified })
        })
    }

    /// It is written down what came of it. When that is so everywhere, the file goes.
    pub(crate) fn dealt_with(&self, found: &Found) {
        let mut watching = lock(&self.of.watching);
        let Some(runs) = watching.get_mut(&found.path) else { return };
        runs.insert(self.run, Some(found.modified));
        tidy(&found.path, runs);
    }
}

impl Drop for StopWatch {
    fn drop(&mut self) {
        let mut watching = lock(&self.of.watching);
        for (path, _) in &self.watched {
            if let Some(runs) = watching.get_mut(path) {
                runs.remove(&self.run);
                // The last one that goes without having dealt with a file leaves it.
                if runs.is_empty() {
                    watching.remove(path);
                } else {
                    tidy(path, runs);
                }
            }
        }
    }
}

/// Removes the file if all who watch it have dealt with it as it is now.
fn tidy(path: &Path, runs: &BTreeMap<RunId, Option<i64>>) {
    let Some(modified) = modified(path) else { return };
    if runs.values().all(|dealt_with| *dealt_with == Some(modified))
        && let Err(error) = std::fs::remove_file(path)
    {
        tracing::warn!("{} stays: {error}", path.display());
    }
}

/// The file itself if its directory is there, else the first directory that is missing on the way to it.
fn nearest(path: &Path) -> PathBuf {
    let missing = path.ancestors().skip(1).take_while(|above| !above.is_dir()).last();
    missing.unwrap_or(path).to_owned()
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

    async fn found(watch: &mut StopWatch) -> Found {
        loop {
            if let Some(found) = watch.look() {
                return found;
            }
            let stirred = tokio::time::timeout(std::time::Duration::from_secs(20), watch.stirred.recv()).await;
            stirred.expect("the file is seen").unwrap();
        }
    }

    #[tokio::test]
    async fn it_is_seen_wherever_its_directories_come_from() {
        let project = tempfile::tempdir().unwrap();
        let files = StopFiles::new(WatchedFiles::start());
        let mut watch = files.watch(project.path(), ".posse/state", run(1), Wall(0));
        assert_eq!(watch.look(), None);
        let state = project.path().join(".posse/state");
        std::fs::create_dir_all(&state).unwrap();
        std::fs::write(state.join("stop"), "").unwrap();
        let first = found(&mut watch).await;
        assert_eq!((first.says, &first.path), (Says::Stop(StopHow::AfterTask), &state.join("stop")));
        watch.dealt_with(&first);
        assert!(!state.join("stop").exists(), "it is used up");
        assert_eq!(watch.look(), None);
        // The place of the original, later.
        let old = project.path().join(".claude/plans");
        std::fs::create_dir_all(&old).unwrap();
        std::fs::write(old.join(".new"), "now\n").unwrap();
        std::fs::rename(old.join(".new"), old.join(".stop")).unwrap();
        assert_eq!(found(&mut watch).await.says, Says::Stop(StopHow::Now));
    }

    #[tokio::test]
    async fn it_goes_when_everyone_has_dealt_with_it() {
        let project = tempfile::tempdir().unwrap();
        std::fs::create_dir(project.path().join("state")).unwrap();
        let file = project.path().join("state/stop");
        let files = StopFiles::new(WatchedFiles::start());
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
        let files = StopFiles::new(WatchedFiles::start());
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
}
