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
    use regex::RegexBuilder;

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

    fn hits(pattern: &str, text: &str) -> bool {
        RegexBuilder::new(pattern).case_insensitive(true).multi_line(true).build().unwrap().is_match(text)
    }

    /// LOOP-19 and LOOP-21, read strictly: all four kinds of evidence, each near its partner.
    #[test]
    fn approving_answers_pass_the_gates_and_others_do_not() {
        let analyst = [
            r"\b(artifact|proposal|design|tasks|spec)\b.{0,30}\b(verified|missing|incomplete|correct|present|created|updated)\b",
            r"\b(P[1-4]|traceability|phase)\b.{0,30}\b(coverage|gap|confirmed|traced|missing|complete)\b",
            r"\b(downstream|contract)\b.{0,40}(\w+\.\w+|module|service|component|endpoint)",
            r"\b(handoff|action item)s?\b.{0,30}(\d+ steps|includes|contains|lists)",
        ];
        let programmer = [
            r"implementation|code|task|change|diff|file",
            r"validation|test|command|run|not_run|pytest|conda",
            r"risk|regression|quality|coverage|evidence",
            r"fix|issue|defect|gap|failure",
        ];
        for (key, patterns) in [(TurnKey::AnalystReview, analyst), (TurnKey::ProgrammerReview, programmer)] {
            for (verdict, line) in [(true, "APPROVED"), (false, "REVISE")] {
                let text = text(key, verdict, 1);
                assert!(hits(&format!(r"^\s*REVIEW_RESULT:\s*{line}\s*$"), &text), "{text}");
                let notes = &text[text.find("REVIEW_NOTES:").unwrap()..];
                for pattern in patterns {
                    assert!(hits(pattern, notes), "{pattern} is not in {notes}");
                }
            }
        }
        for (verdict, line) in [(true, "PASS"), (false, "FAIL")] {
            let text = text(TurnKey::Tester, verdict, 1);
            assert!(hits(&format!(r"\ARESULT: {line}$"), &text) && hits(r"^EVIDENCE:\n- ", &text), "{text}");
        }
    }

    #[test]
    fn summaries_have_the_sections_of_the_handoff() {
        for (key, sections) in [
            (TurnKey::Analyst, &["OpenSpec artifacts", "Implementation notes", "Risks", "Downstream impact"][..]),
            (TurnKey::Programmer, &["Files changed", "Behavior implemented", "Known limitations"]),
        ] {
            let text = text(key, true, 3);
            for section in sections {
                assert!(hits(&format!("^- {section}:"), &text), "{section} is not in {text}");
            }
            assert!(text.ends_with(&format!("(Answer 3 of {}.)\n", key.word())));
        }
    }
}
