//! The real keeper, spoken to through its socket, frame by frame. No daemon: whatever the keeper promises it must
//! promise to anyone who speaks its protocol.

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
