//! Retries while a model is unavailable: how long to wait, and when to stop.

use std::time::Duration;

use crate::time::Wall;
use crate::turn::ApiFailure;

/// Waits after a server failure or a dropped stream, in seconds. The agent itself has retried several times by then.
const SERVER: [u64; 5] = [30, 60, 120, 300, 600];
/// Wait after a usage limit without a known end.
const LIMIT: Duration = Duration::from_secs(15 * 60);
/// Maximum number of these waits: half a day.
const LIMIT_TIMES: u32 = 48;
/// Added to a reported end, because clocks differ.
const SLACK: Duration = Duration::from_secs(60);
/// Extra wait per retry if the limit outlasts its reported end, up to `LIMIT`.
const STILL: Duration = Duration::from_secs(60);

/// Returns when to retry a turn after `times` earlier consecutive failures of the model's service. `resets` is the
/// reported end of a limit. `None`: a retry is pointless, or the retries are used up.
pub(super) fn parking(failure: &ApiFailure, times: u32, resets: Option<Wall>, now: Wall) -> Option<Wall> {
    match failure {
        ApiFailure::Server(_) | ApiFailure::Dropped => {
            SERVER.get(times as usize).map(|seconds| now.after(Duration::from_secs(*seconds)))
        }
        ApiFailure::UsageLimit { .. } if times < LIMIT_TIMES => Some(match resets {
            Some(resets) => resets.after(SLACK).max(now.after((STILL * (times + 1)).min(LIMIT))),
            None => now.after(LIMIT),
        }),
        ApiFailure::UsageLimit { .. } | ApiFailure::Other(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_get_five_tries_limits_a_night_and_refusals_none() {
        let now = Wall(2_000);
        let waits: Vec<_> = (0..6).map(|times| parking(&ApiFailure::Dropped, times, None, now)).collect();
        let expected = SERVER.iter().map(|s| Some(now.after(Duration::from_secs(*s)))).chain([None]);
        assert_eq!(waits, expected.collect::<Vec<_>>());
        let limit = ApiFailure::UsageLimit { resets: None };
        assert_eq!(parking(&limit, 0, None, now), Some(now.after(LIMIT)));
        assert_eq!(parking(&limit, 0, Some(Wall(5_000)), now), Some(Wall(65_000)));
        assert_eq!(parking(&limit, LIMIT_TIMES, Some(Wall(1_000)), now), None);
        assert_eq!(parking(&ApiFailure::Other("401".into()), 0, None, now), None);
    }

    /// The agent reports an end that has already passed: retries are spaced out until they are used up.
    #[test]
    fn a_named_end_that_has_passed_is_waited_for_all_the_same() {
        let limit = ApiFailure::UsageLimit { resets: None };
        let now = Wall(1_000_000_000);
        let until = |times| parking(&limit, times, Some(Wall(now.0 - 300_000)), now).unwrap();
        assert_eq!([0, 1, 2, 20, 47].map(|times| (until(times).0 - now.0) / 60_000), [1, 2, 3, 15, 15]);
    }
}
