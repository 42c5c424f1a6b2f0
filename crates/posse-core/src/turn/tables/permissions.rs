//! Scenarios about questions: who answers them, and who is told.

use super::super::testing::{
    Do, asks, asks_other, at, begun, busy, check, check_turn, error, file, idle, message, on, play, refused, rules,
    said, saying, status, turn_of, unknown, who, words,
};
use super::super::{AcceptFailure, Effect, Event, Seen, TurnRecord};
use crate::detect::Dialog;
use crate::detect::dialog::{Choosable, Meaning};
use crate::review_loop::config::Handoff;
use crate::status::Status;
use crate::status::StatusKind::WaitingUserAnswer;
use crate::status::WaitingKind::{Permission, Plan, Question, Startup};
use crate::time::Wall;

const WAITS: &str = "warning: waits for an answer";
const NOTIFY: &str = "notify 5";

fn impatient(rules: Handoff) -> Handoff {
    Handoff { waiting_timeout: 600, ..rules }
}

fn within(seconds: u32, rules: Handoff) -> Handoff {
    Handoff { response_timeout: seconds, ..rules }
}

/// The end of a turn after its questions.
fn done(ms: u64) -> [(u64, Do); 3] {
    [(ms, busy()), (ms, file("a")), (ms, idle())]
}

fn then_done(script: &[(u64, Do)], ms: u64) -> Vec<(u64, Do)> {
    script.iter().cloned().chain(done(ms)).collect()
}

#[test]
fn every_question_every_five_seconds_twenty_times() {
    let turn = turn_of(on(), &who(), None, at(2_000));
    let first = [(2_000, "accept 1/20 d"), (3_000, "File a")];
    check_turn("S-141, the clock is young", turn, &then_done(&[(2_000, asks(Some("d")))], 3_000), &first);
    // The same screen for an hour: every five seconds, twenty times, then the turn fails. After three it is told.
    let (told, error) = play(begun(on()), &[(0, asks(Some("d")))]);
    let accepts: Vec<_> = told.iter().filter(|(_, words)| words.starts_with("accept")).collect();
    assert_eq!(accepts.len(), 20);
    assert!(accepts.windows(2).all(|two| two[1].0 == two[0].0 + 5_000), "S-142");
    let others: Vec<_> = told.iter().filter(|(_, words)| !words.starts_with("accept")).collect();
    let expected = [(15_000, "warning: no effect".into()), (15_000, NOTIFY.into()), (100_000, "Runtime Cap".into())];
    assert_eq!(others, expected.iter().collect::<Vec<_>>(), "S-143, S-144");
    assert!(error.unwrap().message.contains("20"));
    // Another question each time is no reason to worry.
    let many: Vec<_> = (0..8).map(|n| (n * 5_000, asks(Some(&format!("d{n}"))))).collect();
    let (told, _) = play(begun(on()), &then_done(&many, 39_000));
    assert_eq!(told.len(), 9, "{told:?}");
}

#[test]
fn turns_and_terminals_are_counted_apart() {
    // S-145: the counter is new, the cooldown is not.
    let new = turn_of(on(), &who(), Some(at(1_300)), at(2_000));
    assert_eq!(new.accepts(), 0);
    let expected = [(6_300, "accept 1/20 d"), (7_000, "File a")];
    check_turn("S-145", new, &then_done(&[(2_000, asks(Some("d")))], 7_000), &expected);
    // S-146: another terminal is another turn with a cooldown of its own.
    let other = turn_of(on(), &who(), None, at(2_000));
    let expected = [(2_000, "accept 1/20 d"), (3_000, "File a")];
    check_turn("S-146", other, &then_done(&[(2_000, asks(Some("d")))], 3_000), &expected);
}

