//! The pipeline as one machine (`engine`). Times are of the wall clock, because pauses, holds and guards outlive the process.
//!
//! The steps of an item: intake, plan, execution, verification (defects only), evidence, archive. A missing answer never
//! advances an item.

mod choose;
mod money;
mod phases;
mod show;

use std::collections::{BTreeMap, BTreeSet};

use super::memory::{Carried, Memory, Parked, ParkedWhy};
use super::messages::{Candidate, Effect, Event, Step, StepId};
use super::settings::Settings;
use crate::backlog::{ItemOutcome, Kind, Slug};
use crate::engine::hold::Hold;
use crate::engine::notice::{Notice, NoticeKind};
use crate::engine::progress::Progress;
use crate::engine::retry::Backoff;
use crate::engine::{Machine, RunOutcome, StopHow};
use crate::ids::RunId;
use crate::plan::budget::{self, Total, set_sums};
use crate::time::Wall;

#[derive(Clone, Debug, Default)]
pub struct Pipeline {
    settings: Settings,
    backlog: BTreeMap<Slug, Candidate>,
    carried: Carried,
    /// The items in progress.
    jobs: BTreeMap<Slug, Job>,
    /// The number of the last step of each item in this run, so that no name is used twice.
    steps: BTreeMap<Slug, u32>,
    /// Items in a row that failed at once or without spending anything.
    streak: BTreeSet<Slug>,
    /// Items that ended in this run.
    handled: Vec<(Slug, ItemOutcome)>,
    /// Items that this run has parked.
    parked: Vec<Slug>,
    /// The backlog was scanned at least once.
    looked: bool,
    /// The backlog may have changed since the last requested scan.
    stale: bool,
    /// Why the user's checkout may not be used now: it differs from what it was when the pipeline began.
    away: Option<String>,
    /// The spending of this run.
    total: Total,
    /// The outcome of the run once everything in progress has ended.
    closing: Option<(RunOutcome, String)>,
    progress: Progress<Effect>,
}

/// An item in progress.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    pub item: Slug,
    kind: Kind,
    pub since: Wall,
    /// The number of the current step, and when it began.
    number: u32,
    pub began: Wall,
    pub step: Step,
    state: JobState,
    /// The hash of the author's text, known after intake.
    hash: String,
    /// The number of the next entry in its log.
    next_entry: u32,
    /// The spending of this attempt.
    spent: Total,
    /// Consecutive failures of this step that are not the item's fault.
    infra: u32,
    /// The hash of the plan's file when it was last checked.
    plan: Option<String>,
    /// The run of its plan, while it is active.
    pub run: Option<RunId>,
}

/// The state of an item's step.
#[derive(Clone, Debug, PartialEq)]
enum JobState {
    Doing,
    /// It waits for permission to start.
    Ready,
    Resting(Wall),
}

impl Job {
    pub fn id(&self) -> StepId {
        StepId { item: self.item.clone(), number: self.number }
    }
}

impl Machine for Pipeline {
    type Input = Event;
    type Effect = Effect;

    fn handle(&mut self, event: Event, now: Wall) -> Vec<Effect> {
        if self.progress.is_over() {
            return Vec::new();
        }
        self.progress.now = now;
        self.take_in(event);
        self.schedule();
        self.progress.take_effects(|effect| effect.item().is_some() || *effect == Effect::Scan)
    }

    fn progress(&self) -> &Progress<Effect> {
        &self.progress
    }

    fn deadline(&self) -> Option<Wall> {
        let rests = self.jobs.values().filter_map(|job| match job.state {
            JobState::Resting(until) => Some(until),
            _ => None,
        });
        self.progress.next_timer(rests.chain(self.carried.quota.until()))
    }

    fn hold(&self) -> Option<&Hold> {
        self.carried.quota.hold()
    }

    /// Limits that hold for all items.
    fn levels(&self) -> &[budget::Level] {
        &self.settings.levels
    }
}

impl Pipeline {
    /// `carried` is what the run before this one knew.
    pub fn new(settings: Settings, carried: Carried) -> Self {
        Self { settings, carried, stale: true, ..Self::default() }
    }

    /// Returns whether a scan of the backlog is due or under way.
    pub fn is_looking(&self) -> bool {
        !self.looked || self.progress.outstanding().contains(&Effect::Scan)
    }

    fn take_in(&mut self, event: Event) {
        match event {
            Event::Started | Event::Time => {}
            Event::Scanned { changed, gone, away } => self.scanned(changed, &gone, away),
            Event::Spent { levels } => set_sums(&mut self.settings.levels, levels),
            Event::Stop(how) => self.stop_requested(how),
            Event::Retry { item } => self.retry(&item),
            Event::PlanBegun { id, run } => {
                if self.awaits(&id)
                    && let Some(job) = self.jobs.get_mut(&id.item)
                {
                    job.run = Some(run);
                    // A stop may have come while the run was created.
                    let closing = self.closing.is_some().then_some(StopHow::AfterTask);
                    if let Some(how) = self.progress.stop.or(closing) {
                        self.progress.request(Effect::StopPlan { id, how });
                    }
                }
            }
            Event::Answered { id, answer } => {
                if self.awaits(&id) {
                    self.answered(&id.item, answer);
                }
            }
        }
    }

    /// Returns whether this answers the current step of an item. Late and repeated answers do not.
    fn awaits(&self, id: &StepId) -> bool {
        self.jobs.get(&id.item).is_some_and(|job| job.number == id.number && job.state == JobState::Doing)
    }

