//! Decides which item starts, and when the pipeline ends.

use std::cmp::Reverse;

use super::{Job, JobState, Pipeline};
use crate::auto::memory::{Leaving, Memory, Parked, ParkedWhy};
use crate::auto::messages::{Candidate, Effect, Step};
use crate::auto::settings::Mode;
use crate::backlog::{ItemOutcome, Slug};
use crate::engine::notice::NoticeKind;
use crate::engine::{Machine, RunOutcome, StopHow};
use crate::plan::budget::{Total, exhausted};

/// The run ends when this many items in a row fail at once or without spending anything.
const STREAK: usize = 3;

impl Pipeline {
    pub(super) fn schedule(&mut self) {
        if self.carried.quota.lift_if_over(self.progress.now) {
            self.tell(NoticeKind::HoldEnds, "sessions may be started again".into());
        }
        if self.streak.len() >= STREAK {
            let items = join(self.streak.iter());
            let reason = format!("{} items in a row failed at once or for nothing: {items}", self.streak.len());
            self.close(RunOutcome::CircuitOpen, reason);
        }
        for item in self.jobs.keys().cloned().collect::<Vec<_>>() {
            self.go_on_with(&item);
        }
        self.choose();
    }

    fn go_on_with(&mut self, item: &Slug) {
        let ending = self.progress.stop.is_some() || self.closing.is_some();
        let Some(job) = self.jobs.remove(item) else { return };
        match job.state {
            JobState::Doing => return self.keep(job),
            JobState::Resting(until) if until > self.progress.now && !ending => return self.keep(job),
            JobState::Resting(_) | JobState::Ready => {}
        }
        let step = &job.step;
        if ending && (self.away.is_some() || !step.records()) {
            let text = match &self.closing {
                Some((_, reason)) => format!("stays as it is before {}: {reason}", step.word()),
                None => format!("stopped before {}; goes on from here", step.word()),
            };
            self.step(item, text);
            return self.leave(job);
        }
        if self.away.is_some() {
            return self.again(job);
        }
        if step.spends() {
            if let Some(hold) = self.hold().cloned() {
                if self.settings.no_wait {
                    self.leave(job);
                    return self.close(RunOutcome::RateLimited, hold.reason);
                }
                return self.again(job);
            }
            if let Some(reason) = exhausted(self.levels()) {
                self.step(item, format!("stays as it is: {reason}"));
                self.leave(job);
                return self.close(RunOutcome::BudgetExhausted, reason);
            }
            if let Some(reason) = self.item_level(item).and_then(|level| exhausted(&[level])) {
                return self.park(job, ParkedWhy::Budget, reason);
            }
        }
        self.begin(job);
    }

    /// Starts as many items as allowed. Ends the run when nothing is left to do.
    fn choose(&mut self) {
        loop {
            let idle = self.jobs.is_empty();
            let stopped = self.progress.stop.map(|_| (RunOutcome::Stopped, "stopped on request".to_owned()));
            if let Some((outcome, reason)) = self.closing.clone().or(stopped) {
                return if idle {
                    self.finish(outcome, reason);
                };
            }
            if self.progress.outstanding().contains(&Effect::Scan) {
                return;
            }
            if self.stale && (self.has_room() || self.away.is_some()) {
                self.stale = false;
                return self.progress.request(Effect::Scan);
            }
            if self.away.is_some() || !self.has_room() {
                return;
            }
            let Some(item) = self.next() else {
                let ends = self.settings.mode != Mode::Watch || self.settings.item.is_some() || self.has_enough();
                return if idle && ends {
                    self.through();
                };
            };
            if let Some(hold) = self.hold() {
                let reason = hold.reason.clone();
                if !self.settings.no_wait {
                    return;
                }
                self.close(RunOutcome::RateLimited, reason);
            } else if let Some(reason) = exhausted(self.levels()) {
                self.close(RunOutcome::BudgetExhausted, reason);
            } else if let Some(reason) = self.carried.starts.too_many(&item, &self.settings.limits, self.progress.now) {
                self.step(&item, reason.clone());
                self.close(RunOutcome::InternalError, reason);
            } else {
                self.start(&item);
            }
        }
    }

