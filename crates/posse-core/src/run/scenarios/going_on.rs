//! Going on after a break: parked, stopped, or taken up by another posse.

use super::*;

const AGAIN: [&str; 3] = ["turn begun", "mirror RUNNING", "watch"];

fn failing(words: &str) -> RunEvent {
    let words = Some(words.to_owned());
    RunEvent::Status { terminal: terminal(0), seen: Seen { kind: Some(StatusKind::Error), words, ..Seen::default() } }
}

fn quiet() -> RunEvent {
    RunEvent::Status { terminal: terminal(0), seen: Seen { kind: Some(Idle), ..Seen::default() } }
}

/// The analyst was asked, and its service failed.
fn parked() -> Bench {
    let mut bench = Bench::asked("{}");
    let parked = bench.happens(failing("API Error: 529 Overloaded"));
    assert_eq!(parked, ["turn failed", "said", "mirror RUNNING", "notify parked"]);
    bench
}

#[test]
fn a_parked_run_tries_at_once_when_somebody_asks_for_it() {
    let mut bench = parked();
    let until = bench.run.due();
    // Somebody who had lost the connection is back.
    assert!(bench.happens(RunEvent::Came(Caller::default())).is_empty());
    assert_eq!(bench.run.due(), until);
    let tried = [&["said"][..], &AGAIN].concat();
    assert_eq!(bench.happens(RunEvent::Came(HURRIED.unwrap())), ["watch"]);
    assert_eq!(bench.happens(quiet()), ["look at file"]);
    assert_eq!(bench.turn(Event::File(Look::Absent)), tried);
    // As after a crash; and nobody who is only back after one hurries it.
    for hurry in [false, true] {
        let mut bench = parked();
        bench.dies();
        let caller = Some(Caller { hurry, auto_accept: None });
        let go = RunEvent::Go { alive: all().into_iter().collect(), adopted: BTreeMap::new(), caller };
        assert_eq!(bench.happens(go), ["resumed", "watch"]);
        bench.happens(quiet());
        let next = bench.turn(Event::File(Look::Absent));
        assert_eq!(next, if hurry { &tried[..] } else { &[] }, "hurry: {hurry}");
    }
}

/// The agent has written its answer, and then the service failed; or somebody told it in its terminal to go on.
#[test]
fn s_127_s_200_an_answer_that_is_there_when_the_model_is_tried_again_is_used() {
    let mut bench = parked();
    bench.now += Duration::from_secs(30);
    assert_eq!(bench.happens(RunEvent::Time), ["said", "watch"]);
    assert_eq!(bench.happens(failing("API Error: 529 Overloaded")), ["look at file"]);
    let taken = bench.turn(Event::File(Look::Ready("ANALYST_SUMMARY".into())));
    assert_eq!(taken, ["said", "answered", "archive"]);

    let mut bench = parked();
    bench.now += Duration::from_secs(30);
    bench.happens(RunEvent::Time);
    let works = Seen { kind: Some(Processing), ..Seen::default() };
    let waited = bench.happens(RunEvent::Status { terminal: terminal(0), seen: works });
    assert_eq!(waited, ["said", "watch"], "nothing is sent to an agent that is at it");

    let mut bench = parked();
    bench.now += Duration::from_secs(30);
    bench.happens(RunEvent::Time);
    bench.happens(failing("API Error: 529 Overloaded"));
    assert_eq!(bench.turn(Event::File(Look::Absent)), AGAIN);
    let again = bench.run.turn().unwrap();
    assert!(again.attempt == 2 && again.text.contains("Your last turn broke off"), "{again:?}");
}

#[test]
fn s_200_an_agent_that_died_after_its_answer_is_not_asked_in_vain() {
    let mut bench = Bench::asked("{}");
    bench.turn(Event::Gone("its program exited with 9".into()));
    assert_eq!(bench.go(&all()[1..]), ["resumed", "look for a whole file"]);
    let taken = bench.turn(Event::File(Look::Ready("ANALYST_SUMMARY".into())));
    assert_eq!(taken, ["said", "answered", "archive"]);
    // It goes while it is looked at.
    let mut bench = parked();
    bench.happens(RunEvent::Came(HURRIED.unwrap()));
    assert_eq!(bench.turn(Event::Gone("its program exited with 9".into())), ["terminal lost", "look for a whole file"]);
    assert_eq!(bench.turn(Event::File(Look::Ready("A".into()))), ["said", "answered", "archive"]);
}

