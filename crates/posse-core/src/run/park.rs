//! When a model is not to be had: how long to wait, and when to give up.

use std::time::Duration;

use crate::time::Wall;
use crate::turn::ApiFailure;

/// Waits after a server's failure or a dropped stream, in seconds. The agent itself has tried several times by then.
const SERVER: [u64; 5] = [30, 60, 120, 300, 600];
/// A usage limit without a known end is tried again after this, …
const LIMIT: Duration = Duration::from_secs(15 * 60);
/// … this many times: half a day.
const LIMIT_TIMES: u32 = 48;
/// Added to a named end, because clocks differ.
const SLACK: Duration = Duration::from_secs(60);
/// A named end that has passed, and the limit is still there: so much longer with each time, up to `LIMIT`.
const STILL: Duration = Duration::from_secs(60);

/// How long to wait before a turn is tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parking {
    For(Duration),
    Until(Wall),
    /// Trying again is pointless, or was tried often enough.
    No,
}

/// How often a turn failed in a row, for each of the reasons that pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    pub outages: u32,
    pub limits: u32,
}

impl Times {
    /// How often it was for this one.
    pub fn of(self, failure: &ApiFailure) -> u32 {
        if is_limit(failure) { self.limits } else { self.outages }
    }
}

pub(super) fn is_limit(failure: &ApiFailure) -> bool {
    matches!(failure, ApiFailure::UsageLimit { .. })
}

/// What to do about a failure that has come `times` times in a row before. `resets` is the named end of a limit.
pub fn parking(failure: &ApiFailure, times: u32, resets: Option<Wall>, now: Wall) -> Parking {
    match failure {
        ApiFailure::Server(_) | ApiFailure::Dropped => {
            SERVER.get(times as usize).map_or(Parking::No, |seconds| Parking::For(Duration::from_secs(*seconds)))
        }
        ApiFailure::UsageLimit { .. } if times >= LIMIT_TIMES => Parking::No,
        ApiFailure::UsageLimit { .. } => match resets {
            Some(resets) => {
                let soonest = now.after((STILL * (times + 1)).min(LIMIT));
                Parking::Until(resets.after(SLACK).max(soonest))
            }
            None => Parking::For(LIMIT),
        },
        ApiFailure::Other(_) => Parking::No,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_get_five_tries_limits_a_night_and_refusals_none() {
        let server = ApiFailure::Dropped;
        let now = Wall(2_000);
        let waits: Vec<_> = (0..6).map(|times| parking(&server, times, None, now)).collect();
        let expected = SERVER.iter().map(|s| Parking::For(Duration::from_secs(*s))).chain([Parking::No]);
        assert_eq!(waits, expected.collect::<Vec<_>>());
        let limit = ApiFailure::UsageLimit { resets: None };
        assert_eq!(parking(&limit, 0, None, now), Parking::For(LIMIT));
        assert_eq!(parking(&limit, 0, Some(Wall(5_000)), now), Parking::Until(Wall(65_000)));
        assert_eq!(parking(&limit, LIMIT_TIMES, Some(Wall(1_000)), now), Parking::No);
        assert_eq!(parking(&ApiFailure::Other("401".into()), 0, None, now), Parking::No);
    }

    /// The clock shows what was named, and the agent names it again: it is not asked back to back until it was too often.
    #[test]
    fn a_named_end_that_has_passed_is_waited_for_all_the_same() {
        let limit = ApiFailure::UsageLimit { resets: None };
        let now = Wall(1_000_000_000);
        let minutes = |times| match parking(&limit, times, Some(Wall(now.0 - 300_000)), now) {
            Parking::Until(until) => (until.0 - now.0) / 60_000,
            other => panic!("{other:?}"),
        };
        assert_eq!([0, 1, 2, 20, 47].map(minutes), [1, 2, 3, 15, 15]);
    }
}
