use super::super::config::LoopLimits;
use super::super::phase_tests;
use super::*;

fn unclear(line: &str) -> Verdict {
    Verdict::Unclear(line.to_owned())
}

#[track_caller]
fn check(cases: &[(&str, Verdict)]) {
    for (text, expected) in cases {
        assert_eq!(test_verdict(text), *expected, "{text:?}");
    }
}

#[test]
fn s_175_an_echoed_template_is_not_a_pass() {
    check(&[
        ("RESULT: PASS|FAIL", Verdict::Missing),
        ("RESULT: PASS | FAIL\nEVIDENCE:\n- all good", Verdict::Missing),
        ("RESULT: PASS/FAIL", Verdict::Missing),
        ("RESULT: FAIL|PASS", Verdict::Missing),
        ("RESULT: PASS or FAIL", Verdict::Missing),
        ("RESULT: PASS or not", Verdict::Missing),
        ("RESULT: <PASS|FAIL>", Verdict::Missing),
        ("RESULT: [PASS or FAIL]", Verdict::Missing),
        // The template first, then the verdict.
        ("RESULT: PASS|FAIL\nRESULT: PASS", Verdict::Yes),
        ("RESULT: PASS|FAIL\nRESULT: FAIL", Verdict::No),
    ]);
}

#[test]
fn s_176_of_two_verdicts_the_negative_one_counts() {
    check(&[
        ("RESULT: FAIL\nand after a second look\nRESULT: PASS", Verdict::No),
        ("RESULT: PASS\nRESULT: FAIL", Verdict::No),
        ("RESULT: PASS\nresult: failed at step 3", Verdict::No),
        ("RESULT: FAIL - criterion 2 did not pass", Verdict::No),
        // Any form of a no.
        ("RESULT: PASS\n\n1. RESULT: FAIL", Verdict::No),
        ("> RESULT: FAIL\n\nRESULT: PASS", Verdict::No),
        ("RESULT: PASS\nFINAL RESULT: **FAIL**", Verdict::No),
        // Output of the program under test is no verdict of the tester.
        ("RESULT: PASS\n- with a bad file it prints RESULT: FAIL, as it should", Verdict::Yes),
        ("RESULT: PASS\nREVIEW_RESULT: FAIL", Verdict::Yes),
    ]);
}

#[test]
fn s_177_a_verdict_may_be_dressed() {
    for text in [
        "RESULT: PASS",
        "   result: pass",
        "**RESULT: PASS**",
        "**RESULT:** PASS",
        "- RESULT: PASS",
        "## RESULT: PASS",
        "`RESULT: PASS`",
        "RESULT: **PASS** ✅",
        "RESULT: PASS.",
        "RESULT: PASS - all 5 criteria were observed",
        "RESULT: PASS (5 of 5)",
        "RESULT: PASS (all 3 steps verified, 5/5 criteria met, no issues found)",
        "RESULT: PASS — see the evidence below",
        "RESULT: PASS (12 tests passed)",
        "RESULT: PASS (100%), exit code 0",
        "RESULT: PASS - every criterion held",
        // Not in the requested format: evidence.
        "RESULT: PASS\nEVIDENCE:\n- Result: PASS (exit code 0)\n- Result: Pass, 3 rows shown",
        "I ran everything.\n\nRESULT: PASS\nEVIDENCE:\n- Result: the page shows 3 rows",
    ] {
        assert_eq!(test_verdict(text), Verdict::Yes, "{text:?}");
    }
}

#[test]
fn s_178_what_is_no_verdict_is_no_pass() {
    check(&[
        ("", Verdict::Missing),
        ("All steps passed. PASS", Verdict::Missing),
        ("The RESULT: PASS was printed", Verdict::Missing),
        ("> RESULT: PASS", Verdict::Missing),
        ("REVIEW_RESULT: PASS", Verdict::Missing),
        ("TEST_RESULT: PASS", Verdict::Missing),
        ("Result: the page loads", Verdict::Missing),
        ("RESULT:", unclear("RESULT:")),
        ("RESULT: PASSED", unclear("RESULT: PASSED")),
        ("RESULT: NOT PASS", unclear("RESULT: NOT PASS")),
        ("RESULT: BLOCKED", unclear("RESULT: BLOCKED")),
    ]);
}