#[test]
fn accepts_that_go_wrong() {
    let failing = Do::NextAccept(Err(AcceptFailure::Failed("500".into())));
    let script = then_done(&[(0, failing), (0, asks(Some("d")))], 6_000);
    let expected = [(0, "accept 1/20 d"), (0, "warning: failed"), (5_000, "accept 2/20 d"), (6_000, "File a")];
    check("S-151, counted and tried again", on(), &script, &expected);
    let script = then_done(&[(0, refused()), (0, asks(Some("d")))], 100);
    let expected = [(0, "accept 1/20 d"), (0, "warning: not accepted"), (100, "File a")];
    check("S-152, someone else was faster", on(), &script, &expected);
    let script = [(0, refused()), (0, asks(Some("d"))), (200, busy()), (6_000, asks(Some("e")))];
    let expected = [(0, "accept 1/20 d"), (0, "warning: not accepted"), (6_000, "accept 1/20 e"), (7_000, "File a")];
    check("S-152, not counted", on(), &then_done(&script, 7_000), &expected);
    let gone = Do::NextAccept(Err(AcceptFailure::Gone("404".into())));
    check("AMB-23, gone", on(), &[(0, gone), (0, asks(Some("d")))], &[(0, "accept 1/20 d"), (0, "Runtime Gone")]);
}

#[test]
fn one_accept_at_a_time() {
    let mut turn = begun(on());
    let status = |question| status(asks(Some(question)));
    assert_eq!(turn.handle(status("d"), at(0)).len(), 1);
    // It takes long, and another question is there meanwhile. Which one was accepted is not known yet.
    assert_eq!(turn.handle(Event::Time, at(6_000)), []);
    assert_eq!(turn.handle(status("e"), at(7_000)), []);
    assert_eq!(turn.handle(Event::Accepted(Ok(())), at(8_000)), []);
    assert_eq!(turn.deadline(), Some(at(13_000)));
    let next: Vec<_> = turn.handle(Event::Time, at(13_000)).iter().map(words).collect();
    assert_eq!(next, ["accept 2/20 e"]);
}

#[test]
fn what_is_refused_again_is_for_a_person() {
    let on_impatient = impatient(on());
    let many: Vec<_> = (0..30).map(|_| (0, refused())).chain([(0, asks(Some("d")))]).collect();
    let (told, error) = play(begun(on_impatient), &many);
    let expected = [
        (0, "accept 1/20 d"),
        (0, "warning: not accepted"),
        (5_000, "accept 1/20 d"),
        (5_000, "warning: not accepted"),
        (5_000, WAITS),
        (5_000, NOTIFY),
        // With each warning it is tried again.
        (65_000, WAITS),
        (65_000, "accept 1/20 d"),
        (65_000, "warning: not accepted"),
    ];
    let told: Vec<_> = told.iter().map(|(ms, words)| (*ms, words.as_str())).collect();
    assert_eq!(told[..9], expected, "S-153");
    assert_eq!(told.last(), Some(&(600_000, "Runtime Waiting")));
    assert!(error.unwrap().message.contains("600 s"));
    assert!(told.iter().all(|(_, words)| *words != "warning: no effect"), "refusals are no accepts: {told:?}");
    // What could not be read is tried, and tried anew when it can be.
    let drawn = [(0, refused()), (0, asks(None)), (9_000, asks(Some("d")))];
    let expected =
        [(1_500, "accept 1/20 ?"), (1_500, "warning: not accepted"), (6_500, "accept 1/20 ?"), (9_500, "File a")];
    check("LOOP-42", on_impatient, &then_done(&drawn, 9_500), &expected);
}

#[test]
fn missing_evidence_is_reported_once_per_question() {
    let unproven = || Do::NextAccept(Err(AcceptFailure::Unproven("the report differs".into())));
    let cut = [(0, unproven()), (0, asks(Some("d")))];
    let expected = [(0, "accept 1/20 d"), (0, WAITS), (0, NOTIFY), (590_000, "File a")];
    check("once in ten minutes", on(), &then_done(&cut, 590_000), &expected);
    let next = [&cut[..], &[(9_000, unproven()), (9_000, asks(Some("e")))]].concat();
    let expected =
        [(0, "accept 1/20 d"), (0, WAITS), (0, NOTIFY), (9_000, "accept 1/20 e"), (9_000, WAITS), (99_000, "File a")];
    check("the next question has a warning of its own", on(), &then_done(&next, 99_000), &expected);
    let late = [(0, refused()), (0, refused()), (0, asks(Some("d"))), (60_000, unproven())];
    let (told, _) = play(begun(impatient(on())), &late);
    let warned: Vec<_> = told.iter().filter(|(_, words)| words == WAITS).map(|(ms, _)| *ms).collect();
    assert_eq!(warned, [5_000, 65_000, 65_000], "refused before, then without evidence: {told:?}");
    assert_eq!(told.last(), Some(&(600_000, "Runtime Waiting".into())));
}

