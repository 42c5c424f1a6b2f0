//! What a run hears of other runs: the things only one may have, the money that is counted together, the quota that all
//! wait for.

use serde::{Deserialize, Serialize};

use super::{Effect, Notice, Run, RunId, Stage};
use crate::plan::breaker::Counts;
use crate::plan::budget::{Level, Total, left};
use crate::plan::limits::Hold;
use crate::plan::{TaskId, TaskStatus};
use crate::time::Wall;

/// How it stands with the others. Told as a whole, whenever something of it has changed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Others {
    /// Resources that they hold, and who.
    pub taken: Vec<(String, String)>,
    /// What was spent on levels that others spend on too, this run included: the name of the level, the sum.
    pub spent: Vec<(String, Total)>,
    /// They wait for the quota.
    pub hold: Option<Hold>,
}

impl Run {
    /// Whether this is nothing new.
    pub fn knows(&self, others: &Others) -> bool {
        let spent = |(name, total): &(String, Total)| {
            self.settings.levels.iter().any(|level| level.name == *name && level.spent == *total)
        };
        let longer = |hold: &Hold| hold.until > self.now && self.hold.as_ref().is_none_or(|own| own.until < hold.until);
        self.settings.taken == others.taken
            && others.spent.iter().all(spent)
            && !others.hold.as_ref().is_some_and(longer)
    }

    /// Resources that others hold, and who.
    pub fn taken_by_others(&self) -> &[(String, String)] {
        &self.settings.taken
    }

    /// Limits on money, and what is spent of them.
    pub fn levels(&self) -> &[Level] {
        &self.settings.levels
    }

    /// What a session may spend, if anything is limited.
    pub fn money_left(&self) -> Option<f64> {
        left(&self.settings.levels)
    }

    /// Tasks on their way, which keep what they have. One that waits for a person keeps nothing.
    pub fn under_way(&self) -> impl Iterator<Item = &TaskId> {
        self.flights.keys().filter(|task| self.state.status(task) != TaskStatus::Suspended)
    }

    /// Those of them that have all they need. The others are only about to ask.
    pub fn begun(&self) -> impl Iterator<Item = &TaskId> {
        self.under_way().filter(|task| self.flights.get(*task).is_some_and(|flight| flight.stage != Stage::Area))
    }

    pub(super) fn hear_of_others(&mut self, others: Others) {
        self.settings.taken = others.taken;
        for (name, total) in others.spent {
            if let Some(level) = self.settings.levels.iter_mut().find(|level| level.name == name) {
                level.spent = total;
            }
        }
        let Some(hold) = others.hold.filter(|hold| hold.until > self.now) else { return };
        if self.hold.as_ref().is_none_or(|own| own.until < hold.until) {
            self.effects.push(Effect::Notify(Notice::HoldBegins(hold.reason.clone())));
            self.hold = Some(hold);
        }
    }

    pub(super) fn try_now(&mut self) {
        if self.hold.take().is_some() {
            self.effects.push(Effect::Notify(Notice::HoldEnds));
        }
    }

    /// As if it had not been tried: it will be, when the other has let go.
    pub(super) fn taken(&mut self, run: &RunId, name: String, held_by: String, now: Wall) {
        if !self.answers(run, |stage| *stage == Stage::Area) {
            return;
        }
        self.settings.taken.retain(|(known, _)| *known != name);
        self.settings.taken.push((name, held_by));
        self.refund(&run.task, Counts::Nothing, now);
    }
}
