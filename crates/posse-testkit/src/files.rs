//! Waiting for files, and reading the logs of scripted agents.

use std::path::Path;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use notify::{RecursiveMode, Watcher};
use serde_json::Value;

use crate::PATIENCE;

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

/// Looks every few milliseconds until it is so, where no event reports it.
#[track_caller]
pub fn when<T>(what: &str, look: impl Fn() -> Option<T>) -> T {
    let give_up = Instant::now() + PATIENCE;
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(Instant::now() < give_up, "{what} never came");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Returns the records of this kind in the log of a scripted agent. Lines that are not whole are left out.
pub fn records(log: &Path, event: &str) -> Vec<Value> {
    let log = std::fs::read_to_string(log).unwrap_or_default();
    let records = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    records.filter(|record| record["event"] == event).collect()
}
