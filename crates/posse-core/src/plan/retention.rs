//! Retention of the files of plan runs and backlog items: prompts, streams, reports.
//!
//! Files are kept for thirty days, up to a gigabyte in total. Files of an unfinished plan or an open item always stay,
//! and so does unmerged work.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::time::Wall;

/// The retention time after the end of a run.
pub const AGE: Duration = Duration::from_secs(30 * 24 * 3600);
/// The maximum total size of all runs.
pub const BYTES: u64 = 1 << 30;

/// A run and its files on disk. `I` identifies it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredRun<I> {
    pub id: I,
    /// The plan, or the item.
    pub file: String,
    pub begun: Wall,
    /// The time of the last event in it.
    pub changed: Wall,
    pub over: bool,
    /// It ended successfully.
    pub success: bool,
    /// It has work areas, which may hold the only copy of work.
    pub holds_work: bool,
    pub bytes: u64,
}

/// The reason why a run stays at any age.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stays {
    Running,
    /// The plan or item is unfinished: its next run continues from this one.
    Unfinished,
    HoldsWork,
}

impl Stays {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "it is going on",
            Self::Unfinished => "its plan is not at its end",
            Self::HoldsWork => "there is work in it that is not merged",
        }
    }
}

/// Returns the runs that stay at any age, and the reasons. `exists`: whether a plan's file still exists; a deleted plan
/// is not continued.
pub fn stays<I: Ord + Clone>(runs: &[StoredRun<I>], exists: impl Fn(&str) -> bool) -> BTreeMap<I, Stays> {
    let mut newest: BTreeMap<&str, &StoredRun<I>> = BTreeMap::new();
    for run in runs {
        let known = newest.entry(&run.file).or_insert(run);
        if run.begun > known.begun {
            *known = run;
        }
    }
    let unfinished = |run: &StoredRun<I>| {
        newest.get(run.file.as_str()).is_some_and(|newest| !(newest.over && newest.success)) && exists(&run.file)
    };
    let why = |run: &StoredRun<I>| {
        if !run.over {
            return Some(Stays::Running);
        }
        if run.holds_work {
            return Some(Stays::HoldsWork);
        }
        unfinished(run).then_some(Stays::Unfinished)
    };
    runs.iter().filter_map(|run| Some((run.id.clone(), why(run)?))).collect()
}

/// Returns the runs whose files are deleted now: the expired ones, then the oldest ones until the rest fits.
pub fn surplus<I: Ord + Clone>(runs: &[StoredRun<I>], stays: &BTreeMap<I, Stays>, now: Wall) -> Vec<I> {
    let mut total: u64 = runs.iter().map(|run| run.bytes).sum();
    let mut may_go: Vec<&StoredRun<I>> = runs.iter().filter(|run| !stays.contains_key(&run.id)).collect();
    may_go.sort_by_key(|run| (run.changed, run.begun, run.id.clone()));
    let oldest = now.0.saturating_sub(i64::try_from(AGE.as_millis()).unwrap_or(i64::MAX));
    let mut gone = Vec::new();
    for run in may_go {
        if run.changed.0 < oldest || total > BYTES {
            total -= run.bytes;
            gone.push(run.id.clone());
        }
    }
    gone
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 24 * 3600 * 1000;

    fn run(number: u32, file: &str, day: i64) -> StoredRun<u32> {
        StoredRun {
            id: number,
            file: file.into(),
            begun: Wall(day * DAY),
            changed: Wall(day * DAY + 1),
            over: true,
            success: true,
            holds_work: false,
            bytes: 1,
        }
    }

    fn gone(runs: &[StoredRun<u32>], now: i64) -> Vec<u32> {
        let stays = stays(runs, |file| file != "gone");
        let mut gone = surplus(runs, &stays, Wall(now * DAY));
        gone.sort_unstable();
        gone
    }

    #[test]
    fn what_is_old_goes() {
        let runs = [run(1, "a", 0), run(2, "b", 20)];
        assert_eq!(gone(&runs, 30), [0_u32; 0]);
        assert_eq!(gone(&runs, 31), [1]);
        assert_eq!(gone(&runs, 51), [1, 2]);
    }

    #[test]
    fn what_is_not_at_its_end_stays() {
        let failed = |number, file, day| StoredRun { success: false, ..run(number, file, day) };
        for (name, runs, expected) in [
            ("it goes on", vec![StoredRun { over: false, success: false, ..run(1, "a", 0) }], vec![]),
            ("the plan failed", vec![failed(1, "a", 0)], vec![]),
            ("so earlier runs of it stay too", vec![run(1, "a", 0), failed(2, "a", 1)], vec![]),
            ("another one came to the end", vec![failed(1, "a", 0), run(2, "a", 1)], vec![1, 2]),
            ("in whatever order they are told", vec![run(2, "a", 1), failed(1, "a", 0)], vec![1, 2]),
            ("another plan's end is no end", vec![failed(1, "a", 0), run(2, "b", 1)], vec![2]),
            ("the plan is gone", vec![failed(1, "gone", 0)], vec![1]),
            ("there is work in it", vec![StoredRun { holds_work: true, ..run(1, "gone", 0) }], vec![]),
        ] {
            assert_eq!(gone(&runs, 1000), expected, "{name}");
        }
    }

    #[test]
    fn too_much_goes_oldest_first() {
        let big = |number, day| StoredRun { bytes: BYTES / 2, ..run(number, &format!("{number}"), day) };
        let runs = [big(3, 3), big(1, 1), big(2, 2)];
        assert_eq!(gone(&runs, 4), [1], "then there is just enough room");
        let protected = StoredRun { success: false, ..big(1, 1) };
        assert_eq!(gone(&[protected, big(2, 2), big(3, 3)], 4), [2]);
    }
}
