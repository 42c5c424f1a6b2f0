//! The texts as sent to agents, for proofreading.

use super::super::phase_tests::{APPROVED, FAIL, prompt, rules};
use super::super::verdict::{self, Verdict};
use super::super::{Next, Rules};
use super::*;

const INSTRUCTION: &str = "Write your answer to /p/.tmp/agent-responses/x.md.";
const ANALYST: &str = "ANALYST_SUMMARY\nScope: src/\nArtifacts: proposal, design, tasks, spec\nImplementation notes:\n1. src/a.rs\nRisks: none\nDownstream impact: the importer";
const PROGRAMMER: &str = "PROGRAMMER_SUMMARY\nFiles changed:\n- src/a.rs\nBehavior implemented:\n- `app export` writes a file\nKnown limitations: none\nChecks: cargo test, ok";
const REVISE: &str = "REVIEW_RESULT: REVISE\nREVIEW_NOTES:\n- (d) is true";

fn answer(rounds: &mut Rounds, answer: &str) {
    let Next::Turn(key) = rounds.next() else { panic!("{:?}", rounds.next()) };
    rounds.told(key.role());
    rounds.answered(key, answer);
}

/// Returns the text of the turn after these answers.
fn after(openspec: bool, test_command: &str, answers: &[&str]) -> (Key, String) {
    let rules = Rules { openspec, project_test_cmd: test_command.into(), ..rules() };
    let mut rounds = Rounds::begin(rules, prompt(), Role::Analyst);
    for text in answers {
        answer(&mut rounds, text);
    }
    let Next::Turn(key) = rounds.next() else { panic!("{:?}", rounds.next()) };
    (key, rounds.text(key, INSTRUCTION))
}

const ROUND_1: [&str; 4] = [ANALYST, APPROVED, PROGRAMMER, APPROVED];

#[test]
fn every_text() {
    let again = [ANALYST, REVISE];
    let review_again = [ANALYST, REVISE, ANALYST];
    let code_again = [ANALYST, APPROVED, PROGRAMMER, REVISE];
    let failed = [&ROUND_1[..], &[FAIL]].concat();
    let failed_again = [&failed[..], &[PROGRAMMER, REVISE]].concat();
    let failed_review = [&failed[..], &[PROGRAMMER]].concat();
    let failed_test = [&failed[..], &[PROGRAMMER, APPROVED]].concat();
    for (name, openspec, command, answers) in [
        ("analyst", false, "", &[][..]),
        ("analyst_openspec", true, "", &[][..]),
        ("analyst_cycle_2", true, "", &again[..]),
        ("analyst_review", false, "", &ROUND_1[..1]),
        ("analyst_review_openspec_cycle_2", true, "", &review_again[..]),
        ("programmer", false, "", &ROUND_1[..2]),
        ("programmer_openspec", true, "cargo test", &ROUND_1[..2]),
        ("programmer_cycle_2", true, "cargo test", &code_again[..]),
        ("programmer_review", false, "cargo test", &ROUND_1[..3]),
        ("tester", false, "", &ROUND_1[..]),
        ("programmer_round_2", false, "cargo test", &failed[..]),
        ("programmer_round_2_openspec_cycle_2", true, "", &failed_again[..]),
        ("programmer_review_round_2", true, "", &failed_review[..]),
        ("tester_round_2", true, "", &failed_test[..]),
    ] {
        let (key, text) = after(openspec, command, answers);
        assert!(name.starts_with(key.as_str()), "{name} is {key}");
        insta::assert_snapshot!(name, text);
        let mentions_openspec = ["openspec", "opsx"].iter().any(|word| text.to_lowercase().contains(word));
        assert!(openspec || !mentions_openspec, "{name}: there is none here");
        assert!(!text.starts_with(['/', '!', '#', '@']), "{name}");
        assert_eq!(text.ends_with(INSTRUCTION), key != Key::Tester, "{name}: the file is asked for last");
    }
}

/// An analyst that works again in a later round, because its phase produced nothing.
#[test]
fn an_analyst_in_a_later_round_begins_with_the_failure() {
    for openspec in [false, true] {
        let mut rounds = Rounds::begin(Rules { openspec, ..rules() }, prompt(), Role::Analyst);
        for text in ROUND_1 {
            answer(&mut rounds, text);
        }
        rounds.progress.outputs.insert(Key::Analyst, String::new());
        answer(&mut rounds, FAIL);
        assert_eq!(rounds.next(), Next::Turn(Key::Analyst));
        let name = if openspec { "analyst_round_2_openspec" } else { "analyst_round_2" };
        insta::assert_snapshot!(name, rounds.text(Key::Analyst, INSTRUCTION));
    }
}

