use super::*;

fn rules() -> Condensation {
    Condensation {
        max_cross_phase_lines: 6,
        max_feedback_lines: 3,
        max_test_evidence_lines: 4,
        ..Condensation::default()
    }
}

fn off() -> Condensation {
    Condensation { condense_cross_phase: false, condense_review_feedback: false, ..rules() }
}

#[track_caller]
fn check(condense: fn(&str, &Condensation) -> String, cases: &[(&str, &str)]) {
    for (text, expected) in cases {
        assert_eq!(condense(text, &rules()), *expected, "{text:?}");
        assert_eq!(condense(text, &off()), *text, "unchanged when it is off");
    }
}

#[test]
fn of_a_review_the_notes_count() {
    check(
        review_notes,
        &[
            ("REVIEW_RESULT: REVISE\nREVIEW_NOTES:\n- a\n- b", "REVIEW_NOTES:\n- a\n- b"),
            ("x\n## REVIEW_NOTES\n1\n2\n3\n4\n\n", "## REVIEW_NOTES\n1\n2\n[2 lines cut]"),
            ("no notes\nat all", "no notes\nat all"),
            ("1\n2\n3\n4", "1\n2\n3\n[1 line cut]"),
        ],
    );
}

#[test]
fn feedback_is_never_blank() {
    for rules in [rules(), off()] {
        for condense in [review_notes, test_evidence] {
            assert_eq!(condense(" \n", &rules), NOTHING);
        }
    }
}

#[test]
fn of_a_test_the_verdict_and_the_evidence_count() {
    check(
        test_evidence,
        &[
            ("I ran it.\nRESULT: FAIL\nEVIDENCE:\n- a\n- b", "RESULT: FAIL\nEVIDENCE:\n- a\n- b"),
            (
                "RESULT: FAIL\nwords\nRESULT: FAIL\nEVIDENCE:\n1\n2",
                "RESULT: FAIL\nRESULT: FAIL\nEVIDENCE:\n1\n[1 line cut]",
            ),
            ("EVIDENCE:\n- a\nRESULT: FAIL", "EVIDENCE:\n- a\nRESULT: FAIL"),
            ("it broke\nbadly", "it broke\nbadly"),
            ("1\n2\n3\n4\n5\n6", "1\n2\n3\n4\n[2 lines cut]"),
        ],
    );
}

#[test]
fn the_programmer_gets_three_sections_of_the_analyst() {
    let summary = "ANALYST_SUMMARY\nScope: x\n- OpenSpec artifacts:\n  p.md\n- Implementation notes:\n  1. do\n- Risks:\n  none\n- Downstream impact:\n  y";
    let expected = "- OpenSpec artifacts:\n  p.md\n- Implementation notes:\n  1. do\n- Risks:\n  none";
    check(
        analyst_handoff,
        &[
            (summary, expected),
            (
                "## Artifacts\na\n## Risks\nb\n## Implementation notes\nc",
                "## Artifacts\na\n## Implementation notes\nc\n## Risks\nb",
            ),
            ("**Risks**\nb\nDownstream impact: y", "**Risks**\nb"),
            ("free text", "free text"),
            ("Risks\n1\n2\n3\n4\n5\n6", "Risks\n1\n2\n3\n4\n5\n[1 line cut]"),
        ],
    );
}

#[test]
fn the_tester_gets_two_sections_of_the_programmer() {
    let summary =
        "PROGRAMMER_SUMMARY\nFiles changed:\n- a.rs\nBehavior implemented:\n- b\nKnown limitations:\n- c\nChecks: d";
    check(
        programmer_handoff,
        &[
            (summary, "Files changed:\n- a.rs\nBehavior implemented:\n- b"),
            ("Behaviour implemented: b\nKnown limitations", "Behaviour implemented: b"),
            ("done", "done"),
        ],
    );
}
