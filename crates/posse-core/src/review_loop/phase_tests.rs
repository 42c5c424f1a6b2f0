//! The table of phases, row by row, and the scenarios about it.

use super::config::{Condensation, LoopLimits};
use super::*;

pub(super) const APPROVED: &str = "REVIEW_RESULT: APPROVED
REVIEW_NOTES:
- Artifacts: proposal verified; code and diff read.
- Traceability: P1 coverage confirmed; tests ran.
- Downstream: module a keeps its contract; no regression.
- Handoff contains 3 steps; no defect.";
pub(super) const REVISE: &str = "REVIEW_RESULT: REVISE\nREVIEW_NOTES:\n- the paths are missing";
pub(super) const PASS: &str = "RESULT: PASS\nEVIDENCE:\n- seen";
pub(super) const FAIL: &str = "RESULT: FAIL\nEVIDENCE:\n- exit code 2";

pub(super) fn rules() -> Rules {
    Rules {
        limits: LoopLimits { min_review_cycles_before_approval: 1, ..LoopLimits::default() },
        condensation: Condensation::default(),
        project_test_cmd: String::new(),
        openspec: false,
        prompts: PromptTemplates::default(),
    }
}

pub(super) fn prompt() -> Prompt {
    Prompt { explore: "Add an export.".into(), scenario: "1. Run `app export`.".into() }
}

fn begin(start: Role) -> Rounds {
    Rounds::begin(rules(), prompt(), start)
}

/// Applies the answers in order; each is listed with its turn.
#[track_caller]
fn play(rounds: &mut Rounds, turns: &[(Key, &str)]) -> Vec<Note> {
    let mut notes = Vec::new();
    for (key, answer) in turns {
        assert_eq!(rounds.next(), Next::Turn(*key), "before {answer:?}");
        notes.extend(rounds.answered(*key, answer));
    }
    notes
}

fn to_tester() -> Vec<(Key, &'static str)> {
    use Key::*;
    vec![
        (Analyst, "ANALYST_SUMMARY"),
        (AnalystReview, APPROVED),
        (Programmer, "Files changed:\n- a.rs\nKnown limitations: none"),
        (ProgrammerReview, APPROVED),
    ]
}

fn words(notes: &[Note]) -> Vec<&str> {
    notes.iter().map(|note| note.text.as_str()).collect()
}

#[test]
fn approved_the_next_phase_begins() {
    let mut rounds = begin(Role::Analyst);
    let notes = play(&mut rounds, &to_tester());
    assert_eq!(words(&notes), ["analyst: approved in cycle 1", "programmer: approved in cycle 1"]);
    assert_eq!((rounds.next(), rounds.phase(), rounds.cycle()), (Next::Turn(Key::Tester), Phase::Tester, 1));
    assert_eq!(
        (rounds.progress.analyst_feedback.as_str(), rounds.progress.programmer_feedback.as_str()),
        (NO_FEEDBACK, NO_FEEDBACK)
    );
    assert_eq!(rounds.output(Key::AnalystReview), APPROVED);
}

#[test]
fn not_approved_the_primary_is_asked_again_with_the_notes() {
    let mut rounds = begin(Role::Analyst);
    let notes = play(&mut rounds, &[(Key::Analyst, "first"), (Key::AnalystReview, REVISE)]);
    assert_eq!(words(&notes), ["analyst: the reviewer asks for changes"]);
    assert_eq!((rounds.next(), rounds.cycle()), (Next::Turn(Key::Analyst), 2));
    assert_eq!(rounds.progress.analyst_feedback, "REVIEW_NOTES:\n- the paths are missing");
    play(&mut rounds, &[(Key::Analyst, "second"), (Key::AnalystReview, APPROVED)]);
    assert_eq!((rounds.phase(), rounds.cycle(), rounds.output(Key::Analyst)), (Phase::Programmer, 1, "second"));
    assert_eq!(rounds.progress.analyst_feedback, NO_FEEDBACK);
    play(&mut rounds, &[(Key::Programmer, "code"), (Key::ProgrammerReview, REVISE)]);
    assert_eq!((rounds.next(), rounds.cycle()), (Next::Turn(Key::Programmer), 2));
    assert_eq!(rounds.progress.programmer_feedback, "REVIEW_NOTES:\n- the paths are missing");
}

