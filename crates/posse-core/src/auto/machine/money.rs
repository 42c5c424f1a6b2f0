//! What was spent, and what may be. All of it comes from one ledger of sessions: what ours have used is added when they end,
//! and whoever reads the ledger tells the sums anew, with all that others have spent (`Event::Spent`).

use super::{Infra, Pipeline, Step};
use crate::auto::memory::ParkedWhy;
use crate::backlog::Slug;
use crate::plan::budget::{Level, Total, Usage, exhausted, left};

impl Pipeline {
    /// Limits that hold for all items, and what is spent of them.
    pub fn levels(&self) -> &[Level] {
        &self.settings.levels
    }

    /// Whether these sums are known already.
    pub fn knows(&self, sums: &[(String, Total)]) -> bool {
        let known = |(name, total): &(String, Total)| {
            self.settings.levels.iter().any(|level| level.name == *name && level.spent == *total)
        };
        sums.iter().all(known)
    }

    pub(super) fn counted(&mut self, sums: Vec<(String, Total)>) {
        for (name, total) in sums {
            if let Some(level) = self.settings.levels.iter_mut().find(|level| level.name == name) {
                level.spent = total;
            }
        }
    }

    /// A session of ours has ended.
    pub(super) fn spent(&mut self, item: &Slug, usage: &Usage) {
        for level in &mut self.settings.levels {
            level.spent.add_usage(usage);
        }
        let mut used = Total::default();
        used.add_usage(usage);
        self.used(item, &used);
    }

    /// So much was used for this item, by us or by the run of its plan. Limits hear of that from the ledger.
    pub(super) fn used(&mut self, item: &Slug, used: &Total) {
        self.total.add_total(used);
        if let Some(job) = self.jobs.get_mut(item) {
            job.spent.add_total(used);
        }
        self.memory(item).spent.add_total(used);
    }

    /// What a session for this item may spend: what is left on the tightest level.
    pub fn left(&self, item: &Slug) -> Option<f64> {
        let levels: Vec<Level> = self.levels().iter().cloned().chain(self.item_level(item)).collect();
        left(&levels)
    }

    /// A session was ended by its tool because it had spent what was left. If something is left all the same, it is tried
    /// again, but not for ever.
    pub(super) fn out_of_money(&mut self, item: &Slug, step: Step) {
        let why = "its session has spent all that it was given";
        let spent = exhausted(self.levels()).or(self.item_level(item).and_then(|level| exhausted(&[level])));
        if spent.is_some() {
            self.step(item, why);
            self.ready(item, step);
        } else if self.infra(item, step, why) == Infra::GiveUp {
            self.park(item, ParkedWhy::Budget, format!("what is left is not enough: {why}"));
        }
    }

    /// What counts against an item.
    pub(super) fn item_level(&self, item: &Slug) -> Option<Level> {
        let limit_usd = self.backlog.get(item)?.limit_usd;
        let spent = self.carried.items.get(item).map(|memory| memory.spent.clone()).unwrap_or_default();
        Some(Level { name: "this item".into(), limit_usd, spent, ..Level::default() })
    }
}
