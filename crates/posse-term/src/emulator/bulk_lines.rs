//! A shortcut for floods: lines that scroll off the screen within one piece of output are not drawn.
//!
//! A program that prints a thousand lines at once shows only the last screenful of them. Drawing the others costs
//! nearly all the time of a flood, although only their text remains, in the history. If the lines are plain (text,
//! colours and line breaks), their text is added to the history directly:
//!
//! 1. The first line is drawn as usual. If its line break scrolls the whole main screen by one row, so will the
//!    others.
//! 2. Line breaks push the rest of the old screen into the history.
//! 3. The text of all lines but the last screenful is appended to the history, and their attributes are applied.
//! 4. The last screenful is drawn. Rows that step 2 left blank and that scroll off now are not kept.
//!
//! The result is the same as that of drawing everything; `properties` checks this.

use memchr::memchr;
use unicode_width::UnicodeWidthChar as _;

use super::Emulator;
use super::history::History;
use super::text::Cluster;

/// The longest parameters of a colour sequence in a plain line. Longer ones are drawn as usual.
const COLOURS_MAX: usize = 64;

impl Emulator {
    /// Feeds the plain lines at the beginning of `bytes` without drawing all of them, and returns the rest.
    pub(super) fn bulk_lines<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let height = usize::from(self.size.rows());
        // Worth it only if more lines are skipped than drawn. A line has at least two bytes.
        if height < 2 || bytes.len() < 4 * height || !self.scrolls_at_line_break() {
            return bytes;
        }
        let Some(first) = memchr(b'\n', bytes) else { return bytes };
        let (plain, lines) = plain_lines(&bytes[first + 1..]);
        if lines < 2 * height {
            return bytes;
        }
        self.scan(&bytes[..first]);
        let rows = self.terminal.callbacks().history.rows;
        let bottom = self.scrolls_at_line_break() && self.is_plain_ground();
        self.scan(b"\n");
        let rest = &bytes[first + 1..];
        let scrolled = self.terminal.callbacks().history.rows == rows + 1;
        if !bottom || !scrolled || self.terminal.screen().cursor_position().1 != 0 {
            return rest;
        }
        let drawn_from = last_lines(plain, height);
        self.draw(&vec![b'\n'; height - 1]);
        let mut attributes = Vec::new();
        let mut row = BulkRow::default();
        let history = &mut self.terminal.callbacks_mut().history;
        for line in plain[..drawn_from].split_terminator("\r\n") {
            keep_line(line, usize::from(self.size.cols()), &mut row, history, &mut attributes);
        }
        self.draw(&attributes);
        self.offset += drawn_from as u64;
        self.terminal.callbacks_mut().blank_rows = height - 1;
        self.scan(&plain.as_bytes()[drawn_from..]);
        self.terminal.callbacks_mut().blank_rows = 0;
        &rest[plain.len()..]
    }

    /// Returns whether a line break scrolls the main screen, unless there is a scroll region.
    fn scrolls_at_line_break(&self) -> bool {
        let screen = self.terminal.screen();
        !screen.alternate_screen() && screen.cursor_position().0 + 1 == self.size.rows()
    }

    /// Returns whether text is drawn unchanged from here on.
    fn is_plain_ground(&self) -> bool {
        self.is_plain() && self.printed.cluster == Cluster::None && self.scanner.is_at_ground()
    }
}

/// Returns the plain lines at the beginning, and their number. Each ends with `\r\n`.
fn plain_lines(bytes: &[u8]) -> (&str, usize) {
    let mut end = 0;
    let mut lines = 0;
    while let Some(length) = memchr(b'\n', &bytes[end..]).filter(|length| is_plain(&bytes[end..end + length])) {
        end += length + 1;
        lines += 1;
    }
    // Every character was checked.
    (std::str::from_utf8(&bytes[..end]).unwrap_or_default(), lines)
}

/// Returns whether a line without its `\n` has only characters that take up columns, colours, and a `\r` at its end.
fn is_plain(line: &[u8]) -> bool {
    let Some(mut rest) = line.strip_suffix(b"\r") else { return false };
    loop {
        let text = rest.iter().position(|byte| !matches!(byte, 0x20..=0x7e)).unwrap_or(rest.len());
        rest = &rest[text..];
        let Some(first) = rest.first() else { return true };
        let length = match first {
            0x1b => colours(rest),
            // Other characters are emoji, or combine with the character before them.
            0xc2..=0xee => wide_character(rest),
            _ => None,
        };
        match length.and_then(|length| rest.get(length..)) {
            Some(left) => rest = left,
            None => return false,
        }
    }
}

