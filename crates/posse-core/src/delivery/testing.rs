//! Screens and scripts for the tests of both machines.

use std::fmt::Debug;

use super::{Effect, Event, KeyId, Seen};
use crate::detect::dialog::{Choosable, Dialog, Meaning};
use crate::detect::{Evidence, Reading, Strength};
use crate::status::{Claim, Status, StatusKind, WaitingKind};
pub(super) use crate::testing::at;
use crate::time::{Mono, Wall};

/// A screen, and the beliefs about it.
#[derive(Clone, Debug)]
pub(super) struct Screen {
    pub(super) reading: Reading,
    pub(super) status: Status,
    pub(super) about_to_ask: bool,
    pub(super) echo: Option<String>,
    pub(super) cursor_row: Option<String>,
    pub(super) plain: bool,
    pub(super) printed: u64,
}

impl Screen {
    pub(super) fn seen(&self) -> Seen<'_> {
        Seen {
            reading: &self.reading,
            status: &self.status,
            about_to_ask: self.about_to_ask,
            echo: self.echo.as_deref(),
            cursor_row: self.cursor_row.as_deref(),
            plain: self.plain,
            printed: self.printed,
        }
    }

    pub(super) fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }
}

fn screen(status: StatusKind, draft: Option<&str>, dialog: Option<Dialog>) -> Screen {
    let waiting_kind = dialog.as_ref().map(|dialog| dialog.kind);
    let evidence = Some(Evidence { row: Some(3), text: "here".into() });
    let (strength, draft) = (Strength::Layout, draft.map(str::to_owned));
    let reading =
        Reading { status: Some(status), waiting_kind, strength, evidence, dialog, draft, ..Reading::default() };
    let status = Status { waiting_kind, epoch: 7, ..Status::new(status, "test", Wall(0)) };
    Screen { reading, status, about_to_ask: false, echo: None, cursor_row: None, plain: false, printed: 0 }
}

/// Returns a quiet agent with this draft.
pub(super) fn quiet(draft: &str) -> Screen {
    screen(StatusKind::Completed, Some(draft), None)
}

pub(super) fn busy(draft: &str) -> Screen {
    screen(StatusKind::Processing, Some(draft), None)
}

/// Returns a question. Options are `label` or `label|key`, with `>` before the one under the cursor.
pub(super) fn asking(id: &str, kind: WaitingKind, options: &[&str]) -> Screen {
    let option = |text: &&str| {
        let (text, selected) = text.strip_prefix('>').map_or((*text, false), |text| (text, true));
        let (label, key) = text.split_once('|').map_or((text, None), |(label, key)| (label, Some(key.to_owned())));
        let meaning = match label {
            "Yes" => Meaning::Accept,
            "No" => Meaning::Deny,
            _ if label.contains("always") => Meaning::Widen,
            _ => Meaning::Other,
        };
        Choosable { label: label.to_owned(), meaning, key, selected, ..Choosable::default() }
    };
    let dialog = Dialog {
        id: id.to_owned(),
        kind,
        title: "title".into(),
        question: "question".into(),
        options: options.iter().map(option).collect(),
        ..Dialog::default()
    };
    screen(StatusKind::WaitingUserAnswer, None, Some(dialog))
}

pub(super) fn permission() -> Screen {
    asking("d", WaitingKind::Permission, &[">Yes|1", "No|2"])
}

/// Returns a question that is only text, with the row of the cursor.
pub(super) fn asking_in_text(row: &str) -> Screen {
    screen(StatusKind::WaitingUserAnswer, None, None).with(|screen| {
        screen.reading.waiting_kind = Some(WaitingKind::Permission);
        screen.reading.evidence = Some(Evidence { row: Some(3), text: row.into() });
        screen.cursor_row = Some(row.into());
    })
}

#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant)]
pub(super) enum Ev {
    Read(Screen),
    Typed(u64),
    Failed(u64),
    Said(Claim),
    Time,
    Gone,
}

impl Ev {
    pub(super) fn event(&self) -> Event<'_> {
        match self {
            Ev::Read(screen) => Event::Read(screen.seen()),
            Ev::Typed(id) => Event::Typed(KeyId(*id)),
            Ev::Failed(id) => Event::TypingFailed(KeyId(*id)),
            Ev::Said(claim) => Event::Said(claim),
            Ev::Time => Event::Time,
            Ev::Gone => Event::Gone,
        }
    }
}

/// Parses the name of an event. `[TEXT]` is a quiet agent with this draft.
pub(super) fn event(name: &str) -> Ev {
    let draft = |name: &str| name.strip_prefix('[')?.strip_suffix(']').map(str::to_owned);
    match name.split_once(' ').unwrap_or((name, "")) {
        ("typed", id) => Ev::Typed(id.parse().unwrap()),
        ("failed", id) => Ev::Failed(id.parse().unwrap()),
        ("working", "") => Ev::Said(Claim::Working),
        ("asking", "") => Ev::Said(Claim::Asking(None)),
        ("time", "") => Ev::Time,
        ("gone", "") => Ev::Gone,
        ("asks", "") => Ev::Read(permission()),
        ("busy", rest) => Ev::Read(busy(&draft(rest).unwrap())),
        _ => Ev::Read(quiet(&draft(name).unwrap_or_else(|| panic!("there is no event {name:?}")))),
    }
}

/// Plays a script: steps `MILLISECOND EVENT > EFFECTS`, separated by `;`. Without `>` no effect is expected. `handle`
/// returns the effects as text, and the next deadline.
pub(super) fn play(
    script: &str,
    named: &[(&str, Ev)],
    mut handle: impl FnMut(Event<'_>, Mono) -> (String, Option<Mono>),
) {
    for step in script.split(';').map(str::trim) {
        let (told, expected) = step.split_once(" > ").unwrap_or((step, ""));
        let (ms, name) = told.split_once(' ').unwrap();
        let now = at(ms.parse().unwrap());
        let named = named.iter().find(|(known, _)| *known == name).map(|(_, event)| event.clone());
        let (effects, deadline) = handle(named.unwrap_or_else(|| event(name)).event(), now);
        assert_eq!(effects, expected, "{step}, in {script}");
        assert!(deadline.is_none_or(|deadline| deadline > now), "the deadline is past: {step}, in {script}");
    }
}

/// Formats effects in one line.
pub(super) fn words<T: Debug>(effects: &[Effect<T>]) -> String {
    let word = |effect: &Effect<T>| match effect {
        Effect::Type { bytes, .. } => typed(bytes),
        Effect::Look => "look".into(),
        Effect::Over(outcome) => {
            let outcome = format!("{outcome:?}");
            let inside =
                outcome.split_once(": ").map_or("done", |(_, inside)| inside).trim_end_matches([' ', '}', ')']);
            inside.replace(", left: ", " ").replace(", presses: ", " ")
        }
    };
    effects.iter().map(word).collect::<Vec<_>>().join(", ")
}

fn typed(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    match text.strip_prefix("\x1b[200~").and_then(|rest| rest.split_once("\x1b[201~")) {
        Some((pasted, "")) => format!("paste {pasted}"),
        Some((pasted, key)) => format!("paste {pasted} {}", crate::keys::name(key.as_bytes())),
        None if bytes == b"\x15\x7f" => "clear".into(),
        None => crate::keys::name(bytes),
    }
}
