//! The usual answers of an agent of the review loop. They pass the gates of the loop, or fail them on purpose: the loop
//! looks for headings, verdict lines, section names and words of evidence.

use crate::scenario::{LoopPlay, ScriptedVerdict, TurnKey};

/// Returns the verdict that leads a run to PASS. In each round, reviewers find fault as often as configured and then
/// approve. Testers fail as often as configured.
pub(crate) fn usual_verdict(key: TurnKey, answered_before: u32, play: &LoopPlay) -> ScriptedVerdict {
    let approves = match key {
        TurnKey::Analyst | TurnKey::Programmer => true,
        TurnKey::AnalystReview | TurnKey::ProgrammerReview => {
            answered_before % play.revisions.saturating_add(1) >= play.revisions
        }
        TurnKey::Tester => answered_before >= play.failures,
    };
    if approves { ScriptedVerdict::Approve } else { ScriptedVerdict::Revise }
}

/// Returns the answer with that verdict. `nth` counts the answers, so that no two are equal.
pub(crate) fn text(key: TurnKey, verdict: ScriptedVerdict, nth: u32) -> String {
    let body = match (verdict, key) {
        (ScriptedVerdict::Nonsense, _) => NONSENSE,
        (ScriptedVerdict::Template, TurnKey::Analyst) => "ANALYST_SUMMARY:\n- Scope: <paths>\n- Risks: <risks>\n",
        (ScriptedVerdict::Template, TurnKey::Programmer) => "PROGRAMMER_SUMMARY:\n- Files changed: <paths>\n",
        (ScriptedVerdict::Template, TurnKey::Tester) => "RESULT: PASS|FAIL\nEVIDENCE:\n- <criterion>: <observed>\n",
        (ScriptedVerdict::Template, _) => "REVIEW_RESULT: APPROVED|REVISE\nREVIEW_NOTES:\n- <notes>\n",
        (_, TurnKey::Analyst) => ANALYST,
        (_, TurnKey::Programmer) => PROGRAMMER,
        (ScriptedVerdict::Approve, TurnKey::AnalystReview) => ANALYST_APPROVED,
        (ScriptedVerdict::Revise, TurnKey::AnalystReview) => ANALYST_REVISE,
        (ScriptedVerdict::Approve, TurnKey::ProgrammerReview) => PROGRAMMER_APPROVED,
        (ScriptedVerdict::Revise, TurnKey::ProgrammerReview) => PROGRAMMER_REVISE,
        (ScriptedVerdict::Approve, TurnKey::Tester) => PASS,
        (ScriptedVerdict::Revise, TurnKey::Tester) => FAIL,
    };
    match verdict {
        ScriptedVerdict::Template => body.to_owned(),
        _ => format!("{body}\n(Answer {nth} of {}.)\n", key.word()),
    }
}

const ANALYST: &str = "\
ANALYST_SUMMARY:
- Scope: src/greeting.rs and its caller src/main.rs.
- OpenSpec artifacts: proposal.md, design.md, tasks.md and specs/greeting/spec.md are created and complete; P1 to P4
  are traced to tasks, phase coverage is complete.
- Implementation notes:
  1. Add `greet(name)` to src/greeting.rs.
  2. Call it from src/main.rs.
  3. Cover the empty name with a test in tests/greeting.rs.
- Risks: an empty name prints a stray comma; mitigated by step 3.
- Downstream impact: the contract of src/main.rs is unchanged.
- Handoff: the list above contains 3 steps, in order.
";

const ANALYST_APPROVED: &str = "\
REVIEW_RESULT: APPROVED
REVIEW_NOTES:
- Artifacts: proposal verified, design verified, tasks complete and correct, spec present.
- Traceability confirmed: P1 to P4 coverage complete, no phase missing.
- Downstream: the contract of src/main.rs holds, no other module is touched.
- Handoff contains 3 steps; src/greeting.rs and src/main.rs exist.
";

