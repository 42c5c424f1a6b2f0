//! The words, marks and rows of each agent: Claude Code as measured on 2.1.197 to 2.1.325, Codex as measured on 0.166.
//!
//! Two properties tell Claude Code's rows apart: the input box has a no-break space after its prompt (echoes and dialogs
//! have a plain space), and everything the agent says is indented or begins with a bullet. The text of Codex is indented
//! by two columns, and its marks are in the first column.

use std::time::Duration;

use crate::agent::rows::RowStyle;
use crate::agent::transcript::TranscriptEntry;
use crate::scenario::{AgentLook, PlayKind, QuestionKind, SelfReport, ServiceFailure};
use AgentLook::{Claude, Codex};

const CLAUDE_NAME: &str = "Claude Code";
const CLAUDE_SPINNER: [&str; 10] = ["·", "✢", "*", "✶", "✻", "✽", "✻", "✶", "*", "✢"];
const CLAUDE_INTERRUPTED: &str = "  ⎿  Interrupted · What should Claude do instead?";
const CODEX_INTERRUPTED: &str = "■ Conversation interrupted - tell the model what to do differently";
const BRAILLE: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
/// The directory in the title and the footer of Codex.
pub(crate) const PROJECT: &str = "project";

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Mood {
    /// Not ready yet; the agents we imitate report nothing then.
    #[default]
    Starting,
    Idle,
    Working,
    Blocked(QuestionKind),
    Done,
    Failed,
}

/// A text to be wrapped: what its first row begins with, what all others begin with, and its style.
pub(crate) type LookText = (String, &'static str, &'static str, RowStyle);

pub(crate) struct DialogTexts {
    pub(crate) title: &'static str,
    pub(crate) text: &'static str,
    pub(crate) footer: &'static str,
    pub(crate) options: &'static [&'static str],
}

impl AgentLook {
    pub(crate) fn lead(self, entry: &TranscriptEntry) -> usize {
        match (self, entry) {
            (Claude, TranscriptEntry::Interrupted | TranscriptEntry::Notice(_)) => 0,
            (Codex, TranscriptEntry::User(_)) => 2,
            _ => 1,
        }
    }

    /// Returns the texts of an entry, one below the other.
    pub(crate) fn entry(self, entry: &TranscriptEntry) -> Vec<LookText> {
        use RowStyle::{Bad, Bold, Dim, Good, Plain};
        use TranscriptEntry as Entry;
        let said = |text: String, style| (text, if self == Claude { "● " } else { "• " }, "  ", style);
        let result = |text: String| (text, "  ⎿  ", "     ", Dim);
        let interrupted = || match self {
            Claude => (CLAUDE_INTERRUPTED.to_owned(), "", "     ", Bad),
            Codex => (CODEX_INTERRUPTED.to_owned(), "", "", Bad),
        };
        let blank = || (String::new(), "", "", Plain);
        match (self, entry) {
            (Claude, Entry::User(text)) => vec![(text.clone(), "❯ ", "  ", Dim)],
            (Codex, Entry::User(text)) => vec![(text.clone(), "› ", "  ", Bold)],
            (_, Entry::Answer(text)) => vec![said(text.clone(), Plain)],
            (Claude, Entry::Tool { name, input, output }) => {
                vec![said(format!("{name}({input})"), Plain), result(output.clone())]
            }
            (Codex, Entry::Tool { name, input, output }) => {
                let ran = said(format!("Ran {}", codex_command(name, input)), Plain);
                vec![ran, (output.clone(), "  └ ", "    ", Dim)]
            }
            (Claude, Entry::Approved(_)) => Vec::new(),
            (Codex, Entry::Approved(command)) => {
                vec![(format!("You approved codex to run {command} this time"), "✔ ", "  ", Good)]
            }
            (Claude, Entry::Refused(command)) => vec![said(format!("Bash({command})"), Plain), interrupted()],
            (Codex, Entry::Refused(command)) => {
                let refused = (format!("You canceled the request to run {command}"), "✗ ", "  ", Bad);
                vec![refused, blank(), interrupted()]
            }
            (Claude, Entry::Answered { question, answer }) => {
                let answered = said("User answered Claude's questions:".to_owned(), Plain);
                vec![answered, result(format!("· {question} → {answer}"))]
            }
            (Codex, Entry::Answered { question, answer }) => vec![said(format!("{question}\n→ {answer}"), Plain)],
            (Claude, Entry::Declined(question)) => {
                let declined = said("User declined to answer questions".to_owned(), Plain);
                vec![declined, result(format!("· {question}"))]
            }
            (Codex, Entry::Declined(question)) => vec![said(question.clone(), Plain), blank(), interrupted()],
            (Claude, Entry::Error(text)) => vec![said(text.clone(), Bad)],
            (Claude, Entry::Notice(text)) => vec![(text.clone(), "  ⎿  ", "     ", Bad)],
            (Codex, Entry::Error(text) | Entry::Notice(text)) => vec![(text.clone(), "■ ", "", Bad)],
            (_, Entry::Interrupted) => vec![interrupted()],
            (_, Entry::Closing(text)) => vec![(text.clone(), "", "  ", Dim)],
        }
    }

