//! What a screen says about the agent in it: rules over rows, in order, the first that holds decides.
//!
//! A reading is one observation and nothing more: it has no memory, does not know what was sent, and may be of a
//! half-drawn frame. What we believe of a terminal is decided in `status`. Rules are data (`rules`); which rows they
//! look at is decided by the layout (`layout`). Everything about one agent comes from outside; no name of an agent
//! occurs here.

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

/// One look at a terminal, as far as rules are concerned.
#[derive(Clone, Copy, Debug, Default)]
pub struct Look<'a> {
    /// Text rows from the top; blank ones at the end do not matter.
    pub rows: &'a [String],
    /// The window title, where it is known.
    pub title: Option<&'a str>,
    /// The command in the foreground of the terminal, where it is known.
    pub foreground: Option<&'a str>,
    /// The colours of the rows, where they are known. Some menus tell only by them which option is selected.
    pub colours: Option<&'a dyn Painted>,
}

/// How much a reading is worth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Strength {
    /// Nothing matched: the answer that is right most often.
    #[default]
    Fallback,
    /// Text that looks like it, wherever it stands.
    Text,
    /// The user interface was recognised.
    Layout,
}

/// The row on which a rule held.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// From 0; `None` for what is not on the screen, such as the title.
    pub row: Option<usize>,
    pub text: String,
}

/// What one look says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reading {
    /// `None`: this screen says nothing about the state.
    pub status: Option<StatusKind>,
    pub waiting_kind: Option<WaitingKind>,
    /// The id of the rule that decided.
    pub rule: String,
    pub strength: Strength,
    pub evidence: Option<Evidence>,
    pub dialog: Option<Dialog>,
    /// What stands in the input field; `None` when there is no input field.
    pub draft: Option<String>,
    /// The rule found the row with which this agent closes a turn: quiet, and not only for a moment.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ends_turn: bool,
    /// A digest of the conversation: what stands above the input field, or everything. As long as text streams in it
    /// differs from look to look. Means nothing to people and nothing to another build.
    #[serde(skip)]
    pub content: u64,
}
