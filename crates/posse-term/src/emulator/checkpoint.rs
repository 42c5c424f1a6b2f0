//! The state of an emulator as bytes: to continue after a restart of the daemon (`checkpoint`), or to show the screen to
//! a new viewer (`repaint`).
//!
//! A checkpoint holds the bytes that draw both grids onto a fresh terminal, and the state that vt100 does not have. It
//! can be taken between any two bytes of output. The format has a version; an unknown version is refused, and the program
//! is made to redraw its screen.

use std::panic::{AssertUnwindSafe, catch_unwind};

use posse_core::screen::Size;
use serde::{Deserialize, Serialize};

use super::alternate_grid::{Grid, copy};
use super::keyboard::Keyboard;
use super::text::Printed;
use super::{Emulator, HistoryLimit, Modes, nonzero};
use crate::sequence::Scanner;

/// The last byte is the version.
const MAGIC: &[u8] = b"posse terminal 2";

#[derive(Debug, thiserror::Error)]
#[error("it is damaged, or not a checkpoint of this version")]
pub struct BadCheckpoint;

/// The contents of a checkpoint, encoded with postcard behind magic and version.
#[derive(Serialize, Deserialize)]
struct Checkpoint<'a> {
    size: Size,
    offset: u64,
    picture: &'a [u8],
    title: &'a str,
    modes: Modes,
    keyboard: Keyboard,
    printed: Printed,
    unfinished: &'a [u8],
    /// The last line of the history continues on the screen.
    open: bool,
    /// Every line ends with a line break.
    history: &'a str,
}

impl Emulator {
    /// Serializes this emulator. A restored emulator behaves the same from here on.
    pub fn checkpoint(&self) -> Vec<u8> {
        let history = &self.terminal.callbacks().history;
        let (lines, picture) = (history.with_line_breaks(), self.picture());
        let checkpoint = Checkpoint {
            size: self.size,
            offset: self.offset,
            picture: &picture,
            title: &self.title,
            modes: self.modes,
            keyboard: self.keyboard.clone(),
            printed: self.printed,
            unfinished: &self.scanner.unfinished(),
            open: history.open,
            history: &lines,
        };
        // A buffer that doubles as it grows would leave holes in the heap, one for each terminal.
        let mut out = Vec::with_capacity(lines.len() + picture.len() + 1024);
        out.extend_from_slice(MAGIC);
        // Encoding into memory fails only for sequences of unknown length, which do not occur here.
        let encoded = postcard::to_io(&checkpoint, &mut out);
        debug_assert!(encoded.is_ok());
        out
    }

    pub fn restore(blob: &[u8], limit: HistoryLimit) -> Result<Self, BadCheckpoint> {
        let fields = blob.strip_prefix(MAGIC).ok_or(BadCheckpoint)?;
        let (checkpoint, rest) = postcard::take_from_bytes::<Checkpoint<'_>>(fields).map_err(|_| BadCheckpoint)?;
        if !rest.is_empty() {
            return Err(BadCheckpoint);
        }
        let size = checkpoint.size;
        let mut emulator = Self::new(size, limit);
        emulator.offset = checkpoint.offset;
        // A parser of its own, so that a broken picture cannot leave half a sequence in ours.
        let mut drawn = vt100::Parser::new(nonzero(size.rows()), nonzero(size.cols()), 0);
        catch_unwind(AssertUnwindSafe(|| drawn.process(checkpoint.picture))).map_err(|_| BadCheckpoint)?;
        std::mem::swap(emulator.terminal.screen_mut(), drawn.screen_mut());
        emulator.title = checkpoint.title.to_owned();
        emulator.modes = checkpoint.modes;
        emulator.keyboard = checkpoint.keyboard;
        emulator.printed = checkpoint.printed;
        emulator.scanner = Scanner::resume(checkpoint.unfinished).ok_or(BadCheckpoint)?;
        let lines: Vec<&str> = checkpoint.history.split_terminator('\n').collect();
        let history = &mut emulator.terminal.callbacks_mut().history;
        for (i, line) in lines.iter().enumerate() {
            history.push_row(line, checkpoint.open && i + 1 == lines.len());
        }
        Ok(emulator)
    }

    /// Returns the bytes that draw both grids on a fresh parser. The alternate grid is blank whenever it is shown anew,
    /// so it is drawn only while it is shown.
    fn picture(&self) -> Vec<u8> {
        let screen = self.terminal.screen();
        let mut out = Vec::new();
        if screen.alternate_screen() {
            let mut main = copy(screen);
            main.process(b"\x1b[?47l");
            Grid::probe(main.screen(), self.size).write(main.screen(), self.size, &mut out);
            out.extend_from_slice(b"\x1b[?47h");
        }
        self.write_shown(&mut out);
        out
    }

    fn write_shown(&self, out: &mut Vec<u8>) {
        let screen = self.terminal.screen();
        Grid::probe(screen, self.size).write(screen, self.size, out);
        out.extend_from_slice(screen.attributes_formatted().as_bytes());
        out.extend_from_slice(screen.input_mode_formatted().as_bytes());
        out.extend_from_slice(if screen.hide_cursor() { b"\x1b[?25l" } else { b"\x1b[?25h" });
    }

    /// Returns the bytes that draw this screen on a fresh terminal of the same size and leave it in the same state.
    /// Later output can then be passed on unchanged. Draws only the visible grid; a program that leaves the alternate
    /// screen uncovers an empty one.
    pub fn repaint(&self) -> Vec<u8> {
        let alternate = self.terminal.screen().alternate_screen();
        let mut out = Vec::new();
        if alternate {
            out.extend_from_slice(b"\x1b[?1049h");
        }
        self.write_shown(&mut out);
        let Modes { no_wrap, insert, frame: _, other_keys, graphics, shifted } = self.modes;
        let mut say = |on: bool, sequence: &[u8]| {
            if on {
                out.extend_from_slice(sequence);
            }
        };
        say(no_wrap, b"\x1b[?7l");
        say(insert, b"\x1b[4h");
        say(graphics[0], b"\x1b(0");
        say(graphics[1], b"\x1b)0");
        say(shifted, b"\x0e");
        say(other_keys > 0, format!("\x1b[>4;{other_keys}m").as_bytes());
        self.keyboard.write(alternate, &mut out);
        if !self.title.is_empty() {
            out.extend_from_slice(format!("\x1b]2;{}\x1b\\", self.title).as_bytes());
        }
        out.extend_from_slice(&self.scanner.unfinished());
        out
    }
}
