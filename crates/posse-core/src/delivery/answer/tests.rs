use super::super::DialogKeys;
use super::super::testing::{Ev, Screen, asking, asking_in_text, at, busy, quiet, words};
use super::super::translate::{Meant, translate};
use super::*;
use crate::keys::KeyBytes;
use crate::status::WaitingKind;
use Ev::{Failed, Gone, Read, Said, Time, Typed};

const NOTHING: &str = "";
const NUMBERED: [&str; 3] = [">Yes|1", "Yes, always|2", "No|3"];

fn permission(id: &str, options: &[&str]) -> Ev {
    Read(asking(id, WaitingKind::Permission, options))
}

fn answer(wish: Wish) -> Answer {
    let keys = DialogKeys { deny: Some(KeyBytes::named("esc")), ..DialogKeys::default() };
    Answer::new(Decision::new("d".into(), wish), keys, at(0))
}

fn run(mut answer: Answer, table: &[(u64, Ev, &str)]) {
    for (ms, event, expected) in table {
        assert_eq!(words(&answer.handle(event.event(), at(*ms))), *expected, "at {ms} ms: {event:?}");
        assert!(answer.deadline().is_none_or(|deadline| deadline > at(*ms)), "at {ms} ms the deadline is past");
    }
}

fn accepting(table: &[(u64, Ev, &str)]) {
    run(answer(Wish::Accept), table);
}

fn failed(why: &str, presses: u32) -> String {
    format!("Unanswered {{ why: {why}, presses: {presses} }}")
}

fn done(verified: &str, presses: u32) -> String {
    format!("Answered {{ verified: {verified}, presses: {presses} }}")
}

#[test]
fn the_key_of_the_one_option_is_pressed_once_the_question_has_settled() {
    let d = || permission("d", &NUMBERED);
    accepting(&[
        (0, Time, "look"),
        (0, d(), NOTHING),
        (200, d(), NOTHING),
        (300, Time, "look"),
        (300, d(), "type 1"),
        (301, Typed(0), NOTHING),
        (310, d(), NOTHING),
        (350, Read(busy("")), &done("Closed", 1)),
        (400, d(), NOTHING),
    ]);
    run(answer(Wish::Deny), &[(0, d(), NOTHING), (300, d(), "type 3")]);
    run(
        answer(Wish::Option(0)),
        &[(0, d(), NOTHING), (300, d(), "type 1"), (310, permission("e", &NUMBERED), &done("Another", 1))],
    );
    // After an answer in vain the cursor has to move first.
    let mut again = answer(Wish::Accept);
    again.decision.again = true;
    run(
        again,
        &[
            (0, d(), NOTHING),
            (300, d(), r"type \x1b[B"),
            (301, Typed(0), NOTHING),
            (310, permission("d", &["Yes|1", ">Yes, always|2", "No|3"]), r"type \x1b[A"),
            (311, Typed(1), NOTHING),
            (320, d(), "type 1"),
        ],
    );
    let mut known = answer(Wish::Accept);
    known.decision.since = Some(at(0));
    run(known, &[(400, d(), "type 1")]);
}

#[test]
fn what_is_not_plain_is_refused_and_nothing_typed() {
    let no = |wish, screen: Screen, why: &str| run(answer(wish), &[(0, Read(screen), &failed(why, 0))]);
    let ask = |kind, options: &[&str]| asking("d", kind, options);
    use WaitingKind::{Permission, Plan, Question, Startup};
    no(Wish::Accept, ask(Permission, &[">Yes, always|1", "No|2"]), "NotPlain");
    no(Wish::Accept, ask(Permission, &[">Yes|1", "Yes|2"]), "NotPlain");
    no(Wish::Accept, ask(Startup, &["Yes|1", ">No|2"]), "Kind(Startup)");
    no(Wish::Accept, ask(Question, &[">Yes|1", "No|2"]), "Kind(Question)");
    no(Wish::Accept, ask(Plan, &[">Yes|1", "No|2"]), "Kind(Plan)");
    no(Wish::Deny, ask(Startup, &["Yes|1", ">No|2"]), "Kind(Startup)");
    no(Wish::Option(1), ask(Permission, &NUMBERED), "Widens");
    no(Wish::Option(7), ask(Permission, &NUMBERED), "NoSuchOption");
    no(Wish::Accept, asking("e", Permission, &NUMBERED), "Changed");
    no(Wish::Accept, quiet(""), "Vanished");
    let mut allowed = answer(Wish::Accept);
    allowed.decision.also = vec![Plan];
    run(allowed, &[(0, Read(ask(Plan, &[">Yes|1", "No|2"])), NOTHING)]);
    run(answer(Wish::Option(0)), &[(0, Read(ask(Startup, &["Yes|1", ">No|2"])), NOTHING)]);
}

