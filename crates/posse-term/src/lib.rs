//! Terminals: bytes in, keys out.
//!
//! The [`keeper`] owns the terminals and outlives the daemon. [`wire`] is the protocol between the two, [`client`] the
//! daemon's side of it. The [`emulator`] turns bytes into a screen and answers the queries of programs, [`cast`] reads and
//! writes recordings; neither does IO. [`paths`] finds the directories for sockets and state,
//! [`text_file`] reads files that users, projects and agents name.

pub mod cast;
pub mod client;
pub mod clock;
pub mod config_files;
pub mod emulator;
pub mod keeper;
pub mod lineage;
pub mod lock;
pub mod paths;
pub mod ring;
mod sequence;
pub mod text_file;
pub mod wire;
