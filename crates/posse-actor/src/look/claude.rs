//! Claude Code, versions 2.1.197 to 2.1.325 as measured. Two things tell its rows apart and are kept with
//! care: the no-break space after the prompt of the input box (echoes and dialogs have a plain one), and
//! that everything the agent says is indented or begins with a bullet.

use std::time::Duration;

use super::{DialogView, Input, Live, Look, Mood, Spinner, SpinnerText, View};
use crate::rows::{Row, Style, wrap};
use crate::scenario::{AskKind, BusyTitle, Failure};
use crate::transcript::Entry;

const INTERRUPTED: &str = "  ⎿  Interrupted · What should Claude do instead?";
/// There and back again.
const SPINNER: [&str; 10] = ["·", "✢", "*", "✶", "✻", "✽", "✻", "✶", "*", "✢"];

pub(super) fn lead(entry: &Entry) -> usize {
    usize::from(!matches!(entry, Entry::Interrupted | Entry::Notice(_)))
}

pub(super) fn entry(entry: &Entry, width: usize) -> Vec<Row> {
    let said = |text: &str, style| wrap(text, "● ", "  ", style, width);
    let result = |text: &str| wrap(text, "  ⎿  ", "     ", Style::Dim, width);
    let with = |mut rows: Vec<Row>, more: Vec<Row>| {
        rows.extend(more);
        rows
    };
    match entry {
        Entry::Splash(text) => wrap(text, " ", " ", Style::Accent, width),
        Entry::User(text) => wrap(text, "❯ ", "  ", Style::Dim, width),
        Entry::Answer(text) => said(text, Style::Plain),
        Entry::Tool { name, input, output } => with(said(&format!("{name}({input})"), Style::Plain), result(output)),
        Entry::Approved { .. } => Vec::new(),
        Entry::Refused { tool, command } => with(said(&format!("{tool}({command})"), Style::Plain), interrupted(width)),
        Entry::Answered { question, answer } => {
            with(said("User answered Claude's questions:", Style::Plain), result(&format!("· {question} → {answer}")))
        }
        Entry::Declined { question } => {
            with(said("User declined to answer questions", Style::Plain), result(&format!("· {question}")))
        }
        Entry::Error(text) => said(text, Style::Bad),
        Entry::Notice(text) => wrap(text, "  ⎿  ", "     ", Style::Bad, width),
        Entry::Interrupted => interrupted(width),
        Entry::Closing(text) => wrap(text, "", "  ", Style::Dim, width),
    }
}

fn interrupted(width: usize) -> Vec<Row> {
    wrap(INTERRUPTED, "", "     ", Style::Bad, width)
}

pub(super) fn live(view: &View) -> Live {
    let width = view.size.columns;
    let mut live = Live::default();
    if let Some(text) = view.partial {
        live.upper.push(Row::blank());
        live.upper.extend(wrap(text, "● ", "  ", Style::Plain, width));
    }
    if let Some((name, input)) = view.tool {
        live.upper.push(Row::blank());
        live.upper.extend(wrap(&format!("{name}({input})"), "  ", "  ", Style::Plain, width));
        live.upper.push(Row::cut("  ⎿  Running…", Style::Dim, width));
    }
    if let Some(shown) = &view.dialog {
        dialog(&mut live, shown, width);
        return live;
    }
    if let Some(spinner) = &view.spinner {
        live.blank();
        live.lower.push(Row::cut(&spinner_row(spinner), Style::Accent, width));
    }
    for message in &view.queue {
        live.lower.extend(wrap(message, "  ❯ ", "    ", Style::Dim, width));
    }
    let Input::Draft(draft) = view.input else {
        return live;
    };
    live.blank();
    live.lower.push(Row::rule('─', width));
    let placeholder = if view.queue.is_empty() { "" } else { "Press up to edit queued messages" };
    live.input("❯\u{a0}", draft, placeholder, view);
    live.lower.push(Row::rule('─', width));
    let footer = match view.hint {
        Some(hint) => hint,
        // The real one too hides this as soon as there is a draft.
        None if !draft.is_empty() => "",
        None if view.busy => "esc to interrupt",
        None => "? for shortcuts",
    };
    live.lower.push(Row::cut(&format!("  {footer}"), Style::Dim, width));
    live
}

