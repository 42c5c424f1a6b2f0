//! Time as an argument: the stage never asks what time it is, it is told.

use std::ops::{Add, Sub};
use std::time::Duration;

/// A point on the monotonic clock, in nanoseconds since its own zero. The same clock stamps the log,
/// so that a test can compare it with its own readings of `CLOCK_MONOTONIC`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mono(pub u64);

impl Mono {
    /// The first point of the grid `self, self + step, self + 2·step, …` that lies after `now`.
    /// Animations take their phase from the clock, so that a late tick skips frames and never piles up.
    pub(crate) fn next_on_grid(self, step: Duration, now: Mono) -> Mono {
        let step = u64::try_from(step.as_nanos()).unwrap_or(u64::MAX).max(1);
        let passed = now.0.saturating_sub(self.0) / step;
        Mono(self.0.saturating_add((passed + 1).saturating_mul(step)))
    }
}

impl Add<Duration> for Mono {
    type Output = Mono;
    fn add(self, rhs: Duration) -> Mono {
        Mono(self.0.saturating_add(u64::try_from(rhs.as_nanos()).unwrap_or(u64::MAX)))
    }
}

impl Sub for Mono {
    type Output = Duration;
    /// Never negative: a clock that seems to run backwards counts as standing still.
    fn sub(self, rhs: Mono) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(rhs.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grid_is_always_ahead() {
        let step = Duration::from_nanos(100);
        assert_eq!(Mono(50).next_on_grid(step, Mono(50)), Mono(150));
        assert_eq!(Mono(50).next_on_grid(step, Mono(149)), Mono(150));
        assert_eq!(Mono(50).next_on_grid(step, Mono(1000)), Mono(1050));
        assert_eq!(Mono(50).next_on_grid(Duration::ZERO, Mono(60)), Mono(61));
        assert_eq!(Mono(10) - Mono(20), Duration::ZERO);
    }
}
