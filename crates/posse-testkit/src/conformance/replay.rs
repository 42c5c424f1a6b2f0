//! A run's recording, played again with `posse explain --recording`: are the statuses those that were told live?
//!
//! The recording has the bytes of the terminal and their times. It has nothing of what the agent's hooks and files said,
//! of what posse itself did, and of the process; what only these have told cannot be in it. In practice the first two
//! change when something is told, not what; the end of the process is left out here.

use std::path::Path;
use std::process::Command;

use posse_core::status::StatusKind;
use serde::{Deserialize, Serialize};

use super::score::ReportedStatus;

/// What was told, live and in the replay: each status once as long as it lasted.
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

/// Plays a recording. `None`: there is none, or it cannot be read.
pub(super) fn replay(posse: &Path, provider: &str, recording: &Path, told: &[ReportedStatus]) -> Option<Replayed> {
    let mut command = Command::new(posse);
    command.args(["explain", "--provider", provider, "--json", "--recording"]).arg(recording);
    // The rules are ours, whatever the user of this machine has laid over them.
    let output = command.env("POSSE_HOME", std::env::temp_dir()).output().ok()?;
    let changes: Vec<ReplayedStatus> = serde_json::from_slice(&output.stdout).ok()?;
    Some(Replayed {
        live: stretches(told.iter().filter(|told| !of_process(told)).map(|told| told.kind)),
        replay: stretches(changes.into_iter().map(|change| change.status)),
    })
}

/// The words in which the end of a process is told.
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
