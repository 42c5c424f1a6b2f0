//! Files somebody waits for. The kernel tells when one changes; nothing polls.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
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
    /// It was made; the same.
    Appeared,
    /// It was removed, or moved elsewhere; the same.
    Removed,
    /// Its directory is gone, and nothing will be told any more; the same.
    Gone,
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
            let watcher = Arc::new(Watcher { kernel, watched: Mutex::default(), numbers: AtomicU64::new(0) });
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

    /// As `watch`, and also tells while it is being written. For files in a directory of their own, and as long as the watch
    /// is held: in such a directory nothing may ever change again, and nobody would find out that nobody is interested.
    pub(crate) fn watch_growing(
        &self,
        file: &Path,
        tell: impl Fn(&Path, Changed) -> bool + Send + 'static,
    ) -> Option<Watch> {
        let flags = WatchFlags::CLOSE_WRITE | WatchFlags::MOVED_TO | WatchFlags::MODIFY;
        let watcher = self.watcher.as_ref()?;
        let (directory, number) = watcher.add(file, flags, Box::new(tell))?;
        Some(Watch { watcher: watcher.clone(), directory, number })
    }

    /// As `watch`, and also tells when its directory is gone.
    pub(crate) fn watch_for_good(&self, file: &Path, tell: impl Fn(&Path, Changed) -> bool + Send + 'static) {
        let flags = WatchFlags::CLOSE_WRITE | WatchFlags::MOVED_TO | WatchFlags::DELETE_SELF;
        self.add(file, flags, Box::new(tell));
    }

    /// Tells when something of this name is made or moved here, a directory too, or when that cannot be any more.
    pub(crate) fn watch_appearing(&self, path: &Path, tell: impl Fn(&Path, Changed) -> bool + Send + 'static) {
        let flags = WatchFlags::CREATE | WatchFlags::MOVED_TO | WatchFlags::DELETE_SELF;
        self.add(path, flags, Box::new(tell));
    }

    /// Tells of everything in this directory that comes, goes or is written, and when it is gone itself. `false`: nobody
    /// will tell.
    pub(crate) fn watch_directory(
        &self,
        directory: &Path,
        tell: impl Fn(&Path, Changed) -> bool + Send + 'static,
    ) -> bool {
        let come = WatchFlags::CREATE | WatchFlags::MOVED_TO | WatchFlags::CLOSE_WRITE;
        let go = WatchFlags::DELETE | WatchFlags::MOVED_FROM | WatchFlags::DELETE_SELF;
        self.watcher.as_ref().is_some_and(|watcher| watcher.add_directory(directory, come | go, Box::new(tell)))
    }

    fn add(&self, file: &Path, flags: WatchFlags, tell: Tell) {
        if let Some(watcher) = &self.watcher {
            let _ = watcher.add(file, flags, tell);
        }
    }
}

/// Somebody's interest in a file. It ends with this.
#[must_use]
pub(crate) struct Watch {
    watcher: Arc<Watcher>,
    directory: i32,
    number: u64,
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.watcher.forget(self.directory, |wanted| wanted.number == self.number);
    }
}

/// A watched directory, and who wants which file in it.
struct Directory {
    path: PathBuf,
    wanted: Vec<Wanted>,
}

struct Wanted {
    /// No other has it.
    number: u64,
    /// Nothing: whatever is in it.
    name: Option<OsString>,
    flags: WatchFlags,
    tell: Tell,
}

struct Watcher {
    kernel: OwnedFd,
    watched: Mutex<HashMap<i32, Directory>>,
    numbers: AtomicU64,
}

