//! Codex, as measured on 0.166. Its text is indented by two columns, and its marks are in the first column.

use super::{AgentView, DialogView, LivePanel, Mood, Spinner};
use crate::agent::rows::{RowStyle, ScreenRow, wrap};
use crate::agent::transcript::TranscriptEntry;
use crate::scenario::{AgentLook, QuestionKind, ServiceFailure};

/// The directory in the title and the footer.
const PROJECT: &str = "project";

const BRAILLE: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

pub(super) fn lead(entry: &TranscriptEntry) -> usize {
    if matches!(entry, TranscriptEntry::User(_)) { 2 } else { 1 }
}

pub(super) fn entry(entry: &TranscriptEntry, width: usize) -> Vec<ScreenRow> {
    let own = |mark: &str, text: &str, style| wrap(text, mark, "  ", style, width);
    match entry {
        TranscriptEntry::User(text) => own("› ", text, RowStyle::Bold),
        TranscriptEntry::Answer(text) => own("• ", text, RowStyle::Plain),
        TranscriptEntry::Tool { name, input, output } => {
            let mut rows = own("• ", &format!("Ran {}", command(name, input)), RowStyle::Plain);
            rows.extend(wrap(output, "  └ ", "    ", RowStyle::Dim, width));
            rows
        }
        TranscriptEntry::Approved { command } => {
            own("✔ ", &format!("You approved codex to run {command} this time"), RowStyle::Good)
        }
        TranscriptEntry::Refused { command } => {
            let mut rows = own("✗ ", &format!("You canceled the request to run {command}"), RowStyle::Bad);
            rows.push(ScreenRow::blank());
            rows.extend(interrupted(width));
            rows
        }
        TranscriptEntry::Answered { question, answer } => {
            own("• ", &format!("{question}\n→ {answer}"), RowStyle::Plain)
        }
        TranscriptEntry::Declined { question } => {
            let mut rows = own("• ", question, RowStyle::Plain);
            rows.push(ScreenRow::blank());
            rows.extend(interrupted(width));
            rows
        }
        TranscriptEntry::Error(text) | TranscriptEntry::Notice(text) => wrap(text, "■ ", "", RowStyle::Bad, width),
        TranscriptEntry::Interrupted => interrupted(width),
        TranscriptEntry::Closing(text) => wrap(text, "", "  ", RowStyle::Dim, width),
    }
}

fn interrupted(width: usize) -> Vec<ScreenRow> {
    wrap("■ Conversation interrupted - tell the model what to do differently", "", "", RowStyle::Bad, width)
}

/// Shows shell commands bare, other tools with their name.
fn command(name: &str, input: &str) -> String {
    if name == "Bash" { input.to_owned() } else { format!("{name} {input}") }
}

pub(super) fn live(view: &AgentView) -> LivePanel {
    let width = view.size.columns;
    let mut live = LivePanel::default();
    if let Some(text) = view.partial {
        live.upper.push(ScreenRow::blank());
        live.upper.extend(wrap(text, "• ", "  ", RowStyle::Plain, width));
    }
    if let Some((name, input)) = view.tool {
        live.upper.push(ScreenRow::blank());
        live.upper.extend(wrap(&format!("Running {}", command(name, input)), "• ", "  ", RowStyle::Plain, width));
    }
    if let Some(shown) = &view.dialog {
        dialog(&mut live, shown, width);
        return live;
    }
    if let Some(spinner) = &view.spinner {
        live.blank();
        live.lower.push(ScreenRow::cut(&working_row(spinner), RowStyle::Plain, width));
    }
    if !view.queue.is_empty() {
        live.blank();
        live.text("Queued follow-up messages", "• ", RowStyle::Plain, width);
        for message in &view.queue {
            live.lower.extend(wrap(message, "  ↳ ", "    ", RowStyle::Dim, width));
        }
    }
    let Some(draft) = view.draft else {
        return live;
    };
    live.blank();
    live.blank();
    live.input("› ", draft, "Ask Codex to do anything", view);
    live.blank();
    live.lower.push(ScreenRow::cut(&format!("  actor-1 medium · /{PROJECT}"), RowStyle::Dim, width));
    let help = match view.hint {
        Some(hint) => hint,
        None if draft.is_empty() => "? for shortcuts",
        None if view.busy => "tab to queue message",
        None => "",
    };
    live.lower.push(ScreenRow::cut(&format!("  {help}"), RowStyle::Dim, width));
    live
}

