//! Every decision of posse, and nothing else.
//!
//! Nothing in this crate opens a file, reads a clock or an environment variable, spawns a process or sleeps. State
//! machines are values: they take events and the time, and return effects. The shell around them (`posse-term`,
//! `posse-server`) does the rest.

pub mod audit;
pub mod auto;
pub mod backlog;
pub mod config;
pub mod delivery;
pub mod detect;
pub mod engine;
pub mod file_problem;
pub mod finalize;
pub mod frame;
pub mod git_config;
pub mod ids;
pub mod keys;
pub mod nearest;
pub mod peer;
pub mod permission;
pub mod placeholders;
pub mod plan;
pub mod prompts;
pub mod question;
pub mod review_loop;
pub mod run;
pub mod screen;
pub mod secrets;
pub mod signal;
pub mod status;
#[cfg(test)]
mod testing;
pub mod time;
pub mod turn;
pub mod visible;
pub mod words;
pub mod written;
