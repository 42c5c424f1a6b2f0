//! Draws a terminal inside the window of a viewer.
//!
//! The window may have another size. A smaller window shows the part of the terminal around the cursor and scrolls as
//! little as possible; in a larger one the rest stays blank. The modes for keys and mouse are passed on, so that the
//! viewer's input has the encoding that the program expects. The window is never queried.

use posse_core::screen::Size;

use super::drawing::{Pen, may_join, write_position};
use super::{Emulator, MOUSE_OFF};

#[derive(Default)]
pub struct TerminalView {
    painted: Option<ViewFrame>,
}

struct ViewFrame {
    window: Size,
    /// The size of the part that is shown.
    shown: Size,
    /// The row and column of the terminal in the window's top left corner.
    origin: (u16, u16),
    /// Row by row.
    cells: Vec<vt100::Cell>,
    /// Row and column in the window, unless the cursor is hidden.
    cursor: Option<(u16, u16)>,
    /// The sequences that set the modes for keys and mouse, and the style of the cursor.
    modes: String,
}

/// The rows and columns shown around the cursor, if the window is large enough.
const MARGIN: (u16, u16) = (4, 8);

impl TerminalView {
    /// The bytes to write before the first `paint`: an alternate screen and a keyboard mode of its own.
    pub const ENTER: &[u8] = b"\x1b[?1049h\x1b[>0u";

    /// The bytes to write after the last `paint`: they reset all modes that were passed on.
    pub const LEAVE: &[u8] = b"\x1b[?2026l\x1b[0m\x1b[?9l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1005l\x1b[?1006l\
        \x1b[?2004l\x1b[?1l\x1b>\x1b[>4;0m\x1b[<u\x1b[0 q\x1b[?25h\x1b[?1049l";

    pub fn new() -> Self {
        Self::default()
    }

    /// Makes the next `paint` draw everything, because the window was changed from outside.
    pub fn forget(&mut self) {
        self.painted = None;
    }

    /// Returns the row and column of the terminal in the window's top left corner.
    #[cfg(test)]
    pub(super) fn origin(&self) -> (u16, u16) {
        self.painted.as_ref().map_or((0, 0), |frame| frame.origin)
    }

    /// Returns the bytes that bring the window up to date, or none if it is.
    pub fn paint(&mut self, emulator: &Emulator, window: Size) -> Vec<u8> {
        let before = self.painted.take();
        let next = ViewFrame::of(emulator, window, before.as_ref().map_or((0, 0), |frame| frame.origin));
        let before = before.filter(|frame| (frame.window, frame.shown) == (next.window, next.shown));
        let mut out = Vec::new();
        if before.is_none() {
            out.extend_from_slice(b"\x1b[0m\x1b[2J");
        }
        next.write_cells(before.as_ref(), &mut out);
        next.write_cursor(before.as_ref(), &mut out);
        if before.is_none_or(|before| before.modes != next.modes) {
            out.extend_from_slice(next.modes.as_bytes());
        }
        self.painted = Some(next);
        if !out.is_empty() {
            out.splice(0..0, *b"\x1b[?2026h");
            out.extend_from_slice(b"\x1b[?2026l");
        }
        out
    }
}

impl ViewFrame {
    /// Creates a frame. `origin` is that of the frame before.
    fn of(emulator: &Emulator, window: Size, origin: (u16, u16)) -> Self {
        let screen = emulator.terminal.screen();
        let shown = window.smallest(emulator.size);
        let (row, column) = emulator.cursor();
        let top = scrolled(origin.0, row, shown.rows(), emulator.size.rows(), MARGIN.0);
        let left = scrolled(origin.1, column, shown.cols(), emulator.size.cols(), MARGIN.1);
        let cell = |row, column| screen.cell(top + row, left + column).cloned();
        let cells = (0..shown.rows()).flat_map(|row| (0..shown.cols()).filter_map(move |column| cell(row, column)));
        let mut modes = emulator.input_modes();
        if (top, left) != (0, 0) {
            // The window would report other positions than those the program has drawn.
            modes.push_str(MOUSE_OFF);
        }
        Self {
            window,
            shown,
            origin: (top, left),
            cells: cells.collect(),
            cursor: (!screen.hide_cursor()).then(|| (row - top, column - left)),
            modes,
        }
    }

    /// Writes the difference from `before`, or from a blank window.
    fn write_cells(&self, before: Option<&Self>, out: &mut Vec<u8>) {
        let columns = self.shown.cols();
        let mut pen = Pen::default();
        let mut cursor = None;
        for (i, cell) in self.cells.iter().enumerate() {
            let (row, column) = ((i / usize::from(columns)) as u16, (i % usize::from(columns)) as u16);
            let same = match before {
                Some(before) => before.cells.get(i) == Some(cell),
                None => !cell.has_contents() && Pen::of(cell) == Pen::default(),
            };
            // The second half of a wide character is drawn with the first, unless that is outside of the window.
            if same || (cell.is_wide_continuation() && column > 0) {
                continue;
            }
            if cursor != Some((row, column)) {
                write_position(out, row, column);
            }
            pen.change(Pen::of(cell), out);
            let width = 1 + u16::from(cell.is_wide());
            if cell.has_contents() && column + width <= columns {
                out.extend_from_slice(cell.contents().as_bytes());
            } else {
                out.push(b' ');
            }
            // After the margin, and after clusters of ambiguous width, the position of the cursor is unknown.
            let known =
                column + width < columns && cell.contents().chars().count() <= 1 && !cell.contents().contains(may_join);
            cursor = known.then_some((row, column + width));
        }
        pen.change(Pen::default(), out);
    }

    fn write_cursor(&self, before: Option<&Self>, out: &mut Vec<u8>) {
        let old = before.map(|frame| frame.cursor);
        if old.map(|cursor| cursor.is_some()) != Some(self.cursor.is_some()) {
            out.extend_from_slice(if self.cursor.is_some() { b"\x1b[?25h" } else { b"\x1b[?25l" });
        }
        // Drawing has moved the cursor.
        if let Some((row, column)) = self.cursor
            && (!out.is_empty() || old != Some(self.cursor))
        {
            write_position(out, row, column);
        }
    }
}

/// Returns the first row or column to show: `origin` if the cursor is well inside then, otherwise the nearest one for which it
/// is.
fn scrolled(origin: u16, cursor: u16, shown: u16, total: u16, margin: u16) -> u16 {
    let margin = margin.min(shown.saturating_sub(1) / 2);
    let highest = cursor.saturating_sub(margin);
    let lowest = (cursor + 1 + margin).saturating_sub(shown);
    origin.clamp(lowest, highest.max(lowest)).min(total.saturating_sub(shown))
}