    fn scanned(&mut self, changed: Vec<Candidate>, gone: &[Slug], away: Option<String>) {
        self.progress.settle(|effect| *effect == Effect::Scan);
        self.looked = true;
        self.checkout_is(away);
        for item in gone {
            self.backlog.remove(item);
        }
        for candidate in changed {
            self.backlog.insert(candidate.item.clone(), candidate);
        }
    }

    /// Records whether the checkout is the one that the pipeline began with. `Some`: the reason why it is not.
    fn checkout_is(&mut self, away: Option<String>) {
        let notice = match (&self.away, &away) {
            (None, Some(why)) => Some((NoticeKind::CheckoutAway, why.clone())),
            (Some(_), None) => Some((NoticeKind::Step, "the checkout is as it was: going on".into())),
            _ => None,
        };
        self.away = away;
        let Some((what, text)) = notice else { return };
        self.tell(what, text.clone());
        let now = self.progress.now;
        for item in self.jobs.keys().cloned().collect::<Vec<_>>() {
            self.memory(&item).note(now, text.clone());
        }
    }

    fn stop_requested(&mut self, how: StopHow) {
        self.progress.request_stop(how);
        self.stop_what_runs(how);
    }

    /// Stops the runs of plans. Sessions of the pipeline may finish, unless it stops at once.
    fn stop_what_runs(&mut self, how: StopHow) {
        let doing = self.jobs.values().filter(|job| job.state == JobState::Doing);
        let effects = doing.filter_map(|job| match (&job.step, how) {
            (Step::Execute, how) => Some(Effect::StopPlan { id: job.id(), how }),
            (Step::Plan { .. } | Step::Verify, StopHow::Now) => Some(Effect::EndSession { id: job.id() }),
            _ => None,
        });
        effects.collect::<Vec<_>>().into_iter().for_each(|effect| self.progress.request(effect));
    }

    fn retry(&mut self, item: &Slug) {
        if self.jobs.contains_key(item) {
            return;
        }
        let Some(memory) = self.carried.items.get_mut(item) else { return };
        // Completed work is not repeated: only the last step is.
        match memory.parked.take().map(|parked| parked.why) {
            Some(ParkedWhy::ArchiveFailed) => {}
            _ => memory.anew(),
        }
        self.step(item, "taken up again: a person asked for it");
        self.stale = true;
    }

    fn memory(&mut self, item: &Slug) -> &mut Memory {
        self.carried.items.entry(item.clone()).or_default()
    }

    /// Notifies people of what concerns no single item.
    fn tell(&mut self, what: NoticeKind, text: String) {
        self.progress.request(Effect::Tell(Notice::new(what, text)));
    }

    /// Notifies people, and keeps the text in the item's history.
    fn say(&mut self, what: NoticeKind, item: &Slug, text: impl Into<String>, message: Option<String>) {
        let (now, text) = (self.progress.now, text.into());
        self.memory(item).note(now, text.clone());
        self.progress.request(Effect::Tell(Notice { what, item: Some(item.clone()), text, message }));
    }

    fn step(&mut self, item: &Slug, text: impl Into<String>) {
        self.say(NoticeKind::Step, item, text, None);
    }

    /// Starts the job's step.
    fn begin(&mut self, job: Job) {
        let number = self.steps.entry(job.item.clone()).or_default();
        *number += 1;
        let job = Job { number: *number, began: self.progress.now, state: JobState::Doing, ..job };
        self.progress.request(Effect::Do { id: job.id(), step: job.step.clone() });
        self.keep(job);
    }

    /// Makes this the job's next step.
    fn ready(&mut self, job: Job, step: Step) {
        self.keep(Job { step, state: JobState::Ready, infra: 0, ..job });
    }

    /// The step starts again as soon as it may.
    fn again(&mut self, job: Job) {
        self.keep(Job { state: JobState::Ready, ..job });
    }

    fn keep(&mut self, job: Job) {
        self.jobs.insert(job.item.clone(), job);
    }

    /// Ends the work on an item, for now or for good.
    fn leave(&mut self, job: Job) {
        drop(job);
        self.stale = true;
    }

    fn park(&mut self, job: Job, why: ParkedWhy, reason: String) {
        let limit_usd = self.backlog.get(&job.item).and_then(|candidate| candidate.limit_usd);
        let what = match why {
            ParkedWhy::ArchiveFailed => NoticeKind::NotArchived,
            _ => NoticeKind::ItemParked,
        };
        self.say(what, &job.item, format!("{why}: {reason}"), None);
        self.memory(&job.item).parked = Some(Parked { why, reason, hash: job.hash.clone(), limit_usd });
        self.parked.push(job.item.clone());
        self.leave(job);
    }

    /// Retries a step that failed through no fault of the item, after a pause. Returns the job if the retries are used
    /// up.
    fn infra(&mut self, mut job: Job, why: &str) -> Option<Job> {
        job.infra += 1;
        let Some(pause) = Backoff::default().infra_pause(job.infra) else { return Some(job) };
        job.state = JobState::Resting(self.progress.now.after(pause));
        self.step(&job.item, format!("{} came to nothing, again in {} s: {why}", job.step.word(), pause.as_secs()));
        self.keep(job);
        None
    }

    /// Starts a hold: a session of this item found the quota used up.
    fn hold_begins(&mut self, item: &Slug, hold: Hold) {
        let text = format!("no session is started for now: {}", hold.reason);
        self.say(NoticeKind::HoldBegins, item, text, None);
        self.carried.quota.limited(hold);
    }
}