    /// Returns whether one more item may be in progress.
    pub(super) fn has_room(&self) -> bool {
        let one = self.settings.mode == Mode::Once || self.settings.item.is_some();
        self.jobs.len() < if one { 1 } else { self.settings.pipeline.max_parallel_items.max(1) as usize }
    }

    /// Returns whether the requested number of items was started.
    fn has_enough(&self) -> bool {
        let begun = self.handled.len() + self.parked.len() + self.jobs.len();
        self.settings.max_items.is_some_and(|most| begun >= most as usize)
    }

    /// Ends the run with this outcome once everything in progress has ended. Plans end after their current tasks.
    pub(super) fn close(&mut self, outcome: RunOutcome, reason: String) {
        if self.closing.is_none() {
            self.closing = Some((outcome, reason));
            self.stop_what_runs(StopHow::AfterTask);
        }
    }

    /// The items that may start, in order.
    pub(super) fn queue(&self) -> Vec<&Candidate> {
        let mut queue: Vec<&Candidate> =
            self.backlog.values().filter(|candidate| self.in_the_way(candidate).is_none()).collect();
        queue.retain(|candidate| !self.jobs.contains_key(&candidate.item));
        queue.sort_by_key(|candidate| {
            let memory = self.carried.items.get(&candidate.item);
            let unfinished = memory.is_some_and(Memory::is_begun);
            let (number, name) = candidate.item.order();
            // An item that failed at once comes after the others.
            (
                self.streak.contains(&candidate.item),
                Reverse(unfinished),
                candidate.priority,
                candidate.kind,
                number,
                name,
            )
        });
        queue
    }

    fn next(&self) -> Option<Slug> {
        if self.has_enough() {
            return None;
        }
        self.queue().first().map(|candidate| candidate.item.clone())
    }

    /// Returns why an item of the backlog may not start.
    pub(super) fn in_the_way(&self, candidate: &Candidate) -> Option<String> {
        if self.settings.item.as_ref().is_some_and(|only| *only != candidate.item) {
            // The backlog's own reason also holds without this pipeline.
            return Some(candidate.held.clone().unwrap_or_else(|| "another item was asked for".into()));
        }
        if let Some(parked) = self.carried.items.get(&candidate.item).and_then(|memory| memory.parked.as_ref())
            && !released(parked, candidate)
        {
            return Some(format!("{}: {}", parked.why, parked.reason));
        }
        if self.settings.item.is_some() && self.handled.iter().any(|(item, _)| *item == candidate.item) {
            return Some("one item was asked for, and it is done".into());
        }
        let memory = self.carried.items.get(&candidate.item).filter(|memory| memory.is_begun());
        if let Some(branch) = memory.and_then(|memory| memory.branch.as_ref())
            && self.settings.branch.as_ref().is_some_and(|here| here != branch)
        {
            let item = &candidate.item;
            return Some(format!(
                "what was done for it is on {branch}: `posse auto` goes on with it there, `posse run retry . {item}` begins anew here"
            ));
        }
        candidate.held.clone()
    }

