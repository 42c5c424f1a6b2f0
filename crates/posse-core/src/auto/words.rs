//! What the pipeline is told, and what it wants done.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::evidence::Evidence;
use super::session::SessionEnd;
use crate::backlog::{ItemOutcome, Kind, Priority, Slug};
use crate::ids::RunId;
use crate::plan::budget::{Total, Usage};
use crate::plan::machine::{RunOutcome, StopHow};
use crate::plan::verdict::Judgement;
use crate::turn::Level;

/// An item of the backlog, as far as it is of interest here.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Candidate {
    pub item: Slug,
    /// Within the project.
    pub path: String,
    pub kind: Kind,
    pub priority: Priority,
    pub title: String,
    /// Of what its author wrote. What we write into it does not change this.
    pub hash: String,
    /// Why the backlog does not let it be begun.
    pub held: Option<String>,
    /// It is in the archive, too.
    pub archived: bool,
    /// A task of its plan waits for this answer.
    pub asks: Option<String>,
    /// What may be spent on it, in US dollars.
    pub limit_usd: Option<f64>,
}

/// One thing that is done for an item: the item, and a number that no other thing done in this run for this item has. Names
/// the session, if it is one, and its files.
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

/// What happens. Written to the journal before it is acted on; a pipeline is nothing but what follows from its events.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    Started,
    /// The backlog was looked at. Only what differs from the last look is told.
    Scanned {
        changed: Vec<Candidate>,
        gone: Vec<Slug>,
        /// Why the checkout is not the one that the pipeline began with. Then nothing is known of its backlog.
        away: Option<String>,
    },
    /// What was spent on levels that others spend on too, by everyone: the name of the level, the sum.
    Spent {
        levels: Vec<(String, Total)>,
    },
    IntakeEnded {
        id: DeedId,
        intake: Intake,
    },
    /// What is to be seen in an item is written into it.
    Marked {
        id: DeedId,
    },
    PlanChecked {
        id: DeedId,
        plan: PlanFound,
    },
    /// The plan that was there is kept elsewhere.
    SetAside {
        id: DeedId,
    },
    PlannerEnded {
        id: DeedId,
        end: SessionEnd,
        usage: Usage,
    },
    /// The plan is being carried out, by this run.
    PlanBegun {
        id: DeedId,
        run: RunId,
    },
    PlanEnded {
        id: DeedId,
        outcome: RunOutcome,
        reason: String,
        used: Total,
    },
    VerifierEnded {
        id: DeedId,
        end: SessionEnd,
        judgement: Judgement,
        usage: Usage,
    },
    /// The verification is in the item's log.
    Logged {
        id: DeedId,
    },
    EvidenceFound {
        id: DeedId,
        evidence: Evidence,
    },
    /// The item is out of the backlog.
    Retired {
        id: DeedId,
        place: String,
        /// For who is not looking: what came of it, what it cost, its commits.
        message: String,
    },
    NotRetired {
        id: DeedId,
        why: String,
    },
    /// It cannot be done as long as the checkout is not what it was. Nothing was touched.
    NotNow {
        id: DeedId,
        why: String,
    },
    /// What was asked for could not be done, and it is not the item's fault.
    DeedFailed {
        id: DeedId,
        why: String,
    },
    Stop(StopHow),
    /// A person wants an item to be taken up again, as if nothing had happened to it.
    Retry {
        item: Slug,
    },
    /// The deadline has come, or may have.
    Time,
}

/// What an item says when it is read to be worked on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Intake {
    Ready {
        hash: String,
        /// Verifications in its log that found it wanting.
        failed: u32,
        /// The number of the next entry.
        next: u32,
    },
    /// Too little to begin with.
    Vague {
        question: String,
    },
    /// It is not there any more.
    Gone,
    Unreadable {
        why: String,
    },
}

/// What there is of a plan for an item.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanFound {
    Missing,
    Invalid {
        problems: String,
    },
    Valid {
        /// Of the file as it is, with all that has become of its tasks.
        hash: String,
    },
}

/// What is to be done. To do it twice must be the same as once: after a crash everything that was not answered is asked for
/// again, under the same name.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Answered by `Scanned`.
    Scan,
    /// Answered by the event of its kind, or by `DeedFailed`.
    Do {
        id: DeedId,
        deed: Deed,
    },
    /// End the session of this name. Answered like its start.
    EndSession {
        id: DeedId,
    },
    /// Stop the run of the plan. Answered by its end.
    StopPlan {
        id: DeedId,
        how: StopHow,
    },
    Tell(Notice),
    /// It is over; nothing follows.
    Finish {
        outcome: RunOutcome,
        reason: String,
    },
}

impl Effect {
    /// The item that it is done for.
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
    /// Write into the item what it waits for.
    Mark {
        question: String,
    },
    /// Look at the plan of the item, or at what the planner of this number has written; if that is valid it becomes the plan.
    CheckPlan {
        planner: Option<u32>,
    },
    SetAside,
    /// A session that writes the plan.
    Plan(Planning),
    /// A run of the plan. It minds the limits of the backlog itself.
    Execute {
        no_wait: bool,
    },
    /// A session that looks whether the symptoms are gone.
    Verify {
        timeout: Duration,
    },
    /// Append to the item's log. The number tells whether it is there already.
    Log {
        number: u32,
        judgement: Judgement,
    },
    Gather,
    /// Take the item out of the backlog.
    Retire(Retirement),
}

/// What a planner is told besides the item.
#[derive(Clone, Debug, PartialEq)]
pub struct Planning {
    pub timeout: Duration,
    /// What came of the attempt before, or of the last verification.
    pub before: Option<String>,
    /// It gets one chance to repair what the planner of this number has written.
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
    /// The number of what was done last before it: by that a try before this one is known again.
    pub after: u32,
    pub spent: Total,
    /// Since the item was begun for the first time.
    pub seconds: u64,
}

/// Worth telling people. What is about an item is also in its history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    pub what: NoticeKind,
    pub level: Level,
    pub item: Option<Slug>,
    pub text: String,
    /// For who is not looking, if that takes other words.
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
    /// Verified as often as it may be, and never right.
    ItemExhausted,
    /// It waits for a person.
    ItemParked,
    /// The same, because it is done and still in the backlog.
    NotArchived,
    HoldBegins,
    HoldEnds,
    /// Something else is checked out: everything waits.
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
