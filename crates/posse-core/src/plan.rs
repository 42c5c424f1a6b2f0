//! Plans: the tasks, the choice of the next one, and the proof that a task was done.
//!
//! A plan is a YAML file of sections and tasks. Each task is carried out by a headless session of its own. This module
//! has every decision about a plan that needs no file, process or clock.
//!
//! `file` is the plan as a value. `select` chooses the tasks to start. `outcome` judges a session. `config` has the
//! settings of the project and the user for all plans. `machine` is a run of a plan, fed with events.
//!
//! Sessions report; only the orchestrator records. Missing, unreadable or unproven results never count as success.

pub mod breaker;
pub mod budget;
pub(crate) mod check;
pub mod checkout;
pub mod config;
pub mod edit;
#[cfg(test)]
mod edit_tests;
pub mod escalate;
pub mod fast_forward;
pub(crate) mod fields;
pub mod file;
#[cfg(test)]
mod file_tests;
pub mod gates;
mod ids;
pub mod isolation;
pub mod keep;
pub mod limits;
#[cfg(test)]
mod limits_tests;
pub mod machine;
pub mod merge;
#[cfg(test)]
mod merge_tests;
pub mod names;
pub mod outcome;
#[cfg(test)]
mod outcome_tests;
pub mod prompt;
#[cfg(test)]
mod prompt_tests;
#[cfg(test)]
mod property_tests;
mod read;
mod record;
pub mod report;
pub mod retention;
pub mod select;
#[cfg(test)]
mod select_tests;
pub mod settings;
pub mod usage;
pub mod verdict;
mod writes;
pub mod yaml;

pub use fields::duration;
pub use file::Plan;
pub use ids::{BadTaskId, TaskId};
pub use read::cannot_fail;
pub use record::{FailureKind, LeftTask, Record, State, TaskStatus};
pub use writes::write_set;
