//! Events and effects of a pipeline.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::evidence::Evidence;
use crate::backlog::{ItemOutcome, Kind, Priority, Slug};
use crate::engine::notice::Notice;
use crate::engine::{RunOutcome, StopHow};
use crate::ids::RunId;
use crate::plan::budget::{Total, Usage};
use crate::plan::outcome::Outcome;
use crate::plan::verdict::Judgement;

/// An item of the backlog, as the last scan found it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Candidate {
    pub item: Slug,
    /// The path within the project.
    pub path: String,
    pub kind: Kind,
    pub priority: Priority,
    pub title: String,
    /// The hash of the author's text. What posse writes into the item does not change it.
    pub hash: String,
    /// The reason why the backlog holds the item.
    pub held: Option<String>,
    /// The archive has the same text as done: the item only has to leave the backlog.
    pub archived: bool,
    /// A task of its plan is suspended, and waits for an answer.
    pub asks: bool,
    /// The budget of the item, in US dollars.
    pub limit_usd: Option<f64>,
}

/// Identifies one step of an item in a run. Names the step's session and files.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct StepId {
    pub item: Slug,
    pub number: u32,
}

impl fmt::Display for StepId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.item, self.number)
    }
}

/// An input of a pipeline, journaled before the pipeline acts on it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    Started,
    /// The backlog was scanned. Only differences from the last scan are reported.
    Scanned {
        changed: Vec<Candidate>,
        gone: Vec<Slug>,
        /// The reason why the checkout is not the one that the pipeline began with. Its backlog is unknown then.
        away: Option<String>,
    },
    /// The spending of all runs on shared levels: the name of the level and the sum.
    Spent {
        levels: Vec<(String, Total)>,
    },
    /// The run of the plan was created.
    PlanBegun {
        id: StepId,
        run: RunId,
    },
    /// The current step of an item has ended.
    Answered {
        id: StepId,
        answer: StepAnswer,
    },
    Stop(StopHow),
    /// A person resets an item.
    Retry {
        item: Slug,
    },
    /// The deadline may have passed.
    Time,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepAnswer {
    Intake(Intake),
    /// The question was written into the item.
    Marked,
    PlanChecked(PlanFound),
    /// The existing plan was moved aside.
    SetAside,
    /// A planner or verifier has ended. The plan of a planner is checked next; a verifier gives its judgement.
    SessionEnded {
        outcome: Box<Outcome>,
        judgement: Option<Judgement>,
        usage: Usage,
    },
    PlanEnded {
        outcome: RunOutcome,
        reason: String,
        used: Total,
    },
    /// The verification was appended to the item's log.
    Logged,
    Gathered(Evidence),
    /// The item was moved out of the backlog.
    Retired {
        place: String,
        /// The text of the notification: the outcome, the cost, the commits.
        message: String,
    },
    /// The step needs the original checkout, but another one is in place. Nothing was changed.
    NotNow {
        why: String,
    },
    /// The step failed, through no fault of the item. If it is `Retire`, it waits for a person; other steps are
    /// retried.
    Failed {
        why: String,
    },
}

/// The result of reading an item before work on it starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Intake {
    Ready {
        hash: String,
        /// The number of failed verifications in its log.
        failed: u32,
        /// The number of the next log entry.
        next: u32,
    },
    /// The item is too vague to begin.
    Vague {
        question: String,
    },
    /// The item does not exist any more.
    Gone,
    Unreadable {
        why: String,
    },
}

/// The state of an item's plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanFound {
    Missing,
    Invalid {
        problems: String,
    },
    Valid {
        /// The hash of the whole file, including the statuses of its tasks.
        hash: String,
    },
}

/// A request of a pipeline. Effects are idempotent: after a crash every unanswered one is requested again, under the same name.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Answered by `Scanned`.
    Scan,
    /// Answered by `Answered`.
    Do {
        id: StepId,
        step: Step,
    },
    /// End the session of this step. Answered like its start.
    EndSession {
        id: StepId,
    },
    /// Stop the run of the plan. Answered by its end.
    StopPlan {
        id: StepId,
        how: StopHow,
    },
    Tell(Notice),
    /// The run has ended.
    Finish,
}

impl Effect {
    pub fn item(&self) -> Option<&Slug> {
        match self {
            Self::Do { id, .. } | Self::EndSession { id } | Self::StopPlan { id, .. } => Some(&id.item),
            Self::Scan | Self::Tell(_) | Self::Finish => None,
        }
    }
}

/// A step of the work on an item.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    Intake,
    /// Write a question into the item.
    Mark {
        question: String,
    },
    /// Check the plan of the item. A planner's draft becomes the plan if it is valid.
    Check {
        by: Author,
    },
    SetAside,
    /// A session that writes the plan. Each planner gets one chance to repair it.
    Plan {
        repair: Option<Repair>,
    },
    /// Run the plan. The plan's run applies the limits of the backlog itself.
    Execute,
    /// A session that checks whether the symptoms are gone.
    Verify,
    /// Append a verification to the item's log, unless the log has one with this number.
    Log {
        number: u32,
        judgement: Judgement,
    },
    Gather,
    /// Take the item out of the backlog.
    Retire {
        outcome: ItemOutcome,
        reason: String,
        /// The number of the previous step, which identifies earlier tries of this one.
        after: u32,
    },
}

/// The source of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Author {
    /// An attempt before this one, if any.
    Earlier,
    /// The planner, in the session of this number, or its second session.
    Planner { number: u32, repairs: bool },
    /// No author: the plan was carried out, and this is its state afterwards.
    Run,
}

/// A plan to repair: the number of the planner's session, and the problems.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repair {
    pub planner: u32,
    pub problems: String,
}

impl Step {
    /// Returns whether the step starts sessions, which use quota and money.
    pub fn spends(&self) -> bool {
        matches!(self, Self::Plan { .. } | Self::Execute | Self::Verify)
    }

    /// Returns whether the step only records a result, and so still runs after a stop was requested.
    pub(super) fn records(&self) -> bool {
        match self {
            Self::Mark { .. } | Self::Log { .. } => true,
            Self::Check { by } => *by != Author::Earlier,
            _ => false,
        }
    }

    pub fn word(&self) -> &'static str {
        match self {
            Self::Intake => "intake",
            Self::Mark { .. } => "asking",
            Self::Check { .. } => "checking the plan",
            Self::SetAside => "setting the old plan aside",
            Self::Plan { repair: None } => "planning",
            Self::Plan { repair: Some(_) } => "repairing the plan",
            Self::Execute => "executing",
            Self::Verify => "verifying",
            Self::Log { .. } => "writing the log",
            Self::Gather => "gathering evidence",
            Self::Retire { outcome, .. } if outcome.is_success() => "archiving",
            Self::Retire { .. } => "moving it out",
        }
    }
}
