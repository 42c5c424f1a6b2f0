//! Codex 0.166 as measured: what it says is indented by two, its own marks stand in the first column.

use super::{DialogView, Input, Live, Look, Mood, Spinner, SpinnerText, View};
use crate::rows::{Row, Style, wrap};
use crate::scenario::{AskKind, Failure};
use crate::transcript::Entry;

const BRAILLE: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

pub(super) fn lead(entry: &Entry) -> usize {
    if matches!(entry, Entry::User(_)) { 2 } else { 1 }
}

pub(super) fn entry(entry: &Entry, width: usize) -> Vec<Row> {
    let own = |mark: &str, text: &str, style| wrap(text, mark, "  ", style, width);
    match entry {
        Entry::Splash(text) => wrap(text, "  ", "  ", Style::Bold, width),
        Entry::User(text) => own("› ", text, Style::Bold),
        Entry::Answer(text) => own("• ", text, Style::Plain),
        Entry::Tool { name, input, output } => {
            let mut rows = own("• ", &format!("Ran {}", command(name, input)), Style::Plain);
            rows.extend(wrap(output, "  └ ", "    ", Style::Dim, width));
            rows
        }
        Entry::Approved { command } => {
            own("✔ ", &format!("You approved codex to run {command} this time"), Style::Good)
        }
        Entry::Refused { command, .. } => {
            let mut rows = own("✗ ", &format!("You canceled the request to run {command}"), Style::Bad);
            rows.push(Row::blank());
            rows.extend(interrupted(width));
            rows
        }
        Entry::Answered { question, answer } => own("• ", &format!("{question}\n→ {answer}"), Style::Plain),
        Entry::Declined { question } => {
            let mut rows = own("• ", question, Style::Plain);
            rows.push(Row::blank());
            rows.extend(interrupted(width));
            rows
        }
        Entry::Error(text) | Entry::Notice(text) => wrap(text, "■ ", "", Style::Bad, width),
        Entry::Interrupted => interrupted(width),
        Entry::Closing(text) => wrap(text, "", "  ", Style::Dim, width),
    }
}

fn interrupted(width: usize) -> Vec<Row> {
    wrap("■ Conversation interrupted - tell the model what to do differently", "", "", Style::Bad, width)
}

/// Shell commands are shown bare, other tools with their name.
fn command(name: &str, input: &str) -> String {
    if name == "Bash" { input.to_owned() } else { format!("{name} {input}") }
}

pub(super) fn live(view: &View) -> Live {
    let width = view.size.columns;
    let mut live = Live::default();
    if let Some(text) = view.partial {
        live.upper.push(Row::blank());
        live.upper.extend(wrap(text, "• ", "  ", Style::Plain, width));
    }
    if let Some((name, input)) = view.tool {
        live.upper.push(Row::blank());
        live.upper.extend(wrap(&format!("Running {}", command(name, input)), "• ", "  ", Style::Plain, width));
    }
    if let Some(shown) = &view.dialog {
        dialog(&mut live, shown, width);
        return live;
    }
    if let Some(spinner) = &view.spinner {
        live.blank();
        live.lower.push(Row::cut(&working_row(spinner), Style::Plain, width));
    }
    if !view.queue.is_empty() {
        live.blank();
        live.text("Queued follow-up messages", "• ", Style::Plain, width);
        for message in &view.queue {
            live.lower.extend(wrap(message, "  ↳ ", "    ", Style::Dim, width));
        }
    }
    let Input::Draft(draft) = view.input else {
        return live;
    };
    live.blank();
    live.blank();
    live.input("› ", draft, "Ask Codex to do anything", view);
    live.blank();
    live.lower.push(Row::cut(&format!("  actor-1 medium · {}", view.directory), Style::Dim, width));
    let help = match view.hint {
        Some(hint) => hint,
        None if draft.is_empty() => "? for shortcuts",
        None if view.busy => "tab to queue message",
        None => "",
    };
    live.lower.push(Row::cut(&format!("  {help}"), Style::Dim, width));
    live
}

