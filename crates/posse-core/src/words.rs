//! Enums whose values have one word each, used in files, on the wire and for people.

use crate::nearest::did_you_mean;

/// Declares an enum of words. Each value is written, read and shown as its word. The text in parentheses names the kind
/// of word in errors.
#[macro_export]
macro_rules! words {
    (
        $(#[$about:meta])*
        $visibility:vis enum $name:ident ($what:literal) {
            $($(#[$about_value:meta])* $value:ident = $word:tt,)+
        }
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        $visibility enum $name {
            $($(#[$about_value])* #[serde(rename = $word)] $value,)+
        }

        impl $name {
            pub const ALL: [Self; [$($word),+].len()] = [$(Self::$value),+];
            pub const WORDS: [&'static str; [$($word),+].len()] = [$($word),+];

            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$value => $word,)+
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::words::UnknownWord;
            fn from_str(word: &str) -> Result<Self, Self::Err> {
                let unknown = || $crate::words::UnknownWord::new($what, word, Self::WORDS.into());
                Self::ALL.into_iter().find(|value| value.as_str() == word).ok_or_else(unknown)
            }
        }
    };
}

/// A word that is not a value of its enum.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("unknown {what} {word:?}; known are {}", known.join(", "))]
pub struct UnknownWord {
    what: &'static str,
    word: String,
    known: Vec<&'static str>,
}

impl UnknownWord {
    pub fn new(what: &'static str, word: &str, known: Vec<&'static str>) -> Self {
        Self { what, word: word.to_owned(), known }
    }

    /// Suggests the nearest word, or else lists all of them.
    pub(crate) fn hint(&self) -> String {
        did_you_mean(&self.word, self.known.iter().copied())
            .unwrap_or_else(|| format!("one of {}", self.known.join(", ")))
    }
}
