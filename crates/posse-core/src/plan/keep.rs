//! Retention of unmerged work. Failed attempts may hold useful work. They expire some time after their task is
//! verified.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;

use super::{Record, TaskStatus};
use crate::time::Wall;

/// The retention of unmerged work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Goes,
    /// Its task is not verified, so this may be the only copy.
    Needed,
    /// May be deleted at that time.
    Until(Wall),
}

impl fmt::Display for Fate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fate::Goes => f.write_str("it is not needed any more"),
            Fate::Needed => f.write_str("its task is not verified"),
            Fate::Until(at) => {
                let day = Timestamp::from_millisecond(at.0).map(|at| at.strftime("%Y-%m-%d").to_string());
                write!(f, "it is kept until {}", day.unwrap_or_else(|_| "for ever".into()))
            }
        }
    }
}

/// Returns the retention of an attempt that is not merged. Merged work may always be deleted. `touched` is the time of
/// the last work on it; `record` is that of its task in the newest run of the plan, if known.
pub fn fate(touched: Wall, record: Option<&Record>, keep: Duration, now: Wall) -> Fate {
    let verified = record.filter(|record| record.status == TaskStatus::Verified);
    // Verified, but the time is unknown, so the work is kept.
    let Some(since) = verified.and_then(|record| record.completed_at.as_deref()?.parse::<Timestamp>().ok()) else {
        return Fate::Needed;
    };
    let since = since.as_millisecond().max(touched.0);
    let until = Wall(since).after(keep);
    if until <= now { Fate::Goes } else { Fate::Until(until) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_go() {
        const DAY: i64 = 24 * 60 * 60 * 1000;
        let record =
            |status, at: Option<&str>| Record { status, completed_at: at.map(str::to_owned), ..Record::default() };
        let done = record(TaskStatus::Verified, Some("1970-01-02T00:00:00Z"));
        let abroad = record(TaskStatus::Verified, Some("1970-01-02T02:00:00+02:00"));
        let open = record(TaskStatus::Failed, Some("1970-01-02T00:00:00Z"));
        let undated = record(TaskStatus::Verified, None);
        let odd = record(TaskStatus::Verified, Some("yesterday"));
        let skipped = record(TaskStatus::Skipped, None);
        for (name, touched, record, now, expected) in [
            ("its time is over", 0, Some(&done), 8 * DAY, Fate::Goes),
            ("whatever the clock it was told in", 0, Some(&abroad), 8 * DAY, Fate::Goes),
            ("its time is not over", 0, Some(&done), 8 * DAY - 1, Fate::Until(Wall(8 * DAY))),
            ("somebody worked on it since", 3 * DAY, Some(&done), 8 * DAY, Fate::Until(Wall(10 * DAY))),
            ("its task failed", 0, Some(&open), 80 * DAY, Fate::Needed),
            ("its task was skipped", 0, Some(&skipped), 80 * DAY, Fate::Needed),
            ("nobody knows since when", 0, Some(&undated), 80 * DAY, Fate::Needed),
            ("nobody can read since when", 0, Some(&odd), 80 * DAY, Fate::Needed),
            ("nobody knows the task", 0, None, 80 * DAY, Fate::Needed),
        ] {
            assert_eq!(fate(Wall(touched), record, Duration::from_secs(7 * 86_400), Wall(now)), expected, "{name}");
        }
        assert_eq!(Fate::Until(Wall(8 * DAY)).to_string(), "it is kept until 1970-01-09");
    }
}
