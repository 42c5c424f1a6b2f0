use super::super::DialogKeys;
use super::super::testing::{Ev, Screen, asking, asking_in_text, at, busy, play, quiet, words};
use super::super::translate::{Meant, translate};
use super::*;
use crate::audit::By;
use crate::keys::KeyBytes;
use crate::status::WaitingKind;
use Ev::Read;

const NUMBERED: [&str; 3] = [">Yes|1", "Yes, always|2", "No|3"];

fn permission(id: &str, options: &[&str]) -> Ev {
    Read(asking(id, WaitingKind::Permission, options))
}

fn answer(wish: Wish) -> Answer {
    let keys = DialogKeys { deny: Some(KeyBytes::named("esc")), ..DialogKeys::default() };
    Answer::new(Decision::new("d".into(), wish, By::Run), keys, at(0))
}

/// Plays a script. `d` is the decided question, `d2` the same with the cursor on its second option, `e` another one.
fn run_with(mut answer: Answer, named: &[(&str, Ev)], script: &str) {
    let second = ["Yes|1", ">Yes, always|2", "No|3"];
    let known =
        [("d", permission("d", &NUMBERED)), ("d2", permission("d", &second)), ("e", permission("e", &NUMBERED))];
    let named = [named, &known[..]].concat();
    play(script, &named, |event, now| (words(&answer.handle(event, now)), answer.deadline()));
}

fn run(answer: Answer, script: &str) {
    run_with(answer, &[], script);
}

fn accepting(script: &str) {
    run(answer(Wish::Accept), script);
}

#[test]
fn accepting_key_is_pressed_once_the_question_has_settled() {
    accepting(
        "0 time > look; 0 d; 200 d; 300 time > look; 300 d > 1; 301 typed 0; 310 d; 350 busy [] > Closed 1; 400 d",
    );
    run(answer(Wish::Deny), "0 d; 300 d > 3");
    run(answer(Wish::Option(0)), "0 d; 300 d > 1; 310 e > Another 1");
    // After a failed answer the cursor has to move first.
    let mut again = answer(Wish::Accept);
    again.decision.again = true;
    run(again, "0 d; 300 d > down; 301 typed 0; 310 d2 > up; 311 typed 1; 320 d > 1");
    let mut known = answer(Wish::Accept);
    known.decision.since = Some(at(0));
    run(known, "400 d > 1");
}

#[test]
fn ambiguous_or_changed_questions_are_refused_without_typing() {
    use WaitingKind::{Permission, Plan, Question, Startup};
    let ask = |kind, options: &[&str]| asking("d", kind, options);
    let startup = || ask(Startup, &["Yes|1", ">No|2"]);
    for (wish, screen, why) in [
        (Wish::Accept, ask(Permission, &[">Yes, always|1", "No|2"]), "NotPlain"),
        (Wish::Accept, ask(Permission, &[">Yes|1", "Yes|2"]), "NotPlain"),
        (Wish::Accept, startup(), "Kind(Startup)"),
        (Wish::Accept, ask(Question, &[">Yes|1", "No|2"]), "Kind(Question)"),
        (Wish::Accept, ask(Plan, &[">Yes|1", "No|2"]), "Kind(Plan)"),
        (Wish::Deny, startup(), "Kind(Startup)"),
        (Wish::Option(1), ask(Permission, &NUMBERED), "Widens"),
        (Wish::Option(7), ask(Permission, &NUMBERED), "NoSuchOption"),
        (Wish::Accept, asking("e", Permission, &NUMBERED), "Changed"),
        (Wish::Accept, quiet(""), "Vanished"),
    ] {
        run_with(answer(wish), &[("x", Read(screen))], &format!("0 x > {why} 0"));
    }
    let mut allowed = answer(Wish::Accept);
    allowed.decision.by = By::Person;
    run_with(allowed, &[("plan", Read(ask(Plan, &[">Yes|1", "No|2"])))], "0 plan");
    run_with(answer(Wish::Option(0)), &[("startup", Read(startup()))], "0 startup");
}

#[test]
fn question_that_changes_before_the_key_gets_no_key() {
    accepting("0 d; 299 e > Changed 0; 300 d");
    accepting("0 d; 299 [] > Vanished 0");
    accepting("0 d; 299 gone > Gone 0");
}

