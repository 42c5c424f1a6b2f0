//! Everything an emulator is, as bytes: to go on after a restart of the daemon (`checkpoint`), or to
//! show it to somebody who joins (`repaint`).
//!
//! A checkpoint holds the bytes that draw both grids onto a fresh terminal, and next to them what we
//! keep ourselves. It is taken between two bytes of output, wherever that is. The format is ours alone
//! and has a version; an unknown one is refused, and then the terminal is asked to draw itself anew.

use std::panic::{AssertUnwindSafe, catch_unwind};

use posse_core::screen::Size;

use super::alternate_grid::{Grid, copy};
use super::keyboard::Keyboard;
use super::text::{Cluster, Printed};
use super::{Emulator, HistoryLimit, Modes, nonzero};
use crate::sequence::Scanner;

const MAGIC: &[u8] = b"posse terminal ";
const VERSION: u8 = b'1';

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadCheckpoint {
    #[error("read a checkpoint of a terminal: it is something else")]
    Format,
    #[error("read a checkpoint of a terminal: its version {0:?} is not ours")]
    Version(char),
    #[error("read a checkpoint of a terminal: it ends early")]
    Short,
    #[error("read a checkpoint of a terminal: its {0} makes no sense")]
    Value(&'static str),
}

impl Emulator {
    /// This emulator as a value of its own. A restored one behaves the same from here on.
    pub fn checkpoint(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.push(VERSION);
        out.extend_from_slice(&self.size.rows().to_le_bytes());
        out.extend_from_slice(&self.size.cols().to_le_bytes());
        out.extend_from_slice(&self.offset.to_le_bytes());
        write_bytes(&mut out, &self.picture());
        write_bytes(&mut out, self.title.as_bytes());
        out.extend_from_slice(&self.modes.to_bytes());
        write_bytes(&mut out, self.keyboard.stack(false));
        write_bytes(&mut out, self.keyboard.stack(true));
        out.extend_from_slice(&self.printed.last.map_or(0, u32::from).to_le_bytes());
        out.push(self.printed.cluster as u8);
        write_bytes(&mut out, &self.scanner.unfinished());
        let history = &self.terminal.callbacks().history;
        out.push(u8::from(history.open()));
        let mut lines = Vec::new();
        for line in history.lines() {
            lines.extend_from_slice(line.as_bytes());
            lines.push(b'\n');
        }
        write_bytes(&mut out, &lines);
        out
    }

    pub fn restore(blob: &[u8], limit: HistoryLimit) -> Result<Self, BadCheckpoint> {
        use BadCheckpoint::Value;
        let mut rest = Rest(blob.strip_prefix(MAGIC).ok_or(BadCheckpoint::Format)?);
        let [version] = rest.array()?;
        if version != VERSION {
            return Err(BadCheckpoint::Version(version.into()));
        }
        let (rows, cols) = (u16::from_le_bytes(rest.array()?), u16::from_le_bytes(rest.array()?));
        let size = Size::new(rows, cols).map_err(|_| Value("size"))?;
        let mut emulator = Self::new(size, limit);
        emulator.offset = u64::from_le_bytes(rest.array()?);
        // A parser of its own, so that a broken picture cannot leave half a sequence in ours.
        let mut drawn = vt100::Parser::new(nonzero(rows), nonzero(cols), 0);
        let picture = rest.bytes()?;
        catch_unwind(AssertUnwindSafe(|| drawn.process(picture))).map_err(|_| Value("picture"))?;
        std::mem::swap(emulator.terminal.screen_mut(), drawn.screen_mut());
        emulator.title = rest.text("title")?.to_owned();
        emulator.modes = Modes::from_bytes(rest.array()?);
        emulator.keyboard = Keyboard::restore(rest.bytes()?, rest.bytes()?);
        emulator.printed = Printed {
            last: match u32::from_le_bytes(rest.array()?) {
                0 => None,
                c => Some(char::from_u32(c).ok_or(Value("last character"))?),
            },
            cluster: match rest.array()? {
                [0] => Cluster::None,
                [1] => Cluster::Emoji,
                [2] => Cluster::Joined,
                _ => return Err(Value("last character")),
            },
        };
        emulator.scanner = Scanner::resume(rest.bytes()?).ok_or(Value("unfinished sequence"))?;
        let [open] = rest.array()?;
        let lines: Vec<&str> = rest.text("history")?.split_terminator('\n').collect();
        let history = &mut emulator.terminal.callbacks_mut().history;
        for (i, line) in lines.iter().enumerate() {
            history.push_row(line, open != 0 && i + 1 == lines.len());
        }
        if rest.0.is_empty() { Ok(emulator) } else { Err(Value("end")) }
    }

    /// Both grids, on a fresh terminal of vt100's. The alternate one is blank when it is next shown,
    /// so it matters only while it is.
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

    /// What draws this screen on a fresh terminal of the same size and leaves it in the same state, so
    /// that the output which follows can simply be passed on. Only the grid that is shown; a program
    /// that leaves the alternate screen uncovers an empty one.
    pub fn repaint(&self) -> Vec<u8> {
        let alternate = self.terminal.screen().alternate_screen();
        let mut out = Vec::new();
        if alternate {
            out.extend_from_slice(b"\x1b[?1049h");
        }
        self.write_shown(&mut out);
        let Modes { wrap, insert, frame: _, other_keys, graphics, shifted } = self.modes;
        let mut say = |on: bool, sequence: &[u8]| {
            if on {
                out.extend_from_slice(sequence);
            }
        };
        say(!wrap, b"\x1b[?7l");
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

impl Modes {
    fn to_bytes(self) -> [u8; 2] {
        let Self { wrap, insert, frame, other_keys, graphics, shifted } = self;
        let flags = [wrap, insert, frame, graphics[0], graphics[1], shifted];
        [flags.iter().rev().fold(0, |bits, on| bits << 1 | u8::from(*on)), other_keys]
    }

    fn from_bytes([flags, other_keys]: [u8; 2]) -> Self {
        let on = |bit: u8| flags >> bit & 1 == 1;
        Self { wrap: on(0), insert: on(1), frame: on(2), other_keys, graphics: [on(3), on(4)], shifted: on(5) }
    }
}

fn write_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    // Everything in here is bounded far below 4 GiB.
    out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    out.extend_from_slice(bytes);
}

/// What has not been read yet.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn array<const N: usize>(&mut self) -> Result<[u8; N], BadCheckpoint> {
        let (array, rest) = self.0.split_first_chunk().ok_or(BadCheckpoint::Short)?;
        self.0 = rest;
        Ok(*array)
    }

    fn bytes(&mut self) -> Result<&'a [u8], BadCheckpoint> {
        let length = u32::from_le_bytes(self.array()?) as usize;
        let (bytes, rest) = self.0.split_at_checked(length).ok_or(BadCheckpoint::Short)?;
        self.0 = rest;
        Ok(bytes)
    }

    fn text(&mut self, what: &'static str) -> Result<&'a str, BadCheckpoint> {
        std::str::from_utf8(self.bytes()?).map_err(|_| BadCheckpoint::Value(what))
    }
}
