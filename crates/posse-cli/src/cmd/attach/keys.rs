//! Finds the detach key in the bytes of a keyboard. Terminals write a control key as one byte or, in the kitty protocol and
//! with xterm's modifyOtherKeys, as an escape sequence. Pasted text contains no keys.

const ESC: u8 = 0x1b;
const PASTE_BEGINS: &[u8] = b"\x1b[200~";
const PASTE_ENDS: &[u8] = b"\x1b[201~";

const CTRL: u32 = 4;
/// Caps lock and num lock, which do not change the key.
const LOCKS: u32 = 64 | 128;
const RELEASED: u32 = 3;

/// A key `ctrl-X`.
pub(super) struct DetachKey {
    /// The character that is pressed together with Ctrl.
    character: u8,
    /// Inside a paste: the number of bytes of its end mark seen so far.
    paste: Option<usize>,
}

impl DetachKey {
    /// Returns `None` unless the name is `ctrl-` and a letter or one of `]`, `\`, `^` and `_`.
    pub(super) fn new(name: &str) -> Option<Self> {
        let name = name.to_ascii_lowercase();
        match name.strip_prefix("ctrl-")?.as_bytes() {
            [character @ (b'a'..=b'z' | b']' | b'\\' | b'^' | b'_')] => {
                Some(Self { character: *character, paste: None })
            }
            _ => None,
        }
    }

    /// Returns where the key begins in these bytes. A sequence is found only if it is there as a whole, which is how
    /// terminals write it.
    pub(super) fn find(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        while at < bytes.len() {
            let rest = &bytes[at..];
            if let Some(seen) = self.paste {
                self.paste = in_paste(seen, rest[0]);
                at += 1;
            } else if rest.starts_with(PASTE_BEGINS) {
                self.paste = Some(0);
                at += PASTE_BEGINS.len();
            } else if rest[0] == self.character & 0x1f || self.is_sequence(rest) {
                return Some(at);
            } else if let [ESC, next, ..] = rest
                && !matches!(next, b'[' | b'O' | &ESC)
            {
                // Alt and a key.
                at += 2;
            } else {
                at += 1;
            }
        }
        None
    }

    /// Reports whether the bytes begin with `CSI character;modifiers u` or `CSI 27;modifiers;character ~`.
    fn is_sequence(&self, bytes: &[u8]) -> bool {
        let Some(rest) = bytes.strip_prefix(b"\x1b[") else { return false };
        let Some(end) = rest.iter().position(|byte| !matches!(byte, 0x20..0x40)) else { return false };
        let Ok(parameters) = std::str::from_utf8(&rest[..end]) else { return false };
        let number = |field: usize, part: usize| -> Option<u32> {
            let field = parameters.split(';').nth(field).and_then(|field| field.split(':').nth(part))?;
            field.parse().ok()
        };
        let character = match rest[end] {
            b'u' => number(0, 0),
            b'~' if number(0, 0) == Some(27) => number(2, 0),
            _ => None,
        };
        let modifiers = number(1, 0).unwrap_or(1).saturating_sub(1) & !LOCKS;
        character == Some(self.character.into()) && modifiers == CTRL && number(1, 1) != Some(RELEASED)
    }
}

/// Returns how much of the end mark was seen after this byte; `None` when the paste is over.
fn in_paste(seen: usize, byte: u8) -> Option<usize> {
    let seen = if PASTE_ENDS[seen] == byte { seen + 1 } else { usize::from(byte == ESC) };
    (seen < PASTE_ENDS.len()).then_some(seen)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The detach key, what is typed, and where the key is in it.
    const CASES: &[(&str, &[u8], Option<usize>)] = &[
        ("ctrl-]", b"abc", None),
        ("ctrl-]", b"ls\r\x1drest", Some(3)),
        ("ctrl-q", b"\x1d\x11", Some(1)),
        // The kitty protocol with locks, events, alternates and text, and xterm's way.
        ("CTRL-]", b"\x1b[93;5u", Some(0)),
        ("ctrl-]", b"a\x1b[93;133u", Some(1)),
        ("ctrl-]", b"\x1b[93;69u", Some(0)),
        ("ctrl-]", b"\x1b[93;5:1u", Some(0)),
        ("ctrl-]", b"\x1b[93::93;5u", Some(0)),
        ("ctrl-]", b"\x1b[93;5;93u", Some(0)),
        ("ctrl-]", b"\x1b[27;5;93~", Some(0)),
        // Released, another key, another modifier.
        ("ctrl-]", b"\x1b[93;5:3u", None),
        ("ctrl-]", b"\x1b[193;5u", None),
        ("ctrl-]", b"\x1b[93;6u", None),
        ("ctrl-]", b"\x1b[93u", None),
        ("ctrl-]", b"\x1b\x1d", None),
        ("ctrl-]", b"\x1b\x1b\x1d", None),
        // Pasted, and typed after a paste.
        ("ctrl-]", b"\x1b[200~a\x1db\x1b[201~", None),
        ("ctrl-]", b"\x1b[200~\x1b[93;5u\x1b\x1b[201~c\x1d", Some(21)),
        ("ctrl-]", b"\x1b[12\x1d", Some(4)),
        ("ctrl-]", b"\x1b[<0;1;1M\x1b[I\x1bOA", None),
    ];

    #[test]
    fn key_is_found_outside_of_pastes_only() {
        for (name, bytes, at) in CASES {
            let found = DetachKey::new(name).unwrap().find(bytes);
            assert_eq!(found, *at, "{name} in {:?}", String::from_utf8_lossy(bytes));
        }
    }

    #[test]
    fn paste_may_span_reads() {
        let mut key = DetachKey::new("ctrl-]").unwrap();
        for (bytes, at) in [(&b"\x1b[200~\x1d"[..], None), (b"\x1d\x1b[20", None), (b"1~\x1d", Some(2))] {
            assert_eq!(key.find(bytes), at);
        }
    }

    #[test]
    fn other_keys_are_refused() {
        assert!(["esc", "ctrl-", "ctrl-1", "ctrl-ab", "q", ""].iter().all(|name| DetachKey::new(name).is_none()));
    }
}
