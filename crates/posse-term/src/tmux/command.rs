//! Commands for tmux, built so that nothing that came from outside can become one.
//!
//! tmux reads a command twice: its parser knows quotes, `;`, `$VARIABLE` and `~`, and many commands then expand
//! what they got as a format, where `#(…)` runs a shell. So text from outside goes through [`Line::text`] (parsed
//! only) or [`Line::literal`] (expanded as well), and things tmux has made are named by their ids, which are numbers.

use std::fmt;
use std::str::FromStr;

/// The longest name given to a session or window. Longer ones are cut: they are for people's eyes only.
const NAME_MAX: usize = 64;

macro_rules! id {
    ($(#[$about:meta])* $name:ident, $sigil:literal) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub(super) struct $name(pub(super) u32);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($sigil, "{}"), self.0)
            }
        }

        impl FromStr for $name {
            type Err = ();
            fn from_str(text: &str) -> Result<Self, ()> {
                let digits = text.strip_prefix($sigil).ok_or(())?;
                if digits.bytes().all(|b| b.is_ascii_digit()) { digits.parse().map(Self).map_err(drop) } else { Err(()) }
            }
        }
    };
}

id!(
    /// A pane keeps its id for life, through every move and rename, and no other pane of the same server ever
    /// gets it.
    PaneId,
    "%"
);
id!(WindowId, "@");
id!(SessionId, "$");

/// One line for tmux: commands that are done one after the other without anything in between, up to the first
/// that fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    text: String,
    commands: usize,
}

impl Line {
    /// Words of ours, written as tmux reads them.
    pub(super) fn new(words: &'static str) -> Self {
        Self { text: words.to_owned(), commands: 1 }
    }

    /// One more command.
    pub(super) fn then(mut self, words: &'static str) -> Self {
        self.text.push_str(" ; ");
        self.text.push_str(words);
        self.commands += 1;
        self
    }

    pub(super) fn words(mut self, words: &'static str) -> Self {
        self.text.push(' ');
        self.text.push_str(words);
        self
    }

    /// Text from outside, as one argument. Not for arguments that tmux expands as formats.
    pub(super) fn text(mut self, text: impl AsRef<[u8]>) -> Self {
        self.text.push(' ');
        quote(text.as_ref(), &mut self.text);
        self
    }

    /// Text from outside, as one argument that tmux expands as a format: it expands to itself.
    pub(super) fn literal(self, text: impl AsRef<[u8]>) -> Self {
        let (mut out, mut rest) = (Vec::new(), text.as_ref());
        while let Some(&first) = rest.first() {
            let run = rest.iter().take_while(|byte| **byte == b'#').count();
            let (sharps, after) = rest.split_at(run.max(1));
            out.extend_from_slice(sharps);
            // Two are one, except before a bracket, where all are left for the one who draws.
            if first == b'#' && after.first() != Some(&b'[') {
                out.extend_from_slice(sharps);
            }
            rest = after;
        }
        self.text(out)
    }

    pub(super) fn number(self, number: impl Into<u64>) -> Self {
        self.text(number.into().to_string())
    }

    pub(super) fn pane(self, id: PaneId) -> Self {
        self.text(id.to_string())
    }

    pub(super) fn window(self, id: WindowId) -> Self {
        self.text(id.to_string())
    }

    pub(super) fn session(self, id: SessionId) -> Self {
        self.text(id.to_string())
    }

    /// Bytes as hexadecimal arguments, for `send-keys -H`.
    pub(super) fn hexadecimal(mut self, bytes: &[u8]) -> Self {
        for byte in bytes {
            self.text.push_str(&format!(" {byte:02x}"));
        }
        self
    }

    /// How many answers it gets if nothing fails.
    pub(super) fn commands(&self) -> usize {
        self.commands
    }

    /// As it is written to tmux.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.text.clone().into_bytes();
        bytes.push(b'\n');
        bytes
    }

    #[cfg(test)]
    pub(super) fn as_str(&self) -> &str {
        &self.text
    }
}

