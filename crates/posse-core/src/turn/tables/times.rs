//! Scenarios about time, status, reminders and outages.

use std::time::Duration;

use super::super::testing::{
    Do, asks, at, begun, busy, check, check_turn, completed, error, file, idle, is, message, play, rules, said, saying,
    status, turn_of, unknown, unproven, who, words,
};
use super::super::{ApiFailure, Cause, Effect, Event, Look, Seen, TurnRecord};
use crate::review_loop::config::Handoff;
use crate::status::StatusKind::{Completed, Error, Idle, Processing};
use crate::time::Wall;
use Do::{Happens, LastOutput};

const NO_FILE: &str = "Runtime NoFile";
const NEVER: &str = "warning: never entered processing";
const REMINDING: &str = "warning: no file";

fn within(seconds: u32) -> Handoff {
    Handoff { response_timeout: seconds, ..rules() }
}

fn reminding(reminders: u32) -> Handoff {
    Handoff { max_file_reminders: reminders, ..rules() }
}

fn lenient() -> Handoff {
    Handoff { strict_file_handoff: false, ..rules() }
}

#[test]
fn at_exactly_the_grace_nothing_has_expired() {
    let mut turn = begun(rules());
    let seen = |kind| Event::Status(Seen { kind: Some(kind), ..Seen::default() });
    turn.handle(seen(Processing), at(0));
    turn.handle(seen(Idle), at(1_000));
    turn.handle(Event::File(Look::Absent), at(1_000));
    assert_eq!(turn.handle(Event::Time, at(11_000)), [], "S-118");
    assert_eq!(turn.deadline(), Some(at(11_000) + Duration::from_nanos(1)));
    let expired = turn.handle(Event::Time, at(11_000) + Duration::from_nanos(1));
    assert_eq!(expired, [Effect::LookAtFile]);
}

/// The boundaries of the turn and of looks at the file: at exactly the limit nothing has expired.
#[test]
fn other_limits_are_strict_too() {
    let seen = |kind| Event::Status(Seen { kind: Some(kind), ..Seen::default() });
    let nano = Duration::from_nanos(1);
    // Quiet at the end of the turn, and the look at the file takes its time.
    let mut turn = begun(within(8));
    turn.handle(seen(Processing), at(0));
    turn.handle(seen(Idle), at(1_000));
    turn.handle(Event::File(Look::Absent), at(1_000));
    assert_eq!(turn.handle(Event::Time, at(8_000)), [], "the last instant of the turn");
    assert_eq!(turn.handle(Event::Time, at(8_000) + nano), [Effect::LookAtFile]);
    assert_eq!(turn.handle(Event::Time, at(13_000) + nano), [], "the look may take exactly 5 s");
    let ended = turn.handle(Event::Time, at(13_000) + nano + nano);
    assert!(matches!(ended[..], [Effect::End(Err(_))]), "{ended:?}");
}

/// The agent worked between two quiet statuses: a look at the file that began before does not count.
#[test]
fn look_from_before_the_last_work_does_not_count() {
    let idle = |epoch| Event::Status(Seen { kind: Some(Idle), epoch, ..Seen::default() });
    let mut turn = begun(rules());
    assert_eq!(turn.handle(idle(1), at(0)), [Effect::LookAtFile]);
    assert_eq!(turn.handle(idle(3), at(100)), []);
    assert_eq!(turn.handle(Event::File(Look::Ready("old".into())), at(200)), [Effect::LookAtFile]);
    let ended = turn.handle(Event::File(Look::Ready("new".into())), at(300));
    assert!(matches!(&ended[..], [Effect::End(Ok(answer))] if answer.text == "new"), "{ended:?}");
}

