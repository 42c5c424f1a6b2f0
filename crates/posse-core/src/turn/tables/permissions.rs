//! Scenarios about questions: the party that answers, and the notifications.

use super::super::testing::{at, check, event, message, play, said, turn, words};
use super::super::{AcceptFailure, Effect, Event, Seen};
use crate::detect::Dialog;
use crate::detect::dialog::{Choosable, Meaning};
use crate::status::Status;
use crate::status::StatusKind::WaitingUserAnswer;
use crate::status::WaitingKind::{Permission, Startup};
use crate::time::Wall;

/// Returns the effects that contain these words.
fn told<'a>(all: &'a [String], words: &str) -> Vec<&'a str> {
    all.iter().map(String::as_str).filter(|told| told.contains(words)).collect()
}

fn last(settings: &str, script: &str) -> String {
    play(settings, script).0.pop().unwrap_or_default()
}

#[test]
fn every_question_every_five_seconds_twenty_times() {
    check("S-141, the clock is young | accept begun=2 | 2 asks d, 3 done | 2 accept 1/20 d, 3 File a");
    // The same screen for an hour: an accept every five seconds, twenty times, then the turn fails. The third one
    // notifies a person.
    let (all, error) = play("accept", "0 asks d");
    let accepts: Vec<String> = (1..=20).map(|n| format!("{} accept {n}/20 d", (n - 1) * 5)).collect();
    assert_eq!(told(&all, "accept "), accepts, "S-142");
    let others: Vec<_> = all.iter().filter(|told| !accepts.contains(told)).collect();
    assert_eq!(others, ["15 warning: no effect", "15 notify 5", "100 Runtime Cap"], "S-143, S-144");
    assert!(error.unwrap().message.contains("20"));
    // A different question each time does not warn.
    let many: String = (0..8).map(|n| format!("{} asks d{n}, ", n * 5)).collect();
    let (all, _) = play("accept", &(many + "39 done"));
    assert_eq!(all.len(), 9, "{all:?}");
}

#[test]
fn turns_and_terminals_are_counted_apart() {
    assert_eq!(turn("accept accepted=1.3 begun=2").accepts(), 0);
    // Another terminal has its own turn and cooldown.
    check(
        "S-145, the counter is new, the cooldown is not
                | accept accepted=1.3 begun=2 | 2 asks d, 7 done | 6.3 accept 1/20 d, 7 File a
         S-146  | accept begun=2              | 2 asks d, 3 done | 2 accept 1/20 d, 3 File a",
    );
}

#[test]
fn accepts_that_go_wrong() {
    check(
        "S-151, counted and tried again | accept | 0 failed, 0 asks d, 6 done
                | 0 accept 1/20 d, 0 warning: failed, 5 accept 2/20 d, 6 File a
         S-152, someone else was faster | accept | 0 refused, 0 asks d, 0.1 done
                | 0 accept 1/20 d, 0 warning: not accepted, 0.1 File a
         S-152, not counted             | accept | 0 refused, 0 asks d, 0.2 busy, 6 asks e, 7 done
                | 0 accept 1/20 d, 0 warning: not accepted, 6 accept 1/20 e, 7 File a
         AMB-23, gone                   | accept | 0 lost, 0 asks d | 0 accept 1/20 d, 0 Runtime Gone",
    );
}

#[test]
fn one_accept_at_a_time() {
    let mut turn = turn("accept");
    assert_eq!(turn.handle(event("asks d"), at(0)).len(), 1);
    // The accept is slow, and another question appears. Which one was accepted is not known yet.
    assert_eq!(turn.handle(Event::Time, at(6_000)), []);
    assert_eq!(turn.handle(event("asks e"), at(7_000)), []);
    assert_eq!(turn.handle(Event::Accepted(Ok(())), at(8_000)), []);
    assert_eq!(turn.deadline(), Some(at(13_000)));
    let next: Vec<_> = turn.handle(Event::Time, at(13_000)).iter().map(words).collect();
    assert_eq!(next, ["accept 2/20 e"]);
}

#[test]
fn what_is_refused_again_is_for_a_person() {
    let refused = "0 refused, ".repeat(30);
    let (all, error) = play("accept patience=600", &format!("{refused}0 asks d"));
    let expected = [
        "0 accept 1/20 d",
        "0 warning: not accepted",
        "5 accept 1/20 d",
        "5 warning: not accepted",
        "5 warning: waits for an answer",
        "5 notify 5",
        // Each warning retries the accept.
        "65 warning: waits for an answer",
        "65 accept 1/20 d",
        "65 warning: not accepted",
    ];
    assert_eq!(all[..9], expected, "S-153");
    assert_eq!(all.last().unwrap(), "600 Runtime Waiting");
    assert!(error.unwrap().message.contains("600 s"));
    assert!(told(&all, "no effect").is_empty(), "refusals are no accepts: {all:?}");
    // An unreadable question is tried, and tried again when it becomes readable.
    check(
        "LOOP-42 | accept patience=600 | 0 refused, 0 asks ?, 9 asks d, 9.5 done
                 | 1.5 accept 1/20 ?, 1.5 warning: not accepted, 6.5 accept 1/20 ?, 9.5 File a",
    );
}

