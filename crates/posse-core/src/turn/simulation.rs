//! The turn against the spec: the same days, once lived event by event, once polled every 50 ms by the letter of the spec.
//!
//! Both must come to the same end, accept and remind and warn as often, and at the same times but for the delay of polling.
//! Days on which something changes in the very moment of a decision are left out: there the poll may see it and the event
//! may not.

mod polled;

use super::testing::{turn_of, who, words};
use super::*;
use crate::rounds::config::Handoff;
use crate::testing::{Dice, at};
use polled::polled;

const DAYS: u64 = 4_000;
/// A poll until a change is seen, and one for each time that counts from there: guard and grace, for the prompt and for two
/// reminders. One more for what a poll does only at the next one.
const LATE: u64 = 8 * 50;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Status(Option<StatusKind>),
    /// The file is there with this text, or is not.
    File(Option<&'static str>),
    /// The agent's last message is another one.
    Message,
}

#[derive(Debug)]
struct Day {
    rules: Handoff,
    changes: Vec<(u64, Change)>,
}

/// What was done, and when, in milliseconds.
#[derive(Debug, Default)]
struct Report {
    accepts: Vec<u64>,
    reminders: Vec<u64>,
    warnings: Vec<u64>,
    end: (u64, String),
}

fn day(seed: u64) -> Day {
    use StatusKind::{Completed, Error, Idle, Processing, WaitingUserAnswer};
    let mut dice = Dice(seed);
    let rules = Handoff {
        idle_grace_seconds: dice.one_of(&[0, 1, 3, 10]),
        response_timeout: dice.one_of(&[1, 8, 60, 300]),
        strict_file_handoff: dice.one_of(&[true, true, false]),
        max_file_reminders: dice.one_of(&[0, 0, 1, 2]),
        auto_accept_permissions: dice.one_of(&[true, false]),
        auto_accept_configured: None,
        waiting_timeout: 0,
    };
    let (mut ms, mut quiet, mut changes) = (0, false, Vec::new());
    // Some agents do little else than ask.
    let asker = dice.one_of(&[true, false, false]);
    while ms < 310_000 {
        let change = match dice.next() % 20 {
            0 => Change::File(Some(dice.one_of(&["one", "two"]))),
            1 => Change::File(dice.one_of(&[None, Some(" \n")])),
            2 if quiet => Change::Message,
            3 => Change::Status(None),
            4 => Change::Status(Some(dice.one_of(&[Error, Idle, Idle, Idle, Idle, Idle]))),
            _ if asker => Change::Status(Some(dice.one_of(&[WaitingUserAnswer, WaitingUserAnswer, Processing]))),
            _ => Change::Status(Some(dice.one_of(&[Idle, Completed, Processing, Processing, WaitingUserAnswer]))),
        };
        if let Change::Status(kind) = change {
            quiet = matches!(kind, Some(Idle | Completed));
        }
        changes.push((ms, change));
        // Polls see what lasts for longer than they are late.
        let pause = dice.one_of(&[200, 1_500, 4_000, 12_000, 70_000]);
        ms += LATE + 50 + dice.next() % pause;
    }
    Day { rules, changes }
}

/// The day as the turn lives it.
fn lived(day: &Day) -> Report {
    let mut turn = turn_of(day.rules, &who(), None, at(0));
    let mut report = Report::default();
    let mut file = None;
    let mut changes = day.changes.iter().peekable();
    while let Some(deadline) = turn.deadline() {
        let (now, event) = match changes.next_if(|(ms, _)| at(*ms) < deadline) {
            Some((ms, Change::Status(kind))) => {
                let waiting = (*kind == Some(StatusKind::WaitingUserAnswer)).then_some(WaitingKind::Permission);
                let question = waiting.map(|_| "d".to_owned());
                let seen = Seen { kind: *kind, waiting, question, plain_yes: true, ..Seen::default() };
                (at(*ms), Event::Status(seen))
            }
            Some((ms, Change::File(text))) => {
                file = *text;
                (at(*ms), Event::FileStirred)
            }
            Some((ms, Change::Message)) => (at(*ms), Event::MessageChanged),
            None => (deadline, Event::Time),
        };
        let ms = now.0.as_millis() as u64;
        let mut events = vec![event];
        while let Some(event) = events.pop() {
            for effect in turn.handle(event, now) {
                match &effect {
                    Effect::LookAtFile => {
                        events.push(Event::File(file.map_or(Look::Absent, |text| Look::at(text.as_bytes()).0)));
                    }
                    Effect::Accept { .. } => {
                        report.accepts.push(ms);
                        events.push(Event::Accepted(Ok(())));
                    }
                    Effect::AskLastOutput => events.push(Event::LastOutput(Some("said".into()))),
                    Effect::Remind { .. } => report.reminders.push(ms),
                    Effect::Say(Level::Warning, text)
                        if text.contains("waits for an answer") || text.contains("never entered") =>
                    {
                        report.warnings.push(ms);
                    }
                    Effect::End(_) => report.end = (ms, words(&effect)),
                    Effect::Say(..) | Effect::Notify(_) => {}
                }
            }
        }
    }
    report
}

fn same(lived: &[u64], polled: &[u64]) -> bool {
    let late = |(lived, polled): (&u64, &u64)| (*lived..=lived + LATE).contains(polled);
    lived.len() == polled.len() && lived.iter().zip(polled).all(late)
}

#[test]
fn events_and_polls_come_to_the_same_end() {
    let mut ends = std::collections::BTreeMap::<String, u32>::new();
    let mut compared = 0;
    for seed in 0..DAYS {
        let day = day(seed);
        let lived = lived(&day);
        let decisions = [&lived.accepts[..], &lived.reminders, &lived.warnings, &[lived.end.0]].concat();
        let up = day.rules.timeout().as_millis() as u64;
        let changes = day.changes.iter().map(|(ms, _)| *ms).chain([up]);
        let tie = |ms: &u64| changes.clone().any(|change| change > *ms && change <= ms + LATE);
        if decisions.iter().any(tie) {
            continue;
        }
        compared += 1;
        let polled = polled(&day);
        let agree = same(&lived.accepts, &polled.accepts)
            && same(&lived.reminders, &polled.reminders)
            && same(&lived.warnings, &polled.warnings)
            && same(&[lived.end.0], &[polled.end.0])
            && lived.end.1 == polled.end.1;
        assert!(agree, "seed {seed}:\nlived  {lived:?}\npolled {polled:?}\n{day:?}");
        *ends.entry(lived.end.1).or_default() += 1;
    }
    // A simulation in which nothing happens proves nothing.
    assert!(compared > DAYS * 3 / 4, "only {compared} days could be compared");
    for end in [
        "File one",
        "File two",
        "LastOutput said",
        "Runtime NoFile",
        "Runtime ErrorState",
        "Runtime Cap",
        "Timeout TimedOut",
    ] {
        assert!(ends.get(end).is_some_and(|days| *days >= 10), "{end}: {ends:?}");
    }
}
