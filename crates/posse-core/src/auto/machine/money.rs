//! Budgets. The pipeline adds what its own sessions used; `Event::Spent` replaces the sums with those of all runs.

use super::{Job, Pipeline};
use crate::backlog::Slug;
use crate::engine::Machine;
use crate::plan::budget::{Level, Total, Usage, knows_sums, left, spend};

impl Pipeline {
    /// Returns whether these sums are known already.
    pub fn knows(&self, sums: &[(String, Total)]) -> bool {
        knows_sums(&self.settings.levels, sums)
    }

    /// Counts a session of this pipeline.
    pub(super) fn spent(&mut self, job: &mut Job, usage: &Usage) {
        spend(&mut self.settings.levels, usage);
        let mut used = Total::default();
        used.add_usage(usage);
        self.used(job, &used);
    }

    /// Counts what was used for an item, by the pipeline or by the run of its plan.
    pub(super) fn used(&mut self, job: &mut Job, used: &Total) {
        self.total.add_total(used);
        job.spent.add_total(used);
        self.memory(&job.item).spent.add_total(used);
    }

    /// Returns what a session for this item may spend: the rest of the tightest level.
    pub fn left(&self, item: &Slug) -> Option<f64> {
        let levels: Vec<Level> = self.levels().iter().cloned().chain(self.item_level(item)).collect();
        left(&levels)
    }

    pub(super) fn item_level(&self, item: &Slug) -> Option<Level> {
        let limit_usd = self.backlog.get(item)?.limit_usd;
        let spent = self.carried.items.get(item).map(|memory| memory.spent.clone()).unwrap_or_default();
        Some(Level { name: "this item".into(), limit_usd, spent, ..Level::default() })
    }
}
