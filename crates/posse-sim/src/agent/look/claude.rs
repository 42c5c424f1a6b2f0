//! Claude Code, as measured on 2.1.197 to 2.1.325. Two properties tell its rows apart: the input box has a no-break
//! space after its prompt (echoes and dialogs have a plain space), and everything the agent says is indented or begins
//! with a bullet.

use std::time::Duration;

use super::{AgentView, DialogView, LivePanel, Mood, Spinner};
use crate::agent::rows::{RowStyle, ScreenRow, wrap};
use crate::agent::transcript::TranscriptEntry;
use crate::scenario::{AgentLook, QuestionKind, ServiceFailure};

pub(super) const NAME: &str = "Claude Code";

const INTERRUPTED: &str = "  ⎿  Interrupted · What should Claude do instead?";
const SPINNER: [&str; 10] = ["·", "✢", "*", "✶", "✻", "✽", "✻", "✶", "*", "✢"];

pub(super) fn lead(entry: &TranscriptEntry) -> usize {
    usize::from(!matches!(entry, TranscriptEntry::Interrupted | TranscriptEntry::Notice(_)))
}

pub(super) fn entry(entry: &TranscriptEntry, width: usize) -> Vec<ScreenRow> {
    let said = |text: &str, style| wrap(text, "● ", "  ", style, width);
    let result = |text: &str| wrap(text, "  ⎿  ", "     ", RowStyle::Dim, width);
    let with = |mut rows: Vec<ScreenRow>, more: Vec<ScreenRow>| {
        rows.extend(more);
        rows
    };
    match entry {
        TranscriptEntry::User(text) => wrap(text, "❯ ", "  ", RowStyle::Dim, width),
        TranscriptEntry::Answer(text) => said(text, RowStyle::Plain),
        TranscriptEntry::Tool { name, input, output } => {
            with(said(&format!("{name}({input})"), RowStyle::Plain), result(output))
        }
        TranscriptEntry::Approved { .. } => Vec::new(),
        TranscriptEntry::Refused { command } => {
            with(said(&format!("Bash({command})"), RowStyle::Plain), interrupted(width))
        }
        TranscriptEntry::Answered { question, answer } => with(
            said("User answered Claude's questions:", RowStyle::Plain),
            result(&format!("· {question} → {answer}")),
        ),
        TranscriptEntry::Declined { question } => {
            with(said("User declined to answer questions", RowStyle::Plain), result(&format!("· {question}")))
        }
        TranscriptEntry::Error(text) => said(text, RowStyle::Bad),
        TranscriptEntry::Notice(text) => wrap(text, "  ⎿  ", "     ", RowStyle::Bad, width),
        TranscriptEntry::Interrupted => interrupted(width),
        TranscriptEntry::Closing(text) => wrap(text, "", "  ", RowStyle::Dim, width),
    }
}

fn interrupted(width: usize) -> Vec<ScreenRow> {
    wrap(INTERRUPTED, "", "     ", RowStyle::Bad, width)
}

pub(super) fn live(view: &AgentView) -> LivePanel {
    let width = view.size.columns;
    let mut live = LivePanel::default();
    if let Some(text) = view.partial {
        live.upper.push(ScreenRow::blank());
        live.upper.extend(wrap(text, "● ", "  ", RowStyle::Plain, width));
    }
    if let Some((name, input)) = view.tool {
        live.upper.push(ScreenRow::blank());
        live.upper.extend(wrap(&format!("{name}({input})"), "  ", "  ", RowStyle::Plain, width));
        live.upper.push(ScreenRow::cut("  ⎿  Running…", RowStyle::Dim, width));
    }
    if let Some(shown) = &view.dialog {
        dialog(&mut live, shown, width);
        return live;
    }
    if let Some(spinner) = &view.spinner {
        live.blank();
        live.lower.push(ScreenRow::cut(&spinner_row(spinner), RowStyle::Accent, width));
    }
    for message in &view.queue {
        live.lower.extend(wrap(message, "  ❯ ", "    ", RowStyle::Dim, width));
    }
    let Some(draft) = view.draft else {
        return live;
    };
    live.blank();
    live.lower.push(ScreenRow::rule('─', width));
    let placeholder = if view.queue.is_empty() { "" } else { "Press up to edit queued messages" };
    live.input("❯\u{a0}", draft, placeholder, view);
    live.lower.push(ScreenRow::rule('─', width));
    let footer = match view.hint {
        Some(hint) => hint,
        // A draft hides the footer.
        None if !draft.is_empty() => "",
        None if view.busy => "esc to interrupt",
        None => "? for shortcuts",
    };
    live.lower.push(ScreenRow::cut(&format!("  {footer}"), RowStyle::Dim, width));
    live
}

