//! Draws the screens of each agent. The machine decides what happens and passes it as an [`AgentView`].

mod claude;
mod codex;

use std::time::Duration;

use crate::agent::paint::{PanelAnchor, ScreenFrame};
use crate::agent::rows::{RowStyle, ScreenRow, ScreenSize, text_width, wrap};
use crate::agent::transcript::TranscriptEntry;
use crate::scenario::{AgentLook, AgentQuestion, PlayKind, QuestionKind, SelfReport, ServiceFailure};

/// The state of the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mood {
    /// Not ready yet; the agents we imitate report nothing then.
    Starting,
    Idle,
    Working,
    Blocked(QuestionKind),
    Done,
    Failed,
}

/// Everything that may be below the transcript.
#[derive(Debug)]
pub(crate) struct AgentView<'a> {
    pub(crate) size: ScreenSize,
    /// The part of an answer that has been streamed.
    pub(crate) partial: Option<&'a str>,
    /// The running tool: name and input.
    pub(crate) tool: Option<(&'a str, &'a str)>,
    pub(crate) spinner: Option<Spinner>,
    pub(crate) dialog: Option<DialogView<'a>>,
    /// The text in the input box; `None` before the box exists.
    pub(crate) draft: Option<&'a str>,
    pub(crate) busy: bool,
    /// Messages that wait for the turn to end.
    pub(crate) queue: Vec<&'a str>,
    /// A short-lived text in the footer.
    pub(crate) hint: Option<&'a str>,
}

#[derive(Clone, Debug)]
pub(crate) struct Spinner {
    /// Increases with every frame.
    pub(crate) frame: u64,
    pub(crate) verb: &'static str,
    pub(crate) elapsed: Duration,
}

#[derive(Debug)]
pub(crate) struct DialogView<'a> {
    pub(crate) ask: &'a AgentQuestion,
    pub(crate) options: &'a [String],
    /// The selected option, from 0.
    pub(crate) cursor: usize,
}

/// The rows below the transcript.
#[derive(Debug, Default)]
pub(crate) struct LivePanel {
    pub(crate) upper: Vec<ScreenRow>,
    pub(crate) lower: Vec<ScreenRow>,
    pub(crate) cursor: Option<(usize, usize)>,
    pub(crate) at_top: bool,
}

impl LivePanel {
    pub(crate) fn over(self, settled: &[ScreenRow]) -> ScreenFrame<'_> {
        let anchor = if self.at_top { PanelAnchor::AfterTranscript } else { PanelAnchor::Bottom };
        ScreenFrame { settled, upper: self.upper, lower: self.lower, cursor: self.cursor, anchor }
    }

    /// Adds an input box and puts the cursor after its text. Of a long draft, the end is visible.
    fn input(&mut self, prompt: &str, draft: &str, placeholder: &str, view: &AgentView) {
        let width = view.size.columns;
        let room = width.saturating_sub(text_width(prompt)).max(1);
        if draft.is_empty() {
            self.cursor = Some((self.lower.len(), text_width(prompt)));
            let style = if placeholder.is_empty() { RowStyle::Plain } else { RowStyle::Dim };
            self.lower.extend(wrap(placeholder, prompt, "  ", style, width).into_iter().take(1));
            return;
        }
        let rows = wrap(draft, "", "", RowStyle::Plain, room);
        let most = (view.size.rows / 2).max(1);
        let shown = &rows[rows.len().saturating_sub(most)..];
        for (at, row) in shown.iter().enumerate() {
            let prefix = if at == 0 { prompt } else { "  " };
            let prefix = if text_width(prefix) < width { prefix } else { "" };
            self.cursor = Some((self.lower.len(), text_width(prefix) + text_width(&row.text)));
            self.lower.push(ScreenRow::styled(format!("{prefix}{}", row.text), RowStyle::Plain));
        }
    }

    /// Adds options with a cursor. `mark` and `gap` have the same width.
    fn options(&mut self, dialog: &DialogView, mark: &str, gap: &str, width: usize) {
        for (at, label) in dialog.options.iter().enumerate() {
            let number = if dialog.ask.numbered { format!("{}. ", at + 1) } else { String::new() };
            let style = if at == dialog.cursor { RowStyle::Accent } else { RowStyle::Plain };
            let first = format!("{}{number}", if at == dialog.cursor { mark } else { gap });
            let rest = " ".repeat(text_width(&first));
            self.lower.extend(wrap(label, &first, &rest, style, width));
        }
    }

    fn text(&mut self, text: &str, indent: &str, style: RowStyle, width: usize) {
        self.lower.extend(wrap(text, indent, indent, style, width));
    }

    fn blank(&mut self) {
        self.lower.push(ScreenRow::blank());
    }
}

