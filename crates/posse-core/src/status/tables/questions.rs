//! Questions and errors.

use super::*;
use crate::detect::dialog::Choosable;

#[test]
fn visible_question_takes_precedence_over_every_claim() {
    let waiting = "500 waiting_user_answer: rule dialog";
    for claim in ["working", "ready", "over", "failed", "asks question"] {
        for source in ["osc", "hook", "file", "title", "progress"] {
            check_working(&format!("500 asks a; 510 {source} {claim}"), waiting);
        }
    }
    check_idle("200 osc working; 500 asks a", &format!("350 processing: working (OSC 7501); {waiting}"));
    for (then, expected) in [
        // No report when the question is accepted, and none when it is refused.
        ("900 answered; 950 spinner", "; 950 processing: rule spinner"),
        ("950 closed", "; 950 completed: rule closed"),
        ("950 quiet 1", "; 950 processing: the question is gone (rule quiet); 1950 completed: rule quiet"),
        // posse refuses it, and the screen shows the end (Claude Code, Codex).
        ("950 closed; 951 denied", "; 950 completed: rule closed"),
        // Accepted, and already over; accepted, and the screen does not show work yet.
        ("950 closed; 951 answered", "; 950 completed: rule closed"),
        ("950 quiet 1; 951 answered; 2300 spinner", "; 950 processing: the question is gone (rule quiet)"),
        // A view without state hides it.
        ("900 nothing", ""),
    ] {
        check_working(&format!("500 asks a; {then}"), &format!("{waiting}{expected}"));
    }
    // Text that only looks like a question (S-55).
    check_working("500 seed.permission; 600 spinner", "");
    check_working("500 seed.permission", "1000 waiting_user_answer: rule seed.permission");
}

#[test]
fn announced_question_is_waiting_before_it_is_drawn() {
    let said = "500 waiting_user_answer: asking (OSC 7501)";
    for (then, expected) in [
        // Codex continues to draw its spinner for a second.
        ("800 spinner; 1420 asks a; 9000 asks a", "1420 waiting_user_answer: rule dialog"),
        // After that the claim is not believed until the question appears.
        ("800 spinner; 2650 asks a", "2000 processing: rule spinner; 2650 waiting_user_answer: rule dialog"),
        // Answered before it was seen.
        ("800 answered; 850 spinner", "800 processing: the question was answered"),
        ("800 osc working; 850 spinner", "800 processing: working (OSC 7501)"),
        // Refused before it was seen.
        ("900 closed", "900 completed: rule closed"),
    ] {
        check_working(&format!("500 osc asks permission; {then}"), &format!("{said}; {expected}"));
    }
}

#[test]
fn about_to_ask_ends_when_the_announced_question_appears_or_expires() {
    let mut life = Life::starting(wall(0));
    let about = |life: &Life, ms| life.about_to_ask(at(ms));
    run(&mut life, &events("100 idle; 200 spinner; 500 hook asks permission"));
    assert!(about(&life, 500) && about(&life, 2_999), "also while it is processing again");
    assert!(!about(&life, 3_000));
    life.handle(&event("hook working"), at(600), wall(600));
    assert!(about(&life, 600), "another tool");
    life.handle(&event("asks a"), at(700), wall(700));
    assert!(!about(&life, 700), "there it is");
}

#[test]
fn each_question_is_reported_once() {
    let mut script = events("100 idle; 200 osc asks permission; 300 asks a; 400 asks a; 500 asks b");
    script.push((600, Event::Read(question("b", Question))));
    let told = run(&mut Life::starting(wall(0)), &script);
    let told: Vec<_> = told
        .iter()
        .map(|(ms, s)| (*ms, s.epoch, s.since.0, s.waiting_kind, s.dialog.as_ref().map(|d| d.id.as_str())))
        .collect();
    assert_eq!(
        told,
        [
            (100, 1, 100, None, None),
            (200, 2, 200, Some(Permission), None),
            (300, 3, 200, Some(Permission), Some("a")),
            (500, 4, 500, Some(Permission), Some("b")),
            (600, 5, 500, Some(Question), Some("b")),
        ]
    );
}

