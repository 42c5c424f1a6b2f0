//! How things are drawn, per agent. Looks only draw: what is going on is decided by the stage and comes in
//! as a [`View`].

mod claude;
mod codex;
mod plain;

use std::time::Duration;

use serde::Deserialize;

use crate::paint::{Anchor, Frame};
use crate::rows::{Row, Size, Style, text_width, wrap};
use crate::scenario::{Ask, AskKind, BusyTitle, Failure, PlayKind, SelfReport};
use crate::transcript::Entry;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Look {
    Claude,
    Codex,
    /// Lines and nothing else.
    Plain,
}

/// What the agent is doing, as it would say itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mood {
    /// Not ready yet; the agents we imitate say nothing then.
    Starting,
    Idle,
    Working,
    Blocked(AskKind),
    Done,
    Failed,
}

/// Everything a look may show below the transcript.
#[derive(Debug)]
pub(crate) struct View<'a> {
    pub(crate) size: Size,
    pub(crate) directory: &'a str,
    /// The part of an answer that has been streamed.
    pub(crate) partial: Option<&'a str>,
    /// The tool that runs: name and input.
    pub(crate) tool: Option<(&'a str, &'a str)>,
    pub(crate) spinner: Option<Spinner<'a>>,
    pub(crate) dialog: Option<DialogView<'a>>,
    /// Whether there is an input at all yet.
    pub(crate) input: Input<'a>,
    pub(crate) busy: bool,
    /// Messages that wait for the turn to end.
    pub(crate) queue: Vec<&'a str>,
    /// Something said in the footer for a moment.
    pub(crate) hint: Option<&'a str>,
}

#[derive(Debug)]
pub(crate) enum Input<'a> {
    Absent,
    Draft(&'a str),
}

#[derive(Clone, Debug)]
pub(crate) struct Spinner<'a> {
    /// Counts up with every frame.
    pub(crate) frame: u64,
    pub(crate) text: SpinnerText<'a>,
    pub(crate) elapsed: Duration,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum SpinnerText<'a> {
    /// The usual row; the verb is drawn where the look has one.
    Verb(&'a str),
    Row(&'a str),
}

#[derive(Debug)]
pub(crate) struct DialogView<'a> {
    pub(crate) ask: &'a Ask,
    pub(crate) options: &'a [String],
    /// The option under the cursor, from 0.
    pub(crate) cursor: usize,
}

/// What a look draws below the transcript.
#[derive(Debug, Default)]
pub(crate) struct Live {
    pub(crate) upper: Vec<Row>,
    pub(crate) lower: Vec<Row>,
    pub(crate) cursor: Option<(usize, usize)>,
    pub(crate) at_top: bool,
}

impl Live {
    pub(crate) fn over(self, settled: &[Row]) -> Frame<'_> {
        let anchor = if self.at_top { Anchor::AfterTranscript } else { Anchor::Bottom };
        Frame { settled, upper: self.upper, lower: self.lower, cursor: self.cursor, anchor }
    }

    /// Adds an input of one or more rows and puts the cursor behind its text. A long draft shows its end.
    fn input(&mut self, prompt: &str, draft: &str, placeholder: &str, view: &View) {
        let width = view.size.columns;
        let room = width.saturating_sub(text_width(prompt)).max(1);
        if draft.is_empty() {
            self.cursor = Some((self.lower.len(), text_width(prompt)));
            let style = if placeholder.is_empty() { Style::Plain } else { Style::Dim };
            self.lower.extend(wrap(placeholder, prompt, "  ", style, width).into_iter().take(1));
            return;
        }
        let rows = wrap(draft, "", "", Style::Plain, room);
        let most = (view.size.rows / 2).max(1);
        let shown = &rows[rows.len().saturating_sub(most)..];
        for (at, row) in shown.iter().enumerate() {
            let prefix = if at == 0 { prompt } else { "  " };
            let prefix = if text_width(prefix) < width { prefix } else { "" };
            self.cursor = Some((self.lower.len(), text_width(prefix) + text_width(&row.text)));
            self.lower.push(Row::styled(format!("{prefix}{}", row.text), Style::Plain));
        }
    }

    /// Adds options with a cursor. `mark` and `gap` must be equally wide.
    fn options(&mut self, dialog: &DialogView, mark: &str, gap: &str, width: usize) {
        for (at, label) in dialog.options.iter().enumerate() {
            let number = if dialog.ask.numbered { format!("{}. ", at + 1) } else { String::new() };
            let style = if at == dialog.cursor { Style::Accent } else { Style::Plain };
            let first = format!("{}{number}", if at == dialog.cursor { mark } else { gap });
            let rest = " ".repeat(text_width(&first));
            self.lower.extend(wrap(label, &first, &rest, style, width));
        }
    }

    fn text(&mut self, text: &str, indent: &str, style: Style, width: usize) {
        self.lower.extend(wrap(text, indent, indent, style, width));
    }

    fn blank(&mut self) {
        self.lower.push(Row::blank());
    }
}

