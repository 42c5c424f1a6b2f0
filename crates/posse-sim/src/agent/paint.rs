//! Turns rows into escape bytes: only what changed since the last frame.
//!
//! On the main screen, rows are counted from the first one ever drawn. Rows that scrolled away cannot be reached, so
//! only the last screenful is compared and redrawn, with relative cursor movements. On the alternate screen every row
//! has a fixed position.

use std::fmt::Write;

use crate::agent::rows::{ScreenRow, ScreenSize};

/// A picture: the `settled` rows only grow at the end, unless the painter is cleared; `upper` follows them; `lower` is at
/// the bottom.
#[derive(Debug)]
pub(crate) struct ScreenFrame<'a> {
    pub(crate) settled: &'a [ScreenRow],
    pub(crate) upper: Vec<ScreenRow>,
    pub(crate) lower: Vec<ScreenRow>,
    /// The cursor's row and column inside `lower`; `None` hides it.
    pub(crate) cursor: Option<(usize, usize)>,
    pub(crate) anchor: PanelAnchor,
}

/// The position of `lower` on the alternate screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PanelAnchor {
    Bottom,
    AfterTranscript,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScreenMode {
    Main,
    Alternate,
}

#[derive(Debug)]
pub(crate) struct Painter {
    screen: ScreenMode,
    /// The index of the first row that is still on the screen.
    base: usize,
    /// The rows on the screen, from `base` on.
    shown: Vec<ScreenRow>,
    /// The cursor's row (counted like `base`) and column.
    cursor: (usize, usize),
    cursor_hidden: bool,
    must_clear: bool,
}

impl Painter {
    pub(crate) fn new(screen: ScreenMode) -> Painter {
        Painter {
            screen,
            base: 0,
            shown: Vec::new(),
            cursor: (0, 0),
            cursor_hidden: false,
            must_clear: screen == ScreenMode::Alternate,
        }
    }

    /// Makes the next frame start from a cleared screen, as after a resize.
    pub(crate) fn clear(&mut self) {
        self.must_clear = true;
    }

    /// Returns the bytes that turn the last frame into this one; empty if they are equal.
    pub(crate) fn paint(&mut self, frame: &ScreenFrame, size: ScreenSize) -> String {
        let mut out = String::new();
        match self.screen {
            ScreenMode::Main => self.paint_main(&mut out, frame, size),
            ScreenMode::Alternate => self.paint_alternate(&mut out, frame, size),
        }
        // Mode 2026 keeps the terminal from showing half of a frame.
        if out.is_empty() { out } else { format!("\x1b[?2026h{out}\x1b[?2026l") }
    }

    fn paint_main(&mut self, out: &mut String, frame: &ScreenFrame, size: ScreenSize) {
        let settled = frame.settled.len();
        let mut live: Vec<&ScreenRow> = frame.upper.iter().chain(&frame.lower).collect();
        // The changing rows are never taller than the screen, so that the cursor can reach all of them.
        let hidden = live.len().saturating_sub(size.rows);
        live.drain(..hidden);
        let blank = ScreenRow::blank();
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
            } else if index == 0 {
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

    fn paint_alternate(&mut self, out: &mut String, frame: &ScreenFrame, size: ScreenSize) {
        let lower_height = frame.lower.len().min(size.rows);
        let lower = &frame.lower[frame.lower.len() - lower_height..];
        let above = size.rows - lower_height;
        let upper_all = frame.settled.len() + frame.upper.len();
        let mut rows: Vec<&ScreenRow> =
            frame.settled.iter().chain(&frame.upper).skip(upper_all.saturating_sub(above)).collect();
        let blank = ScreenRow::blank();
        if frame.anchor == PanelAnchor::Bottom {
            rows.resize(above, &blank);
        }
        let lower_at = rows.len();
        rows.extend(lower);
        rows.resize(size.rows, &blank);

        if std::mem::take(&mut self.must_clear) {
            out.push_str("\x1b[H\x1b[2J");
            self.shown.clear();
        }
        self.shown.resize(size.rows, ScreenRow::blank());
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

    /// Returns the rows that should be on the screen, for tests.
    #[cfg(test)]
    pub(crate) fn believed(&self) -> Vec<String> {
        self.shown.iter().map(|row| row.text.trim_end_matches(' ').to_owned()).collect()
    }

    /// Returns the bytes that leave the screen: the text stays, and the cursor is below it.
    pub(crate) fn leave(&mut self) -> String {
        let mut out = String::new();
        match self.screen {
            ScreenMode::Main => {
                let last = (self.base + self.shown.len()).saturating_sub(1);
                self.go_to_row(&mut out, last);
                out.push_str("\r\n");
            }
            ScreenMode::Alternate => out.push_str("\x1b[?1049l"),
        }
        self.show_cursor(&mut out, true);
        out
    }
}

fn write_row(out: &mut String, row: &ScreenRow) {
    let sgr = row.style.sgr();
    out.push_str(sgr);
    out.push_str(&row.text);
    if !sgr.is_empty() {
        out.push_str("\x1b[m");
    }
}

#[cfg(test)]
mod tests;
