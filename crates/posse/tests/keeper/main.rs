//! The real keeper, driven through its socket, frame by frame, without a daemon: its promises hold for any client of
//! its protocol.

#![allow(clippy::unwrap_used)]

mod checkpoints;
mod exits;
mod families;
mod greeting;
mod input;
mod inside;
mod keeper;
mod limits;
mod output;
mod peer;
mod spawning;
mod supervision;
