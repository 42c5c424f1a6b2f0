//! Waits for files, and reads the logs of scripted agents.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::PATIENCE;

/// Polls every few milliseconds until the condition holds.
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

/// Returns the records of this kind in the log of a scripted agent. Incomplete lines are left out.
pub fn records(log: &Path, event: &str) -> Vec<Value> {
    let log = std::fs::read_to_string(log).unwrap_or_default();
    // Waiting tests read the log often, and most of it is prompts of other records.
    let lines = log.lines().filter(|line| line.contains(event));
    let records = lines.filter_map(|line| serde_json::from_str::<Value>(line).ok());
    records.filter(|record| record["event"] == event).collect()
}