impl Watcher {
    /// Sleeps in the kernel until something changes, for as long as the daemon lives.
    fn run(&self) {
        let mut buffer = [MaybeUninit::uninit(); BUFFER];
        let mut changes = inotify::Reader::new(&self.kernel, &mut buffer);
        loop {
            match changes.next() {
                Ok(change) if change.events().contains(ReadFlags::IGNORED) => self.gone(change.wd()),
                Ok(change) => {
                    let (how, flag) = match change.events() {
                        events if events.contains(ReadFlags::MOVED_TO) => (Changed::Placed, WatchFlags::MOVED_TO),
                        events if events.contains(ReadFlags::MODIFY) => (Changed::Grown, WatchFlags::MODIFY),
                        events if events.contains(ReadFlags::CREATE) => (Changed::Appeared, WatchFlags::CREATE),
                        events if events.contains(ReadFlags::DELETE) => (Changed::Removed, WatchFlags::DELETE),
                        events if events.contains(ReadFlags::MOVED_FROM) => (Changed::Removed, WatchFlags::MOVED_FROM),
                        _ => (Changed::Written, WatchFlags::CLOSE_WRITE),
                    };
                    if let Some(name) = change.file_name() {
                        self.changed(change.wd(), OsStr::from_bytes(name.to_bytes()), how, flag);
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

    /// Where it is watched, and under which number.
    fn add(&self, file: &Path, flags: WatchFlags, tell: Tell) -> Option<(i32, u64)> {
        let (directory, name) = (file.parent()?, file.file_name()?);
        // Others may want to hear of other things in the same directory.
        let in_kernel = flags | WatchFlags::ONLYDIR | WatchFlags::MASK_ADD;
        // Held while it is added: a change that comes at once must find who wants it.
        let mut watched = self.watched();
        match inotify::add_watch(&self.kernel, directory, in_kernel) {
            Ok(watch) => {
                let wanted = tell(file, Changed::Perhaps);
                let path = directory.to_owned();
                let directory = watched.entry(watch).or_insert_with(|| Directory { path, wanted: Vec::new() });
                let number = self.number();
                directory.wanted.push(Wanted { number, name: Some(name.to_owned()), flags, tell });
                drop(watched);
                if !wanted {
                    self.forget(watch, |wanted| wanted.number == number);
                }
                wanted.then_some((watch, number))
            }
            Err(error) => {
                tracing::warn!("{} is not watched: {error}", directory.display());
                None
            }
        }
    }

    fn number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// These are not interested any more. The kernel need not tell what nobody wants to hear.
    fn forget(&self, watch: i32, who: impl Fn(&Wanted) -> bool) {
        let mut watched = self.watched();
        let Some(directory) = watched.get_mut(&watch) else { return };
        directory.wanted.retain(|wanted| !who(wanted));
        if directory.wanted.is_empty() {
            watched.remove(&watch);
            let _ = inotify::remove_watch(&self.kernel, watch);
        }
    }

    fn add_directory(&self, directory: &Path, flags: WatchFlags, tell: Tell) -> bool {
        let in_kernel = flags | WatchFlags::ONLYDIR | WatchFlags::MASK_ADD;
        let mut watched = self.watched();
        let Ok(watch) = inotify::add_watch(&self.kernel, directory, in_kernel) else { return false };
        let path = directory.to_owned();
        let directory = watched.entry(watch).or_insert_with(|| Directory { path, wanted: Vec::new() });
        directory.wanted.push(Wanted { number: self.number(), name: None, flags, tell });
        true
    }

    /// The directory is not there any more.
    fn gone(&self, watch: i32) {
        let Some(directory) = self.watched().remove(&watch) else { return };
        for wanted in directory.wanted.iter().filter(|wanted| wanted.flags.contains(WatchFlags::DELETE_SELF)) {
            (wanted.tell)(&directory.path.join(wanted.name.as_deref().unwrap_or_default()), Changed::Gone);
        }
    }

    fn changed(&self, watch: i32, name: &OsStr, how: Changed, flag: WatchFlags) {
        let watched = self.watched();
        let Some(directory) = watched.get(&watch) else { return };
        let path = directory.path.join(name);
        let concerns =
            |wanted: &Wanted| wanted.name.as_deref().is_none_or(|wanted| wanted == name) && wanted.flags.contains(flag);
        let bored = |wanted: &&Wanted| concerns(wanted) && !(wanted.tell)(&path, how);
        let bored: Vec<u64> = directory.wanted.iter().filter(bored).map(|wanted| wanted.number).collect();
        drop(watched);
        if !bored.is_empty() {
            self.forget(watch, |wanted| bored.contains(&wanted.number));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn a_watch_that_is_let_go_leaves_nothing_behind() {
        let directory = tempfile::tempdir().unwrap();
        let files = WatchedFiles::start();
        let (one, other) = (directory.path().join("one"), directory.path().join("other"));
        let (tell, told) = channel();
        let telling = |tell: &std::sync::mpsc::Sender<Changed>| {
            let tell = tell.clone();
            move |_: &Path, how| tell.send(how).is_ok()
        };
        let first = files.watch_growing(&one, telling(&tell));
        let second = files.watch_growing(&other, telling(&tell));
        let watched = || files.watcher.as_ref().unwrap().watched().values().map(|it| it.wanted.len()).sum::<usize>();
        assert_eq!((watched(), told.recv(), told.recv()), (2, Ok(Changed::Perhaps), Ok(Changed::Perhaps)));
        drop(first);
        std::fs::write(&one, "nobody cares").unwrap();
        std::fs::write(&other, "x").unwrap();
        assert_eq!((watched(), told.recv()), (1, Ok(Changed::Grown)), "of the other one");
        drop(second);
        assert!(files.watcher.as_ref().unwrap().watched().is_empty());
        // Nobody was interested in the first place.
        assert!(files.watch_growing(&one, |_, _| false).is_none());
        assert!(files.watcher.as_ref().unwrap().watched().is_empty());
    }
}
