//! Files in which agents write down what they do. The kernel tells when one changes; nothing polls.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::io::Errno;

use crate::pump::{Event, Handle};

/// A file that says a few words; more is something else.
const MOST: u64 = 64 << 10;
/// Room for a few hundred changes; what does not fit stays in the kernel until the next read.
const BUFFER: usize = 16 << 10;

/// Watches files for pumps.
#[derive(Clone)]
pub(crate) struct SessionFiles {
    /// `None`: the kernel has no watcher for us. There are other sources.
    watcher: Option<Arc<Watcher>>,
}

impl SessionFiles {
    pub(crate) fn start() -> Self {
        let started = inotify::init(CreateFlags::CLOEXEC).map_err(io::Error::from).and_then(|kernel| {
            let watcher = Arc::new(Watcher { kernel, watched: Mutex::default() });
            let reader = watcher.clone();
            std::thread::Builder::new().name("session-files".into()).spawn(move || reader.run())?;
            Ok(watcher)
        });
        let watcher = started.inspect_err(|error| tracing::warn!("files of agents are not watched: {error}"));
        Self { watcher: watcher.ok() }
    }

    /// Tells this pump of the file's content, now and whenever it changes.
    pub(crate) fn watch(&self, file: &Path, pump: Handle) {
        if let Some(watcher) = &self.watcher {
            watcher.add(file, pump);
        }
    }
}

/// Which file it is, for a running program: `{pid}`, and `{NAME}` for a variable of its environment. The first that
/// can be filled in counts. `None` until its directory is there.
pub(crate) fn locate(patterns: &[String], pid: u32) -> Option<PathBuf> {
    let environment = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
    let variable = |name: &str| {
        let mut variables = environment.split(|byte| *byte == 0);
        variables
            .find_map(|variable| variable.strip_prefix(name.as_bytes())?.strip_prefix(b"=").filter(|v| !v.is_empty()))
    };
    let path = patterns.iter().find_map(|pattern| fill(pattern, pid, variable))?;
    path.parent()?.is_dir().then_some(path)
}

fn fill<'v>(pattern: &str, pid: u32, variable: impl Fn(&str) -> Option<&'v [u8]>) -> Option<PathBuf> {
    let mut path = Vec::new();
    let mut rest = pattern;
    while let Some((before, after)) = rest.split_once('{') {
        let (name, after) = after.split_once('}')?;
        path.extend_from_slice(before.as_bytes());
        match name {
            "pid" => path.extend_from_slice(pid.to_string().as_bytes()),
            name => path.extend_from_slice(variable(name)?),
        }
        rest = after;
    }
    path.extend_from_slice(rest.as_bytes());
    Some(PathBuf::from(OsString::from_vec(path)))
}

/// A watched directory, and who wants which file in it.
struct Directory {
    path: PathBuf,
    wanted: Vec<(OsString, Handle)>,
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
                    if let Some(name) = change.file_name() {
                        self.changed(change.wd(), OsStr::from_bytes(name.to_bytes()));
                    }
                }
                Err(Errno::INTR) => {}
                Err(error) => return tracing::warn!("files of agents are not watched any more: {error}"),
            }
        }
    }

    fn watched(&self) -> MutexGuard<'_, HashMap<i32, Directory>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, file: &Path, pump: Handle) {
        let (Some(directory), Some(name)) = (file.parent(), file.file_name()) else { return };
        let flags = WatchFlags::CLOSE_WRITE | WatchFlags::MOVED_TO | WatchFlags::ONLYDIR;
        // Held while it is added: a change that comes at once must find who wants it.
        let mut watched = self.watched();
        match inotify::add_watch(&self.kernel, directory, flags) {
            Ok(watch) => {
                tell(file, &pump);
                let path = directory.to_owned();
                let directory = watched.entry(watch).or_insert_with(|| Directory { path, wanted: Vec::new() });
                directory.wanted.push((name.to_owned(), pump));
            }
            Err(error) => tracing::warn!("{} is not watched: {error}", directory.display()),
        }
    }

    fn changed(&self, watch: i32, name: &OsStr) {
        let mut watched = self.watched();
        let Some(directory) = watched.get_mut(&watch) else { return };
        directory.wanted.retain(|(_, pump)| !pump.is_gone());
        for (_, pump) in directory.wanted.iter().filter(|(wanted, _)| wanted == name) {
            tell(&directory.path.join(name), pump);
        }
        if directory.wanted.is_empty() {
            watched.remove(&watch);
            let _ = inotify::remove_watch(&self.kernel, watch);
        }
    }
}

fn tell(file: &Path, pump: &Handle) {
    use std::io::Read;
    let Ok(opened) = std::fs::File::open(file) else { return };
    let mut text = Vec::new();
    if opened.take(MOST).read_to_end(&mut text).is_ok()
        && let Ok(content) = serde_json::from_slice(&text)
    {
        pump.send(Event::SessionFile(content));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_found_by_the_first_pattern_that_can_be_filled() {
        let variable = |name: &str| (name == "HOME").then_some(&b"/home/me"[..]);
        assert_eq!(fill("{CONF}/s/{pid}.json", 7, variable), None);
        assert_eq!(fill("{HOME}/s/{pid}.json", 7, variable), Some(PathBuf::from("/home/me/s/7.json")));
        assert_eq!(fill("{HOME", 7, variable), None);
    }
}
