//! What the tests and the benchmarks stand on. Not shipped.
//!
//! [`TestEnv`] is a home of its own in a temporary directory, with a keeper and a daemon of its own, that is gone,
//! processes, sockets and all, when the value goes. [`http`] is a second, tiny client, so that tests do not judge
//! the command line by itself.

pub mod env;
pub mod http;
pub mod process;

pub use env::TestEnv;
