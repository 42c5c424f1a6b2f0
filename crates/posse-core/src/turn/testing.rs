//! A small simulator for the tables: a script of events, and a driver that executes the turn's effects.
//!
//! A row of a table is `scenario | settings | events | effects`. Each event and each effect begins with its second.
//! Unnamed settings are those of the spec's scenarios: G = 10 s, T = 1800 s, strict, no reminders, auto-accept off,
//! unlimited time for questions. A line that begins with `|` or `,` continues a row.

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

/// Creates a turn with these settings.
pub(super) fn turn(settings: &str) -> Turn {
    let mut handoff = Handoff { idle_grace_seconds: 10, waiting_timeout: 0, ..Handoff::default() };
    let (mut record, mut accepted_at, mut begun) = (who(), None, at(0));
    for setting in settings.split_whitespace() {
        let (name, value) = setting.split_once('=').unwrap_or((setting, ""));
        let number = || value.parse().unwrap();
        match name {
            "accept" => handoff.auto_accept_permissions = true,
            "lenient" => handoff.strict_file_handoff = false,
            "G" => handoff.idle_grace_seconds = number(),
            "T" => handoff.response_timeout = number(),
            "reminders" => handoff.max_file_reminders = number(),
            "patience" => handoff.waiting_timeout = number(),
            // The turn's state at the beginning or when it is resumed.
            "begun" => begun = at(milliseconds(value)),
            "accepted" => accepted_at = Some(at(milliseconds(value))),
            "accepts" => record.accepts = number(),
            "reminded" => record.reminders = number(),
            "told" => record.human_told = true,
            "sent_before" => record.sent = Some(Wall(-1000 * i64::from(number()))),
            _ => panic!("{setting:?} is no setting"),
        }
    }
    turn_of(handoff, &record, accepted_at, begun)
}

fn milliseconds(seconds: &str) -> u64 {
    (seconds.parse::<f64>().unwrap() * 1000.0).round() as u64
}

/// A step of a script.
#[derive(Clone, Debug)]
enum Do {
    Event(Event),
    /// Replaces the file. The watcher reports it, or misses it.
    File(Look, bool),
    /// Later reads of the file are answered only by `look`.
    Hang,
    /// The result of the next accept, instead of success.
    NextAccept(Result<(), AcceptFailure>),
    /// Sets the last message.
    LastOutput(Option<String>),
}

fn is(kind: StatusKind) -> Seen {
    Seen { kind: Some(kind), epoch: 1, reason: format!("rule {kind}"), ..Seen::default() }
}

/// Parses one step of a script, without its time.
fn parse(step: &str) -> Vec<Do> {
    let (word, rest) = step.split_once(' ').unwrap_or((step, ""));
    let text = || rest.replace("\\n", "\n");
    let waits = |kind, question: Option<&str>, epoch| Seen {
        kind: Some(WaitingUserAnswer),
        waiting: kind,
        question: question.map(str::to_owned),
        plain_yes: kind == Some(WaitingKind::Permission) && question.is_some(),
        epoch,
        ..Seen::default()
    };
    let one = match word {
        "unknown" => Do::Event(Event::Status(Seen::default())),
        "idle" => Do::Event(Event::Status(is(Idle))),
        "completed" => Do::Event(Event::Status(is(Completed))),
        "busy" => Do::Event(Event::Status(is(Processing))),
        "error" => Do::Event(Event::Status(is(Error))),
        // A status that follows a prompt and does not observe the agent.
        "unproven" => {
            let kind = rest.parse().unwrap();
            Do::Event(Event::Status(Seen { kind: Some(kind), epoch: 2, unproven: true, ..Seen::default() }))
        }
        // A permission with a plain yes and this name; `?` is announced, but not drawn.
        "asks" => Do::Event(Event::Status(waits(Some(WaitingKind::Permission), Some(rest).filter(|d| *d != "?"), 3))),
        // A question without a plain yes, or of an unknown kind.
        "poses" => {
            let question = (!rest.is_empty()).then_some("what?");
            Do::Event(Event::Status(Seen { plain_yes: false, ..waits(rest.parse().ok(), question, 4) }))
        }
        // A status with this text on the screen.
        "shows" => {
            let (kind, words) = rest.split_once(' ').unwrap();
            let (kind, words) = (kind.parse().unwrap(), Some(words.replace("\\n", "\n")));
            let waiting = (kind == WaitingUserAnswer).then_some(WaitingKind::Permission);
            let seen = waits(waiting, waiting.map(|_| "d"), 0);
            Do::Event(Event::Status(Seen { kind: Some(kind), reason: "rule box.error".into(), words, ..seen }))
        }
        "gone" => Do::Event(Event::Gone(text())),
        "stirred" => Do::Event(Event::FileStirred),
        "message" => Do::Event(Event::MessageChanged),
        "look" => Do::Event(Event::File(if rest.is_empty() { Look::Absent } else { Look::Ready(text()) })),
        "hang" => Do::Hang,
        "file" => Do::File(Look::Ready(text()), true),
        "blank" => Do::File(Look::Blank, true),
        "growing" => Do::File(Look::Unsettled, true),
        "directory" => Do::File(Look::NotRegular, true),
        "unreadable" => Do::File(Look::Unreadable("permission denied".into()), true),
        "unseen" => Do::File(Look::Ready(text()), false),
        "accepted" => Do::NextAccept(Ok(())),
        "refused" => Do::NextAccept(Err(AcceptFailure::Refused("409".into()))),
        "doubted" => Do::NextAccept(Err(AcceptFailure::Unproven("the report differs".into()))),
        "failed" => Do::NextAccept(Err(AcceptFailure::Failed("500".into()))),
        "lost" => Do::NextAccept(Err(AcceptFailure::Gone("404".into()))),
        "says" => Do::LastOutput(Some(text())),
        // Completes a turn after its questions.
        "done" => return ["busy", "file a", "idle"].into_iter().flat_map(parse).collect(),
        _ => panic!("{step:?} is no step"),
    };
    vec![one]
}

