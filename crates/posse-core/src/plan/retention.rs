//! How long what runs of plans, and items of a backlog, leave behind is kept: prompts, streams, reports.
//!
//! Thirty days, or a gigabyte of all together; never what a plan that is not at its end, or an item that is still in the
//! backlog, may still be asked about, and never work that is nowhere else.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::time::Wall;

/// So long after its end a run is kept.
pub const AGE: Duration = Duration::from_secs(30 * 24 * 3600);
/// So much of all runs together.
pub const BYTES: u64 = 1 << 30;

/// A run, and what of it is on disk. `I` names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredRun<I> {
    pub id: I,
    /// The plan, or the item.
    pub file: String,
    pub begun: Wall,
    /// When something happened in it last.
    pub changed: Wall,
    pub over: bool,
    /// It ended as it should.
    pub success: bool,
    /// Work areas are left in it: there may be work in them that is nowhere else.
    pub holds_work: bool,
    pub bytes: u64,
}

/// Why a run stays whatever its age.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stays {
    Running,
    /// The plan is not at its end, or the item is still to be done: the next run of it goes on where this one was.
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

/// Which runs stay whatever their age, and why. `exists`: whether the file of a plan is still there; a plan that is gone is
/// not gone on with.
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

/// Which runs' files go now: the old ones; then, as long as there is too much, the oldest.
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
