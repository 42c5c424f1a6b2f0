//! One prompt to one agent, until its answer or until it is certain that there will be none.
//!
//! `Turn` is told what the terminal is (`get_status`), what lies in the response file, and the time; it says when to look at
//! the file, when to accept a permission, when to warn, and how the turn ends. The driver (`wait_for_response_file`) does
//! these things and nothing else. Nothing polls: every event is judged like one poll of the spec, in its order, which is
//! binding:
//!
//! error → permission → file → startup guard → grace (→ reminder) → timeout
//!
//! and `deadline()` names the next instant at which a poll would come to another result.
//!
//! - The file is read in its form after the terminal became quiet. It is looked at when quiet begins, when something happens
//!   to it while quiet, and once more before a turn fails for the lack of it: what the watcher tells is only a hint.
//! - The startup guard: grace does not count before the agent was seen at work, or for `grace` in vain. Otherwise the quiet of
//!   the turn before would be taken for the end of this one.
//! - Comparisons are strict, as the seed has them: at exactly `grace` nothing has expired.
//! - Nothing is accepted or typed any more when the time of the turn is up.
//! - An unknown status is no observation. It changes nothing, and nothing but the timeout happens during it.
//!
//! Not here: making sure that a prompt is typed safely (`delivery`), reading and archiving files, the audit, and what is done
//! about a failure: `run` parks or stops, and tells people.
//!
//! Scenarios of the spec that are about the driver, and are tested there: moving stale files and what can happen meanwhile
//! (S-112, S-113), archiving that fails (S-117), finding out that a terminal is gone or a server restarts (S-158, S-159),
//! two inputs at once (S-163). What they lead to is decided here and tested here. About configuration: S-131, S-139,
//! S-147 to S-149.

pub mod failure;
pub mod files;
mod looking;
mod machine;
mod outcome;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod tables;
#[cfg(test)]
mod testing;
mod waiting;

use serde::{Deserialize, Serialize};

pub use failure::ApiFailure;
pub use machine::Turn;
pub use outcome::{Answer, AnswerFrom, Cause, Notice, TurnError};

use crate::detect::Dialog;
use crate::ids::TerminalId;
use crate::review_loop::Key;
pub use crate::review_loop::Level;
use crate::status::{Status, StatusKind, WaitingKind};
use crate::time::Wall;

/// A turn that is under way.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnRecord {
    pub turn: u64,
    pub key: Key,
    pub terminal: TerminalId,
    pub attempt: u32,
    pub text: String,
    pub begun: Wall,
    /// When the prompt may first have been on its way.
    pub dispatching: Option<Wall>,
    /// How much the terminal had printed by then.
    pub printed: Option<u64>,
    pub sent: Option<Wall>,
    pub accepts: u32,
    pub reminders: u32,
    pub human_told: bool,
    /// The answer was taken. The response file is not in the archive yet.
    pub answered: bool,
}

impl TurnRecord {
    /// A turn of which nothing has been sent yet.
    pub(crate) fn new(turn: u64, key: Key, terminal: TerminalId, attempt: u32, text: String, begun: Wall) -> Self {
        Self {
            turn,
            key,
            terminal,
            attempt,
            text,
            begun,
            dispatching: None,
            printed: None,
            sent: None,
            accepts: 0,
            reminders: 0,
            human_told: false,
            answered: false,
        }
    }
}

/// What the terminal is now.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// `None`: a status we do not know. That is no observation.
    pub kind: Option<StatusKind>,
    pub waiting: Option<WaitingKind>,
    /// Which question it is, once it is on the screen and could be read.
    pub question: Option<String>,
    /// A few lines that show what is asked.
    pub shown: Vec<String>,
    /// It is a permission, and the provider has the keys to accept just this.
    pub plain_yes: bool,
    pub epoch: u64,
    pub reason: String,
    /// The newest lines of the terminal, none of them older than the dispatch, if they decide anything.
    pub words: Option<String>,
    /// Nothing was seen of the agent being at what it was asked last. That it is, is no more than our own word.
    pub unproven: bool,
}