/// Returns the event of a step.
pub(super) fn event(step: &str) -> Event {
    match parse(step).pop() {
        Some(Do::Event(event)) => event,
        other => panic!("{other:?} is no event"),
    }
}

struct World {
    turn: Turn,
    file: Look,
    hangs: bool,
    accepts: VecDeque<Result<(), AcceptFailure>>,
    last_output: Option<String>,
    told: Vec<String>,
    said: Vec<String>,
    error: Option<TurnError>,
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
                    self.told.push(format!("{} {words}", now.0.as_millis() as f64 / 1000.0));
                }
                match effect {
                    Effect::LookAtFile if !self.hangs => events.push_back(Event::File(self.file.clone())),
                    Effect::Accept { .. } => {
                        events.push_back(Event::Accepted(self.accepts.pop_front().unwrap_or(Ok(()))));
                    }
                    Effect::AskLastOutput => events.push_back(Event::LastOutput(self.last_output.clone())),
                    Effect::End(Err(error)) => self.error = Some(error),
                    Effect::Say(_, text) => self.said.push(text),
                    Effect::LookAtFile | Effect::Remind { .. } | Effect::Notify(_) | Effect::End(Ok(_)) => {}
                }
            }
        }
    }

    fn happen(&mut self, what: Do, now: Mono) {
        match what {
            Do::Event(event) => self.feed(event, now),
            Do::File(look, is_seen) => {
                self.file = look;
                if is_seen {
                    self.feed(Event::FileStirred, now);
                }
            }
            Do::Hang => self.hangs = true,
            Do::NextAccept(result) => self.accepts.push_back(result),
            Do::LastOutput(text) => self.last_output = text,
        }
    }
}

/// Renders effects in a few words. Reads of the file are left out, because their results show when they happen.
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
            let what = what.iter().find(|what| text.contains(*what)).unwrap_or(&text.as_str()).to_string();
            if *level == Level::Warning { format!("warning: {what}") } else { format!("info: {what}") }
        }
        Effect::Notify(notice) => format!("notify {}", notice.priority),
        Effect::End(Ok(answer)) => format!("{:?} {}", answer.from, answer.text),
        Effect::End(Err(error)) => {
            format!("{} {:?}", if error.cause == Cause::TimedOut { "Timeout" } else { "Runtime" }, error.cause)
        }
    }
}

/// Plays a script, then advances time until the turn is over.
fn run(turn: Turn, script: &str) -> World {
    let accepts = VecDeque::new();
    let (file, told, said) = (Look::Absent, Vec::new(), Vec::new());
    let mut world = World { turn, file, hangs: false, accepts, last_output: None, told, said, error: None };
    let steps = script.split(", ").filter(|step| !step.is_empty()).flat_map(|step| {
        let (second, step) = step.split_once(' ').unwrap();
        let now = at(milliseconds(second));
        parse(step).into_iter().map(move |what| (now, what))
    });
    let mut steps = steps.peekable();
    while let Some(deadline) = world.turn.deadline() {
        match steps.next_if(|(now, _)| *now <= deadline) {
            Some((now, what)) => world.happen(what, now),
            None => world.feed(Event::Time, deadline),
        }
    }
    world
}

/// Returns the rendered effects and the error.
pub(super) fn play(settings: &str, script: &str) -> (Vec<String>, Option<TurnError>) {
    let world = run(turn(settings), script);
    (world.told, world.error)
}

/// Plays every row of a table.
#[track_caller]
pub(super) fn check(table: &str) {
    let mut rows: Vec<String> = Vec::new();
    for line in table.lines().map(str::trim).filter(|line| !line.is_empty()) {
        match rows.last_mut().filter(|_| line.starts_with(['|', ','])) {
            Some(row) => *row += line,
            None => rows.push(line.to_owned()),
        }
    }
    for row in rows {
        let columns: Vec<&str> = row.split('|').map(str::trim).collect();
        let [scenario, settings, script, expected] = columns[..] else { panic!("{row}") };
        assert_eq!(play(settings, script).0.join(", "), expected, "{scenario}");
    }
}

/// Returns the message with which a turn fails.
pub(super) fn message(settings: &str, script: &str) -> String {
    let (told, error) = play(settings, script);
    error.unwrap_or_else(|| panic!("it did not fail: {told:?}")).message
}

/// Returns all log messages of a turn.
pub(super) fn said(settings: &str, script: &str) -> Vec<String> {
    run(turn(settings), script).said
}
