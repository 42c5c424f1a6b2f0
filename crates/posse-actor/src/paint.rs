//! Rows to escape bytes: writes what changed since the last frame and nothing else.
//!
//! On the main screen rows are counted from the first one ever drawn. Finished rows scroll away and can
//! no longer be reached; only the last screenful is compared and redrawn, by moving the cursor relative
//! to where it rests. On the alternate screen every row has its place.

use std::fmt::Write;

use crate::rows::{Row, Size};

/// What one frame shows: `settled` rows only ever grow at the end (or the painter is told), `upper` follows
/// them, `lower` stands at the bottom.
#[derive(Debug)]
pub(crate) struct Frame<'a> {
    pub(crate) settled: &'a [Row],
    pub(crate) upper: Vec<Row>,
    pub(crate) lower: Vec<Row>,
    /// Row and column inside `lower`; hidden if none.
    pub(crate) cursor: Option<(usize, usize)>,
    pub(crate) anchor: Anchor,
}

/// Where `lower` stands on the alternate screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Anchor {
    Bottom,
    AfterTranscript,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Screen {
    Main,
    Alternate,
}

#[derive(Debug)]
pub(crate) struct Painter {
    screen: Screen,
    /// Frames are put between the marks of mode 2026, so that nobody sees half of one.
    synchronised: bool,
    /// Index of the first row that is still on the screen.
    base: usize,
    /// The rows from `base` on, as they are on the screen.
    shown: Vec<Row>,
    /// Row (counted like `base`) and column where the cursor is.
    cursor: (usize, usize),
    cursor_hidden: bool,
    must_clear: bool,
}

impl Painter {
    pub(crate) fn new(screen: Screen, synchronised: bool) -> Painter {
        Painter {
            screen,
            synchronised,
            base: 0,
            shown: Vec::new(),
            cursor: (0, 0),
            cursor_hidden: false,
            must_clear: screen == Screen::Alternate,
        }
    }

    /// The next frame starts from a cleared screen: after a resize nobody knows where things are.
    pub(crate) fn clear(&mut self) {
        self.must_clear = true;
    }

    /// The first rows of the transcript were dropped. Only rows that cannot be reached may be.
    pub(crate) fn forget(&mut self, rows: usize) {
        self.base = self.base.saturating_sub(rows);
        self.cursor.0 = self.cursor.0.saturating_sub(rows);
    }

    /// How many of the first rows may be forgotten.
    pub(crate) fn forgettable(&self) -> usize {
        self.base
    }

    /// Makes room for foreign output after the `settled` rows: the bytes that leave the cursor there. On the main
    /// screen the next frame goes on below that output, elsewhere it starts afresh.
    pub(crate) fn step_aside(&mut self, settled: usize) -> String {
        let mut out = String::new();
        if self.screen == Screen::Alternate {
            self.must_clear = true;
            out.push_str("\x1b[H\x1b[2J");
            return out;
        }
        if !self.shown.is_empty() && settled >= self.base {
            self.go_to_row(&mut out, settled);
            out.push_str("\r\x1b[J");
        }
        self.base = settled;
        self.shown.clear();
        self.cursor = (settled, 0);
        out
    }

    /// The bytes that turn the last frame into this one; empty if they are equal.
    pub(crate) fn paint(&mut self, frame: &Frame, size: Size) -> String {
        let mut out = String::new();
        match self.screen {
            Screen::Main => self.paint_main(&mut out, frame, size),
            Screen::Alternate => self.paint_alternate(&mut out, frame, size),
        }
        if out.is_empty() || !self.synchronised {
            return out;
        }
        format!("\x1b[?2026h{out}\x1b[?2026l")
    }

