//! Turns rows into escape bytes: only what changed since the last frame.
//!
//! Rows are counted from the first one ever drawn. Rows that scrolled away cannot be reached, so only the last screenful is
//! compared and redrawn.

use std::fmt::Write;

use super::rows::{ScreenRow, ScreenSize};

#[derive(Debug, Default)]
pub(super) struct Painter {
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
    /// Makes the next frame start from a cleared screen, as after a resize.
    pub(super) fn clear(&mut self) {
        self.must_clear = true;
    }

    /// Returns the bytes that turn the last frame into this one; empty if they are equal. `settled` only grows at the
    /// end, unless the painter is cleared. `live` are the rows below it, and `cursor` is the cursor's row and column in
    /// them; `None` hides the cursor.
    pub(super) fn paint(
        &mut self,
        settled: &[ScreenRow],
        live: &[ScreenRow],
        cursor: Option<(usize, usize)>,
        size: ScreenSize,
    ) -> String {
        let mut out = String::new();
        if self.must_clear || self.base > settled.len() {
            self.must_clear = false;
            out.push_str("\x1b[H\x1b[2J\x1b[3J");
            self.base = 0;
            self.shown.clear();
            self.cursor = (0, 0);
        }
        // The changing rows are never taller than the screen, so that the cursor can reach all of them.
        let clipped = live.len().saturating_sub(size.rows);
        let rows: Vec<&ScreenRow> = settled.iter().chain(&live[clipped..]).collect();
        self.change(&mut out, &rows);
        self.base = self.base.max(rows.len().saturating_sub(size.rows));
        self.shown = rows[self.base..].iter().map(|row| (*row).clone()).collect();
        let wanted = cursor.and_then(|(row, column)| {
            let row = settled.len() + row.checked_sub(clipped)?;
            (self.base..rows.len()).contains(&row).then_some((row, column.min(size.columns - 1)))
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

    /// Returns the bytes that leave the screen: the text stays, and the cursor is below it.
    pub(super) fn leave(&mut self) -> String {
        let mut out = String::new();
        self.go_to_row(&mut out, (self.base + self.shown.len()).saturating_sub(1));
        out.push_str("\r\n");
        self.show_cursor(&mut out, true);
        out
    }
}
