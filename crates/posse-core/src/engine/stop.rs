//! Stop requests and outcomes of runs.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum StopHow {
    /// What runs may finish.
    AfterTask,
    Now,
}

/// How a run ends. Only the first two are success.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunOutcome {
    Verified,
    CompletedWithWarnings,
    Failed,
    Deadlocked,
    Suspended,
    Stopped,
    BudgetExhausted,
    CircuitOpen,
    RateLimited,
    InvalidPlan,
    InternalError,
}

impl RunOutcome {
    /// Returns the outcome as text for people.
    pub fn words(self) -> &'static str {
        match self {
            Self::Verified => "verified",
            Self::CompletedWithWarnings => "completed with warnings",
            Self::Failed => "failed",
            Self::Deadlocked => "deadlocked",
            Self::Suspended => "waits for an answer",
            Self::Stopped => "stopped",
            Self::BudgetExhausted => "out of money",
            Self::CircuitOpen => "stopped: sessions fail one after the other",
            Self::RateLimited => "out of quota",
            Self::InvalidPlan => "the plan is not valid",
            Self::InternalError => "failed for a reason of our own",
        }
    }

    pub fn is_success(self) -> bool {
        matches!(self, Self::Verified | Self::CompletedWithWarnings)
    }
}
