//! Finding the key that detaches in what a keyboard sends. Pure: bytes in, bytes for the program out.
//!
//! Keys are compared whole, whatever way a terminal spells them: plain, as the kitty protocol does, or as xterm's
//! modifyOtherKeys does. What is pasted is no key. A key may be split over two reads; its beginning is then held until
//! the rest comes or, as a lone Esc begins like an arrow key, until it is clear that nothing follows.

use posse_core::keys;

const ESC: u8 = 0x1b;
const PASTE_BEGINS: &[u8] = b"\x1b[200~";
const PASTE_ENDS: &[u8] = b"\x1b[201~";
/// No key is longer. What goes on beyond this is passed on, not held.
const LONGEST: usize = 256;

const SHIFT: u32 = 1;
const ALT: u32 = 2;
const CTRL: u32 = 4;
/// Caps lock and num lock, which are on or off without anyone meaning it.
const LOCKS: u32 = 64 | 128;
const RELEASED: u32 = 3;

/// A key as its user means it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Key {
    code: Code,
    modifiers: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Code {
    Character(u32),
    /// Named by the last letter of its sequence: `CSI A` is up.
    Letter(u8),
    /// Named by a number: `CSI 5 ~` is page up.
    Number(u32),
}

/// What was typed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Typed {
    /// For the program. If the detach key was typed, what came before it.
    pub(super) keys: Vec<u8>,
    pub(super) detach: bool,
}

pub(super) struct Splitter {
    /// The detach key, in all its meanings: Ctrl-[ is Esc, too.
    detach: Vec<Key>,
    /// The beginning of a key.
    held: Vec<u8>,
    /// While something is pasted: how much of the mark for its end has been seen.
    paste: Option<usize>,
}

impl Splitter {
    /// `None` if there is no such key.
    pub(super) fn new(detach_key: &str) -> Option<Self> {
        let mut detach = vec![key(&keys::key(detach_key)?)?];
        let name = detach_key.to_ascii_lowercase();
        if let Some(letter) = name.strip_prefix("ctrl-").and_then(|letter| letter.bytes().next()) {
            detach.push(Key { code: Code::Character(letter.into()), modifiers: CTRL });
        } else if name == "shift-tab" {
            detach.push(Key { code: Code::Character(b'\t'.into()), modifiers: SHIFT });
        }
        Some(Self { detach, held: Vec::new(), paste: None })
    }

    /// Whether something is held that must not wait for long.
    pub(super) fn holds(&self) -> bool {
        !self.held.is_empty()
    }

    pub(super) fn feed(&mut self, bytes: &[u8]) -> Typed {
        let mut keys = std::mem::take(&mut self.held);
        keys.extend_from_slice(bytes);
        let mut done = 0;
        while done < keys.len() {
            if let Some(seen) = self.paste {
                self.paste = in_paste(seen, keys[done]);
                done += 1;
                continue;
            }
            let Some(length) = length(&keys[done..]) else { break };
            let one = &keys[done..done + length];
            if self.detaches(one) {
                keys.truncate(done);
                return Typed { keys, detach: true };
            }
            self.paste = (one == PASTE_BEGINS).then_some(0);
            done += length;
        }
        self.held = keys.split_off(done);
        Typed { keys, detach: false }
    }

    /// Nothing follows: what is held is all there is.
    pub(super) fn flush(&mut self) -> Typed {
        let keys = std::mem::take(&mut self.held);
        if self.detaches(&keys) { Typed { keys: Vec::new(), detach: true } } else { Typed { keys, detach: false } }
    }

    fn detaches(&self, one: &[u8]) -> bool {
        key(one).is_some_and(|key| self.detach.contains(&key))
    }
}

/// How much of the mark for the end of a paste has been seen after this byte; `None` when the paste is over.
fn in_paste(seen: usize, byte: u8) -> Option<usize> {
    let seen = if PASTE_ENDS[seen] == byte { seen + 1 } else { usize::from(byte == ESC) };
    (seen < PASTE_ENDS.len()).then_some(seen)
}

/// The length of the first key; `None` if it may go on.
fn length(bytes: &[u8]) -> Option<usize> {
    match bytes {
        [] | [ESC] | [ESC, b'O'] | [ESC, b'[', b'['] => None,
        [ESC, ESC, ..] => Some(1),
        [ESC, b'O', letter, ..] if letter.is_ascii_alphabetic() => Some(3),
        // The function keys of the Linux console.
        [ESC, b'[', b'[', ..] => Some(4),
        // A mouse, in the oldest way: three bytes of any kind follow.
        [ESC, b'[', b'M', rest @ ..] => (rest.len() >= 3).then_some(6),
        [ESC, b'[', rest @ ..] => match rest.iter().position(|byte| !matches!(byte, 0x20..0x40)) {
            None => (bytes.len() >= LONGEST).then_some(bytes.len()),
            Some(end) if matches!(rest[end], 0x40..0x7f) => Some(2 + end + 1),
            Some(broken_off) => Some(2 + broken_off),
        },
        [ESC, rest @ ..] => character_length(rest).map(|length| 1 + length),
        _ => character_length(bytes),
    }
}