/// Everything but harmless characters as three octal digits, which tmux understands between double quotes. Line
/// breaks too: in control mode they would end the command. An empty text stays an argument.
fn quote(text: &[u8], out: &mut String) {
    out.push('"');
    for byte in text {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'/' | b':' | b'=' | b'%' | b'@' | b' ' => {
                out.push(*byte as char);
            }
            // There is no argument with a zero byte in any program; where it would end, ours ends.
            0 => break,
            other => out.push_str(&format!("\\{other:03o}")),
        }
    }
    out.push('"');
}

/// A name for a session or window. What has a meaning in targets, formats or on somebody's terminal is replaced:
/// the name is for people, our own way to the pane is its id.
pub(super) fn name(given: &str) -> String {
    let allowed = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '+' | '@');
    let mut name: String = given.chars().take(NAME_MAX).map(|c| if allowed(c) { c } else { '_' }).collect();
    // Signs in front would read as options or relative targets.
    if !name.starts_with(|c: char| c.is_alphanumeric() || c == '_') {
        name.insert(0, '_');
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_a_sign_and_a_number() {
        assert_eq!("%12".parse(), Ok(PaneId(12)));
        assert_eq!("@0".parse(), Ok(WindowId(0)));
        assert_eq!(SessionId(7).to_string(), "$7");
        for bad in ["", "%", "12", "%-1", "%+1", "@1", "%1 ", "%99999999999"] {
            assert_eq!(bad.parse::<PaneId>(), Err(()), "{bad:?}");
        }
    }

    #[test]
    fn a_line_counts_its_commands() {
        let line = Line::new("kill-pane -t").pane(PaneId(3)).then("display-message -p").text("a;b");
        assert_eq!(line.as_str(), r#"kill-pane -t "%3" ; display-message -p "a\073b""#);
        assert_eq!(line.commands(), 2);
        assert_eq!(Line::new("send-keys -H").hexadecimal(b"\0a\xff").bytes(), b"send-keys -H 00 61 ff\n");
    }

    #[test]
    fn nothing_gets_out_of_its_quotes() {
        let quoted = |text: &[u8]| Line::new("x").text(text).as_str().to_owned();
        assert_eq!(quoted(b""), r#"x """#);
        assert_eq!(quoted(b"a'b\"c"), r#"x "a\047b\042c""#);
        assert_eq!(quoted(b"$HOME;\n~{}"), r#"x "\044HOME\073\012\176\173\175""#);
        assert_eq!(quoted("ä\\".as_bytes()), r#"x "\303\244\134""#);
        assert_eq!(quoted(b"a\0b"), r#"x "a""#);
        let literal = |text| Line::new("x").literal(text).as_str().to_owned();
        assert_eq!(literal("#(ls)"), r#"x "\043\043\050ls\051""#);
        assert_eq!(literal("##a"), r#"x "\043\043\043\043a""#);
        assert_eq!(literal("##[a]"), r#"x "\043\043\133a\135""#);
    }

    #[test]
    fn names_keep_what_is_harmless() {
        for (given, expected) in [
            ("analyst-1f", "analyst-1f"),
            ("Müller", "Müller"),
            ("a.b:c", "a_b_c"),
            ("#(reboot)", "__reboot_"),
            ("", "_"),
            ("-t", "_-t"),
            ("$1", "_1"),
            ("@1", "_@1"),
            ("a\n\x1b]", "a___"),
        ] {
            assert_eq!(name(given), expected, "{given:?}");
        }
        assert_eq!(name(&"x".repeat(1000)).len(), NAME_MAX);
    }

    proptest::proptest! {
        #[test]
        fn a_quoted_text_is_one_line_of_plain_characters(text: Vec<u8>) {
            let line = Line::new("x").literal(&text);
            let inner = line.as_str().strip_prefix("x \"").and_then(|rest| rest.strip_suffix('"'));
            let inner = inner.unwrap_or("\"");
            proptest::prop_assert!(inner.bytes().all(|b| b == b'\\' || (b != b'"' && b != b'$' && b != b';' && (b' '..=b'z').contains(&b))));
        }
    }
}
