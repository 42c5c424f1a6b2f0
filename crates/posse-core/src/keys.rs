//! Keys by name, as the bytes a terminal sends for them.

/// The bytes of a key: `enter`, `esc`, `tab`, `backspace`, `space`, `delete`, `up`, `down`, `left`, `right`, `home`, `end`,
/// `pageup`, `pagedown`, `shift-tab`, `f1` to `f12`, `ctrl-a` to `ctrl-z`, `ctrl-[`, `ctrl-\`, `ctrl-]`,
/// `alt-` before a character, or a single character.
pub fn key(name: &str) -> Option<Vec<u8>> {
    let lower = name.to_ascii_lowercase();
    let fixed: &[u8] = match lower.as_str() {
        "enter" | "return" => b"\r",
        "esc" | "escape" => b"\x1b",
        "tab" => b"\t",
        "shift-tab" => b"\x1b[Z",
        "backspace" => b"\x7f",
        "space" => b" ",
        "delete" => b"\x1b[3~",
        "up" => b"\x1b[A",
        "down" => b"\x1b[B",
        "right" => b"\x1b[C",
        "left" => b"\x1b[D",
        "home" => b"\x1b[H",
        "end" => b"\x1b[F",
        "pageup" => b"\x1b[5~",
        "pagedown" => b"\x1b[6~",
        "f1" => b"\x1bOP",
        "f2" => b"\x1bOQ",
        "f3" => b"\x1bOR",
        "f4" => b"\x1bOS",
        "f5" => b"\x1b[15~",
        "f6" => b"\x1b[17~",
        "f7" => b"\x1b[18~",
        "f8" => b"\x1b[19~",
        "f9" => b"\x1b[20~",
        "f10" => b"\x1b[21~",
        "f11" => b"\x1b[23~",
        "f12" => b"\x1b[24~",
        _ => b"",
    };
    if !fixed.is_empty() {
        return Some(fixed.to_vec());
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

fn single(text: &str) -> Option<&[u8]> {
    let mut characters = text.chars();
    let first = characters.next()?;
    (characters.next().is_none() && !first.is_control()).then_some(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::key;

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
}
