//! The pipeline: from a backlog to work that is done, proven and archived. All night, without loops or lies.
//!
//! What an item is, and in which order items come, is `backlog`; how work is carried out is `plan`. Here is what lies
//! between: which item is begun, what is done with it next, when it counts as done, and when to stop.
//!
//! - `machine` is the pipeline as one value, fed with events. It does nothing itself and has no clock of its own.
//! - `words` is what it is told and what it wants done, `settings` what it goes by.
//! - `memory` is what it knows of each item, through any restart, with the reason of every decision.
//! - `evidence` is the gate before the archive: what is missing is named, and nothing passes that is not shown.
//! - `guards` bound everything that could go round in circles.
//! - `session` says what came of a planner's or verifier's session.
//!
//! Items are worked on one at a time, or a few at once; never two of them are the same.

pub mod evidence;
pub mod guards;
pub mod machine;
pub mod memory;
#[cfg(test)]
mod night;
pub mod session;
pub mod settings;
#[cfg(test)]
mod tests;
pub mod words;

pub use machine::Pipeline;
pub use memory::{Carried, Memory, Standing};
pub use settings::Settings;
