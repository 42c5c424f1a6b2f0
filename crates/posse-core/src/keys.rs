//! Keys by name, as the bytes a terminal sends for them.

use serde::Deserialize;

/// The bytes of a key, written as its name.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct KeyBytes(pub Vec<u8>);

impl KeyBytes {
    pub(crate) fn named(name: &str) -> Self {
        Self(key(name).unwrap_or_default())
    }
}

#[derive(Debug, thiserror::Error)]
#[error("there is no key {0:?}")]
pub struct NoSuchKey(String);

impl TryFrom<String> for KeyBytes {
    type Error = NoSuchKey;
    fn try_from(name: String) -> Result<Self, Self::Error> {
        key(&name).map(Self).ok_or(NoSuchKey(name))
    }
}

const NAMED: &[(&str, &[u8])] = &[
    ("enter", b"\r"),
    ("esc", b"\x1b"),
    ("tab", b"\t"),
    ("shift-tab", b"\x1b[Z"),
    ("backspace", b"\x7f"),
    ("space", b" "),
    ("delete", b"\x1b[3~"),
    ("up", b"\x1b[A"),
    ("down", b"\x1b[B"),
    ("right", b"\x1b[C"),
    ("left", b"\x1b[D"),
    ("home", b"\x1b[H"),
    ("end", b"\x1b[F"),
    ("pageup", b"\x1b[5~"),
    ("pagedown", b"\x1b[6~"),
    ("f1", b"\x1bOP"),
    ("f2", b"\x1bOQ"),
    ("f3", b"\x1bOR"),
    ("f4", b"\x1bOS"),
    ("f5", b"\x1b[15~"),
    ("f6", b"\x1b[17~"),
    ("f7", b"\x1b[18~"),
    ("f8", b"\x1b[19~"),
    ("f9", b"\x1b[20~"),
    ("f10", b"\x1b[21~"),
    ("f11", b"\x1b[23~"),
    ("f12", b"\x1b[24~"),
];

/// The bytes of a key: `enter`, `esc`, `tab`, `backspace`, `space`, `delete`, `up`, `down`, `left`, `right`, `home`, `end`,
/// `pageup`, `pagedown`, `shift-tab`, `f1` to `f12`, `ctrl-a` to `ctrl-z`, `ctrl-[`, `ctrl-\`, `ctrl-]`,
/// `alt-` before a character, or a single character.
pub fn key(name: &str) -> Option<Vec<u8>> {
    let lower = name.to_ascii_lowercase();
    let fixed = match lower.as_str() {
        "return" => "enter",
        "escape" => "esc",
        name => name,
    };
    if let Some((_, bytes)) = NAMED.iter().find(|(name, _)| *name == fixed) {
        return Some(bytes.to_vec());
    }
    if let Some(letter) = lower.strip_prefix("ctrl-") {
        return match letter.as_bytes() {
            [c @ (b'a'..=b'z' | b'[' | b'\\' | b']')] => Some(vec![c & 0x1f]),
            _ => None,
        };
    }
    if let Some(rest) = name.strip_prefix("alt-") {
        return single(rest).map(|bytes| [b"\x1b", bytes].concat());
    }
    single(name).map(<[u8]>::to_vec)
}

/// Returns the name of the key that sends these bytes; for other bytes, the text with its control characters spelt out.
pub fn name(bytes: &[u8]) -> String {
    if let Some((name, _)) = NAMED.iter().find(|(_, named)| *named == bytes) {
        return (*name).to_owned();
    }
    match bytes {
        [c @ 1..=29] => format!("ctrl-{}", char::from(c | 0x40).to_ascii_lowercase()),
        _ => {
            let spelt = |c: char| if c.is_control() { c.escape_default().collect() } else { vec![c] };
            String::from_utf8_lossy(bytes).chars().flat_map(spelt).collect()
        }
    }
}

fn single(text: &str) -> Option<&[u8]> {
    let mut characters = text.chars();
    let first = characters.next()?;
    (characters.next().is_none() && !first.is_control()).then_some(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::{NAMED, key, name};

    #[test]
    fn keys_are_known_by_name() {
        for (name, bytes) in [
            ("enter", &b"\r"[..]),
            ("Esc", b"\x1b"),
            ("ctrl-c", b"\x03"),
            ("ctrl-]", b"\x1d"),
            ("alt-x", b"\x1bx"),
            ("y", b"y"),
            ("é", "é".as_bytes()),
            ("up", b"\x1b[A"),
        ] {
            assert_eq!(key(name).as_deref(), Some(bytes), "{name}");
        }
        for unknown in ["", "ctrl-", "ctrl-1", "ctrl-cc", "entr", "yes", "\n", "alt-"] {
            assert_eq!(key(unknown), None, "{unknown:?}");
        }
    }
    #[test]
    fn a_name_leads_to_its_key_and_back() {
        for (named, bytes) in NAMED {
            assert_eq!((key(named).as_deref(), name(bytes)), (Some(*bytes), (*named).to_owned()));
        }
        for named in ["y", "1", "é", "ctrl-c", "ctrl-z", "ctrl-]", "ctrl-\\"] {
            assert_eq!(name(&key(named).unwrap()), named);
        }
        assert_eq!(key("return"), key("enter"));
        assert_eq!(name(b"two\x1b[2J\n"), "two\\u{1b}[2J\\n", "nothing that could move a cursor");
    }
}
