//! Values of environment variables.

/// The words that [`boolean`] accepts, for error messages.
pub(super) const BOOLEAN_WORDS: &str = "true, yes, on, 1, false, no, off or 0";

/// Parses the value of a boolean variable. Returns `None` if the value is not one of [`BOOLEAN_WORDS`].
///
/// Case and surrounding blanks do not matter. An empty value counts as unset; callers handle that first.
pub(super) fn boolean(text: &str) -> Option<bool> {
    match text.trim().to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" | "1" => Some(true),
        "false" | "no" | "off" | "0" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boolean_accepts_eight_words_in_any_case() {
        for (text, expected) in [
            ("true", Some(true)),
            ("Yes", Some(true)),
            ("ON", Some(true)),
            (" 1 ", Some(true)),
            ("FALSE", Some(false)),
            ("no", Some(false)),
            ("Off", Some(false)),
            ("0", Some(false)),
            ("", None),
            ("2", None),
            ("01", None),
            ("y", None),
            ("truee", None),
            ("true false", None),
        ] {
            assert_eq!(boolean(text), expected, "{text:?}");
        }
    }
}