impl AgentLook {
    /// Returns the number of blank rows before an entry.
    pub(crate) fn lead(self, entry: &TranscriptEntry) -> usize {
        match self {
            AgentLook::Claude => claude::lead(entry),
            AgentLook::Codex => codex::lead(entry),
        }
    }

    pub(crate) fn entry(self, entry: &TranscriptEntry, width: usize) -> Vec<ScreenRow> {
        match self {
            AgentLook::Claude => claude::entry(entry, width),
            AgentLook::Codex => codex::entry(entry, width),
        }
    }

    pub(crate) fn live(self, view: &AgentView) -> LivePanel {
        match self {
            AgentLook::Claude => claude::live(view),
            AgentLook::Codex => codex::live(view),
        }
    }

    /// Returns the window title. `frame` counts tenths of a second. Claude Code omits the glyph if the terminal
    /// understands its state reports.
    pub(crate) fn title(self, mood: Mood, reports_state: bool, frame: u64) -> String {
        match self {
            AgentLook::Claude if reports_state => claude::NAME.to_owned(),
            AgentLook::Claude => claude::title(mood, frame),
            AgentLook::Codex => codex::title(mood, frame),
        }
    }

    /// Returns the labels of a dialog that has none in the scenario.
    pub(crate) fn usual_labels(self, kind: QuestionKind) -> &'static [&'static str] {
        match self {
            AgentLook::Claude => claude::labels(kind),
            AgentLook::Codex => codex::labels(kind),
        }
    }

    /// Returns the row for a failure of the service.
    pub(crate) fn failure(self, failure: &ServiceFailure) -> TranscriptEntry {
        match self {
            AgentLook::Claude => claude::failure(failure),
            AgentLook::Codex => TranscriptEntry::Error(codex::failure(failure).to_owned()),
        }
    }

    /// The name of the agent in OSC 7501.
    pub(crate) fn app(self) -> &'static str {
        match self {
            AgentLook::Claude => "claude-code",
            AgentLook::Codex => "codex",
        }
    }

    /// Returns the default self-reports. In the review loop Claude is 2.1.325, which reports its state to terminals that
    /// understand it. Turns of the loop may be too short for their screens to be read.
    pub(crate) fn usual_reports(self, play: PlayKind) -> &'static [SelfReport] {
        match self {
            AgentLook::Claude if play == PlayKind::Script => &[SelfReport::Title],
            _ => &[SelfReport::State, SelfReport::Title],
        }
    }

    /// Returns the row that closes a turn.
    pub(crate) fn closing(self, verb: &str, time: Duration) -> String {
        let time = self.took(time);
        match self {
            AgentLook::Claude => format!("✻ {verb} for {time}"),
            // Codex shows the time of day; a fixed time keeps screens comparable.
            AgentLook::Codex => format!("  Worked for {time} • 12:00"),
        }
    }

    /// Formats a duration as the agent does.
    pub(crate) fn took(self, time: Duration) -> String {
        match (self, time.as_secs()) {
            (AgentLook::Codex, 0) => "<1s".to_owned(),
            (AgentLook::Codex, seconds @ 60..) => format!("{}m {:02}s", seconds / 60, seconds % 60),
            (_, seconds @ 60..) => format!("{}m {}s", seconds / 60, seconds % 60),
            (_, seconds) => format!("{seconds}s"),
        }
    }

    /// The length in characters of the longest paste that is shown as it is.
    pub(crate) fn longest_paste(self) -> usize {
        match self {
            AgentLook::Claude => 800,
            AgentLook::Codex => 1000,
        }
    }

    pub(crate) fn paste_label(self, number: usize, text: &str) -> String {
        match self {
            AgentLook::Codex => format!("[Pasted Content {} chars]", text.chars().count()),
            AgentLook::Claude => match text.matches('\n').count() {
                0 => format!("[Pasted text #{number}]"),
                lines => format!("[Pasted text #{number} +{lines} lines]"),
            },
        }
    }
}

#[cfg(test)]
mod tests;
