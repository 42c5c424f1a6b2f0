//! Compares the reported statuses with the truth.

use posse_core::status::{StatusKind, WaitingKind};
use serde::{Deserialize, Serialize};

use super::truth::{Interval, Millis};

const STEP: Millis = 50;
/// No samples are taken this close to a change of the truth, because its exact time is unknown.
pub const GUARD: Millis = 250;
pub const DIALOG_LAG: Millis = 300;
/// The share of all samples that must be right.
pub const RIGHT: f64 = 0.995;
/// A sample at most this far from a change of the truth is near a change.
pub const NEAR: Millis = 2_000;
/// The share of the samples near a change that must be right. Long quiet stretches do not raise this share.
pub const RIGHT_NEAR: f64 = 0.98;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportedStatus {
    pub at: Millis,
    pub kind: StatusKind,
    pub waiting: Option<WaitingKind>,
    /// Whether the question itself was reported, not only its existence.
    pub dialog: bool,
    pub reason: String,
}

/// A reported status that was never right, nor just before or after.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct False {
    pub at: Millis,
    pub told: StatusKind,
    pub reason: String,
    pub during: String,
    pub lasted: Millis,
}

impl False {
    /// Returns whether the status reports the agent as done. This is the worst error: callers would continue.
    pub fn is_end(&self) -> bool {
        matches!(self.told, StatusKind::Idle | StatusKind::Completed)
    }
}

/// The delay of a right status after a change of the truth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lag {
    pub ms: Millis,
    pub dialog: bool,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Score {
    pub right: usize,
    pub total: usize,
    /// The number of right samples near a change of the truth.
    pub right_near: usize,
    pub total_near: usize,
    pub wrong: Vec<False>,
    pub lags: Vec<Lag>,
    /// Dialogs and errors that were never reported, by their interval.
    pub missed: Vec<String>,
    /// Dialogs that were reported as another kind.
    pub other_kinds: usize,
}

impl Score {
    pub fn share(&self) -> f64 {
        if self.total == 0 { 0.0 } else { self.right as f64 / self.total as f64 }
    }

    /// Returns the share of right samples near a change of the truth; 1 if the truth did not change.
    pub fn share_near(&self) -> f64 {
        if self.total_near == 0 { 1.0 } else { self.right_near as f64 / self.total_near as f64 }
    }

    pub fn is_green(&self) -> bool {
        let soon = self.lags.iter().all(|lag| !lag.dialog || lag.ms <= DIALOG_LAG);
        let nothing_false = !self.wrong.iter().any(False::is_end) && self.missed.is_empty() && self.other_kinds == 0;
        self.share() >= RIGHT && self.share_near() >= RIGHT_NEAR && soon && nothing_false
    }
}

/// Scores the reported statuses. `told` is sorted by time; earlier reports count from the start of the first interval.
pub fn score(truth: &[Interval], told: &[ReportedStatus]) -> Score {
    let mut score = Score { wrong: false_states(truth, told), ..Score::default() };
    let (Some(first), Some(last)) = (truth.first(), truth.last()) else { return score };
    let mut at = first.from;
    while at < last.to {
        let change = truth[1..].iter().map(|interval| (interval.from - at).abs()).min();
        let guarded = change.is_some_and(|away| away < GUARD);
        if let Some(interval) = truth.iter().find(|i| i.from <= at && at < i.to).filter(|_| !guarded) {
            let near = change.is_some_and(|away| away <= NEAR);
            let right = at_time(told, at).is_some_and(|told| interval.allowed.contains(&told.kind));
            score.total += 1;
            score.right += usize::from(right);
            score.total_near += usize::from(near);
            score.right_near += usize::from(near && right);
        }
        at += STEP;
    }
    for pair in truth.windows(2) {
        let [before, interval] = pair else { continue };
        // If more statuses are right than before, no report can be late.
        if interval.dialog.is_none() && before.allowed.iter().all(|kind| interval.allowed.contains(kind)) {
            continue;
        }
        match lag(interval, told) {
            Some(ms) => score.lags.push(Lag { ms, dialog: interval.dialog.is_some() }),
            None if interval.dialog.is_some() || interval.allowed == [StatusKind::Error] => {
                score.missed.push(interval.what.to_owned());
            }
            None => {}
        }
        let kinds = told.iter().filter(|told| told.dialog && (interval.from..interval.to).contains(&told.at));
        score.other_kinds += kinds.filter(|told| interval.dialog.is_some() && told.waiting != interval.dialog).count();
    }
    score
}

fn at_time(told: &[ReportedStatus], at: Millis) -> Option<&ReportedStatus> {
    told.iter().rev().find(|told| told.at <= at)
}

fn lag(interval: &Interval, told: &[ReportedStatus]) -> Option<Millis> {
    let fits =
        |told: &&ReportedStatus| interval.allowed.contains(&told.kind) && (interval.dialog.is_none() || told.dialog);
    if at_time(told, interval.from).filter(fits).is_some() {
        return Some(0);
    }
    let later = told.iter().filter(|told| (interval.from..interval.to).contains(&told.at));
    later.filter(fits).map(|told| told.at - interval.from).min()
}