#[test]
fn missing_evidence_is_reported_once_per_question() {
    check(
        "once in ten minutes | accept | 0 doubted, 0 asks d, 590 done
            | 0 accept 1/20 d, 0 warning: waits for an answer, 0 notify 5, 590 File a
         the next question has a warning of its own
            | accept | 0 doubted, 0 asks d, 9 doubted, 9 asks e, 99 done
            | 0 accept 1/20 d, 0 warning: waits for an answer, 0 notify 5
            , 9 accept 1/20 e, 9 warning: waits for an answer, 99 File a",
    );
    let (all, _) = play("accept patience=600", "0 refused, 0 refused, 0 asks d, 60 doubted");
    let warned = told(&all, "waits").iter().map(|told| told.split(' ').next().unwrap()).collect::<Vec<_>>();
    assert_eq!(warned, ["5", "65", "65"], "refused before, then without evidence: {all:?}");
    assert_eq!(all.last().unwrap(), "600 Runtime Waiting");
}

/// Refusals, warnings and drawing time are counted per question.
#[test]
fn next_question_starts_from_scratch() {
    check(
        "b was never refused | accept | 0 refused, 0 refused, 0 asks a, 6 asks b, 10.5 done
            | 0 accept 1/20 a, 0 warning: not accepted, 5 accept 1/20 a, 5 warning: not accepted
            , 5 warning: waits for an answer, 5 notify 5, 10 accept 1/20 b, 10.5 File a
         S-155, one warning each | | 1 asks a, 2 asks b, 3 asks b, 4 done
            | 1 warning: waits for an answer, 1 notify 5, 2 warning: waits for an answer, 4 File a
         announced and not drawn | accept | 1 asks a, 5.5 asks ?, 7.5 done
            | 1 accept 1/20 a, 7 accept 2/20 ?, 7.5 File a",
    );
}

#[test]
fn accepts_between_two_refusals_are_no_bad_luck() {
    check(
        "no person is told | accept | 0 refused, 0 accepted, 0 refused, 0 asks a, 15.5 done
            | 0 accept 1/20 a, 0 warning: not accepted, 5 accept 1/20 a, 10 accept 2/20 a
            , 10 warning: not accepted, 15 accept 2/20 a, 15.5 File a",
    );
}

/// The time of a failed accept's key press is unknown, so the cooldown counts from the end of the accept.
#[test]
fn cooldown_counts_from_the_end_of_an_accept_that_failed() {
    let mut turn = turn("accept");
    let accepted = turn.handle(event("asks a"), at(0));
    assert!(matches!(accepted[..], [Effect::Accept { n: 1, .. }]), "{accepted:?}");
    turn.handle(Event::Accepted(Err(AcceptFailure::Failed("500".into()))), at(3_000));
    assert_eq!(turn.deadline(), Some(at(8_000)));
}

/// After two refusals a person is notified. The third attempt succeeds just before the wait for a person times out. It
/// is the twentieth accept; the question stays, and the next accept would exceed the limit.
#[test]
fn what_is_accepted_at_last_is_waited_for_no_longer() {
    let (all, _) = play("accept patience=65 accepts=19", "0 refused, 0 refused, 0 asks d");
    assert_eq!(told(&all, "Runtime"), ["70 Runtime Cap"], "{all:?}");
}

#[test]
fn a_question_is_waited_for_until_it_is_drawn() {
    check(
        "announced, then drawn  | accept | 0 asks ?, 0.9 asks d, 2 done | 0.9 accept 1/20 d, 2 File a
         never drawn            | accept | 0 asks ?, 2 done | 1.5 accept 1/20 ?, 2 File a
         of no known kind       | accept | 0 poses, 2 done | 1.5 accept 1/20 ?, 2 File a
         gone for longer than it takes to draw
            | accept | 0 asks d, 0.1 asks ?, 5.1 asks e, 6 done | 0 accept 1/20 d, 5 accept 2/20 ?, 6 File a",
    );
}

