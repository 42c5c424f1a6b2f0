//! A small world for the tables: a script of what happens, and a driver that does what the turn wants.

use std::collections::VecDeque;

use super::*;
use crate::review_loop::config::Handoff;
pub(super) use crate::testing::at;
use crate::time::Mono;
use StatusKind::{Completed, Error, Idle, Processing, WaitingUserAnswer};

pub(super) fn who() -> TurnRecord {
    TurnRecord::new(1, Key::ProgrammerReview, TerminalId::from_random(0x00c0_ffee), 1, String::new(), Wall(0))
}

pub(super) fn turn_of(handoff: Handoff, record: &TurnRecord, accepted_at: Option<Mono>, now: Mono) -> Turn {
    let file = "/w/.tmp/agent-responses/programmer_review.md".to_owned();
    Turn::new(handoff, record, file, accepted_at, (now, Wall(0)))
}

/// As in the scenarios of the spec: G = 10 s, T = 1800 s, strict, no reminders, auto-accept off. Nobody loses patience with
/// a question, unless a test says so.
pub(super) fn rules() -> Handoff {
    Handoff { idle_grace_seconds: 10, waiting_timeout: 0, ..Handoff::default() }
}

pub(super) fn on() -> Handoff {
    Handoff { auto_accept_permissions: true, ..rules() }
}

/// What happens.
#[derive(Clone, Debug)]
pub(super) enum Do {
    Is(Seen),
    /// The file becomes this. The watcher sees it.
    File(Look),
    /// The same; the watcher is blind.
    Secretly(Look),
    /// The next looks at the file are answered only by `Happens`.
    Hang,
    Happens(Event),
    /// What becomes of the next accept, instead of success.
    NextAccept(Result<(), AcceptFailure>),
    /// What the last message is.
    LastOutput(Option<&'static str>),
}

pub(super) fn is(kind: StatusKind) -> Do {
    Do::Is(Seen { kind: Some(kind), epoch: 1, reason: format!("rule {kind}"), ..Seen::default() })
}

pub(super) fn idle() -> Do {
    is(Idle)
}

pub(super) fn completed() -> Do {
    is(Completed)
}

pub(super) fn busy() -> Do {
    is(Processing)
}

/// A status that follows a prompt and is no observation of the agent.
pub(super) fn unproven(kind: StatusKind) -> Do {
    Do::Is(Seen { kind: Some(kind), epoch: 2, unproven: true, ..Seen::default() })
}

pub(super) fn unknown() -> Do {
    Do::Is(Seen::default())
}

/// A status with these words on the screen.
pub(super) fn saying(kind: StatusKind, words: &str) -> Do {
    let waiting = (kind == WaitingUserAnswer).then_some(WaitingKind::Permission);
    Do::Is(Seen {
        kind: Some(kind),
        waiting,
        question: waiting.map(|_| "d".into()),
        plain_yes: true,
        reason: "rule box.error".into(),
        words: Some(words.into()),
        ..Seen::default()
    })
}

pub(super) fn error() -> Do {
    is(Error)
}

/// A permission with a plain yes, of this name. `None`: announced, not drawn.
pub(super) fn asks(question: Option<&str>) -> Do {
    let question = question.map(str::to_owned);
    let (waiting, plain_yes) = (Some(WaitingKind::Permission), question.is_some());
    Do::Is(Seen { kind: Some(WaitingUserAnswer), waiting, plain_yes, question, epoch: 3, ..Seen::default() })
}

pub(super) fn asks_other(kind: WaitingKind) -> Do {
    let question = Some("what?".into());
    Do::Is(Seen { kind: Some(WaitingUserAnswer), waiting: Some(kind), question, epoch: 4, ..Seen::default() })
}

pub(super) fn file(text: &str) -> Do {
    Do::File(Look::Ready(text.into()))
}

pub(super) fn refused() -> Do {
    Do::NextAccept(Err(AcceptFailure::Refused("409".into())))
}

/// The event of a status.
pub(super) fn status(what: Do) -> Event {
    let Do::Is(seen) = what else { panic!("{what:?} is no status") };
    Event::Status(seen)
}

/// A fresh turn.
pub(super) fn begun(rules: Handoff) -> Turn {
    turn_of(rules, &who(), None, at(0))
}

struct World {
    turn: Turn,
    file: Look,
    hangs: bool,
    accepts: VecDeque<Result<(), AcceptFailure>>,
    last_output: Option<String>,
    told: Vec<(u64, String)>,
    said: Vec<String>,
    errors: Vec<TurnError>,
}

impl World {
    fn feed(&mut self, event: Event, now: Mono) {
        let mut events = VecDeque::from([event]);
        while let Some(event) = events.pop_front() {
            let effects = self.turn.handle(event.clone(), now);
            let deadline = self.turn.deadline();
            assert!(deadline.is_none_or(|deadline| deadline > now), "{event:?} at {now:?}: the deadline is past");
            for effect in effects {
                let words = words(&effect);
                if !words.is_empty() {
                    self.told.push((now.0.as_millis() as u64, words));
                }
                match effect {
                    Effect::LookAtFile if !self.hangs => events.push_back(Event::File(self.file.clone())),
                    Effect::Accept { .. } => {
                        events.push_back(Event::Accepted(self.accepts.pop_front().unwrap_or(Ok(()))));
                    }
                    Effect::AskLastOutput => events.push_back(Event::LastOutput(self.last_output.clone())),
                    Effect::End(Err(error)) => self.errors.push(error),
                    Effect::Say(_, text) => self.said.push(text),
                    Effect::LookAtFile | Effect::Remind { .. } | Effect::Notify(_) | Effect::End(Ok(_)) => {}
                }
            }
        }
    }

