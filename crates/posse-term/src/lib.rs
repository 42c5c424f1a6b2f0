//! Terminals: bytes in, keys out.
//!
//! The [`keeper`] owns the terminals and outlives the daemon; [`wire`] is what the two say to each other and
//! [`client`] the daemon's side of it. The [`emulator`] turns bytes into a screen, the [`responder`] answers what
//! programs ask of a terminal, [`cast`] is how recordings are written; all without any IO. [`paths`] knows where sockets and state live,
//! [`text_file`] reads what users, projects and agents name.

pub mod cast;
pub mod client;
pub mod clock;
pub mod emulator;
pub mod keeper;
pub mod lineage;
pub mod lock;
pub mod paths;
pub mod responder;
pub mod sequence;
pub mod text_file;
pub mod wire;