/// Returns the length of the colour sequence at the start, if vt100 understands it unchanged.
fn colours(bytes: &[u8]) -> Option<usize> {
    let body = bytes.strip_prefix(b"\x1b[")?;
    let length = body.iter().take(COLOURS_MAX).position(|byte| !matches!(byte, b'0'..=b'9' | b';'))?;
    let underline = body[..length].windows(2).any(|two| two == b"58");
    (body[length] == b'm' && !underline).then_some(length + 3)
}

/// Returns the length of the character of two or three bytes at the start, if it takes up columns.
fn wide_character(bytes: &[u8]) -> Option<usize> {
    let length = if bytes[0] < 0xe0 { 2 } else { 3 };
    let c = std::str::from_utf8(bytes.get(..length)?).ok()?.chars().next()?;
    matches!(c.width(), Some(1 | 2)).then_some(length)
}

fn last_lines(text: &str, count: usize) -> usize {
    memchr::memrchr_iter(b'\n', text.as_bytes()).nth(count).map_or(0, |end| end + 1)
}

#[derive(Default)]
struct BulkRow {
    text: String,
    column: usize,
}

impl BulkRow {
    /// Appends text of which every character is `width` columns wide, and passes full rows to the history.
    fn push(&mut self, mut text: &str, width: usize, columns: usize, history: &mut History) {
        while !text.is_empty() {
            if self.column + width > columns {
                // A row is wrapped only if its last column is filled.
                self.finish(self.column == columns, history);
            }
            // Text longer than one character is ASCII.
            let taken = if text.is_ascii() { text.len().min(columns - self.column) } else { text.len() };
            self.text.push_str(&text[..taken]);
            self.column += if text.is_ascii() { taken } else { width };
            text = &text[taken..];
        }
    }

    fn finish(&mut self, wrapped: bool, history: &mut History) {
        history.push_row(&self.text, wrapped);
        self.text.clear();
        self.column = 0;
    }
}

/// Appends the rows of one plain line to the history, as they would scroll off, and its colours to `attributes`.
fn keep_line(line: &str, columns: usize, row: &mut BulkRow, history: &mut History, attributes: &mut Vec<u8>) {
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            ' '..='~' => rest.bytes().position(|byte| !matches!(byte, b' '..=b'~')).unwrap_or(rest.len()),
            '\x1b' => rest.find('m').map_or(rest.len(), |end| end + 1),
            _ => first.len_utf8(),
        };
        let (part, behind) = rest.split_at(length);
        rest = behind;
        if first != '\x1b' {
            row.push(part, first.width().unwrap_or(0), columns, history);
            continue;
        }
        if matches!(part, "\x1b[m" | "\x1b[0m") {
            attributes.clear();
        }
        attributes.extend_from_slice(part.as_bytes());
    }
    row.finish(false, history);
}

#[cfg(test)]
mod tests {
    use posse_core::screen::Size;

    use super::*;
    use crate::emulator::HistoryLimit;

    #[track_caller]
    fn check(before: &str, lines: &str, in_bulk: bool) {
        let mut emulator = Emulator::new(Size::clamped(4, 10), HistoryLimit::default());
        emulator.feed(before.as_bytes());
        let lines = lines.repeat(20);
        assert_eq!(emulator.bulk_lines(lines.as_bytes()).is_empty(), in_bulk);
    }

    #[test]
    fn only_plain_lines_at_the_bottom_are_taken_in_bulk() {
        let bottom = "\r\n\r\n\r\n";
        for plain in ["\r\n", "one two\r\n", "\x1b[1;32mlonger than\x1b[0m the screen\r\n", "é漢│\r\n"] {
            check(bottom, plain, true);
        }
        for other in ["a\n", "a\tb\r\n", "\x1b[58;5;1ma\r\n", "\x1b[Ka\r\n", "e\u{301}\r\n", "👍\r\n", "a\rb\r\n"] {
            check(bottom, other, false);
        }
        check("", "a\r\n", false);
        for state in ["\x1b[?1049h", "\x1b[1;3r", "\x1b[2;4r", "\x1b[?7l", "\x1b[4h", "\x1b(0"] {
            check(&format!("{state}\x1b[4H"), "a\r\n", false);
        }
        check(&format!("{bottom}\x1b]0;title"), "a\r\n", false);
    }
}
