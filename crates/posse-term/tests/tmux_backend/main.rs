//! The tmux backend with the real tmux: each test has a server of its own in a directory of its own.

// Clippy allows this in tests but not in their helpers.
#![allow(clippy::unwrap_used)]

mod bytes;
mod endings;
mod mistakes;
mod people;
mod programs;
mod stage;
mod survival;