/// Nobody knew whether the prompt had arrived. It had.
#[test]
fn a_prompt_that_arrived_after_all_is_not_sent_again() {
    let uncertain = || {
        let mut bench = Bench::started("{}");
        bench.status(Idle);
        bench.happens(RunEvent::StaleCleared { turn: 1, stale: Ok(None), printed: None });
        bench.happens(RunEvent::Sent { turn: 1, sent: Sent::Uncertain("its screen cannot be read".into()) });
        assert_eq!(bench.go(&all()), ["resumed", "watch"]);
        bench
    };
    let mut bench = uncertain();
    let works = Seen { kind: Some(Processing), ..Seen::default() };
    assert_eq!(bench.happens(RunEvent::Status { terminal: terminal(0), seen: works }), ["said", "watch"]);
    let mut bench = uncertain();
    assert_eq!(bench.happens(quiet()), ["look at file"]);
    let taken = bench.turn(Event::File(Look::Ready("ANALYST_SUMMARY".into())));
    assert_eq!(taken, ["said", "answered", "archive"]);
}

#[test]
fn a_run_that_goes_on_is_not_parked() {
    let mut bench = parked();
    bench.dies();
    bench.go(&all());
    let works = Seen { kind: Some(Processing), ..Seen::default() };
    bench.happens(RunEvent::Status { terminal: terminal(0), seen: works });
    assert_eq!(bench.run.status(), RunStatus::Running);
    bench.dies();
    assert_eq!(bench.run.status(), RunStatus::Running);
}

#[test]
fn outages_and_limits_are_counted_apart_and_anew_when_a_person_goes_on() {
    let mut bench = parked();
    let mut again = |words: &str| {
        bench.now = bench.run.due().unwrap().0;
        bench.happens(RunEvent::Time);
        bench.happens(quiet());
        bench.turn(Event::File(Look::Absent));
        bench.ask();
        bench.happens(failing(words));
        (bench.run.outages, bench.run.limits)
    };
    let limit = "You've hit your usage limit. Try again later.";
    assert_eq!([again(limit), again("API Error: 529"), again(limit)], [(1, 1), (2, 1), (2, 2)]);
    // A crash changes nothing.
    bench.dies();
    bench.go(&all());
    assert_eq!((bench.run.outages, bench.run.limits), (2, 2));
    bench.happens(RunEvent::Stop { why: "Ctrl-C".into() });
    bench.go(&all());
    assert_eq!((bench.run.outages, bench.run.limits), (0, 0));
}

/// It was stopped in the middle of a turn, for longer than a turn may take.
#[test]
fn while_a_run_is_stopped_no_time_passes_for_its_turn() {
    let mut bench = Bench::asked("{}");
    bench.status(Processing);
    bench.happens(RunEvent::Status { terminal: terminal(0), seen: permission("a") });
    assert!(bench.run.turn().unwrap().human_told);
    bench.happens(RunEvent::Stop { why: "Ctrl-C".into() });
    bench.dies();
    bench.now += Duration::from_secs(7_200);
    bench.go(&all());
    assert!(bench.status(Processing).is_empty());
    assert!(bench.happens(RunEvent::Time).is_empty(), "its time begins anew");
    let asked = bench.happens(RunEvent::Status { terminal: terminal(0), seen: permission("a") });
    assert_eq!(asked, ["said", "notify waiting"], "and somebody hears of its question");
}

#[test]
fn s_5_s_6_whoever_goes_on_with_it_says_whether_permissions_are_accepted() {
    let asks = || RunEvent::Status { terminal: terminal(0), seen: permission("a") };
    let go = |auto_accept| RunEvent::Go {
        alive: all().into_iter().collect(),
        adopted: BTreeMap::new(),
        caller: Some(Caller { hurry: true, auto_accept }),
    };
    let on = r#"{"handoff": {"auto_accept_permissions": true}}"#;
    for (config, auto_accept, accepts) in [
        ("{}", Some(true), true),
        ("{}", Some(false), false),
        ("{}", None, false),
        (on, Some(false), false),
        (on, None, true),
    ] {
        let mut bench = Bench::asked(config);
        bench.happens(RunEvent::Stop { why: "Ctrl-C".into() });
        bench.dies();
        bench.happens(go(auto_accept));
        let answered = bench.happens(asks());
        assert_eq!(answered == ["accepting", "accept 1"], accepts, "{config} {auto_accept:?}: {answered:?}");
        // The next posse knows.
        bench.dies();
        assert_eq!(bench.run.spec.config.handoff.auto_accept_permissions, accepts);
    }
    // While it goes on, less is accepted at once, and more not at all: it may be an agent that asks for it.
    let came = |hurry, auto_accept| RunEvent::Came(Caller { hurry, auto_accept });
    let mut bench = Bench::asked(on);
    assert_eq!(bench.happens(came(true, Some(false))), ["said"]);
    assert_eq!(bench.happens(came(true, Some(true))), ["said"]);
    assert_eq!(bench.happens(asks())[0], "said", "a person is called");
    // Nobody who only has lost the connection decides anything.
    let mut bench = Bench::asked(on);
    assert!(bench.happens(came(false, Some(false))).is_empty());
    assert_eq!(bench.happens(asks()), ["accepting", "accept 1"]);
}

