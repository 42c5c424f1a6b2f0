//! The record of every answer to a dialog: one entry before the first key, one when the result is known.
//!
//! This module has the values. `chain` links the entries, so that a changed, dropped or moved entry is detected. The
//! shell writes and stores them.

pub mod anchor;
mod chain;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use chain::{BadHash, Chain, Flaw, FlawKind, Hash, Mark, Row, Verifier};

use crate::delivery::{Unanswered, Verified, Wish};
use crate::detect::dialog::Dialog;
use crate::ids::TerminalId;
use crate::secrets::{mask_json, masked};
use crate::time::Wall;
use crate::words;

/// Number of screen rows stored with an entry.
pub const TAIL_LINES: usize = 5;
/// Maximum size of a stored refusal reason, in bytes.
const REASON_TEXT: usize = 4 << 10;

/// Returns the last rows of a screen that are not blank.
pub fn tail(rows: &[String]) -> Vec<String> {
    let said = rows.iter().rev().filter(|row| !row.trim().is_empty()).take(TAIL_LINES);
    let mut tail: Vec<String> = said.cloned().collect();
    tail.reverse();
    tail
}

words! {
    /// Who answers.
    #[derive(utoipa::ToSchema)]
    pub enum By ("requester") {
        /// A run whose operator has allowed it.
        Run = "run",
        /// A person, or a program of theirs that runs in none of our terminals.
        Person = "person",
        /// A program that came over TCP, where the kernel does not say which.
        Client = "client",
        /// A process in one of our terminals: `Who::from` says which, if that is known.
        Terminal = "terminal",
        /// posse itself, a question of the start that was answered in advance.
        Startup = "startup",
    }
}

/// Who answers, and on what occasion.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Who {
    pub by: By,
    /// The terminal in which the process runs that answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<TerminalId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<u64>,
    /// Which one this is in its turn, and how many may be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<(u32, u32)>,
}

impl Who {
    pub fn person() -> Self {
        Self { by: By::Person, from: None, role: None, run: None, turn: None, count: None }
    }

    pub fn startup() -> Self {
        Self { by: By::Startup, ..Self::person() }
    }

    /// Describes the answering party. `name` returns the display name of a terminal.
    pub fn words(&self, name: impl Fn(&TerminalId) -> String) -> String {
        match (self.by, &self.from, &self.role) {
            (By::Terminal, Some(from), _) => format!("a process in terminal {}", name(from)),
            (By::Terminal, None, _) => "a process in an unknown terminal".to_owned(),
            (By::Run, _, Some(role)) => role.clone(),
            (by, _, Some(role)) => format!("{} for the {role}", by.as_str()),
            (by, _, None) => by.as_str().to_owned(),
        }
    }
}

words! {
    /// What became of an answer.
    #[derive(utoipa::ToSchema)]
    pub enum End ("end") {
        /// It was given, and the question is gone.
        Answered = "answered",
        /// No key that answers was pressed.
        Refused = "refused",
        /// One was, or may have been, and nobody knows what it did.
        Uncertain = "uncertain",
    }
}

/// What is about to be done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Answering {
    /// `accept`, `deny`, or `option` and its number.
    pub wish: String,
    /// The label of the option that is chosen, where there are options.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chosen: Option<String>,
    /// Why it is refused, as the person who refuses says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The question. `None` where it is only text; then it stands in the tail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dialog: Option<Dialog>,
    /// A few lines that show what is asked: of the command, or else the last rows of the screen that are not empty.
    pub tail: Vec<String>,
    /// The keys that answer, by name.
    pub keys: Vec<String>,
}

impl Answering {
    pub fn new(wish: Wish, dialog: Option<&Dialog>, tail: Vec<String>, keys: Vec<String>) -> Self {
        let (word, at) = match wish {
            Wish::Accept => ("accept".to_owned(), dialog.and_then(Dialog::accepting)),
            Wish::Deny => ("deny".to_owned(), dialog.and_then(Dialog::denying)),
            Wish::Option(at) => (format!("option {}", at + 1), Some(at)),
        };
        let chosen = dialog.zip(at).and_then(|(dialog, at)| dialog.options.get(at)).map(|option| option.label.clone());
        // The question's own rows are more useful than the last rows of the screen, which are options.
        let snippet = dialog.map(Dialog::snippet).filter(|snippet| !snippet.is_empty());
        let tail = snippet.unwrap_or(tail).iter().map(|row| masked(row).into_owned()).collect();
        Self { wish: word, chosen, reason: None, dialog: dialog.and_then(without_secrets), tail, keys }
    }

    /// Returns a person's text for storage: bounded, with likely secrets masked.
    pub fn readable(text: &str) -> String {
        masked(text.get(..text.floor_char_boundary(REASON_TEXT)).unwrap_or_default()).into_owned()
    }
}

/// Returns the dialog with likely secrets masked.
fn without_secrets(dialog: &Dialog) -> Option<Dialog> {
    let mut value = serde_json::to_value(dialog).ok()?;
    mask_json(&mut value);
    serde_json::from_value(value).ok()
}

/// What was done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Ended {
    /// The entry this one completes.
    pub of: i64,
    pub end: End,
    /// The same in words.
    pub text: String,
    /// The keys that were really typed, by name; `None` if nobody knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub typed: Option<Vec<String>>,
}

impl Ended {
    /// Creates the entry for an answer during which posse was interrupted.
    pub fn cut_off(of: i64) -> Self {
        let text = "unknown: posse was cut off before it saw what became of it".to_owned();
        Self { of, end: End::Uncertain, text, typed: None }
    }

    pub fn answered(of: i64, verified: Verified, typed: Vec<String>) -> Self {
        let text = match verified {
            Verified::Closed => "the question is gone",
            Verified::Another => "another question has taken its place",
        };
        Self { of, end: End::Answered, text: text.into(), typed: Some(typed) }
    }

    pub fn failed(of: i64, failure: Unanswered, typed: Vec<String>) -> Self {
        let end = if failure.presses == 0 { End::Refused } else { End::Uncertain };
        Self { of, end, text: failure.to_string(), typed: Some(typed) }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Step {
    Answering(Box<Answering>),
    Outcome(Ended),
}

/// An entry without a number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    pub at: Wall,
    pub terminal: TerminalId,
    /// The name of the terminal, kept because the terminal may be gone later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(flatten)]
    pub who: Who,
    #[serde(flatten)]
    pub step: Step,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    pub seq: i64,
    #[serde(flatten)]
    pub note: Note,
}

/// Formats the entry for the log: party, terminal, count and limit, and the screen's text.
impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Note { terminal, who, step, .. } = &self.note;
        write!(f, "audit {}: {}, terminal {terminal}", self.seq, who.words(TerminalId::to_string))?;
        if let Some((n, cap)) = who.count {
            write!(f, ", {n}/{cap}")?;
        }
        match step {
            Step::Answering(answering) => {
                write!(f, ", {} with {}", answering.wish, answering.keys.join(" "))?;
                if let Some(reason) = &answering.reason {
                    write!(f, " because {reason:?}")?;
                }
                if answering.tail.is_empty() {
                    write!(f, "\n  (nothing is on the screen)")?;
                }
                answering.tail.iter().try_for_each(|row| write!(f, "\n  | {row}"))
            }
            Step::Outcome(ended) => write!(f, ", {} ({}): {}", ended.end.as_str(), ended.of, ended.text),
        }
    }
}

#[cfg(test)]
mod tests;
