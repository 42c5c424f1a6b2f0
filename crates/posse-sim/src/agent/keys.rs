//! Decodes input bytes into keys. Bytes may be cut anywhere; the decoder keeps incomplete sequences.
//!
//! The decoder has no clock. A lone ESC is either the key or the start of a sequence: the caller waits
//! [`ESCAPE_WAIT`] and then calls [`Decoder::flush`].

use std::time::Duration;

/// How long a lone ESC may be the start of a sequence. Terminal programs commonly wait 50 ms; on a PTY the rest of a
/// sequence arrives within a millisecond.
pub(crate) const ESCAPE_WAIT: Duration = Duration::from_millis(50);

const PASTE_END: &[u8] = b"\x1b[201~";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TypedKey {
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
    /// A complete sequence without a meaning here: a function key, an Alt chord, a terminal's reply.
    Other,
}

impl TypedKey {
    /// Returns the name in the log.
    pub(crate) fn name(&self) -> String {
        match self {
            TypedKey::Char(c) => c.to_string(),
            TypedKey::Ctrl(c) => format!("ctrl-{c}"),
            TypedKey::Enter => "enter".to_owned(),
            TypedKey::Newline => "newline".to_owned(),
            TypedKey::Esc => "esc".to_owned(),
            TypedKey::Up => "up".to_owned(),
            TypedKey::Down => "down".to_owned(),
            TypedKey::Left => "left".to_owned(),
            TypedKey::Right => "right".to_owned(),
            TypedKey::Backspace => "backspace".to_owned(),
            TypedKey::Tab => "tab".to_owned(),
            TypedKey::Paste(_) => "paste".to_owned(),
            TypedKey::Other => "other".to_owned(),
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Decoder {
    pending: Vec<u8>,
    paste: Option<Vec<u8>>,
}

/// The start of the buffer.
enum ByteFront {
    TypedKey(TypedKey, usize),
    PasteStart(usize),
    /// Bytes that are not input, such as a stray UTF-8 continuation.
    Skip(usize),
    Incomplete,
}

impl Decoder {
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Vec<TypedKey> {
        self.pending.extend_from_slice(bytes);
        let mut keys = Vec::new();
        let mut at = 0;
        loop {
            let rest = &self.pending[at..];
            if let Some(paste) = &mut self.paste {
                if let Some(end) = find(rest, PASTE_END) {
                    paste.extend_from_slice(&rest[..end]);
                    at += end + PASTE_END.len();
                    keys.push(TypedKey::Paste(
                        String::from_utf8_lossy(paste).replace("\r\n", "\n").replace('\r', "\n"),
                    ));
                    self.paste = None;
                    continue;
                }
                // The last bytes may be the start of the end marker.
                let safe = rest.len().saturating_sub(PASTE_END.len() - 1);
                paste.extend_from_slice(&rest[..safe]);
                at += safe;
                break;
            }
            match front(rest) {
                ByteFront::TypedKey(key, length) => {
                    keys.push(key);
                    at += length;
                }
                ByteFront::PasteStart(length) => {
                    self.paste = Some(Vec::new());
                    at += length;
                }
                ByteFront::Skip(length) => at += length,
                ByteFront::Incomplete => break,
            }
        }
        self.pending.drain(..at);
        keys
    }

    /// Returns whether a sequence is incomplete and needs [`Self::flush`]. An open paste has no time limit.
    pub(crate) fn is_waiting(&self) -> bool {
        self.paste.is_none() && !self.pending.is_empty()
    }

    /// Gives up on an incomplete sequence: a lone ESC is the key, anything longer has no meaning.
    pub(crate) fn flush(&mut self) -> Vec<TypedKey> {
        if !self.is_waiting() {
            return Vec::new();
        }
        let key = if self.pending == [0x1b] { TypedKey::Esc } else { TypedKey::Other };
        self.pending.clear();
        vec![key]
    }
}

fn front(bytes: &[u8]) -> ByteFront {
    match bytes {
        [] => ByteFront::Incomplete,
        [0x1b, rest @ ..] => escape(rest),
        [b'\r', ..] => ByteFront::TypedKey(TypedKey::Enter, 1),
        [b'\n', ..] => ByteFront::TypedKey(TypedKey::Newline, 1),
        [b'\t', ..] => ByteFront::TypedKey(TypedKey::Tab, 1),
        [0x7f | 0x08, ..] => ByteFront::TypedKey(TypedKey::Backspace, 1),
        [byte @ 1..=0x1a, ..] => ByteFront::TypedKey(TypedKey::Ctrl(char::from(b'a' + byte - 1)), 1),
        [0..=0x1f, ..] => ByteFront::TypedKey(TypedKey::Other, 1),
        _ => character(bytes),
    }
}

fn character(bytes: &[u8]) -> ByteFront {
    let length = match bytes[0] {
        0..=0x7f => 1,
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => return ByteFront::Skip(1),
    };
    let have = &bytes[..length.min(bytes.len())];
    match std::str::from_utf8(have) {
        Ok(text) => match text.chars().next() {
            Some(c) if have.len() == length => ByteFront::TypedKey(TypedKey::Char(c), length),
            _ => ByteFront::Skip(1),
        },
        // `error_len` is `None` if the bytes are the start of a character.
        Err(error) if error.error_len().is_none() => ByteFront::Incomplete,
        Err(_) => ByteFront::Skip(1),
    }
}

/// Decodes what follows ESC. The returned lengths include ESC.
fn escape(rest: &[u8]) -> ByteFront {
    match rest {
        [] => ByteFront::Incomplete,
        [b'[', body @ ..] => csi(body),
        [b'O', last, ..] => ByteFront::TypedKey(arrow(*last), 3),
        [b'O'] => ByteFront::Incomplete,
        // Replies of the terminal (OSC, DCS, APC, PM) end with BEL or ESC \.
        [b']' | b'P' | b'_' | b'^', body @ ..] => string(body),
        [b'\r', ..] => ByteFront::TypedKey(TypedKey::Newline, 2),
        [0..=0x1f, ..] => ByteFront::TypedKey(TypedKey::Esc, 1),
        _ => match character(rest) {
            ByteFront::TypedKey(_, length) => ByteFront::TypedKey(TypedKey::Other, 1 + length),
            ByteFront::Incomplete => ByteFront::Incomplete,
            _ => ByteFront::TypedKey(TypedKey::Esc, 1),
        },
    }
}

fn string(body: &[u8]) -> ByteFront {
    for (at, byte) in body.iter().enumerate() {
        match byte {
            0x07 => return ByteFront::TypedKey(TypedKey::Other, 2 + at + 1),
            0x1b => match body.get(at + 1) {
                None => return ByteFront::Incomplete,
                Some(b'\\') => return ByteFront::TypedKey(TypedKey::Other, 2 + at + 2),
                // A new sequence begins, so the old one was cut off.
                Some(_) => return ByteFront::TypedKey(TypedKey::Other, 2 + at),
            },
            _ => {}
        }
    }
    ByteFront::Incomplete
}

fn csi(body: &[u8]) -> ByteFront {
    for (at, byte) in body.iter().enumerate() {
        let length = 2 + at + 1;
        match byte {
            0x20..=0x3f => {}
            0x40..=0x7e => {
                return match (byte, &body[..at]) {
                    (b'~', b"200") => ByteFront::PasteStart(length),
                    // Enter and Shift-Enter in the kitty protocol.
                    (b'u', b"13" | b"13;1") => ByteFront::TypedKey(TypedKey::Enter, length),
                    (b'u', b"13;2") => ByteFront::TypedKey(TypedKey::Newline, length),
                    (_, b"") => ByteFront::TypedKey(arrow(*byte), length),
                    _ => ByteFront::TypedKey(TypedKey::Other, length),
                };
            }
            // Not part of a sequence, so the sequence was cut off.
            _ => return ByteFront::TypedKey(TypedKey::Other, length - 1),
        }
    }
    ByteFront::Incomplete
}

fn arrow(last: u8) -> TypedKey {
    match last {
        b'A' => TypedKey::Up,
        b'B' => TypedKey::Down,
        b'C' => TypedKey::Right,
        b'D' => TypedKey::Left,
        b'M' => TypedKey::Enter,
        _ => TypedKey::Other,
    }
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(bytes: &[u8]) -> Vec<TypedKey> {
        let mut decoder = Decoder::default();
        let mut keys = decoder.feed(bytes);
        keys.extend(decoder.flush());
        keys
    }

    const CASES: &[(&[u8], &[TypedKey])] = &[
        (b"a1", &[TypedKey::Char('a'), TypedKey::Char('1')]),
        ("é❯🦀".as_bytes(), &[TypedKey::Char('é'), TypedKey::Char('❯'), TypedKey::Char('🦀')]),
        (b"\r\n\t", &[TypedKey::Enter, TypedKey::Newline, TypedKey::Tab]),
        (b"\x7f\x08", &[TypedKey::Backspace, TypedKey::Backspace]),
        (b"\x03\x15\x04", &[TypedKey::Ctrl('c'), TypedKey::Ctrl('u'), TypedKey::Ctrl('d')]),
        (b"\x1b[A\x1b[B\x1bOC\x1bOD", &[TypedKey::Up, TypedKey::Down, TypedKey::Right, TypedKey::Left]),
        (b"\x1b", &[TypedKey::Esc]),
        (b"\x1b\x1b", &[TypedKey::Esc, TypedKey::Esc]),
        (b"\x1b\x15", &[TypedKey::Esc, TypedKey::Ctrl('u')]),
        (b"\x1b\r", &[TypedKey::Newline]),
        (b"\x1bx", &[TypedKey::Other]),
        (b"\x1b[13u\x1b[13;1u", &[TypedKey::Enter, TypedKey::Enter]),
        (b"\x1b[13;2u", &[TypedKey::Newline]),
        (b"\x1b[13;1:3u", &[TypedKey::Other]),
        (b"\x1b[5~\x1b[1;5Cx", &[TypedKey::Other, TypedKey::Other, TypedKey::Char('x')]),
        // Replies to device, cursor, colour and state queries are not typed.
        (b"\x1b[?62;22c\x1b[3;1R", &[TypedKey::Other, TypedKey::Other]),
        (b"\x1b]11;rgb:00/00/00\x07\x1b]7501;?\x1b\\y", &[TypedKey::Other, TypedKey::Other, TypedKey::Char('y')]),
        (b"\x1b]11;cut\x1b[A", &[TypedKey::Other, TypedKey::Up]),
        (b"\x1b[12\rq", &[TypedKey::Other, TypedKey::Enter, TypedKey::Char('q')]),
        (b"\x80\xffa\xc3(", &[TypedKey::Char('a'), TypedKey::Char('(')]),
    ];

    #[test]
    fn keys_are_decoded() {
        for (bytes, expected) in CASES {
            assert_eq!(&decode(bytes), expected, "{:?}", String::from_utf8_lossy(bytes));
        }
    }

    #[test]
    fn paste_is_one_key_with_normalized_line_ends() {
        assert_eq!(
            decode(b"\x1b[200~one\rtwo\r\n\x1b[31mthree\x1b[201~\r"),
            [TypedKey::Paste("one\ntwo\n\u{1b}[31mthree".into()), TypedKey::Enter]
        );
        let mut open = Decoder::default();
        assert_eq!(open.feed(b"\x1b[200~never ends \x1b"), []);
        assert!(!open.is_waiting(), "an open paste arms no timer");
        assert_eq!(open.flush(), []);
        assert_eq!(open.feed(b"[201~"), [TypedKey::Paste("never ends ".into())]);
    }

    #[test]
    fn keys_do_not_depend_on_where_bytes_are_cut() {
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
        let mut keys: Vec<TypedKey> = all.iter().flat_map(|byte| decoder.feed(&[*byte])).collect();
        keys.extend(decoder.flush());
        assert_eq!(keys, whole, "byte by byte");
    }
}