    /// Returns the row of a spinner. `frame` counts tenths of a second.
    pub(crate) fn spinner(self, frame: u64, turn: u32, elapsed: Duration) -> String {
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

    pub(crate) fn running(self, name: &str, input: &str) -> LookText {
        match self {
            Claude => (format!("{name}({input})"), "  ", "  ", RowStyle::Plain),
            Codex => (format!("Running {}", codex_command(name, input)), "• ", "  ", RowStyle::Plain),
        }
    }

    pub(crate) fn dialog(self, kind: QuestionKind) -> DialogTexts {
        use QuestionKind::{Permission, Plan, Question, Startup};
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
            (Claude, Plan) => of(
                "Ready to code?",
                "The plan is ready. Would you like to proceed?",
                "ctrl+g to edit the plan",
                &["Yes, and use auto mode", "Yes, manually approve edits", "Tell Claude what to change"],
            ),
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
            (Codex, Plan) => of(
                "",
                "Implement this plan?",
                "Press enter to confirm or esc to cancel",
                &["Yes, implement this plan", "Yes, and clear the context first", "No, stay in plan mode"],
            ),
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
    pub(crate) fn title(self, mood: Mood, reports_state: bool, frame: u64) -> String {
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

    /// Returns the row for a failure of the service. Only its first words are those of the real agent.
    pub(crate) fn failure(self, failure: &ServiceFailure) -> TranscriptEntry {
        let text = match (self, failure.status) {
            (Claude, _) if failure.dropped => "API Error: Connection closed mid-response.",
            (Claude, 401) => return TranscriptEntry::Notice("Invalid API key · Fix external API key".to_owned()),
            (Claude, 429) => "You've hit your session limit · resets 3pm (UTC)",
            (Claude, 529) => "API Error: 529 Overloaded. Try again in a moment.",
            (Claude, _) => "API Error: 500 Internal server error. Try again in a moment.",
            (Codex, _) if failure.dropped => "stream disconnected before completion",
            (Codex, 401) => "unexpected status 401 Unauthorized: Incorrect API key provided",
            (Codex, 429) => "You’ve hit your usage limit. Try again at 9:52 PM.",
            (Codex, 529) => "exceeded retry limit, last status: 529",
            (Codex, _) => "We’re currently experiencing high demand.",
        };
        TranscriptEntry::Error(text.to_owned())
    }

    pub(crate) fn app(self) -> &'static str {
        if self == Claude { "claude-code" } else { "codex" }
    }

    /// Returns the default self-reports. In the review loop Claude is 2.1.325, which reports its state to terminals that
    /// understand it. Turns of the loop may be too short for their screens to be read.
    pub(crate) fn usual_reports(self, play: PlayKind) -> &'static [SelfReport] {
        match self {
            Claude if play == PlayKind::Script => &[SelfReport::Title],
            _ => &[SelfReport::State, SelfReport::Title],
        }
    }

    pub(crate) fn closing(self, turn: u32, time: Duration) -> String {
        const VERBS: [&str; 5] = ["Crunched", "Worked", "Baked", "Brewed", "Cooked"];
        let time = self.took(time);
        match self {
            Claude => format!("✻ {} for {time}", VERBS[turn as usize % VERBS.len()]),
            // Codex shows the time of day; a fixed time keeps screens comparable.
            Codex => format!("  Worked for {time} • 12:00"),
        }
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
    pub(crate) fn longest_paste(self) -> usize {
        if self == Claude { 800 } else { 1000 }
    }

    pub(crate) fn paste_label(self, number: usize, text: &str) -> String {
        match (self, text.matches('\n').count()) {
            (Codex, _) => format!("[Pasted Content {} chars]", text.chars().count()),
            (Claude, 0) => format!("[Pasted text #{number}]"),
            (Claude, lines) => format!("[Pasted text #{number} +{lines} lines]"),
        }
    }
}

/// Shows shell commands bare, other tools with their name.
fn codex_command(name: &str, input: &str) -> String {
    if name == "Bash" { input.to_owned() } else { format!("{name} {input}") }
}

#[cfg(test)]
mod tests;
