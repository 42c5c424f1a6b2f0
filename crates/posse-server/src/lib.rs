//! The daemon: the imperative shell around `posse-core`.
//!
//! A *pump* per terminal turns bytes into a screen and a status; the *hub* is the one loop that owns what is
//! shared; the *store* writes the journal; the *API* is a face over the same commands for everyone. Bytes and
//! screens stay in the pumps; only changes travel.

// Tests may wait for the disk.
#![cfg_attr(test, allow(clippy::disallowed_methods))]

mod agent_files;
pub mod anchor;
pub mod api;
mod auto;
mod backlog;
mod finalize;

pub mod database;
pub mod disk;
mod environment;
mod first_starts;
mod git;
mod hub;
mod keeper;
mod loops;
mod notify;
mod plans;
mod project_files;
mod pump;
mod quarantine;
mod record;
mod recording;
mod retention;
mod run;
mod serve;
mod store;
mod versions;
mod watch;
mod watched_files;

/// Records that the user approves the configuration and hooks of this repository, also those that changed while sessions ran.
pub fn confirm_repository(
    disk: &disk::Disk,
    paths: &posse_term::paths::Paths,
    directory: &std::path::Path,
) -> Result<(), finalize::GitError> {
    git::guard::keep_in(paths.repositories());
    git::guard::confirm(disk, directory)
}

pub use finalize::GitError;
pub use serve::{ServeError, Settings, serve};

/// Runs a future in the background. In a box, so that tokio's task is compiled once and not for each future.
fn spawn(future: impl Future<Output = ()> + Send + 'static) -> tokio::task::JoinHandle<()> {
    let future: std::pin::Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(future);
    tokio::spawn(future)
}

/// The SHA-256 of some bytes, in hexadecimal digits.
fn sha256(bytes: &[u8]) -> String {
    use sha2::Digest;
    sha2::Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn now() -> posse_core::time::Wall {
    posse_core::time::Wall(jiff::Timestamp::now().as_millisecond())
}

static BEGINNING: std::sync::LazyLock<tokio::time::Instant> = std::sync::LazyLock::new(tokio::time::Instant::now);

/// Time since this daemon first asked.
fn mono() -> posse_core::time::Mono {
    posse_core::time::Mono(BEGINNING.elapsed())
}

/// Random bits for ids, from the kernel.
fn random() -> u64 {
    let mut bytes = [0u8; 8];
    let _ = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    u64::from_ne_bytes(bytes)
}

/// The same point on the runtime's clock.
fn instant(mono: posse_core::time::Mono) -> tokio::time::Instant {
    *BEGINNING + mono.0
}