/// A prompt that was submitted is no sign of work. What is seen after it is.
#[test]
fn unproven_status_does_not_release_the_startup_guard() {
    let never = [(0, unproven(Processing)), (1_500, unproven(Completed))];
    check("S-13, nothing observed", rules(), &never, &[(10_000, NEVER), (20_000, NO_FILE)]);
    let still = [(0, unproven(Processing)), (15_000, unproven(Completed))];
    check("S-15, busy by our word only", rules(), &still, &[(15_000, NEVER), (25_000, NO_FILE)]);
    // Only the end of a short turn is observed: the grace counts from there.
    let short = [(0, unproven(Processing)), (2_000, completed())];
    check("S-14, a turn of which only the end is seen", rules(), &short, &[(12_000, NO_FILE)]);
}

#[test]
fn state_for_a_resumed_turn_says_what_was_seen() {
    let seen = |kind| Event::Status(Seen { kind: Some(kind), ..Seen::default() });
    let mut record = who();
    let mut turn = begun(rules());
    turn.handle(seen(Completed), at(0));
    assert!(!turn.started());
    turn.handle(seen(Processing), at(100));
    turn.note(&mut record);
    assert!(turn.started());
    assert_eq!(record, who());
    assert!(!turn.handle(status(asks(Some("d"))), at(200)).is_empty());
    turn.note(&mut record);
    assert!(record.human_told);
    // Switched on while it waits: accepted at the next look.
    turn.set_auto_accept(true);
    let accepted = turn.handle(Event::Time, at(300));
    assert!(matches!(accepted[..], [Effect::Accept { n: 1, .. }]), "{accepted:?}");
    assert_eq!(turn.accepts(), 1);
}

#[test]
fn grace_guard_and_timeout() {
    let mut flicker: Vec<(u64, Do)> =
        (0..3_600).map(|s| (s * 1_000, if s % 2 == 0 { busy() } else { completed() })).collect();
    let ends = [(1_800_000, "Timeout TimedOut")];
    check("S-119, busy at T", rules(), &flicker, &ends);
    flicker.rotate_left(1);
    flicker.pop();
    let quiet: Vec<_> = flicker.iter().map(|(ms, what)| (ms - 1_000, what.clone())).collect();
    check("S-119, quiet at T", rules(), &quiet, &[(1_800_000, NO_FILE)]);
    check("S-121, busy once", rules(), &[(0, busy()), (100, idle())], &[(10_100, NO_FILE)]);
    check("S-122, never busy, T < G", within(5), &[(0, idle())], &[(5_000, NO_FILE)]);
    let jumps = [(0, busy()), (1_000, unknown()), (2_000, idle()), (3_000, unknown()), (15_000, idle())];
    check("S-125, unknown changes nothing and ends nothing", rules(), &jumps, &[(15_000, NO_FILE)]);
    let guarded = [(0, idle()), (1_000, unknown()), (5_000, idle())];
    check("S-125, unknown is not started", rules(), &guarded, &[(10_000, NEVER), (20_000, NO_FILE)]);
    let blind = [(0, unknown()), (1_000, Do::File(Look::Ready("a".into())))];
    check("S-125, unknown to the end", rules(), &blind, &ends);
    check("nothing was ever heard", rules(), &[], &ends);
    check("S-126, error for a moment", rules(), &[(0, error()), (0, idle())], &[(0, "Runtime ErrorState")]);
    check("S-127, error and a file", rules(), &[(0, file("a")), (0, error())], &[(0, "Runtime ErrorState")]);
    let at_once = Handoff { idle_grace_seconds: 0, ..rules() };
    check("S-130, G = 0", at_once, &[(0, idle())], &[(0, NEVER), (0, NO_FILE)]);
    check("S-130, G = 0, after work", at_once, &[(0, busy()), (50, idle())], &[(50, NO_FILE)]);
    check("S-131, 60 s", within(60), &[(0, busy())], &[(60_000, "Timeout TimedOut")]);
}

