//! Prints text: replaces what vt100 cannot handle, and implements the modes it lacks.

use memchr::memchr2;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use super::Emulator;
use crate::sequence::Control;

/// Makes the character before it an emoji, and a wide one.
const EMOJI_SELECTOR: char = '\u{fe0f}';
const JOINER: char = '\u{200d}';
const REPLACEMENT: char = '\u{fffd}';
const SHIFT_OUT: u8 = 0x0e;
const SHIFT_IN: u8 = 0x0f;

/// The end of the text printed last, as far as it affects the next text. Everything but text resets it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) struct Printed {
    /// The character that `CSI b` repeats.
    pub(super) last: Option<char>,
    pub(super) cluster: Cluster,
}

/// Emoji made of several characters. vt100 draws each of them two columns wide; programs and current terminals treat all
/// of them as one. The programs then continue in the column that follows from that. So the parts behind the first are
/// not drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) enum Cluster {
    #[default]
    None,
    /// An emoji: a skin tone or a joiner may follow.
    Emoji,
    /// An emoji and a joiner: one more emoji belongs to it.
    Joined,
}

impl Emulator {
    /// Prints text and control characters that end with a whole character.
    pub(super) fn text(&mut self, text: &[u8]) {
        // All rare characters begin with one of four bytes; nearly all text is drawn in one call.
        let rare = memchr2(0xef, 0xf0, text).is_some() || memchr2(SHIFT_OUT, SHIFT_IN, text).is_some();
        if rare || !self.is_plain() || self.printed.cluster != Cluster::None {
            self.text_by_character(text);
        } else {
            self.draw(text);
        }
        self.printed.last = last_character(text);
    }

    /// Returns whether text needs no translation.
    pub(super) fn is_plain(&self) -> bool {
        !self.modes.no_wrap && !self.modes.insert && !self.has_graphics()
    }

    fn has_graphics(&self) -> bool {
        self.modes.graphics[usize::from(self.modes.shifted)]
    }

    fn text_by_character(&mut self, text: &[u8]) {
        for c in text.utf8_chunks().flat_map(|chunk| chunk.valid().chars()) {
            match c {
                _ if c.is_control() => {
                    self.settle();
                    self.printed.cluster = Cluster::None;
                    match u8::try_from(c) {
                        Ok(SHIFT_OUT) => self.modes.shifted = true,
                        Ok(SHIFT_IN) => self.modes.shifted = false,
                        _ => self.draw_character(c),
                    }
                }
                _ if self.joins(c) => {}
                EMOJI_SELECTOR if !self.selector_is_safe() => {}
                // vt100 ignores this character, and the text behind it would be one column too far left.
                REPLACEMENT => self.print('?'),
                _ if self.has_graphics() => self.print(line_drawing(c)),
                _ => self.print(c),
            }
        }
    }

    /// Returns whether the character is part of the emoji before it and is not drawn. Records it either way.
    fn joins(&mut self, c: char) -> bool {
        let before = self.printed.cluster;
        let joins = match before {
            Cluster::None => false,
            Cluster::Emoji => matches!(c, JOINER | '\u{1f3fb}'..='\u{1f3ff}'),
            Cluster::Joined => matches!(c, JOINER | '\u{2190}'..='\u{2bff}' | '\u{1f000}'..),
        };
        self.printed.cluster = match c {
            JOINER if joins => Cluster::Joined,
            EMOJI_SELECTOR | '\u{1f000}'.. => Cluster::Emoji,
            _ if joins => Cluster::Emoji,
            _ => Cluster::None,
        };
        joins
    }

    /// Returns whether vt100 can make the last character wide. In the last column it looks for the character in the
    /// wrong row, leaves half of it behind, and panics when that half is overwritten. There the selector is dropped and
    /// the character stays narrow.
    fn selector_is_safe(&self) -> bool {
        let screen = self.terminal.screen();
        let (row, column) = screen.cursor_position();
        let last = (column >= self.size.cols()).then(|| screen.cell(row, self.size.cols() - 1)).flatten();
        last.is_none_or(|cell| {
            let mut text = cell.contents().to_owned();
            text.push(EMOJI_SELECTOR);
            cell.is_wide_continuation() || text.width() < 2
        })
    }

    /// Prints one character, with the modes that vt100 lacks.
    fn print(&mut self, c: char) {
        let width = u16::try_from(c.width().unwrap_or(0)).unwrap_or(0).min(2);
        if width > 0 {
            if self.modes.no_wrap && self.terminal.screen().cursor_position().1 + width > self.size.cols() {
                self.go_to_column(self.size.cols() - width);
            }
            if self.modes.insert && !self.at_margin() {
                self.draw(format!("\x1b[{width}@").as_bytes());
            }
        }
        self.draw_character(c);
    }

    fn draw_character(&mut self, c: char) {
        self.draw(c.encode_utf8(&mut [0; 4]).as_bytes());
    }

    /// Moves the cursor back from the margin if wrapping is off. Called before everything but text: behind text a combining
    /// mark for the last character may still come.
    pub(super) fn settle(&mut self) {
        if self.modes.no_wrap && self.at_margin() {
            self.go_to_column(self.size.cols() - 1);
        }
    }

    pub(super) fn go_to_column(&mut self, column: u16) {
        self.draw(format!("\x1b[{}G", column + 1).as_bytes());
    }

    /// Moves the cursor to an absolute position, independent of scroll region and origin mode.
    pub(super) fn go_to(&mut self, (row, column): (u16, u16)) {
        self.draw(format!("\x1b[{}d\x1b[{}G", row + 1, column + 1).as_bytes());
    }

    /// `CSI b`. Repeats at most to the margin, as in tmux: nine bytes must not cost the time of 65,535.
    pub(super) fn repeat(&mut self, control: &Control<'_>, printed: Printed) {
        let Some(c) = printed.last else { return };
        let room = self.size.cols().saturating_sub(self.terminal.screen().cursor_position().1);
        let width = u16::try_from(c.width().unwrap_or(0)).unwrap_or(0).clamp(1, 2);
        let count = control.number_or(0, 1).min(room / width);
        self.text(c.to_string().repeat(usize::from(count)).as_bytes());
        self.printed = printed;
    }
}

fn last_character(text: &[u8]) -> Option<char> {
    let tail = &text[text.len().saturating_sub(4)..];
    let start = tail.iter().rposition(|b| b & 0xc0 != 0x80)?;
    let c = std::str::from_utf8(&tail[start..]).ok()?.chars().next()?;
    (!c.is_control()).then_some(c)
}

/// Translates a character into the line drawing set of DEC terminals, which starts at the backtick.
fn line_drawing(c: char) -> char {
    const FROM_BACKTICK: &str = "◆▒␉␌␍␊°±␤␋┘┐┌└┼⎺⎻─⎼⎽├┤┴┬│≤≥π≠£·";
    let index = (c as usize).checked_sub('`' as usize);
    index.and_then(|index| FROM_BACKTICK.chars().nth(index)).unwrap_or(c)
}
