//! Limits that a run shares with others: exclusive resources, budgets, the quota.

use serde::{Deserialize, Serialize};

use super::{Run, RunId, Stage};
use crate::engine::hold::Hold;
use crate::engine::notice::NoticeKind;
use crate::plan::breaker::Counts;
use crate::plan::budget::{Total, knows_sums, left, set_sums};
use crate::plan::{TaskId, TaskStatus};

/// The state of the shared limits. Sent as a whole whenever part of it changes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Others {
    /// The resources that other runs hold, and their holders.
    pub taken: Vec<(String, String)>,
    /// The spending of all runs, including this one, on shared levels: the name of the level and the sum.
    pub spent: Vec<(String, Total)>,
    /// The usage limit that other runs wait for.
    pub hold: Option<Hold>,
}

impl Run {
    /// Returns whether the run knows all of this already.
    pub fn knows(&self, others: &Others) -> bool {
        self.settings.taken == others.taken
            && knows_sums(&self.settings.levels, &others.spent)
            && !others.hold.as_ref().is_some_and(|hold| self.quota.is_longer(hold, self.progress.now))
    }

    /// Returns the resources that other runs hold, and their holders.
    pub fn taken_by_others(&self) -> &[(String, String)] {
        &self.settings.taken
    }

    /// Returns what a session may spend, if there is a limit.
    pub fn money_left(&self) -> Option<f64> {
        left(&self.settings.levels)
    }

    /// Returns the tasks in progress, which hold their resources. A suspended task holds none.
    pub fn under_way(&self) -> impl Iterator<Item = &TaskId> {
        self.stages.keys().filter(|task| self.state.status(task) != TaskStatus::Suspended)
    }

    /// Returns the tasks in progress that have their resources. The others have only requested them.
    pub fn begun(&self) -> impl Iterator<Item = &TaskId> {
        self.under_way().filter(|task| self.stages.get(*task) != Some(&Stage::Area))
    }

    pub(super) fn apply_shared_limits(&mut self, others: Others) {
        self.settings.taken = others.taken;
        set_sums(&mut self.settings.levels, others.spent);
        let Some(hold) = others.hold else { return };
        let reason = hold.reason.clone();
        if self.quota.adopt(hold, self.progress.now) {
            self.tell_hold(&reason);
        }
    }

    pub(super) fn try_now(&mut self) {
        if self.quota.lift() {
            self.tell(NoticeKind::HoldEnds, "sessions may be started again".into());
        }
    }

    /// Another run took a resource first. The task starts when it is free.
    pub(super) fn taken(&mut self, run: &RunId, name: String, held_by: String) {
        self.settings.taken.retain(|(known, _)| *known != name);
        self.settings.taken.push((name, held_by));
        self.refund(&run.task, Counts::Nothing);
    }
}
