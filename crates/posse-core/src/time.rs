//! Time as an argument. Core never asks what time it is; it is told.

use serde::{Deserialize, Serialize};

/// A point on the wall clock, in milliseconds since the Unix epoch. Used for what people read later
/// ("since 14:02"), never to measure how long something took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Wall(pub i64);
