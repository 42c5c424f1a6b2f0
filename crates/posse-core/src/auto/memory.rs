//! The pipeline's memory of each item across restarts, with the reason of every decision.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::guards::Starts;
use crate::backlog::{ItemOutcome, Slug};
use crate::engine::RunOutcome;
use crate::engine::hold::Quota;
use crate::plan::budget::Total;
use crate::plan::verdict::Verdict;
use crate::time::Wall;
use crate::words;

/// The number of lines kept of an item's history, more than its attempts and verifications can write.
const HISTORY: usize = 100;

/// The state that the next run starts with, including all counters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Carried {
    pub items: BTreeMap<Slug, Memory>,
    pub starts: Starts,
    pub quota: Quota,
}

impl Carried {
    /// Returns the state for the next run. Ended items keep only their last line; items that lacked money are released.
    pub fn for_the_next(&self) -> Self {
        let mut next = self.clone();
        for memory in next.items.values_mut() {
            memory.parked = memory.parked.take().filter(|parked| parked.why != ParkedWhy::Budget);
        }
        for memory in next.items.values_mut().filter(|memory| memory.ended.is_some()) {
            let last = memory.history.len().saturating_sub(1);
            memory.history.drain(..last);
        }
        next
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Memory {
    /// The time of its first start.
    pub begun: Option<Wall>,
    /// The number of failed attempts.
    pub attempts: u32,
    /// The number of failed verifications, including those that others wrote to its log.
    pub wanting: u32,
    /// The usage of its sessions.
    pub spent: Total,
    /// The completed phases and their inputs. A phase is skipped while its input is unchanged. A plan exists for the text with this
    /// hash.
    pub planned: Option<String>,
    pub executed: Option<PhaseResult<RunOutcome>>,
    pub verified: Option<PhaseResult<Verdict>>,
    /// The branch that has its work.
    pub branch: Option<String>,
    /// The failure of the previous attempt, for the next planner.
    pub before: Option<String>,
    /// The item has ended, but is still in the backlog.
    pub leaving: Option<Leaving>,
    /// The item waits for a person.
    pub parked: Option<Parked>,
    pub ended: Option<ItemOutcome>,
    pub history: Vec<Line>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leaving {
    pub outcome: ItemOutcome,
    pub reason: String,
    /// The hash of the author's text at that time.
    pub hash: String,
}

/// The result of a phase, with the item's text and the plan that it applies to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseResult<T> {
    pub item: String,
    /// The hash of the plan's file. Unknown until it is checked after the run.
    pub plan: Option<String>,
    pub result: T,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Parked {
    pub why: ParkedWhy,
    pub reason: String,
    /// The hash of the author's text at that time.
    pub hash: String,
    /// The budget of the item at that time.
    pub limit_usd: Option<f64>,
}

words! {
    pub enum ParkedWhy ("reason") {
        /// The item is too vague. Released when its author has changed it.
        NeedsClarification = "needs_clarification",
        /// A task of its plan asks a question. Released when it is answered.
        Suspended = "suspended",
        /// A person has to look. Released by a change of the item or a retry.
        NeedsAttention = "needs_attention",
        /// Done, but not archived. Released by a retry, which only archives it.
        ArchiveFailed = "archive_failed",
        /// The budget of the item is spent.
        Budget = "budget_exhausted",
    }
}

/// One decision, in words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    pub at: Wall,
    pub text: String,
}

/// The standing of an item in its pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = ItemStanding)]
pub enum Standing {
    /// May start.
    Waiting,
    /// Held by its status or its dependencies.
    Held,
    InProgress,
    Parked,
    /// Archived or moved out.
    Ended,
    /// A user removed the item from the backlog.
    Gone,
}

impl Memory {
    pub(super) fn note(&mut self, now: Wall, text: String) {
        if self.history.len() == HISTORY {
            self.history.remove(0);
        }
        self.history.push(Line { at: now, text });
    }

    /// Resets everything but the history and the cost. The next intake reads the counters of the item's log again.
    pub(super) fn anew(&mut self) {
        let (history, spent) = (std::mem::take(&mut self.history), std::mem::take(&mut self.spent));
        *self = Self { history, spent, ..Self::default() };
    }

    /// Returns whether there is work to continue.
    pub(super) fn is_begun(&self) -> bool {
        self.planned.is_some() || self.leaving.is_some()
    }
}
