//! The wire types: requests, views, events and errors. The daemon, the command line and other clients share them.
//!
//! This crate holds no logic and does no IO. Ids and values that travel unchanged come from `posse-core` and `posse-agents`.

mod audit;
mod auto;
mod daemon;
mod event;
mod loops;
mod plans;
mod problem;
mod runs;
mod terminals;

use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

pub use audit::*;
pub use auto::*;
pub use daemon::*;
pub use event::*;
pub use loops::*;
pub use plans::*;
pub use problem::*;
pub use runs::*;
pub use terminals::*;

/// The version of this build, as sent in handshakes.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Reads a configuration whose missing keys have their defaults.
fn over_defaults<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Serialize + DeserializeOwned,
{
    let mut value = serde_json::to_value(T::default()).map_err(D::Error::custom)?;
    lay_over(&mut value, Value::deserialize(deserializer)?);
    serde_json::from_value(value).map_err(D::Error::custom)
}

fn lay_over(below: &mut Value, above: Value) {
    match (below, above) {
        (Value::Object(below), Value::Object(above)) => {
            for (key, value) in above {
                lay_over(below.entry(key).or_insert(Value::Null), value);
            }
        }
        (below, above) => *below = above,
    }
}