fn character_length(bytes: &[u8]) -> Option<usize> {
    let length = match bytes.first()? {
        0xc2..0xe0 => 2,
        0xe0..0xf0 => 3,
        0xf0..0xf5 => 4,
        _ => 1,
    };
    let continued = bytes.iter().skip(1).take(length - 1).take_while(|byte| matches!(byte, 0x80..0xc0)).count();
    match 1 + continued {
        whole if whole == length => Some(length),
        so_far if so_far == bytes.len() => None,
        _ => Some(1),
    }
}

/// What key this is, from first byte to last. `None` for what is no key going down, such as a mouse.
fn key(one: &[u8]) -> Option<Key> {
    match one {
        [ESC, b'O', letter] => Some(Key { code: Code::Letter(*letter), modifiers: 0 }),
        [ESC, b'[', parameters @ .., last] => sequence(parameters, *last),
        [ESC, rest @ ..] if !rest.is_empty() => key(rest).map(|key| Key { modifiers: key.modifiers | ALT, ..key }),
        _ => {
            let character = u32::from(std::str::from_utf8(one).ok()?.chars().next()?);
            let (character, modifiers) = match character {
                9 | 13 | 27 => (character, 0),
                1..27 => (character | 0x60, CTRL),
                0..32 => (character | 0x40, CTRL),
                _ => (character, 0),
            };
            Some(Key { code: Code::Character(character), modifiers })
        }
    }
}

