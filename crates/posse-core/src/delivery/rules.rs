//! What a manifest says about typing, and the same made ready.

use std::time::Duration;

use regex::Regex;
use serde::{Deserialize, Serialize};

use crate::keys::key;
use crate::status::WaitingKind;

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

/// How a prompt is typed and submitted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SubmitRules {
    /// Mark the text as pasted. Without the mark a line break may submit.
    pub bracketed: bool,
    /// The key that submits.
    pub key: String,
    /// At least this long between the text and the key.
    pub gap_ms: u64,
    /// The input field must have been there for this long.
    pub ready_ms: u64,
    /// Keys that remove a line of a draft, or all of it. Pressed again as long as they change something. Must be harmless
    /// in a dialog: no Esc, no Enter.
    pub clear: Vec<String>,
    /// Submit only what is seen in the input field.
    pub see: bool,
    /// What a long paste looks like in the input field, as a regular expression for the whole of it.
    pub pasted: Option<String>,
    /// Typed and taken back to find out whether the submit key was read. Visible, and of no meaning in any dialog.
    pub probe: String,
    /// A submit that is not seen after this long is looked into, by the probe. A program that leaves the text in its input
    /// field until others have taken it needs longer: to it, text that is still there is no lost key.
    pub retry_ms: u64,
    pub while_busy: WhileBusy,
}

impl Default for SubmitRules {
    fn default() -> Self {
        Self {
            bracketed: true,
            key: "enter".into(),
            // Claude Code 2.1.197 lost an Enter right after the paste 5 of 5 times when its input field was new, and none
            // that came 100 ms later. Codex takes an Enter sooner than 100 ms after unmarked text for a line break.
            gap_ms: 100,
            ready_ms: 0,
            clear: vec!["ctrl-u".into(), "backspace".into()],
            see: true,
            pasted: None,
            probe: ".".into(),
            // A turn was seen to begin 16 to 62 ms after Enter; six times that leaves room for a late frame.
            retry_ms: 400,
            while_busy: WhileBusy::Refuse,
        }
    }
}

/// The keys that answer a dialog.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DialogKeys {
    /// A dialog must have been on the screen for this long before a key is pressed.
    pub settle_ms: u64,
    /// Chooses the option under the cursor.
    pub confirm: String,
    pub up: String,
    pub down: String,
    /// Refuses any dialog, where no option does.
    pub deny: Option<String>,
    /// The answers to a question that is only text, followed by `confirm` once they are seen.
    pub yes: String,
    pub no: String,
    /// Kinds of dialogs in which a number only moves the cursor: their options are chosen by the cursor and `confirm`.
    pub cursor_only: Vec<WaitingKind>,
    /// The label of the option into which an answer in words is typed, as a regular expression.
    pub words: Option<String>,
}

impl Default for DialogKeys {
    fn default() -> Self {
        Self {
            // Claude Code 2.1.325 dropped keys right after a dialog was drawn: 0 of 6 arrived at 0 ms, 0 of 1 at 100 ms,
            // 6 of 6 at 200 ms and more.
            settle_ms: 300,
            confirm: "enter".into(),
            up: "up".into(),
            down: "down".into(),
            deny: None,
            yes: "y".into(),
            no: "n".into(),
            cursor_only: Vec::new(),
            words: None,
        }
    }
}

/// Why keys in a manifest cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BadKeys {
    #[error("{place}: there is no key {name:?}")]
    Key { place: &'static str, name: String },
    #[error("submit.clear: {0:?} may answer a dialog")]
    Clear(String),
    #[error("submit.probe: {0:?} is not one visible character")]
    Probe(String),
    #[error("submit.pasted is not a regular expression: {0}")]
    Regex(#[from] Box<regex::Error>),
    #[error("answer.words is not a regular expression: {0}")]
    Words(Box<regex::Error>),
}

impl BadKeys {
    fn words(error: regex::Error) -> Self {
        Self::Words(Box::new(error))
    }
}

fn bytes(place: &'static str, name: &str) -> Result<Vec<u8>, BadKeys> {
    key(name).ok_or_else(|| BadKeys::Key { place, name: name.to_owned() })
}

/// `SubmitRules`, ready for use. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Submit {
    pub(super) bracketed: bool,
    pub(super) key: Vec<u8>,
    pub(super) gap: Duration,
    pub(super) ready: Duration,
    pub(super) clear: Vec<u8>,
    pub(super) see: bool,
    pub pasted: Option<Regex>,
    pub(super) probe: String,
    pub(super) retry: Duration,
    pub(super) while_busy: WhileBusy,
}

