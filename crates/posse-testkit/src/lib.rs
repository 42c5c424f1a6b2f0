//! What the tests and the benchmarks stand on. Not shipped.
//!
//! [`TestEnv`] is a home of its own in a temporary directory, with a keeper and a daemon of its own, that is gone,
//! processes, sockets and all, when the value goes. [`http`] is a second, tiny client, so that tests do not judge
//! the command line by itself. [`bench`] is the benchmark, run by the program of that name; see docs/bench.md.
//! [`agents`] are the real ones; the crate `posse-sim` has the scripted models they talk to; see this crate's README. [`headless`] runs them without a
//! terminal, and [`scripted_claude`] plays such sessions.

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

/// How long a test waits for an event that must come. Only a hang reaches it, however busy the machine is: no test judges
/// speed, the benchmark does.
pub const PATIENCE: std::time::Duration = std::time::Duration::from_secs(300);

pub use env::TestEnv;
