//! Time as an argument. Core never asks what time it is; it is told.

use std::ops::Add;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A point on the wall clock, in milliseconds since the Unix epoch. Used for what people read later
/// ("since 14:02"), never to measure how long something took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Wall(pub i64);

/// A point on a clock that never jumps, as time since some beginning. Used to measure; means nothing to people and
/// nothing after a restart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Mono(pub Duration);

impl Wall {
    pub fn timestamp(self) -> jiff::Timestamp {
        jiff::Timestamp::from_millisecond(self.0).unwrap_or_default()
    }

    /// The time since then; nothing if the clock was set back.
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
    /// How long after `earlier` this is; nothing if it is not.
    pub fn since(self, earlier: Mono) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}