#[test]
fn a_question_that_changes_before_the_key_gets_none() {
    let d = || permission("d", &NUMBERED);
    accepting(&[(0, d(), NOTHING), (299, permission("e", &NUMBERED), &failed("Changed", 0)), (300, d(), NOTHING)]);
    accepting(&[(0, d(), NOTHING), (299, Read(quiet("")), &failed("Vanished", 0))]);
    accepting(&[(0, d(), NOTHING), (299, Gone, &failed("Gone", 0))]);
}

#[test]
fn without_a_key_the_cursor_goes_step_by_step() {
    let d = |options: &[&str]| permission("d", options);
    let on_first = ["> Maybe", "No", "Yes"];
    accepting(&[
        (0, d(&on_first), NOTHING),
        (300, d(&on_first), r"type \x1b[B"),
        (301, d(&on_first), NOTHING),
        (302, Typed(0), NOTHING),
        (310, d(&["Maybe", ">No", "Yes"]), r"type \x1b[B"),
        (311, Typed(1), NOTHING),
        (320, d(&["Maybe", "No", ">Yes"]), r"type \r"),
        (321, Typed(2), NOTHING),
        (350, Read(quiet("")), &done("Closed", 1)),
    ]);
    let moving = || {
        let mut machine = answer(Wish::Deny);
        machine.handle(d(&["Yes", "Maybe", ">Yes, always"]).event(), at(0));
        machine
    };
    // No single option refuses: the key that refuses everything does.
    run(moving(), &[(300, d(&["Yes", "Maybe", ">Yes, always"]), r"type \x1b")]);
    let mut up = answer(Wish::Accept);
    up.handle(d(&["Yes", ">No"]).event(), at(0));
    run(
        up.clone(),
        &[(300, d(&["Yes", ">No"]), r"type \x1b[A"), (301, Typed(0), NOTHING), (2300, Time, &failed("Stuck", 0))],
    );
    run(
        up,
        &[
            (300, d(&["Yes", ">No"]), r"type \x1b[A"),
            (301, Typed(0), NOTHING),
            (310, permission("e", &[">Yes", "No"]), &failed("Changed", 0)),
        ],
    );
    accepting(&[(0, d(&["Yes", "No"]), NOTHING), (300, d(&["Yes", "No"]), &failed("Stuck", 0))]);
}

/// Up to the key at 300 ms.
fn pressed() -> Answer {
    let mut machine = answer(Wish::Accept);
    for (ms, event) in [(0, permission("d", &NUMBERED)), (300, permission("d", &NUMBERED)), (301, Typed(0))] {
        machine.handle(event.event(), at(ms));
    }
    machine
}

fn after_key(table: &[(u64, Ev, &str)]) {
    run(pressed(), table);
}

