//! Reads the state of an agent from its screen: rules over rows, in order, of which the first match decides.
//!
//! A reading is a single observation. It has no memory, does not know what was sent, and may come from a half-drawn
//! frame. The belief about a terminal is decided in `status`. Rules are data (`rules`); the layout (`layout`) decides
//! which rows they apply to. All knowledge about one agent comes from outside; no agent is named here.

mod answer;
mod compile;
pub mod dialog;
mod engine;
pub mod layout;
mod option_row;
pub mod rules;

use serde::{Deserialize, Serialize};

pub use compile::{BadRules, Detector};
pub use dialog::Dialog;
pub use engine::{Classifier, Decided, Explanation, Memo, Sight, Verdict};

use crate::screen::Painted;
use crate::status::{StatusKind, WaitingKind};

/// One look at a terminal: the input of the rules.
#[derive(Clone, Copy, Debug, Default)]
pub struct Look<'a> {
    /// Text rows from the top; blank rows at the end do not matter.
    pub rows: &'a [String],
    pub title: Option<&'a str>,
    pub foreground: Option<&'a str>,
    /// The colours of the rows, if known. In some menus only the colours show which option is selected.
    pub colours: Option<&'a dyn Painted>,
}

/// The reliability of a reading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Strength {
    /// No rule matched: the most frequent state.
    #[default]
    Fallback,
    /// Matching text, anywhere on the screen.
    Text,
    /// The user interface was recognised.
    Layout,
}

/// The row on which a rule matched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// Counted from 0; `None` for evidence outside the screen, such as the title.
    pub row: Option<usize>,
    pub text: String,
}

/// The result of one look.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reading {
    /// `None` means that the screen shows no state.
    pub status: Option<StatusKind>,
    pub waiting_kind: Option<WaitingKind>,
    /// The id of the rule that decided.
    pub rule: String,
    pub strength: Strength,
    pub evidence: Option<Evidence>,
    pub dialog: Option<Dialog>,
    /// The content of the input field; `None` if there is no input field.
    pub draft: Option<String>,
    /// The rule found the row with which this agent closes a turn: the agent is quiet, and not only for a moment.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ends_turn: bool,
    /// A digest of the conversation: everything above the input field, or the whole screen. It changes while text
    /// streams in. Not comparable between builds.
    #[serde(skip)]
    pub content: u64,
}
