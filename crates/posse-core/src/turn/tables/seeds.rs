//! The scenarios of the seeds, each under its name. S-9, "Audit log content", is in `permission`.

use super::super::TurnRecord;
use super::super::testing::{
    Do, asks, at, busy, check, check_turn, completed, error, file, idle, message, on, play, rules, said, turn_of, who,
};
use crate::review_loop::config::Handoff;

const WAITS: &str = "warning: waits for an answer";
const NEVER: &str = "warning: never entered processing";

#[test]
fn permission_prompt_auto_accepted_opt_in_enabled() {
    let script = [(0, busy()), (1_000, asks(Some("d"))), (1_100, busy()), (5_000, file("done")), (6_000, completed())];
    check("S-5", on(), &script, &[(1_000, "accept 1/20 d"), (6_000, "File done")]);
}

#[test]
fn permission_prompt_detected_but_auto_accept_disabled() {
    let script = [(0, busy()), (1_000, asks(Some("d"))), (1_100, busy()), (2_000, file("done")), (2_500, completed())];
    check("S-6", rules(), &script, &[(1_000, WAITS), (1_000, "notify 5"), (2_500, "File done")]);
    let said = said(rules(), &[(0, asks(Some("d")))]);
    assert!(said[0].contains("peer_programmer") && said[0].contains("00c0ffee"), "{said:?}");
}

#[test]
fn cooldown_prevents_rapid_accepts() {
    // The last accept in this terminal was 4.9 s ago, in the turn before.
    let turn = turn_of(on(), &who(), Some(at(100)), at(4_000));
    let script = [(5_000, asks(Some("d"))), (5_150, busy()), (6_000, file("done")), (6_100, completed())];
    check_turn("S-7", turn.clone(), &script, &[(5_100, "accept 1/20 d"), (6_100, "File done")]);
    let script = [(5_000, asks(Some("d"))), (5_090, busy()), (6_000, file("done")), (6_100, completed())];
    check_turn("S-7, answered by someone else meanwhile", turn, &script, &[(6_100, "File done")]);
}

