//! No look at all: lines of text and a `> ` to type behind.

use super::{Input, Live, View};
use crate::rows::{Row, Style, wrap};
use crate::scenario::{AskKind, Failure};
use crate::transcript::Entry;

pub(super) fn entry(entry: &Entry, width: usize) -> Vec<Row> {
    let line = |text: &str| wrap(text, "", "", Style::Plain, width);
    match entry {
        Entry::Splash(text) | Entry::Answer(text) | Entry::Closing(text) => line(text),
        Entry::User(text) => line(&format!("> {text}")),
        Entry::Tool { name, input, output } => line(&format!("[{name}] {input}\n{output}")),
        Entry::Approved { .. } => Vec::new(),
        Entry::Refused { command, .. } => line(&format!("refused: {command}")),
        Entry::Answered { question, answer } => line(&format!("{question} {answer}")),
        Entry::Declined { question } => line(&format!("declined: {question}")),
        Entry::Error(text) | Entry::Notice(text) => line(&format!("error: {text}")),
        Entry::Interrupted => line("interrupted"),
    }
}

pub(super) fn live(view: &View) -> Live {
    let width = view.size.columns;
    let mut live = Live::default();
    if let Some(text) = view.partial {
        live.upper.extend(wrap(text, "", "", Style::Plain, width));
    }
    if let Some((name, input)) = view.tool {
        live.upper.extend(wrap(&format!("[{name}] {input}"), "", "", Style::Plain, width));
    }
    if let Some(dialog) = &view.dialog {
        let ask = dialog.ask;
        for text in [&ask.title, &ask.command, &ask.detail].into_iter().flatten() {
            live.text(text, "", Style::Plain, width);
        }
        live.text(ask.text.as_deref().unwrap_or("Go on?"), "", Style::Plain, width);
        live.options(dialog, "> ", "  ", width);
        if let Some(footer) = &ask.footer {
            live.text(footer, "", Style::Plain, width);
        }
    } else if let Input::Draft(draft) = view.input {
        live.lower.extend(view.queue.iter().map(|message| Row::cut(&format!("({message})"), Style::Plain, width)));
        if let Some(hint) = view.hint {
            live.lower.push(Row::cut(hint, Style::Plain, width));
        }
        if !view.busy || !draft.is_empty() {
            live.input("> ", draft, "", view);
        }
    }
    live
}

pub(super) fn labels(kind: AskKind) -> &'static [&'static str] {
    match kind {
        AskKind::Permission | AskKind::Plan => &["Yes", "Always", "No"],
        AskKind::Startup => &["Yes", "No"],
        AskKind::Question => &[],
    }
}

pub(super) fn failure(failure: Failure) -> &'static str {
    match failure {
        Failure::Internal => "500",
        Failure::Overloaded => "529",
        Failure::Unauthorized => "401",
        Failure::UsageLimit => "usage limit",
        Failure::Dropped => "connection lost",
    }
}
