//! The pipeline: works through a backlog, item by item, until each is done, verified and archived.
//!
//! `backlog` defines items and their order, `plan` executes the work. The pipeline decides which item starts, what its
//! next step is, when it counts as done, and when to stop. It works on up to `Settings::parallel` items at once.
//!
//! - `machine` is the pipeline as one value, fed with events.
//! - `messages` has its events and effects, `settings` its settings.
//! - `memory` is its knowledge of each item, across restarts, with the reason of every decision.
//! - `evidence` is the gate before the archive: it names what is missing.
//! - `guards` bounds the starts of items.

pub mod evidence;
pub mod guards;
pub mod machine;
pub mod memory;
pub mod messages;
#[cfg(test)]
mod night;
pub mod settings;
#[cfg(test)]
mod tests;

pub use machine::Pipeline;
pub use memory::{Carried, Memory, Standing};
pub use settings::Settings;
