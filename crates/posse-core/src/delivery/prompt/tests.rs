use super::super::testing::{Ev, Screen, at, busy, event, permission, play, quiet, words};
use super::*;
use Ev::Read;

fn rules() -> Submit {
    serde_json::from_str(r#"{"pasted": "\\[Pasted text #\\d+(?: \\+\\d+ lines)?\\]"}"#).unwrap()
}

fn prompt(order: Order, rules: &Submit) -> Prompt {
    Prompt::new(order, rules.clone(), true, at(0))
}

fn order() -> Order {
    Order { text: "fix it\n".into(), ..Order::default() }
}

/// Plays a script with these named events.
fn run_with(mut prompt: Prompt, named: &[(&str, Ev)], script: &str) {
    play(script, named, |event, now| (words(&prompt.handle(event, now)), prompt.deadline()));
}

fn run(prompt: Prompt, script: &str) {
    run_with(prompt, &[], script);
}

fn check(script: &str) {
    run(prompt(order(), &rules()), script);
}

fn check_with(name: &str, screen: Screen, script: &str) {
    run_with(prompt(order(), &rules()), &[(name, Read(screen))], script);
}

#[test]
fn message_is_seen_before_and_after_it_is_submitted() {
    check(
        "0 time > look; 0 [] > paste fix it; 1 typed 0; 20 []; 30 [fix it]; 130 time > look; 130 [fix it] > enter;
         131 typed 1; 132 [fix it]; 140 busy [] > done; 150 asks; 1000 time",
    );
    let codex = Submit { gap: Duration::from_millis(0), ..rules() };
    run(prompt(order(), &codex), "0 [] > paste fix it; 1 typed 0; 9 [fix it] > enter; 20 [] > done");
}

#[test]
fn long_pastes_are_recognised_by_their_label() {
    let long = Order { text: "one line\n".repeat(60), ..Order::default() };
    let mut machine = prompt(long, &rules());
    machine.handle(event("[]").event(), at(0));
    run(
        machine,
        "1 typed 0; 1 [[Pasted text #1 +59 lines]]; 101 [[Pasted text #1 +59 lines]] > enter; 110 typed 1;
         520 [[Pasted text #1 +59 lines]] > .; 530 typed 2; 540 [[Pasted text #1 +59 lines].] > backspace; 541 typed 3;
         700 [[Pasted text #1 +59 lines]] > enter; 720 [] > done",
    );
}

#[test]
fn message_is_refused_during_a_question_or_work() {
    check("0 asks > Dialog(Some(Permission)) Nothing");
    check_with("asks soon", quiet("").with(|s| s.about_to_ask = true), "0 asks soon > Dialog(None) Nothing");
    let believed = quiet("").with(|s| s.status.kind = StatusKind::WaitingUserAnswer);
    check_with("believed to ask", believed, "0 believed to ask > Dialog(None) Nothing");
    check("0 busy [] > Busy Nothing");
    // The turn is known to be over; the screen follows, or does not.
    let lagging = || busy("").with(|s| s.status.kind = StatusKind::Completed);
    check_with("lags", lagging(), "0 lags; 90 [] > paste fix it");
    check_with("lags", lagging(), "0 lags; 3000 time > Busy Nothing");
    let no_box = quiet("").with(|s| s.reading.draft = None);
    check_with("no box", no_box, "0 no box; 3000 time > NoComposer Nothing");
    let shell = quiet("").with(|s| {
        s.reading.status = Some(StatusKind::Error);
        s.reading.evidence = Some(crate::detect::Evidence { row: None, text: "bash".into() });
    });
    check_with("shell", shell, "0 shell > Gone Nothing");
    check("0 gone > Gone Nothing");
}

#[test]
fn message_is_refused_if_the_expected_status_has_changed() {
    let expecting = Order { expect: Some(StatusKind::Idle), ..order() };
    run(prompt(expecting, &rules()), "0 [] > Status(Completed) Nothing");
    let old = Order { epoch: Some(6), ..order() };
    run(prompt(old, &rules()), "0 [] > Epoch(7) Nothing");
    let now = Order { epoch: Some(7), expect: Some(StatusKind::Completed), ..order() };
    run(prompt(now, &rules()), "0 [] > paste fix it");
    run(prompt(Order::default(), &rules()), "0 [] > Empty Nothing");
}

#[test]
fn leftover_draft_is_cleared_until_the_input_field_is_empty() {
    check("0 [old\nlines] > clear; 1 typed 0; 5 [old\nlines]; 10 [old] > clear; 11 typed 1; 20 [] > paste fix it");
    check("0 [old] > clear; 1 typed 0; 2000 time > Draft Nothing");
    let mut stubborn = prompt(order(), &rules());
    let tries = (0..).find(|nth| {
        let effects = stubborn.handle(event("[old]").event(), at(300 * nth));
        stubborn.handle(Ev::Typed(*nth).event(), at(300 * nth + 1));
        words(&effects) == "Draft Nothing"
    });
    assert_eq!(tries, Some(8));
    check("0 [old] > clear; 1 asks > Dialog(Some(Permission)) Nothing");
    let unclearable = Submit { clear: Vec::new(), ..rules() };
    run(prompt(order(), &unclearable), "0 [old] > Draft Nothing");
}

#[test]
fn question_after_the_paste_gets_no_enter() {
    let pasted = "0 [] > paste fix it; 1 typed 0; ";
    for then in [
        "50 asks > Dialog(Some(Permission)) Draft",
        "50 [fix it]; 150 time > look; 150 asks > Dialog(Some(Permission)) Draft; 500 [fix it]",
        "101 busy [fix it] > Busy Draft",
        "5000 time > NotSeen Draft",
    ] {
        check(&format!("{pasted}{then}"));
    }
    check("0 [] > paste fix it; 1 failed 0 > Typing Draft");
}

/// Plays a script that starts after the submit key at 101 ms.
fn after_enter_with(named: &[(&str, Ev)], script: &str) {
    let begun = "0 [] > paste fix it; 1 [fix it]; 1 typed 0; 101 [fix it] > enter; 102 typed 1; ";
    run_with(prompt(order(), &rules()), named, &format!("{begun}{script}"));
}

fn after_enter(script: &str) {
    after_enter_with(&[], script);
}

#[test]
fn question_after_enter_does_not_prove_the_submit() {
    after_enter("150 asks; 5101 time > Dialog(Some(Permission)) Unknown");
    let echoed = permission().with(|s| s.echo = Some("fix it".into()));
    after_enter_with(&[("asks below it", Read(echoed))], "150 asks below it > done");
    after_enter("110 working > look; 110 [fix it]; 150 asks > done");
    // A report after a question was seen may be about the question.
    after_enter("150 asks; 200 working; 201 asks");
    after_enter("150 asks; 900 busy [] > done");
}

#[test]
fn enter_is_repeated_only_when_proven_lost() {
    after_enter(
        "300 [fix it]; 502 time > look; 502 [fix it] > .; 503 typed 2; 510 [fix it]; 520 [fix it.] > backspace;
         521 typed 3; 530 [fix it]; 641 time > look; 641 [fix it] > enter; 642 typed 4; 700 busy [] > done",
    );
    // The key was only slow: the character arrives behind a message that was taken.
    after_enter("502 [fix it] > .; 503 typed 2; 900 [.] > backspace, done");
    after_enter("502 [fix it] > .; 503 typed 2; 900 busy [] > backspace, done");
    // The program is stalled: no key is repeated, and the result is unknown.
    after_enter("502 [fix it] > .; 503 typed 2; 4000 [fix it]; 5502 time > NotTaken Unknown");
    after_enter("502 [fix it] > .; 510 [fix it.] > backspace; 520 asks > Dialog(Some(Permission)) Draft");
    after_enter("502 asks; 600 [fix it] > .");
}

#[test]
fn delivery_fails_after_three_lost_keys() {
    after_enter(
        "610 [fix it] > .; 610 typed 2; 620 [fix it.] > backspace; 621 typed 3; 1110 [fix it] > enter; 1110 typed 4;
         1610 [fix it] > .; 1610 typed 5; 1620 [fix it.] > backspace; 1621 typed 6; 2110 [fix it] > enter; 2110 typed 7;
         2610 [fix it] > .; 2610 typed 8; 2620 [fix it.] > backspace; 2621 typed 9; 3110 [fix it] > NotTaken Draft",
    );
}

#[test]
fn unreadable_program_gets_text_and_enter_at_once() {
    run(Prompt::raw("fix it", true, at(0)), "0 time > paste fix it enter; 1 typed 0 > done");
    run(Prompt::raw("a\nb", false, at(0)), r"0 time > a\nb\r; 1 failed 0 > Typing Nothing");
    run(Prompt::raw("", true, at(0)), "0 time > enter; 1 gone > Gone Unknown");
}

/// opencode creates a session before it removes the text from its input field. Text typed meanwhile is appended.
#[test]
fn slow_program_is_not_probed() {
    let slow = Submit { retry: Duration::from_millis(8_000), ..rules() };
    let submitted = "0 [] > paste fix it; 1 typed 0; 30 [fix it]; 130 [fix it] > enter; 131 typed 1; 6000 [fix it]; ";
    for then in ["7000 busy [] > done", "8131 time > look; 8131 [fix it] > .; 8132 typed 2"] {
        run(prompt(order(), &slow), &format!("{submitted}{then}"));
    }
}

/// A program that shows a mark and reads a line, as the seeds describe Claude Code.
#[test]
fn prompt_is_delivered_to_a_plain_input_row() {
    let row = |draft: &str| Read(quiet(draft).with(|screen| screen.plain = true));
    let left = Read(quiet("").with(|screen| screen.reading.draft = None));
    let named = [("row", row("")), ("row with it", row("fix it")), ("left", left)];
    let begun = "0 row > paste fix it; 1 typed 0; 20 row with it; 120 row with it > enter; 121 typed 1; ";
    // The cursor leaves the row, or the program asks for the next line at once.
    for then in ["150 left > done", "150 row > done"] {
        run_with(prompt(order(), &rules()), &named, &format!("{begun}{then}"));
    }
    // A hidden input field of the current layout proves nothing.
    after_enter_with(&named, "150 left");
}