    fn paint_main(&mut self, out: &mut String, frame: &Frame, size: Size) {
        let settled = frame.settled.len();
        let mut live: Vec<&Row> = frame.upper.iter().chain(&frame.lower).collect();
        // Never taller than the screen, so that every row that may still change stays within reach.
        let hidden = live.len().saturating_sub(size.rows);
        live.drain(..hidden);
        let blank = Row::blank();
        if live.is_empty() {
            live.push(&blank);
        }
        if self.must_clear || self.base > settled {
            self.must_clear = false;
            out.push_str("\x1b[H\x1b[2J\x1b[3J");
            self.base = 0;
            self.shown.clear();
            self.cursor = (0, 0);
        }

        let total = settled + live.len();
        let row_at = |index: usize| frame.settled.get(index).unwrap_or_else(|| live[index - settled]);
        let known = self.base + self.shown.len();
        for index in self.base..total {
            if index < known {
                if self.shown[index - self.base] == *row_at(index) {
                    continue;
                }
                self.go_to_row(out, index);
                out.push_str("\r\x1b[2K");
            } else if index == 0 || (index == self.base && self.shown.is_empty()) {
                out.push('\r');
            } else {
                self.go_to_row(out, index - 1);
                out.push_str("\r\n");
            }
            write_row(out, row_at(index));
            self.cursor = (index, usize::MAX);
        }
        if total < known {
            self.go_to_row(out, total);
            out.push_str("\r\x1b[J");
            self.cursor = (total, 0);
        }
        let base = self.base.max(total.saturating_sub(size.rows));
        self.shown = (base..total).map(|index| row_at(index).clone()).collect();
        self.base = base;

        let wanted = frame.cursor.and_then(|(row, column)| {
            let row = (settled + frame.upper.len() + row).checked_sub(hidden)?;
            (row >= base && row < total).then_some((row, column.min(size.columns - 1)))
        });
        if let Some((row, column)) = wanted
            && self.cursor != (row, column)
        {
            self.go_to_row(out, row);
            let _ = write!(out, "\x1b[{}G", column + 1);
            self.cursor = (row, column);
        }
        self.show_cursor(out, wanted.is_some());
    }

    fn paint_alternate(&mut self, out: &mut String, frame: &Frame, size: Size) {
        let lower_height = frame.lower.len().min(size.rows);
        let lower = &frame.lower[frame.lower.len() - lower_height..];
        let above = size.rows - lower_height;
        let upper_all = frame.settled.len() + frame.upper.len();
        let mut rows: Vec<&Row> =
            frame.settled.iter().chain(&frame.upper).skip(upper_all.saturating_sub(above)).collect();
        let blank = Row::blank();
        if frame.anchor == Anchor::Bottom {
            rows.resize(above, &blank);
        }
        let lower_at = rows.len();
        rows.extend(lower);
        rows.resize(size.rows, &blank);

        if std::mem::take(&mut self.must_clear) {
            out.push_str("\x1b[H\x1b[2J");
            self.shown.clear();
        }
        self.shown.resize(size.rows, Row::blank());
        for (index, (old, new)) in self.shown.iter_mut().zip(&rows).enumerate() {
            if old != *new {
                let _ = write!(out, "\x1b[{};1H\x1b[2K", index + 1);
                write_row(out, new);
                *old = (*new).clone();
                self.cursor = (index, usize::MAX);
            }
        }
        let clipped = frame.lower.len() - lower_height;
        let wanted = frame
            .cursor
            .and_then(|(row, column)| Some((lower_at + row.checked_sub(clipped)?, column.min(size.columns - 1))));
        if let Some((row, column)) = wanted
            && self.cursor != (row, column)
        {
            let _ = write!(out, "\x1b[{};{}H", row + 1, column + 1);
            self.cursor = (row, column);
        }
        self.show_cursor(out, wanted.is_some());
    }

    fn go_to_row(&mut self, out: &mut String, row: usize) {
        let _ = match self.cursor.0 {
            at if at > row => write!(out, "\x1b[{}A", at - row),
            at if at < row => write!(out, "\x1b[{}B", row - at),
            _ => Ok(()),
        };
        self.cursor.0 = row;
    }

    fn show_cursor(&mut self, out: &mut String, show: bool) {
        if self.cursor_hidden == show {
            out.push_str(if show { "\x1b[?25h" } else { "\x1b[?25l" });
            self.cursor_hidden = !show;
        }
    }

    /// For tests: the rows it believes to be on the screen.
    #[cfg(test)]
    pub(crate) fn believed(&self) -> Vec<String> {
        self.shown.iter().map(|row| row.text.trim_end_matches(' ').to_owned()).collect()
    }

    /// Leaves the screen as a well-behaved program does: what was said stays, the cursor is below it.
    pub(crate) fn leave(&mut self) -> String {
        let mut out = String::new();
        match self.screen {
            Screen::Main => {
                let last = (self.base + self.shown.len()).saturating_sub(1);
                self.go_to_row(&mut out, last);
                out.push_str("\r\n");
            }
            Screen::Alternate => out.push_str("\x1b[?1049l"),
        }
        self.show_cursor(&mut out, true);
        out
    }
}

fn write_row(out: &mut String, row: &Row) {
    let sgr = row.style.sgr();
    out.push_str(sgr);
    out.push_str(&row.text);
    if !sgr.is_empty() {
        out.push_str("\x1b[m");
    }
}

#[cfg(test)]
mod tests;