#[test]
fn a_key_is_pressed_again_only_when_it_is_proven_lost() {
    let d = || permission("d", &NUMBERED);
    let moved = || permission("d", &["Yes|1", ">Yes, always|2", "No|3"]);
    after_key(&[
        (900, d(), NOTHING),
        (1301, Time, "look"),
        (1301, d(), r"type \x1b[B"),
        (1302, Typed(1), NOTHING),
        (1310, moved(), r"type \x1b[A"),
        (1311, Typed(2), NOTHING),
        (1320, d(), "type 1"),
        (1321, Typed(3), NOTHING),
        (1350, Read(busy("")), &done("Closed", 2)),
    ]);
    after_key(&[
        (1301, d(), r"type \x1b[B"),
        (1302, Typed(1), NOTHING),
        (1310, moved(), r"type \x1b[A"),
        (1311, Typed(2), NOTHING),
        (1312, Said(Claim::Working), "look"),
        (1320, d(), &failed("StillOpen", 1)),
    ]);
    // The first key was only slow, and the next question came up under the arrow.
    after_key(&[
        (1301, d(), r"type \x1b[B"),
        (1302, Typed(1), NOTHING),
        (1310, permission("e", &NUMBERED), &done("Another", 1)),
    ]);
    after_key(&[(400, Failed(0), NOTHING), (400, Failed(9), NOTHING)]);
}

#[test]
fn the_next_question_in_the_same_words_is_another_one() {
    let d = || permission("d", &NUMBERED);
    let printed = |options: &[&str]| Read(asking("d", WaitingKind::Permission, options).with(|s| s.printed = 5));
    // The program has said and printed something that it would not have without the key.
    let said = || (400, Said(Claim::Asking(None)), "look");
    after_key(&[said(), (1200, printed(&NUMBERED), NOTHING), (1301, printed(&NUMBERED), &done("Another", 1))]);
    // It may have spoken of something before the key.
    after_key(&[said(), (1301, d(), NOTHING), (3301, Time, &failed("StillOpen", 1))]);
    // Something was printed, and everything before the arrows was read.
    after_key(&[
        (1301, printed(&NUMBERED), r"type \x1b[B"),
        (1302, Typed(1), NOTHING),
        (1310, printed(&["Yes|1", ">Yes, always|2", "No|3"]), r"type \x1b[A"),
        (1311, Typed(2), NOTHING),
        (1320, printed(&NUMBERED), &done("Another", 1)),
    ]);
    // The cursor does not move: the program is stalled, and nothing is known.
    after_key(&[
        (1301, printed(&NUMBERED), r"type \x1b[B"),
        (1302, Typed(1), NOTHING),
        (3301, Time, &failed("Stuck", 1)),
    ]);
}

#[test]
fn a_screen_nobody_recognises_is_looked_at_twice() {
    let half = || Read(busy("").with(|s| s.reading.strength = Strength::Fallback));
    after_key(&[(310, half(), NOTHING), (410, Time, "look"), (410, half(), &done("Closed", 1))]);
    after_key(&[(310, half(), NOTHING), (330, permission("d", &NUMBERED), NOTHING), (450, half(), NOTHING)]);
}

