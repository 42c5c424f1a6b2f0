//! A message to be delivered, and what can become of it.

use crate::status::{StatusKind, WaitingKind};

/// A message for an agent that does nothing, and what must be true for it to be typed.
#[derive(Clone, Debug, Default)]
pub struct Order {
    pub text: String,
    /// Refuse unless this is the status.
    pub expect: Option<StatusKind>,
    /// Refuse unless this is the status it was decided on.
    pub epoch: Option<u64>,
}

/// What became of the text of a message that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// None of it was typed.
    Nothing,
    /// It was not submitted, and stands in the input field, or will. The next message clears it.
    Draft,
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
