//! Decides when to read a screen. Programs draw in bursts, and a read in the middle of a burst sees half a picture. So
//! a screen is read when the program marks a frame as complete, when it has been quiet for a moment, and otherwise at a
//! maximum interval.

use std::time::Duration;

/// Quiet time after which a burst is over: programs leave shorter gaps between the writes of one frame, and people do
/// not notice it.
pub const QUIET: Duration = Duration::from_millis(30);
/// Maximum interval between reads of a program that never stops printing.
pub const LATEST: Duration = Duration::from_millis(250);

/// Decides when to read. `T` is a point in time of the caller's clock.
#[derive(Debug)]
pub struct FrameClock<T> {
    dirty: Option<Dirty<T>>,
}

#[derive(Debug)]
struct Dirty<T> {
    since: T,
    last: T,
    complete: bool,
}

impl<T> Default for FrameClock<T> {
    fn default() -> Self {
        Self { dirty: None }
    }
}

impl<T: Copy + Ord + std::ops::Add<Duration, Output = T>> FrameClock<T> {
    /// Records output. `complete`: the program marked the end of a frame and began no other.
    pub fn printed(&mut self, complete: bool, now: T) {
        let dirty = self.dirty.get_or_insert(Dirty { since: now, last: now, complete });
        dirty.last = now;
        dirty.complete = complete;
    }

    /// Returns when to call `due` again. A late or extra call is harmless.
    pub fn deadline(&self) -> Option<T> {
        self.dirty.as_ref().map(|dirty| if dirty.complete { dirty.last } else { dirty.moment() })
    }

    /// Returns whether to read now; if so, everything printed so far counts as seen.
    pub fn due(&mut self, now: T) -> bool {
        let due = self.deadline().is_some_and(|deadline| deadline <= now);
        if due {
            self.dirty = None;
        }
        due
    }
}

impl<T: Copy + Ord + std::ops::Add<Duration, Output = T>> Dirty<T> {
    fn moment(&self) -> T {
        (self.last + QUIET).min(self.since + LATEST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Prints at the given milliseconds (`true`: a complete frame) and returns the times of the reads, polling every
    /// millisecond.
    fn looks(prints: &[(u64, bool)], until: u64) -> Vec<u64> {
        let mut clock = FrameClock::default();
        let at = Duration::from_millis;
        (0..until)
            .filter(|ms| {
                for (_, complete) in prints.iter().filter(|(when, _)| when == ms) {
                    clock.printed(*complete, at(*ms));
                }
                clock.due(at(*ms))
            })
            .collect()
    }

    #[test]
    fn looks_are_taken_at_the_end_of_bursts() {
        assert_eq!(looks(&[], 1000), [0; 0], "nothing printed, nothing looked at");
        assert_eq!(looks(&[(5, false)], 1000), [35]);
        assert_eq!(looks(&[(5, false), (20, false), (45, false)], 1000), [75], "one burst, one look");
        assert_eq!(looks(&[(5, false), (100, false)], 1000), [35, 130]);
        assert_eq!(looks(&[(5, true)], 1000), [5], "a complete frame is looked at at once");
        assert_eq!(looks(&[(5, true), (5, false)], 1000), [35], "unless another has begun");
    }

    #[test]
    fn a_program_that_never_stops_is_looked_at_all_the_same() {
        let prints: Vec<_> = (0..600).step_by(10).map(|ms| (ms, false)).collect();
        assert_eq!(looks(&prints, 700), [250, 510, 620]);
    }
}