#[test]
fn what_is_no_plain_permission_is_for_a_person() {
    check(
        "question     | accept patience=600 | 0 poses question, 30 done
                      | 0 warning: waits for an answer, 0 notify 5, 30 File a
         plan         | accept patience=600 | 0 poses plan, 30 done
                      | 0 warning: waits for an answer, 0 notify 5, 30 File a
         startup      | accept patience=600 | 0 poses startup, 30 done
                      | 0 warning: waits for an answer, 0 notify 5, 30 File a
         no plain yes | accept patience=600 | 0 poses permission, 0.5 done
                      | 0 warning: waits for an answer, 0 notify 5, 0.5 File a
         at the cap too: nothing would be sent
                      | accept patience=600 accepts=20 | 0 poses plan, 0.5 done
                      | 0 warning: waits for an answer, 0 notify 5, 0.5 File a",
    );
    for kind in ["question", "plan", "startup"] {
        let (all, _) = play("accept patience=600", &format!("0 poses {kind}"));
        assert_eq!(all.last().unwrap(), "600 Runtime Waiting", "{kind}");
        assert!(told(&all, "accept ").is_empty(), "{kind}: {all:?}");
    }
}

#[test]
fn a_person_is_told_once_and_reminded_in_the_log() {
    let (all, _) = play("patience=600", "0 asks d");
    assert_eq!((told(&all, "waits").len(), told(&all, "notify 5").len()), (11, 1), "S-154: {all:?}");
    assert_eq!(all.last().unwrap(), "600 Runtime Waiting", "LOOP-44");
    check(
        "S-155                    |      | 0 asks d, 1 busy, 2 asks e, 3 done
                | 0 warning: waits for an answer, 0 notify 5, 2 warning: waits for an answer, 3 File a
         unknown ends no waiting  |      | 0 asks d, 1 unknown, 2 asks d, 3 done
                | 0 warning: waits for an answer, 0 notify 5, 3 File a
         resumed                  | told | 0 asks d, 0.1 done | 0 warning: waits for an answer, 0.1 File a",
    );
    // A person who answers one question after the other gets no warning about unanswered questions.
    assert_eq!(last("patience=600", "0 asks d0, 500 asks d1, 1000 asks d2, 1500 done"), "1500 File a");
}

#[test]
fn what_a_person_reads() {
    let said = said("", "0 asks 3f2a90d1c4e5b677, 0.1 done");
    for part in ["peer_programmer", "00c0ffee", "posse approve 00c0ffee --question 3f2a`", "AUTO_ACCEPT_PERMISSIONS"] {
        assert!(said[0].contains(part), "{said:?}");
    }
    let notices =
        turn("").handle(event("asks 3f2a90d1c4e5b677"), at(0)).into_iter().filter_map(|effect| match effect {
            Effect::Notify(notice) => Some((notice.title, notice.text)),
            _ => None,
        });
    let text = "peer_programmer (programmer_review, terminal 00c0ffee). `posse approve 00c0ffee --question 3f2a` or \
                `posse deny 00c0ffee --question 3f2a` answers.";
    let expected = ("posse: an agent waits for an answer".to_owned(), text.to_owned());
    assert_eq!(notices.collect::<Vec<_>>(), [expected], "LOOP-47: who and where, and never what is asked");
    let timeout = message("T=60", "0 asks 3f2a90d1c4e5b677");
    assert!(timeout.contains("waiting_user_answer") && timeout.contains("AUTO_ACCEPT_PERMISSIONS"), "S-128: {timeout}");
}

#[test]
fn time_goes_on_while_a_question_waits() {
    check(
        "S-128              | T=50       | 0 asks d
                            | 0 warning: waits for an answer, 0 notify 5, 50 Timeout TimedOut
         S-129, in cooldown | accept T=3 | 0 asks d | 0 accept 1/20 d, 3 Timeout TimedOut",
    );
    let flicker: Vec<String> = (0..900).map(|n| format!("{} asks d, {} idle", 2 * n, 2 * n + 1)).collect();
    let (all, _) = play("", &flicker.join(", "));
    assert_eq!((told(&all, "waits").len(), told(&all, "notify 5").len()), (900, 1), "S-120");
    assert_eq!(all.last().unwrap(), "1800 Runtime NoFile", "S-120: grace never completes");
    // After a suspend everything is due at once. A finished turn accepts nothing.
    let mut turn = turn("accept accepted=0");
    turn.handle(event("asks d"), at(1_000));
    let late = turn.handle(Event::Time, at(7_200_000));
    assert_eq!(late.iter().map(words).collect::<Vec<_>>(), ["Timeout TimedOut"]);
}

#[test]
fn a_failure_of_the_service_is_no_permission() {
    let error = "● API Error: 500 Internal server error\\n\\n Retry?\\n";
    let (all, _) = play("accept", &format!("0 busy, 0.01 shows waiting_user_answer {error}"));
    assert!(all.len() == 1 && all[0].starts_with("0.01 Runtime Api(Server("), "S-156: {all:?}");
    check("error comes first | accept | 0 asks ?, 0.1 error | 0.1 Runtime ErrorState");
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
