//! Events and effects of a pipeline.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::evidence::Evidence;
use super::session::SessionEnd;
use crate::backlog::{ItemOutcome, Kind, Priority, Slug};
use crate::engine::{RunOutcome, StopHow};
use crate::ids::RunId;
use crate::plan::budget::{Total, Usage};
use crate::plan::verdict::Judgement;
use crate::turn::Level;

/// An item of the backlog, as the last scan found it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Candidate {
    pub item: Slug,
    /// Within the project.
    pub path: String,
    pub kind: Kind,
    pub priority: Priority,
    pub title: String,
    /// The hash of the author's text. What posse writes into the item does not change it.
    pub hash: String,
    /// Why the backlog holds the item.
    pub held: Option<String>,
    /// The archive has an item with this name, too.
    pub archived: bool,
    /// The question of a suspended task of its plan.
    pub asks: Option<String>,
    /// The budget of the item, in US dollars.
    pub limit_usd: Option<f64>,
}

/// Identifies one step of an item in a run. Names the step's session and files.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct DeedId {
    pub item: Slug,
    pub number: u32,
}

impl fmt::Display for DeedId {
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
        /// Why the checkout is not the one that the pipeline began with. Its backlog is unknown then.
        away: Option<String>,
    },
    /// What all runs have spent on shared levels: the name of the level and the sum.
    Spent {
        levels: Vec<(String, Total)>,
    },
    /// The run of the plan was created.
    PlanBegun {
        id: DeedId,
        run: RunId,
    },
    /// The current step of an item has ended.
    Answered {
        id: DeedId,
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

/// The answer to a step of an item.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepAnswer {
    Intake(Intake),
    /// The question was written into the item.
    Marked,
    PlanChecked(PlanFound),
    /// The existing plan was moved aside.
    SetAside,
    PlannerEnded {
        end: SessionEnd,
        usage: Usage,
    },
    PlanEnded {
        outcome: RunOutcome,
        reason: String,
        used: Total,
    },
    VerifierEnded {
        end: SessionEnd,
        judgement: Judgement,
        usage: Usage,
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
    NotRetired {
        why: String,
    },
    /// The step needs the checkout, which is not what it was. Nothing was changed.
    NotNow {
        why: String,
    },
    /// The step failed, through no fault of the item.
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
    /// Too little to begin with.
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
        id: DeedId,
        deed: Deed,
    },
    /// End the session of this step. Answered like its start.
    EndSession {
        id: DeedId,
    },
    /// Stop the run of the plan. Answered by its end.
    StopPlan {
        id: DeedId,
        how: StopHow,
    },
    Tell(Notice),
    /// The run has ended.
    Finish {
        outcome: RunOutcome,
        reason: String,
    },
}

impl Effect {
    /// The item that the effect is for.
    pub fn item(&self) -> Option<&Slug> {
        match self {
            Self::Do { id, .. } | Self::EndSession { id } | Self::StopPlan { id, .. } => Some(&id.item),
            Self::Scan | Self::Tell(_) | Self::Finish { .. } => None,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum Deed {
    Intake,
    /// Write a question into the item.
    Mark {
        question: String,
    },
    /// Check the plan of the item. With `planner`, check what that session wrote; a valid text becomes the plan.
    CheckPlan {
        planner: Option<u32>,
    },
    SetAside,
    /// A session that writes the plan.
    Plan(Planning),
    /// Run the plan. That run applies the limits of the backlog itself.
    Execute {
        no_wait: bool,
    },
    /// A session that checks whether the symptoms are gone.
    Verify {
        timeout: Duration,
    },
    /// Append a verification to the item's log, unless the log has one with this number.
    Log {
        number: u32,
        judgement: Judgement,
    },
    Gather,
    /// Take the item out of the backlog.
    Retire(Retirement),
}

/// The parameters of a planner besides the item.
#[derive(Clone, Debug, PartialEq)]
pub struct Planning {
    pub timeout: Duration,
    /// How the previous attempt or verification failed.
    pub before: Option<String>,
    /// The plan to repair. Each planner gets one chance.
    pub repair: Option<Repair>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repair {
    pub planner: u32,
    pub problems: String,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Retirement {
    pub outcome: ItemOutcome,
    pub reason: String,
    /// The number of the step before, which identifies earlier tries of this one.
    pub after: u32,
    pub spent: Total,
    /// The time since the item first started.
    pub seconds: u64,
}

/// A notification for people. The item's history has it, too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    pub what: NoticeKind,
    pub level: Level,
    pub item: Option<Slug>,
    pub text: String,
    /// The text for messages, if it differs.
    pub message: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoticeKind {
    /// A step on the way.
    Step,
    ItemStarted,
    ItemPlanned,
    ItemFinished,
    ItemFailed,
    /// It failed its last verification.
    ItemExhausted,
    /// It waits for a person.
    ItemParked,
    /// It waits for a person because it is done and could not be archived.
    NotArchived,
    HoldBegins,
    HoldEnds,
    /// Another branch is checked out, so everything waits.
    CheckoutAway,
}

impl NoticeKind {
    /// As in the log files of a pipeline.
    pub fn word(self) -> &'static str {
        match self {
            Self::Step => "STEP",
            Self::ItemStarted => "STARTED",
            Self::ItemPlanned => "PLANNED",
            Self::ItemFinished => "COMPLETED",
            Self::ItemFailed => "FAILED",
            Self::ItemExhausted => "EXHAUSTED",
            Self::ItemParked => "SUSPENDED",
            Self::NotArchived => "ARCHIVE_FAILED",
            Self::HoldBegins => "RATE_LIMITED",
            Self::HoldEnds => "GOING_ON",
            Self::CheckoutAway => "CHECKOUT_AWAY",
        }
    }
}
