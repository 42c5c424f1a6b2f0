use super::super::testing::{Ev, asking, at, busy, quiet, words};
use super::*;
use Ev::{Failed, Gone, Read, Said, Time, Typed};

const PASTE: &str = r"type \x1b[200~fix it\x1b[201~";
const ENTER: &str = r"type \r";
const ERASE: &str = r"type \x7f";
const NOTHING: &str = "";

fn permission() -> Ev {
    Read(asking("d", WaitingKind::Permission, &[">Yes|1", "No|2"]))
}

fn box_(draft: &str) -> Ev {
    Read(quiet(draft))
}

fn rules() -> Submit {
    serde_json::from_str(r#"{"pasted": "\\[Pasted text #\\d+(?: \\+\\d+ lines)?\\]"}"#).unwrap()
}

fn prompt(order: Order, rules: &Submit) -> Prompt {
    Prompt::new(order, rules.clone(), at(0))
}

fn order() -> Order {
    Order { text: "fix it\n".into(), ..Order::default() }
}

fn run(mut prompt: Prompt, table: &[(u64, Ev, &str)]) {
    for (ms, event, expected) in table {
        assert_eq!(words(&prompt.handle(event.event(), at(*ms))), *expected, "at {ms} ms: {event:?}");
        assert!(prompt.deadline().is_none_or(|deadline| deadline > at(*ms)), "at {ms} ms the deadline is past");
    }
}

fn check(table: &[(u64, Ev, &str)]) {
    run(prompt(order(), &rules()), table);
}

fn failed(why: &str, left: &str) -> String {
    format!("Failure {{ why: {why}, left: {left} }}")
}

fn done(proof: &str, presses: u32) -> String {
    format!("Delivered {{ proof: {proof}, presses: {presses} }}")
}

#[test]
fn a_message_is_seen_before_it_is_submitted_and_after() {
    check(&[
        (0, Time, "look"),
        (0, box_(""), PASTE),
        (1, Typed(0), NOTHING),
        (20, box_(""), NOTHING),
        (30, box_("fix it"), NOTHING),
        (130, Time, "look"),
        (130, box_("fix it"), ENTER),
        (131, Typed(1), NOTHING),
        (132, box_("fix it"), NOTHING),
        (140, Read(busy("")), &done("Emptied", 1)),
        (150, permission(), NOTHING),
        (1000, Time, NOTHING),
    ]);
    let codex = Submit { gap: Duration::from_millis(0), ..rules() };
    run(
        prompt(order(), &codex),
        &[
            (0, box_(""), PASTE),
            (1, Typed(0), NOTHING),
            (9, box_("fix it"), ENTER),
            (20, box_(""), &done("Emptied", 1)),
        ],
    );
    let blind = Submit { see: false, ..rules() };
    run(
        prompt(order(), &blind),
        &[(0, box_(""), PASTE), (1, Typed(0), NOTHING), (101, Time, "look"), (101, box_(""), ENTER)],
    );
}

#[test]
fn long_pastes_are_known_by_their_label() {
    let long = Order { text: "one line\n".repeat(60), ..Order::default() };
    let mut machine = prompt(long, &rules());
    machine.handle(box_("").event(), at(0));
    run(
        machine,
        &[
            (1, Typed(0), NOTHING),
            (1, box_("[Pasted text #1 +59 lines]"), NOTHING),
            (101, box_("[Pasted text #1 +59 lines]"), ENTER),
            (110, Typed(1), NOTHING),
            (520, box_("[Pasted text #1 +59 lines]"), "type ."),
            (530, Typed(2), NOTHING),
            (540, box_("[Pasted text #1 +59 lines]."), ERASE),
            (541, Typed(3), NOTHING),
            (700, box_("[Pasted text #1 +59 lines]"), ENTER),
            (720, box_(""), &done("Emptied", 2)),
        ],
    );
}

#[test]
fn nothing_is_typed_into_a_question_or_a_working_agent() {
    let dialog = failed("Dialog(Some(Permission))", "Nothing");
    check(&[(0, permission(), &dialog)]);
    check(&[(0, Read(quiet("").with(|s| s.about_to_ask = true)), &failed("Dialog(None)", "Nothing"))]);
    let believed = |s: &mut super::super::testing::Screen| s.status.kind = StatusKind::WaitingUserAnswer;
    check(&[(0, Read(quiet("").with(believed)), &failed("Dialog(None)", "Nothing"))]);
    check(&[(0, Read(busy("")), &failed("Busy", "Nothing"))]);
    // The turn is known to be over; the screen follows, or does not.
    let lagging = || Read(busy("").with(|s| s.status.kind = StatusKind::Completed));
    check(&[(0, lagging(), NOTHING), (90, box_(""), PASTE)]);
    check(&[(0, lagging(), NOTHING), (3000, Time, &failed("Busy", "Nothing"))]);
    let no_box = || Read(quiet("").with(|s| s.reading.draft = None));
    check(&[(0, no_box(), NOTHING), (3000, Time, &failed("NoComposer", "Nothing"))]);
    let gone = |s: &mut super::super::testing::Screen| {
        s.reading.status = Some(StatusKind::Error);
        s.reading.evidence = Some(crate::detect::Evidence { row: None, text: "bash".into() });
    };
    check(&[(0, Read(quiet("").with(gone)), &failed("Gone", "Nothing"))]);
    check(&[(0, Gone, &failed("Gone", "Nothing"))]);
}

#[test]
fn what_it_was_decided_on_must_still_be_true() {
    let expecting = Order { expect: Some(StatusKind::Idle), ..order() };
    run(prompt(expecting, &rules()), &[(0, box_(""), &failed("Status(Completed)", "Nothing"))]);
    let old = Order { epoch: Some(6), ..order() };
    run(prompt(old, &rules()), &[(0, box_(""), &failed("Epoch(7)", "Nothing"))]);
    let now = Order { epoch: Some(7), expect: Some(StatusKind::Completed), ..order() };
    run(prompt(now, &rules()), &[(0, box_(""), PASTE)]);
    run(prompt(Order::default(), &rules()), &[(0, box_(""), &failed("Empty", "Nothing"))]);
}

#[test]
fn a_new_input_field_is_left_alone_for_a_moment() {
    let careful = Submit { ready: Duration::from_millis(200), ..rules() };
    let table = [(50, box_(""), NOTHING), (250, Time, "look"), (250, box_(""), PASTE)];
    run(prompt(order(), &careful), &table);
    let known = Order { composer_since: Some(at(0)), ..order() };
    run(prompt(known, &careful), &[(300, box_(""), PASTE)]);
}

#[test]
fn a_leftover_draft_is_cleared_and_seen_to_be() {
    let clear = r"type \x15\x7f";
    check(&[
        (0, box_("old\nlines"), clear),
        (1, Typed(0), NOTHING),
        (5, box_("old\nlines"), NOTHING),
        (10, box_("old"), clear),
        (11, Typed(1), NOTHING),
        (20, box_(""), PASTE),
    ]);
    check(&[(0, box_("old"), clear), (1, Typed(0), NOTHING), (2000, Time, &failed("Draft", "Nothing"))]);
    let mut stubborn = prompt(order(), &rules());
    let tries = (0..).find(|nth| {
        let effects = stubborn.handle(box_("old").event(), at(300 * nth));
        stubborn.handle(Typed(*nth).event(), at(300 * nth + 1));
        words(&effects) == failed("Draft", "Nothing")
    });
    assert_eq!(tries, Some(8));
    check(&[(0, box_("old"), clear), (1, permission(), &failed("Dialog(Some(Permission))", "Nothing"))]);
    let unclearable = Submit { clear: Vec::new(), ..rules() };
    run(prompt(order(), &unclearable), &[(0, box_("old"), &failed("Draft", "Nothing"))]);
}

#[test]
fn a_question_after_the_paste_is_never_answered_by_enter() {
    let dialog = |left| failed("Dialog(Some(Permission))", left);
    check(&[(0, box_(""), PASTE), (1, Typed(0), NOTHING), (50, permission(), &dialog("MaybeDraft"))]);
    check(&[
        (0, box_(""), PASTE),
        (1, Typed(0), NOTHING),
        (50, box_("fix it"), NOTHING),
        (150, Time, "look"),
        (150, permission(), &dialog("Draft")),
        (500, box_("fix it"), NOTHING),
    ]);
    check(&[(0, box_(""), PASTE), (1, Typed(0), NOTHING), (101, Read(busy("fix it")), &failed("Busy", "Draft"))]);
    check(&[(0, box_(""), PASTE), (1, Typed(0), NOTHING), (5000, Time, &failed("NotSeen", "MaybeDraft"))]);
    check(&[(0, box_(""), PASTE), (1, Failed(0), &failed("Typing", "MaybeDraft"))]);
}

/// Up to the submit key at 101 ms.
fn submitted() -> Prompt {
    let mut machine = prompt(order(), &rules());
    for (ms, event) in [(0, box_("")), (1, box_("fix it")), (1, Typed(0)), (101, box_("fix it")), (102, Typed(1))] {
        machine.handle(event.event(), at(ms));
    }
    machine
}

fn after_enter(table: &[(u64, Ev, &str)]) {
    run(submitted(), table);
}

#[test]
fn a_question_after_enter_says_nothing_by_itself() {
    after_enter(&[(150, permission(), NOTHING), (5101, Time, &failed("Dialog(Some(Permission))", "Unknown"))]);
    let echoed = || permission_with(|s| s.echo = Some("fix it".into()));
    after_enter(&[(150, echoed(), &done("Echoed", 1))]);
    after_enter(&[
        (110, Said(Claim::Working), "look"),
        (110, box_("fix it"), NOTHING),
        (150, permission(), &done("Claimed", 1)),
    ]);
    // Said after the question was seen it may be about the question.
    after_enter(&[(150, permission(), NOTHING), (200, Said(Claim::Working), NOTHING), (201, permission(), NOTHING)]);
    after_enter(&[(150, permission(), NOTHING), (900, Read(busy("")), &done("Emptied", 1))]);
}

fn permission_with(change: impl FnOnce(&mut super::super::testing::Screen)) -> Ev {
    Read(asking("d", WaitingKind::Permission, &[">Yes|1", "No|2"]).with(change))
}

#[test]
fn enter_is_pressed_again_only_when_it_is_proven_lost() {
    after_enter(&[
        (300, box_("fix it"), NOTHING),
        (502, Time, "look"),
        (502, box_("fix it"), "type ."),
        (503, Typed(2), NOTHING),
        (510, box_("fix it"), NOTHING),
        (520, box_("fix it."), ERASE),
        (521, Typed(3), NOTHING),
        (530, box_("fix it"), NOTHING),
        (641, Time, "look"),
        (641, box_("fix it"), ENTER),
        (642, Typed(4), NOTHING),
        (700, Read(busy("")), &done("Emptied", 2)),
    ]);
    // It was only slow: the character arrives behind a message that was taken.
    let slow = format!("{ERASE}, {}", done("Emptied", 1));
    after_enter(&[(502, box_("fix it"), "type ."), (503, Typed(2), NOTHING), (900, box_("."), &slow)]);
    after_enter(&[(502, box_("fix it"), "type ."), (503, Typed(2), NOTHING), (900, Read(busy("")), &slow)]);
    // Stalled: nothing is pressed again, and nobody knows.
    after_enter(&[
        (502, box_("fix it"), "type ."),
        (503, Typed(2), NOTHING),
        (4000, box_("fix it"), NOTHING),
        (5502, Time, &failed("NotTaken", "Unknown")),
    ]);
    let dialog = failed("Dialog(Some(Permission))", "Draft");
    after_enter(&[(502, box_("fix it"), "type ."), (510, box_("fix it."), ERASE), (520, permission(), &dialog)]);
    after_enter(&[(502, permission(), NOTHING), (600, box_("fix it"), "type .")]);
}

#[test]
fn three_lost_keys_are_enough() {
    let mut machine = submitted();
    let (mut ms, mut id, mut last) = (110, 2, String::new());
    while machine.deadline().is_some() {
        ms += 500;
        last = words(&machine.handle(box_("fix it").event(), at(ms)));
        if last == "type ." {
            machine.handle(Typed(id).event(), at(ms));
            assert_eq!(words(&machine.handle(box_("fix it.").event(), at(ms + 10))), ERASE);
            machine.handle(Typed(id + 1).event(), at(ms + 11));
            id += 2;
        } else if last == ENTER {
            machine.handle(Typed(id).event(), at(ms));
            id += 1;
        }
    }
    assert_eq!(last, failed("NotTaken", "Draft"));
}

#[test]
fn a_working_agent_gets_a_message_only_where_the_rules_know_what_happens() {
    let also = || Order { when: When::AlsoBusy, ..order() };
    run(prompt(also(), &rules()), &[(0, Read(busy("")), &failed("Busy", "Nothing"))]);
    let steers = Submit { gap: Duration::from_millis(0), while_busy: WhileBusy::Steers, ..rules() };
    run(prompt(order(), &steers), &[(0, Read(busy("")), &failed("Busy", "Nothing"))]);
    run(
        prompt(also(), &steers),
        &[
            (0, Read(busy("")), PASTE),
            (1, Typed(0), NOTHING),
            (9, Read(busy("fix it")), ENTER),
            (10, Said(Claim::Working), "look"),
            // It worked before: that it says so proves nothing.
            (11, permission(), NOTHING),
            (400, Read(busy("")), &done("Emptied", 1)),
        ],
    );
}

#[test]
fn a_program_we_cannot_read_gets_text_and_enter_at_once() {
    let raw = r"type \x1b[200~fix it\x1b[201~\r";
    run(Prompt::raw("fix it", true, at(0)), &[(0, Time, raw), (1, Typed(0), &done("None", 1))]);
    run(Prompt::raw("a\nb", false, at(0)), &[(0, Time, r"type a\nb\r"), (1, Failed(0), &failed("Typing", "Nothing"))]);
    run(Prompt::raw("", true, at(0)), &[(0, Time, ENTER), (1, Gone, &failed("Gone", "Unknown"))]);
}

/// opencode makes a session before it takes the text out of its input field. What is typed meanwhile stands behind it.
#[test]
fn a_program_that_takes_its_time_is_not_probed() {
    let slow = Submit { retry: Duration::from_millis(8_000), ..rules() };
    let submitted = [
        (0, box_(""), PASTE),
        (1, Typed(0), NOTHING),
        (30, box_("fix it"), NOTHING),
        (130, box_("fix it"), ENTER),
        (131, Typed(1), NOTHING),
        (600, box_("fix it"), NOTHING),
        (6_000, box_("fix it"), NOTHING),
    ];
    let taken = [(7_000, Read(busy("")), &*done("Emptied", 1))];
    run(prompt(order(), &slow), &[&submitted[..], &taken].concat());
    let lost = [(8_131, Time, "look"), (8_131, box_("fix it"), "type ."), (8_132, Typed(2), NOTHING)];
    run(prompt(order(), &slow), &[&submitted[..], &lost].concat());
}

/// A program that shows a mark and reads a line, as the seeds describe Claude Code.
#[test]
fn a_prompt_goes_into_an_input_field_that_is_only_a_row() {
    let row = |draft: &str| Read(quiet(draft).with(|screen| screen.plain = true));
    let gone = || Read(quiet("").with(|screen| screen.reading.draft = None));
    let begun = [
        (0, row(""), PASTE),
        (1, Typed(0), NOTHING),
        (20, row("fix it"), NOTHING),
        (120, row("fix it"), ENTER),
        (121, Typed(1), NOTHING),
    ];
    // The cursor leaves the row.
    check(&[&begun[..], &[(150, gone(), &*done("Emptied", 1))]].concat());
    // The program asks for the next line at once.
    check(&[&begun[..], &[(150, row(""), &*done("Emptied", 1))]].concat());
    // An input field of today's that is hidden proves nothing.
    let framed = [
        (0, Read(quiet("")), PASTE),
        (1, Typed(0), NOTHING),
        (20, Read(quiet("fix it")), NOTHING),
        (120, Read(quiet("fix it")), ENTER),
        (121, Typed(1), NOTHING),
        (150, gone(), NOTHING),
    ];
    check(&framed);
}
