//! Time as an argument. Core never reads a clock.

use std::ops::Add;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A point on the wall clock, in milliseconds since the Unix epoch. Used for times that people read later ("since
/// 14:02"), never to measure durations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Wall(pub i64);

/// A point on a monotonic clock, as time since an arbitrary start. Used for durations; meaningless to people and after
/// a restart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Mono(pub Duration);

impl Wall {
    pub fn timestamp(self) -> jiff::Timestamp {
        jiff::Timestamp::from_millisecond(self.0).unwrap_or_default()
    }

    /// Returns the time since `earlier`; zero if the clock was set back.
    pub fn since(self, earlier: Wall) -> Duration {
        Duration::from_millis(u64::try_from(self.0 - earlier.0).unwrap_or(0))
    }

    pub fn after(self, by: Duration) -> Wall {
        Wall(self.0.saturating_add(i64::try_from(by.as_millis()).unwrap_or(i64::MAX)))
    }
}

impl Add<Duration> for Mono {
    type Output = Mono;
    fn add(self, later: Duration) -> Mono {
        Mono(self.0 + later)
    }
}

impl Mono {
    /// Returns the time since `earlier`; zero if `earlier` is later.
    pub fn since(self, earlier: Mono) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}
