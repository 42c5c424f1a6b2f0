//! Scenarios about time, status, reminders and outages.

use std::time::Duration;

use super::super::testing::{at, check, event, message, play, said, turn, who, words};
use super::super::{ApiFailure, Cause, Effect, Event, Seen};
use crate::status::StatusKind::Idle;

const NANOSECOND: Duration = Duration::from_nanos(1);

#[test]
fn at_exactly_the_grace_nothing_has_expired() {
    let mut turn = turn("");
    turn.handle(event("busy"), at(0));
    turn.handle(event("idle"), at(1_000));
    turn.handle(event("look"), at(1_000));
    assert_eq!(turn.handle(Event::Time, at(11_000)), [], "S-118");
    assert_eq!(turn.deadline(), Some(at(11_000) + NANOSECOND));
    assert_eq!(turn.handle(Event::Time, at(11_000) + NANOSECOND), [Effect::LookAtFile]);
}

/// The boundaries of the turn and of file reads: at exactly the limit nothing has expired.
#[test]
fn other_limits_are_strict_too() {
    // Quiet at the end of the turn, with a slow read of the file.
    let mut turn = turn("T=8");
    turn.handle(event("busy"), at(0));
    turn.handle(event("idle"), at(1_000));
    turn.handle(event("look"), at(1_000));
    assert_eq!(turn.handle(Event::Time, at(8_000)), [], "the last instant of the turn");
    assert_eq!(turn.handle(Event::Time, at(8_000) + NANOSECOND), [Effect::LookAtFile]);
    assert_eq!(turn.handle(Event::Time, at(13_000) + NANOSECOND), [], "the look may take exactly 5 s");
    let ended = turn.handle(Event::Time, at(13_000) + NANOSECOND * 2);
    assert!(matches!(ended[..], [Effect::End(Err(_))]), "{ended:?}");
}

/// The agent worked between two quiet statuses: an earlier file read does not count.
#[test]
fn look_from_before_the_last_work_does_not_count() {
    let idle = |epoch| Event::Status(Seen { kind: Some(Idle), epoch, ..Seen::default() });
    let mut turn = turn("");
    assert_eq!(turn.handle(idle(1), at(0)), [Effect::LookAtFile]);
    assert_eq!(turn.handle(idle(3), at(100)), []);
    assert_eq!(turn.handle(event("look old"), at(200)), [Effect::LookAtFile]);
    let ended = turn.handle(event("look new"), at(300));
    assert!(matches!(&ended[..], [Effect::End(Ok(answer))] if answer.text == "new"), "{ended:?}");
}

/// A submitted prompt is no sign of work. Later observations are.
#[test]
fn unproven_status_does_not_release_the_startup_guard() {
    check(
        "S-13, nothing observed      | | 0 unproven processing, 1.5 unproven completed
                                     | 10 warning: never entered processing, 20 Runtime NoFile
         S-15, busy by our word only | | 0 unproven processing, 15 unproven completed
                                     | 15 warning: never entered processing, 25 Runtime NoFile
         S-14, only the end of a short turn is observed: the grace counts from there
                                     | | 0 unproven processing, 2 completed | 12 Runtime NoFile",
    );
}

#[test]
fn state_for_a_resumed_turn_says_what_was_seen() {
    let (mut turn, mut record) = (turn(""), who());
    turn.handle(event("completed"), at(0));
    assert!(!turn.started());
    turn.handle(event("busy"), at(100));
    turn.note(&mut record);
    assert!(turn.started());
    assert_eq!(record, who());
    assert!(!turn.handle(event("asks d"), at(200)).is_empty());
    turn.note(&mut record);
    assert!(record.human_told);
    // Switched on during the wait: accepted at the next status.
    turn.set_auto_accept(true);
    let accepted = turn.handle(Event::Time, at(300));
    assert!(matches!(accepted[..], [Effect::Accept { n: 1, .. }]), "{accepted:?}");
    assert_eq!(turn.accepts(), 1);
}