    fn start(&mut self, item: &Slug) {
        let Some(candidate) = self.backlog.get(item).cloned() else { return };
        let now = self.progress.now;
        self.carried.starts.note(item, now);
        if self.settings.mode == Mode::Once {
            self.settings.item = Some(item.clone());
        }
        let memory = self.memory(item);
        let mut why = "";
        if let Some(parked) = memory.parked.take()
            && parked.hash != candidate.hash
            && parked.why != ParkedWhy::ArchiveFailed
        {
            memory.anew();
            why = "; its author has changed it";
        }
        if candidate.archived {
            let (hash, reason) = (candidate.hash.clone(), "it is done already".to_owned());
            memory.leaving = Some(Leaving { outcome: ItemOutcome::Completed, reason, hash });
            why = "; it was done already, and is in the backlog again";
        } else if memory.ended.is_some() {
            // A user reopened the item, or the project is a different one.
            memory.anew();
            why = "; it is in the backlog again";
        }
        memory.ended = None;
        memory.begun.get_or_insert(now);
        let attempt = memory.attempts + 1;
        let job = Job {
            item: item.clone(),
            kind: candidate.kind,
            since: now,
            number: 0,
            began: now,
            step: Step::Intake,
            state: JobState::Ready,
            hash: candidate.hash,
            next_entry: 1,
            spent: Total::default(),
            infra: 0,
            plan: None,
            run: None,
        };
        let max = self.settings.pipeline.max_item_attempts;
        self.say(NoticeKind::ItemStarted, item, format!("begun, attempt {attempt} of {max}{why}"), None);
        self.begin(job);
    }

    /// Refunds the attempts of a streak: nothing works, so no item is at fault.
    fn forgive(&mut self) {
        for item in std::mem::take(&mut self.streak) {
            let memory = self.memory(&item);
            memory.attempts = memory.attempts.saturating_sub(1);
            memory.leaving = None;
            self.step(&item, "the attempt does not count: nothing works");
        }
    }

    /// Ends the run because no item is left.
    fn through(&mut self) {
        let (done, failed): (Vec<_>, Vec<_>) = self.handled.iter().partition(|(_, outcome)| outcome.is_success());
        let mut words = Vec::new();
        if !done.is_empty() {
            words.push(format!("{} done", done.len()));
        }
        if !failed.is_empty() {
            words.push(format!("failed: {}", join(failed.iter().map(|(item, _)| item))));
        }
        if !self.parked.is_empty() {
            words.push(format!("waiting for a person: {}", join(self.parked.iter())));
        }
        let warned = self.handled.iter().any(|(_, outcome)| *outcome == ItemOutcome::CompletedWithWarnings);
        let asked = self.settings.item.as_ref().filter(|_| words.is_empty());
        let (outcome, reason) = match asked {
            Some(item) => match self.backlog.get(item) {
                Some(candidate) => {
                    (RunOutcome::Suspended, self.in_the_way(candidate).unwrap_or_else(|| "nothing was done".into()))
                }
                None => (RunOutcome::Failed, format!("there is no item {item} in the backlog")),
            },
            None if words.is_empty() => (RunOutcome::Verified, "nothing to do".into()),
            None => {
                let outcome = match (failed.is_empty(), self.parked.is_empty()) {
                    (false, _) => RunOutcome::Failed,
                    (true, false) => RunOutcome::Suspended,
                    (true, true) if warned => RunOutcome::CompletedWithWarnings,
                    (true, true) => RunOutcome::Verified,
                };
                (outcome, words.join("; "))
            }
        };
        self.finish(outcome, reason);
    }

    fn finish(&mut self, outcome: RunOutcome, reason: String) {
        if outcome == RunOutcome::CircuitOpen {
            self.forgive();
        }
        self.progress.settle(|_| true);
        self.progress.finish(outcome, reason, Effect::Finish);
    }
}

fn join<'a>(items: impl Iterator<Item = &'a Slug>) -> String {
    items.map(Slug::as_str).collect::<Vec<_>>().join(", ")
}

/// Returns whether a parked item may start again.
fn released(parked: &Parked, candidate: &Candidate) -> bool {
    let changed = parked.hash != candidate.hash;
    match parked.why {
        ParkedWhy::ArchiveFailed => false,
        ParkedWhy::NeedsAttention => changed,
        ParkedWhy::Budget => {
            let more = parked.limit_usd.is_some_and(|was| candidate.limit_usd.is_none_or(|is| is > was));
            changed || more
        }
        // The author answers by resetting the status. Until then the backlog holds the item.
        ParkedWhy::NeedsClarification => changed || candidate.held.is_none(),
        ParkedWhy::Suspended => changed || !candidate.asks,
    }
}
