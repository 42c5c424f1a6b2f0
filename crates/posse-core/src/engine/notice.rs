//! Notifications from a run.

use crate::backlog::Slug;
use crate::turn::Level;
use crate::words;

/// A notification for people. The journal has its text, too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    pub what: NoticeKind,
    /// The backlog item that the notice is about. The item's history has the text, too.
    pub item: Option<Slug>,
    pub text: String,
    /// The text for messages, if it differs.
    pub message: Option<String>,
}

words! {
    /// The kind of a notice. The words are those in the log files of a pipeline.
    pub enum NoticeKind ("notice") {
        /// A step on the way.
        Step = "STEP",
        TaskVerified = "TASK_VERIFIED",
        TaskFailed = "TASK_FAILED",
        ValidationFailed = "VALIDATION_FAILED",
        /// A task asks a question.
        Question = "QUESTION",
        /// Consecutive sessions fail.
        BreakerOpen = "BREAKER_OPEN",
        /// A change of the plan was rejected.
        EditRejected = "EDIT_REJECTED",
        ItemStarted = "STARTED",
        ItemPlanned = "PLANNED",
        ItemFinished = "COMPLETED",
        ItemFailed = "FAILED",
        /// It failed its last verification.
        ItemExhausted = "EXHAUSTED",
        /// It waits for a person.
        ItemParked = "SUSPENDED",
        /// It is done but could not be archived, and waits for a person.
        NotArchived = "ARCHIVE_FAILED",
        HoldBegins = "RATE_LIMITED",
        HoldEnds = "GOING_ON",
        /// Another branch is checked out, so everything waits.
        CheckoutAway = "CHECKOUT_AWAY",
    }
}

impl Notice {
    /// Creates a notice that concerns no single item.
    pub fn new(what: NoticeKind, text: String) -> Self {
        Self { what, item: None, text, message: None }
    }
}

impl NoticeKind {
    pub fn level(self) -> Level {
        match self {
            Self::Step | Self::TaskVerified | Self::HoldEnds => Level::Info,
            Self::ItemStarted | Self::ItemPlanned | Self::ItemFinished => Level::Info,
            _ => Level::Warning,
        }
    }

    /// Returns the event of its notification, and the priority. `None`: no notification is sent.
    pub fn event(self) -> Option<(&'static str, u8)> {
        Some(match self {
            Self::Step | Self::ItemPlanned | Self::EditRejected => return None,
            Self::TaskVerified => ("task_verified", 2),
            Self::TaskFailed => ("task_failed", 4),
            Self::ValidationFailed => ("validation_failed", 3),
            Self::Question => ("question", 5),
            Self::BreakerOpen => ("breaker_open", 4),
            Self::ItemStarted => ("item_started", 2),
            Self::ItemFinished => ("item_finished", 3),
            Self::ItemFailed | Self::ItemExhausted => ("item_failed", 4),
            Self::ItemParked | Self::NotArchived => ("item_parked", 5),
            Self::HoldBegins => ("hold_begins", 3),
            Self::HoldEnds => ("hold_ends", 2),
            Self::CheckoutAway => ("checkout_away", 4),
        })
    }
}
