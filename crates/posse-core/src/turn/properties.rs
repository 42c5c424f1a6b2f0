//! Properties that hold for all events in any order, whether or not the driver answers.

use std::time::Duration;

use proptest::prelude::*;

use super::testing::{at, turn_of, who};
use super::*;
use crate::permission::{CAP, COOLDOWN};
use crate::review_loop::config::Handoff;
use crate::time::Mono;

/// Time from a turn's timeout to its last wait: two reads of five seconds, and the strict comparisons.
const AFTER_T: Duration = Duration::from_millis(10_001);

fn status() -> impl Strategy<Value = Event> {
    let kind = prop_oneof![
        1 => Just(None),
        4 => prop::sample::select(StatusKind::ALL.to_vec()).prop_filter("ends all", |k| *k != StatusKind::Error).prop_map(Some),
        3 => Just(Some(StatusKind::WaitingUserAnswer)),
    ];
    let waiting = prop::sample::select(vec![
        None,
        Some(WaitingKind::Permission),
        Some(WaitingKind::Permission),
        Some(WaitingKind::Question),
        Some(WaitingKind::Startup),
    ]);
    let question = prop::sample::select(vec![None, Some("d"), Some("e")]);
    let parts = (kind, waiting, question, any::<bool>(), 0..3u64);
    parts.prop_map(|(kind, waiting, question, plain_yes, epoch)| {
        let question = question.map(str::to_owned);
        Event::Status(Seen { kind, waiting, question, plain_yes, epoch, ..Seen::default() })
    })
}

fn event() -> impl Strategy<Value = Event> {
    let looks = vec![
        Look::Absent,
        Look::Blank,
        Look::NotRegular,
        Look::Unreadable("no".into()),
        Look::Unsettled,
        Look::Unsettled,
        Look::Ready(" ".into()),
    ];
    let accepted = vec![
        Ok(()),
        Ok(()),
        Err(AcceptFailure::Refused("409".into())),
        Err(AcceptFailure::Refused("409".into())),
        Err(AcceptFailure::Failed("500".into())),
    ];
    prop_oneof![
        12 => status(),
        1 => Just(Event::MessageChanged),
        3 => Just(Event::FileStirred),
        8 => prop::sample::select(looks).prop_map(Event::File),
        8 => prop::sample::select(accepted).prop_map(Event::Accepted),
        1 => Just(Event::NotReminded("no".into())),
        1 => Just(Event::LastOutput(Some("said".into()))),
        // These events end the turn. They are rare, so that most turns run long.
        1 => prop::sample::select(vec![
            Event::File(Look::Ready("answer".into())),
            Event::Gone("404".into()),
            Event::Accepted(Err(AcceptFailure::Gone("404".into()))),
            Event::Status(Seen { kind: Some(StatusKind::Error), ..Seen::default() }),
        ]),
    ]
}

fn some_rules() -> impl Strategy<Value = Handoff> {
    let patience = 0..90u32;
    (0..40u32, 1..400u32, any::<bool>(), 0..3u32, prop::bool::weighted(0.8), patience).prop_map(
        |(grace, timeout, strict, reminders, accept, waiting_timeout)| Handoff {
            idle_grace_seconds: grace,
            response_timeout: timeout,
            strict_file_handoff: strict,
            max_file_reminders: reminders,
            auto_accept_permissions: accept,
            auto_accept_configured: None,
            waiting_timeout,
        },
    )
}

/// Events with their delay in milliseconds after the previous one. Half of them have no delay.
fn events() -> impl Strategy<Value = Vec<(u64, Event)>> {
    let pause = prop_oneof![Just(0), 0..200u64, 0..20_000u64];
    prop::collection::vec((pause, event()), 0..120)
}

/// Returns every effect of the turn with its time. `Time` is sent at every deadline, and also at `extra`.
fn run(rules: Handoff, events: &[(u64, Event)], extra: &[u64]) -> (Vec<(Mono, Effect)>, Turn) {
    let mut turn = turn_of(rules, &who(), None, at(0));
    let mut all: Vec<(Mono, Event)> = Vec::new();
    let mut ms = 0;
    for (pause, event) in events {
        ms += pause;
        all.push((at(ms), event.clone()));
    }
    all.extend(extra.iter().map(|ms| (at(*ms), Event::Time)));
    // The stable sort keeps the order of simultaneous events and puts an extra `Time` last.
    all.sort_by_key(|(when, _)| *when);
    let mut all = all.into_iter().peekable();
    let (mut wanted, mut quiet, mut looking) = (Vec::new(), false, false);
    for _ in 0..20_000 {
        let deadline = turn.deadline();
        let next = all.next_if(|(when, _)| deadline.is_none_or(|deadline| *when < deadline));
        let Some((now, event)) = next.or_else(|| deadline.map(|deadline| (deadline, Event::Time))) else {
            return (wanted, turn);
        };
        match &event {
            Event::Status(seen) => quiet = matches!(seen.kind, Some(StatusKind::Idle | StatusKind::Completed)),
            Event::File(_) => looking = false,
            _ => {}
        }
        for effect in turn.handle(event, now) {
            match effect {
                // The file is read only while the terminal is quiet, and at most one read is pending.
                Effect::LookAtFile => assert!(quiet && !std::mem::replace(&mut looking, true), "{turn:?}"),
                Effect::End(Ok(Answer { from: AnswerFrom::File, .. })) => assert!(quiet, "{turn:?}"),
                _ => {}
            }
            wanted.push((now, effect));
        }
        assert!(turn.deadline().is_none_or(|deadline| deadline > now), "the deadline is past: {turn:?}");
    }
    panic!("it never ends: {turn:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_turn_ends_once_and_in_time_and_accepts_are_few_and_far_between(rules in some_rules(), events in events()) {
        let (wanted, turn) = run(rules, &events, &[]);
        let ends = wanted.iter().filter(|(_, effect)| matches!(effect, Effect::End(_))).count();
        prop_assert_eq!(ends, 1);
        let Some((when, Effect::End(result))) = wanted.last() else { panic!("something comes after the end") };
        prop_assert!(*when <= Mono(rules.timeout() + AFTER_T), "{:?} after {:?}", when, rules.timeout());
        prop_assert_eq!(turn.deadline(), None);
        if let Ok(answer) = result {
            prop_assert!(!answer.text.trim().is_empty());
            prop_assert!(answer.from == AnswerFrom::File || !rules.strict_file_handoff);
        }
        let accepts = wanted.iter().filter_map(|(when, effect)| match effect {
            Effect::Accept { n, .. } => Some((*when, *n)),
            _ => None,
        });
        let accepts: Vec<(Mono, u32)> = accepts.collect();
        prop_assert!(rules.auto_accept_permissions || accepts.is_empty());
        prop_assert!(turn.accepts() <= CAP && accepts.iter().all(|(_, n)| (1..=CAP).contains(n)));
        prop_assert!(accepts.windows(2).all(|two| two[1].0 >= two[0].0 + COOLDOWN));
    }

    /// `deadline` names every instant with an effect: additional `Time` events change nothing.
    #[test]
    fn nothing_depends_on_being_asked(rules in some_rules(), events in events(), extra in prop::collection::vec(0..400_000u64, 0..60)) {
        let (punctual, _) = run(rules, &events, &[]);
        let (nagged, _) = run(rules, &events, &extra);
        prop_assert_eq!(punctual, nagged);
    }
}
