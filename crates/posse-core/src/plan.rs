//! Plans: what is to be done, what may be started next, and whether it was done.
//!
//! A plan is a YAML file of sections and tasks. Each task is carried out by a headless session of its own. Everything that
//! can be decided about a plan without touching a file, a process or a clock is decided here:
//!
//! - `file` is the plan as a value; reading it names every mistake with its place and a hint. `edit` writes statuses into
//!   its text and changes nothing else. `merge` takes over what a session changed in it, as far as it may.
//! - `select` says what may be started now, why the rest may not, and how the plan stands.
//! - `report` is what a session says of its work, `outcome` what is made of that and of all other evidence, `verdict` what a
//!   validator thinks of it, `limits` whether the quota was used up and until when.
//! - `gates` says whether what we ran to check the work is redder than before, `names` what its branch and its commits are
//!   called, `fast_forward` what is in the way when it is merged.
//! - `isolation` says where tasks are worked on, `checkout` whose is what where the user and sessions share a checkout, `keep`
//!   how long work is kept that was not merged.
//! - `escalate`, `breaker` and `budget` say with what, when and for how much a task is tried again; `usage` sums up what all of
//!   it has used.
//! - `config` is what the project and the user say about all plans, `settings` what follows from it for one run.
//! - `prompt` is what a session is told.
//! - `retention` says how long what a run leaves behind is kept.
//! - `machine` is a run of a plan: all of the above, fed with events.
//!
//! Sessions report; only the orchestrator records. What is missing, unreadable or unproven is never success.

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
mod read_meta;
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
pub use read_meta::cannot_fail;
pub use record::{FailureKind, LeftTask, Record, State, TaskStatus};
pub use writes::write_set;
