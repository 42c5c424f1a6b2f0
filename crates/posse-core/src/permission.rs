//! Decides whether a permission prompt may be accepted without a person. The audit records it (`audit`).
//!
//! The four conditions of the seed: the terminal waits, auto-accept is on, the cooldown is over, and this turn is below
//! its cap. The subject of a dialog does not matter here (the seed has no classes of commands); `delivery` decides
//! whether a plain yes can answer it.

use std::time::Duration;

use crate::status::StatusKind;
use crate::time::Mono;

/// The minimum time between two accepts in one terminal. Seed 000: "the cooldown period (5.0 seconds)".
pub const COOLDOWN: Duration = Duration::from_secs(5);
/// The maximum number of accepts in one turn. Seed 000: "the safety cap (20)". Instead of the next one the turn fails.
pub const CAP: u32 = 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AcceptVerdict {
    NotAsked,
    Off,
    Cooldown(Mono),
    Capped,
    /// This is accept number `n` of the turn.
    Accept {
        n: u32,
    },
}

/// The accepts of one turn. A new turn starts with a new value, which resets the counter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Accepts {
    pub(crate) count: u32,
    pub(crate) last: Option<Mono>,
}

impl Accepts {
    /// Creates the state of a turn with `count` accepts so far. `last` is the time of the terminal's last accept in any
    /// turn; `None` means long ago, even on a young clock.
    pub fn new(count: u32, last: Option<Mono>) -> Self {
        Self { count, last }
    }

    /// Decides about a prompt. The cooldown precedes the cap: no turn fails for an accept that would not be sent yet.
    pub fn verdict(&self, status: StatusKind, switched_on: bool, now: Mono) -> AcceptVerdict {
        match self.last.map(|last| last + COOLDOWN) {
            _ if status != StatusKind::WaitingUserAnswer => AcceptVerdict::NotAsked,
            _ if !switched_on => AcceptVerdict::Off,
            Some(until) if now < until => AcceptVerdict::Cooldown(until),
            _ if self.count >= CAP => AcceptVerdict::Capped,
            _ => AcceptVerdict::Accept { n: self.count + 1 },
        }
    }

    /// Records that an accept is being sent.
    pub fn sending(&mut self, now: Mono) {
        self.count += 1;
        self.last = Some(now);
    }

    /// Records that an accept was sent, or failed with an unknown result. The key was pressed between `sending` and
    /// now; the cooldown counts from the later time.
    pub fn sent(&mut self, now: Mono) {
        self.last = Some(now);
    }

    /// Records that nothing was typed. The accept does not count, but the cooldown applies.
    pub fn refused(&mut self, now: Mono) {
        self.count = self.count.saturating_sub(1);
        self.last = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::at;
    use StatusKind::{Idle, Processing, WaitingUserAnswer};

    #[test]
    fn cooldown_and_cap_match_the_seeds() {
        assert_eq!((COOLDOWN.as_secs_f64(), CAP, crate::audit::TAIL_LINES), (5.0, 20, 5));
    }

    #[test]
    fn all_four_conditions_are_needed() {
        let fresh = Accepts::default();
        let recent = Accepts::new(3, Some(at(10_000)));
        let full = Accepts::new(20, Some(at(10_000)));
        for (case, accepts, status, on, ms, expected) in [
            ("no question is open", fresh, Processing, true, 0, AcceptVerdict::NotAsked),
            ("the question is gone", full, Idle, true, 90_000, AcceptVerdict::NotAsked),
            ("off", fresh, WaitingUserAnswer, false, 0, AcceptVerdict::Off),
            ("auto-accept is off", full, WaitingUserAnswer, false, 90_000, AcceptVerdict::Off),
            ("S-141, the clock is young", fresh, WaitingUserAnswer, true, 2_000, AcceptVerdict::Accept { n: 1 }),
            ("S-7, 4.9 s", recent, WaitingUserAnswer, true, 14_900, AcceptVerdict::Cooldown(at(15_000))),
            ("exactly 5.0 s have elapsed", recent, WaitingUserAnswer, true, 15_000, AcceptVerdict::Accept { n: 4 }),
            ("S-144, the cap waits", full, WaitingUserAnswer, true, 14_999, AcceptVerdict::Cooldown(at(15_000))),
            ("S-8, the cap", full, WaitingUserAnswer, true, 15_000, AcceptVerdict::Capped),
            ("the 20th is legal", Accepts::new(19, None), WaitingUserAnswer, true, 0, AcceptVerdict::Accept { n: 20 }),
        ] {
            assert_eq!(accepts.verdict(status, on, at(ms)), expected, "{case}");
        }
    }

    #[test]
    fn refused_accept_does_not_count_but_starts_the_cooldown() {
        let mut accepts = Accepts::new(4, None);
        accepts.sending(at(0));
        assert_eq!((accepts.count, accepts.last), (5, Some(at(0))), "the cooldown begins before the key is pressed");
        accepts.refused(at(100));
        assert_eq!((accepts.count, accepts.last), (4, Some(at(100))));
        accepts.sending(at(6_000));
        accepts.sent(at(7_000));
        assert_eq!((accepts.count, accepts.last), (5, Some(at(7_000))));
    }
}
