//! The words, marks and rows of each agent: Claude Code as measured on 2.1.197 to 2.1.325, Codex as measured on 0.166.
//!
//! Two properties tell Claude Code's rows apart: the input box has a no-break space after its prompt (echoes and dialogs
//! have a plain space), and everything the agent says is indented or begins with a bullet. The text of Codex is indented
//! by two columns, and its marks are in the first column.

use std::time::Duration;

use super::rows::{LookText, RowStyle, TranscriptEntry};
use crate::scenario::{AgentLook, QuestionKind};
use AgentLook::{Claude, Codex};

const CLAUDE_NAME: &str = "Claude Code";
const CLAUDE_SPINNER: [&str; 10] = ["·", "✢", "*", "✶", "✻", "✽", "✻", "✶", "*", "✢"];
/// What a result of Claude Code begins with, in its first row and in all others.
const CLAUDE_RESULT: (&str, &str) = ("  ⎿  ", "     ");
const CLAUDE_INTERRUPTED: &str = "  ⎿  Interrupted · What should Claude do instead?";
const CODEX_INTERRUPTED: &str = "■ Conversation interrupted - tell the model what to do differently";
const BRAILLE: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
/// The directory in the title and the footer of Codex.
pub(super) const PROJECT: &str = "project";

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Mood {
    /// Not ready yet; the agents we imitate report nothing then.
    #[default]
    Starting,
    Idle,
    Working,
    Blocked(QuestionKind),
    Done,
    Failed,
}

pub(super) struct DialogTexts {
    pub(super) title: &'static str,
    pub(super) text: &'static str,
    pub(super) footer: &'static str,
    pub(super) options: &'static [&'static str],
}

impl AgentLook {
    fn said(self, text: String, style: RowStyle) -> LookText {
        (text, if self == Claude { "● " } else { "• " }, "  ", style)
    }

    pub(super) fn user(self, text: String) -> TranscriptEntry {
        match self {
            Claude => entry(1, [(text, "❯ ", "  ", RowStyle::Dim)]),
            Codex => entry(2, [(text, "› ", "  ", RowStyle::Bold)]),
        }
    }

    pub(super) fn answer(self, text: String) -> TranscriptEntry {
        entry(1, [self.said(text, RowStyle::Plain)])
    }

    /// The text that appears while it is being streamed.
    pub(super) fn streaming(self, text: String) -> LookText {
        self.said(text, RowStyle::Plain)
    }

    pub(super) fn tool(self, name: &str, input: &str, output: String) -> TranscriptEntry {
        let (used, (mark, rest)) = match self {
            Claude => (format!("{name}({input})"), CLAUDE_RESULT),
            Codex => (format!("Ran {}", codex_command(name, input)), ("  └ ", "    ")),
        };
        entry(1, [self.said(used, RowStyle::Plain), (output, mark, rest, RowStyle::Dim)])
    }

    /// The user refused a command or declined a question.
    pub(super) fn refused(self, kind: QuestionKind, text: &str) -> TranscriptEntry {
        let interrupted = self.interruption();
        match (self, kind) {
            (_, QuestionKind::Question) => entry(1, [self.said(text.to_owned(), RowStyle::Plain), interrupted]),
            (Claude, _) => entry(1, [self.said(format!("Bash({text})"), RowStyle::Plain), interrupted]),
            (Codex, _) => {
                let refused = (format!("You canceled the request to run {text}\n"), "✗ ", "  ", RowStyle::Bad);
                entry(1, [refused, interrupted])
            }
        }
    }

    pub(super) fn interrupted(self) -> TranscriptEntry {
        entry(usize::from(self == Codex), [self.interruption()])
    }

    fn interruption(self) -> LookText {
        let (text, rest) = match self {
            Claude => (CLAUDE_INTERRUPTED, "     "),
            Codex => (CODEX_INTERRUPTED, ""),
        };
        (text.to_owned(), "", rest, RowStyle::Bad)
    }

    pub(super) fn error(self, text: String) -> TranscriptEntry {
        match self {
            Claude => entry(1, [self.said(text, RowStyle::Bad)]),
            Codex => entry(1, [(text, "■ ", "", RowStyle::Bad)]),
        }
    }

    /// Returns the row of a spinner. `frame` counts tenths of a second.
    pub(super) fn spinner(self, frame: u64, turn: u32, elapsed: Duration) -> String {
        const VERBS: [&str; 4] = ["Pondering", "Tinkering", "Puzzling", "Rummaging"];
        let verb = VERBS[turn as usize % VERBS.len()];
        let glyph = CLAUDE_SPINNER[(frame % CLAUDE_SPINNER.len() as u64) as usize];
        match self {
            // In its first second the row has no parentheses.
            Claude if elapsed < Duration::from_secs(1) => format!("{glyph} {verb}…"),
            Claude => format!("{glyph} {verb}… ({} · esc to interrupt)", self.took(elapsed)),
            Codex => {
                // The dot blinks a little faster than once a second.
                let dot = ["•", "◦"][(frame / 6 % 2) as usize];
                let time = if elapsed.as_secs() == 0 { "0s".to_owned() } else { self.took(elapsed) };
                format!("{dot} Working ({time} • esc to interrupt)")
            }
        }
    }

