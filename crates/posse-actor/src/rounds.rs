//! The loop, seen by one of its agents. A prompt asks for an answer in a file, and the name of the file tells
//! whose turn it is. `request` finds that file in the prompt, `answer` has something sensible to say; here is what
//! an agent remembers between turns.

mod answer;
mod request;

use std::path::{Path, PathBuf};

use serde::Deserialize;

pub(crate) use answer::{text, usual_verdict};
pub(crate) use request::{Request, request};

/// What a turn of the loop is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnKey {
    Analyst,
    AnalystReview,
    Programmer,
    ProgrammerReview,
    Tester,
}

impl TurnKey {
    pub const ALL: [TurnKey; 5] =
        [TurnKey::Analyst, TurnKey::AnalystReview, TurnKey::Programmer, TurnKey::ProgrammerReview, TurnKey::Tester];

    /// As the scenario and the log write it.
    pub fn word(self) -> &'static str {
        match self {
            TurnKey::Analyst => "analyst",
            TurnKey::AnalystReview => "analyst_review",
            TurnKey::Programmer => "programmer",
            TurnKey::ProgrammerReview => "programmer_review",
            TurnKey::Tester => "tester",
        }
    }

    /// The name of the file the answer goes to.
    pub fn file(self) -> &'static str {
        match self {
            TurnKey::Analyst => "analyst_summary.md",
            TurnKey::AnalystReview => "analyst_review.md",
            TurnKey::Programmer => "programmer_summary.md",
            TurnKey::ProgrammerReview => "programmer_review.md",
            TurnKey::Tester => "test_result.md",
        }
    }
}

/// What is counted, per turn key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// Prompts that came.
    Asked,
    /// Turns that answered, if only in part.
    Answered,
}

/// How often each turn was asked for and answered. An agent that takes the place of a dead one is given the tally
/// of its predecessor, so that it goes on and does not begin again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally([[u32; 2]; TurnKey::ALL.len()]);

impl Tally {
    /// Makes a tally of what `count` says.
    ///
    /// # Errors
    /// The first error of `count`.
    pub fn of<E>(count: impl Fn(TurnKey, Count) -> Result<u32, E>) -> Result<Tally, E> {
        let mut tally = Tally::default();
        for key in TurnKey::ALL {
            for what in [Count::Asked, Count::Answered] {
                tally.0[key as usize][what as usize] = count(key, what)?;
            }
        }
        Ok(tally)
    }

    pub fn get(&self, key: TurnKey, what: Count) -> u32 {
        self.0[key as usize][what as usize]
    }

    /// Counts one more and says how many there are now.
    pub(crate) fn add(&mut self, key: TurnKey, what: Count) -> u32 {
        let count = &mut self.0[key as usize][what as usize];
        *count = count.saturating_add(1);
        *count
    }
}

/// The file with one line for each thing counted.
pub fn tally_file(folder: &Path, key: TurnKey, what: Count) -> PathBuf {
    let what = match what {
        Count::Asked => "asked",
        Count::Answered => "answered",
    };
    folder.join(format!("{}.{what}", key.word()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_kept_apart() {
        let count = |key, what| Ok::<_, ()>(if (key, what) == (TurnKey::Tester, Count::Asked) { 4 } else { 0 });
        let mut tally = Tally::of(count).unwrap();
        assert_eq!(tally.add(TurnKey::Tester, Count::Asked), 5);
        assert_eq!(tally.add(TurnKey::Tester, Count::Answered), 1);
        assert_eq!(tally.add(TurnKey::Analyst, Count::Asked), 1);
        assert_eq!(tally.get(TurnKey::Tester, Count::Asked), 5);
        assert_eq!(tally.get(TurnKey::Programmer, Count::Asked), 0);
        let files: Vec<PathBuf> = TurnKey::ALL.map(|key| tally_file(Path::new("/s"), key, Count::Asked)).into();
        assert_eq!(files[3], Path::new("/s/programmer_review.asked"));
    }
}