#[test]
fn s_179_an_approval_that_is_held_back_is_a_revise() {
    let mut rounds = Rounds::begin(Rules { limits: LoopLimits::default(), ..rules() }, prompt(), Role::Analyst);
    let notes = play(&mut rounds, &[(Key::Analyst, "first"), (Key::AnalystReview, APPROVED)]);
    let [note] = &notes[..] else { panic!("{notes:?}") };
    assert_eq!(note.level, Level::Warning);
    assert_eq!(note.text, "analyst: approval held back: approval counts from cycle 2 on, and this is cycle 1");
    assert_eq!((rounds.next(), rounds.cycle()), (Next::Turn(Key::Analyst), 2));
    assert!(
        rounds.progress.analyst_feedback.starts_with("(The reviewer approved, but"),
        "{}",
        rounds.progress.analyst_feedback
    );
    play(&mut rounds, &[(Key::Analyst, "second"), (Key::AnalystReview, APPROVED)]);
    assert_eq!(rounds.phase(), Phase::Programmer);
}

#[test]
fn s_182_without_approval_the_next_phase_begins_all_the_same() {
    let mut rounds = begin(Role::Analyst);
    let cycle = [(Key::Analyst, "again"), (Key::AnalystReview, REVISE)];
    play(&mut rounds, &cycle);
    play(&mut rounds, &cycle);
    let notes = play(&mut rounds, &cycle);
    assert!(notes.last().unwrap().text.contains("no approval after 3 cycles"), "{notes:?}");
    assert_eq!((rounds.next(), rounds.cycle()), (Next::Turn(Key::Programmer), 1));
    assert!(
        rounds.progress.analyst_feedback.contains("did not approve after 3 cycles")
            && rounds.progress.analyst_feedback.contains("paths")
    );
    assert!(rounds.text(Key::Programmer, "").contains("the paths are missing"), "the programmer knows of it");
    let cycle = [(Key::Programmer, "code"), (Key::ProgrammerReview, "no verdict at all")];
    for _ in 0..3 {
        play(&mut rounds, &cycle);
    }
    assert_eq!((rounds.next(), rounds.phase()), (Next::Turn(Key::Tester), Phase::Tester));
}

#[test]
fn pass_is_the_end() {
    let mut rounds = begin(Role::Analyst);
    play(&mut rounds, &to_tester());
    let notes = play(&mut rounds, &[(Key::Tester, PASS)]);
    assert_eq!(words(&notes), ["PASS in round 1"]);
    assert_eq!((rounds.next(), rounds.phase()), (Next::Over(Final::Pass), Phase::Done));
    let before = rounds.clone();
    let notes = rounds.answered(Key::Tester, FAIL);
    assert_eq!((rounds, notes[0].level), (before, Level::Warning), "an answer nobody asked for changes nothing");
}

#[test]
fn s_183_after_a_fail_the_programmer_goes_on_in_the_next_round() {
    let mut rounds = begin(Role::Analyst);
    play(&mut rounds, &to_tester());
    rounds.progress.programmer_feedback = "open".into();
    let notes = play(&mut rounds, &[(Key::Tester, FAIL)]);
    assert_eq!(words(&notes), ["FAIL in round 1"]);
    assert_eq!((rounds.next(), rounds.round(), rounds.cycle()), (Next::Turn(Key::Programmer), 2, 1));
    assert_eq!(rounds.progress.feedback, FAIL);
    assert_eq!(rounds.progress.context_for_retry, "Files changed:\n- a.rs");
    assert_eq!((rounds.output(Key::Analyst), rounds.output(Key::AnalystReview)), ("ANALYST_SUMMARY", APPROVED));
    for key in [Key::Programmer, Key::ProgrammerReview, Key::Tester] {
        assert_eq!(rounds.output(key), "", "{key}");
    }
    assert_eq!(
        (rounds.progress.analyst_feedback.as_str(), rounds.progress.programmer_feedback.as_str()),
        (NO_FEEDBACK, NO_FEEDBACK)
    );
}

