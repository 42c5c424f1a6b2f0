//! The circuit breaker. Consecutive failures of any tasks mean that something else is wrong. Sessions then pause, and
//! one probe is let through. After the last permitted trip the run ends.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::time::Wall;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BreakerSettings {
    /// The number of consecutive failures.
    pub threshold: u32,
    /// The length of the pause.
    pub reset: Duration,
    /// The number of the trip that ends the run.
    pub max_trips: u32,
}

/// The breaker's state. It is kept with the run, so a restart does not reset it. Its times are of the wall clock
/// because they outlive the process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Breaker {
    state: BreakerState,
    trips: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum BreakerState {
    Closed {
        failures: u32,
    },
    Open {
        until: Wall,
    },
    /// One session is running as a probe.
    HalfOpen,
}

impl Default for BreakerState {
    fn default() -> Self {
        BreakerState::Closed { failures: 0 }
    }
}

/// The effect of an attempt on the breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counts {
    Success,
    Failure,
    /// A stop, an exhausted quota or a validator's FAIL: not a sign of a general failure.
    Nothing,
}

/// The breaker's answer to a new session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreakerGate {
    Open,
    /// One session may start, and no second beside it.
    Probe,
    /// No session may start before then.
    Wait(Wall),
    /// No session may start any more: the run ends as `circuit_open`.
    Broken,
}

impl Breaker {
    pub fn gate(&self, now: Wall, settings: &BreakerSettings) -> BreakerGate {
        match self.state {
            _ if self.trips >= settings.max_trips => BreakerGate::Broken,
            BreakerState::Closed { .. } => BreakerGate::Open,
            BreakerState::Open { until } if now < until => BreakerGate::Wait(until),
            BreakerState::Open { .. } => BreakerGate::Probe,
            // The probe is running. Its end decides.
            BreakerState::HalfOpen => BreakerGate::Wait(Wall(i64::MAX)),
        }
    }

    /// Returns the end of the pause, if the breaker is open.
    pub fn reopens(&self, settings: &BreakerSettings) -> Option<Wall> {
        match self.state {
            BreakerState::Open { until } if self.trips < settings.max_trips => Some(until),
            _ => None,
        }
    }

    /// Records the start of a session. Called only while the gate permits it.
    pub fn started(&mut self) {
        if matches!(self.state, BreakerState::Open { .. }) {
            self.state = BreakerState::HalfOpen;
        }
    }

    pub fn ended(&mut self, counts: Counts, now: Wall, settings: &BreakerSettings) {
        let open = BreakerState::Open { until: now.after(settings.reset) };
        self.state = match (self.state, counts) {
            (_, Counts::Success) => BreakerState::Closed { failures: 0 },
            (BreakerState::Closed { failures }, Counts::Failure) if failures + 1 >= settings.threshold => {
                self.trips += 1;
                open
            }
            (BreakerState::Closed { failures }, Counts::Failure) => BreakerState::Closed { failures: failures + 1 },
            (BreakerState::HalfOpen, Counts::Failure) => {
                self.trips += 1;
                open
            }
            // The probe was inconclusive; the next may start at once.
            (BreakerState::HalfOpen, Counts::Nothing) => BreakerState::Open { until: now },
            // A session that was running when the breaker tripped.
            (state @ BreakerState::Open { .. }, Counts::Failure) | (state, Counts::Nothing) => state,
        };
    }

    pub fn trips(&self) -> u32 {
        self.trips
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::config::PlanConfig;

    enum Do {
        Start,
        End(Counts),
    }

    /// Checks the state of the gate after each step at its second.
    #[track_caller]
    fn check(steps: &[(i64, Do, BreakerGate)]) {
        let (mut breaker, settings) = (Breaker::default(), PlanConfig::default().breaker);
        for (i, (second, step, gate)) in steps.iter().enumerate() {
            let now = Wall(second * 1000);
            match step {
                Do::Start => breaker.started(),
                Do::End(counts) => breaker.ended(*counts, now, &settings),
            }
            assert_eq!(breaker.gate(now, &settings), *gate, "step {i}");
        }
    }

    const FAIL: Do = Do::End(Counts::Failure);

    fn wait(second: i64) -> BreakerGate {
        BreakerGate::Wait(Wall(second * 1000))
    }

    #[test]
    fn t60_three_failures_a_pause_a_probe_and_the_end() {
        check(&[
            (0, FAIL, BreakerGate::Open),
            (1, FAIL, BreakerGate::Open),
            (2, FAIL, wait(302)),
            (301, Do::End(Counts::Nothing), wait(302)),
            (302, Do::End(Counts::Nothing), BreakerGate::Probe),
            (302, Do::Start, BreakerGate::Wait(Wall(i64::MAX))),
            (310, FAIL, BreakerGate::Broken),
        ]);
    }

    #[test]
    fn a_success_closes_it_and_what_is_no_failure_does_not_count() {
        check(&[
            (0, FAIL, BreakerGate::Open),
            (1, FAIL, BreakerGate::Open),
            (2, Do::End(Counts::Nothing), BreakerGate::Open),
            (3, Do::End(Counts::Success), BreakerGate::Open),
            (4, FAIL, BreakerGate::Open),
            (5, FAIL, BreakerGate::Open),
            (6, FAIL, wait(306)),
            (7, FAIL, wait(306)),
            (306, Do::Start, BreakerGate::Wait(Wall(i64::MAX))),
            (320, Do::End(Counts::Nothing), BreakerGate::Probe),
            (321, Do::Start, BreakerGate::Wait(Wall(i64::MAX))),
            (330, Do::End(Counts::Success), BreakerGate::Open),
        ]);
        // In a batch, any success resets the breaker.
        check(&[
            (0, FAIL, BreakerGate::Open),
            (0, FAIL, BreakerGate::Open),
            (0, Do::End(Counts::Success), BreakerGate::Open),
            (0, FAIL, BreakerGate::Open),
        ]);
    }
}