#[test]
fn a_question_in_text_gets_enter_only_after_the_letter_is_seen() {
    let row = "Allow this action? [y/n/t]:";
    let text = || {
        let mut machine = answer(Wish::Accept);
        machine.decision.question = row.into();
        machine
    };
    run(
        text(),
        &[
            (0, Read(asking_in_text(row)), NOTHING),
            (300, Read(asking_in_text(row)), "type y"),
            (301, Typed(0), NOTHING),
            (302, Read(asking_in_text(row)), NOTHING),
            (310, Read(asking_in_text(&format!("{row} y"))), r"type \r"),
            (311, Typed(1), NOTHING),
            (330, Read(busy("")), &done("Closed", 1)),
        ],
    );
    let typed = || {
        [(0, Read(asking_in_text(row)), NOTHING), (300, Read(asking_in_text(row)), "type y"), (301, Typed(0), NOTHING)]
    };
    let then = |more: (u64, Ev, &'static str)| run(text(), &[typed().to_vec(), vec![more]].concat());
    // It is not shown, and nothing else is: the program hides what is typed.
    then((1300, Read(asking_in_text(row)), NOTHING));
    then((1301, Read(asking_in_text(row)), r"type \r"));
    // Somebody else types.
    let other = || Read(asking_in_text(row).with(|screen| screen.cursor_row = Some(format!("{row} rm -rf"))));
    then((1301, other(), NOTHING));
    then((2300, Time, "Unanswered { why: NotEchoed, presses: 0 }"));
    then((310, Read(busy("")), "Answered { verified: Closed, presses: 1 }"));
    then((310, Read(asking_in_text(&format!("{row} yy"))), NOTHING));
    then((310, permission("e", &NUMBERED), "Unanswered { why: Changed, presses: 0 }"));
}

#[test]
fn y_is_an_answer_only_while_a_question_is_open() {
    let meant = |message: &str, screen: Screen| match translate(message, &screen.reading) {
        Meant::Prompt => "prompt".to_owned(),
        Meant::Answer(decision) => format!("{:?} {}", decision.wish, decision.question),
        Meant::Refused(why) => format!("{why:?}"),
    };
    let ask = |kind, options: &[&str]| asking("d", kind, options);
    use WaitingKind::{Permission, Startup};
    for (message, screen, expected) in [
        ("y", quiet(""), "prompt"),
        ("fix it", quiet(""), "prompt"),
        (" y\n", ask(Permission, &NUMBERED), "Accept d"),
        ("n", ask(Permission, &NUMBERED), "Deny d"),
        ("yes", ask(Permission, &NUMBERED), "NoAnswer"),
        ("Y", ask(Permission, &NUMBERED), "NoAnswer"),
        ("1", ask(Permission, &NUMBERED), "NoAnswer"),
        ("fix it", ask(Permission, &NUMBERED), "NoAnswer"),
        // S-56, S-153.
        ("y", ask(Startup, &["Yes|1", ">No|2"]), "Kind(Startup)"),
        ("y", ask(Permission, &[">Yes, always|1", "No|2"]), "NotPlain"),
        ("y", asking_in_text("Would you like to run this?"), "Accept Would you like to run this?"),
        ("y", asking_in_text("x").with(|s| s.reading.evidence = None), "Unclear"),
    ] {
        assert_eq!(meant(message, screen), expected, "{message:?}");
    }
}

#[test]
fn the_keys_are_known_before_they_are_typed() {
    let planned = |answer: &Answer, screen: &Screen| -> String {
        let keys: Vec<String> = answer.plan(&screen.reading).iter().map(|key| crate::keys::name(key)).collect();
        keys.join(" ")
    };
    let ask = |options: &[&str]| asking("d", WaitingKind::Permission, options);
    let arrows = [">Yes", "Yes, always", "No"];
    for (wish, screen, keys) in [
        (Wish::Accept, ask(&NUMBERED), "1"),
        (Wish::Deny, ask(&NUMBERED), "3"),
        (Wish::Option(2), ask(&NUMBERED), "3"),
        (Wish::Accept, ask(&arrows), "enter"),
        (Wish::Deny, ask(&arrows), "down down enter"),
        (Wish::Accept, ask(&["Yes", "Yes, always", ">No"]), "up up enter"),
        (Wish::Deny, ask(&[">Yes", "Maybe"]), "esc"),
        (Wish::Accept, ask(&["No"]), ""),
        (Wish::Accept, asking_in_text("Run it? [y/n]"), "y enter"),
        (Wish::Deny, asking_in_text("Run it? [y/n]"), "n enter"),
    ] {
        assert_eq!(planned(&answer(wish), &screen), keys, "{wish:?} {:?}", screen.reading.dialog);
    }
    let mut again = answer(Wish::Accept);
    again.decision.again = true;
    assert_eq!(planned(&again, &ask(&NUMBERED)), "down up 1");
    let worded = ask(&[">Yes|t", "No|n"]).with(|screen| {
        let dialog = screen.reading.dialog.as_mut().unwrap();
        dialog.options.iter_mut().for_each(|option| option.then_enter = true);
    });
    assert_eq!(planned(&answer(Wish::Accept), &worded), "t enter");
}
