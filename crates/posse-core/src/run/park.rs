//! When a model is not to be had: how long to wait, and when to give up.

use std::time::Duration;

use crate::time::Wall;
use crate::turn::ApiFailure;

/// Waits after a server's failure or a dropped stream, in seconds. The agent itself has tried several times by then.
const SERVER: [u64; 5] = [30, 60, 120, 300, 600];
/// A usage limit whose end nobody named is looked at again after this, …
const LIMIT: Duration = Duration::from_secs(15 * 60);
/// … this many times: half a day.
const LIMIT_TIMES: u32 = 48;
/// Added to a named end, because clocks differ.
const SLACK: Duration = Duration::from_secs(60);

/// How long to wait before a turn is tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parking {
    For(Duration),
    Until(Wall),
    /// Trying again is pointless, or was tried often enough.
    No,
}

/// What to do about a failure that has come `times` times in a row before. `resets` is the named end of a limit.
pub fn parking(failure: &ApiFailure, times: u32, resets: Option<Wall>) -> Parking {
    match failure {
        ApiFailure::Server(_) | ApiFailure::Dropped => {
            SERVER.get(times as usize).map_or(Parking::No, |seconds| Parking::For(Duration::from_secs(*seconds)))
        }
        ApiFailure::UsageLimit { .. } if times >= LIMIT_TIMES => Parking::No,
        ApiFailure::UsageLimit { .. } => match resets {
            Some(resets) => Parking::Until(Wall(resets.0 + SLACK.as_millis() as i64)),
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
        let waits: Vec<_> = (0..6).map(|times| parking(&server, times, None)).collect();
        let expected = SERVER.iter().map(|s| Parking::For(Duration::from_secs(*s))).chain([Parking::No]);
        assert_eq!(waits, expected.collect::<Vec<_>>());
        let limit = ApiFailure::UsageLimit { resets: None };
        assert_eq!(parking(&limit, 0, None), Parking::For(LIMIT));
        assert_eq!(parking(&limit, 0, Some(Wall(1_000))), Parking::Until(Wall(61_000)));
        assert_eq!(parking(&limit, LIMIT_TIMES, Some(Wall(1_000))), Parking::No);
        assert_eq!(parking(&ApiFailure::Other("401".into()), 0, None), Parking::No);
    }
}
