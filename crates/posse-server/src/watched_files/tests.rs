use std::fs;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Condvar, Mutex};

use notify::event::{CreateKind, DataChange, RemoveKind};

use super::*;

const PATIENCE: Duration = Duration::from_secs(20);

/// A hint with a path of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Told {
    Scan,
    Changed(PathBuf),
    Renamed(PathBuf),
}

impl From<FileHint<'_>> for Told {
    fn from(hint: FileHint<'_>) -> Self {
        match hint {
            FileHint::Scan => Self::Scan,
            FileHint::Changed(path) => Self::Changed(path.to_owned()),
            FileHint::Renamed(path) => Self::Renamed(path.to_owned()),
        }
    }
}

fn watch(files: &WatchedFiles, path: &Path, scope: WatchScope) -> (FileWatch, Receiver<Told>) {
    let (tell, told) = channel();
    let watch = files.watch(path, scope, move |_, hint| drop(tell.send(hint.into())));
    assert_eq!(told.recv_timeout(PATIENCE), Ok(Told::Scan), "every watch begins with a scan");
    (watch, told)
}

/// Waits for this hint; those before it do not matter.
#[track_caller]
fn wait_for(told: &Receiver<Told>, hint: &Told) {
    while &told.recv_timeout(PATIENCE).expect("the hint comes") != hint {}
}

#[test]
fn each_scope_gets_the_hints_it_asked_for() {
    use EventKind::{Access, Create, Modify, Remove};
    use WatchScope::{CompleteFile, Directory, GrowingFile};
    let closed = Access(AccessKind::Close(AccessMode::Write));
    let written = Modify(ModifyKind::Data(DataChange::Any));
    let arrived = Modify(ModifyKind::Name(RenameMode::To));
    let left = Modify(ModifyKind::Name(RenameMode::From));
    let made = Create(CreateKind::Any);
    let removed = Remove(RemoveKind::Any);
    let changed = |path: &str| Some(Told::Changed(path.into()));
    let renamed = |path: &str| Some(Told::Renamed(path.into()));
    let scan = Some(Told::Scan);
    let cases = [
        (CompleteFile, "/p/d/f", closed, "/p/d/f", changed("/p/d/f")),
        (CompleteFile, "/p/d/f", arrived, "/p/d/f", renamed("/p/d/f")),
        (CompleteFile, "/p/d/f", written, "/p/d/f", None),
        (CompleteFile, "/p/d/f", made, "/p/d/f", None),
        (CompleteFile, "/p/d/f", closed, "/p/d/g", None),
        (GrowingFile, "/p/d/f", written, "/p/d/f", changed("/p/d/f")),
        (GrowingFile, "/p/d/f", written, "/p/d/g", None),
        (Directory, "/p/d", made, "/p/d/f", changed("/p/d/f")),
        (Directory, "/p/d", removed, "/p/d/f", changed("/p/d/f")),
        (Directory, "/p/d", left, "/p/d/f", changed("/p/d/f")),
        (Directory, "/p/d", closed, "/p/d/f", changed("/p/d/f")),
        (Directory, "/p/d", written, "/p/d/f", None),
        (Directory, "/p/d", closed, "/p/d/e/f", None),
        // A directory on the way comes, goes, or is replaced.
        (CompleteFile, "/p/d/f", removed, "/p/d", scan.clone()),
        (CompleteFile, "/p/d/f", made, "/p", scan.clone()),
        (Directory, "/p/d", left, "/p/d", scan.clone()),
        (Directory, "/p/d", arrived, "/p", scan),
        (Directory, "/p/d", made, "/p/e", None),
    ];
    for (scope, path, kind, of, expected) in cases {
        let interest = FileInterest::new(Path::new(path), scope, Box::new(|_, _| {}));
        let event = Event::new(kind).add_path(of.into());
        assert_eq!(interest.hint(&event).map(Told::from), expected, "{scope:?} {path}: {kind:?} {of}");
    }
}

/// Holds up the watcher's thread while the kernel's queue fills.
#[derive(Default)]
struct Gate {
    closed: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    fn set(&self, closed: bool) {
        *self.closed.lock().unwrap() = closed;
        self.opened.notify_all();
    }

    fn pass(&self) {
        drop(self.opened.wait_while(self.closed.lock().unwrap(), |closed| *closed).unwrap());
    }
}

