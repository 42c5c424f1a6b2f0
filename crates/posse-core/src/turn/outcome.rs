//! How a turn can end, and the words for it.

use serde::{Deserialize, Serialize};

use super::ApiFailure;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerFrom {
    File,
    /// The agent wrote no file, and the run does not insist on one.
    LastOutput,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// Without white space around it, and never empty.
    pub text: String,
    pub from: AnswerFrom,
}

/// Why there is no answer, for who decides what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The terminal is in `error`, and its words name no known failure.
    ErrorState,
    /// The model's service failed. Most of that passes.
    Api(ApiFailure),
    /// One permission too many.
    Cap,
    /// The agent was quiet and wrote no file.
    NoFile,
    /// Without a file its last message was to be taken, and there is none.
    NothingSaid,
    /// The terminal is no more, or its agent is not.
    Gone,
    /// Nobody knows whether the prompt arrived.
    Uncertain,
    /// A question waited for a person for too long.
    Waiting,
    /// The time of the turn is up while the agent is not quiet. For the seeds all other causes are runtime errors.
    TimedOut,
    /// What lies in the response file is of an earlier turn, and cannot be moved away.
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

    /// The same, saying where the file went that came too late.
    #[must_use]
    pub fn keeping(mut self, late: &str) -> Self {
        self.message = format!("{}; what the agent had written is kept as {late}", self.message);
        self
    }
}

/// For a person who is not looking.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    /// 3 is news, 4 is bad news, 5 needs someone now.
    pub priority: u8,
    pub title: String,
    pub text: String,
}
