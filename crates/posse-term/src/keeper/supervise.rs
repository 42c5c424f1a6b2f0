//! Decides when to start a daemon. Pure: events and the time go in, the decision comes out.
//!
//! A daemon counts as up while one is connected, whether or not the keeper started it. It is restarted when it
//! disconnects without having sent `Rest`.

use std::time::{Duration, Instant};

/// The first and the longest wait before a restart. The first is short because nothing works without a daemon. The
/// longest is short enough for a person who repairs the cause to see the daemon come back.
const FIRST_WAIT: Duration = Duration::from_millis(50);
const LONGEST_WAIT: Duration = Duration::from_secs(5);
/// A daemon that stayed up this long was healthy: the next crash starts with the first wait again.
const HEALTHY_AFTER: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DaemonPhase {
    /// No daemon is wanted.
    Resting,
    Due(Instant),
    /// A process was started and has not connected yet.
    Starting,
    Up(Instant),
}

pub(super) struct Supervisor {
    phase: DaemonPhase,
    wait: Duration,
}

impl Supervisor {
    pub(super) fn new() -> Self {
        Self { phase: DaemonPhase::Resting, wait: FIRST_WAIT }
    }

    pub(super) fn is_resting(&self) -> bool {
        self.phase == DaemonPhase::Resting
    }

    /// Schedules a start now, even during a wait.
    pub(super) fn wanted(&mut self, now: Instant) {
        if matches!(self.phase, DaemonPhase::Resting | DaemonPhase::Due(_)) {
            self.phase = DaemonPhase::Due(now);
        }
    }

    pub(super) fn connected(&mut self, now: Instant) {
        self.phase = DaemonPhase::Up(now);
    }

    /// Records that the daemon leaves on purpose.
    pub(super) fn rests(&mut self) {
        self.phase = DaemonPhase::Resting;
        self.wait = FIRST_WAIT;
    }

    /// Records that the connection of the daemon closed.
    pub(super) fn disconnected(&mut self, now: Instant) {
        if let DaemonPhase::Up(since) = self.phase {
            if now.duration_since(since) >= HEALTHY_AFTER {
                self.wait = FIRST_WAIT;
            }
            self.again(now);
        }
    }

    /// Records that a daemon process exited or could not be started. Returns true if the keeper was waiting for it to
    /// connect; a connected daemon is known by its connection.
    pub(super) fn failed(&mut self, now: Instant) -> bool {
        let starting = self.phase == DaemonPhase::Starting;
        if starting {
            self.again(now);
        }
        starting
    }

    fn again(&mut self, now: Instant) {
        self.phase = DaemonPhase::Due(now + self.wait);
        self.wait = (self.wait * 2).min(LONGEST_WAIT);
    }

    /// Returns whether to start a daemon now; if so it counts as starting.
    pub(super) fn start_now(&mut self, now: Instant) -> bool {
        let due = matches!(self.phase, DaemonPhase::Due(at) if at <= now);
        if due {
            self.phase = DaemonPhase::Starting;
        }
        due
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        match self.phase {
            DaemonPhase::Due(at) => Some(at),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn crashing_daemon_is_restarted_with_backoff() {
        let start = Instant::now();
        let (mut s, mut now) = (Supervisor::new(), start);
        s.wanted(now);
        let mut waits = Vec::new();
        for _ in 0..10 {
            assert!(s.start_now(now));
            s.connected(now);
            s.disconnected(now);
            let due = s.deadline().unwrap();
            waits.push((due - now).as_millis());
            assert!(!s.start_now(due - ms(1)));
            now = due;
        }
        assert_eq!(waits, [50, 100, 200, 400, 800, 1600, 3200, 5000, 5000, 5000]);
    }

    #[test]
    fn healthy_daemon_resets_the_backoff() {
        let now = Instant::now();
        let mut s = Supervisor::new();
        s.wait = LONGEST_WAIT;
        s.connected(now);
        s.disconnected(now + HEALTHY_AFTER);
        assert_eq!(s.deadline(), Some(now + HEALTHY_AFTER + FIRST_WAIT));
    }

    #[test]
    fn resting_daemon_is_not_restarted_until_wanted() {
        let now = Instant::now();
        let mut s = Supervisor::new();
        s.connected(now);
        s.rests();
        s.disconnected(now);
        assert_eq!(s.deadline(), None);
        s.wanted(now);
        assert!(s.start_now(now));
    }

    #[test]
    fn daemon_that_never_connects_is_started_again() {
        let now = Instant::now();
        let mut s = Supervisor::new();
        s.wanted(now);
        assert!(s.start_now(now));
        assert!(!s.start_now(now), "one at a time");
        assert!(s.failed(now));
        assert!(!s.failed(now), "the end of an earlier one is no news");
        assert_eq!(s.deadline(), Some(now + FIRST_WAIT));
        s.wanted(now);
        assert!(s.start_now(now), "a person asking does not wait");
    }
}
