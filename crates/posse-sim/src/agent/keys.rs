//! Decodes input bytes into keys. Bytes may be cut anywhere; the decoder keeps incomplete sequences.
//!
//! The decoder has no clock. A lone ESC is either the key or the start of a sequence: the caller waits
//! [`ESCAPE_WAIT`] and then calls [`Decoder::flush`].

use std::time::Duration;

/// Time during which a lone ESC may be the start of a sequence. Terminal programs commonly wait 50 ms; on a PTY the
/// rest of a sequence arrives within a millisecond.
pub(super) const ESCAPE_WAIT: Duration = Duration::from_millis(50);

const PASTE_START: &[u8] = b"\x1b[200~";
const PASTE_END: &[u8] = b"\x1b[201~";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TypedKey {
    Char(char),
    Enter,
    /// Alt-Enter or Ctrl-J: a line break in the draft.
    Newline,
    Esc,
    Up,
    Down,
    Backspace,
    /// A control character by its lower-case letter.
    Ctrl(char),
    /// A whole bracketed paste.
    Paste(String),
    /// A complete sequence without a meaning here: a function key, an Alt chord, a reply to a query.
    Other,
}

#[derive(Debug, Default)]
pub(super) struct Decoder {
    pending: Vec<u8>,
    /// Inside a bracketed paste.
    pasting: bool,
}

impl Decoder {
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Vec<TypedKey> {
        self.pending.extend_from_slice(bytes);
        let mut keys = Vec::new();
        while let Some((key, length)) = self.next() {
            keys.extend(key);
            self.pending.drain(..length);
        }
        keys
    }

    /// Returns the first key, if it has a meaning, and its length in bytes. `None` if it is not complete.
    fn next(&mut self) -> Option<(Option<TypedKey>, usize)> {
        let bytes = &self.pending[..];
        if self.pasting {
            let end = find(bytes, PASTE_END)?;
            self.pasting = false;
            let text = String::from_utf8_lossy(&bytes[..end]).replace("\r\n", "\n").replace('\r', "\n");
            return Some((Some(TypedKey::Paste(text)), end + PASTE_END.len()));
        }
        if bytes.starts_with(PASTE_START) {
            self.pasting = true;
            return Some((None, PASTE_START.len()));
        }
        let one = |key| Some((Some(key), 1));
        match *bytes.first()? {
            0x1b => escape(&bytes[1..]),
            b'\r' => one(TypedKey::Enter),
            b'\n' => one(TypedKey::Newline),
            0x7f | 0x08 => one(TypedKey::Backspace),
            byte @ 1..=0x1a => one(TypedKey::Ctrl(char::from(b'a' + byte - 1))),
            0..=0x1f => one(TypedKey::Other),
            _ => character(bytes),
        }
    }

    /// Returns whether a sequence is incomplete and needs [`Self::flush`]. An open paste has no time limit.
    pub(super) fn is_waiting(&self) -> bool {
        !self.pasting && !self.pending.is_empty()
    }

    /// Gives up on an incomplete sequence: a lone ESC is the key, anything longer has no meaning.
    pub(super) fn flush(&mut self) -> Vec<TypedKey> {
        if !self.is_waiting() {
            return Vec::new();
        }
        let key = if self.pending == [0x1b] { TypedKey::Esc } else { TypedKey::Other };
        self.pending.clear();
        vec![key]
    }
}

/// Decodes a character. Bytes that are not part of one, such as a stray continuation, have no meaning.
fn character(bytes: &[u8]) -> Option<(Option<TypedKey>, usize)> {
    let chunk = bytes[..bytes.len().min(4)].utf8_chunks().next()?;
    match chunk.valid().chars().next() {
        Some(c) => Some((Some(TypedKey::Char(c)), c.len_utf8())),
        // The start of a character may be cut.
        None if std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none()) => None,
        None => Some((None, chunk.invalid().len())),
    }
}

/// Decodes what follows ESC. The returned lengths include ESC.
fn escape(rest: &[u8]) -> Option<(Option<TypedKey>, usize)> {
    let key = |key, length| Some((Some(key), length));
    match *rest.first()? {
        b'O' => key(arrow(*rest.get(1)?), 3),
        b'[' => {
            let end = rest.iter().skip(1).position(|byte| !matches!(byte, 0x20..=0x3f))? + 1;
            match (rest[end], &rest[1..end]) {
                (last @ 0x40..=0x7e, b"") => key(arrow(last), end + 2),
                (0x40..=0x7e, _) => key(TypedKey::Other, end + 2),
                // Not part of a sequence, so the sequence was cut off.
                _ => key(TypedKey::Other, end + 1),
            }
        }
        b'\r' => key(TypedKey::Newline, 2),
        0..=0x1f => key(TypedKey::Esc, 1),
        // An Alt chord.
        _ => character(rest).map(|(_, length)| (Some(TypedKey::Other), 1 + length)),
    }
}

fn arrow(last: u8) -> TypedKey {
    match last {
        b'A' => TypedKey::Up,
        b'B' => TypedKey::Down,
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
        (b"\r\n", &[TypedKey::Enter, TypedKey::Newline]),
        (b"\x7f\x08", &[TypedKey::Backspace, TypedKey::Backspace]),
        (b"\x03\x15\x04", &[TypedKey::Ctrl('c'), TypedKey::Ctrl('u'), TypedKey::Ctrl('d')]),
        (b"\x1b[A\x1bOB\x1bOC", &[TypedKey::Up, TypedKey::Down, TypedKey::Other]),
        (b"\x1b", &[TypedKey::Esc]),
        (b"\x1b\x1b", &[TypedKey::Esc, TypedKey::Esc]),
        (b"\x1b\x15", &[TypedKey::Esc, TypedKey::Ctrl('u')]),
        (b"\x1b\r", &[TypedKey::Newline]),
        (b"\x1bx", &[TypedKey::Other]),
        (b"\x1b[13;2u", &[TypedKey::Other]),
        (b"\x1b[5~\x1b[1;5Cx", &[TypedKey::Other, TypedKey::Other, TypedKey::Char('x')]),
        // Replies to device and cursor queries are not typed.
        (b"\x1b[?62;22c\x1b[3;1R", &[TypedKey::Other, TypedKey::Other]),
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
    }
}