/// Every question counts for itself: its refusals, its warnings, and the time it may take to be drawn.
#[test]
fn next_question_starts_from_scratch() {
    let refusals = [(0, refused()), (0, refused())];
    let script = [&refusals[..], &[(0, asks(Some("a"))), (6_000, asks(Some("b")))]].concat();
    let expected = [
        (0, "accept 1/20 a"),
        (0, "warning: not accepted"),
        (5_000, "accept 1/20 a"),
        (5_000, "warning: not accepted"),
        (5_000, WAITS),
        (5_000, NOTIFY),
        (10_000, "accept 1/20 b"),
        (10_500, "File a"),
    ];
    check("b was never refused", on(), &then_done(&script, 10_500), &expected);
    let script = [(1_000, asks(Some("a"))), (2_000, asks(Some("b"))), (3_000, asks(Some("b")))];
    let expected = [(1_000, WAITS), (1_000, NOTIFY), (2_000, WAITS), (4_000, "File a")];
    check("S-155, one warning each", rules(), &then_done(&script, 4_000), &expected);
    let script = [(1_000, asks(Some("a"))), (5_500, asks(None))];
    let expected = [(1_000, "accept 1/20 a"), (7_000, "accept 2/20 ?"), (7_500, "File a")];
    check("announced and not drawn", on(), &then_done(&script, 7_500), &expected);
}

#[test]
fn accepts_between_two_refusals_are_no_bad_luck() {
    let ok = || Do::NextAccept(Ok(()));
    let script = [(0, refused()), (0, ok()), (0, refused()), (0, asks(Some("a")))];
    let expected = [
        (0, "accept 1/20 a"),
        (0, "warning: not accepted"),
        (5_000, "accept 1/20 a"),
        (10_000, "accept 2/20 a"),
        (10_000, "warning: not accepted"),
        (15_000, "accept 2/20 a"),
        (15_500, "File a"),
    ];
    check("no person is told", on(), &then_done(&script, 15_500), &expected);
}

/// Nobody knows when the key of an accept that failed was pressed: the cooldown counts from the end.
#[test]
fn cooldown_counts_from_the_end_of_an_accept_that_failed() {
    let mut turn = begun(on());
    let accepted = turn.handle(status(asks(Some("a"))), at(0));
    assert!(matches!(accepted[..], [Effect::Accept { n: 1, .. }]), "{accepted:?}");
    turn.handle(Event::Accepted(Err(AcceptFailure::Failed("500".into()))), at(3_000));
    assert_eq!(turn.deadline(), Some(at(8_000)));
}

#[test]
fn what_is_accepted_at_last_is_waited_for_no_longer() {
    let before = TurnRecord { accepts: 19, ..who() };
    let rules = Handoff { waiting_timeout: 65, ..on() };
    // Refused twice, a person is told, the third attempt works a moment before the patience with people ends. It is the
    // twentieth; the question stays all the same, and the next would be one too many.
    let script = [(0, refused()), (0, refused()), (0, asks(Some("d")))];
    let turn = turn_of(rules, &before, None, at(0));
    let (told, _) = play(turn, &script);
    let ends: Vec<_> = told.iter().filter(|(_, words)| words.starts_with("Runtime")).collect();
    assert_eq!(ends, [&(70_000, "Runtime Cap".to_owned())], "{told:?}");
}