    fn happen(&mut self, what: &Do, now: Mono) {
        match what.clone() {
            Do::Is(seen) => self.feed(Event::Status(seen), now),
            Do::File(look) => {
                self.file = look;
                self.feed(Event::FileStirred, now);
            }
            Do::Secretly(look) => self.file = look,
            Do::Hang => self.hangs = true,
            Do::Happens(event) => self.feed(event, now),
            Do::NextAccept(result) => self.accepts.push_back(result),
            Do::LastOutput(text) => self.last_output = text.map(str::to_owned),
        }
    }
}

/// Effects in a few words. Looks at the file are left out: when they are made is seen by what they find.
pub(super) fn words(effect: &Effect) -> String {
    match effect {
        Effect::LookAtFile => String::new(),
        Effect::Accept { n, cap, question, .. } => format!("accept {n}/{cap} {}", question.as_deref().unwrap_or("?")),
        Effect::AskLastOutput => "ask last output".into(),
        Effect::Remind { n } => format!("remind {n}"),
        Effect::Say(level, text) => {
            let what = [
                "never entered processing",
                "waits for an answer",
                "no effect",
                "not accepted",
                "failed",
                "cannot be read",
                "not a regular file",
                "something new",
                "no file",
            ];
            let level = if *level == Level::Warning { "warning" } else { "info" };
            format!("{level}: {}", what.iter().find(|what| text.contains(*what)).unwrap_or(&text.as_str()))
        }
        Effect::Notify(notice) => format!("notify {}", notice.priority),
        Effect::End(Ok(answer)) => format!("{:?} {}", answer.from, answer.text),
        Effect::End(Err(error)) => {
            format!("{} {:?}", if error.cause == Cause::TimedOut { "Timeout" } else { "Runtime" }, error.cause)
        }
    }
}

/// Plays a script, then lets time pass until the turn is over. Gives what was told, and the error.
pub(super) fn play(turn: Turn, script: &[(u64, Do)]) -> (Vec<(u64, String)>, Option<TurnError>) {
    let mut world = run(turn, script);
    (world.told, world.errors.pop())
}

fn run(turn: Turn, script: &[(u64, Do)]) -> World {
    let accepts = VecDeque::new();
    let (file, told, said, errors) = (Look::Absent, Vec::new(), Vec::new(), Vec::new());
    let mut world = World { turn, file, hangs: false, accepts, last_output: None, told, said, errors };
    let mut script = script.iter().peekable();
    while let Some(deadline) = world.turn.deadline() {
        match script.next_if(|(ms, _)| at(*ms) <= deadline) {
            Some((ms, what)) => world.happen(what, at(*ms)),
            None => world.feed(Event::Time, deadline),
        }
    }
    world
}

#[track_caller]
pub(super) fn check_turn(scenario: &str, turn: Turn, script: &[(u64, Do)], expected: &[(u64, &str)]) {
    let (told, _) = play(turn, script);
    let told: Vec<_> = told.iter().map(|(ms, words)| (*ms, words.as_str())).collect();
    assert_eq!(told, expected, "{scenario}");
}

/// What is told of a fresh turn.
#[track_caller]
pub(super) fn check(scenario: &str, rules: Handoff, script: &[(u64, Do)], expected: &[(u64, &str)]) {
    check_turn(scenario, begun(rules), script, expected);
}

/// The message with which a fresh turn fails.
pub(super) fn message(rules: Handoff, script: &[(u64, Do)]) -> String {
    let (told, error) = play(begun(rules), script);
    error.unwrap_or_else(|| panic!("it did not fail: {told:?}")).message
}

/// Everything a fresh turn has to say for the log.
pub(super) fn said(rules: Handoff, script: &[(u64, Do)]) -> Vec<String> {
    run(begun(rules), script).said
}
