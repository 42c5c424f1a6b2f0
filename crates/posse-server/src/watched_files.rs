//! Files somebody waits for. The kernel tells when one changes; nothing polls.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::Errno;

/// Room for a few hundred changes; what does not fit stays in the kernel until the next read.
const BUFFER: usize = 16 << 10;

/// How a file changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Changed {
    /// It may have been there before.
    Perhaps,
    /// Whoever wrote it has closed it.
    Written,
    /// It was renamed into place, and so is complete.
    Placed,
    /// There is more in it; told only to who asked for that.
    Grown,
    /// It came or went; told only to who watches the whole directory.
    Stirred,
}

/// Hears of a file. `false`: nobody is interested any more.
type Tell = Box<dyn Fn(&Path, Changed) -> bool + Send>;

/// Watches files, all with one thread.
#[derive(Clone)]
pub(crate) struct WatchedFiles {
    /// `None`: the kernel has no watcher for us.
    watcher: Option<Arc<Watcher>>,
}

impl WatchedFiles {
    pub(crate) fn start() -> Self {
        let started = inotify::init(CreateFlags::CLOEXEC).map_err(io::Error::from).and_then(|kernel| {
            let watcher = Arc::new(Watcher { kernel, watched: Mutex::default() });
            let reader = watcher.clone();
            std::thread::Builder::new().name("watched-files".into()).spawn(move || reader.run())?;
            Ok(watcher)
        });
        let watcher = started.inspect_err(|error| tracing::warn!("files are not watched: {error}"));
        Self { watcher: watcher.ok() }
    }

    /// Tells of this file now, and whenever it changes. Its directory must be there.
    pub(crate) fn watch(&self, file: &Path, tell: impl Fn(&Path, Changed) -> bool + Send + 'static) {
        let flags = WatchFlags::CLOSE_WRITE | WatchFlags::MOVED_TO;
        self.add(file, flags, Box::new(tell));
    }

    /// As `watch`, and also tells while it is being written. For files in a directory of their own.
    pub(crate) fn watch_growing(&self, file: &Path, tell: impl Fn(&Path, Changed) -> bool + Send + 'static) {
        let flags = WatchFlags::CLOSE_WRITE | WatchFlags::MOVED_TO | WatchFlags::MODIFY;
        self.add(file, flags, Box::new(tell));
    }

    /// Tells of every change in this directory: what comes, goes and is written. `false`: nobody watches it.
    pub(crate) fn watch_directory(
        &self,
        directory: &Path,
        tell: impl Fn(&Path, Changed) -> bool + Send + 'static,
    ) -> bool {
        let flags = WatchFlags::CLOSE_WRITE
            | WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::MOVED_TO
            | WatchFlags::MOVED_FROM;
        self.watcher.as_ref().is_some_and(|watcher| watcher.add_directory(directory, flags, Box::new(tell)))
    }

    fn add(&self, file: &Path, flags: WatchFlags, tell: Tell) {
        if let Some(watcher) = &self.watcher {
            watcher.add(file, flags, tell);
        }
    }
}

/// A watched directory, and who wants which file in it, or all of them.
struct Directory {
    path: PathBuf,
    wanted: Vec<(Option<OsString>, Tell)>,
}

struct Watcher {
    kernel: OwnedFd,
    watched: Mutex<HashMap<i32, Directory>>,
}

impl Watcher {
    /// Sleeps in the kernel until something changes, for as long as the daemon lives.
    fn run(&self) {
        let mut buffer = [MaybeUninit::uninit(); BUFFER];
        let mut changes = inotify::Reader::new(&self.kernel, &mut buffer);
        loop {
            match changes.next() {
                Ok(change) => {
                    let how = match change.events() {
                        events if events.contains(ReadFlags::MOVED_TO) => Changed::Placed,
                        events if events.contains(ReadFlags::MODIFY) => Changed::Grown,
                        events if events.contains(ReadFlags::CLOSE_WRITE) => Changed::Written,
                        _ => Changed::Stirred,
                    };
                    if let Some(name) = change.file_name() {
                        self.changed(change.wd(), OsStr::from_bytes(name.to_bytes()), how);
                    }
                }
                Err(Errno::INTR) => {}
                Err(error) => return tracing::warn!("files are not watched any more: {error}"),
            }
        }
    }

    fn watched(&self) -> MutexGuard<'_, HashMap<i32, Directory>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, file: &Path, flags: WatchFlags, tell: Tell) {
        let (Some(directory), Some(name)) = (file.parent(), file.file_name()) else { return };
        // Others may watch the same directory for something else.
        let flags = flags | WatchFlags::ONLYDIR | WatchFlags::MASK_ADD;
        // Held while it is added: a change that comes at once must find who wants it.
        let mut watched = self.watched();
        match inotify::add_watch(&self.kernel, directory, flags) {
            Ok(watch) => {
                if !tell(file, Changed::Perhaps) {
                    return;
                }
                let path = directory.to_owned();
                let directory = watched.entry(watch).or_insert_with(|| Directory { path, wanted: Vec::new() });
                directory.wanted.push((Some(name.to_owned()), tell));
            }
            Err(error) => tracing::warn!("{} is not watched: {error}", directory.display()),
        }
    }

    fn add_directory(&self, directory: &Path, flags: WatchFlags, tell: Tell) -> bool {
        let mut watched = self.watched();
        let Ok(watch) = inotify::add_watch(&self.kernel, directory, flags | WatchFlags::ONLYDIR | WatchFlags::MASK_ADD)
        else {
            return false;
        };
        let path = directory.to_owned();
        watched.entry(watch).or_insert_with(|| Directory { path, wanted: Vec::new() }).wanted.push((None, tell));
        true
    }

    fn changed(&self, watch: i32, name: &OsStr, how: Changed) {
        let mut watched = self.watched();
        let Some(directory) = watched.get_mut(&watch) else { return };
        let path = directory.path.join(name);
        let concerns =
            |wanted: &Option<OsString>| wanted.as_ref().is_none_or(|wanted| wanted == name && how != Changed::Stirred);
        directory.wanted.retain(|(wanted, tell)| !concerns(wanted) || tell(&path, how));
        if directory.wanted.is_empty() {
            watched.remove(&watch);
            let _ = inotify::remove_watch(&self.kernel, watch);
        }
    }
}
