//! What a session says, in words that are the same for every agent.

use posse_core::plan::budget::ModelUsage;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    Started {
        session: Option<String>,
        model: Option<String>,
        version: Option<String>,
    },
    /// Text of the model. Nothing in it is evidence of anything.
    Said(String),
    ToolUse {
        id: String,
        name: String,
        summary: String,
    },
    ToolDone {
        id: String,
        ok: bool,
    },
    /// The session was not allowed to use a tool. It goes on without.
    ToolDenied {
        name: Option<String>,
        summary: Option<String>,
        why: String,
    },
    /// What was used so far, all in all. A later one replaces it.
    Usage(Usage),
    /// What all of it costs, in dollars, as the tool estimates it. None if it does not say.
    Cost(Option<f64>),
    Limit(Limit),
    Retry {
        attempt: Option<u32>,
        of: Option<u32>,
        status: Option<u16>,
    },
    Warning(String),
    Ended(End),
    /// A line of this kind, of which we make nothing.
    Unknown(String),
}

/// Tokens. What the tool does not say is not known, and not zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tokens {
    /// Without those that came out of a cache.
    pub input: Option<u64>,
    pub output: Option<u64>,
    pub cache_read: Option<u64>,
    pub cache_write: Option<u64>,
}

impl Tokens {
    pub(super) fn of_model(used: &ModelUsage) -> Self {
        Self {
            input: used.input_tokens,
            output: used.output_tokens,
            cache_read: used.cache_read_tokens,
            cache_write: used.cache_creation_tokens,
        }
    }

    /// The sum; what neither knows stays unknown.
    pub fn plus(self, other: Self) -> Self {
        let sum = |a: Option<u64>, b: Option<u64>| match (a, b) {
            (Some(a), Some(b)) => Some(a.saturating_add(b)),
            (a, b) => a.or(b),
        };
        Self {
            input: sum(self.input, other.input),
            output: sum(self.output, other.output),
            cache_read: sum(self.cache_read, other.cache_read),
            cache_write: sum(self.cache_write, other.cache_write),
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    pub tokens: Tokens,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<ModelUsage>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limit {
    pub source: LimitSource,
    /// `five_hour`, `seven_day` …, in the vendor's words.
    pub kind: Option<String>,
    pub resets_at: Option<i64>,
    /// What it said about it; a time may be in it.
    pub text: Option<String>,
}

/// How we know. The first is the best.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitSource {
    /// It was said in so many fields.
    Structured,
    Status,
    /// An error begins with words that mean it.
    Text,
}

/// The end of a session, as it told it. A session that was killed tells none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct End {
    pub ok: bool,
    /// Its last words, or what went wrong.
    pub text: String,
    pub reason: Reason,
    pub turns: Option<u64>,
    pub duration_ms: Option<u64>,
    /// Of that, waiting for the model.
    pub api_ms: Option<u64>,
}

impl End {
    pub(super) fn told(ok: bool, text: String, reason: Reason) -> Self {
        Self { ok, text, reason, turns: None, duration_ms: None, api_ms: None }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    Completed,
    MaxTurns,
    MaxBudget,
    /// Waiting helps.
    Limit,
    /// A person has to sign in, or to correct a key.
    SignedOut,
    /// The model's server failed, or was not reached.
    Api {
        status: Option<u16>,
    },
    Other(String),
}
