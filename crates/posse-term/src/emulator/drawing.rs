//! Writes cells as bytes: attributes, and the rows of a whole grid.

use posse_core::screen::{Colour, Inks, Painted, Size};

use super::Emulator;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Pen {
    foreground: vt100::Color,
    background: vt100::Color,
    /// Bold, dim, italic, underlined, inverse: `CSI 1`, `2`, `3`, `4`, `7 m`.
    attributes: [bool; 5],
}

const ATTRIBUTES: [&str; 5] = [";1", ";2", ";3", ";4", ";7"];

impl Pen {
    pub(super) fn of(cell: &vt100::Cell) -> Self {
        Self {
            foreground: cell.fgcolor(),
            background: cell.bgcolor(),
            attributes: [cell.bold(), cell.dim(), cell.italic(), cell.underline(), cell.inverse()],
        }
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"\x1b[0");
        for (_, code) in self.attributes.iter().zip(ATTRIBUTES).filter(|(on, _)| **on) {
            out.extend_from_slice(code.as_bytes());
        }
        for (kind, colour) in [(38, self.foreground), (48, self.background)] {
            match colour {
                vt100::Color::Default => {}
                vt100::Color::Idx(index) => out.extend_from_slice(format!(";{kind};5;{index}").as_bytes()),
                vt100::Color::Rgb(r, g, b) => out.extend_from_slice(format!(";{kind};2;{r};{g};{b}").as_bytes()),
            }
        }
        out.push(b'm');
    }

    pub(super) fn change(&mut self, to: Self, out: &mut Vec<u8>) {
        if *self != to {
            *self = to;
            to.write(out);
        }
    }
}

impl Painted for Emulator {
    fn inks(&self, row: usize, column: usize) -> Option<Inks> {
        let cell = self.terminal.screen().cell(u16::try_from(row).ok()?, u16::try_from(column).ok()?)?;
        let (text, ground) = (colour(cell.fgcolor()), colour(cell.bgcolor()));
        Some(if cell.inverse() { Inks { text: ground, ground: text } } else { Inks { text, ground } })
    }
}

fn colour(colour: vt100::Color) -> Colour {
    match colour {
        vt100::Color::Default => Colour::Default,
        vt100::Color::Idx(index) => Colour::Indexed(index),
        vt100::Color::Rgb(r, g, b) => Colour::Rgb(r, g, b),
    }
}

/// Returns whether text printed right behind this cell could be taken for a part of it.
pub(super) fn may_join(cell: &vt100::Cell) -> bool {
    cell.contents().chars().any(|c| matches!(c, '\u{200d}' | '\u{fe0f}' | '\u{1f000}'..))
}

pub(super) fn write_position(out: &mut Vec<u8>, row: u16, column: u16) {
    out.extend_from_slice(format!("\x1b[{};{}H", row + 1, column + 1).as_bytes());
}

/// Draws the grid that `screen` shows onto a blank one of the same size, attributes of blank cells and
/// the wrapping of rows included. Expects plain attributes, no scroll region and wrapping on; leaves
/// the attributes plain and the cursor anywhere.
pub(super) fn write_rows(screen: &vt100::Screen, size: Size, out: &mut Vec<u8>) {
    let mut pen = Pen::default();
    for row in 0..size.rows() {
        // A row becomes wrapped by text that runs over its margin, so the next row must continue there.
        let mut cursor = None;
        if row > 0 && screen.row_wrapped(row - 1) {
            cursor = Some(0);
            if !screen.cell(row, 0).is_some_and(vt100::Cell::has_contents) {
                pen.change(Pen::default(), out);
                out.push(b' ');
                write_position(out, row, 0);
                out.extend_from_slice(b"\x1b[X");
            }
        }
        write_row(screen, size, row, cursor, &mut pen, out);
    }
    pen.change(Pen::default(), out);
}

/// `cursor`: the column the cursor is in, if it is in this row.
fn write_row(screen: &vt100::Screen, size: Size, row: u16, mut cursor: Option<u16>, pen: &mut Pen, out: &mut Vec<u8>) {
    let mut column = 0;
    while let Some(cell) = screen.cell(row, column).filter(|_| column < size.cols()) {
        let here = column;
        let look = Pen::of(cell);
        column += 1;
        if cell.has_contents() {
            column += u16::from(cell.is_wide());
        } else if look == Pen::default() || cell.is_wide_continuation() {
            continue;
        } else {
            let same =
                |cell: &vt100::Cell| !cell.has_contents() && !cell.is_wide_continuation() && Pen::of(cell) == look;
            while screen.cell(row, column).is_some_and(same) {
                column += 1;
            }
        }
        if cursor != Some(here) {
            write_position(out, row, here);
        }
        pen.change(look, out);
        if cell.has_contents() {
            out.extend_from_slice(cell.contents().as_bytes());
            cursor = Some(column);
            if may_join(cell) {
                // Keeps the next one apart without moving the cursor, which may be at the margin.
                pen.write(out);
            }
        } else {
            out.extend_from_slice(format!("\x1b[{}X", column - here).as_bytes());
            cursor = Some(here);
        }
    }
}
