//! The usual answers of an agent of the review loop. They pass the gates of the loop, or fail them on purpose: the loop
//! looks for headings, verdict lines, section names and words of evidence.

use crate::scenario::{LoopPlay, TurnKey};

/// Returns whether the next answer approves, on the way to PASS. In each round, reviewers find fault as often as
/// configured and then approve. Testers fail as often as configured.
pub(crate) fn approves(key: TurnKey, answered_before: u32, play: &LoopPlay) -> bool {
    match key {
        TurnKey::Analyst | TurnKey::Programmer => true,
        TurnKey::AnalystReview | TurnKey::ProgrammerReview => {
            answered_before % play.revisions.saturating_add(1) >= play.revisions
        }
        TurnKey::Tester => answered_before >= play.failures,
    }
}

/// Returns the answer that approves or finds fault. `nth` counts the answers, so that no two are equal.
pub(crate) fn text(key: TurnKey, approves: bool, nth: u32) -> String {
    let body = match (key, approves) {
        (TurnKey::Analyst, _) => include_str!("../../../answers/analyst.md"),
        (TurnKey::Programmer, _) => include_str!("../../../answers/programmer.md"),
        (TurnKey::AnalystReview, true) => include_str!("../../../answers/analyst_review_approved.md"),
        (TurnKey::AnalystReview, false) => include_str!("../../../answers/analyst_review_revise.md"),
        (TurnKey::ProgrammerReview, true) => include_str!("../../../answers/programmer_review_approved.md"),
        (TurnKey::ProgrammerReview, false) => include_str!("../../../answers/programmer_review_revise.md"),
        (TurnKey::Tester, true) => include_str!("../../../answers/tester_pass.md"),
        (TurnKey::Tester, false) => include_str!("../../../answers/tester_fail.md"),
    };
    format!("{body}\n(Answer {nth} of {}.)\n", key.word())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn play(revisions: u32, failures: u32) -> LoopPlay {
        LoopPlay { revisions, failures, ..LoopPlay::default() }
    }

    #[test]
    fn reviewers_revise_and_testers_fail_as_often_as_configured() {
        use TurnKey::{Analyst, AnalystReview, ProgrammerReview, Tester};
        let cases = [
            (Analyst, play(1, 1), "+++++"),
            (AnalystReview, play(1, 0), "-+-+-"),
            (ProgrammerReview, play(2, 0), "--+--"),
            (ProgrammerReview, play(0, 0), "+++++"),
            (Tester, play(1, 0), "+++++"),
            (Tester, play(1, 2), "--+++"),
            (ProgrammerReview, play(u32::MAX, 0), "-----"),
        ];
        for (key, play, expected) in cases {
            let verdicts: String = (0..5).map(|before| if approves(key, before, &play) { '+' } else { '-' }).collect();
            assert_eq!(verdicts, expected, "{key:?} {play:?}");
        }
    }
}
