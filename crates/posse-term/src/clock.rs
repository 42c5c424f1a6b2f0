//! The clock shared by keeper and daemon.

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds of a clock that is the same in all processes of this machine and stops while the machine sleeps.
pub fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}
