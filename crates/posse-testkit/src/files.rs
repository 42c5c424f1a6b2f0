//! Waiting for files: a watcher reports when something in a directory changes.

use std::path::Path;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use notify::{RecursiveMode, Watcher};

/// Looks again whenever something changes in this directory, until it is so.
#[track_caller]
pub fn when_changed<T>(directory: &Path, what: &str, patience: Duration, look: impl Fn() -> Option<T>) -> T {
    let give_up = Instant::now() + patience;
    // Before looking: what changes in between is heard.
    let (changed, changes) = channel();
    let watched = notify::recommended_watcher(changed)
        .and_then(|mut watcher| watcher.watch(directory, RecursiveMode::NonRecursive).map(|()| watcher));
    let _watcher = watched.unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        let left = give_up.saturating_duration_since(Instant::now());
        assert!(changes.recv_timeout(left).is_ok(), "{what} never came");
    }
}
