//! The events of a session, in the same form for every agent.

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
    /// Text of the model. Its content is no evidence.
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
    /// A tool call was denied. The session continues without it.
    ToolDenied {
        name: Option<String>,
        summary: Option<String>,
        why: String,
    },
    /// Total usage so far. A later event replaces it.
    Usage(Usage),
    /// Total cost in dollars, as estimated by the tool; `None` if unknown.
    Cost(Option<f64>),
    Limit(Limit),
    Retry {
        attempt: Option<u32>,
        of: Option<u32>,
        status: Option<u16>,
    },
    Warning(String),
    Ended(End),
    /// An ignored line of this kind.
    Unknown(String),
}

/// Token counts. Unreported counts are unknown, not zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tokens {
    /// Without cached tokens.
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

    /// Returns the sum; counts unknown on both sides stay unknown.
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
    /// `five_hour`, `seven_day` …, in the vendor's terms.
    pub kind: Option<String>,
    pub resets_at: Option<i64>,
    /// The agent's message, possibly with a time.
    pub text: Option<String>,
}

/// The source of the information, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitSource {
    /// Structured fields.
    Structured,
    Status,
    /// The known beginning of an error text.
    Text,
}

/// The end of a session, as reported by the agent. A killed session reports none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct End {
    pub ok: bool,
    /// The last message, or the error.
    pub text: String,
    pub reason: Reason,
    pub turns: Option<u64>,
    pub duration_ms: Option<u64>,
    /// The part of it spent waiting for the model.
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
    /// A usage limit: waiting helps.
    Limit,
    /// A person must sign in, or correct a key.
    SignedOut,
    /// The model's server failed, or was unreachable.
    Api {
        status: Option<u16>,
    },
    Other(String),
}
