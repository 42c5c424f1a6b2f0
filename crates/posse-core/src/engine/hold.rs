//! The usage limit that sessions wait for.

use serde::{Deserialize, Serialize};

use crate::time::Wall;

/// A usage limit. No session starts before its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hold {
    pub until: Wall,
    /// The text for people.
    pub reason: String,
    /// The tool reported the reset time. Otherwise `until` is only the time of the next try.
    pub known: bool,
}

/// A run's view of the quota of its agents.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quota {
    hold: Option<Hold>,
    probes: u32,
}

impl Quota {
    pub fn hold(&self) -> Option<&Hold> {
        self.hold.as_ref()
    }

    /// Returns the number of consecutive limits without a known end (`limits::detect`).
    pub fn probes(&self) -> u32 {
        self.probes
    }

    pub fn until(&self) -> Option<Wall> {
        self.hold.as_ref().map(|hold| hold.until)
    }

    /// Records that a session of this run hit a limit. The longer of two holds counts.
    pub fn limited(&mut self, hold: Hold) {
        self.probes = if hold.known { 0 } else { self.probes + 1 };
        if self.until().is_none_or(|until| hold.until > until) {
            self.hold = Some(hold);
        }
    }

    /// Records that a session of this run ended for another reason than a limit.
    pub fn not_limited(&mut self) {
        self.probes = 0;
    }

    /// Returns whether a hold that another run reports lasts longer than the known one.
    pub fn is_longer(&self, hold: &Hold, now: Wall) -> bool {
        hold.until > now && self.until().is_none_or(|until| until < hold.until)
    }

    /// Adopts a hold that another run reports. Returns whether it lasts longer than the known one.
    pub fn adopt(&mut self, hold: Hold, now: Wall) -> bool {
        let is_longer = self.is_longer(&hold, now);
        if is_longer {
            self.hold = Some(hold);
        }
        is_longer
    }

    /// Ends the hold. Returns whether there was one.
    pub fn lift(&mut self) -> bool {
        self.hold.take().is_some()
    }

    /// Ends the hold if its time is over. Returns whether it did.
    pub fn lift_if_over(&mut self, now: Wall) -> bool {
        self.until().is_some_and(|until| until <= now) && self.lift()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longer_of_two_holds_counts_and_only_unknown_ends_are_probes() {
        let hold = |until, known| Hold { until: Wall(until), reason: until.to_string(), known };
        let mut quota = Quota::default();
        for (found, until, probes) in
            [(hold(5, false), 5, 1), (hold(3, false), 5, 2), (hold(9, false), 9, 3), (hold(7, true), 9, 0)]
        {
            quota.limited(found);
            assert_eq!((quota.until(), quota.probes()), (Some(Wall(until)), probes));
        }
        assert!(!quota.adopt(hold(9, true), Wall(0)), "it lasts no longer");
        assert!(!quota.adopt(hold(20, true), Wall(20)), "it is over");
        assert!(quota.adopt(hold(20, true), Wall(19)));
        assert!(!quota.lift_if_over(Wall(19)) && quota.lift_if_over(Wall(20)) && !quota.lift());
    }
}