#[test]
fn s_184_further_fails_stay_with_the_programmer() {
    let mut rounds = begin(Role::Analyst);
    play(&mut rounds, &to_tester());
    for round in 2..=4 {
        play(&mut rounds, &[(Key::Tester, FAIL)]);
        assert_eq!((rounds.next(), rounds.round()), (Next::Turn(Key::Programmer), round));
        play(&mut rounds, &to_tester()[2..]);
    }
}

#[test]
fn s_178_without_a_verdict_it_is_a_fail_and_the_text_is_the_evidence() {
    let mut rounds = begin(Role::Tester);
    let notes = play(&mut rounds, &[(Key::Tester, "It all went well.\nPASS")]);
    assert_eq!(notes[0].level, Level::Warning);
    assert!(notes[0].text.contains("no `RESULT: …` line"), "{notes:?}");
    assert_eq!((rounds.round(), rounds.progress.feedback.as_str()), (2, "It all went well.\nPASS"));
}

#[test]
fn s_188_after_the_last_round_it_is_a_fail() {
    let limits = LoopLimits { max_rounds: 2, ..rules().limits };
    let mut rounds = Rounds::begin(Rules { limits, ..rules() }, prompt(), Role::Analyst);
    play(&mut rounds, &to_tester());
    play(&mut rounds, &[(Key::Tester, FAIL)]);
    play(&mut rounds, &to_tester()[2..]);
    let notes = play(&mut rounds, &[(Key::Tester, FAIL)]);
    assert_eq!(words(&notes), ["FAIL in round 2", "FAIL: no PASS in 2 rounds"]);
    assert_eq!((rounds.next(), rounds.round(), rounds.phase()), (Next::Over(Final::Fail), 2, Phase::Done));
    assert_eq!(rounds.output(Key::Tester), FAIL, "what was seen last is kept");
}

#[test]
fn the_first_turn_is_that_of_the_role_one_starts_with() {
    use Key::*;
    for (start, first, phase, skipped) in [
        (Role::Analyst, Analyst, Phase::Analyst, &[][..]),
        (Role::PeerAnalyst, AnalystReview, Phase::Analyst, &[Analyst][..]),
        (Role::Programmer, Programmer, Phase::Programmer, &[Analyst][..]),
        (Role::PeerProgrammer, ProgrammerReview, Phase::Programmer, &[Analyst, Programmer][..]),
        (Role::Tester, Tester, Phase::Tester, &[Analyst, Programmer][..]),
    ] {
        let rounds = begin(start);
        assert_eq!((rounds.next(), rounds.phase()), (Next::Turn(first), phase), "{start}");
        for key in Key::ALL {
            let is_skipped = rounds.output(key).contains("was skipped");
            assert_eq!(is_skipped, skipped.contains(&key), "{start}: {key} is {:?}", rounds.output(key));
        }
    }
}

#[test]
fn s_187_a_start_at_the_peer_skips_the_first_turn_of_the_primary_only() {
    let mut rounds = begin(Role::PeerProgrammer);
    let text = rounds.text(Key::ProgrammerReview, "");
    assert!(text.contains("The programmer's turn was skipped"), "{text}");
    play(&mut rounds, &[(Key::ProgrammerReview, REVISE), (Key::Programmer, "code"), (Key::ProgrammerReview, APPROVED)]);
    assert_eq!(rounds.next(), Next::Turn(Key::Tester));
}

#[test]
fn an_answer_of_another_system_reads_the_same() {
    let mut rounds = begin(Role::Tester);
    play(&mut rounds, &[(Key::Tester, "\u{feff}EVIDENCE:\r\n- a\r\nRESULT: PASS\r\n")]);
    assert_eq!((rounds.next(), rounds.output(Key::Tester)), (Next::Over(Final::Pass), "EVIDENCE:\n- a\nRESULT: PASS"));
}