#[test]
fn a_pass_with_a_reservation_is_none() {
    for text in [
        "RESULT: PASS, but the export was not tested",
        "RESULT: PASS (except criterion 3)",
        "RESULT: PASS with exceptions",
        "RESULT: PASS - assuming the server is up",
        "RESULT: PASS; 2 of 3, the third could not be run because it doesn’t exist",
        "RESULT: PASS if the warning is ignored",
        "RESULT: PASS (3 of 5 criteria)",
        "RESULT: PASS (4/5)",
        "Result: pass, but the export is empty",
        "RESULT: PASS - unable to run step 3, simulated instead",
        "RESULT: PASS (with caveats)",
        "RESULT: PASS — criterion 4 unverified",
        "RESULT: PASS - no tests passed",
        "RESULT: PASS - issues found",
        "RESULT: PASS - the button is shown, nothing is left open",
    ] {
        assert_eq!(test_verdict(text), unclear(text), "{text:?}");
        assert_eq!(test_verdict(&format!("RESULT: PASS\n{text}")), unclear(text), "it takes back the other one");
        assert_eq!(test_verdict(&format!("{text}\nRESULT: PASS")), unclear(text));
    }
}

const GOOD_ANALYST_NOTES: &str = "REVIEW_NOTES:
- Artifacts: proposal.md verified, tasks complete.
- Traceability: P1 to P4 coverage confirmed.
- Downstream: src/export.rs keeps its contract.
- Handoff lists 5 steps.";

fn with(limits: LoopLimits) -> Rules {
    Rules { limits, ..phase_tests::rules() }
}

fn rules() -> Rules {
    with(LoopLimits { min_review_cycles_before_approval: 1, ..LoopLimits::default() })
}

#[test]
fn evidence_is_counted_by_its_kind() {
    assert_eq!((ANALYST_EVIDENCE.len(), PROGRAMMER_EVIDENCE.len()), (4, 4), "every pattern compiles");
    let thirty = "x".repeat(30);
    for (notes, expected) in [
        (GOOD_ANALYST_NOTES, 4),
        ("looks good to me", 0),
        // Either order, up to the maximum distance, on one line, any case.
        ("VERIFIED the Design", 1),
        (&format!("spec{thirty}missing"), 1),
        (&format!("spec{thirty}.missing"), 0),
        ("spec\nmissing", 0),
        ("p2: gap", 1),
        ("phases: complete", 1),
        ("P5: gap", 0),
        ("downstream: the export service", 1),
        ("contract with src/a.rs", 1),
        ("downstream: nothing", 0),
        ("handoff: 3 concrete steps", 1),
        ("contains each action item", 1),
        ("handoff is fine", 0),
        ("handoff: 3 things", 0),
    ] {
        assert_eq!(evidence(Key::AnalystReview, notes), expected, "{notes:?}");
    }
    for (notes, expected) in [
        ("read the diff; ran `cargo test`; no regression; no defect", 4),
        ("Validation: NOT_RUN, no network", 1),
        ("quality is fine", 1),
        ("looks good", 0),
    ] {
        assert_eq!(evidence(Key::ProgrammerReview, notes), expected, "{notes:?}");
    }
}

#[test]
fn s_179_an_approval_before_its_time_is_held_back() {
    let rules = with(LoopLimits::default());
    let review = format!("REVIEW_RESULT: APPROVED\n{GOOD_ANALYST_NOTES}");
    let outcome = |cycle| review_outcome(Key::AnalystReview, &review, cycle, &rules);
    assert_eq!(outcome(1), Outcome::HeldBack(Lack::Cycles { cycle: 1, min: 2 }));
    assert_eq!(outcome(2), Outcome::Approved);
    assert_eq!(outcome(3), Outcome::Approved);
}

