//! The rows that scrolled off, as text. The scrollback of vt100 costs 3.8 MB per 1,000 rows.

use std::collections::VecDeque;
use std::fmt;

use vt100::capture::{BasicFormattedCaptureState, RowContents, basic_formatted_to_plain};

/// The longest line joined from wrapped rows; a longer line is split. A megabyte without a line break does not become one
/// line.
const LINE_MAX: usize = 16 << 10;

/// The initial capacity of a history, up to twice that.
const SMALLEST: usize = 2 << 10;

/// The size limits of a history. If either is exceeded, the oldest lines are dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistoryLimit {
    pub rows: usize,
    pub bytes: usize,
}

impl Default for HistoryLimit {
    /// Enough for the last answer of an agent and its context, and small enough for hundreds of terminals.
    fn default() -> Self {
        Self { rows: 5_000, bytes: 256 << 10 }
    }
}

#[derive(Default)]
pub(super) struct History {
    pub(super) limit: HistoryLimit,
    /// All lines, one behind the other: thousands of small strings would take twice the memory.
    text: String,
    /// The start of the oldest line. The text before it is removed when room is needed.
    start: usize,
    lengths: VecDeque<u32>,
    /// The last line was wrapped at the margin: the next row continues it.
    pub(super) open: bool,
    /// The number of rows ever pushed, kept or not.
    pub(super) rows: u64,
    /// A row with its colours and without.
    scratch: (String, String),
}

impl History {
    pub(super) fn new(limit: HistoryLimit) -> Self {
        Self { limit, ..Self::default() }
    }

    pub(super) fn lines(&self) -> impl Iterator<Item = &str> {
        let mut begin = self.start;
        self.lengths.iter().map(move |length| {
            let end = begin + *length as usize;
            &self.text[std::mem::replace(&mut begin, end)..end]
        })
    }

    pub(super) fn with_line_breaks(&self) -> String {
        let mut text = String::with_capacity(self.bytes() + self.lengths.len());
        for line in self.lines() {
            text.push_str(line);
            text.push('\n');
        }
        text
    }

    pub(super) fn clear(&mut self) {
        *self = Self { rows: self.rows, ..Self::new(self.limit) };
    }

    fn bytes(&self) -> usize {
        self.text.len() - self.start
    }

    pub(super) fn push(&mut self, contents: &RowContents<'_>) {
        let (mut captured, mut row) = std::mem::take(&mut self.scratch);
        captured.clear();
        row.clear();
        let wrapped = capture(contents, &mut captured);
        row.extend(basic_formatted_to_plain(&captured));
        self.push_row(&row, wrapped);
        self.scratch = (captured, row);
    }

    /// Appends one row. `wrapped` means that its text continues in the next row.
    pub(super) fn push_row(&mut self, row: &str, wrapped: bool) {
        self.rows += 1;
        self.make_room(row.len());
        let last = self.lengths.back().filter(|length| self.open && **length as usize + row.len() <= LINE_MAX);
        let begin = self.text.len() - last.map_or(0, |length| *length as usize);
        if last.is_some() {
            self.lengths.pop_back();
        }
        self.text.push_str(row);
        if !wrapped {
            let line = self.text[begin..].trim_end_matches(' ');
            self.text.truncate(begin + line.len());
        }
        // A row is far shorter than 4 GB.
        self.lengths.push_back((self.text.len() - begin) as u32);
        self.open = wrapped;
        while self.lengths.len() > self.limit.rows || self.bytes() > self.limit.bytes {
            match self.lengths.pop_front() {
                Some(length) => self.start += length as usize,
                None => break,
            }
        }
        self.open &= !self.lengths.is_empty();
    }

    /// Makes room for more text. The capacity doubles up to an eighth more than the limit; then dropped text is removed from
    /// the front instead.
    fn make_room(&mut self, wanted: usize) {
        let full = self.limit.bytes + self.limit.bytes / 8;
        let short = |text: &String| text.capacity() - text.len() < wanted;
        if short(&self.text) && (self.start > self.text.len() / 8 || self.text.capacity() >= full) {
            self.text.drain(..self.start);
            self.start = 0;
        }
        if short(&self.text) {
            let needed = self.text.len() + wanted;
            let mut room = full;
            while room / 2 >= needed.max(SMALLEST) {
                room /= 2;
            }
            self.text.reserve_exact(room.max(needed) - self.text.len());
        }
    }
}

/// Writes the row with its colours to `out`, and returns whether the row is wrapped.
fn capture(contents: &RowContents<'_>, out: &mut String) -> bool {
    let mut state = BasicFormattedCaptureState::new();
    // Neither writer fails where the result matters.
    let _ = contents.write_formatted_basic(out, &mut state);
    // vt100 does not report whether the row is wrapped. If it is not, a second row starts with a line break.
    let mut first = First(None);
    let _ = contents.write_formatted_basic(&mut first, &mut state);
    first.0 != Some('\n')
}

/// Keeps the first character and stops the writer.
struct First(Option<char>);

impl fmt::Write for First {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0 = text.chars().next();
        if self.0.is_some() { Err(fmt::Error) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(limit: HistoryLimit, rows: &[(&str, bool)], expected: &[&str]) {
        let mut history = History::new(limit);
        rows.iter().for_each(|(row, wrapped)| history.push_row(row, *wrapped));
        assert_eq!(history.lines().collect::<Vec<_>>(), expected);
        assert_eq!(history.bytes(), expected.iter().map(|line| line.len()).sum::<usize>());
    }

    #[test]
    fn wrapped_rows_are_one_line() {
        let limit = HistoryLimit::default();
        check(limit, &[("one", false), ("tw", true), ("o  ", false), ("", false)], &["one", "two", ""]);
        check(limit, &[("a ", true), ("b", true)], &["a b"]);
        check(limit, &[("a ", true), ("  ", false)], &["a"]);
    }

    #[test]
    fn oldest_lines_are_dropped() {
        let rows = [("one", false), ("two", false), ("three", false)];
        check(HistoryLimit { rows: 2, bytes: 100 }, &rows, &["two", "three"]);
        check(HistoryLimit { rows: 9, bytes: 8 }, &rows, &["two", "three"]);
        check(HistoryLimit { rows: 9, bytes: 7 }, &rows, &["three"]);
        check(HistoryLimit { rows: 0, bytes: 0 }, &rows, &[]);
        check(HistoryLimit { rows: 0, bytes: 0 }, &[("a", true), ("b", true)], &[]);
    }

    #[test]
    fn endless_line_is_split() {
        let mut history = History::new(HistoryLimit { rows: 10, bytes: 1 << 20 });
        (0..1000).for_each(|_| history.push_row(&"x".repeat(100), true));
        assert!(history.lines().all(|line| line.len() <= LINE_MAX));
        assert_eq!(history.lines().map(str::len).sum::<usize>(), 100_000);
    }

    #[test]
    fn history_stays_within_its_limit() {
        let limit = HistoryLimit { rows: 5_000, bytes: 64 << 10 };
        let mut history = History::new(limit);
        for n in 0..100_000 {
            history.push_row(&format!("{n} {}", "é".repeat(n % 53)), n % 7 == 0);
        }
        assert!(history.text.capacity() <= limit.bytes + limit.bytes / 8, "{}", history.text.capacity());
        assert!(history.bytes() > limit.bytes - 1_000);
        assert!(history.lines().last().is_some_and(|line| line.starts_with("99999 é")));
    }
}
