//! Input bytes to keys. Bytes may be cut anywhere; the decoder keeps what it cannot read yet.
//!
//! It does not know time. A lone ESC is either the key or the start of a sequence that is still on its
//! way: the caller waits [`ESCAPE_WAIT`] and then calls [`Decoder::flush`].

use std::time::Duration;

/// How long a lone ESC may be the start of something longer. 50 ms is what terminal programs commonly
/// wait; a sequence cut in two arrives within a millisecond on a PTY.
pub(crate) const ESCAPE_WAIT: Duration = Duration::from_millis(50);

const PASTE_END: &[u8] = b"\x1b[201~";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    Char(char),
    Enter,
    /// Enter with a modifier, or Ctrl-J: a line break in the draft.
    Newline,
    Esc,
    Up,
    Down,
    Left,
    Right,
    Backspace,
    Tab,
    /// A control character by its lower-case letter.
    Ctrl(char),
    /// A whole bracketed paste.
    Paste(String),
    /// Something complete that means nothing here: a function key, an Alt chord, a terminal's reply.
    Other,
}

impl Key {
    /// As the log writes it.
    pub(crate) fn name(&self) -> String {
        match self {
            Key::Char(c) => c.to_string(),
            Key::Ctrl(c) => format!("ctrl-{c}"),
            Key::Enter => "enter".to_owned(),
            Key::Newline => "newline".to_owned(),
            Key::Esc => "esc".to_owned(),
            Key::Up => "up".to_owned(),
            Key::Down => "down".to_owned(),
            Key::Left => "left".to_owned(),
            Key::Right => "right".to_owned(),
            Key::Backspace => "backspace".to_owned(),
            Key::Tab => "tab".to_owned(),
            Key::Paste(_) => "paste".to_owned(),
            Key::Other => "other".to_owned(),
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Decoder {
    pending: Vec<u8>,
    paste: Option<Vec<u8>>,
}

/// What the front of the buffer is.
enum Front {
    Key(Key, usize),
    PasteStart(usize),
    /// Bytes that are no input at all, such as a stray UTF-8 continuation.
    Skip(usize),
    Incomplete,
}

impl Decoder {
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Vec<Key> {
        self.pending.extend_from_slice(bytes);
        let mut keys = Vec::new();
        let mut at = 0;
        loop {
            let rest = &self.pending[at..];
            if let Some(paste) = &mut self.paste {
                if let Some(end) = find(rest, PASTE_END) {
                    paste.extend_from_slice(&rest[..end]);
                    at += end + PASTE_END.len();
                    keys.push(Key::Paste(String::from_utf8_lossy(paste).replace("\r\n", "\n").replace('\r', "\n")));
                    self.paste = None;
                    continue;
                }
                // The last bytes may be the first bytes of the end marker.
                let safe = rest.len().saturating_sub(PASTE_END.len() - 1);
                paste.extend_from_slice(&rest[..safe]);
                at += safe;
                break;
            }
            match front(rest) {
                Front::Key(key, length) => {
                    keys.push(key);
                    at += length;
                }
                Front::PasteStart(length) => {
                    self.paste = Some(Vec::new());
                    at += length;
                }
                Front::Skip(length) => at += length,
                Front::Incomplete => break,
            }
        }
        self.pending.drain(..at);
        keys
    }

    /// Whether bytes wait whose meaning time decides. An open paste waits for its end, however long.
    pub(crate) fn is_waiting(&self) -> bool {
        self.paste.is_none() && !self.pending.is_empty()
    }

    /// Gives up waiting: a lone ESC was the key, anything longer was cut off and means nothing.
    pub(crate) fn flush(&mut self) -> Vec<Key> {
        if !self.is_waiting() {
            return Vec::new();
        }
        let key = if self.pending == [0x1b] { Key::Esc } else { Key::Other };
        self.pending.clear();
        vec![key]
    }
}

fn front(bytes: &[u8]) -> Front {
    match bytes {
        [] => Front::Incomplete,
        [0x1b, rest @ ..] => escape(rest),
        [b'\r', ..] => Front::Key(Key::Enter, 1),
        [b'\n', ..] => Front::Key(Key::Newline, 1),
        [b'\t', ..] => Front::Key(Key::Tab, 1),
        [0x7f | 0x08, ..] => Front::Key(Key::Backspace, 1),
        [byte @ 1..=0x1a, ..] => Front::Key(Key::Ctrl(char::from(b'a' + byte - 1)), 1),
        [0..=0x1f, ..] => Front::Key(Key::Other, 1),
        _ => character(bytes),
    }
}

fn character(bytes: &[u8]) -> Front {
    let length = match bytes[0] {
        0..=0x7f => 1,
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => return Front::Skip(1),
    };
    let have = &bytes[..length.min(bytes.len())];
    match std::str::from_utf8(have) {
        Ok(text) => match text.chars().next() {
            Some(c) if have.len() == length => Front::Key(Key::Char(c), length),
            _ => Front::Skip(1),
        },
        // `error_len` is none exactly when the bytes so far are a good beginning.
        Err(error) if error.error_len().is_none() => Front::Incomplete,
        Err(_) => Front::Skip(1),
    }
}

/// `rest` is what follows ESC; lengths returned include it.
fn escape(rest: &[u8]) -> Front {
    match rest {
        [] => Front::Incomplete,
        [b'[', body @ ..] => csi(body),
        [b'O', last, ..] => Front::Key(arrow(*last), 3),
        [b'O'] => Front::Incomplete,
        // Replies of the terminal: OSC, DCS, APC, PM. They end with BEL or ESC \.
        [b']' | b'P' | b'_' | b'^', body @ ..] => string(body),
        [b'\r', ..] => Front::Key(Key::Newline, 2),
        [0..=0x1f, ..] => Front::Key(Key::Esc, 1),
        _ => match character(rest) {
            Front::Key(_, length) => Front::Key(Key::Other, 1 + length),
            Front::Incomplete => Front::Incomplete,
            _ => Front::Key(Key::Esc, 1),
        },
    }
}

fn string(body: &[u8]) -> Front {
    for (at, byte) in body.iter().enumerate() {
        match byte {
            0x07 => return Front::Key(Key::Other, 2 + at + 1),
            0x1b => match body.get(at + 1) {
                None => return Front::Incomplete,
                Some(b'\\') => return Front::Key(Key::Other, 2 + at + 2),
                // A new sequence begins: the old one was cut off.
                Some(_) => return Front::Key(Key::Other, 2 + at),
            },
            _ => {}
        }
    }
    Front::Incomplete
}

fn csi(body: &[u8]) -> Front {
    for (at, byte) in body.iter().enumerate() {
        let length = 2 + at + 1;
        match byte {
            0x20..=0x3f => {}
            0x40..=0x7e => {
                let parameters = &body[..at];
                return match (byte, parameters) {
                    (b'~', b"200") => Front::PasteStart(length),
                    (b'u', _) => Front::Key(chord(number(parameters, 0), number(parameters, 1), parameters), length),
                    // xterm's modifyOtherKeys: 27 ; modifiers ; code ~
                    (b'~', _) if number(parameters, 0) == Some(27) => {
                        Front::Key(chord(number(parameters, 2), number(parameters, 1), b""), length)
                    }
                    (_, b"") => Front::Key(arrow(*byte), length),
                    _ => Front::Key(Key::Other, length),
                };
            }
            // No part of a sequence: what came before it was cut off.
            _ => return Front::Key(Key::Other, length - 1),
        }
    }
    Front::Incomplete
}

fn arrow(last: u8) -> Key {
    match last {
        b'A' => Key::Up,
        b'B' => Key::Down,
        b'C' => Key::Right,
        b'D' => Key::Left,
        b'M' => Key::Enter,
        _ => Key::Other,
    }
}

/// A key of the kitty protocol: code, modifiers (one more than a bit set), and maybe `:3` for a release.
fn chord(code: Option<u32>, modifiers: Option<u32>, parameters: &[u8]) -> Key {
    const CTRL: u32 = 4;
    let released = parameters.split(|b| *b == b';').nth(1).is_some_and(|part| part.ends_with(b":3"));
    let held = modifiers.unwrap_or(1).saturating_sub(1);
    match code {
        _ if released => Key::Other,
        Some(13 | 57414) if held == 0 => Key::Enter,
        Some(13 | 57414) => Key::Newline,
        Some(27) => Key::Esc,
        Some(9) if held == 0 => Key::Tab,
        Some(127) if held == 0 => Key::Backspace,
        Some(code @ 97..=122) if held == CTRL => char::from_u32(code).map_or(Key::Other, Key::Ctrl),
        Some(code @ 32..) if held <= 1 => char::from_u32(code).map_or(Key::Other, Key::Char),
        _ => Key::Other,
    }
}

/// The nth parameter, without its sub-parameters.
fn number(parameters: &[u8], n: usize) -> Option<u32> {
    let part = parameters.split(|b| *b == b';').nth(n)?;
    let digits = part.split(|b| *b == b':').next()?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(bytes: &[u8]) -> Vec<Key> {
        let mut decoder = Decoder::default();
        let mut keys = decoder.feed(bytes);
        keys.extend(decoder.flush());
        keys
    }

    const CASES: &[(&[u8], &[Key])] = &[
        (b"a1", &[Key::Char('a'), Key::Char('1')]),
        ("é❯🦀".as_bytes(), &[Key::Char('é'), Key::Char('❯'), Key::Char('🦀')]),
        (b"\r\n\t", &[Key::Enter, Key::Newline, Key::Tab]),
        (b"\x7f\x08", &[Key::Backspace, Key::Backspace]),
        (b"\x03\x15\x04", &[Key::Ctrl('c'), Key::Ctrl('u'), Key::Ctrl('d')]),
        (b"\x1b[A\x1b[B\x1bOC\x1bOD", &[Key::Up, Key::Down, Key::Right, Key::Left]),
        (b"\x1b", &[Key::Esc]),
        (b"\x1b\x1b", &[Key::Esc, Key::Esc]),
        (b"\x1b\x15", &[Key::Esc, Key::Ctrl('u')]),
        (b"\x1b\r", &[Key::Newline]),
        (b"\x1bx", &[Key::Other]),
        (b"\x1b[13u\x1b[13;1u", &[Key::Enter, Key::Enter]),
        (b"\x1b[13;2u\x1b[27;2;13~", &[Key::Newline, Key::Newline]),
        (b"\x1b[13;1:3u", &[Key::Other]),
        (b"\x1b[27u\x1b[99;5u\x1b[97u", &[Key::Esc, Key::Ctrl('c'), Key::Char('a')]),
        (b"\x1b[5~\x1b[1;5Cx", &[Key::Other, Key::Other, Key::Char('x')]),
        // Replies to device, cursor, colour and state queries are not typed.
        (b"\x1b[?62;22c\x1b[3;1R", &[Key::Other, Key::Other]),
        (b"\x1b]11;rgb:00/00/00\x07\x1b]7501;?\x1b\\y", &[Key::Other, Key::Other, Key::Char('y')]),
        (b"\x1b]11;cut\x1b[A", &[Key::Other, Key::Up]),
        (b"\x1b[12\rq", &[Key::Other, Key::Enter, Key::Char('q')]),
        (b"\x80\xffa\xc3(", &[Key::Char('a'), Key::Char('(')]),
    ];

    #[test]
    fn keys_are_told_apart() {
        for (bytes, expected) in CASES {
            assert_eq!(&decode(bytes), expected, "{:?}", String::from_utf8_lossy(bytes));
        }
    }

    #[test]
    fn a_paste_is_one_key_with_its_line_ends_made_plain() {
        assert_eq!(
            decode(b"\x1b[200~one\rtwo\r\n\x1b[31mthree\x1b[201~\r"),
            [Key::Paste("one\ntwo\n\u{1b}[31mthree".into()), Key::Enter]
        );
        let mut open = Decoder::default();
        assert_eq!(open.feed(b"\x1b[200~never ends \x1b"), []);
        assert!(!open.is_waiting(), "an open paste arms no timer");
        assert_eq!(open.flush(), []);
        assert_eq!(open.feed(b"[201~"), [Key::Paste("never ends ".into())]);
    }

    #[test]
    fn where_the_bytes_are_cut_does_not_matter() {
        let mut all: Vec<u8> =
            CASES.iter().filter(|(b, _)| b.len() > 2).flat_map(|(bytes, _)| bytes.to_vec()).collect();
        all.extend_from_slice("\x1b[200~päste\x1b[20\x1b[201~\x1b[A".as_bytes());
        let whole = decode(&all);
        for cut in 0..=all.len() {
            let mut decoder = Decoder::default();
            let mut keys = decoder.feed(&all[..cut]);
            keys.extend(decoder.feed(&all[cut..]));
            keys.extend(decoder.flush());
            assert_eq!(keys, whole, "cut at {cut}");
        }
        let mut decoder = Decoder::default();
        let mut keys: Vec<Key> = all.iter().flat_map(|byte| decoder.feed(&[*byte])).collect();
        keys.extend(decoder.flush());
        assert_eq!(keys, whole, "byte by byte");
    }
}