    pub(super) fn running(self, name: &str, input: &str) -> LookText {
        match self {
            Claude => (format!("{name}({input})"), "  ", "  ", RowStyle::Plain),
            Codex => (format!("Running {}", codex_command(name, input)), "• ", "  ", RowStyle::Plain),
        }
    }

    pub(super) fn dialog(self, kind: QuestionKind) -> DialogTexts {
        use QuestionKind::{Permission, Question, Startup};
        let of = |title, text, footer, options| DialogTexts { title, text, footer, options };
        match (self, kind) {
            (Claude, Permission) => of(
                "Bash command",
                "Do you want to proceed?",
                "Esc to cancel · Tab to amend",
                &["Yes", "Yes, and don't ask again this session", "No"],
            ),
            (Claude, Question) => {
                of("☐ Question", "Which one?", "Enter to select · ↑/↓ to navigate · Esc to cancel", &[])
            }
            (Claude, Startup) => of(
                "Accessing workspace:",
                "Do you trust the files in this folder?",
                "Enter to confirm · Esc to cancel",
                &["Yes, I trust this folder", "No, exit"],
            ),
            (Codex, Permission) => of(
                "",
                "Would you like to run the following command?",
                "Press enter to confirm or esc to cancel",
                &[
                    "Yes, proceed (y)",
                    "Yes, and don't ask again for commands like this (p)",
                    "No, and tell Codex what to do differently (esc)",
                ],
            ),
            (Codex, Question) => of("", "Which one?", "enter to submit answer | esc to interrupt", &[]),
            (Codex, Startup) => of(
                "Folder access",
                "Trust this folder? Its files can be read, edited and run.",
                "enter continue · esc quit",
                &["Trust and continue", "Quit"],
            ),
        }
    }

    /// Returns the window title. `frame` counts tenths of a second. Claude Code omits the glyph if the terminal
    /// understands its state reports.
    pub(super) fn title(self, mood: Mood, reports_state: bool, frame: u64) -> String {
        match (self, mood) {
            (Claude, _) if reports_state => CLAUDE_NAME.to_owned(),
            // The title turns once a second, much slower than the spinner.
            (Claude, Mood::Working) => format!("{} {CLAUDE_NAME}", ["⠂", "⠐"][(frame / 10 % 2) as usize]),
            (Claude, _) => format!("✳ {CLAUDE_NAME}"),
            (Codex, Mood::Working) => format!("{} {PROJECT}", BRAILLE[(frame % BRAILLE.len() as u64) as usize]),
            // The real title blinks between `!` and `.`; a waiting scripted agent has no timer.
            (Codex, Mood::Blocked(_)) => format!("[ ! ] Action Required | {PROJECT}"),
            (Codex, _) => PROJECT.to_owned(),
        }
    }

    /// Returns the row for a failure of the service that has no message. Only its first words are those of the real agent.
    pub(super) fn failure(self, status: u16) -> TranscriptEntry {
        self.error(match self {
            Claude => format!("API Error: {status}"),
            Codex => format!("exceeded retry limit, last status: {status}"),
        })
    }

    pub(super) fn app(self) -> &'static str {
        if self == Claude { "claude-code" } else { "codex" }
    }

    pub(super) fn closing(self, turn: u32, time: Duration) -> TranscriptEntry {
        const VERBS: [&str; 5] = ["Crunched", "Worked", "Baked", "Brewed", "Cooked"];
        let time = self.took(time);
        let text = match self {
            Claude => format!("✻ {} for {time}", VERBS[turn as usize % VERBS.len()]),
            // Codex shows the time of day; a fixed time keeps screens comparable.
            Codex => format!("  Worked for {time} • 12:00"),
        };
        entry(1, [(text, "", "  ", RowStyle::Dim)])
    }

    fn took(self, time: Duration) -> String {
        match (self, time.as_secs()) {
            (Codex, 0) => "<1s".to_owned(),
            (Codex, seconds @ 60..) => format!("{}m {:02}s", seconds / 60, seconds % 60),
            (_, seconds @ 60..) => format!("{}m {}s", seconds / 60, seconds % 60),
            (_, seconds) => format!("{seconds}s"),
        }
    }

    /// The length in characters of the longest paste that is shown as it is.
    pub(super) fn longest_paste(self) -> usize {
        if self == Claude { 800 } else { 1000 }
    }

    pub(super) fn paste_label(self, number: usize, text: &str) -> String {
        match (self, text.matches('\n').count()) {
            (Codex, _) => format!("[Pasted Content {} chars]", text.chars().count()),
            (Claude, 0) => format!("[Pasted text #{number}]"),
            (Claude, lines) => format!("[Pasted text #{number} +{lines} lines]"),
        }
    }
}

fn entry(lead: usize, texts: impl Into<Vec<LookText>>) -> TranscriptEntry {
    TranscriptEntry { lead, texts: texts.into() }
}

/// Shows shell commands bare, other tools with their name.
fn codex_command(name: &str, input: &str) -> String {
    if name == "Bash" { input.to_owned() } else { format!("{name} {input}") }
}