/// `code[:alternates];modifiers[:event][;text]` and how it ends.
fn sequence(parameters: &[u8], last: u8) -> Option<Key> {
    let text = std::str::from_utf8(parameters).ok()?;
    let number = |field: usize, part: usize| -> Option<u32> {
        let number = text.split(';').nth(field).and_then(|field| field.split(':').nth(part)).unwrap_or_default();
        if number.is_empty() { Some(1) } else { number.parse().ok() }
    };
    let first = number(0, 0)?;
    if number(1, 1)? == RELEASED {
        return None;
    }
    let code = match last {
        b'u' => Code::Character(first),
        b'~' if first == 27 => Code::Character(number(2, 0)?),
        b'~' => Code::Number(first),
        _ if first == 1 => Code::Letter(last),
        _ => return None,
    };
    Some(Key { code, modifiers: number(1, 0)?.saturating_sub(1) & !LOCKS })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The detach key, what is typed, what reaches the program, whether it detaches.
    type Case<'a> = (&'a str, &'a [u8], &'a [u8], bool);

    const CASES: &[Case] = &[
        ("ctrl-]", b"abc", b"abc", false),
        ("ctrl-]", b"\x1d", b"", true),
        ("ctrl-]", b"ls\r\x1drest", b"ls\r", true),
        ("CTRL-]", b"\x1b[93;5u", b"", true),
        // Locks, events, alternates, text; xterm's way.
        ("ctrl-]", b"a\x1b[93;133u", b"a", true),
        ("ctrl-]", b"\x1b[93;69u", b"", true),
        ("ctrl-]", b"\x1b[93;5:1u", b"", true),
        ("ctrl-]", b"\x1b[93;5:2u", b"", true),
        ("ctrl-]", b"\x1b[93::93;5u", b"", true),
        ("ctrl-]", b"\x1b[93;5;93u", b"", true),
        ("ctrl-]", b"\x1b[27;5;93~", b"", true),
        // Let go, another key, another modifier, more than the key.
        ("ctrl-]", b"\x1b[93;5:3u", b"\x1b[93;5:3u", false),
        ("ctrl-]", b"\x1b[193;5u", b"\x1b[193;5u", false),
        ("ctrl-]", b"\x1b[93;6u", b"\x1b[93;6u", false),
        ("ctrl-]", b"\x1b[93u", b"\x1b[93u", false),
        ("ctrl-]", b"\x1b\x1d", b"\x1b\x1d", false),
        // Pasted, and typed after that.
        ("ctrl-]", b"\x1b[200~a\x1db\x1b[201~", b"\x1b[200~a\x1db\x1b[201~", false),
        ("ctrl-]", b"\x1b[200~\x1b[93;5u\x1b\x1b[201~c\x1d", b"\x1b[200~\x1b[93;5u\x1b\x1b[201~c", true),
        ("q", b"\x1b[200~q\x1b[20\x1b[201~q", b"\x1b[200~q\x1b[20\x1b[201~", true),
        // Broken off by the key itself.
        ("ctrl-]", b"\x1b[12\x1d", b"\x1b[12", true),
        // Esc, and what begins like it.
        ("esc", b"\x1b[A\x1b[1;5B\x1bOC\x1bx", b"\x1b[A\x1b[1;5B\x1bOC\x1bx", false),
        ("esc", b"a\x1b\x1b", b"a", true),
        ("esc", b"\x1b[27u", b"", true),
        ("esc", b"\x1b[27;129u", b"", true),
        ("ctrl-[", b"\x1b[91;5u", b"", true),
        // Keys with other names.
        ("up", b"\x1b[A", b"", true),
        ("up", b"\x1bOA", b"", true),
        ("up", b"\x1b[1;129A", b"", true),
        ("up", b"\x1b[1;1:3A\x1b[1;2A\x1b[B", b"\x1b[1;1:3A\x1b[1;2A\x1b[B", false),
        ("f1", b"\x1b[P", b"", true),
        ("f5", b"\x1b[15;129~", b"", true),
        ("pageup", b"\x1b[5;5~\x1b[5~", b"\x1b[5;5~", true),
        ("shift-tab", b"\x1b[9;2u", b"", true),
        ("alt-x", b"x\x1b[120;3u", b"x", true),
        ("alt-x", b"\x1bx", b"", true),
        ("tab", b"\x1b[9u", b"", true),
        ("é", "aéb".as_bytes(), b"a", true),
        ("é", "è".as_bytes(), "è".as_bytes(), false),
        ("é", b"\xc3x\xff\x80", b"\xc3x\xff\x80", false),
        // A mouse that clicks where a letter would be, and what is no key.
        ("q", b"\x1b[Mqqq\x1b[<0;1;1M\x1b[[q\x1b[I", b"\x1b[Mqqq\x1b[<0;1;1M\x1b[[q\x1b[I", false),
    ];

    fn typed(detach_key: &str, reads: &[&[u8]]) -> Typed {
        let mut splitter = Splitter::new(detach_key).unwrap();
        let mut all = Typed::default();
        for bytes in reads {
            let typed = splitter.feed(bytes);
            all.keys.extend(typed.keys);
            if typed.detach {
                return Typed { detach: true, ..all };
            }
        }
        let typed = splitter.flush();
        all.keys.extend(typed.keys);
        Typed { detach: typed.detach, ..all }
    }

    #[test]
    fn the_key_is_found_whole_wherever_reads_end() {
        for (detach_key, bytes, keys, detach) in CASES {
            let expected = Typed { keys: keys.to_vec(), detach: *detach };
            let shown = String::from_utf8_lossy(bytes).into_owned();
            for end in 0..=bytes.len() {
                let (first, second) = bytes.split_at(end);
                assert_eq!(typed(detach_key, &[first, second]), expected, "{detach_key} in {shown:?} split at {end}");
            }
            let single: Vec<&[u8]> = bytes.chunks(1).collect();
            assert_eq!(typed(detach_key, &single), expected, "{detach_key} in {shown:?}, byte by byte");
        }
    }

    #[test]
    fn only_what_may_be_a_key_is_held_and_not_for_ever() {
        let mut splitter = Splitter::new("ctrl-]").unwrap();
        assert_eq!(splitter.feed(b"a\x1b").keys, b"a");
        assert!(splitter.holds());
        assert_eq!(splitter.flush(), Typed { keys: vec![ESC], detach: false });
        assert!(!splitter.holds());
        assert_eq!(splitter.feed(b"[A").keys, b"[A");
        assert_eq!(splitter.feed(b"\x1b[200~\x1b[20").keys, b"\x1b[200~\x1b[20", "a paste is never held");
        assert_eq!(splitter.feed(b"1~").keys, b"1~");
        let endless = [b"\x1b[".as_slice(), &[b'1'; LONGEST]].concat();
        assert_eq!(splitter.feed(&endless).keys, endless);
        assert!(Splitter::new("esc").unwrap().feed(b"\x1b").keys.is_empty());
        assert!(Splitter::new("no such key").is_none());
    }

    #[test]
    fn a_lone_esc_detaches_if_that_is_the_key() {
        let mut splitter = Splitter::new("esc").unwrap();
        assert_eq!(splitter.feed(b"a\x1b"), Typed { keys: b"a".to_vec(), detach: false });
        assert_eq!(splitter.flush(), Typed { keys: vec![], detach: true });
    }
}