#[test]
fn options_without_keys_are_reached_by_single_arrows() {
    let d = |options: &[&str]| permission("d", options);
    let menu =
        [("1", d(&["> Maybe", "No", "Yes"])), ("2", d(&["Maybe", ">No", "Yes"])), ("3", d(&["Maybe", "No", ">Yes"]))];
    run_with(
        answer(Wish::Accept),
        &menu,
        "0 1; 300 1 > down; 301 1; 302 typed 0; 310 2 > down; 311 typed 1; 320 3 > enter; 321 typed 2; 350 [] > Closed 1",
    );
    // No single option refuses, so the key that refuses any dialog is used.
    let wide = [("wide", d(&["Yes", "Maybe", ">Yes, always"]))];
    run_with(answer(Wish::Deny), &wide, "0 wide; 300 wide > esc");
    let on_no = [("on no", d(&["Yes", ">No"])), ("no cursor", d(&["Yes", "No"]))];
    for script in [
        "0 on no; 300 on no > up; 301 typed 0; 2300 time > Stuck 0",
        "0 on no; 300 on no > up; 301 typed 0; 310 e > Changed 0",
        "0 no cursor; 300 no cursor > Stuck 0",
    ] {
        run_with(answer(Wish::Accept), &on_no, script);
    }
}

/// Plays a script that starts after the key at 300 ms.
fn after_key_with(named: &[(&str, Ev)], script: &str) {
    run_with(answer(Wish::Accept), named, &format!("0 d; 300 d > 1; 301 typed 0; {script}"));
}

fn after_key(script: &str) {
    after_key_with(&[], script);
}

#[test]
fn answering_key_is_repeated_only_when_proven_lost() {
    let moved = "1301 d > down; 1302 typed 1; 1310 d2 > up; 1311 typed 2; ";
    after_key(&format!("900 d; 1301 time > look; {moved}1320 d > 1; 1321 typed 3; 1350 busy [] > Closed 2"));
    after_key(&format!("{moved}1312 working > look; 1320 d > StillOpen 1"));
    // The first key was only slow, and the next question appeared under the arrow.
    after_key("1301 d > down; 1302 typed 1; 1310 e > Another 1");
    after_key("400 failed 0; 400 failed 9");
}

#[test]
fn next_question_in_the_same_words_is_a_new_one() {
    let printed = |options: &[&str]| Read(asking("d", WaitingKind::Permission, options).with(|s| s.printed = 5));
    let new = [("new", printed(&NUMBERED)), ("new2", printed(&["Yes|1", ">Yes, always|2", "No|3"]))];
    for script in [
        // The agent has reported and printed something that it would not have without the key.
        "400 asking > look; 1200 new; 1301 new > Another 1",
        // The report may be about something before the key.
        "400 asking > look; 1301 d; 3301 time > StillOpen 1",
        // Output arrived, and everything before the arrows was read.
        "1301 new > down; 1302 typed 1; 1310 new2 > up; 1311 typed 2; 1320 new > Another 1",
        // The cursor does not move: the program is stalled, and the result is unknown.
        "1301 new > down; 1302 typed 1; 3301 time > Stuck 1",
    ] {
        after_key_with(&new, script);
    }
}

#[test]
fn unrecognised_screen_is_confirmed_by_a_second_look() {
    let half = [("half", Read(busy("").with(|s| s.reading.strength = Strength::Fallback)))];
    after_key_with(&half, "310 half; 410 time > look; 410 half > Closed 1");
    after_key_with(&half, "310 half; 330 d; 450 half");
}

#[test]
fn textual_question_gets_enter_only_after_the_letter_is_seen() {
    let row = "Allow this action? [y/n/t]:";
    let other = asking_in_text(row).with(|screen| screen.cursor_row = Some(format!("{row} rm -rf")));
    let typed = |letters: &str| Read(asking_in_text(&format!("{row}{letters}")));
    let named = [("row", typed("")), ("row y", typed(" y")), ("row yy", typed(" yy")), ("other", Read(other))];
    for then in [
        "302 row; 310 row y > enter; 311 typed 1; 330 busy [] > Closed 1",
        // The answer is not shown, and nothing else is: the program hides typed text.
        "1300 row",
        "1301 row > enter",
        // Another person types.
        "1301 other",
        "2300 time > NotEchoed 0",
        "310 busy [] > Closed 1",
        "310 row yy",
        "310 e > Changed 0",
    ] {
        let mut machine = answer(Wish::Accept);
        machine.decision.question = row.into();
        run_with(machine, &named, &format!("0 row; 300 row > y; 301 typed 0; {then}"));
    }
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
fn plan_lists_the_keys_before_they_are_typed() {
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
