//! A run among others: what it tells them, and what it hears of them.

use std::collections::BTreeSet;

use posse_api::PlanEntry;
use posse_core::plan::TaskId;
use posse_core::plan::machine::{Effect, Event, Others, RunId};
use posse_core::plan::outcome::Outcome;
use posse_core::turn::Level;

use super::super::others::{News, resources};
use super::{Driver, Stopping};

impl Driver {
    /// What people should know before anything is done.
    pub(super) async fn say_first(&mut self) -> Result<(), Stopping> {
        for text in self.ledger.spec.remarks.clone() {
            self.record(PlanEntry::Said { level: Level::Warning, text }).await?;
        }
        Ok(())
    }

    /// Gets what a task needs for itself alone. Otherwise that somebody else was quicker.
    pub(super) fn in_the_way(&self, run: &RunId) -> Option<Event> {
        let needed = resources(self.ledger.run.plan(), &run.task);
        let (name, held_by) = self.mine.acquire(&run.task, needed).err()?;
        Some(Event::Taken { run: run.clone(), name, held_by })
    }

    /// After every entry: what this run has let go of, has spent, has to wait for.
    pub(super) fn tell_others(&self, entry: &PlanEntry) {
        let under_way: BTreeSet<&TaskId> = self.ledger.run.under_way().collect();
        self.mine.keep(&under_way);
        let PlanEntry::Happened { event } = entry else { return };
        if let Event::SessionEnded { outcome, .. } | Event::ValidatorEnded { outcome, .. } = &**event {
            self.mine.spent();
            // Only what a session of ours has found out: what we were told, the others know.
            if let Outcome::Limited(hold) = outcome {
                self.mine.hold(hold);
            }
        }
    }

    pub(super) async fn hear_news(&mut self, news: News) -> Result<Vec<Effect>, Stopping> {
        self.hear_of_others(news == News::Money).await
    }

    /// Writes down how it stands with the others, if that is new. `money`: they have spent some.
    pub(super) async fn hear_of_others(&mut self, money: bool) -> Result<Vec<Effect>, Stopping> {
        let mut spent = Vec::new();
        for level in self.ledger.run.levels().iter().filter(|level| money && level.of.is_shared()) {
            match self.app.plans.spent(level, &self.ledger.spec).await {
                Ok(total) => spent.push((level.name.clone(), total)),
                Err(error) => tracing::warn!("what others have spent cannot be read: {error}"),
            }
        }
        let (taken, hold) = (self.mine.taken(self.ledger.run.plan()), self.mine.held(crate::now()));
        let others = Others { taken, spent, hold };
        match self.ledger.run.knows(&others) {
            true => Ok(Vec::new()),
            false => self.happen(Event::Others(others)).await,
        }
    }
}
