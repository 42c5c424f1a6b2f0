//! Watches files and directories, with one `notify` watcher for the whole daemon.
//!
//! A hint names a path to scan, not its content: the kernel drops events when its queue overflows. So a subscriber is
//! asked to scan when its watch begins, when a directory on its path is created or removed, and after an overflow. A
//! path may be watched before its directory exists: then the nearest directory above it is watched. Paths that cannot
//! be watched are scanned every minute.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use notify::event::{AccessKind, AccessMode, ModifyKind, RenameMode};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};

use crate::disk::{self, Disk};

/// The scan interval for paths that cannot be watched (spec §14.1).
const FALLBACK_SCAN: Duration = Duration::from_secs(60);
/// Maximum attempts to find the nearest directory while directories change. After that the fallback takes over.
const PLACE_ATTEMPTS: u32 = 8;

/// The interval at which a file that is about to go is looked at.
const GONE_LOOK: Duration = Duration::from_millis(20);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileHint<'a> {
    /// Everything: events may have been missed.
    Scan,
    /// This path was written, created or removed.
    Changed(&'a Path),
    /// This path was renamed into place, so its content is complete.
    Renamed(&'a Path),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WatchScope {
    /// A file, whenever a writer has closed it or it was renamed into place.
    CompleteFile,
    /// A file, also while it is being written.
    GrowingFile,
    /// A directory: every entry that comes, goes or was written.
    Directory,
}

/// The handle to the watcher. It never blocks.
#[derive(Clone)]
pub(crate) struct WatchedFiles {
    messages: Sender<WatcherMessage>,
    numbers: Arc<AtomicU64>,
}

/// A subscription to a path. It ends when this is dropped.
#[must_use]
pub(crate) struct FileWatch {
    messages: Sender<WatcherMessage>,
    number: u64,
}

enum WatcherMessage {
    Add(u64, FileInterest),
    Forget(u64),
    Seen(notify::Result<Event>),
}

impl WatchedFiles {
    pub(crate) fn start() -> Self {
        Self::start_with(|_| {})
    }

    /// Starts the watcher. `before` sees each event of the kernel before it is passed on.
    fn start_with(before: impl Fn(&Event) + Send + 'static) -> Self {
        let (messages, inbox) = channel();
        let seen = messages.clone();
        let handler = move |event: notify::Result<Event>| {
            event.iter().for_each(&before);
            if event.as_ref().map_or(true, is_relevant) {
                let _ = seen.send(WatcherMessage::Seen(event));
            }
        };
        let kernel = notify::recommended_watcher(handler);
        let kernel = kernel.inspect_err(|error| tracing::warn!("files are scanned every minute: {error}")).ok();
        if let Err(error) = disk::thread("watched-files", move |disk| FileWatcher::new(disk, kernel).run(&inbox)) {
            tracing::error!("files are not watched: {error}");
        }
        Self { messages, numbers: Arc::default() }
    }

    /// Calls `tell` on the watcher's thread, which may block on the disk: at once with [`FileHint::Scan`], and whenever
    /// the path may have changed.
    pub(crate) fn watch(
        &self,
        path: &Path,
        scope: WatchScope,
        tell: impl FnMut(&Disk, FileHint<'_>) + Send + 'static,
    ) -> FileWatch {
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        let interest = FileInterest::new(path, scope, Box::new(tell));
        let _ = self.messages.send(WatcherMessage::Add(number, interest));
        FileWatch { messages: self.messages.clone(), number }
    }
}

impl Drop for FileWatch {
    fn drop(&mut self) {
        let _ = self.messages.send(WatcherMessage::Forget(self.number));
    }
}

/// Reports whether an event can matter to anyone. Reading a file and changing its permissions cannot.
fn is_relevant(event: &Event) -> bool {
    match event.kind {
        EventKind::Access(access) => access == AccessKind::Close(AccessMode::Write),
        EventKind::Modify(ModifyKind::Metadata(_)) => false,
        // A `To` and, if the source is watched, a `From` report the same.
        EventKind::Modify(ModifyKind::Name(RenameMode::Both)) => false,
        _ => true,
    }
}

fn moved_path(event: &Event) -> Option<&Path> {
    let moves =
        matches!(event.kind, EventKind::Create(_) | EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(_)));
    event.paths.first().filter(|_| moves).map(PathBuf::as_path)
}

type TellHint = Box<dyn FnMut(&Disk, FileHint<'_>) + Send>;

struct FileInterest {
    path: PathBuf,
    scope: WatchScope,
    tell: TellHint,
    /// The path and its directory, with the links of the part that exists resolved.
    real_path: PathBuf,
    real_directory: PathBuf,
    /// The directory that the kernel watches for it.
    watched: Option<PathBuf>,
}

impl FileInterest {
    fn new(path: &Path, scope: WatchScope, tell: TellHint) -> Self {
        let path = path.to_owned();
        let mut interest =
            Self { scope, tell, real_path: path.clone(), real_directory: PathBuf::new(), watched: None, path };
        interest.real_directory = interest.directory().to_owned();
        interest
    }

    /// The directory in which the events of this path occur.
    fn directory(&self) -> &Path {
        match self.scope {
            WatchScope::Directory => &self.path,
            WatchScope::CompleteFile | WatchScope::GrowingFile => self.path.parent().unwrap_or(&self.path),
        }
    }

    fn hint<'e>(&self, event: &'e Event) -> Option<FileHint<'e>> {
        let on_the_way = |moved: &Path| self.real_directory.starts_with(moved);
        if event.need_rescan() || moved_path(event).is_some_and(on_the_way) {
            return Some(FileHint::Scan);
        }
        let path = event.paths.first()?.as_path();
        let is_it = match self.scope {
            WatchScope::Directory => path.parent() == Some(&self.real_path),
            WatchScope::CompleteFile | WatchScope::GrowingFile => path == self.real_path,
        };
        let hint = match event.kind {
            EventKind::Modify(ModifyKind::Name(RenameMode::To)) => FileHint::Renamed(path),
            EventKind::Access(_) => FileHint::Changed(path),
            EventKind::Modify(ModifyKind::Data(_)) if self.scope == WatchScope::GrowingFile => FileHint::Changed(path),
            _ if self.scope == WatchScope::Directory && moved_path(event).is_some() => FileHint::Changed(path),
            _ => return None,
        };
        is_it.then_some(hint)
    }
}