fn working_row(spinner: &Spinner) -> String {
    // The dot blinks a little faster than once a second.
    let glyph = ["•", "◦"][(spinner.frame / 6 % 2) as usize];
    let seconds = spinner.elapsed.as_secs();
    let time = if seconds == 0 { "0s".to_owned() } else { AgentLook::Codex.took(spinner.elapsed) };
    format!("{glyph} Working ({time} • esc to interrupt)")
}

fn dialog(live: &mut LivePanel, dialog: &DialogView, width: usize) {
    let ask = dialog.ask;
    let (text, footer) = match ask.kind {
        QuestionKind::Permission => {
            ("Would you like to run the following command?", "Press enter to confirm or esc to cancel")
        }
        QuestionKind::Question => ("Which one?", "enter to submit answer | esc to interrupt"),
        QuestionKind::Plan => ("Implement this plan?", "Press enter to confirm or esc to cancel"),
        QuestionKind::Startup => {
            ("Trust this folder? Its files can be read, edited and run.", "enter continue · esc quit")
        }
    };
    live.blank();
    if ask.kind == QuestionKind::Startup {
        live.at_top = true;
        live.text(ask.title.as_deref().unwrap_or("Folder access"), "  ", RowStyle::Bold, width);
    } else {
        live.blank();
        if let Some(title) = &ask.title {
            live.text(title, "  ", RowStyle::Bold, width);
            live.blank();
        }
    }
    if let (QuestionKind::Startup, Some(detail)) = (ask.kind, &ask.detail) {
        live.text(detail, "  ", RowStyle::Plain, width);
        live.blank();
    }
    live.text(ask.text.as_deref().unwrap_or(text), "  ", RowStyle::Bold, width);
    if let (false, Some(detail)) = (ask.kind == QuestionKind::Startup, &ask.detail) {
        live.blank();
        live.text(detail, "  ", RowStyle::Plain, width);
    }
    if let Some(command) = &ask.command {
        live.blank();
        live.lower.extend(wrap(command, "  $ ", "  ", RowStyle::Plain, width));
    }
    live.blank();
    live.options(dialog, "› ", "  ", width);
    let footer = ask.footer.as_deref().unwrap_or(footer);
    if !footer.is_empty() {
        live.blank();
        live.text(footer, "  ", RowStyle::Dim, width);
    }
}

pub(super) fn title(mood: Mood, frame: u64) -> String {
    match mood {
        Mood::Working => format!("{} {PROJECT}", BRAILLE[(frame % BRAILLE.len() as u64) as usize]),
        // The real title blinks between `!` and `.`; a waiting scripted agent has no timer.
        Mood::Blocked(_) => format!("[ ! ] Action Required | {PROJECT}"),
        _ => PROJECT.to_owned(),
    }
}

pub(super) fn labels(kind: QuestionKind) -> &'static [&'static str] {
    match kind {
        QuestionKind::Permission => &[
            "Yes, proceed (y)",
            "Yes, and don't ask again for commands like this (p)",
            "No, and tell Codex what to do differently (esc)",
        ],
        QuestionKind::Plan => {
            &["Yes, implement this plan", "Yes, and clear the context first", "No, stay in plan mode"]
        }
        QuestionKind::Startup => &["Trust and continue", "Quit"],
        QuestionKind::Question => &[],
    }
}

/// Returns the error row. Only its first words are those of the real agent.
pub(super) fn failure(failure: &ServiceFailure) -> &'static str {
    match failure.status {
        _ if failure.dropped => "stream disconnected before completion",
        401 => "unexpected status 401 Unauthorized: Incorrect API key provided",
        429 => "You’ve hit your usage limit. Try again at 9:52 PM.",
        529 => "exceeded retry limit, last status: 529",
        _ => "We’re currently experiencing high demand.",
    }
}
