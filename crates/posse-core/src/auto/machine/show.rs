//! Views of the pipeline.

use std::collections::{BTreeMap, BTreeSet};

use super::{Job, JobState, Pipeline};
use crate::auto::memory::{Carried, Standing};
use crate::auto::messages::{Candidate, Effect, Event};
#[cfg(test)]
use crate::auto::settings::Settings;
use crate::backlog::Slug;
use crate::engine::hold::Quota;
use crate::plan::budget::Total;

impl Pipeline {
    #[cfg(test)]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    pub fn quota(&self) -> &Quota {
        &self.carried.quota
    }

    /// The state that the next run starts with.
    pub fn carried(&self) -> &Carried {
        &self.carried
    }

    pub fn total(&self) -> &Total {
        &self.total
    }

    pub fn candidate(&self, item: &Slug) -> Option<&Candidate> {
        self.backlog.get(item)
    }

    /// Returns whether only a change of the backlog can cause another step.
    #[cfg(test)]
    pub fn is_idle(&self) -> bool {
        !self.progress.is_over() && self.jobs.is_empty() && self.progress.outstanding().is_empty()
    }

    /// Returns whether a new item could start now. Otherwise the pipeline requests a scan when one can.
    pub fn wants_items(&self) -> bool {
        let ends = self.progress.is_over() || self.closing.is_some() || self.progress.stop.is_some();
        !ends && self.has_room() && !self.progress.outstanding().contains(&Effect::Scan)
    }

    /// Returns why everything waits: another branch is checked out.
    pub fn away(&self) -> Option<&str> {
        self.away.as_deref()
    }

    /// The items in progress.
    pub fn jobs(&self) -> &BTreeMap<Slug, Job> {
        &self.jobs
    }

    /// Returns the differences between the known backlog and a scan. With `away` the scan is of another checkout.
    pub fn difference(&self, found: Vec<Candidate>, away: Option<String>) -> Event {
        if away.is_some() {
            return Event::Scanned { changed: Vec::new(), gone: Vec::new(), away };
        }
        let there: BTreeSet<&Slug> = found.iter().map(|candidate| &candidate.item).collect();
        // The next step of an item in progress notices that it is gone.
        let gone = self.backlog.keys().filter(|item| !there.contains(item) && !self.jobs.contains_key(*item));
        let gone = gone.cloned().collect();
        let changed = found.into_iter().filter(|candidate| self.backlog.get(&candidate.item) != Some(candidate));
        Event::Scanned { changed: changed.collect(), gone, away }
    }

    /// All known items: those in progress, those that may start, in order, then the others.
    pub fn standings(&self) -> Vec<(Slug, Standing, String)> {
        let queue = self.queue();
        let queued = queue.iter().map(|candidate| &candidate.item);
        let mut seen = BTreeSet::new();
        let all = self.jobs.keys().chain(queued).chain(self.backlog.keys()).chain(self.carried.items.keys());
        all.filter(|item| seen.insert(*item))
            .map(|item| {
                let (standing, reason) = self.stands(item, &queue);
                (item.clone(), standing, reason)
            })
            .collect()
    }

    /// The state of an item and the reason. `None` if it is unknown.
    pub fn why(&self, item: &Slug) -> Option<(Standing, String)> {
        let is_known = self.backlog.contains_key(item) || self.carried.items.contains_key(item);
        is_known.then(|| self.stands(item, &self.queue()))
    }

    fn stands(&self, item: &Slug, queue: &[&Candidate]) -> (Standing, String) {
        if let Some(job) = self.jobs.get(item) {
            return (Standing::InProgress, self.doing(job));
        }
        let memory = self.carried.items.get(item);
        let Some(candidate) = self.backlog.get(item) else {
            return match memory.and_then(|memory| memory.ended.as_ref()) {
                Some(outcome) => (Standing::Ended, outcome.as_str().to_owned()),
                None => (Standing::Gone, "not in the backlog any more".into()),
            };
        };
        if let Some(reason) = self.in_the_way(candidate) {
            let parked = memory.is_some_and(|memory| memory.parked.is_some());
            return (if parked { Standing::Parked } else { Standing::Held }, reason);
        }
        let before = queue.iter().take_while(|other| other.item != *item).count();
        let turn = match before {
            0 => "it is next".to_owned(),
            1 => "one item is before it".to_owned(),
            n => format!("{n} items are before it"),
        };
        match memory.map(|memory| (memory.attempts, memory.before.as_deref())) {
            Some((attempts @ 1.., Some(before))) => {
                let max = self.settings.pipeline.max_item_attempts;
                (Standing::Waiting, format!("{turn}; attempt {attempts} of {max} failed: {before}"))
            }
            _ => (Standing::Waiting, turn),
        }
    }

    fn doing(&self, job: &Job) -> String {
        let word = job.step.word();
        match (&job.state, &self.away, self.carried.quota.hold()) {
            (JobState::Doing, ..) => word.to_owned(),
            (JobState::Resting(_), ..) => format!("a pause before {word}"),
            (JobState::Ready, Some(why), _) => format!("{word} waits: {why}"),
            (JobState::Ready, None, Some(hold)) => format!("{word} waits for the quota: {}", hold.reason),
            (JobState::Ready, None, None) => format!("{word} is next"),
        }
    }
}