/// The clock is handed in and never goes back (S-123). After a suspend of two hours (S-124) the first look decides.
#[test]
fn after_a_long_sleep_the_status_decides_the_kind() {
    for (kind, expected) in [(busy(), "Timeout"), (idle(), "Runtime")] {
        let mut turn = begun(rules());
        turn.handle(status(kind), at(1_000));
        turn.handle(Event::File(Look::Absent), at(1_000));
        let mut effects = turn.handle(Event::Time, at(7_200_000));
        effects.extend(turn.handle(Event::File(Look::Absent), at(7_200_000)));
        let last = effects.last().map(words).unwrap_or_default();
        assert!(last.starts_with(expected), "{effects:?}");
    }
}

#[test]
fn the_last_message_instead_of_a_file() {
    let asked = [(10_000, REMINDING), (10_000, "ask last output")];
    for (scenario, output, end) in [
        ("S-132, it fails", None, "Runtime NothingSaid"),
        ("S-133, it is blank", Some(" \n"), "Runtime NothingSaid"),
        ("AMB-45, as it is at the end", Some("said"), "LastOutput said"),
    ] {
        let script = [(0, busy()), (0, idle()), (9_999, LastOutput(output))];
        let expected = [asked[0], asked[1], (10_000, end)];
        check(scenario, lenient(), &script, &expected);
    }
    let failed = message(lenient(), &[(0, busy()), (0, idle()), (0, LastOutput(None))]);
    assert!(failed.contains("no message of the agent"), "{failed}");
    let script =
        [(0, busy()), (0, idle()), (0, LastOutput(Some("said"))), (9_000, Do::Secretly(Look::Ready("a".into())))];
    check("a file is better", lenient(), &script, &[(10_000, "File a")]);
}

#[test]
fn a_last_message_that_never_comes_is_not_waited_for() {
    let mut turn = begun(lenient());
    turn.handle(Event::Status(Seen { kind: Some(Processing), ..Seen::default() }), at(0));
    turn.handle(Event::Status(Seen { kind: Some(Completed), ..Seen::default() }), at(1));
    turn.handle(Event::File(Look::Absent), at(1));
    turn.handle(Event::Time, at(11_000));
    turn.handle(Event::File(Look::Absent), at(11_000));
    // What happens now does not matter any more.
    assert_eq!(turn.handle(Event::Status(Seen { kind: Some(Processing), ..Seen::default() }), at(12_000)), []);
    assert_eq!(turn.handle(Event::Time, at(16_000)), []);
    let end = turn.handle(Event::Time, turn.deadline().unwrap());
    assert_eq!(end.iter().map(words).collect::<Vec<_>>(), ["Runtime NothingSaid"]);
}

#[test]
fn a_new_message_shows_that_it_has_started() {
    let changed = || Happens(Event::MessageChanged);
    let missed = [(0, completed()), (3_000, Do::Secretly(Look::Ready("a".into()))), (4_000, changed())];
    check("a file that the watcher missed", rules(), &missed, &[(4_000, "info: something new"), (4_000, "File a")]);
    let script = [(0, completed()), (3_000, changed()), (4_000, changed())];
    check("S-134", rules(), &script, &[(3_000, "info: something new"), (13_000, NO_FILE)]);
    let started = [(0, busy()), (1_000, idle()), (5_000, changed())];
    check("S-134, known already", rules(), &started, &[(11_000, NO_FILE)]);
    let working = [(0, busy()), (1_000, changed()), (2_000, idle())];
    check("S-134, while busy", rules(), &working, &[(12_000, NO_FILE)]);
}