fn working_row(spinner: &Spinner) -> String {
    // The dot blinks a little faster than once a second.
    let glyph = ["•", "◦"][(spinner.frame / 6 % 2) as usize];
    let text = match spinner.text {
        SpinnerText::Verb(_) => "Working",
        SpinnerText::Row(row) => row,
    };
    let seconds = spinner.elapsed.as_secs();
    let time = if seconds == 0 { "0s".to_owned() } else { Look::Codex.took(spinner.elapsed) };
    format!("{glyph} {text} ({time} • esc to interrupt)")
}

fn dialog(live: &mut Live, dialog: &DialogView, width: usize) {
    let ask = dialog.ask;
    let (text, footer) = match ask.kind {
        AskKind::Permission => {
            ("Would you like to run the following command?", "Press enter to confirm or esc to cancel")
        }
        AskKind::Question => ("Which one?", "enter to submit answer | esc to interrupt"),
        AskKind::Plan => ("Implement this plan?", "Press enter to confirm or esc to cancel"),
        AskKind::Startup => ("Trust this folder? Its files can be read, edited and run.", "enter continue · esc quit"),
    };
    live.blank();
    if ask.kind == AskKind::Startup {
        live.at_top = true;
        live.text(ask.title.as_deref().unwrap_or("Folder access"), "  ", Style::Bold, width);
    } else {
        live.blank();
        if let Some(title) = &ask.title {
            live.text(title, "  ", Style::Bold, width);
            live.blank();
        }
    }
    if let (AskKind::Startup, Some(detail)) = (ask.kind, &ask.detail) {
        live.text(detail, "  ", Style::Plain, width);
        live.blank();
    }
    live.text(ask.text.as_deref().unwrap_or(text), "  ", Style::Bold, width);
    if let (false, Some(detail)) = (ask.kind == AskKind::Startup, &ask.detail) {
        live.blank();
        live.text(detail, "  ", Style::Plain, width);
    }
    if let Some(command) = &ask.command {
        live.blank();
        live.lower.extend(wrap(command, "  $ ", "  ", Style::Plain, width));
    }
    live.blank();
    live.options(dialog, "› ", "  ", width);
    let footer = ask.footer.as_deref().unwrap_or(footer);
    if !footer.is_empty() {
        live.blank();
        live.text(footer, "  ", Style::Dim, width);
    }
}

pub(super) fn title(mood: Mood, name: &str, frame: u64) -> String {
    match mood {
        Mood::Working => format!("{} {name}", BRAILLE[(frame % BRAILLE.len() as u64) as usize]),
        // The real one blinks between `!` and `.`; a waiting actor sleeps instead.
        Mood::Blocked(_) => format!("[ ! ] Action Required | {name}"),
        _ => name.to_owned(),
    }
}

pub(super) fn labels(kind: AskKind) -> &'static [&'static str] {
    match kind {
        AskKind::Permission => &[
            "Yes, proceed (y)",
            "Yes, and don't ask again for commands like this (p)",
            "No, and tell Codex what to do differently (esc)",
        ],
        AskKind::Plan => &["Yes, implement this plan", "Yes, and clear the context first", "No, stay in plan mode"],
        AskKind::Startup => &["Trust and continue", "Quit"],
        AskKind::Question => &[],
    }
}

/// The first words are the real ones where it has any; it does not tell an overloaded service by its number.
pub(super) fn failure(failure: Failure) -> &'static str {
    match failure {
        Failure::Internal => "We’re currently experiencing high demand.",
        Failure::Overloaded => "exceeded retry limit, last status: 529",
        Failure::Unauthorized => "unexpected status 401 Unauthorized: Incorrect API key provided",
        Failure::UsageLimit => "You’ve hit your usage limit. Try again at 9:52 PM.",
        Failure::Dropped => "stream disconnected before completion",
    }
}