#[test]
fn next_question_in_the_same_words_is_reported() {
    let script = "100 idle; 300 asks a; 900 asked again; 1000 asks a; 1500 closed";
    let told = run(&mut Life::starting(wall(0)), &events(script));
    let told: Vec<_> = told.iter().map(|(ms, status)| (*ms, status.kind, status.epoch, status.since.0)).collect();
    let expected = [(100, Idle, 1, 100), (300, WaitingUserAnswer, 2, 300), (900, WaitingUserAnswer, 3, 900)];
    assert_eq!(told, [&expected[..], &[(1_500, Completed, 4, 1_500)]].concat());
    // The question was answered and is gone.
    check_working(
        "300 asks a; 900 closed; 901 asked again",
        "300 waiting_user_answer: rule dialog; 900 completed: rule closed",
    );
}

#[test]
fn moved_cursor_of_a_question_is_not_reported() {
    let with_cursor = |selected| {
        let mut reading = question("a", Permission);
        reading.dialog.as_mut().unwrap().options = vec![Choosable { selected, ..Choosable::default() }];
        Event::Read(reading)
    };
    let mut life = Life::starting(wall(0));
    run(&mut life, &[(100, with_cursor(false)), (200, with_cursor(true))]);
    let status = life.status();
    assert_eq!((status.epoch, status.dialog.as_ref().unwrap().selected()), (1, Some(0)));
}

#[test]
fn one_odd_frame_is_no_error() {
    check_working("500 api_error; 900 spinner", ""); // S-126
    check_working("500 api_error", "1000 error: rule api_error");
    check_working("500 api_error; 600 hook failed", "600 error: failed: overloaded (hook)");
    check_working("500 api_error; 600 file ready", "600 error: rule api_error");
    // Progress ends a moment before the hook and the screen show the result (Claude Code 2.1.197), or it alone ends.
    // The same holds for the session file.
    for (source, name) in [("progress", "progress"), ("file", "session file")] {
        let failed = "510 error: failed: overloaded (hook)";
        check_working(&format!("500 {source} ready; 510 hook failed; 540 closed"), failed);
        check_working(&format!("500 {source} ready; 560 closed"), "560 completed: rule closed");
        check_working(&format!("300 nothing; 500 {source} ready"), &format!("800 completed: ready ({name})"));
    }
    // With the row that closes the turn below it. Claude Code 2.1.197 does not report limits.
    check_working("500 closed_error", "500 error: rule closed_error");
    // An empty screen (S-52).
    check_idle("200 empty; 700 idle", "");
    check_idle("200 empty; 2190 spinner", "2190 processing: rule spinner");
    check_idle("200 empty", "2200 error: rule empty");
    check_idle("200 osc working; 300 empty", "350 processing: working (OSC 7501)");
    // The agent has exited and a shell is in the foreground (S-162).
    check_idle("200 process.shell", "700 error: rule process.shell");
}

#[test]
fn reported_error_stands_until_work_starts() {
    for (then, expected) in [
        // The rules do not know the text of the error; the file reports idle.
        ("600 closed; 700 file ready; 800 osc over", ""),
        (
            "600 closed; 5000 prompted; 5100 spinner; 6000 closed",
            "; 5000 completed: sent; 5100 processing: rule spinner; 6000 completed: rule closed",
        ),
        ("1000 spinner; 2000 quiet 7; 2001 closed", "; 800 processing: rule spinner; 2001 completed: rule closed"),
    ] {
        let failed = format!("500 error: failed: overloaded (hook){expected}");
        check_working(&format!("500 hook failed; {then}"), &failed);
    }
    // An error from the screen ends when the screen changes.
    check_idle("200 api_error; 5000 idle", "700 error: rule api_error; 6000 idle: rule idle");
}