impl Submit {
    /// Types texts without the marks of a paste.
    pub fn unbracketed(mut self) -> Self {
        self.bracketed = false;
        self
    }

    pub fn new(rules: &SubmitRules) -> Result<Self, BadKeys> {
        let mut clear = Vec::new();
        for name in &rules.clear {
            let key = bytes("submit.clear", name)?;
            if key == b"\x1b" || key == b"\r" || key.iter().any(|byte| !byte.is_ascii_control() && key.len() == 1) {
                return Err(BadKeys::Clear(name.clone()));
            }
            clear.extend(key);
        }
        let mut probe = rules.probe.chars();
        let visible = probe.next().is_some_and(|c| c.is_ascii_punctuation()) && probe.next().is_none();
        if !visible {
            return Err(BadKeys::Probe(rules.probe.clone()));
        }
        // The whole of the draft, or a text that merely mentions such a thing would pass for it.
        let whole = |pattern: &String| Regex::new(&format!("^(?:{pattern})$")).map_err(Box::new);
        Ok(Self {
            bracketed: rules.bracketed,
            key: bytes("submit.key", &rules.key)?,
            gap: Duration::from_millis(rules.gap_ms),
            ready: Duration::from_millis(rules.ready_ms),
            clear,
            see: rules.see,
            pasted: rules.pasted.as_ref().map(whole).transpose()?,
            probe: rules.probe.clone(),
            retry: Duration::from_millis(rules.retry_ms),
            while_busy: rules.while_busy,
        })
    }
}

/// `DialogKeys`, ready for use.
#[derive(Clone, Debug)]
pub struct Keys {
    pub(super) settle: Duration,
    pub(super) confirm: Vec<u8>,
    pub(super) up: Vec<u8>,
    pub(super) down: Vec<u8>,
    pub(super) deny: Option<Vec<u8>>,
    pub(super) yes: Vec<u8>,
    pub(super) no: Vec<u8>,
    pub(super) cursor_only: Vec<WaitingKind>,
    pub(super) words: Option<Regex>,
}

impl Keys {
    pub fn new(rules: &DialogKeys) -> Result<Self, BadKeys> {
        Ok(Self {
            settle: Duration::from_millis(rules.settle_ms),
            confirm: bytes("answer.confirm", &rules.confirm)?,
            up: bytes("answer.up", &rules.up)?,
            down: bytes("answer.down", &rules.down)?,
            deny: rules.deny.as_ref().map(|name| bytes("answer.deny", name)).transpose()?,
            yes: bytes("answer.yes", &rules.yes)?,
            no: bytes("answer.no", &rules.no)?,
            cursor_only: rules.cursor_only.clone(),
            words: rules.words.as_ref().map(|words| Regex::new(words).map_err(BadKeys::words)).transpose()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_could_answer_a_dialog_do_not_clear_drafts() {
        let clear = |names: &[&str]| {
            Submit::new(&SubmitRules { clear: names.iter().map(|&n| n.to_owned()).collect(), ..SubmitRules::default() })
        };
        for good in [&["ctrl-u"][..], &["ctrl-e", "ctrl-u", "backspace"], &[], &["end", "delete"]] {
            assert!(clear(good).is_ok(), "{good:?}");
        }
        for bad in ["esc", "enter", "ctrl-m", "y", "1", "nothing"] {
            assert!(clear(&[bad]).is_err(), "{bad}");
        }
        for bad in ["", "..", "y", "1", " ", "\n"] {
            assert!(Submit::new(&SubmitRules { probe: bad.into(), ..SubmitRules::default() }).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn misspelt_rules_are_errors() {
        assert!(serde_json::from_str::<SubmitRules>(r#"{"gap": 3}"#).is_err());
        assert!(serde_json::from_str::<DialogKeys>(r#"{"accept": "y"}"#).is_err());
        assert_eq!(serde_json::from_str::<DialogKeys>("{}").unwrap(), DialogKeys::default());
    }
}
