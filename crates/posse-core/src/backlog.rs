//! The backlog: Markdown files, one for each defect or feature that somebody wants worked on.
//!
//! - `item` is such a file as a value; `read` makes it of a text, in either of two header styles, and names what is wrong.
//! - `dirs` names the directories of a backlog.
//! - `queue` says which items may be worked on, in which order, and why the others may not.
//! - `intake` says whether there is enough in an item to begin, and what to ask if not.
//! - `edit` is everything that we ever change in the file of an item: its status, our log, our questions, the outcome.
//! - `names` are the names of the files, and the numbers in them.
//! - `planner` and `verifier` are what the sessions around a plan are told, `message` and `report` what people are told
//!   afterwards.
//!
//! What an item says is data, written by anybody. It never becomes an instruction of ours, and what we append to it cannot
//! be mistaken for something its author wrote.

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