#[test]
fn s_185_a_later_round_has_the_failure_and_the_changes_but_no_handoff() {
    let (_, text) = after(false, "", &[&ROUND_1[..], &[FAIL]].concat());
    for there in ["exit code 2", "<previous_changes>", "src/a.rs", "app export"] {
        assert!(text.contains(there), "{there:?} is missing in\n{text}");
    }
    for absent in ["<analyst_handoff>", "Implementation notes", "Known limitations: none"] {
        assert!(!text.contains(absent), "{absent:?} is in\n{text}");
    }
}

#[test]
fn s_186_only_the_programmer_hears_of_the_round_before() {
    let failed = [&ROUND_1[..], &[FAIL]].concat();
    let new_work = "Files changed:\n- src/b.rs";
    for answers in [[&failed[..], &[new_work]].concat(), [&failed[..], &[new_work, APPROVED]].concat()] {
        let (key, text) = after(false, "", &answers);
        assert!(matches!(key, Key::ProgrammerReview | Key::Tester));
        for absent in ["<previous_changes>", "src/a.rs", "exit code 2"] {
            assert!(!text.contains(absent), "{absent:?} is in the text of {key}\n{text}");
        }
        assert!(text.contains("src/b.rs"));
    }
}

#[test]
fn the_task_is_said_once_to_each_terminal_and_again_to_a_new_one() {
    let task = "<task>\nAdd an export.\n</task>";
    let (_, text) = after(false, "", &[ANALYST, REVISE]);
    assert!(!text.contains(task) && text.contains("at the beginning of this conversation"), "{text}");
    let (_, text) = after(false, "", &ROUND_1[..1]);
    assert!(text.contains(task), "the reviewer has a terminal of its own");

    let mut rounds = Rounds::begin(rules(), prompt(), Role::Analyst);
    for text in [ANALYST, APPROVED, PROGRAMMER, REVISE] {
        answer(&mut rounds, text);
    }
    let text = rounds.text(Key::Programmer, "");
    assert!(!text.contains(task) && !text.contains("<analyst_handoff>\n"), "{text}");
    rounds.forget(Role::Programmer);
    let text = rounds.text(Key::Programmer, "");
    assert!(text.contains(task) && text.contains("<analyst_handoff>\n"), "{text}");
    rounds.told(Role::Programmer);
    rounds.rules.condensation.condense_explore_on_repeat = false;
    rounds.rules.condensation.condense_upstream_on_repeat = false;
    let text = rounds.text(Key::Programmer, "");
    assert!(text.contains(task) && text.contains("<analyst_handoff>\n"), "{text}");
    assert!(!rounds.text(Key::Tester, "").contains(task), "the tester never sees it");
}

#[test]
fn a_reviewer_sees_everything() {
    let long = format!("PROGRAMMER_SUMMARY\n{}\nthe end", "line\n".repeat(500));
    let (_, text) = after(false, "", &[ANALYST, APPROVED, &long]);
    assert!(text.contains("the end") && !text.contains("lines cut]"));
    let (_, text) = after(false, "", &[ANALYST, APPROVED, &long, APPROVED]);
    assert!(!text.contains("the end") && text.contains("[463 lines cut]"), "{text}");
}

#[test]
fn no_answer_is_too_long_to_be_reviewed() {
    let (_, text) = after(false, "", &["é".repeat(1_000_000).as_str()]);
    assert!(text.len() < 1 << 19 && text.contains("[800000 characters cut]"), "{}", text.len());
}

/// An agent that returns the prompt unchanged has decided nothing.
#[test]
fn no_text_is_a_verdict() {
    for turns in 0..=4 {
        let (key, text) = after(true, "", &ROUND_1[..turns]);
        assert_eq!(verdict::test_verdict(&text.replace("RESULT: PASS\n", "")), Verdict::Missing, "{key}");
        let set_out: String = text.lines().map(|line| format!("{}\n", line.trim())).collect();
        assert_ne!(verdict::test_verdict(&set_out), Verdict::Yes, "{key}");
    }
}