#[test]
fn reminders() {
    let quiet = [(0, busy()), (0, idle())];
    let once = [(10_000, REMINDING), (10_000, "remind 1"), (20_000, NEVER), (30_000, NO_FILE)];
    check("S-135, S-137, one in vain", reminding(1), &quiet, &once);
    let never = [(10_000, NEVER), (20_000, REMINDING), (20_000, "remind 1"), (30_000, NEVER), (40_000, NO_FILE)];
    check("S-136, none at the startup timeout", reminding(1), &[(0, idle())], &never);
    assert!(message(reminding(1), &quiet).contains("after 1 reminder"));
    assert!(message(reminding(2), &quiet).contains("after 2 reminders"));
    assert!(!message(rules(), &quiet).contains("reminder"));
    let heard = [(0, busy()), (0, idle()), (12_000, busy()), (13_000, file("a")), (14_000, idle())];
    check("S-138, heard", reminding(1), &heard, &[(10_000, REMINDING), (10_000, "remind 1"), (14_000, "File a")]);
    let short = Handoff { response_timeout: 15, ..reminding(1) };
    check("S-140, T in its window", short, &quiet, &[(10_000, REMINDING), (10_000, "remind 1"), (15_000, NO_FILE)]);
    let same = Handoff { response_timeout: 10, ..reminding(1) };
    check(
        "S-140, T at the same time",
        same,
        &quiet,
        &[(10_000, REMINDING), (10_000, "remind 1"), (10_000, NO_FILE)][2..],
    );
}

#[test]
fn outages() {
    let gone = [(0, busy()), (500, Happens(Event::Gone("404".into())))];
    check("S-158, gone", rules(), &gone, &[(500, "Runtime Gone")]);
    assert!(message(rules(), &gone).contains("terminal is gone"));
    let ended = Happens(Event::Gone("its program was ended by SIGKILL".into()));
    check("S-162, the agent has crashed", rules(), &[(0, busy()), (100, ended)], &[(100, "Runtime Gone")]);
}

#[test]
fn a_resumed_turn_goes_on_where_it_was() {
    let before = TurnRecord { sent: Some(Wall(-1_700_000)), reminders: 1, ..who() };
    let resumed = |rules| turn_of(rules, &before, None, at(0));
    let ends = [(100_000, "Timeout TimedOut")];
    check_turn("what is left of T", resumed(rules()), &[(0, busy())], &ends);
    let guarded = [(10_000, NEVER), (20_000, NO_FILE)];
    check_turn("reminded", resumed(reminding(1)), &[(0, idle())], &guarded);
    check_turn("S-200, the answer is there", resumed(rules()), &[(0, file("a")), (0, idle())], &[(0, "File a")]);
    let late = TurnRecord { sent: Some(Wall(-9_999_000)), ..before.clone() };
    let overdue = turn_of(rules(), &late, None, at(0));
    check_turn("overdue, but there", overdue, &[(0, file("a")), (0, idle())], &[(0, "File a")]);
    let (told, error) = play(resumed(reminding(1)), &[(0, idle())]);
    assert!(error.unwrap().message.contains("1 reminder"), "{told:?}");
}

#[test]
fn failures_of_the_service_are_told_apart() {
    let cause = |script: &[(u64, Do)]| play(begun(rules()), script).1.unwrap();
    let overloaded = cause(&[(0, busy()), (10, saying(Error, "● API Error: 529 Overloaded.\n"))]);
    assert_eq!(overloaded.cause, Cause::Api(ApiFailure::Server("API Error: 529 Overloaded.".into())));
    assert!(overloaded.message.contains("ERROR state") && overloaded.message.contains("529"), "{overloaded}");
    let limit = cause(&[(0, busy()), (10, saying(Error, "● You've hit your session limit · resets 3pm\n"))]);
    assert_eq!(limit.cause, Cause::Api(ApiFailure::UsageLimit { resets: Some("3pm".into()) }));
    // Back at its prompt, as if nothing had happened. A file is looked for first.
    let quiet = || saying(Completed, "● API Error: 500\n");
    assert_eq!(cause(&[(0, busy()), (10, quiet())]).cause, Cause::Api(ApiFailure::Server("API Error: 500".into())));
    check("S-157", rules(), &[(0, busy()), (5, file("a")), (10, quiet())], &[(10, "File a")]);
    let (told, _) = play(begun(rules()), &[(0, quiet())]);
    assert_eq!(told[0], (10_000, NEVER.into()), "the guard holds");
    assert_eq!((told.len(), told[1].0), (2, 10_000), "{told:?}");
    assert!(said(rules(), &[(0, is(Error))]).is_empty());
}
