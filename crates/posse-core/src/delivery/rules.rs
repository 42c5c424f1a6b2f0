//! The typing rules of a manifest. Keys and patterns are checked and compiled as they are read.

use std::time::Duration;

use regex::Regex;
use serde::de::Error;
use serde::{Deserialize, Deserializer};

use crate::keys::KeyBytes;
use crate::status::WaitingKind;
use crate::written::{Expression, milliseconds};

/// The rules for typing and submitting a prompt. Cheap to clone.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Submit {
    /// The minimum time between the text and Enter.
    #[serde(rename = "gap_ms", deserialize_with = "milliseconds")]
    pub(super) gap: Duration,
    /// Keys that remove a line of a draft, or all of it. Pressed again as long as they have an effect. They must be
    /// harmless in a dialog: no Esc, no Enter.
    #[serde(deserialize_with = "clearing_keys")]
    pub(super) clear: Vec<u8>,
    /// The label of a long paste in the input field, as a regular expression for the whole draft.
    #[serde(deserialize_with = "whole_draft")]
    pub pasted: Option<Regex>,
    /// The time after which an invisible submit is investigated with the probe. Programs that leave the text in the
    /// input field while they work need longer, or the remaining text would count as a lost key.
    #[serde(rename = "retry_ms", deserialize_with = "milliseconds")]
    pub(super) retry: Duration,
}

impl Default for Submit {
    fn default() -> Self {
        Self {
            // Claude Code 2.1.197 lost an Enter right after the paste 5 of 5 times when its input field was new, and
            // none that came 100 ms later. Codex takes an Enter within 100 ms of unmarked text for a line break.
            gap: Duration::from_millis(100),
            // Ctrl-U and backspace.
            clear: vec![0x15, 0x7f],
            pasted: None,
            // A turn began 16 to 62 ms after Enter; six times that leaves room for a late frame.
            retry: Duration::from_millis(400),
        }
    }
}

/// The keys that answer a dialog.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DialogKeys {
    pub(super) up: KeyBytes,
    pub(super) down: KeyBytes,
    /// Refuses any dialog without an option that refuses.
    pub(super) deny: Option<KeyBytes>,
    /// Refuses a question that is only text, followed by Enter when it is visible.
    pub(super) no: KeyBytes,
    /// Kinds of dialogs in which a number only moves the cursor: their options are chosen by the cursor and Enter.
    pub(super) cursor_only: Vec<WaitingKind>,
    /// The label of the option that takes an answer in words, as a regular expression.
    pub(super) words: Option<Expression>,
}

impl Default for DialogKeys {
    fn default() -> Self {
        Self {
            up: KeyBytes::named("up"),
            down: KeyBytes::named("down"),
            deny: None,
            no: KeyBytes::named("n"),
            cursor_only: Vec::new(),
            words: None,
        }
    }
}

fn clearing_keys<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    let mut clear = Vec::new();
    for KeyBytes(key) in Vec::<KeyBytes>::deserialize(deserializer)? {
        if key == b"\x1b" || key == b"\r" || key.iter().any(|byte| !byte.is_ascii_control() && key.len() == 1) {
            return Err(D::Error::custom(format!("the key {:?} may answer a dialog", crate::keys::name(&key))));
        }
        clear.extend(key);
    }
    Ok(clear)
}

/// Compiles a pattern for the whole draft, so that text which merely mentions such a label does not match.
fn whole_draft<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Regex>, D::Error> {
    let pattern = Option::<String>::deserialize(deserializer)?;
    pattern.map(|pattern| Regex::new(&format!("^(?:{pattern})$"))).transpose().map_err(D::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_could_answer_a_dialog_do_not_clear_drafts() {
        let clear = |names: &[&str]| serde_json::from_value::<Submit>(serde_json::json!({ "clear": names }));
        for good in [&["ctrl-u"][..], &["ctrl-e", "ctrl-u", "backspace"], &[], &["end", "delete"]] {
            assert!(clear(good).is_ok(), "{good:?}");
        }
        for bad in ["esc", "enter", "ctrl-m", "y", "1", "nothing"] {
            assert!(clear(&[bad]).is_err(), "{bad}");
        }
    }

    #[test]
    fn misspelt_rules_are_errors() {
        for (rules, message) in [(r#"{"gap": 3}"#, "unknown field `gap`"), (r#"{"pasted": "("}"#, "regex parse error")]
        {
            let error = serde_json::from_str::<Submit>(rules).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
        let error = serde_json::from_str::<DialogKeys>(r#"{"up": "upp"}"#).unwrap_err().to_string();
        assert!(error.contains("there is no key \"upp\""), "{error}");
        assert!(serde_json::from_str::<DialogKeys>(r#"{"accept": "y"}"#).is_err());
        assert!(serde_json::from_str::<DialogKeys>(r#"{"words": "("}"#).is_err());
    }
}
