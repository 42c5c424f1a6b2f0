//! The conversation so far. Entries are wrapped once per width, not for each of ten frames a second.

use crate::agent::rows::{ScreenRow, ScreenSize};
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
    Approved {
        command: String,
    },
    Refused {
        command: String,
    },
    Answered {
        question: String,
        answer: String,
    },
    Declined {
        question: String,
    },
    Error(String),
    /// An error directly below the prompt.
    Notice(String),
    Interrupted,
    Closing(String),
}

#[derive(Debug)]
pub(crate) struct Transcript {
    look: AgentLook,
    width: usize,
    /// The entries, each with its number of rows.
    entries: Vec<(TranscriptEntry, usize)>,
    rows: Vec<ScreenRow>,
}

impl Transcript {
    pub(crate) fn new(look: AgentLook, size: ScreenSize) -> Transcript {
        Transcript { look, width: size.columns, entries: Vec::new(), rows: Vec::new() }
    }

    pub(crate) fn rows(&self) -> &[ScreenRow] {
        &self.rows
    }

    pub(crate) fn push(&mut self, entry: TranscriptEntry) {
        let before = self.rows.len();
        let lead = if before == 0 { 0 } else { self.look.lead(&entry) };
        let rows = self.look.entry(&entry, self.width);
        if !rows.is_empty() {
            self.rows.extend(std::iter::repeat_n(ScreenRow::blank(), lead));
            self.rows.extend(rows);
        }
        self.entries.push((entry, self.rows.len() - before));
    }

    pub(crate) fn last(&self) -> Option<&TranscriptEntry> {
        self.entries.last().map(|(entry, _)| entry)
    }

    pub(crate) fn pop(&mut self) {
        if let Some((_, rows)) = self.entries.pop() {
            self.rows.truncate(self.rows.len() - rows);
        }
    }

    pub(crate) fn resize(&mut self, size: ScreenSize) {
        self.width = size.columns;
        self.rows.clear();
        for (entry, _) in std::mem::take(&mut self.entries) {
            self.push(entry);
        }
    }
}
