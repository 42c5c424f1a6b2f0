//! The clock that keeper and daemon share.

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds of a clock that all processes of this machine read alike and that stands still while the machine sleeps.
pub fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}