fn spinner_row(spinner: &Spinner) -> String {
    let glyph = SPINNER[(spinner.frame % SPINNER.len() as u64) as usize];
    match spinner.text {
        SpinnerText::Row(row) => format!("{glyph} {row}"),
        // In the first moment the row has no parentheses.
        SpinnerText::Verb(verb) if spinner.elapsed < Duration::from_secs(1) => format!("{glyph} {verb}…"),
        SpinnerText::Verb(verb) => {
            format!("{glyph} {verb}… ({} · esc to interrupt)", Look::Claude.took(spinner.elapsed))
        }
    }
}

fn dialog(live: &mut Live, dialog: &DialogView, width: usize) {
    let ask = dialog.ask;
    let or = |text: &Option<String>, usual: &str| text.clone().unwrap_or_else(|| usual.to_owned());
    if ask.kind != AskKind::Startup {
        live.blank();
    }
    live.at_top = ask.kind == AskKind::Startup;
    live.lower.push(Row::rule('─', width));
    // Question dialogs begin at the first column, all others one further in.
    let (indent, mark, gap) = if ask.kind == AskKind::Question { ("", "❯ ", "  ") } else { (" ", " ❯ ", "   ") };
    let (title, text, footer) = match ask.kind {
        AskKind::Permission => {
            (or(&ask.title, "Bash command"), or(&ask.text, "Do you want to proceed?"), "Esc to cancel · Tab to amend")
        }
        AskKind::Question => (
            format!("☐ {}", or(&ask.title, "Question")),
            or(&ask.text, "Which one?"),
            "Enter to select · ↑/↓ to navigate · Esc to cancel",
        ),
        AskKind::Plan => (
            or(&ask.title, "Ready to code?"),
            or(&ask.text, "The plan is ready. Would you like to proceed?"),
            "ctrl+g to edit the plan",
        ),
        AskKind::Startup => (
            or(&ask.title, "Accessing workspace:"),
            or(&ask.text, "Do you trust the files in this folder?"),
            "Enter to confirm · Esc to cancel",
        ),
    };
    live.text(&title, if ask.kind == AskKind::Question { " " } else { indent }, Style::Bold, width);
    if let Some(command) = &ask.command {
        live.text(command, "   ", Style::Plain, width);
    }
    match (&ask.detail, ask.kind) {
        (None, _) => {}
        (Some(detail), AskKind::Plan) => {
            live.lower.push(Row::rule('╌', width));
            live.text(detail, " ", Style::Plain, width);
            live.lower.push(Row::rule('╌', width));
        }
        (Some(detail), _) => live.text(detail, "   ", Style::Dim, width),
    }
    live.blank();
    live.text(&text, indent, Style::Plain, width);
    if ask.kind != AskKind::Permission {
        live.blank();
    }
    live.options(dialog, mark, gap, width);
    let footer = ask.footer.as_deref().unwrap_or(footer);
    if !footer.is_empty() {
        live.blank();
        live.text(footer, indent, Style::Dim, width);
    }
}

pub(super) fn title(mood: Mood, name: &str, busy: BusyTitle, frame: u64) -> String {
    let glyphs = match busy {
        BusyTitle::Braille => ["⠂", "⠐"],
        BusyTitle::Circle => ["◐", "◑"],
    };
    // The title turns about once a second, much slower than the spinner.
    let glyph = if mood == Mood::Working { glyphs[(frame / 10 % 2) as usize] } else { "✳" };
    format!("{glyph} {name}")
}

pub(super) fn labels(kind: AskKind) -> &'static [&'static str] {
    match kind {
        AskKind::Permission => &["Yes", "Yes, and don't ask again this session", "No"],
        AskKind::Plan => &["Yes, and use auto mode", "Yes, manually approve edits", "Tell Claude what to change"],
        AskKind::Startup => &["Yes, I trust this folder", "No, exit"],
        AskKind::Question => &[],
    }
}

/// The first words are the real ones; what follows them differs from case to case.
pub(super) fn failure(failure: Failure) -> Entry {
    let text = match failure {
        Failure::Internal => "API Error: 500 Internal server error. Try again in a moment.",
        Failure::Overloaded => "API Error: 529 Overloaded. Try again in a moment.",
        Failure::Unauthorized => return Entry::Notice("Invalid API key · Fix external API key".to_owned()),
        Failure::UsageLimit => "You've hit your session limit · resets 3pm (UTC)",
        Failure::Dropped => "API Error: Connection closed mid-response.",
    };
    Entry::Error(text.to_owned())
}
