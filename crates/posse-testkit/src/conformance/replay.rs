//! Compares the statuses of a replayed recording (`posse explain --recording`) with those of the live run.
//!
//! The recording has the output and posse's other evidence, each with its time. It does not have the end of the
//! process, which is left out of the comparison.

use std::path::Path;
use std::process::Command;

use posse_core::status::StatusKind;
use serde::{Deserialize, Serialize};

use super::score::ReportedStatus;

/// The reported statuses, live and in the replay, without repetitions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replayed {
    pub live: Vec<StatusKind>,
    pub replay: Vec<StatusKind>,
}

impl Replayed {
    pub fn is_alike(&self) -> bool {
        self.live == self.replay
    }
}

#[derive(Deserialize)]
struct ReplayedStatus {
    status: StatusKind,
}

/// Replays a recording. Returns `None` if it is missing or unreadable.
pub(super) fn replay(posse: &Path, provider: &str, recording: &Path, told: &[ReportedStatus]) -> Option<Replayed> {
    let mut command = Command::new(posse);
    command.args(["explain", "--provider", provider, "--json", "--recording"]).arg(recording);
    // Uses the built-in rules, without this machine's user overrides.
    let output = command.env("POSSE_HOME", std::env::temp_dir()).output().ok()?;
    let changes: Vec<ReplayedStatus> = serde_json::from_slice(&output.stdout).ok()?;
    Some(Replayed {
        live: stretches(told.iter().filter(|told| !of_process(told)).map(|told| told.kind)),
        replay: stretches(changes.into_iter().map(|change| change.status)),
    })
}

fn of_process(told: &ReportedStatus) -> bool {
    ["exited with ", "ended by ", "lost: "].iter().any(|word| told.reason.starts_with(word))
}

fn stretches(kinds: impl Iterator<Item = StatusKind>) -> Vec<StatusKind> {
    let mut kinds: Vec<StatusKind> = kinds.collect();
    kinds.dedup();
    kinds
}

#[cfg(test)]
mod tests {
    use StatusKind::{Completed, Error, Idle, Processing};

    use super::*;

    #[test]
    fn the_end_of_the_process_is_not_in_a_recording() {
        let told =
            |kind, reason: &str| ReportedStatus { at: 0, kind, waiting: None, dialog: false, reason: reason.into() };
        assert!(of_process(&told(Completed, "exited with 0")) && of_process(&told(Error, "ended by SIGKILL")));
        assert!(!of_process(&told(Error, "rule box.failed")));
        assert_eq!(stretches([Idle, Processing, Processing, Completed].into_iter()), [Idle, Processing, Completed]);
    }
}
