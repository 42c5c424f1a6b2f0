//! Resuming after a break: parked, stopped, or taken over by another daemon.

use super::*;

/// The failed turn starts again.
const AGAIN: &str = "turn begun, mirror RUNNING, watch";

#[test]
fn a_parked_run_tries_at_once_when_somebody_asks_for_it() {
    let mut bench = play("{}", "parked");
    let until = bench.run.due();
    // A client that had lost its connection is back.
    bench.play("came back ->");
    assert_eq!(bench.run.due(), until);
    bench.play(&format!("came -> watch\nidle -> look at file\nnothing -> said, {AGAIN}"));
    // As after a crash; a reconnecting client does not trigger a retry.
    for (go, tried) in [("go", format!("said, {AGAIN}")), ("go patient", String::new())] {
        play("{}", &format!("parked\ndies\n{go} -> resumed, watch\nidle\nnothing -> {tried}"));
    }
}

/// The agent wrote its answer before the service failed, or a person told it to continue.
#[test]
fn s_127_s_200_an_answer_that_is_there_when_the_model_is_tried_again_is_used() {
    let tried = "parked\nwait 30\ntime -> said, watch\n";
    let failed = format!("{tried}error API Error: 529 Overloaded -> look at file\n");
    play("{}", &format!("{failed}file ANALYST_SUMMARY -> said, answered, archive"));
    // Nothing is sent to a working agent.
    play("{}", &format!("{tried}busy -> said, watch"));
    let bench = play("{}", &format!("{failed}nothing -> {AGAIN}"));
    let again = bench.run.turn().unwrap();
    assert!(again.attempt == 2 && again.text.contains("Your last turn broke off"), "{again:?}");
}

#[test]
fn s_200_an_agent_that_died_after_its_answer_is_not_asked_in_vain() {
    let answered = "file ANALYST_SUMMARY -> said, answered, archive";
    play("{}", &format!("asked\ngone\ngo others -> resumed, look for a whole file\n{answered}"));
    // The agent exits during the check.
    play("{}", &format!("parked\ncame\ngone -> terminal lost, look for a whole file\n{answered}"));
}

/// The delivery of the prompt was unknown, but the prompt had arrived.
#[test]
fn a_prompt_that_arrived_after_all_is_not_sent_again() {
    let uncertain = "started\nidle\ncleared\nuncertain its screen cannot be read\ngo -> resumed, watch\n";
    play("{}", &format!("{uncertain}busy -> said, watch"));
    play("{}", &format!("{uncertain}idle -> look at file\nfile ANALYST_SUMMARY -> said, answered, archive"));
}

#[test]
fn a_run_that_goes_on_is_not_parked() {
    play("{}", "parked\ndies\ngo\nbusy\nis running\ndies\nis running");
}

#[test]
fn outages_and_limits_are_counted_apart_and_anew_when_a_person_goes_on() {
    let mut bench = play("{}", "parked");
    let mut again = |words: &str| {
        bench.now = bench.run.due().unwrap().0;
        bench.play(&format!("time\nidle\nnothing\nask\nerror {words}"));
        (bench.run.outages, bench.run.limits)
    };
    let limit = "You've hit your usage limit. Try again later.";
    assert_eq!([again(limit), again("API Error: 529"), again(limit)], [(1, 1), (2, 1), (2, 2)]);
    // A crash changes nothing.
    bench.play("dies\ngo");
    assert_eq!((bench.run.outages, bench.run.limits), (2, 2));
    bench.play("stop Ctrl-C\ngo");
    assert_eq!((bench.run.outages, bench.run.limits), (0, 0));
}

/// The run was stopped in the middle of a turn, for longer than the turn's timeout.
#[test]
fn while_a_run_is_stopped_no_time_passes_for_its_turn() {
    let mut bench = play("{}", "asked\nbusy\nasks a");
    assert!(bench.run.turn().unwrap().human_told);
    // The turn's time starts again, and its question is reported.
    bench.play(
        "stop Ctrl-C
         dies
         wait 7200
         go
         busy   ->
         time   ->
         asks a -> said, notify waiting",
    );
}

#[test]
fn s_5_s_6_whoever_goes_on_with_it_says_whether_permissions_are_accepted() {
    for (config, auto_accept, accepts) in [
        ("{}", Some(true), true),
        ("{}", Some(false), false),
        ("{}", None, false),
        (ACCEPTS, Some(false), false),
        (ACCEPTS, None, true),
    ] {
        let mut bench = play(config, "asked\nstop Ctrl-C\ndies");
        let caller = Some(Caller { hurry: true, auto_accept });
        bench.happens(RunEvent::Go { alive: (0..5).map(terminal).collect(), adopted: BTreeMap::new(), caller });
        let answered = bench.step("asks a");
        assert_eq!(answered == ["accepting", "accept 1"], accepts, "{config} {auto_accept:?}: {answered:?}");
        // The next daemon knows.
        bench.dies();
        assert_eq!(bench.run.spec.config.handoff.auto_accept_permissions, accepts);
    }
    // A running run can be set to accept less, but never more: the caller may be one of its agents.
    let came = |hurry, auto_accept| RunEvent::Came(Caller { hurry, auto_accept });
    let mut bench = play(ACCEPTS, "asked");
    assert_eq!(bench.happens(came(true, Some(false))), ["said"]);
    assert_eq!(bench.happens(came(true, Some(true))), ["said"]);
    // A person is notified.
    bench.play("asks a -> said, ...");
    // A reconnecting client changes no setting.
    let mut bench = play(ACCEPTS, "asked");
    assert!(bench.happens(came(false, Some(false))).is_empty());
    bench.play("asks a -> accepting, accept 1");
}

/// The retry fails before its prompt, and then the answer of the previous attempt exists.
#[test]
fn a_turn_that_goes_on_after_a_later_number_was_used_is_heard() {
    let mut bench = play(
        "{}",
        &format!(
            "parked
             wait 30
             time
             error API Error: 529 Overloaded
             nothing -> {AGAIN}
             gone
             go others -> resumed, look for a whole file"
        ),
    );
    assert_eq!(bench.run.turns, 2);
    let mut of_first = |event| bench.happens(RunEvent::Turn { turn: 1, event });
    let answer = Event::File(Look::Ready("ANALYST_SUMMARY".into()));
    assert_eq!(of_first(TurnEvent::Waiting(answer)), ["said", "answered", "archive"]);
    let next = of_first(TurnEvent::Archived(None));
    assert!(next.contains(&"turn begun".to_owned()), "{next:?}");
}

/// No agent works on a prompt that is known not to have been taken.
#[test]
fn a_prompt_that_did_not_arrive_is_sent_again() {
    let not_sent = "idle\ncleared\nunsent it is not quiet\n".repeat(3);
    play("{}", &format!("started\n{not_sent}says not taken\ngo -> resumed, {AGAIN}"));
}

/// A reminder is journaled before it is typed. After a crash it may be missing, so it is requested again under the same
/// number.
#[test]
fn a_reminder_that_may_not_have_been_typed_is_given_again() {
    let mut bench = play(r#"{"handoff": {"max_file_reminders": 1}}"#, "asked\nbusy\nidle\nnothing");
    let mut said = Vec::new();
    while !said.contains(&"remind 1".into()) {
        assert!(bench.now < Duration::from_secs(600), "it is never reminded");
        bench.play("wait 60");
        said = bench.step("time");
        if said.contains(&"look at file".into()) {
            said = bench.step("nothing");
        }
    }
    assert_eq!(said, ["said", "remind 1"]);
    bench.play("dies\ngo -> resumed, watch, remind 1");
}