#[test]
fn s_180_an_approval_without_evidence_is_held_back() {
    let outcome = |review: &str| review_outcome(Key::ProgrammerReview, review, 1, &rules());
    let two = "REVIEW_RESULT: APPROVED\nREVIEW_NOTES:\nthe code is fine, the tests ran";
    assert_eq!(outcome(two), Outcome::HeldBack(Lack::Evidence { found: 2, wanted: 3 }));
    assert_eq!(outcome(&format!("{two}, no regression")), Outcome::Approved);
    for no_notes in ["REVIEW_RESULT: APPROVED", "REVIEW_RESULT: APPROVED\ncode, test, risk, fix\nREVIEW_NOTES:\n \n"] {
        assert_eq!(outcome(no_notes), Outcome::HeldBack(Lack::Notes), "{no_notes:?}");
    }
    let beside = "review_result: approved\n**REVIEW_NOTES:** code, test, risk";
    assert_eq!(outcome(beside), Outcome::Approved, "the notes may stand beside their heading");
}

#[test]
fn s_181_evidence_need_not_be_asked_for() {
    let rules = with(LoopLimits { require_review_evidence: false, ..LoopLimits::default() });
    let outcome = |cycle| review_outcome(Key::AnalystReview, "REVIEW_RESULT: APPROVED", cycle, &rules);
    assert_eq!(outcome(1), Outcome::HeldBack(Lack::Cycles { cycle: 1, min: 2 }));
    assert_eq!(outcome(2), Outcome::Approved);
}

#[test]
fn a_review_in_the_form_that_is_asked_for_shows_its_evidence() {
    let analyst = "- Artifacts: proposal and design verified, tasks incomplete, spec missing
- Traceability: P1 to P3 coverage confirmed, P4 gap
- Downstream: the import module, its contract holds
- Handoff: it contains 5 steps";
    let programmer = "- Implementation: src/a.rs does what is asked
- Validation: NOT_RUN, there is no network
- Risk: none elsewhere
- Issues: none";
    assert_eq!((evidence(Key::AnalystReview, analyst), evidence(Key::ProgrammerReview, programmer)), (4, 4));
}

#[test]
fn the_form_handed_back_is_no_evidence() {
    for review in [Key::AnalystReview, Key::ProgrammerReview] {
        let template = crate::prompts::PromptTemplates::default();
        let form = template.source(review.as_str());
        let form = form[form.find("REVIEW_RESULT").unwrap()..].split("\n\n").next().unwrap();
        for filled in [
            form.replace("APPROVED|REVISE", "APPROVED"),
            form.replace("APPROVED|REVISE", "APPROVED").replace("- ", "  * "),
        ] {
            assert_eq!(review_outcome(review, &filled, 1, &rules()), Outcome::HeldBack(Lack::Notes), "{filled}");
        }
    }
}

#[test]
fn a_line_in_a_message_is_not_endless() {
    let Verdict::Unclear(line) = test_verdict(&format!("RESULT: {}", "é".repeat(5000))) else { panic!() };
    assert_eq!(line.chars().count(), 121);
}

#[test]
fn what_is_no_plain_approval_is_none() {
    let outcome =
        |line: &str| review_outcome(Key::AnalystReview, &format!("{line}\n{GOOD_ANALYST_NOTES}"), 1, &rules());
    for (line, expected) in [
        ("REVIEW_RESULT: APPROVED", Outcome::Approved),
        ("- **review_result**: approved", Outcome::Approved),
        ("REVIEW_RESULT: REVISE", Outcome::Revise),
        ("REVIEW_RESULT: REJECTED", Outcome::Revise),
        ("REVIEW_RESULT: APPROVED\nREVIEW_RESULT: REVISE", Outcome::Revise),
        ("REVIEW_RESULT: APPROVED|REVISE", Outcome::Missing),
        ("REVIEW_RESULT: APPROVED or REVISE", Outcome::Missing),
        ("RESULT: APPROVED", Outcome::Missing),
        ("I approve.", Outcome::Missing),
        (
            "REVIEW_RESULT: APPROVED if (b) is mended",
            Outcome::Unclear("REVIEW_RESULT: APPROVED if (b) is mended".into()),
        ),
        ("REVIEW_RESULT: fine", Outcome::Unclear("REVIEW_RESULT: fine".into())),
    ] {
        assert_eq!(outcome(line), expected, "{line:?}");
    }
}
