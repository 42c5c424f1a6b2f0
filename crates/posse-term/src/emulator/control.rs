//! Control and escape sequences: passed to vt100, translated for it, or handled here.

use super::{Emulator, Modes, responder};
use crate::sequence::Control;

const TAB_WIDTH: u16 = 8;

impl Emulator {
    pub(super) fn control(&mut self, control: &Control<'_>, at: u64) {
        let first_or = |default| control.number_or(0, default);
        match (control.private, control.intermediates, control.last) {
            (None, b"", b'm') => self.rendition(control),
            (None, b"", b'A' | b'B') => {
                // In tmux moving up or down from the margin cancels the pending wrap; in vt100 it does not.
                if self.at_margin() {
                    self.go_to_column(self.size.cols() - 1);
                }
                self.draw(control.raw);
            }
            (None, b"", b'J') => {
                if first_or(0) == 3 {
                    // A program that clears the scrollback is about to print all of it again.
                    self.terminal.callbacks_mut().history.clear();
                }
                self.draw(control.raw);
            }
            (None, b"", b'@' | b'C'..=b'H' | b'K' | b'L' | b'M' | b'P' | b'S' | b'X' | b'`' | b'd' | b'f' | b'r')
            | (Some(b'?'), b"", b'J' | b'K')
            | (None, b" ", b'q') => self.draw(control.raw),
            // With more parameters it is a kind of mouse tracking.
            (None, b"", b'T') if control.numbers().count() == 1 => self.draw(control.raw),
            (None, b"", b'Z') => self.tab_backwards(first_or(1)),
            (None, b"", b's') if control.parameters.is_empty() => self.draw(b"\x1b7"),
            (None, b"", b'u') if control.parameters.is_empty() => self.draw(b"\x1b8"),
            (None, b"", b'h' | b'l') => {
                if control.numbers().any(|mode| mode == 4) {
                    self.modes.insert = control.last == b'h';
                }
            }
            (Some(b'?'), b"", b'h' | b'l') => {
                for mode in control.numbers() {
                    self.private_mode(mode, control.last == b'h');
                }
            }
            (None, b"!", b'p') => self.soft_reset(),
            (Some(b'>'), b"", b'm') if first_or(4) == 4 => {
                self.modes.other_keys = control.number_or(1, 0).min(3) as u8;
            }
            (Some(b'>'), b"", b'n') if first_or(0) == 4 => self.modes.other_keys = 0,
            (Some(b'<' | b'=' | b'>'), b"", b'u') => {
                self.keyboard.control(control, self.terminal.screen().alternate_screen());
            }
            _ => self.reply(at, responder::control(control, self)),
        }
    }

    fn tab_backwards(&mut self, count: u16) {
        let stop = self.terminal.screen().cursor_position().1.saturating_sub(1) / TAB_WIDTH;
        self.go_to_column(stop.saturating_sub(count - 1) * TAB_WIDTH);
    }

    pub(super) fn mode(&self, mode: u16) -> Option<bool> {
        use vt100::{MouseProtocolEncoding as Encoding, MouseProtocolMode as Mouse};
        let screen = self.terminal.screen();
        let mouse = screen.mouse_protocol_mode();
        Some(match mode {
            1 => screen.application_cursor(),
            7 => !self.modes.no_wrap,
            9 => mouse == Mouse::Press,
            25 => !screen.hide_cursor(),
            47 | 1047 | 1049 => screen.alternate_screen(),
            1000 => mouse == Mouse::PressRelease,
            1002 => mouse == Mouse::ButtonMotion,
            1003 => mouse == Mouse::AnyMotion,
            1005 => screen.mouse_protocol_encoding() == Encoding::Utf8,
            1006 => screen.mouse_protocol_encoding() == Encoding::Sgr,
            2004 => screen.bracketed_paste(),
            2026 => self.modes.frame,
            _ => return None,
        })
    }

    fn private_mode(&mut self, mode: u16, on: bool) {
        let last = if on { 'h' } else { 'l' };
        match mode {
            1 | 6 | 9 | 25 | 1000 | 1002 | 1003 | 1005 | 1006 | 2004 => {
                self.draw(format!("\x1b[?{mode}{last}").as_bytes());
            }
            7 => self.modes.no_wrap = !on,
            47 | 1047 | 1049 if on => self.enter_alternate(),
            1049 => self.leave_alternate(true),
            47 | 1047 => self.leave_alternate(false),
            2026 => {
                self.frame_ended |= self.modes.frame && !on;
                self.modes.frame = on;
            }
            _ => {}
        }
    }

