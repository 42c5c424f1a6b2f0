//! What was said so far. Entries are wrapped once per width; a busy screen at ten frames a second must not
//! wrap its whole history each time.

use crate::look::Look;
use crate::rows::{Row, Size};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    Splash(String),
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
        tool: String,
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
    /// An error that hangs below the prompt, without a word of the agent.
    Notice(String),
    Interrupted,
    Closing(String),
}

/// Old entries beyond this many rows are dropped; nobody scrolls back further in a test.
const MOST_ROWS: usize = 2000;

#[derive(Debug)]
pub(crate) struct Transcript {
    look: Look,
    width: usize,
    /// Each entry with the number of rows it takes.
    entries: Vec<(Entry, usize)>,
    rows: Vec<Row>,
}

impl Transcript {
    pub(crate) fn new(look: Look, size: Size) -> Transcript {
        Transcript { look, width: size.columns, entries: Vec::new(), rows: Vec::new() }
    }

    pub(crate) fn rows(&self) -> &[Row] {
        &self.rows
    }

    pub(crate) fn push(&mut self, entry: Entry) {
        let before = self.rows.len();
        let lead = if before == 0 { 0 } else { self.look.lead(&entry) };
        let rows = self.look.entry(&entry, self.width);
        if !rows.is_empty() {
            self.rows.extend(std::iter::repeat_n(Row::blank(), lead));
            self.rows.extend(rows);
        }
        self.entries.push((entry, self.rows.len() - before));
    }

    pub(crate) fn last(&self) -> Option<&Entry> {
        self.entries.last().map(|(entry, _)| entry)
    }

    pub(crate) fn pop(&mut self) {
        if let Some((_, rows)) = self.entries.pop() {
            self.rows.truncate(self.rows.len() - rows);
        }
    }

    pub(crate) fn resize(&mut self, size: Size) {
        self.width = size.columns;
        self.rows.clear();
        for (entry, _) in std::mem::take(&mut self.entries) {
            self.push(entry);
        }
    }

    /// Drops old entries if there are too many, but no more than `allowed` rows; says how many rows went.
    pub(crate) fn trim(&mut self, allowed: usize) -> usize {
        if self.rows.len() <= MOST_ROWS {
            return 0;
        }
        let mut gone = 0;
        let mut entries = 0;
        for (_, rows) in &self.entries {
            if gone + rows > allowed || self.rows.len() - gone <= MOST_ROWS / 2 {
                break;
            }
            gone += rows;
            entries += 1;
        }
        self.entries.drain(..entries);
        self.rows.drain(..gone);
        gone
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_rows_go_when_there_are_too_many_and_only_as_many_as_allowed() {
        let mut transcript = Transcript::new(Look::Plain, Size::new(80, 24));
        for n in 0..3000 {
            transcript.push(Entry::Answer(format!("{n}")));
        }
        let before = transcript.rows().len();
        assert_eq!(transcript.trim(10), 10);
        let gone = transcript.trim(usize::MAX);
        assert_eq!(transcript.rows().len(), before - 10 - gone);
        assert_eq!(transcript.rows().len(), MOST_ROWS / 2);
        assert_eq!(transcript.trim(usize::MAX), 0);
    }
}
