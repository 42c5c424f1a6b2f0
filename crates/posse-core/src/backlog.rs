//! The backlog: Markdown files, one for each defect or feature.
//!
//! - `item` is such a file as a value; `read` parses it, in either of two header styles, and reports problems.
//! - `dirs` names the directories of a backlog.
//! - `queue` selects the items that may start, in order, and gives reasons for the others.
//! - `intake` decides whether an item is precise enough to begin, and what to ask if not.
//! - `edit` makes every change to the file of an item: its status, the log, questions, the outcome.
//! - `names` are the names of the files, and the numbers in them.
//! - `planner` and `verifier` are the prompts of the sessions around a plan. `message` and `report` are the texts for
//!   people afterwards.
//!
//! The text of an item is untrusted data and never an instruction. Text that posse appends cannot be mistaken for the
//! author's.

mod dirs;
pub mod edit;
#[cfg(test)]
mod edit_tests;
pub mod intake;
mod item;
mod markdown;
pub mod message;
pub mod names;
pub mod planner;
#[cfg(test)]
mod prompt_tests;
pub mod queue;
#[cfg(test)]
mod queue_tests;
mod read;
#[cfg(test)]
mod read_tests;
pub mod report;
pub mod verifier;

pub use dirs::BacklogDirs;
pub use item::{Clarification, Dependency, Item, ItemEnd, ItemOutcome, ItemSection, Kind, LogEntry, Priority, Status};
pub use names::{BadSlug, Slug};
pub use read::read;
