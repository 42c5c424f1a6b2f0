//! Turns rows into escape bytes: only what changed since the last frame.
//!
//! Rows are counted from the first one ever drawn. On the main screen, rows that scrolled away cannot be reached, so only
//! the last screenful is compared and redrawn. On the alternate screen, a frame is exactly one screenful.

use std::fmt::Write;

use crate::agent::rows::{ScreenRow, ScreenSize};

/// The rows below the transcript: `upper` follows it, `lower` is at the bottom.
#[derive(Debug, Default)]
pub(crate) struct LivePanel {
    pub(crate) upper: Vec<ScreenRow>,
    pub(crate) lower: Vec<ScreenRow>,
    /// The cursor's row and column inside `lower`; `None` hides it.
    pub(crate) cursor: Option<(usize, usize)>,
    /// On the alternate screen, `lower` follows the transcript instead.
    pub(crate) at_top: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Painter {
    /// Whether to draw on the alternate screen.
    alternate: bool,
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
    pub(crate) fn new(alternate: bool) -> Painter {
        Painter { alternate, must_clear: alternate, ..Painter::default() }
    }

    /// Makes the next frame start from a cleared screen, as after a resize.
    pub(crate) fn clear(&mut self) {
        self.must_clear = true;
    }

    /// Returns the bytes that turn the last frame into this one; empty if they are equal. `settled` only grows at the
    /// end, unless the painter is cleared.
    pub(crate) fn paint(&mut self, settled: &[ScreenRow], live: &LivePanel, size: ScreenSize) -> String {
        let mut out = String::new();
        if self.must_clear || (!self.alternate && self.base > settled.len()) {
            self.must_clear = false;
            out.push_str(if self.alternate { "\x1b[H\x1b[2J" } else { "\x1b[H\x1b[2J\x1b[3J" });
            self.base = 0;
            self.shown.clear();
            self.cursor = (0, 0);
        }
        let blank = ScreenRow::blank();
        let (rows, lower_at) = self.rows(settled, live, size, &blank);
        self.change(&mut out, &rows);
        let total = rows.len();
        self.base = self.base.max(total.saturating_sub(size.rows));
        self.shown = rows[self.base..].iter().map(|row| (*row).clone()).collect();
        let clipped = live.lower.len().saturating_sub(size.rows);
        let wanted = live.cursor.and_then(|(row, column)| {
            let row = lower_at + row.checked_sub(clipped)?;
            (self.base..total).contains(&row).then_some((row, column.min(size.columns - 1)))
        });
        if let Some((row, column)) = wanted.filter(|wanted| self.cursor != *wanted) {
            self.go_to_row(&mut out, row);
            let _ = write!(out, "\x1b[{}G", column + 1);
            self.cursor = (row, column);
        }
        self.show_cursor(&mut out, wanted.is_some());
        // Mode 2026 keeps the terminal from showing half of a frame.
        if out.is_empty() { out } else { format!("\x1b[?2026h{out}\x1b[?2026l") }
    }

    /// Returns all rows, and the index at which the visible part of `lower` begins.
    fn rows<'a>(
        &self,
        settled: &'a [ScreenRow],
        live: &'a LivePanel,
        size: ScreenSize,
        blank: &'a ScreenRow,
    ) -> (Vec<&'a ScreenRow>, usize) {
        let lower = &live.lower[live.lower.len().saturating_sub(size.rows)..];
        let above = size.rows - lower.len();
        let mut rows: Vec<&ScreenRow> = Vec::new();
        if self.alternate {
            let hidden = (settled.len() + live.upper.len()).saturating_sub(above);
            rows.extend(settled.iter().chain(&live.upper).skip(hidden));
            if !live.at_top {
                rows.resize(above, blank);
            }
        } else {
            // The changing rows are never taller than the screen, so that the cursor can reach all of them.
            rows.extend(settled.iter().chain(&live.upper[live.upper.len().saturating_sub(above)..]));
        }
        let lower_at = rows.len();
        rows.extend(lower);
        if self.alternate {
            rows.resize(size.rows, blank);
        } else if rows.len() == settled.len() {
            rows.push(blank);
        }
        (rows, lower_at)
    }

    fn change(&mut self, out: &mut String, rows: &[&ScreenRow]) {
        let known = self.base + self.shown.len();
        for (index, row) in rows.iter().enumerate().skip(self.base) {
            if index < known {
                if self.shown[index - self.base] == **row {
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
            let sgr = row.style.sgr();
            let reset = if sgr.is_empty() { "" } else { "\x1b[m" };
            let _ = write!(out, "{sgr}{}{reset}", row.text);
            self.cursor = (index, usize::MAX);
        }
        if rows.len() < known {
            self.go_to_row(out, rows.len());
            out.push_str("\r\x1b[J");
            self.cursor = (rows.len(), 0);
        }
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
        if self.alternate {
            out.push_str("\x1b[?1049l");
        } else {
            let last = (self.base + self.shown.len()).saturating_sub(1);
            self.go_to_row(&mut out, last);
            out.push_str("\r\n");
        }
        self.show_cursor(&mut out, true);
        out
    }
}

#[cfg(test)]
mod tests;