const ANALYST_REVISE: &str = "\
REVIEW_RESULT: REVISE
REVIEW_NOTES:
- Artifacts: the spec is incomplete, the empty name is missing.
- Traceability: a gap, P3 is not traced to a task.
- Downstream: name the callers in src/main.rs.
- Handoff: lists 2 steps, the test is not among them.
";

const PROGRAMMER: &str = "\
PROGRAMMER_SUMMARY:
- Files changed: src/greeting.rs, src/main.rs, tests/greeting.rs.
- Behavior implemented: the program greets by name, and the world if there is none.
- Known limitations: none.
- Validation: the project's test command ran, all tests passed.
";

const PROGRAMMER_APPROVED: &str = "\
REVIEW_RESULT: APPROVED
REVIEW_NOTES:
- Implementation: the diff of src/greeting.rs does what the tasks say.
- Validation: the test command was run, all tests passed.
- Risk: no regression found, coverage is good.
- Issues: none left, the earlier defect is fixed.
";

const PROGRAMMER_REVISE: &str = "\
REVIEW_RESULT: REVISE
REVIEW_NOTES:
- Implementation: the code of `greet` ignores an empty name.
- Validation: the test for it is missing.
- Risk: a regression would go unseen.
- Fix the gap before the tester runs the scenario.
";

const PASS: &str = "\
RESULT: PASS
EVIDENCE:
- Criterion 1: `greet Ada` printed `Hello, Ada!`.
- Criterion 2: `greet` printed `Hello, world!`.
- Exit code 0 both times.
";

const FAIL: &str = "\
RESULT: FAIL
EVIDENCE:
- Criterion 1: `greet Ada` printed `Hello, Ada!`.
- Criterion 2: `greet` printed `Hello, !`, expected `Hello, world!`.
- Exit code 0 both times.
";

const NONSENSE: &str = "\
I looked around a little and everything seems to be where it was. There is also a cat on the roof.
";

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
            let verdicts: String = (0..5)
                .map(|before| if usual_verdict(key, before, &play) == ScriptedVerdict::Approve { '+' } else { '-' })
                .collect();
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
            for (verdict, line) in [(ScriptedVerdict::Approve, "APPROVED"), (ScriptedVerdict::Revise, "REVISE")] {
                let text = text(key, verdict, 1);
                assert!(hits(&format!(r"^\s*REVIEW_RESULT:\s*{line}\s*$"), &text), "{text}");
                let notes = &text[text.find("REVIEW_NOTES:").unwrap()..];
                for pattern in patterns {
                    assert!(hits(pattern, notes), "{pattern} is not in {notes}");
                }
            }
        }
        for (verdict, line) in [(ScriptedVerdict::Approve, "PASS"), (ScriptedVerdict::Revise, "FAIL")] {
            let text = text(TurnKey::Tester, verdict, 1);
            assert!(hits(&format!(r"\ARESULT: {line}$"), &text) && hits(r"^EVIDENCE:\n- ", &text), "{text}");
        }
        for key in TurnKey::ALL {
            for verdict in [ScriptedVerdict::Template, ScriptedVerdict::Nonsense] {
                let text = text(key, verdict, 1);
                assert!(!hits(r"^\s*(REVIEW_)?RESULT:\s*(APPROVED|PASS|REVISE|FAIL)\s*$", &text), "{text}");
            }
        }
    }

    #[test]
    fn summaries_have_the_sections_of_the_handoff() {
        for (key, sections) in [
            (TurnKey::Analyst, &["OpenSpec artifacts", "Implementation notes", "Risks", "Downstream impact"][..]),
            (TurnKey::Programmer, &["Files changed", "Behavior implemented", "Known limitations"]),
        ] {
            let text = text(key, ScriptedVerdict::Approve, 3);
            for section in sections {
                assert!(hits(&format!("^- {section}:"), &text), "{section} is not in {text}");
            }
            assert!(text.ends_with(&format!("(Answer 3 of {}.)\n", key.word())));
        }
    }
}