/// Returns the statuses that nothing within the guard allows. A change of the truth excuses only what is right before
/// or after it; an end in the middle of a turn is always false.
fn false_states(truth: &[Interval], told: &[ReportedStatus]) -> Vec<False> {
    let (Some(first), Some(last)) = (truth.first(), truth.last()) else { return Vec::new() };
    let mut wrong = Vec::new();
    for (number, one) in told.iter().enumerate() {
        let (from, to) = (one.at.max(first.from), told.get(number + 1).map_or(last.to, |next| next.at).min(last.to));
        let mut left: Vec<(Millis, Millis)> = vec![(from, to)];
        for interval in truth.iter().filter(|interval| interval.allowed.contains(&one.kind)) {
            let (a, b) = (interval.from - GUARD, interval.to + GUARD);
            left = left.into_iter().flat_map(|(from, to)| [(from, to.min(a)), (from.max(b), to)]).collect();
            left.retain(|(from, to)| from < to);
        }
        let lasted = left.iter().map(|(from, to)| to - from).sum();
        if let Some((at, _)) = left.first().copied().filter(|(from, to)| from < to) {
            let during = truth.iter().find(|i| i.from <= at && at < i.to).map_or("", |interval| interval.what);
            let (reason, during) = (one.reason.clone(), during.to_owned());
            wrong.push(False { at, told: one.kind, reason, during, lasted });
        }
    }
    wrong
}

#[cfg(test)]
mod tests {
    use StatusKind::{Completed, Error, Idle, Processing, WaitingUserAnswer as Waiting};

    use super::*;

    fn stretch(from: Millis, to: Millis, allowed: &[StatusKind]) -> Interval {
        let dialog = (allowed == [Waiting]).then_some(WaitingKind::Permission);
        Interval { from, to, allowed: allowed.to_vec(), dialog, what: "x" }
    }

    fn says(at: Millis, kind: StatusKind) -> ReportedStatus {
        let waiting = (kind == Waiting).then_some(WaitingKind::Permission);
        ReportedStatus { at, kind, waiting, dialog: kind == Waiting, reason: "r".into() }
    }

    fn turn() -> Vec<Interval> {
        vec![stretch(0, 1_000, &[Idle]), stretch(1_000, 3_000, &[Processing]), stretch(3_000, 5_000, &[Completed])]
    }

    #[test]
    fn right_all_the_time() {
        let score = score(&turn(), &[says(-5, Idle), says(1_040, Processing), says(3_200, Completed)]);
        assert_eq!((score.right, score.total), (82, 82));
        assert_eq!(score.lags.iter().map(|lag| lag.ms).collect::<Vec<_>>(), [40, 200]);
        assert!(score.is_green() && score.wrong.is_empty());
    }

    #[test]
    fn quiet_time_does_not_raise_the_share_near_changes() {
        let truth = [stretch(0, 60_000, &[Idle]), stretch(60_000, 120_000, &[Processing])];
        let score = score(&truth, &[says(0, Idle), says(60_450, Processing)]);
        assert!(score.share() >= RIGHT, "{} of {}", score.right, score.total);
        assert_eq!((score.right_near, score.total_near), (68, 72), "200 ms beyond the guard, of 2 s on each side");
        assert!(!score.is_green());
    }

    #[test]
    fn an_end_in_the_middle_is_seen_however_short() {
        let told = [says(0, Idle), says(1_000, Processing), says(2_001, Completed), says(2_003, Processing)];
        let score = score(&turn(), &[&told[..], &[says(3_000, Completed)]].concat());
        assert_eq!(score.right, score.total, "it falls between two samples");
        assert_eq!(score.wrong.len(), 1);
        assert_eq!((score.wrong[0].at, score.wrong[0].lasted), (2_001, 2));
        assert!(!score.is_green());
    }

    #[test]
    fn a_guard_excuses_only_what_is_right_beside_it() {
        let truth = [stretch(0, 1_000, &[Waiting]), stretch(1_000, 3_000, &[Processing])];
        let late = score(&truth, &[says(0, Waiting), says(1_200, Processing)]);
        assert!(late.wrong.is_empty());
        let end = score(&truth, &[says(0, Waiting), says(1_000, Completed), says(1_100, Processing)]);
        assert_eq!(end.wrong.len(), 1, "nobody was done");
    }

    #[test]
    fn late_dialogs_and_missed_errors() {
        let truth = [stretch(0, 1_000, &[Processing]), stretch(1_000, 3_000, &[Waiting])];
        let announced = ReportedStatus { dialog: false, ..says(500, Waiting) };
        let told = score(&truth, &[says(0, Processing), announced, says(1_290, Waiting)]);
        assert_eq!(told.lags, [Lag { ms: 290, dialog: true }], "announced is not seen");
        let late = score(&truth, &[says(0, Processing), says(1_301, Waiting)]);
        assert!(!late.is_green());
        let truth = [stretch(0, 1_000, &[Processing]), stretch(1_000, 3_000, &[Error])];
        assert_eq!(score(&truth, &[says(0, Processing)]).missed, ["x"]);
    }

    #[test]
    fn a_question_that_is_taken_for_a_permission() {
        let question = Interval { dialog: Some(WaitingKind::Question), ..stretch(1_000, 3_000, &[Waiting]) };
        let truth = [stretch(0, 1_000, &[Processing]), question];
        let told = |kind| [says(0, Processing), ReportedStatus { waiting: Some(kind), ..says(1_100, Waiting) }];
        assert!(score(&truth, &told(WaitingKind::Question)).is_green());
        let wrong = score(&truth, &told(WaitingKind::Permission));
        assert_eq!((wrong.right, wrong.other_kinds), (wrong.total, 1), "the status is right");
        assert!(!wrong.is_green(), "and what is asked is not");
    }
}
