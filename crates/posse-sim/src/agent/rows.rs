//! Wraps text into rows, and keeps the conversation so far. A row has no control characters, so that scenarios and prompts
//! cannot control the terminal.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Columns and rows of the terminal, never zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ScreenSize {
    pub(super) columns: usize,
    pub(super) rows: usize,
}

impl ScreenSize {
    /// Replaces 0, which means that the terminal does not know its size, with the usual size.
    pub(super) fn new(columns: u16, rows: u16) -> ScreenSize {
        let or = |value: u16, usual| if value == 0 { usual } else { usize::from(value) };
        ScreenSize { columns: or(columns, 80), rows: or(rows, 24) }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum RowStyle {
    #[default]
    Plain,
    Dim,
    Bold,
    Accent,
    Bad,
}

impl RowStyle {
    pub(super) fn sgr(self) -> &'static str {
        match self {
            RowStyle::Plain => "",
            RowStyle::Dim => "\x1b[2m",
            RowStyle::Bold => "\x1b[1m",
            RowStyle::Accent => "\x1b[38;5;173m",
            RowStyle::Bad => "\x1b[31m",
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ScreenRow {
    pub(super) text: String,
    pub(super) style: RowStyle,
}

/// Wraps text at words. The first row begins with `first`, every other with `rest`.
pub(super) fn wrap(text: &str, first: &str, rest: &str, style: RowStyle, width: usize) -> Vec<ScreenRow> {
    let mut rows = Vec::new();
    for line in text.split('\n') {
        let line = clean(line);
        let mut left = line.as_str();
        loop {
            let prefix = if rows.is_empty() { first } else { rest };
            // If the prefix does not fit, only the text is shown.
            let prefix = if prefix.width() < width { prefix } else { "" };
            let room = width - prefix.width();
            let end = fit(left, room);
            let (piece, after) = left.split_at(end);
            let piece = if piece.width() > room { "?" } else { piece };
            let piece = if after.is_empty() { piece } else { piece.trim_end_matches(' ') };
            rows.push(ScreenRow { text: format!("{prefix}{piece}"), style });
            left = after.trim_start_matches(' ');
            if left.is_empty() {
                break;
            }
        }
    }
    rows
}

/// Returns how many bytes of the text fit into `room` columns, if possible whole words; at least one character.
fn fit(text: &str, room: usize) -> usize {
    let mut used = 0;
    let mut after_space = 0;
    for (at, c) in text.char_indices() {
        used += c.width().unwrap_or(0);
        if used > room && at > 0 {
            return if c != ' ' && after_space > 0 { after_space } else { at };
        }
        if c == ' ' {
            after_space = at + 1;
        }
    }
    text.len()
}

fn clean(text: &str) -> String {
    if !text.chars().any(char::is_control) {
        return text.to_owned();
    }
    text.replace('\t', "    ").chars().filter(|c| !c.is_control()).collect()
}

/// A text to be wrapped: the prefix of its first row, the prefix of all others, and its style.
pub(super) type LookText = (String, &'static str, &'static str, RowStyle);

/// Texts one below the other, with this many blank rows before them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TranscriptEntry {
    pub(super) lead: usize,
    pub(super) texts: Vec<LookText>,
}

/// The conversation so far. Entries are wrapped once per width, not for each of ten frames a second.
#[derive(Debug)]
pub(super) struct Transcript {
    width: usize,
    entries: Vec<TranscriptEntry>,
    rows: Vec<ScreenRow>,
}

impl Transcript {
    pub(super) fn new(size: ScreenSize) -> Transcript {
        Transcript { width: size.columns, entries: Vec::new(), rows: Vec::new() }
    }

    pub(super) fn rows(&self) -> &[ScreenRow] {
        &self.rows
    }

    pub(super) fn push(&mut self, entry: TranscriptEntry) {
        let lead = if self.rows.is_empty() { 0 } else { entry.lead };
        self.rows.extend(std::iter::repeat_n(ScreenRow::default(), lead));
        for (text, first, rest, style) in &entry.texts {
            self.rows.extend(wrap(text, first, rest, *style, self.width));
        }
        self.entries.push(entry);
    }

    pub(super) fn resize(&mut self, size: ScreenSize) {
        self.width = size.columns;
        self.rows.clear();
        std::mem::take(&mut self.entries).into_iter().for_each(|entry| self.push(entry));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(rows: Vec<ScreenRow>) -> Vec<String> {
        rows.into_iter().map(|row| row.text).collect()
    }

    #[test]
    fn text_wraps_at_words_and_keeps_indentation() {
        let wrapped = |text, width| texts(wrap(text, "● ", "  ", RowStyle::Plain, width));
        assert_eq!(wrapped("one two three", 9), ["● one two", "  three"]);
        assert_eq!(wrapped("one\n\n  two", 20), ["● one", "  ", "    two"]);
        assert_eq!(wrapped("abcdefghij", 6), ["● abcd", "  efgh", "  ij"]);
        assert_eq!(wrapped("", 10), ["● "]);
        assert_eq!(wrapped("a\u{1b}[2Jb\tc", 40), ["● a[2Jb    c"]);
        assert_eq!(wrapped("日本語", 5), ["● 日", "  本", "  語"]);
        assert_eq!(wrapped("ab 日", 1), ["a", "b", "?"]);
    }
}