#[test]
fn a_question_is_waited_for_until_it_is_drawn() {
    let drawn = [(0, asks(None)), (900, asks(Some("d")))];
    check("announced, then drawn", on(), &then_done(&drawn, 2_000), &[(900, "accept 1/20 d"), (2_000, "File a")]);
    let never = [(0, asks(None))];
    check("never drawn", on(), &then_done(&never, 2_000), &[(1_500, "accept 1/20 ?"), (2_000, "File a")]);
    let nothing_known = Do::Is(Seen { kind: Some(WaitingUserAnswer), ..Seen::default() });
    let expected = [(1_500, "accept 1/20 ?"), (2_000, "File a")];
    check("of no known kind", on(), &then_done(&[(0, nothing_known)], 2_000), &expected);
    let redrawn = [(0, asks(Some("d"))), (100, asks(None)), (5_100, asks(Some("e")))];
    let expected = [(0, "accept 1/20 d"), (5_000, "accept 2/20 ?"), (6_000, "File a")];
    check("gone for longer than it takes to draw", on(), &then_done(&redrawn, 6_000), &expected);
}

#[test]
fn what_is_no_plain_permission_is_for_a_person() {
    let on_impatient = || impatient(on());
    for kind in [Question, Plan, Startup] {
        let script = then_done(&[(0, asks_other(kind))], 30_000);
        check("answered", on_impatient(), &script, &[(0, WAITS), (0, NOTIFY), (30_000, "File a")]);
        let (told, _) = play(begun(on_impatient()), &[(0, asks_other(kind))]);
        assert_eq!(told.last(), Some(&(600_000, "Runtime Waiting".into())), "{kind:?}");
        assert!(told.iter().all(|(_, words)| !words.starts_with("accept")), "{kind:?}: {told:?}");
    }
    let Do::Is(permission) = asks(Some("d")) else { unreachable!() };
    let not_plain = Do::Is(Seen { plain_yes: false, ..permission });
    check(
        "no plain yes",
        on_impatient(),
        &then_done(&[(0, not_plain)], 500),
        &[(0, WAITS), (0, NOTIFY), (500, "File a")],
    );
    // At the cap too: nothing would be sent.
    let full = TurnRecord { accepts: 20, ..who() };
    let turn = turn_of(on_impatient(), &full, None, at(0));
    check_turn("full", turn, &then_done(&[(0, asks_other(Plan))], 500), &[(0, WAITS), (0, NOTIFY), (500, "File a")]);
}

#[test]
fn a_person_is_told_once_and_reminded_in_the_log() {
    let (told, _) = play(begun(impatient(rules())), &[(0, asks(Some("d")))]);
    let warnings = told.iter().filter(|(_, words)| words == WAITS).count();
    assert_eq!(warnings, 11, "S-154: {told:?}");
    assert_eq!(told.iter().filter(|(_, words)| words == NOTIFY).count(), 1);
    assert_eq!(told.last(), Some(&(600_000, "Runtime Waiting".into())), "LOOP-44");
    let twice = [(0, asks(Some("d"))), (1_000, busy()), (2_000, asks(Some("e")))];
    check("S-155", rules(), &then_done(&twice, 3_000), &[(0, WAITS), (0, NOTIFY), (2_000, WAITS), (3_000, "File a")]);
    let blind = [(0, asks(Some("d"))), (1_000, unknown()), (2_000, asks(Some("d")))];
    check("unknown ends no waiting", rules(), &then_done(&blind, 3_000), &[(0, WAITS), (0, NOTIFY), (3_000, "File a")]);
    let told_before = TurnRecord { human_told: true, ..who() };
    let turn = turn_of(rules(), &told_before, None, at(0));
    check_turn("resumed", turn, &then_done(&[(0, asks(Some("d")))], 100), &[(0, WAITS), (100, "File a")]);
    // Who answers one question after the other is not told that nobody answers.
    let slow: Vec<_> = (0..3).map(|n| (n * 500_000, asks(Some(&format!("d{n}"))))).collect();
    let (told, _) = play(begun(impatient(rules())), &then_done(&slow, 1_500_000));
    assert_eq!(told.last(), Some(&(1_500_000, "File a".into())));
}