/// The next try did not even get to its prompt, and then the answer of the one before is there.
#[test]
fn a_turn_that_goes_on_after_a_later_number_was_used_is_heard() {
    let mut bench = parked();
    bench.now += Duration::from_secs(30);
    bench.happens(RunEvent::Time);
    bench.happens(failing("API Error: 529 Overloaded"));
    assert_eq!(bench.turn(Event::File(Look::Absent)), AGAIN);
    bench.turn(Event::Gone("it was deleted".into()));
    assert_eq!(bench.run.turns, 2);
    assert_eq!(bench.go(&all()[1..]), ["resumed", "look for a whole file"]);
    let of_first = |event| RunEvent::Turn { turn: 1, event };
    let taken = bench.happens(of_first(Event::File(Look::Ready("ANALYST_SUMMARY".into()))));
    assert_eq!(taken, ["said", "answered", "archive"]);
    let next = bench.happens(RunEvent::Archived { turn: 1, name: None });
    assert!(next.contains(&"turn begun".to_owned()), "{next:?}");
}

/// What was certainly never taken nobody is at.
#[test]
fn a_prompt_that_did_not_arrive_is_sent_again() {
    let mut bench = Bench::started("{}");
    for _ in 0..3 {
        bench.status(Idle);
        bench.happens(RunEvent::StaleCleared { turn: 1, stale: Ok(None), printed: None });
        bench.happens(RunEvent::Sent { turn: 1, sent: Sent::Not("it is not quiet".into()) });
    }
    assert!(bench.last_words().contains("not taken"), "{}", bench.last_words());
    assert_eq!(bench.go(&all()), [&["resumed"][..], &AGAIN].concat());
}

/// The cooldown of a terminal survives the turn, whatever becomes of the clock on the wall in between.
#[test]
fn s_146_the_cooldown_survives_turns_and_clocks() {
    let seen = |question: &str| RunEvent::Status { terminal: terminal(0), seen: permission(question) };
    for moved in [0, HOUR, -HOUR] {
        let mut bench = Bench::asked(r#"{"handoff": {"auto_accept_permissions": true}}"#);
        assert_eq!(bench.happens(seen("a")), ["accepting", "accept 1"]);
        bench.turn(Event::Accepted(Ok(())));
        // Its answer is there at once, and so is the next turn, in the same terminal.
        bench.status(Completed);
        bench.turn(Event::File(Look::Ready("ANALYST_SUMMARY".into())));
        bench.moved = moved;
        bench.happens(RunEvent::Archived { turn: 1, name: None });
        let reviewed = bench.answer("REVIEW_RESULT: REVISE\nREVIEW_NOTES:\n- more");
        assert!(reviewed.contains(&"turn begun".into()), "{reviewed:?}");
        bench.ask();
        assert!(bench.happens(seen("b")).is_empty(), "moved by {moved}");
        bench.now += crate::permission::COOLDOWN;
        assert_eq!(bench.happens(RunEvent::Time), ["accepting", "accept 1"], "moved by {moved}");
    }
}

/// That it is reminded is written down first. Whether it was, nobody knows after a crash: it is asked to be again, under the
/// same number.
#[test]
fn a_reminder_that_may_not_have_been_typed_is_given_again() {
    let mut bench = Bench::asked(r#"{"handoff": {"max_file_reminders": 1}}"#);
    bench.status(Processing);
    bench.status(Idle);
    let mut said = bench.turn(Event::File(Look::Absent));
    for _ in 0..10 {
        if said.contains(&"remind 1".into()) {
            break;
        }
        bench.now += Duration::from_secs(60);
        said = bench.happens(RunEvent::Time);
        if said.contains(&"look at file".into()) {
            said = bench.turn(Event::File(Look::Absent));
        }
    }
    assert_eq!(said, ["said", "remind 1"]);
    bench.dies();
    assert_eq!(bench.go(&all()), ["resumed", "watch", "remind 1"]);
}
