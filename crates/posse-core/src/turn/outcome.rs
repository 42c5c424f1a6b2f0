//! The outcomes of a turn, and their messages.

use serde::{Deserialize, Serialize};

use super::ApiFailure;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerFrom {
    File,
    /// The agent wrote no file, and the run does not require one.
    LastOutput,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// Trimmed, and never empty.
    pub text: String,
    pub from: AnswerFrom,
}

/// The reason there is no answer, for the caller's reaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The terminal is in `error`, and its text matches no known failure.
    ErrorState,
    /// The model's service failed. Most of these failures are temporary.
    Api(ApiFailure),
    /// The permission limit was exceeded.
    Cap,
    /// The agent was quiet and wrote no file.
    NoFile,
    /// The last message was to replace the missing file, and there is none.
    NothingSaid,
    /// The terminal or its agent is gone.
    Gone,
    /// The delivery of the prompt cannot be determined.
    Uncertain,
    /// A question waited too long for a person.
    Waiting,
    /// The timeout passed while the agent was not quiet. The seeds treat all other causes as runtime errors.
    TimedOut,
    /// The response file is from an earlier turn, and cannot be moved away.
    Unarchived,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct TurnError {
    pub cause: Cause,
    pub message: String,
}

impl TurnError {
    pub(crate) fn new(cause: Cause, message: String) -> Self {
        Self { cause, message }
    }

    /// Adds the archive name of the late file to the message.
    #[must_use]
    pub fn keeping(mut self, late: &str) -> Self {
        self.message = format!("{}; what the agent had written is kept as {late}", self.message);
        self
    }
}

/// A notification for a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    /// 3 is information, 4 is a failure, 5 needs a person now.
    pub priority: u8,
    pub title: String,
    pub text: String,
}
