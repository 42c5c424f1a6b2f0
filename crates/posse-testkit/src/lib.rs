//! Support for the tests and the benchmarks. Not shipped.
//!
//! [`TestEnv`] is a temporary home with its own keeper and daemon; dropping it removes all processes, sockets and
//! files. [`http`] is a second, tiny client, so that tests do not check the command line with itself. [`bench`] is the
//! benchmark, run by the program of that name; see docs/bench.md. [`agents`] has the real agents; the crate `posse-sim`
//! has the scripted models they use; see this crate's README. [`headless`] runs them without a terminal, and
//! [`scripted_claude`] plays such sessions.

pub mod agents;
pub mod bench;
pub mod conformance;
pub mod docs;
pub mod env;
pub mod files;
pub mod git;
pub mod headless;
pub mod http;
pub mod process;
pub mod scripted_claude;
pub mod seat;
pub mod slow_disk;
pub mod stream;

/// Timeout for an event that must come. Only a hang reaches it, even on a busy machine: tests do not judge speed, the
/// benchmark does.
pub const PATIENCE: std::time::Duration = std::time::Duration::from_secs(300);

pub use env::TestEnv;
