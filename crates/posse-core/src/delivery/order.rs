//! A message to be delivered, and what can become of it.

use crate::status::{StatusKind, WaitingKind};
use crate::time::Mono;

/// When a message may be typed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum When {
    /// Only while the agent does nothing.
    #[default]
    Quiet,
    /// Also while it works, if its rules say what becomes of it then.
    AlsoBusy,
}

/// A message, and what must be true for it to be typed.
#[derive(Clone, Debug, Default)]
pub struct Order {
    pub text: String,
    pub when: When,
    /// Refuse unless this is the status.
    pub expect: Option<StatusKind>,
    /// Refuse unless this is the status it was decided on.
    pub epoch: Option<u64>,
    /// Since when the input field has been there, if that is known.
    pub composer_since: Option<Mono>,
}

/// What became of the text of a message that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// None of it was typed.
    Nothing,
    /// It stands in the input field, not submitted. The next message clears it.
    Draft,
    /// It was not submitted, and may stand in the input field.
    MaybeDraft,
    /// Nobody knows whether it was submitted.
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Why {
    #[error("there is nothing to send")]
    Empty,
    #[error("a question is open or about to be, and a message would answer it")]
    Dialog(Option<WaitingKind>),
    #[error("the terminal is {0} now")]
    Status(StatusKind),
    #[error("the terminal has moved on since this was decided (now at {0})")]
    Epoch(u64),
    #[error("the agent is at work, and a question may open at any moment")]
    Busy,
    #[error("there is no input field on the screen")]
    NoComposer,
    #[error("the input field holds a draft that cannot be cleared")]
    Draft,
    #[error("the text was typed and is not seen in the input field")]
    NotSeen,
    #[error("the agent did not take the message")]
    NotTaken,
    #[error("the terminal did not take the keys")]
    Typing,
    #[error("the program has ended")]
    Gone,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct Failure {
    pub why: Why,
    pub left: Left,
}