    /// Enters the alternate screen. All three sequences clear the screen and save the cursor. vt100 also moves the
    /// cursor into the corner, which no terminal does.
    fn enter_alternate(&mut self) {
        if !self.terminal.screen().alternate_screen() {
            let cursor = self.cursor();
            self.draw(b"\x1b[?1049h");
            self.go_to(cursor);
        }
    }

    /// Does nothing if the alternate screen is not shown: programs send this to be sure, and vt100 would move the cursor.
    fn leave_alternate(&mut self, restore_cursor: bool) {
        if self.terminal.screen().alternate_screen() {
            let cursor = self.cursor();
            if restore_cursor {
                self.draw(b"\x1b[?1049l");
            } else {
                self.draw(b"\x1b[?47l");
                self.go_to(cursor);
            }
        }
    }

    /// `CSI ! p`: resets the modes and keeps the screen.
    fn soft_reset(&mut self) {
        let cursor = self.cursor();
        self.draw(b"\x1b[?25h\x1b[?1l\x1b>\x1b[?6l\x1b[r\x1b[m");
        self.go_to(cursor);
        self.modes = Modes { frame: self.modes.frame, other_keys: self.modes.other_keys, ..Modes::default() };
    }

    pub(super) fn escape(&mut self, intermediates: &[u8], last: u8) {
        match (intermediates, last) {
            (b"", b'7' | b'8' | b'=' | b'>' | b'M' | b'g') => self.draw(&[0x1b, last]),
            (b"", b'c') => {
                self.draw(b"\x1bc");
                self.modes = Modes::default();
                self.keyboard = Default::default();
            }
            (b"", b'D') => self.draw(b"\n"),
            (b"", b'E') => self.draw(b"\r\n"),
            (b"(", _) => self.modes.graphics[0] = last == b'0',
            (b")", _) => self.modes.graphics[1] = last == b'0',
            _ => {}
        }
    }

    /// `CSI m`. vt100 understands only some sub-parameters, and takes the numbers of an underline's colour for attributes.
    fn rendition(&mut self, control: &Control<'_>) {
        let parameters = control.parameters;
        if memchr::memchr(b':', parameters).is_none() && !parameters.windows(2).any(|two| two == b"58") {
            return self.draw(control.raw);
        }
        let plain = plain_rendition(&String::from_utf8_lossy(parameters));
        // Without parameters the sequence would be a reset.
        if !plain.is_empty() {
            self.draw(format!("\x1b[{plain}m").as_bytes());
        }
    }
}

/// Returns the attributes without sub-parameters, as far as vt100 has them.
fn plain_rendition(parameters: &str) -> String {
    let mut plain: Vec<String> = Vec::new();
    let mut parameters = parameters.split(';');
    while let Some(parameter) = parameters.next() {
        let parts: Vec<&str> = parameter.split(':').collect();
        match parts[..] {
            ["4", "0"] => plain.push("24".to_owned()),
            ["4", _] => plain.push("4".to_owned()),
            [kind @ ("38" | "48"), "5", index] => plain.push(format!("{kind};5;{index}")),
            // With or without a colour space in front of the colour.
            [kind @ ("38" | "48"), "2", .., r, g, b] => plain.push(format!("{kind};2;{r};{g};{b}")),
            [kind @ ("38" | "48" | "58")] => {
                let space = parameters.next().unwrap_or_default();
                let colour: Vec<&str> = match space {
                    "2" => parameters.by_ref().take(3).collect(),
                    "5" => parameters.by_ref().take(1).collect(),
                    _ => continue,
                };
                if kind != "58" {
                    plain.push(format!("{kind};{space};{}", colour.join(";")));
                }
            }
            [one] => plain.push(one.to_owned()),
            _ => {}
        }
    }
    plain.join(";")
}

#[cfg(test)]
mod tests {
    use super::plain_rendition;

    #[test]
    fn renditions_are_translated_for_vt100() {
        for (given, expected) in [
            ("1;4:3;31", "1;4;31"),
            ("4:0", "24"),
            ("38:2::1:2:3", "38;2;1;2;3"),
            ("38:2:1:2:3;1", "38;2;1;2;3;1"),
            ("48:5:208", "48;5;208"),
            ("58:2::1:2:3", ""),
            ("58;2;1;2;3;1", "1"),
            ("58;5;9;3", "3"),
            ("38;5;158", "38;5;158"),
            ("38;2;58;5;1;4:3", "38;2;58;5;1;4"),
            ("58", ""),
            ("38:9:1", ""),
        ] {
            assert_eq!(plain_rendition(given), expected, "{given:?}");
        }
    }
}