impl Look {
    /// Blank rows before an entry.
    pub(crate) fn lead(self, entry: &Entry) -> usize {
        match self {
            Look::Claude => claude::lead(entry),
            Look::Codex => codex::lead(entry),
            Look::Plain => 0,
        }
    }

    pub(crate) fn entry(self, entry: &Entry, width: usize) -> Vec<Row> {
        match self {
            Look::Claude => claude::entry(entry, width),
            Look::Codex => codex::entry(entry, width),
            Look::Plain => plain::entry(entry, width),
        }
    }

    pub(crate) fn live(self, view: &View) -> Live {
        match self {
            Look::Claude => claude::live(view),
            Look::Codex => codex::live(view),
            Look::Plain => plain::live(view),
        }
    }

    /// The window title for a mood; none means that nothing is said. `frame` counts tenths of a second.
    pub(crate) fn title(self, mood: Mood, name: &str, busy: BusyTitle, frame: u64) -> Option<String> {
        match self {
            _ if mood == Mood::Starting => None,
            Look::Claude => Some(claude::title(mood, name, busy, frame)),
            Look::Codex => Some(codex::title(mood, name, frame)),
            Look::Plain => Some(name.to_owned()),
        }
    }

    /// The labels of a dialog that names none.
    pub(crate) fn usual_labels(self, kind: AskKind) -> &'static [&'static str] {
        match self {
            Look::Claude => claude::labels(kind),
            Look::Codex => codex::labels(kind),
            Look::Plain => plain::labels(kind),
        }
    }

    /// The row that tells of a failure of the service.
    pub(crate) fn failure(self, failure: Failure) -> Entry {
        match self {
            Look::Claude => claude::failure(failure),
            Look::Codex => Entry::Error(codex::failure(failure).to_owned()),
            Look::Plain => Entry::Error(plain::failure(failure).to_owned()),
        }
    }

    /// What a mood is called in OSC 7501, and by whom.
    pub(crate) fn app(self) -> &'static str {
        match self {
            Look::Claude => "claude-code",
            Look::Codex => "codex",
            Look::Plain => "actor",
        }
    }

    pub(crate) fn usual_name(self) -> &'static str {
        match self {
            Look::Claude => "Claude Code",
            Look::Codex => "project",
            Look::Plain => "actor",
        }
    }

    /// In the loop Claude is the one of 2.1.325, which tells its state to a terminal that understands it, as ours does.
    /// Turns that take no time are over before anyone has looked at a screen; they must be heard.
    pub(crate) fn usual_reports(self, play: PlayKind) -> &'static [SelfReport] {
        match self {
            Look::Claude if play == PlayKind::Script => &[SelfReport::Title],
            Look::Claude => &[SelfReport::State, SelfReport::Title],
            Look::Codex => &[SelfReport::State, SelfReport::Title],
            Look::Plain => &[],
        }
    }

    pub(crate) fn usual_closing(self) -> &'static str {
        match self {
            Look::Claude => "✻ {verb} for {time}",
            // The real one ends with the time of day; a fixed one keeps screens comparable.
            Look::Codex => "  Worked for {time} • 12:00",
            Look::Plain => "done in {time}",
        }
    }

    /// How long something took, as this agent writes it.
    pub(crate) fn took(self, time: Duration) -> String {
        match (self, time.as_secs()) {
            (Look::Codex, 0) => "<1s".to_owned(),
            (Look::Codex, seconds @ 60..) => format!("{}m {:02}s", seconds / 60, seconds % 60),
            (_, seconds @ 60..) => format!("{}m {}s", seconds / 60, seconds % 60),
            (_, seconds) => format!("{seconds}s"),
        }
    }

    /// From how many characters on a paste is shown as a label, and the label.
    pub(crate) fn usual_fold(self) -> usize {
        match self {
            Look::Claude => 800,
            Look::Codex => 1000,
            Look::Plain => 0,
        }
    }

    pub(crate) fn paste_label(self, number: usize, text: &str) -> String {
        match self {
            Look::Codex => format!("[Pasted Content {} chars]", text.chars().count()),
            _ => match text.matches('\n').count() {
                0 => format!("[Pasted text #{number}]"),
                lines => format!("[Pasted text #{number} +{lines} lines]"),
            },
        }
    }

    pub(crate) fn y_accepts(self) -> bool {
        self != Look::Claude
    }
}

#[cfg(test)]
mod tests;