fn spinner_row(spinner: &Spinner) -> String {
    let glyph = SPINNER[(spinner.frame % SPINNER.len() as u64) as usize];
    let verb = spinner.verb;
    // In its first second the row has no parentheses.
    if spinner.elapsed < Duration::from_secs(1) {
        return format!("{glyph} {verb}…");
    }
    format!("{glyph} {verb}… ({} · esc to interrupt)", AgentLook::Claude.took(spinner.elapsed))
}

fn dialog(live: &mut LivePanel, dialog: &DialogView, width: usize) {
    let ask = dialog.ask;
    let or = |text: &Option<String>, usual: &str| text.clone().unwrap_or_else(|| usual.to_owned());
    if ask.kind != QuestionKind::Startup {
        live.blank();
    }
    live.at_top = ask.kind == QuestionKind::Startup;
    live.lower.push(ScreenRow::rule('─', width));
    // Questions begin in the first column, all other dialogs in the second.
    let (indent, mark, gap) =
        if ask.kind == QuestionKind::Question { ("", "❯ ", "  ") } else { (" ", " ❯ ", "   ") };
    let (title, text, footer) = match ask.kind {
        QuestionKind::Permission => {
            (or(&ask.title, "Bash command"), or(&ask.text, "Do you want to proceed?"), "Esc to cancel · Tab to amend")
        }
        QuestionKind::Question => (
            format!("☐ {}", or(&ask.title, "Question")),
            or(&ask.text, "Which one?"),
            "Enter to select · ↑/↓ to navigate · Esc to cancel",
        ),
        QuestionKind::Plan => (
            or(&ask.title, "Ready to code?"),
            or(&ask.text, "The plan is ready. Would you like to proceed?"),
            "ctrl+g to edit the plan",
        ),
        QuestionKind::Startup => (
            or(&ask.title, "Accessing workspace:"),
            or(&ask.text, "Do you trust the files in this folder?"),
            "Enter to confirm · Esc to cancel",
        ),
    };
    live.text(&title, if ask.kind == QuestionKind::Question { " " } else { indent }, RowStyle::Bold, width);
    if let Some(command) = &ask.command {
        live.text(command, "   ", RowStyle::Plain, width);
    }
    match (&ask.detail, ask.kind) {
        (None, _) => {}
        (Some(detail), QuestionKind::Plan) => {
            live.lower.push(ScreenRow::rule('╌', width));
            live.text(detail, " ", RowStyle::Plain, width);
            live.lower.push(ScreenRow::rule('╌', width));
        }
        (Some(detail), _) => live.text(detail, "   ", RowStyle::Dim, width),
    }
    live.blank();
    live.text(&text, indent, RowStyle::Plain, width);
    if ask.kind != QuestionKind::Permission {
        live.blank();
    }
    live.options(dialog, mark, gap, width);
    let footer = ask.footer.as_deref().unwrap_or(footer);
    if !footer.is_empty() {
        live.blank();
        live.text(footer, indent, RowStyle::Dim, width);
    }
}

pub(super) fn title(mood: Mood, frame: u64) -> String {
    // The title turns once a second, much slower than the spinner.
    let glyph = if mood == Mood::Working { ["⠂", "⠐"][(frame / 10 % 2) as usize] } else { "✳" };
    format!("{glyph} {NAME}")
}

pub(super) fn labels(kind: QuestionKind) -> &'static [&'static str] {
    match kind {
        QuestionKind::Permission => &["Yes", "Yes, and don't ask again this session", "No"],
        QuestionKind::Plan => &["Yes, and use auto mode", "Yes, manually approve edits", "Tell Claude what to change"],
        QuestionKind::Startup => &["Yes, I trust this folder", "No, exit"],
        QuestionKind::Question => &[],
    }
}

/// Returns the error row. Only its first words are those of the real agent; the rest varies there.
pub(super) fn failure(failure: &ServiceFailure) -> TranscriptEntry {
    let text = match failure.status {
        _ if failure.dropped => "API Error: Connection closed mid-response.",
        401 => return TranscriptEntry::Notice("Invalid API key · Fix external API key".to_owned()),
        429 => "You've hit your session limit · resets 3pm (UTC)",
        529 => "API Error: 529 Overloaded. Try again in a moment.",
        _ => "API Error: 500 Internal server error. Try again in a moment.",
    };
    TranscriptEntry::Error(text.to_owned())
}
