//! Printing text: what vt100 may not see as it is, and the modes it does not have.

use memchr::memchr3;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use super::Emulator;
use crate::sequence::{Control, whole_characters};

/// Makes the character before it an emoji, and a wide one.
const EMOJI_SELECTOR: &str = "\u{fe0f}";
const REPLACEMENT: &str = "\u{fffd}";
/// Drawn for a replacement character: vt100 refuses that one, and then everything behind it stands
/// one column too far left.
const STAND_IN: &[u8] = b"?";
const SHIFT_OUT: u8 = 0x0e;
const SHIFT_IN: u8 = 0x0f;

impl Emulator {
    /// Text and control characters, ending with a whole character.
    pub(super) fn text(&mut self, text: &[u8]) {
        if !self.is_plain() {
            return self.text_by_character(text);
        }
        // The rare things to look at begin with EF or are a shift; all else goes through in one go.
        let mut start = 0;
        let mut from = 0;
        while let Some(found) = memchr3(0xef, SHIFT_OUT, SHIFT_IN, &text[from..]) {
            let at = from + found;
            let rest = &text[at..];
            from = at + 1;
            if rest.starts_with(EMOJI_SELECTOR.as_bytes()) {
                self.draw(whole_characters(&text[start..at]));
                start = if self.selector_is_safe() { at } else { at + EMOJI_SELECTOR.len() };
            } else if rest.starts_with(REPLACEMENT.as_bytes()) {
                self.draw(whole_characters(&text[start..at]));
                self.draw(STAND_IN);
                start = at + REPLACEMENT.len();
            } else if rest[0] != 0xef {
                self.draw(whole_characters(&text[start..at]));
                self.modes.shifted = rest[0] == SHIFT_OUT;
                start = from;
                if !self.is_plain() {
                    return self.text_by_character(&text[start..]);
                }
            }
        }
        self.draw(&text[start..]);
    }

    /// vt100 loses count when a character in the last column becomes wide: it looks for it in the
    /// wrong row, leaves half a character behind, and panics when that is overwritten. There the
    /// selector is dropped and the character stays narrow.
    fn selector_is_safe(&self) -> bool {
        let screen = self.terminal.screen();
        let (row, column) = screen.cursor_position();
        let last = (column >= self.size.cols()).then(|| screen.cell(row, self.size.cols() - 1)).flatten();
        last.is_none_or(|cell| cell.is_wide_continuation() || (cell.contents().to_owned() + EMOJI_SELECTOR).width() < 2)
    }

    /// Whether text needs no translation.
    fn is_plain(&self) -> bool {
        self.modes.wrap && !self.modes.insert && !self.has_graphics()
    }

    fn has_graphics(&self) -> bool {
        self.modes.graphics[usize::from(self.modes.shifted)]
    }

    fn text_by_character(&mut self, text: &[u8]) {
        let mut buffer = [0; 4];
        for c in text.utf8_chunks().flat_map(|chunk| chunk.valid().chars()) {
            if c.is_control() {
                self.settle();
            }
            if c == SHIFT_OUT as char || c == SHIFT_IN as char {
                self.modes.shifted = c == SHIFT_OUT as char;
                continue;
            }
            let c = match c {
                '\u{fe0f}' if !self.selector_is_safe() => continue,
                '\u{fffd}' => '?',
                _ if self.has_graphics() => line_drawing(c),
                _ => c,
            };
            let width = u16::try_from(c.width().unwrap_or(0)).unwrap_or(0).min(2);
            if width > 0 {
                if !self.modes.wrap && self.terminal.screen().cursor_position().1 + width > self.size.cols() {
                    self.go_to_column(self.size.cols() - width);
                }
                if self.modes.insert && !self.at_margin() {
                    self.draw(format!("\x1b[{width}@").as_bytes());
                }
            }
            self.draw(c.encode_utf8(&mut buffer).as_bytes());
        }
    }

    /// Without wrapping nothing waits at the margin for a next row. Called before whatever is not
    /// text; after text a mark for the last character may still come.
    pub(super) fn settle(&mut self) {
        if !self.modes.wrap && self.at_margin() {
            self.go_to_column(self.size.cols() - 1);
        }
    }

    pub(super) fn go_to_column(&mut self, column: u16) {
        self.draw(format!("\x1b[{}G", column + 1).as_bytes());
    }

    /// Absolute, whatever the scroll region and origin mode are.
    pub(super) fn go_to(&mut self, (row, column): (u16, u16)) {
        self.draw(format!("\x1b[{}d\x1b[{}G", row + 1, column + 1).as_bytes());
    }

    /// `CSI b`. Not further than the margin, as in tmux: a screen has no use for more, and nine bytes
    /// shall not cost the time of 65,535.
    pub(super) fn repeat(&mut self, control: &Control<'_>, printed: Option<char>) {
        let Some(c) = printed else { return };
        let room = self.size.cols().saturating_sub(self.terminal.screen().cursor_position().1);
        let width = u16::try_from(c.width().unwrap_or(0)).unwrap_or(0).clamp(1, 2);
        let count = control.number_or(0, 1).min(room / width);
        self.text(c.to_string().repeat(usize::from(count)).as_bytes());
    }
}

/// The last character, if it is one that prints.
pub(super) fn last_character(text: &[u8]) -> Option<char> {
    let tail = &text[text.len().saturating_sub(4)..];
    let start = tail.iter().rposition(|b| b & 0xc0 != 0x80)?;
    let c = std::str::from_utf8(&tail[start..]).ok()?.chars().next()?;
    (!c.is_control()).then_some(c)
}

/// The character set of DEC terminals for boxes, which `ESC ( 0` selects.
fn line_drawing(c: char) -> char {
    match c {
        '`' => '◆',
        'a' => '▒',
        'b' => '␉',
        'c' => '␌',
        'd' => '␍',
        'e' => '␊',
        'f' => '°',
        'g' => '±',
        'h' => '␤',
        'i' => '␋',
        'j' => '┘',
        'k' => '┐',
        'l' => '┌',
        'm' => '└',
        'n' => '┼',
        'o' => '⎺',
        'p' => '⎻',
        'q' => '─',
        'r' => '⎼',
        's' => '⎽',
        't' => '├',
        'u' => '┤',
        'v' => '┴',
        'w' => '┬',
        'x' => '│',
        'y' => '≤',
        'z' => '≥',
        '{' => 'π',
        '|' => '≠',
        '}' => '£',
        '~' => '·',
        other => other,
    }
}
