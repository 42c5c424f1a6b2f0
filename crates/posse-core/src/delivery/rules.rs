//! What a manifest says about typing. Keys and patterns are checked and made ready as they are read.

use std::time::Duration;

use regex::Regex;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

use crate::keys::KeyBytes;
use crate::status::WaitingKind;
use crate::written::{Expression, milliseconds};

/// What a prompt does that is submitted while the agent works.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WhileBusy {
    /// It is not sent: a dialog may open between the look and Enter, and Enter would answer it.
    #[default]
    Refuse,
    /// It waits for the end of the turn. Only for programs that announce a dialog before they draw it.
    Queues,
    /// It joins the turn. Only for programs that announce a dialog before they draw it.
    Steers,
}

/// How a prompt is typed and submitted. Cheap to clone.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Submit {
    /// Mark the text as pasted. Without the mark a line break may submit.
    pub bracketed: bool,
    /// The key that submits.
    pub(super) key: KeyBytes,
    /// At least this long between the text and the key.
    #[serde(rename = "gap_ms", deserialize_with = "milliseconds")]
    pub(super) gap: Duration,
    /// The input field must have been there for this long.
    #[serde(rename = "ready_ms", deserialize_with = "milliseconds")]
    pub(super) ready: Duration,
    /// Keys that remove a line of a draft, or all of it. Pressed again as long as they change something. Must be harmless
    /// in a dialog: no Esc, no Enter.
    #[serde(deserialize_with = "clearing_keys")]
    pub(super) clear: Vec<u8>,
    /// Submit only what is seen in the input field.
    pub(super) see: bool,
    /// What a long paste looks like in the input field, as a regular expression for the whole of it.
    #[serde(deserialize_with = "whole_draft")]
    pub pasted: Option<Regex>,
    /// Typed and taken back to find out whether the submit key was read. Visible, and of no meaning in any dialog.
    #[serde(deserialize_with = "visible_character")]
    pub(super) probe: String,
    /// A submit that is not seen after this long is looked into, by the probe. A program that leaves the text in its input
    /// field until others have taken it needs longer: to it, text that is still there is no lost key.
    #[serde(rename = "retry_ms", deserialize_with = "milliseconds")]
    pub(super) retry: Duration,
    pub(super) while_busy: WhileBusy,
}

impl Default for Submit {
    fn default() -> Self {
        Self {
            bracketed: true,
            key: KeyBytes::named("enter"),
            // Claude Code 2.1.197 lost an Enter right after the paste 5 of 5 times when its input field was new, and none
            // that came 100 ms later. Codex takes an Enter sooner than 100 ms after unmarked text for a line break.
            gap: Duration::from_millis(100),
            ready: Duration::ZERO,
            // Ctrl-U and backspace.
            clear: vec![0x15, 0x7f],
            see: true,
            pasted: None,
            probe: ".".into(),
            // A turn was seen to begin 16 to 62 ms after Enter; six times that leaves room for a late frame.
            retry: Duration::from_millis(400),
            while_busy: WhileBusy::Refuse,
        }
    }
}

/// The keys that answer a dialog.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DialogKeys {
    /// A dialog must have been on the screen for this long before a key is pressed.
    #[serde(rename = "settle_ms", deserialize_with = "milliseconds")]
    pub(super) settle: Duration,
    /// Chooses the option under the cursor.
    pub(super) confirm: KeyBytes,
    pub(super) up: KeyBytes,
    pub(super) down: KeyBytes,
    /// Refuses any dialog, where no option does.
    pub(super) deny: Option<KeyBytes>,
    /// The answers to a question that is only text, followed by `confirm` once they are seen.
    pub(super) yes: KeyBytes,
    pub(super) no: KeyBytes,
    /// Kinds of dialogs in which a number only moves the cursor: their options are chosen by the cursor and `confirm`.
    pub(super) cursor_only: Vec<WaitingKind>,
    /// The label of the option into which an answer in words is typed, as a regular expression.
    pub(super) words: Option<Expression>,
}

impl Default for DialogKeys {
    fn default() -> Self {
        Self {
            // Claude Code 2.1.325 dropped keys right after a dialog was drawn: 0 of 6 arrived at 0 ms, 0 of 1 at 100 ms,
            // 6 of 6 at 200 ms and more.
            settle: Duration::from_millis(300),
            confirm: KeyBytes::named("enter"),
            up: KeyBytes::named("up"),
            down: KeyBytes::named("down"),
            deny: None,
            yes: KeyBytes::named("y"),
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

/// The whole of the draft, or a text that merely mentions such a thing would pass for it.
fn whole_draft<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Regex>, D::Error> {
    let pattern = Option::<String>::deserialize(deserializer)?;
    pattern.map(|pattern| Regex::new(&format!("^(?:{pattern})$"))).transpose().map_err(D::Error::custom)
}

fn visible_character<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let probe = String::deserialize(deserializer)?;
    let mut characters = probe.chars();
    let visible = characters.next().is_some_and(|c| c.is_ascii_punctuation()) && characters.next().is_none();
    if visible { Ok(probe) } else { Err(D::Error::custom(format!("{probe:?} is not one visible character"))) }
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
        for bad in ["", "..", "y", "1", " ", "\n"] {
            assert!(serde_json::from_value::<Submit>(serde_json::json!({ "probe": bad })).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn misspelt_rules_are_errors() {
        for (rules, message) in [
            (r#"{"gap": 3}"#, "unknown field `gap`"),
            (r#"{"key": "entr"}"#, "there is no key \"entr\""),
            (r#"{"pasted": "("}"#, "regex parse error"),
        ] {
            let error = serde_json::from_str::<Submit>(rules).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
        assert!(serde_json::from_str::<DialogKeys>(r#"{"accept": "y"}"#).is_err());
        assert!(serde_json::from_str::<DialogKeys>(r#"{"words": "("}"#).is_err());
    }

    #[test]
    fn default_keys_are_those_with_these_names() {
        let written = r#"{"key": "enter", "clear": ["ctrl-u", "backspace"]}"#;
        let (read, default) = (serde_json::from_str::<Submit>(written).unwrap(), Submit::default());
        assert_eq!((read.key.0, read.clear), (default.key.0, default.clear));
    }
}
