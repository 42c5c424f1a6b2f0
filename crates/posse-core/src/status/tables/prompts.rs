//! What is believed after a prompt, and after a restart.

use super::*;

#[test]
fn what_was_over_before_the_turn_does_not_end_it() {
    let prompted = (2_000, Idle, SENT);
    // An end that was said before, the row that closed the last turn, and both.
    check_idle(
        &[(1_000, Said(Osc, Ready)), (2_000, Prompted), (2_010, quiet(1)), (2_400, quiet(2)), (2_500, spinner())],
        &[prompted, (2_500, Processing, "rule spinner")],
    );
    check_idle(
        &[(900, closed()), (2_000, Prompted), (2_300, closed()), (2_400, spinner())],
        &[(900, Completed, "rule closed"), (2_000, Completed, SENT), (2_400, Processing, "rule spinner")],
    );
    check_idle(
        &[(2_000, Prompted), (2_100, Said(Hook, Working)), (2_150, closed())],
        &[prompted, (2_100, Processing, "the agent said working (hook)"), (2_150, Completed, "rule closed")],
    );
    check_idle(
        &[(2_000, Prompted), (2_100, spinner()), (5_000, quiet(1))],
        &[prompted, (2_100, Processing, "rule spinner"), (6_000, Completed, "rule quiet")],
    );
    // A prompt that was not taken.
    check_idle(&[(2_000, Prompted)], &[prompted, (3_500, Completed, "rule idle")]);
    // An agent that would have told that it has begun: it is only slow. But not for ever.
    let alive = (500, Said(SessionFile, Claim::Nothing));
    check_idle(
        &[alive.clone(), (2_000, Prompted), (2_100, quiet(1)), (9_000, spinner())],
        &[prompted, (9_000, Processing, "rule spinner")],
    );
    check_idle(&[alive.clone(), (2_000, Prompted)], &[prompted, (12_000, Completed, "rule idle")]);
    // Of its own commands it tells nothing.
    check_idle(&[alive, (2_000, Commanded)], &[prompted, (3_500, Completed, "rule idle")]);
}

/// That a prompt was submitted is our own word. No client may take it for the agent being at work (seed 002).
#[test]
fn status_after_a_prompt_is_the_last_observed_one_until_the_agent_reacts() {
    let told = |events: &[(u64, Event)]| {
        let events: Vec<_> = [(100, idle())].into_iter().chain(events.iter().cloned()).collect();
        let told = run(&mut Life::starting(wall(0)), &events);
        let of = |(_, status): &(u64, Status)| (status.kind, status.awaiting_reaction, status.unproven);
        told.iter().map(of).collect::<Vec<_>>()
    };
    let idle = (Idle, false, false);
    let sent = (Idle, true, true);
    let prompt = (2_000, Prompted);
    assert_eq!(told(std::slice::from_ref(&prompt)), [idle, sent, (Completed, false, true)]);
    for event in [spinner(), Said(Hook, Working)] {
        let told = told(&[prompt.clone(), (2_600, event.clone()), (9_000, closed())]);
        assert_eq!(told, [idle, sent, (Processing, false, false), (Completed, false, false)], "{event:?}");
    }
    // A turn of which only the end is observed.
    let over = told(&[prompt.clone(), (2_600, Said(Osc, TurnOver)), (9_000, closed())]);
    assert_eq!(over, [idle, sent, (Completed, false, false)]);
    let asked = told(&[prompt.clone(), (2_100, asks("a"))]);
    assert_eq!(asked, [idle, sent, (WaitingUserAnswer, false, false)]);
    // And each prompt anew.
    let again = told(&[prompt.clone(), (2_100, spinner()), (5_000, closed()), (9_000, Prompted)]);
    assert_eq!(again[3..], [(Completed, false, false), (Completed, true, true), (Completed, false, true)]);
    // An error of the turn before is not one of the turn that begins.
    let failure = [(5_000, Said(Hook, Failed("x".into()))), (5_050, quiet(1)), (9_000, Prompted)];
    let failed = told(&[&[prompt, (2_100, spinner())], &failure[..]].concat());
    assert_eq!(failed[3..], [(Error, false, false), (Completed, true, true), (Completed, false, true)]);
}

#[test]
fn awaited_reaction_survives_a_restart() {
    let mut life = Life::starting(wall(0));
    run(&mut life, &[(100, idle())]);
    let sent = life.handle(&Prompted, at(200), wall(200)).cloned().unwrap();
    let stored: Status = serde_json::from_str(&serde_json::to_string(&sent).unwrap()).unwrap();
    assert!(stored.awaiting_reaction && stored.is_busy() && stored.kind == Idle);
    let mut resumed = Life::resumed(stored.clone(), false);
    assert_eq!(*resumed.status(), stored);
    let kinds: Vec<_> = run(&mut resumed, &[(300, idle()), (400, spinner()), (9_000, closed())])
        .iter()
        .map(|(ms, status)| (*ms, status.kind, status.awaiting_reaction))
        .collect();
    assert_eq!(kinds, [(400, Processing, false), (9_000, Completed, false)]);
    let told = run(&mut Life::resumed(stored, false), &[(300, idle())]);
    assert_eq!(told.iter().map(|(ms, status)| (*ms, status.kind)).collect::<Vec<_>>(), [(1_300, Completed)]);
}

/// After a crash of the daemon the output of several turns is replayed. Only what the screen shows then is news.
#[test]
fn recalled_claims_change_no_status_and_still_hold_back_an_end() {
    let turns = [Working, TurnOver, Working, Failed("x".into()), Asking(None), Working];
    let recalled: Vec<_> = (10..).zip(turns.map(|claim| Event::Recalled(Osc, claim))).collect();
    check_idle(&recalled, &[]);
    // It still says working, so a quiet screen is believed later.
    check_working(&[(300, Event::Recalled(Osc, Working)), (400, quiet(1))], &[(1_900, Completed, "rule quiet")]);
}

#[test]
fn what_was_known_holds_until_there_is_evidence() {
    let known = |kind, reason: &str| Life::resumed(Status::new(kind, reason, Wall(0)), false);
    let check = |kind, events: &[(u64, Event)], expected: &[(u64, StatusKind)]| {
        let told = run(&mut known(kind, "rule x"), events);
        let told: Vec<_> = told.iter().map(|(ms, status)| (*ms, status.kind)).collect();
        assert_eq!(told, expected, "{kind} then {events:?}");
    };
    check(Processing, &[(100, nothing())], &[]);
    check(Processing, &[(100, quiet(0))], &[(1_100, Completed)]);
    check(Processing, &[(100, closed())], &[(100, Completed)]);
    check(Idle, &[(100, spinner())], &[(100, Processing)]);
    check(Completed, &[(100, idle())], &[]);
    check(Idle, &[(100, asks("a"))], &[(100, WaitingUserAnswer)]);
    check(WaitingUserAnswer, &[(100, spinner())], &[(100, Processing)]);
    check(Error, &[(100, idle())], &[(1_100, Completed)]);
    let mut starting = known(Processing, "starting");
    assert_eq!(run(&mut starting, &[(100, idle())])[0].1.kind, Idle, "it is still starting");
}
