//! Identifiers. They end up in paths, URLs and process environments, so each is checked on input and cannot be built
//! unchecked.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Implements a type of checked text: `FromStr` with the check, `Display` and serde.
macro_rules! checked_text {
    ($name:ident, $bad:ident) => {
        impl TryFrom<String> for $name {
            type Error = $bad;
            fn try_from(text: String) -> Result<Self, Self::Error> {
                text.parse()
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }
    };
}

pub(crate) use checked_text;

/// Eight lower-case hex characters that name one thing for ever.
macro_rules! eight_digits {
    ($(#[$doc:meta])* $id:ident, $bad:ident, $what:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, utoipa::ToSchema)]
        #[serde(try_from = "String")]
        #[schema(value_type = String, pattern = "^[a-f0-9]{8}$")]
        pub struct $id([u8; 8]);

        #[derive(Debug, thiserror::Error, PartialEq, Eq)]
        #[error("{what} is 8 characters of 0-9 and a-f, not {given:?}", what = $what, given = .0)]
        pub struct $bad(String);

        impl $id {
            /// Creates an id from random bits that the caller supplies.
            pub fn from_random(bits: u32) -> Self {
                Self(std::array::from_fn(|i| b"0123456789abcdef"[(bits >> (28 - 4 * i)) as usize & 0xf]))
            }

            pub fn as_str(&self) -> &str {
                // The only constructors put hex digits in.
                std::str::from_utf8(&self.0).unwrap_or("00000000")
            }

            /// Returns the number behind the eight digits; `from_random` is the inverse.
            pub fn bits(&self) -> u32 {
                self.0.iter().fold(0, |bits, c| bits << 4 | (*c as char).to_digit(16).unwrap_or(0))
            }

            pub fn from_bytes(bytes: [u8; 8]) -> Result<Self, $bad> {
                if bytes.iter().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) {
                    Ok(Self(bytes))
                } else {
                    Err($bad(String::from_utf8_lossy(&bytes).into_owned()))
                }
            }
        }

        impl FromStr for $id {
            type Err = $bad;

            fn from_str(s: &str) -> Result<Self, Self::Err> {
                <[u8; 8]>::try_from(s.as_bytes())
                    .map_err(|_| $bad(s.chars().take(40).collect()))
                    .and_then(Self::from_bytes)
            }
        }

        checked_text!($id, $bad);

        impl fmt::Debug for $id {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

eight_digits!(
    /// The name of one terminal.
    TerminalId,
    BadTerminalId,
    "a terminal id"
);

eight_digits!(
    /// The name of one run.
    RunId,
    BadRunId,
    "a run id"
);

/// The name of a terminal or of a session, as a person typed it. Names become file names, tmux window names and table
/// cells, so what would be misread there is refused: `.`, `:`, `/`, control characters, and anything
/// long enough to be a mistake.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, utoipa::ToSchema)]
#[serde(try_from = "String")]
pub struct Name(String);

/// Longest accepted name, in characters. Fits a table column and every file system.
pub const NAME_MAX: usize = 64;

/// The prefix of every session name.
pub const SESSION_PREFIX: &str = "posse-";

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum BadName {
    #[error("a name may not be empty")]
    Empty,
    #[error("a name has at most {NAME_MAX} characters, this one has {0}")]
    TooLong(usize),
    #[error("a name may not contain {0:?}; use letters, digits, '-' and '_'")]
    Character(char),
    #[error("a name may not start with '-': it would read as an option")]
    LeadingDash,
}

impl Name {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Parses the name of a session, and adds the common prefix if it is missing.
    pub fn session(given: &str) -> Result<Self, BadName> {
        let given: Name = given.parse()?;
        if given.0.starts_with(SESSION_PREFIX) { Ok(given) } else { format!("{SESSION_PREFIX}{given}").parse() }
    }

    /// Returns the name of a session without a given name.
    pub fn random_session(bits: u32) -> Self {
        Self(format!("{SESSION_PREFIX}{}", TerminalId::from_random(bits)))
    }

    /// Returns the name of a terminal without a given name: its program and four hex digits. Invalid characters are
    /// dropped.
    pub fn random_terminal(what: &str, bits: u16) -> Self {
        let stem: String = what.chars().filter(|c| allowed(*c)).skip_while(|c| *c == '-').take(NAME_MAX - 5).collect();
        Self(if stem.is_empty() { format!("terminal-{bits:04x}") } else { format!("{stem}-{bits:04x}") })
    }
}

fn allowed(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '-' | '_' | '+' | '@')
}

impl FromStr for Name {
    type Err = BadName;

    fn from_str(s: &str) -> Result<Self, Self::Err> {
        let length = s.chars().count();
        if length == 0 {
            return Err(BadName::Empty);
        }
        if length > NAME_MAX {
            return Err(BadName::TooLong(length));
        }
        if let Some(c) = s.chars().find(|c| !allowed(*c)) {
            return Err(BadName::Character(c));
        }
        if s.starts_with('-') {
            return Err(BadName::LeadingDash);
        }
        Ok(Self(s.to_owned()))
    }
}

checked_text!(Name, BadName);

/// A writer that puts bytes into a terminal: one `posse send`, one attached person, the daemon's own
/// responder. Together with a sequence number that only this writer counts up it makes input
/// repeatable without being repeated: the keeper applies a number once, however often it is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WriterId(pub u64);

impl WriterId {
    /// The daemon's answers to terminal queries. Its sequence number is the output offset at which
    /// the query ended, so that a daemon which replays output never answers a query twice.
    pub const RESPONDER: WriterId = WriterId(0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminal_ids_are_eight_hex_characters_and_nothing_else() {
        assert_eq!(TerminalId::from_random(0x00c0_ffee).as_str(), "00c0ffee");
        assert_eq!("00c0ffee".parse(), Ok(TerminalId::from_random(0x00c0_ffee)));
        assert_eq!(TerminalId::from_random(0xf1e2_00d3).bits(), 0xf1e2_00d3);
        for bad in ["", "00c0ffe", "00c0ffee0", "00C0FFEE", "../../..", "00c0ffe\n", "00c0ffeé"] {
            assert!(bad.parse::<TerminalId>().is_err(), "{bad:?} was accepted");
        }
    }

    #[test]
    fn names_cannot_escape_into_paths_or_targets() {
        for good in ["analyst", "posse-1", "a_b+c@d", "Müller"] {
            assert!(good.parse::<Name>().is_ok(), "{good:?} was refused");
        }
        for (bad, why) in [
            ("", BadName::Empty),
            ("a.b", BadName::Character('.')),
            ("a:b", BadName::Character(':')),
            ("../x", BadName::Character('.')),
            ("a/b", BadName::Character('/')),
            ("a\u{1b}[2J", BadName::Character('\u{1b}')),
            ("a b", BadName::Character(' ')),
            ("-rf", BadName::LeadingDash),
        ] {
            assert_eq!(bad.parse::<Name>(), Err(why), "{bad:?}");
        }
        assert_eq!("x".repeat(65).parse::<Name>(), Err(BadName::TooLong(65)));
    }

    #[test]
    fn a_session_name_carries_the_prefix_once() {
        assert_eq!(Name::session("night").unwrap().as_str(), "posse-night");
        assert_eq!(Name::session("posse-night").unwrap().as_str(), "posse-night");
    }

    #[test]
    fn an_invented_terminal_name_is_a_valid_name() {
        for what in ["bash", "/usr/bin/env", "...", "", "-x", &"y".repeat(200)] {
            let name = Name::random_terminal(what, 0xbeef);
            assert_eq!(name.as_str().parse::<Name>().as_ref(), Ok(&name), "{what:?}");
        }
    }
}