#[test]
fn what_a_person_reads() {
    let asks = || asks(Some("3f2a90d1c4e5b677"));
    let said = said(rules(), &then_done(&[(0, asks())], 100));
    for part in ["peer_programmer", "00c0ffee", "posse approve 00c0ffee --question 3f2a`", "AUTO_ACCEPT_PERMISSIONS"] {
        assert!(said[0].contains(part), "{said:?}");
    }
    let mut turn = begun(rules());
    let notices = turn.handle(status(asks()), at(0)).into_iter().filter_map(|effect| match effect {
        Effect::Notify(notice) => Some((notice.title, notice.text)),
        _ => None,
    });
    let text = "peer_programmer (programmer_review, terminal 00c0ffee). `posse approve 00c0ffee --question 3f2a` or \
                `posse deny 00c0ffee --question 3f2a` answers.";
    let expected = ("posse: an agent waits for an answer".to_owned(), text.to_owned());
    assert_eq!(notices.collect::<Vec<_>>(), [expected], "LOOP-47: who and where, and never what is asked");
    let timeout = message(within(60, rules()), &[(0, asks())]);
    assert!(timeout.contains("waiting_user_answer") && timeout.contains("AUTO_ACCEPT_PERMISSIONS"), "S-128: {timeout}");
}

#[test]
fn time_goes_on_while_a_question_waits() {
    let off = within(50, rules());
    let expected = [(0, WAITS), (0, NOTIFY), (50_000, "Timeout TimedOut")];
    check("S-128", off, &[(0, asks(Some("d")))], &expected);
    let expected = [(0, "accept 1/20 d"), (3_000, "Timeout TimedOut")];
    check("S-129, in cooldown", within(3, on()), &[(0, asks(Some("d")))], &expected);
    let flicker: Vec<_> = (0..1_800).map(|s| (s * 1_000, if s % 2 == 0 { asks(Some("d")) } else { idle() })).collect();
    let (told, _) = play(begun(rules()), &flicker);
    assert_eq!(told.iter().filter(|(_, words)| words == WAITS).count(), 900, "S-120");
    assert_eq!(told.iter().filter(|(_, words)| words == NOTIFY).count(), 1);
    assert_eq!(told.last(), Some(&(1_800_000, "Runtime NoFile".into())), "S-120: grace never completes");
    // After a suspend everything is due at once. Nothing is accepted in a turn that is over.
    let mut turn = turn_of(on(), &who(), Some(at(0)), at(0));
    turn.handle(status(asks(Some("d"))), at(1_000));
    let late = turn.handle(Event::Time, at(7_200_000));
    let late: Vec<_> = late.iter().map(words).collect();
    assert_eq!(late, ["Timeout TimedOut"]);
}

#[test]
fn a_failure_of_the_service_is_no_permission() {
    let (told, _) = play(
        begun(on()),
        &[(0, busy()), (10, saying(WaitingUserAnswer, "● API Error: 500 Internal server error\n\n Retry?\n"))],
    );
    assert_eq!(told.len(), 1, "S-156: {told:?}");
    assert!(told[0].1.starts_with("Runtime Api(Server("), "S-156: {told:?}");
    check("error comes first", on(), &[(0, asks(None)), (100, error())], &[(100, "Runtime ErrorState")]);
}

#[test]
fn a_status_says_whether_a_yes_is_plain() {
    let option = |label: &str, meaning| Choosable { label: label.into(), meaning, ..Choosable::default() };
    let dialog = |kind, options| Dialog { id: "d".into(), kind, options, ..Dialog::default() };
    let waiting = || Status::new(WaitingUserAnswer, "rule menu", Wall(0));
    let status = |kind, dialog| Status { waiting_kind: Some(kind), dialog, ..waiting() };
    let plain = |kind, dialog| {
        let seen = Seen::of(&status(kind, dialog));
        (seen.question, seen.plain_yes)
    };
    let yes = || vec![option("Yes", Meaning::Accept), option("No", Meaning::Deny)];
    let wide = vec![option("Yes, and always", Meaning::Widen), option("No", Meaning::Deny)];
    assert_eq!(plain(Permission, Some(dialog(Permission, yes()))), (Some("d".into()), true));
    assert_eq!(plain(Permission, Some(dialog(Permission, wide))), (Some("d".into()), false));
    assert_eq!(plain(Startup, Some(dialog(Startup, yes()))), (Some("d".into()), false));
    assert_eq!(plain(Permission, None), (None, false));
}
