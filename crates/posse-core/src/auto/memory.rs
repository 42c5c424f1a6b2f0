//! What the pipeline knows of each item, through any restart, with the reason of every decision.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::guards::Starts;
use crate::backlog::{ItemOutcome, Slug};
use crate::plan::budget::Total;
use crate::plan::limits::Hold;
use crate::plan::machine::RunOutcome;
use crate::plan::verdict::Verdict;
use crate::time::Wall;
use crate::words;

/// So many lines are kept of an item's history. More than an item can have in its attempts and verifications.
const HISTORY: usize = 100;

/// What the next run begins with. Counters live here: a restart does not reset them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Carried {
    pub items: BTreeMap<Slug, Memory>,
    pub starts: Starts,
    pub hold: Option<Hold>,
}

impl Carried {
    /// What the next run needs of it: of what has ended only how. What lacked money is tried again: there may be some now.
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
    /// When it was begun for the first time.
    pub begun: Option<Wall>,
    /// Attempts that failed.
    pub attempts: u32,
    /// Verifications that found it wanting. Those in its log count, whoever wrote them.
    pub wanting: u32,
    /// What its sessions have used.
    pub spent: Total,
    /// The phases that are done, and what they were done for. A phase is skipped if that has not changed.
    pub planned: Option<Planned>,
    pub executed: Option<Executed>,
    pub verified: Option<Verified>,
    /// The branch that its work went to.
    pub branch: Option<String>,
    /// What came of the attempt before, for the next planner.
    pub before: Option<String>,
    /// It has come to its end, but is still in the backlog.
    pub leaving: Option<Leaving>,
    /// It waits for a person.
    pub parked: Option<Parked>,
    /// How it ended, and what its author had written then.
    pub ended: Option<(ItemOutcome, String)>,
    pub history: Vec<Line>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leaving {
    pub outcome: ItemOutcome,
    pub reason: String,
    /// What its author had written then.
    pub hash: String,
}

/// There is a plan for what the item says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Planned {
    pub item: String,
}

/// This plan was carried out for this item.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Executed {
    pub item: String,
    /// The plan's file, as the run left it. Unknown until somebody looks.
    pub plan: Option<String>,
    pub outcome: RunOutcome,
}

/// What was carried out was verified.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verified {
    pub item: String,
    pub plan: Option<String>,
    pub verdict: Verdict,
    pub findings: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Parked {
    pub why: ParkedWhy,
    pub reason: String,
    /// What its author had written then.
    pub hash: String,
    /// What might be spent on it then.
    pub limit_usd: Option<f64>,
}

words! {
    pub enum ParkedWhy ("reason") {
        /// Too little to begin with. Goes on when its author has written more.
        NeedsClarification = "needs_clarification",
        /// A task of its plan asks. Goes on when it is answered.
        Suspended = "suspended",
        /// Somebody has to look. Goes on when somebody says so.
        NeedsAttention = "needs_attention",
        /// Done, but it could not be taken out of the backlog. Goes on when somebody says so, and is not done again.
        ArchiveFailed = "archive_failed",
        /// What may be spent on it is spent.
        Budget = "budget_exhausted",
    }
}

/// One decision, in words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    pub at: Wall,
    pub text: String,
}

/// How an item stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// May be begun.
    Waiting,
    /// The backlog holds it: its status, or what it depends on.
    Held,
    InProgress,
    Parked,
    /// Out of the backlog.
    Ended,
    /// Out of the backlog, and not by us.
    Gone,
}

impl Memory {
    pub(super) fn note(&mut self, now: Wall, text: String) {
        if self.history.len() == HISTORY {
            self.history.remove(0);
        }
        self.history.push(Line { at: now, text });
    }

    /// As if nothing had happened, but for what is remembered of it and what it has cost. Counters of its log come back
    /// from its log.
    pub(super) fn anew(&mut self) {
        let (history, spent) = (std::mem::take(&mut self.history), std::mem::take(&mut self.spent));
        *self = Self { history, spent, ..Self::default() };
    }

    /// Whether something of it is done that the next one who works on it goes on from.
    pub(super) fn is_begun(&self) -> bool {
        self.planned.is_some() || self.leaving.is_some()
    }
}
