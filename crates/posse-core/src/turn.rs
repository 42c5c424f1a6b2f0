//! A turn: one prompt to one agent, until the answer arrives or the turn fails.
//!
//! `Turn` receives the terminal's status (`get_status`), the response file's content and the time. It decides when to
//! read the file, accept a permission or warn, and how the turn ends. The driver (`wait_for_response_file`) only
//! executes these decisions. Nothing polls: every event is judged like one poll of the spec, in the order that the spec
//! requires:
//!
//! error → permission → file → startup guard → grace (→ reminder) → timeout
//!
//! `deadline()` returns the next instant at which a poll would give another result.
//!
//! - Only the file's content after the terminal became quiet counts. The file is read when quiet begins, when it
//!   changes while the terminal is quiet, and once more before a turn fails without a file. Watcher events are only
//!   hints.
//! - The startup guard: grace does not count until the agent was seen at work or `grace` has expired once. Otherwise
//!   the quiet period of the previous turn would end this one.
//! - Comparisons are strict, as in the seed: at exactly `grace` nothing has expired.
//! - After the turn's timeout nothing is accepted or typed.
//! - An unknown status is no observation. Only the timeout can fire during an unknown status.
//!
//! Not here: typing a prompt safely (`delivery`), reading and archiving files, the audit, and the reaction to a failure
//! (`run` parks or stops, and notifies people).
//!
//! Some scenarios of the spec test the driver: moving stale files and concurrent changes (S-112, S-113), failed
//! archiving (S-117), detecting a lost terminal or a server restart (S-158, S-159), two inputs at once (S-163). Their
//! consequences are decided and tested here. About configuration: S-131, S-139, S-147 to S-149.

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

/// A running turn.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnRecord {
    pub turn: u64,
    pub key: Key,
    pub terminal: TerminalId,
    pub attempt: u32,
    pub text: String,
    pub begun: Wall,
    /// The earliest time at which the prompt may have been typed.
    pub dispatching: Option<Wall>,
    /// The number of bytes the terminal had printed by then.
    pub printed: Option<u64>,
    pub sent: Option<Wall>,
    pub accepts: u32,
    pub reminders: u32,
    pub human_told: bool,
    /// The answer was accepted, but the response file is not archived yet.
    pub answered: bool,
}

impl TurnRecord {
    /// Creates a turn whose prompt has not been sent.
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

/// The observed state of a terminal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// `None` stands for an unknown status and counts as no observation.
    pub kind: Option<StatusKind>,
    pub waiting: Option<WaitingKind>,
    /// The question's identity, once the question is drawn and readable.
    pub question: Option<String>,
    /// A short excerpt of the question.
    pub shown: Vec<String>,
    /// The question is a permission, and the provider has keys that accept only this request.
    pub plain_yes: bool,
    pub epoch: u64,
    pub reason: String,
    /// The terminal's newest lines, all printed after the dispatch, if they affect the decision.
    pub words: Option<String>,
    /// No work on the last prompt was observed; only posse's own record says that the agent is busy.
    pub unproven: bool,
}

impl Seen {
    /// Derives the observation from a status, without `words`. An agent that has not reacted to its input is not quiet:
    /// its status predates the input.
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

    /// Adds the terminal's newest lines, if they affect the decision.
    #[must_use]
    pub fn with_words(self, words: Option<String>) -> Self {
        let quiet = matches!(self.kind, Some(StatusKind::Idle | StatusKind::Completed));
        Self { words: words.filter(|words| !quiet || failure::standing(words).is_some()), ..self }
    }

    /// Returns a short excerpt of the question without secrets: of the command, or else of the terminal's newest lines.
    fn snippet(&self) -> Vec<String> {
        let words = self.words.as_deref().unwrap_or_default();
        let tail = || crate::audit::tail(&words.lines().map(str::to_owned).collect::<Vec<_>>());
        let shown = if self.shown.is_empty() { tail() } else { self.shown.clone() };
        shown.iter().map(|line| crate::secrets::masked(line).into_owned()).collect()
    }
}

/// The state of the response file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Look {
    Absent,
    /// The file holds only white space. It is left in place, because its writer may have just truncated it.
    Blank,
    NotRegular,
    Unreadable(String),
    /// The file changed between two reads (`files::SETTLED`), so a write may be in progress.
    Unsettled,
    /// The decoded text (`files::decode`).
    Ready(String),
}

/// The reason an accept failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum AcceptFailure {
    /// Nothing was typed: another question is open, or none, or one without a plain yes.
    #[error("{0}")]
    Refused(String),
    /// Nothing was typed and nothing will be: the evidence is not enough to accept without a person.
    #[error("{0}")]
    Unproven(String),
    /// The accept failed at an unknown point, so the key may have been sent.
    #[error("{0}")]
    Failed(String),
    /// The terminal is gone.
    #[error("{0}")]
    Gone(String),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
// Events are short-lived, so their size does not matter.
#[allow(clippy::large_enum_variant)]
pub enum Event {
    /// Sent at the start and at every change.
    Status(Seen),
    /// The agent's last message changed after the dispatch, while the agent was quiet.
    MessageChanged,
    /// The watcher reported a change of the response file.
    FileStirred,
    /// The answer to `LookAtFile`.
    File(Look),
    /// The result of `Accept`.
    Accepted(Result<(), AcceptFailure>),
    /// The reminder requested by `Remind` could not be typed.
    NotReminded(String),
    /// The result of `AskLastOutput`: the agent's last message, if it is newer than the prompt.
    LastOutput(Option<String>),
    /// The terminal is gone.
    Gone(String),
    /// The deadline has passed, or may have passed.
    Time,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Write the audit entry, then `send_input(terminal, "y")` for this question only. Answered by `Accepted`.
    Accept {
        n: u32,
        cap: u32,
        question: Option<String>,
        /// A short excerpt of the accepted question.
        shown: Vec<String>,
    },
    /// Read the response file. Answered by one `File`; at most one read is pending.
    LookAtFile,
    /// Call `get_last_output`. Answered by `LastOutput`.
    AskLastOutput,
    /// Type the reminder (`files::reminder`). A failure is reported as `NotReminded`.
    Remind {
        n: u32,
    },
    /// Write a line to the log.
    Say(Level, String),
    Notify(Notice),
    /// End the turn. No effect follows.
    End(Result<Answer, TurnError>),
}
