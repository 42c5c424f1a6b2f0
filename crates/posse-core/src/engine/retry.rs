//! Pauses between attempts, and the bound on failures that no task caused.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Pauses between attempts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Backoff {
    pub base: Duration,
    pub max: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { base: Duration::from_secs(5), max: Duration::from_secs(120) }
    }
}

impl Backoff {
    /// Returns the pause after failure number `failures`, counted from 1. Each pause is twice as long as the previous
    /// one.
    pub fn pause(&self, failures: u32) -> Duration {
        let doubled = 2_u32.saturating_pow(failures.saturating_sub(1).min(31));
        self.base.saturating_mul(doubled).min(self.max)
    }

    /// Returns the pause after failure number `failures` that is not the job's own, such as a session that did not
    /// start. Such failures cost no attempt. `None` if there were too many in a row.
    pub fn infra_pause(&self, failures: u32) -> Option<Duration> {
        (failures < INFRA_MAX).then(|| self.pause(failures))
    }
}

const INFRA_MAX: u32 = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_bound() {
        let pauses = [1, 2, 3, 4, 5, 6, 7, 1000].map(|n| Backoff::default().pause(n).as_secs());
        assert_eq!(pauses, [5, 10, 20, 40, 80, 120, 120, 120]);
        let pauses = [1, 2, 3].map(|n| Backoff::default().infra_pause(n).map(|pause| pause.as_secs()));
        assert_eq!(pauses, [Some(5), Some(10), None]);
    }
}
