//! Files of the user and of projects that both the daemon and the command line read and write: manifests and profiles,
//! config.toml, confirmed commands, the backlog.
//!
//! The state of the daemon itself (database, audit, recordings) is not here.

pub mod backlog;
pub mod child;
pub mod confirmed_commands;
pub mod disk;
pub mod operator;
pub mod providers;
pub mod replace;
pub mod versions;
