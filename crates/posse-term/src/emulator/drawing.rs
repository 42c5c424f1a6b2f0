//! Writes cells as bytes: attributes, and the rows of a whole grid.

use posse_core::screen::{Colour, Inks, Painted};
use unicode_width::UnicodeWidthChar as _;

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

/// Returns whether text printed right behind this character could be taken for a part of it.
pub(super) fn may_join(c: char) -> bool {
    matches!(c, '\u{200d}' | '\u{fe0f}' | '\u{1f000}'..)
}

/// Draws the grid that `screen` shows onto a blank one. Leaves the attributes plain and the cursor anywhere.
pub(super) fn write_rows(screen: &vt100::Screen, out: &mut Vec<u8>) {
    let mut joins = false;
    for c in screen.contents_formatted().chars() {
        if joins && c.width() != Some(0) {
            // Keeps the two apart without moving the cursor, which may be at the margin.
            out.extend_from_slice(b"\x1b[?25h");
        }
        joins = may_join(c);
        out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
    }
    out.extend_from_slice(b"\x1b[m");
}

pub(super) fn write_position(out: &mut Vec<u8>, row: u16, column: u16) {
    out.extend_from_slice(format!("\x1b[{};{}H", row + 1, column + 1).as_bytes());
}