struct FileWatcher {
    disk: Disk,
    /// `None` if the kernel has no watcher for us.
    kernel: Option<RecommendedWatcher>,
    watched: BTreeSet<PathBuf>,
    interests: BTreeMap<u64, FileInterest>,
    /// The next scan of subscriptions without a watch.
    retry_at: Option<Instant>,
}

impl FileWatcher {
    fn new(disk: Disk, kernel: Option<RecommendedWatcher>) -> Self {
        Self { disk, kernel, watched: BTreeSet::new(), interests: BTreeMap::new(), retry_at: None }
    }

    fn run(mut self, inbox: &Receiver<WatcherMessage>) {
        loop {
            let message = match self.retry_at {
                None => inbox.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(at) => inbox.recv_timeout(at.saturating_duration_since(Instant::now())),
            };
            match message {
                Ok(message) => self.handle(message),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            if self.retry_at.is_some_and(|at| at <= Instant::now()) {
                self.retry();
            }
            self.release();
        }
    }

    fn handle(&mut self, message: WatcherMessage) {
        match message {
            WatcherMessage::Add(number, interest) => {
                self.interests.insert(number, interest);
                self.scan(number);
            }
            WatcherMessage::Forget(number) => drop(self.interests.remove(&number)),
            WatcherMessage::Seen(Ok(event)) => self.apply(&event),
            WatcherMessage::Seen(Err(error)) => {
                tracing::warn!("the watcher of files failed, so all of them are scanned: {error}");
                self.rescan();
            }
        }
    }

    fn apply(&mut self, event: &Event) {
        if event.need_rescan() {
            tracing::warn!("events of watched files were lost, so all of them are scanned");
            return self.rescan();
        }
        if let Some(moved) = moved_path(event) {
            // Another directory may be there now, under the same name.
            self.unwatch(|directory| directory.starts_with(moved));
        }
        let numbers: Vec<u64> = self.interests.keys().copied().collect();
        for number in numbers {
            let Some(interest) = self.interests.get_mut(&number) else { continue };
            match interest.hint(event) {
                Some(FileHint::Scan) => self.scan(number),
                Some(hint) => (interest.tell)(&self.disk, hint),
                None => {}
            }
        }
    }

    /// Watches and scans everything anew: the removal of a directory may be among the lost events.
    fn rescan(&mut self) {
        self.unwatch(|_| true);
        self.scan_all(|_| true);
    }

    fn retry(&mut self) {
        self.retry_at = None;
        self.scan_all(|interest| interest.watched.is_none());
    }

    fn scan_all(&mut self, which: impl Fn(&FileInterest) -> bool) {
        let chosen = self.interests.iter().filter(|(_, interest)| which(interest));
        let numbers: Vec<u64> = chosen.map(|(number, _)| *number).collect();
        numbers.into_iter().for_each(|number| self.scan(number));
    }

    /// Watches the nearest directory of a subscription and has it scanned.
    fn scan(&mut self, number: u64) {
        let Some(mut interest) = self.interests.remove(&number) else { return };
        interest.watched = (0..PLACE_ATTEMPTS).find_map(|_| self.place(&mut interest));
        if interest.watched.is_none() {
            self.retry_at.get_or_insert_with(|| Instant::now() + FALLBACK_SCAN);
        }
        (interest.tell)(&self.disk, FileHint::Scan);
        self.interests.insert(number, interest);
    }

    /// Returns the directory that is watched for a subscription. `None` if it cannot be watched, or if a nearer directory
    /// appeared meanwhile.
    fn place(&mut self, interest: &mut FileInterest) -> Option<PathBuf> {
        let (nearest, rest) = nearest_directory(&self.disk, interest.directory())?;
        interest.real_directory = nearest.join(&rest);
        interest.real_path = match interest.scope {
            WatchScope::Directory => interest.real_directory.clone(),
            _ => interest.real_directory.join(interest.path.file_name()?),
        };
        if !self.watched.contains(&nearest) {
            self.kernel.as_mut()?.watch(&nearest, RecursiveMode::NonRecursive).ok()?;
            self.watched.insert(nearest.clone());
        }
        let again = nearest_directory(&self.disk, interest.directory());
        again.is_some_and(|again| again == (nearest.clone(), rest)).then_some(nearest)
    }

    fn release(&mut self) {
        let used: BTreeSet<PathBuf> = self.interests.values().filter_map(|interest| interest.watched.clone()).collect();
        self.unwatch(|directory| !used.contains(directory));
    }

    fn unwatch(&mut self, which: impl Fn(&Path) -> bool) {
        let Some(kernel) = &mut self.kernel else { return };
        self.watched.retain(|directory| {
            let goes = which(directory);
            if goes {
                // Fails if the directory is gone, which has ended the watch.
                let _ = kernel.unwatch(directory);
            }
            !goes
        });
    }
}

/// Waits until a file is removed. Returns `false` if it still exists after `limit`.
pub(crate) fn gone_within(disk: &Disk, path: &Path, limit: Duration) -> bool {
    let deadline = Instant::now() + limit;
    while disk.exists(path) {
        if Instant::now() >= deadline {
            return false;
        }
        disk.sleep(GONE_LOOK);
    }
    true
}

/// Returns the deepest directory that exists on the way to this one, and the rest of the way.
fn nearest_directory(disk: &Disk, directory: &Path) -> Option<(PathBuf, PathBuf)> {
    directory.ancestors().find_map(|above| {
        let real = disk.canonicalize(above).ok().filter(|real| disk.is_dir(real))?;
        Some((real, directory.strip_prefix(above).ok()?.to_owned()))
    })
}

#[cfg(test)]
mod tests;