#[test]
fn grace_guard_and_timeout() {
    let flicker = |first, second| {
        let steps = (0..1_800).map(|n| format!("{} {first}, {} {second}", 2 * n, 2 * n + 1));
        steps.collect::<Vec<_>>().join(", ")
    };
    assert_eq!(play("", &flicker("busy", "completed")).0, ["1800 Timeout TimedOut"], "S-119, busy at T");
    assert_eq!(play("", &flicker("completed", "busy")).0, ["1800 Runtime NoFile"], "S-119, quiet at T");
    check(
        "S-121, busy once              |     | 0 busy, 0.1 idle | 10.1 Runtime NoFile
         S-122, never busy, T < G      | T=5 | 0 idle | 5 Runtime NoFile
         S-125, unknown changes nothing and ends nothing
                                       |     | 0 busy, 1 unknown, 2 idle, 3 unknown, 15 idle | 15 Runtime NoFile
         S-125, unknown is not started |     | 0 idle, 1 unknown, 5 idle
                                       | 10 warning: never entered processing, 20 Runtime NoFile
         S-125, unknown to the end     |     | 0 unknown, 1 file a | 1800 Timeout TimedOut
         nothing was ever heard        |     | | 1800 Timeout TimedOut
         S-126, error for a moment     |     | 0 error, 0 idle | 0 Runtime ErrorState
         S-127, error and a file       |     | 0 file a, 0 error | 0 Runtime ErrorState
         S-130, G = 0                  | G=0 | 0 idle | 0 warning: never entered processing, 0 Runtime NoFile
         S-130, G = 0, after work      | G=0 | 0 busy, 0.05 idle | 0.05 Runtime NoFile
         S-131, 60 s                   | T=60 | 0 busy | 60 Timeout TimedOut",
    );
}

/// The caller passes in a monotonic clock (S-123). After a suspend of two hours (S-124) the first read decides.
#[test]
fn after_a_long_sleep_the_status_decides_the_kind() {
    for (kind, expected) in [("busy", "Timeout"), ("idle", "Runtime")] {
        let mut turn = turn("");
        turn.handle(event(kind), at(1_000));
        turn.handle(event("look"), at(1_000));
        let mut effects = turn.handle(Event::Time, at(7_200_000));
        effects.extend(turn.handle(event("look"), at(7_200_000)));
        let last = effects.last().map(words).unwrap_or_default();
        assert!(last.starts_with(expected), "{effects:?}");
    }
}

#[test]
fn the_last_message_instead_of_a_file() {
    check(
        "S-132, it fails                | lenient | 0 busy, 0 idle
                                        | 10 warning: no file, 10 ask last output, 10 Runtime NothingSaid
         S-133, it is blank             | lenient | 0 busy, 0 idle, 9.999 says \\n
                                        | 10 warning: no file, 10 ask last output, 10 Runtime NothingSaid
         AMB-45, as it is at the end    | lenient | 0 busy, 0 idle, 9.999 says said
                                        | 10 warning: no file, 10 ask last output, 10 LastOutput said
         a file is better               | lenient | 0 busy, 0 idle, 0 says said, 9 unseen a | 10 File a",
    );
    let failed = message("lenient", "0 busy, 0 idle");
    assert!(failed.contains("no message of the agent"), "{failed}");
}

#[test]
fn a_last_message_that_never_comes_is_not_waited_for() {
    let mut turn = turn("lenient");
    turn.handle(event("busy"), at(0));
    turn.handle(event("completed"), at(1));
    turn.handle(event("look"), at(1));
    turn.handle(Event::Time, at(11_000));
    turn.handle(event("look"), at(11_000));
    // Later events do not matter.
    assert_eq!(turn.handle(event("busy"), at(12_000)), []);
    assert_eq!(turn.handle(Event::Time, at(16_000)), []);
    let end = turn.handle(Event::Time, turn.deadline().unwrap());
    assert_eq!(end.iter().map(words).collect::<Vec<_>>(), ["Runtime NothingSaid"]);
}

