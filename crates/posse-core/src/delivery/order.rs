//! A message to be delivered, and its possible results.

use crate::status::{StatusKind, WaitingKind};

/// A message for a quiet agent, and the conditions for typing it.
#[derive(Clone, Debug, Default)]
pub struct Order {
    pub text: String,
    /// Refuse the message unless the terminal has this status.
    pub expect: Option<StatusKind>,
    /// Refuse the message unless the status has this epoch.
    pub epoch: Option<u64>,
}

/// The state of a message's text after the delivery failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// None of it was typed.
    Nothing,
    /// The text was not submitted. It is in the input field, or will be; the next message clears it.
    Draft,
    /// It is unknown whether the text was submitted.
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