#[test]
fn real_overflow_hides_neither_a_file_nor_a_new_directory() {
    let limit = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap();
    let limit: usize = limit.trim().parse().unwrap();
    let home = tempfile::tempdir().unwrap();
    let noise = home.path().join("noise");
    let state = home.path().join("state");
    fs::create_dir(&noise).unwrap();
    fs::create_dir(&state).unwrap();
    let gate = Arc::new(Gate::default());
    let entered = gate.clone();
    let files = WatchedFiles::start_with(move |_| entered.pass());
    let (_noise, _) = watch(&files, &noise, WatchScope::Directory);
    let (_stop, hints) = watch(&files, &state.join("stop"), WatchScope::CompleteFile);
    gate.set(true);
    // Two files in turn: the kernel merges equal events that follow each other.
    let mut writers = ["one", "two"].map(|name| fs::File::create(noise.join(name)).unwrap());
    for number in 0..limit + 1000 {
        std::io::Write::write_all(&mut writers[number % 2], b"x").unwrap();
    }
    // These events are lost.
    fs::remove_dir(&state).unwrap();
    fs::create_dir(&state).unwrap();
    fs::write(state.join("stop"), "now").unwrap();
    gate.set(false);
    wait_for(&hints, &Told::Scan);
    let stop = state.canonicalize().unwrap().join("stop");
    fs::write(&stop, "again").unwrap();
    wait_for(&hints, &Told::Changed(stop));
}

#[test]
fn file_is_seen_wherever_its_directories_come_from() {
    let home = tempfile::tempdir().unwrap();
    let real_home = home.path().canonicalize().unwrap();
    let link = home.path().join("link");
    std::os::unix::fs::symlink(&real_home, &link).unwrap();
    let files = WatchedFiles::start();
    let (_direct, direct) = watch(&files, &real_home.join("a/b/file"), WatchScope::CompleteFile);
    let (_linked, linked) = watch(&files, &link.join("a/b/file"), WatchScope::CompleteFile);
    let file = real_home.join("a/b/file");
    // The directory is made, removed, made again, and moved away.
    for round in 0..3 {
        fs::create_dir_all(real_home.join("a/b")).unwrap();
        for told in [&direct, &linked] {
            wait_for(told, &Told::Scan);
        }
        // A write before the watch is in place shows in the scan, one after it as a change.
        fs::write(&file, "x").unwrap();
        for told in [&direct, &linked] {
            while !matches!(told.recv_timeout(PATIENCE).expect("the file is seen"), Told::Changed(_)) {
                fs::write(&file, "y").unwrap();
            }
        }
        match round {
            0 => fs::remove_dir_all(real_home.join("a")).unwrap(),
            _ => fs::rename(real_home.join("a/b"), real_home.join(format!("old{round}"))).unwrap(),
        }
        for told in [&direct, &linked] {
            wait_for(told, &Told::Scan);
        }
    }
}

#[test]
fn dropped_watch_leaves_nothing_behind() {
    let (messages, inbox) = channel();
    let files = WatchedFiles { messages, numbers: Arc::default() };
    let directory = tempfile::tempdir().unwrap();
    let kernel = notify::recommended_watcher(|_| {}).ok();
    let mut watcher = FileWatcher::new(Disk::of_this_thread(), kernel);
    let one = files.watch(&directory.path().join("one"), WatchScope::GrowingFile, |_, _| {});
    let other = files.watch(&directory.path().join("other"), WatchScope::CompleteFile, |_, _| {});
    let mut work = || {
        inbox.try_iter().for_each(|message| watcher.handle(message));
        watcher.release();
        (watcher.interests.len(), watcher.watched.len())
    };
    assert_eq!(work(), (2, 1));
    drop(one);
    assert_eq!(work(), (1, 1));
    drop(other);
    assert_eq!(work(), (0, 0));
}

#[test]
fn paths_without_a_watcher_are_scanned_again_after_a_while() {
    let mut watcher = FileWatcher::new(Disk::of_this_thread(), None);
    let (tell, told) = channel();
    let interest = FileInterest::new(
        Path::new("/tmp/file"),
        WatchScope::CompleteFile,
        Box::new(move |_, hint| drop(tell.send(Told::from(hint)))),
    );
    watcher.interests.insert(1, interest);
    watcher.scan(1);
    assert!(watcher.retry_at.is_some(), "it is scanned again");
    watcher.retry();
    assert_eq!(told.try_iter().collect::<Vec<_>>(), [Told::Scan, Told::Scan]);
    assert!(watcher.retry_at.is_some(), "and again");
}
