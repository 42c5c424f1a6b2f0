//! The scenarios of the seeds, each under its name. S-9, "Audit log content", is in `permission`.

use super::super::testing::{check, message, said, turn};

#[test]
fn permission_prompt_auto_accepted_opt_in_enabled() {
    check(
        "S-5 | accept | 0 busy, 1 asks d, 1.1 busy, 5 file done, 6 completed
             | 1 accept 1/20 d, 6 File done",
    );
}

#[test]
fn permission_prompt_detected_but_auto_accept_disabled() {
    check(
        "S-6 | | 0 busy, 1 asks d, 1.1 busy, 2 file done, 2.5 completed
             | 1 warning: waits for an answer, 1 notify 5, 2.5 File done",
    );
    let said = said("", "0 asks d");
    assert!(said[0].contains("peer_programmer") && said[0].contains("00c0ffee"), "{said:?}");
}

/// The last accept in this terminal was 4.9 s ago, in the previous turn.
#[test]
fn cooldown_prevents_rapid_accepts() {
    check(
        "S-7 | accept accepted=0.1 begun=4 | 5 asks d, 5.15 busy, 6 file done, 6.1 completed
             | 5.1 accept 1/20 d, 6.1 File done
         S-7, answered by someone else meanwhile
             | accept accepted=0.1 begun=4 | 5 asks d, 5.09 busy, 6 file done, 6.1 completed
             | 6.1 File done",
    );
}

#[test]
fn safety_cap_exceeded() {
    check("S-8 | accept accepts=20 accepted=0 | 6 asks d | 6 Runtime Cap");
    let message = message("accept accepts=20", "0.001 asks d");
    for part in ["peer_programmer", "00c0ffee", "20"] {
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn counter_reset_on_new_turn() {
    assert_eq!(turn("accept accepts=15 accepted=0").accepts(), 15);
    assert_eq!(turn("accept accepted=0 begun=1").accepts(), 0);
    check(
        "S-10 | accept accepted=0 begun=1 | 10 asks d, 10.5 busy, 11 file a, 11 idle
              | 10 accept 1/20 d, 11 File a",
    );
}

#[test]
fn waiting_user_answer_no_longer_causes_indefinite_stall() {
    check(
        "S-11, on  | accept | 0 asks d, 3 busy, 3 file a, 4 idle | 0 accept 1/20 d, 4 File a
         S-11, off |        | 0 asks d, 3 busy, 3 file a, 4 idle
                   | 0 warning: waits for an answer, 0 notify 5, 4 File a",
    );
}

#[test]
fn agent_writes_response_file_and_terminal_becomes_idle() {
    check("S-12 | | 0 busy, 20 file  the answer \\n, 21 idle | 21 File the answer");
}

/// In the second row the stale status lasts longer than the grace. A grace timer that counted from the dispatch would
/// fail the turn at 10 s. One that counted during the guard would fail the turn when the guard is released.
#[test]
fn startup_guard_blocks_premature_grace_timer() {
    check(
        "S-13             | | 0 completed, 9.9 busy, 60 file a, 60.5 completed | 60.5 File a
         S-13, slow start | | 0 completed, 19.9 busy, 60 file a, 60.5 completed
                          | 10 warning: never entered processing, 60.5 File a",
    );
}

#[test]
fn agent_starts_processing_and_then_completes() {
    check("S-14 | | 0 completed, 0.5 busy, 5 file a, 5.5 completed | 5.5 File a");
}

#[test]
fn startup_timeout_releases_guard() {
    check("S-15 | | 0 idle | 10 warning: never entered processing, 20 Runtime NoFile");
}

#[test]
fn response_file_appears_during_startup_guard() {
    check("S-16 | | 0 completed, 4 file a | 4 File a");
}

#[test]
fn agent_ignores_file_instruction_but_terminal_finishes_default_mode() {
    check(
        "S-17, by grace   | lenient     | 0 busy, 0 says  said , 5 idle
                          | 15 warning: no file, 15 ask last output, 15 LastOutput said
         S-17, by timeout | lenient T=8 | 0 busy, 0 says  said , 5 idle
                          | 8 warning: no file, 8 ask last output, 8 LastOutput said",
    );
}

#[test]
fn agent_ignores_file_instruction_but_terminal_finishes_strict_mode() {
    check(
        "S-18, by grace   |     | 0 busy, 0 says said, 5 idle | 15 Runtime NoFile
         S-18, by timeout | T=8 | 0 busy, 0 says said, 5 idle | 8 Runtime NoFile",
    );
}

#[test]
fn terminal_enters_error_state() {
    check("S-19 | | 0 busy, 0.7 error | 0.7 Runtime ErrorState");
    let message = message("", "0 error");
    assert!(message.contains("ERROR state") && message.contains("00c0ffee"), "{message}");
}

#[test]
fn timeout_with_terminal_still_processing() {
    check("S-20 | | 0 busy | 1800 Timeout TimedOut");
    let message = message("", "0 busy");
    for part in ["1800 s", "programmer_review", "00c0ffee", "processing"] {
        assert!(message.contains(part), "{message}");
    }
    assert!(!message.contains("AUTO_ACCEPT"), "nobody was asked: {message}");
}

/// Guard and grace together would take 20 s from the beginning. Grace alone begins with the next quiet period.
#[test]
fn waiting_user_answer_counts_as_agent_started() {
    check(
        "S-21 | | 0 completed, 1 asks d, 2 idle
              | 1 warning: waits for an answer, 1 notify 5, 12 Runtime NoFile",
    );
}

/// A change between two kinds of quiet does not reset the timer.
#[test]
fn idle_grace_resets_on_processing_observation() {
    check(
        "S-22              | | 0 busy, 1 completed, 10.9 busy, 11 idle, 20.9 busy, 21 idle | 31 Runtime NoFile
         S-22, still quiet | | 0 busy, 1 completed, 5 idle | 11 Runtime NoFile",
    );
}
