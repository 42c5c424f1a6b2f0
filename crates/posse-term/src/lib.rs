//! Terminals: bytes in, keys out.
//!
//! The [`keeper`] owns the terminals and outlives the daemon. [`wire`] is the protocol between the two, [`client`] the
//! daemon's side of it. The [`emulator`] turns bytes into a screen and answers queries, [`cast`] reads and writes
//! recordings; neither does IO. [`paths`] finds the directories, [`text_file`] reads files that users, projects and
//! agents name.

pub mod cast;
pub mod client;
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

/// Nanoseconds of a clock that is the same in all processes of this machine and stops while the machine sleeps.
pub fn monotonic_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}
