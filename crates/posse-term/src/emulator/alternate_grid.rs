//! The parts of vt100's state that cannot be read: scroll region, origin mode, saved cursor, the hidden grid. They are
//! probed on a copy, and written as the bytes that restore them.
//!
//! All bytes are sequences that every terminal knows, because viewers' terminals get them too.

use posse_core::screen::Size;

use super::drawing::{Pen, write_rows};
use super::nonzero;

/// The state of one of the two grids, except for its cells.
pub(super) struct Grid {
    /// First and last row, if it is not the whole screen.
    region: Option<(u16, u16)>,
    cursor: GridCursor,
    saved: GridCursor,
    /// The attributes saved with the cursor. vt100 has only one set for both grids.
    saved_attributes: String,
}

#[derive(Clone, Copy)]
struct GridCursor {
    row: u16,
    /// The number of columns if it waits at the margin.
    column: u16,
    /// Rows are counted from the top of the scroll region.
    origin: bool,
}

pub(super) fn copy(screen: &vt100::Screen) -> vt100::Parser {
    let mut parser = vt100::Parser::new(nonzero(1), nonzero(1), 0);
    *parser.screen_mut() = screen.clone();
    parser
}

impl Grid {
    pub(super) fn probe(screen: &vt100::Screen, size: Size) -> Self {
        let (row, column) = screen.cursor_position();
        let cursor = GridCursor { row, column, origin: probe_origin(copy(screen)) };

        let mut at_saved = copy(screen);
        at_saved.process(b"\x1b8");
        let (row, column) = at_saved.screen().cursor_position();
        let saved_attributes = at_saved.screen().attributes_formatted();
        let saved = GridCursor { row, column, origin: probe_origin(at_saved) };

        Self { region: probe_region(copy(screen), size), cursor, saved, saved_attributes }
    }

    /// Writes the bytes that turn a fresh grid of the same size into this one, which `screen` shows.
    ///
    /// A cursor that waits at the margin is the hard part, since only printing moves a cursor there. A saved one is created
    /// before anything else is drawn. The current one comes last, by printing the cell of a last column again. If no last
    /// column has a character, the one that moved the cursor there was erased or scrolled off; both leave a blank row, in
    /// which a character can be printed and erased.
    pub(super) fn write(&self, screen: &vt100::Screen, size: Size, out: &mut Vec<u8>) {
        let margin = size.cols();
        out.extend_from_slice(b"\x1b[m\x1b[?6l\x1b[r\x1b[2J");
        if self.saved.column >= margin {
            write_origin(self.saved.origin, out);
            write_cursor(0, margin - 1, out);
            out.push(b'x');
            write_row(self.saved.row, out);
            self.write_save(out);
            out.extend_from_slice(b"\x1b[?6l\x1b[2J");
        }
        let mut elsewhere = copy(screen);
        // For a cursor at the margin vt100 would use the saved one.
        elsewhere.process(b"\x1b[G");
        write_rows(elsewhere.screen(), out);
        if let Some((top, bottom)) = self.region {
            out.extend_from_slice(format!("\x1b[{};{}r", top + 1, bottom + 1).as_bytes());
        }
        if self.saved.column < margin {
            write_origin(self.saved.origin, out);
            write_cursor(self.saved.row, self.saved.column, out);
            self.write_save(out);
        }
        write_origin(self.cursor.origin, out);
        if self.cursor.column < margin {
            write_cursor(self.cursor.row, self.cursor.column, out);
        } else if self.saved.column >= margin && self.saved.origin == self.cursor.origin {
            out.extend_from_slice(b"\x1b8\x1b[m");
            write_row(self.cursor.row, out);
        } else {
            write_margin(screen, size, self.cursor.row, out);
            write_row(self.cursor.row, out);
        }
    }

    fn write_save(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.saved_attributes.as_bytes());
        out.extend_from_slice(b"\x1b7\x1b[m");
    }
}

/// Moves the cursor behind the last column of some row without changing the screen.
fn write_margin(screen: &vt100::Screen, size: Size, near: u16, out: &mut Vec<u8>) {
    let last = size.cols() - 1;
    let mut pen = Pen::default();
    for row in std::iter::once(near).chain(0..size.rows()) {
        let wide = screen.cell(row, last).is_some_and(vt100::Cell::is_wide_continuation);
        let column = last - u16::from(wide);
        if let Some(cell) = screen.cell(row, column).filter(|cell| cell.has_contents()) {
            write_cursor(row, column, out);
            pen.change(Pen::of(cell), out);
            out.extend_from_slice(cell.contents().as_bytes());
            pen.change(Pen::default(), out);
            return;
        }
    }
    for row in 0..size.rows() {
        let cells = || (0..size.cols()).filter_map(|column| screen.cell(row, column));
        let look = cells().next().map(Pen::of).unwrap_or_default();
        if cells().all(|cell| !cell.has_contents() && Pen::of(cell) == look) {
            write_cursor(row, last, out);
            out.push(b'x');
            pen.change(look, out);
            out.extend_from_slice(b"\x1b[2K");
            pen.change(Pen::default(), out);
            return;
        }
    }
    // Not reached, see `Grid::write`. The cursor would overwrite the last column once.
    write_cursor(near, last, out);
}

fn write_origin(on: bool, out: &mut Vec<u8>) {
    out.extend_from_slice(if on { b"\x1b[?6h" } else { b"\x1b[?6l" });
}

/// Moves the cursor to a position counted from the top of the screen, in origin mode too.
fn write_cursor(row: u16, column: u16, out: &mut Vec<u8>) {
    write_row(row, out);
    out.extend_from_slice(format!("\x1b[{}G", column + 1).as_bytes());
}

fn write_row(row: u16, out: &mut Vec<u8>) {
    out.extend_from_slice(format!("\x1b[{}d", row + 1).as_bytes());
}

/// Returns whether rows are counted from the top of the scroll region. The screen must be tall enough to see a difference.
fn probe_origin(mut copy: vt100::Parser) -> bool {
    copy.screen_mut().set_size(nonzero(4), nonzero(2));
    copy.process(b"\x1b[2;3r\x1b[H");
    copy.screen().cursor_position().0 == 1
}

fn probe_region(mut copy: vt100::Parser, size: Size) -> Option<(u16, u16)> {
    copy.process(b"\x1b[?6h");
    let top = copy.screen().cursor_position().0;
    copy.process(b"\x1b[9999H");
    let bottom = copy.screen().cursor_position().0;
    ((top, bottom) != (0, size.rows() - 1)).then_some((top, bottom))
}
