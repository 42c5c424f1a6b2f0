//! The review loop, seen by one of its agents. A prompt asks for an answer in a file, and the name of the file tells
//! which turn it is. `request` finds the file in the prompt, `answer` has the usual answers, and this file counts turns.

mod answer;
mod request;

use std::path::{Path, PathBuf};

use crate::scenario::TurnKey;

pub(crate) use answer::{text, usual_verdict};
pub(crate) use request::{LoopAnswerRequest, request};

/// A counter of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnCount {
    /// Prompts that asked for it.
    Asked,
    /// Turns that answered, even in part.
    Answered,
}

/// How often each turn was asked for and answered. A replacement agent continues the tally of its predecessor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally([[u32; 2]; TurnKey::ALL.len()]);

impl Tally {
    /// Creates a tally from counts.
    ///
    /// # Errors
    /// The first error of `count`.
    pub fn of<E>(count: impl Fn(TurnKey, TurnCount) -> Result<u32, E>) -> Result<Tally, E> {
        let mut tally = Tally::default();
        for key in TurnKey::ALL {
            for what in [TurnCount::Asked, TurnCount::Answered] {
                tally.0[key as usize][what as usize] = count(key, what)?;
            }
        }
        Ok(tally)
    }

    pub fn get(&self, key: TurnKey, what: TurnCount) -> u32 {
        self.0[key as usize][what as usize]
    }

    /// Adds one and returns the new count.
    pub(crate) fn add(&mut self, key: TurnKey, what: TurnCount) -> u32 {
        let count = &mut self.0[key as usize][what as usize];
        *count = count.saturating_add(1);
        *count
    }
}

/// Returns the file that has one line for each thing counted.
pub fn tally_file(directory: &Path, key: TurnKey, what: TurnCount) -> PathBuf {
    let what = match what {
        TurnCount::Asked => "asked",
        TurnCount::Answered => "answered",
    };
    directory.join(format!("{}.{what}", key.word()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_keys_are_independent() {
        let count = |key, what| Ok::<_, ()>(if (key, what) == (TurnKey::Tester, TurnCount::Asked) { 4 } else { 0 });
        let mut tally = Tally::of(count).unwrap();
        assert_eq!(tally.add(TurnKey::Tester, TurnCount::Asked), 5);
        assert_eq!(tally.add(TurnKey::Tester, TurnCount::Answered), 1);
        assert_eq!(tally.add(TurnKey::Analyst, TurnCount::Asked), 1);
        assert_eq!(tally.get(TurnKey::Tester, TurnCount::Asked), 5);
        assert_eq!(tally.get(TurnKey::Programmer, TurnCount::Asked), 0);
        let files: Vec<PathBuf> = TurnKey::ALL.map(|key| tally_file(Path::new("/s"), key, TurnCount::Asked)).into();
        assert_eq!(files[3], Path::new("/s/programmer_review.asked"));
    }
}