impl Seen {
    /// As far as a status says it. `words` is for who knows the terminal. An agent that was given something and
    /// has not reacted is not quiet: its status is the one of before.
    pub fn of(status: &Status) -> Self {
        let dialog = status.dialog.as_ref();
        let is_plain = |dialog: &Dialog| dialog.kind == WaitingKind::Permission && dialog.accepting().is_some();
        Self {
            kind: Some(if status.is_busy() { StatusKind::Processing } else { status.kind }),
            waiting: status.waiting_kind,
            question: dialog.map(|dialog| dialog.id.clone()),
            shown: dialog.map(Dialog::snippet).unwrap_or_default(),
            plain_yes: dialog.is_some_and(is_plain),
            epoch: status.epoch,
            reason: status.reason.clone(),
            words: None,
            unproven: status.unproven || status.awaiting_reaction,
        }
    }

    /// With the newest lines of the terminal, if they decide anything.
    #[must_use]
    pub fn with_words(self, words: Option<String>) -> Self {
        let quiet = matches!(self.kind, Some(StatusKind::Idle | StatusKind::Completed));
        Self { words: words.filter(|words| !quiet || failure::standing(words).is_some()), ..self }
    }

    /// A few lines that show what is asked, without secrets: of the command, or else the newest lines of the terminal.
    fn snippet(&self) -> Vec<String> {
        let words = self.words.as_deref().unwrap_or_default();
        let tail = || crate::audit::tail(&words.lines().map(str::to_owned).collect::<Vec<_>>());
        let shown = if self.shown.is_empty() { tail() } else { self.shown.clone() };
        shown.iter().map(|line| crate::secrets::masked(line).into_owned()).collect()
    }
}

/// What is in the response file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Look {
    Absent,
    /// Nothing but white space. It is left in place: its writer may have truncated it just now.
    Blank,
    NotRegular,
    Unreadable(String),
    /// It has changed between two looks (`files::SETTLED`): it may still be written.
    Unsettled,
    /// Decoded (`files::decode`).
    Ready(String),
}

/// Why an accept was not carried out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum AcceptFailure {
    /// Nothing was typed: another question is open, or none, or none with a plain yes.
    #[error("{0}")]
    Refused(String),
    /// Nothing was typed, and nothing will be: the evidence is not enough for a yes without a person.
    #[error("{0}")]
    Unproven(String),
    /// Something went wrong, and nobody knows how far it got.
    #[error("{0}")]
    Failed(String),
    /// The terminal is no more.
    #[error("{0}")]
    Gone(String),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
// An event is made, handled and gone.
#[allow(clippy::large_enum_variant)]
pub enum Event {
    /// At the beginning and at every change.
    Status(Seen),
    /// The agent's last message has changed since the dispatch, while it was quiet.
    MessageChanged,
    /// Something happened to the response file.
    FileStirred,
    /// The answer to `LookAtFile`.
    File(Look),
    /// The answer to `Accept`.
    Accepted(Result<(), AcceptFailure>),
    /// The reminder of `Remind` could not be typed.
    NotReminded(String),
    /// The answer to `AskLastOutput`: the agent's last message, if there is one that came after the prompt.
    LastOutput(Option<String>),
    /// The terminal is no more.
    Gone(String),
    /// The deadline has come, or may have.
    Time,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Write the audit entry, then `send_input(terminal, "y")`, for this question only. Answered by `Accepted`.
    Accept {
        n: u32,
        cap: u32,
        question: Option<String>,
        /// A few lines that show what is accepted.
        shown: Vec<String>,
    },
    /// Answered by one `File`. There is never more than one look under way.
    LookAtFile,
    /// `get_last_output`. Answered by `LastOutput`.
    AskLastOutput,
    /// Type the reminder (`files::reminder`). `NotReminded` tells if that fails.
    Remind {
        n: u32,
    },
    /// For the log.
    Say(Level, String),
    Notify(Notice),
    /// It is over; nothing follows.
    End(Result<Answer, TurnError>),
}