#[test]
fn a_new_message_shows_that_it_has_started() {
    check(
        "a file that the watcher missed | | 0 completed, 3 unseen a, 4 message | 4 info: something new, 4 File a
         S-134                          | | 0 completed, 3 message, 4 message
                                        | 3 info: something new, 13 Runtime NoFile
         S-134, known already           | | 0 busy, 1 idle, 5 message | 11 Runtime NoFile
         S-134, while busy              | | 0 busy, 1 message, 2 idle | 12 Runtime NoFile",
    );
}

#[test]
fn reminders() {
    check(
        "S-135, S-137, one in vain             | reminders=1 | 0 busy, 0 idle
            | 10 warning: no file, 10 remind 1, 20 warning: never entered processing, 30 Runtime NoFile
         S-136, none at the startup timeout    | reminders=1 | 0 idle
            | 10 warning: never entered processing, 20 warning: no file, 20 remind 1
            , 30 warning: never entered processing, 40 Runtime NoFile
         S-138, heard                          | reminders=1 | 0 busy, 0 idle, 12 busy, 13 file a, 14 idle
            | 10 warning: no file, 10 remind 1, 14 File a
         S-140, T in its window                | reminders=1 T=15 | 0 busy, 0 idle
            | 10 warning: no file, 10 remind 1, 15 Runtime NoFile
         S-140, T at the same time             | reminders=1 T=10 | 0 busy, 0 idle | 10 Runtime NoFile",
    );
    assert!(message("reminders=1", "0 busy, 0 idle").contains("after 1 reminder"));
    assert!(message("reminders=2", "0 busy, 0 idle").contains("after 2 reminders"));
    assert!(!message("", "0 busy, 0 idle").contains("reminder"));
}

#[test]
fn outages() {
    check(
        "S-158, gone                    | | 0 busy, 0.5 gone 404 | 0.5 Runtime Gone
         S-162, the agent has crashed   | | 0 busy, 0.1 gone its program was ended by SIGKILL | 0.1 Runtime Gone",
    );
    assert!(message("", "0 busy, 0.5 gone 404").contains("terminal is gone"));
}

#[test]
fn a_resumed_turn_goes_on_where_it_was() {
    check(
        "what is left of T             | sent_before=1700 reminded=1 | 0 busy | 100 Timeout TimedOut
         reminded                      | sent_before=1700 reminded=1 reminders=1 | 0 idle
                                       | 10 warning: never entered processing, 20 Runtime NoFile
         S-200, the answer is there    | sent_before=1700 reminded=1 | 0 file a, 0 idle | 0 File a
         overdue, but there            | sent_before=9999 reminded=1 | 0 file a, 0 idle | 0 File a",
    );
    let message = message("sent_before=1700 reminded=1 reminders=1", "0 idle");
    assert!(message.contains("1 reminder"), "{message}");
}

#[test]
fn failures_of_the_service_are_told_apart() {
    let cause = |script: &str| play("", script).1.unwrap();
    let overloaded = cause("0 busy, 0.01 shows error ● API Error: 529 Overloaded.\\n");
    assert_eq!(overloaded.cause, Cause::Api(ApiFailure::Server("API Error: 529 Overloaded.".into())));
    assert!(overloaded.message.contains("ERROR state") && overloaded.message.contains("529"), "{overloaded}");
    let limit = cause("0 busy, 0.01 shows error ● You've hit your session limit · resets 3pm\\n");
    assert_eq!(limit.cause, Cause::Api(ApiFailure::UsageLimit { resets: Some("3pm".into()) }));
    // The agent is back at its prompt without further output. The file is read first.
    let quiet = cause("0 busy, 0.01 shows completed ● API Error: 500\\n");
    assert_eq!(quiet.cause, Cause::Api(ApiFailure::Server("API Error: 500".into())));
    check("S-157 | | 0 busy, 0.005 file a, 0.01 shows completed ● API Error: 500\\n | 0.01 File a");
    let (told, _) = play("", "0 shows completed ● API Error: 500\\n");
    assert_eq!(told[0], "10 warning: never entered processing", "the guard holds");
    assert!(told.len() == 2 && told[1].starts_with("10 Runtime Api"), "{told:?}");
    assert!(said("", "0 error").is_empty());
}
