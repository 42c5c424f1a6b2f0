//! The daemon: the imperative shell around `posse-core`.
//!
//! A *pump* per terminal turns bytes into a screen and a status; the *hub* is the one loop that owns what is
//! shared; the *store* writes the journal; the *API* is a face over the same commands for everyone. Bytes and
//! screens stay in the pumps; only changes travel.

// Tests may wait for the disk.
#![cfg_attr(test, allow(clippy::disallowed_methods))]

pub mod aftermath;
pub mod anchor;
pub mod api;
pub mod auto;
mod backlog;

pub mod database;
pub mod disk;
mod driven;
mod environment;
mod event_files;
mod first_starts;
mod git;
mod hook_files;
mod hub;
mod journal;
mod keeper;
mod masking;
pub mod notify;
pub mod plans;
mod project_files;
mod pump;
mod quarantine;
pub mod record;
mod recording;
mod retention;
pub mod runs;
mod serve;
mod session_files;
mod store;
mod versions;
mod watch;
mod watched_files;

/// The user says that the repository of this directory is as they want it, also what was changed while sessions ran.
#[expect(clippy::disallowed_methods, reason = "only the command line uses it")]
pub fn confirm_repository(
    paths: &posse_term::paths::Paths,
    directory: &std::path::Path,
) -> Result<(), aftermath::GitError> {
    git::guard::keep_in(paths.repositories());
    git::guard::confirm(&disk::Disk::of_this_thread(), directory)
}

pub use serve::{ServeError, Settings, serve};

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
