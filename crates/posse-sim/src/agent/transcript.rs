//! The conversation so far. Entries are wrapped once per width, not for each of ten frames a second.

use crate::agent::rows::{ScreenRow, ScreenSize, wrap};
use crate::scenario::AgentLook;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TranscriptEntry {
    User(String),
    Answer(String),
    Tool {
        name: String,
        input: String,
        output: String,
    },
    Approved(String),
    Refused(String),
    Answered {
        question: String,
        answer: String,
    },
    Declined(String),
    Error(String),
    /// An error directly below the prompt.
    Notice(String),
    Interrupted,
    Closing(String),
}

#[derive(Debug, Default)]
pub(crate) struct Transcript {
    look: AgentLook,
    width: usize,
    entries: Vec<TranscriptEntry>,
    rows: Vec<ScreenRow>,
}

impl Transcript {
    pub(crate) fn new(look: AgentLook, size: ScreenSize) -> Transcript {
        Transcript { look, width: size.columns, ..Transcript::default() }
    }

    pub(crate) fn rows(&self) -> &[ScreenRow] {
        &self.rows
    }

    pub(crate) fn push(&mut self, entry: TranscriptEntry) {
        let lead = if self.rows.is_empty() { 0 } else { self.look.lead(&entry) };
        let texts = self.look.entry(&entry);
        if !texts.is_empty() {
            self.rows.extend(std::iter::repeat_n(ScreenRow::blank(), lead));
        }
        for (text, first, rest, style) in texts {
            self.rows.extend(wrap(&text, first, rest, style, self.width));
        }
        self.entries.push(entry);
    }

    pub(crate) fn resize(&mut self, size: ScreenSize) {
        self.width = size.columns;
        self.rows.clear();
        for entry in std::mem::take(&mut self.entries) {
            self.push(entry);
        }
    }
}