#[test]
fn safety_cap_exceeded() {
    let before = TurnRecord { accepts: 20, ..who() };
    let turn = turn_of(on(), &before, Some(at(0)), at(0));
    check_turn("S-8", turn, &[(6_000, asks(Some("d")))], &[(6_000, "Runtime Cap")]);
    let turn = turn_of(on(), &before, None, at(0));
    let (_, error) = play(turn, &[(1, asks(Some("d")))]);
    let message = error.unwrap().message;
    for part in ["peer_programmer", "00c0ffee", "20"] {
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn counter_reset_on_new_turn() {
    let before = TurnRecord { accepts: 15, ..who() };
    let old = turn_of(on(), &before, Some(at(0)), at(0));
    assert_eq!(old.accepts(), 15);
    let new = turn_of(on(), &who(), Some(at(0)), at(1_000));
    assert_eq!(new.accepts(), 0);
    let script = [(10_000, asks(Some("d"))), (10_500, busy()), (11_000, file("a")), (11_000, idle())];
    check_turn("S-10", new, &script, &[(10_000, "accept 1/20 d"), (11_000, "File a")]);
}

#[test]
fn waiting_user_answer_no_longer_causes_indefinite_stall() {
    let script = [(0, asks(Some("d"))), (3_000, busy()), (3_000, file("a")), (4_000, idle())];
    check("S-11, on", on(), &script, &[(0, "accept 1/20 d"), (4_000, "File a")]);
    check("S-11, off", rules(), &script, &[(0, WAITS), (0, "notify 5"), (4_000, "File a")]);
}

#[test]
fn agent_writes_response_file_and_terminal_becomes_idle() {
    let script = [(0, busy()), (20_000, file(" the answer \n")), (21_000, idle())];
    check("S-12", rules(), &script, &[(21_000, "File the answer")]);
}

#[test]
fn startup_guard_blocks_premature_grace_timer() {
    let script = [(0, completed()), (9_900, busy()), (60_000, file("a")), (60_500, completed())];
    check("S-13", rules(), &script, &[(60_500, "File a")]);
    // The stale status stands for longer than the grace. A grace timer that counted from the dispatch would fail the turn at
    // 10 s, and one that counted while the guard was active would fail it when the guard is released.
    let script = [(0, completed()), (19_900, busy()), (60_000, file("a")), (60_500, completed())];
    check("S-13, slow start", rules(), &script, &[(10_000, NEVER), (60_500, "File a")]);
}

#[test]
fn agent_starts_processing_and_then_completes() {
    let script = [(0, completed()), (500, busy()), (5_000, file("a")), (5_500, completed())];
    check("S-14", rules(), &script, &[(5_500, "File a")]);
}

#[test]
fn startup_timeout_releases_guard() {
    check("S-15", rules(), &[(0, idle())], &[(10_000, NEVER), (20_000, "Runtime NoFile")]);
}

#[test]
fn response_file_appears_during_startup_guard() {
    check("S-16", rules(), &[(0, completed()), (4_000, file("a"))], &[(4_000, "File a")]);
}

#[test]
fn agent_ignores_file_instruction_but_terminal_finishes_default_mode() {
    let lenient = Handoff { strict_file_handoff: false, ..rules() };
    let script = [(0, busy()), (0, Do::LastOutput(Some(" said "))), (5_000, idle())];
    let expected = [(15_000, "warning: no file"), (15_000, "ask last output"), (15_000, "LastOutput said")];
    check("S-17, by grace", lenient, &script, &expected);
    let short = Handoff { response_timeout: 8, ..lenient };
    let expected = [(8_000, "warning: no file"), (8_000, "ask last output"), (8_000, "LastOutput said")];
    check("S-17, by timeout", short, &script, &expected);
}

#[test]
fn agent_ignores_file_instruction_but_terminal_finishes_strict_mode() {
    let script = [(0, busy()), (0, Do::LastOutput(Some("said"))), (5_000, idle())];
    check("S-18, by grace", rules(), &script, &[(15_000, "Runtime NoFile")]);
    let short = Handoff { response_timeout: 8, ..rules() };
    check("S-18, by timeout", short, &script, &[(8_000, "Runtime NoFile")]);
}

#[test]
fn terminal_enters_error_state() {
    check("S-19", rules(), &[(0, busy()), (700, error())], &[(700, "Runtime ErrorState")]);
    let message = message(rules(), &[(0, error())]);
    assert!(message.contains("ERROR state") && message.contains("00c0ffee"), "{message}");
}

#[test]
fn timeout_with_terminal_still_processing() {
    check("S-20", rules(), &[(0, busy())], &[(1_800_000, "Timeout TimedOut")]);
    let message = message(rules(), &[(0, busy())]);
    for part in ["1800 s", "programmer_review", "00c0ffee", "processing"] {
        assert!(message.contains(part), "{message}");
    }
    assert!(!message.contains("AUTO_ACCEPT"), "nobody was asked: {message}");
}

#[test]
fn waiting_user_answer_counts_as_agent_started() {
    // Guard and grace together would take 20 s from the beginning. Grace alone begins when it is quiet again.
    let script = [(0, completed()), (1_000, asks(Some("d"))), (2_000, idle())];
    check("S-21", rules(), &script, &[(1_000, WAITS), (1_000, "notify 5"), (12_000, "Runtime NoFile")]);
}

#[test]
fn idle_grace_resets_on_processing_observation() {
    let script =
        [(0, busy()), (1_000, completed()), (10_900, busy()), (11_000, idle()), (20_900, busy()), (21_000, idle())];
    check("S-22", rules(), &script, &[(31_000, "Runtime NoFile")]);
    // From one kind of quiet to the other it goes on counting.
    let script = [(0, busy()), (1_000, completed()), (5_000, idle())];
    check("S-22, still quiet", rules(), &script, &[(11_000, "Runtime NoFile")]);
}
