//! The pipeline as one machine: told what happened, it says what is to be done.
//!
//! It is nothing but its events. They are written to the journal before they are acted on; handed to a new `Pipeline` in the
//! same order and with the same times they give the same one, and `outstanding` says what was asked for and not answered. So
//! it can be killed at any moment. Times are of the wall clock, because pauses, holds and guards outlive the process.
//!
//! The way of an item: intake, plan, execution, verification (defects), the gate, the archive. Nothing goes on by absence.
//! Several items may be on their way at once; each is worked on once.

mod choose;
mod money;
mod phases;
mod show;

use std::collections::BTreeMap;

use super::guards::Streak;
use super::memory::{Carried, Memory, Parked, ParkedWhy};
use super::settings::Settings;
use super::words::{Candidate, DeedId, Effect, Event, Notice, NoticeKind, Repair};
use crate::backlog::{ItemOutcome, Kind, Slug};
use crate::ids::RunId;
use crate::plan::budget::Total;
use crate::plan::limits::{Hold, longer};
use crate::plan::machine::{RunOutcome, StopHow};
use crate::plan::retry::INFRA_MAX;
use crate::time::Wall;
use crate::turn::Level;

pub use show::{Doing, Why};

#[derive(Clone, Debug, Default)]
pub struct Pipeline {
    settings: Settings,
    /// The time of the last event.
    now: Wall,
    backlog: BTreeMap<Slug, Candidate>,
    carried: Carried,
    /// The items that are worked on.
    jobs: BTreeMap<Slug, Job>,
    /// How many things were done for an item in this run: no name is used twice.
    deeds: BTreeMap<Slug, u32>,
    streak: Streak,
    /// Items that have come to their end in this run, and how.
    handled: Vec<(Slug, ItemOutcome)>,
    /// Items that have begun to wait for a person in this run.
    parked: Vec<Slug>,
    /// With `once`: the item it is.
    once: Option<Slug>,
    /// The backlog has been looked at.
    looked: bool,
    /// The backlog may have changed since somebody was asked to look at it.
    stale: bool,
    /// Why nothing in the user's checkout may be read or written now: it is not what it was when the pipeline began.
    away: Option<String>,
    probes: u32,
    /// What this run has spent.
    total: Total,
    stop: Option<StopHow>,
    /// How it will end, as soon as what runs has come to its end.
    closing: Option<(RunOutcome, String)>,
    outcome: Option<(RunOutcome, String)>,
    outstanding: Vec<Effect>,
    effects: Vec<Effect>,
}

/// An item that is worked on.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Job {
    pub(super) item: Slug,
    pub(super) kind: Kind,
    pub(super) since: Wall,
    /// The number of what is done for it now, and since when.
    number: u32,
    began: Wall,
    pub(super) stage: Stage,
    /// What its author has written, once it was read.
    hash: String,
    /// The number of the next entry in its log.
    next_entry: u32,
    /// What this attempt has used.
    spent: Total,
    /// What the planner was not allowed to do.
    denied: Vec<String>,
    /// Failures in a row of what is not its own fault.
    infra: u32,
    /// Verifiers in a row that gave no verdict.
    errors: u32,
    /// The plan's file, as it was looked at last.
    plan: Option<String>,
    /// The run that carries it out.
    pub(super) run: Option<RunId>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Stage {
    /// This is being done.
    Doing(Step),
    /// This is next, as soon as it may be begun.
    Ready(Step),
    /// This is next, after a pause.
    Resting(Step, Wall),
}

/// What is done with an item.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    Intake,
    Mark {
        question: String,
    },
    /// Is there a plan? `by` says who should have written it.
    Check {
        by: Author,
    },
    SetAside,
    Plan {
        repair: Option<Repair>,
    },
    Execute,
    Verify,
    Log {
        verdict: crate::plan::verdict::Judgement,
    },
    Gather,
    Retire {
        outcome: ItemOutcome,
        reason: String,
        /// What was done last before it: the same, however often this has to be tried.
        after: u32,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Author {
    /// An attempt before this one, if any.
    Earlier,
    /// The planner, in the session of this number.
    Planner { number: u32 },
    /// The same, in its second try.
    Repair { number: u32 },
    /// Nobody: it was carried out, and this is how it was left.
    Run,
}

impl Step {
    /// Whether it takes a session: quota and money.
    fn spends(&self) -> bool {
        matches!(self, Self::Plan { .. } | Self::Execute | Self::Verify)
    }

    /// Whether it is still done when somebody has asked to stop: what is known is written down, and nothing more.
    fn records(&self) -> bool {
        match self {
            Self::Mark { .. } | Self::Log { .. } => true,
            Self::Check { by } => *by != Author::Earlier,
            _ => false,
        }
    }

    pub(super) fn word(&self) -> &'static str {
        match self {
            Self::Intake => "intake",
            Self::Mark { .. } => "asking",
            Self::Check { .. } => "checking the plan",
            Self::SetAside => "setting the old plan aside",
            Self::Plan { repair: None } => "planning",
            Self::Plan { repair: Some(_) } => "repairing the plan",
            Self::Execute => "executing",
            Self::Verify => "verifying",
            Self::Log { .. } => "writing the log",
            Self::Gather => "gathering evidence",
            Self::Retire { outcome, .. } if outcome.is_success() => "archiving",
            Self::Retire { .. } => "moving it out",
        }
    }
}

impl Pipeline {
    /// `carried` is what the run before this one knew.
    pub fn new(settings: Settings, carried: Carried) -> Self {
        Self { settings, carried, now: Wall(i64::MIN), stale: true, ..Self::default() }
    }

    /// Whether there may be items that it has not seen yet.
    pub fn is_looking(&self) -> bool {
        !self.looked || self.outstanding.contains(&Effect::Scan)
    }

    /// What was asked for and has not been answered. After a restart it is asked for again.
    pub fn outstanding(&self) -> &[Effect] {
        &self.outstanding
    }

    pub fn handle(&mut self, event: Event, now: Wall) -> Vec<Effect> {
        if self.outcome.is_some() {
            return Vec::new();
        }
        self.now = now;
        self.take_in(event);
        self.go_on();
        let effects = std::mem::take(&mut self.effects);
        let answered = |effect: &&Effect| {
            matches!(effect, Effect::Scan | Effect::Do { .. } | Effect::EndSession { .. } | Effect::StopPlan { .. })
        };
        self.outstanding.extend(effects.iter().filter(answered).cloned());
        effects
    }

    fn take_in(&mut self, event: Event) {
        match event {
            Event::Started | Event::Time => {}
            Event::Scanned { changed, gone, away } => self.scanned(changed, &gone, away),
            Event::Spent { levels } => self.counted(levels),
            Event::Stop(how) => self.stop_requested(how),
            Event::Retry { item } => self.retry(&item),
            Event::PlanBegun { id, run } => {
                if self.awaits(&id)
                    && let Some(job) = self.jobs.get_mut(&id.item)
                {
                    job.run = Some(run);
                }
            }
            Event::IntakeEnded { ref id, .. }
            | Event::Marked { ref id }
            | Event::PlanChecked { ref id, .. }
            | Event::SetAside { ref id }
            | Event::PlannerEnded { ref id, .. }
            | Event::PlanEnded { ref id, .. }
            | Event::VerifierEnded { ref id, .. }
            | Event::Logged { ref id }
            | Event::EvidenceFound { ref id, .. }
            | Event::Retired { ref id, .. }
            | Event::NotRetired { ref id, .. }
            | Event::NotNow { ref id, .. }
            | Event::DeedFailed { ref id, .. } => {
                if self.awaits(id) {
                    let item = id.item.clone();
                    self.answered(&item, event);
                }
            }
        }
    }

    /// Whether this is the answer that is awaited. What is late, repeated or of another time is none.
    fn awaits(&self, id: &DeedId) -> bool {
        let job = self.jobs.get(&id.item);
        job.is_some_and(|job| job.number == id.number && matches!(job.stage, Stage::Doing(_)))
    }

    fn scanned(&mut self, changed: Vec<Candidate>, gone: &[Slug], away: Option<String>) {
        self.outstanding.retain(|effect| *effect != Effect::Scan);
        self.looked = true;
        self.checkout_is(away);
        for item in gone {
            self.backlog.remove(item);
        }
        for candidate in changed {
            self.backlog.insert(candidate.item.clone(), candidate);
        }
    }

    /// Whether the checkout is what it was when the pipeline began. `Some`: why not.
    fn checkout_is(&mut self, away: Option<String>) {
        let notice = match (&self.away, &away) {
            (None, Some(why)) => Some((NoticeKind::CheckoutAway, Level::Warning, why.clone())),
            (Some(_), None) => Some((NoticeKind::Step, Level::Info, "the checkout is as it was: going on".into())),
            _ => None,
        };
        self.away = away;
        let Some((what, level, text)) = notice else { return };
        self.effects.push(Effect::Tell(Notice { what, level, item: None, text: text.clone(), message: None }));
        let now = self.now;
        for item in self.jobs.keys().cloned().collect::<Vec<_>>() {
            self.memory(&item).note(now, text.clone());
        }
    }

    fn stop_requested(&mut self, how: StopHow) {
        self.stop = self.stop.max(Some(how));
        self.stop_what_runs(how);
    }

    /// What runs is asked to come to its end. Sessions of our own may finish, unless it is to be now.
    fn stop_what_runs(&mut self, how: StopHow) {
        let jobs = self.jobs.values();
        let effects = jobs.filter_map(|Job { item, number, stage, .. }| {
            let id = DeedId { item: item.clone(), number: *number };
            match (stage, how) {
                (Stage::Doing(Step::Execute), how) => Some(Effect::StopPlan { id, how }),
                (Stage::Doing(Step::Plan { .. } | Step::Verify), StopHow::Now) => Some(Effect::EndSession { id }),
                _ => None,
            }
        });
        self.effects.extend(effects.collect::<Vec<_>>());
    }

    fn retry(&mut self, item: &Slug) {
        if self.jobs.contains_key(item) {
            return;
        }
        let Some(memory) = self.carried.items.get_mut(item) else { return };
        // What is done is not done again: only the last step is.
        match memory.parked.take().map(|parked| parked.why) {
            Some(ParkedWhy::ArchiveFailed) => {}
            _ => memory.anew(),
        }
        self.say(NoticeKind::Step, Level::Info, item, "taken up again: a person asked for it".into());
        self.stale = true;
    }

    fn memory(&mut self, item: &Slug) -> &mut Memory {
        self.carried.items.entry(item.clone()).or_default()
    }

    /// Tells people, and remembers it with the item.
    fn say(&mut self, what: NoticeKind, level: Level, item: &Slug, text: String) {
        self.say_with(what, level, item, text, None);
    }

    /// The same; who is not looking is told in other words.
    fn say_with(&mut self, what: NoticeKind, level: Level, item: &Slug, text: String, message: Option<String>) {
        let now = self.now;
        self.memory(item).note(now, text.clone());
        self.effects.push(Effect::Tell(Notice { what, level, item: Some(item.clone()), text, message }));
    }

    fn step(&mut self, item: &Slug, text: impl Into<String>) {
        self.say(NoticeKind::Step, Level::Info, item, text.into());
    }

    /// Does this for an item that is worked on.
    fn begin(&mut self, item: &Slug, step: Step) {
        let Some(job) = self.jobs.get_mut(item) else { return };
        let number = self.deeds.entry(item.clone()).or_default();
        *number += 1;
        (job.number, job.began) = (*number, self.now);
        job.stage = Stage::Doing(step.clone());
        let id = DeedId { item: item.clone(), number: *number };
        let deed = self.deed(item, step);
        self.effects.push(Effect::Do { id, deed });
    }

    /// This is next. Whether it may be begun is decided when everything else is.
    fn ready(&mut self, item: &Slug, step: Step) {
        if let Some(job) = self.jobs.get_mut(item) {
            job.stage = Stage::Ready(step);
        }
    }

    /// The item is not worked on any more, for now or for ever.
    fn leave(&mut self, item: &Slug) {
        self.jobs.remove(item);
        self.stale = true;
    }

    fn park(&mut self, item: &Slug, why: ParkedWhy, reason: String) {
        let Some(job) = self.jobs.get(item) else { return };
        let hash = job.hash.clone();
        let limit_usd = self.backlog.get(item).and_then(|candidate| candidate.limit_usd);
        let what = match why {
            ParkedWhy::ArchiveFailed => NoticeKind::NotArchived,
            _ => NoticeKind::ItemParked,
        };
        self.say(what, Level::Warning, item, format!("{why}: {reason}"));
        self.memory(item).parked = Some(Parked { why, reason, hash, limit_usd });
        self.parked.push(item.clone());
        self.leave(item);
    }

    /// It could not be tried properly. Again after a pause, but not for ever.
    fn infra(&mut self, item: &Slug, step: Step, why: &str) -> Infra {
        let (now, backoff) = (self.now, self.settings.backoff);
        let Some(job) = self.jobs.get_mut(item) else { return Infra::GiveUp };
        job.infra += 1;
        if job.infra >= INFRA_MAX {
            return Infra::GiveUp;
        }
        let word = step.word();
        let pause = backoff.pause(job.infra);
        job.stage = Stage::Resting(step, now.after(pause));
        self.step(item, format!("{word} could not be tried, again in {} s: {why}", pause.as_secs()));
        Infra::Again
    }

    /// A session of this item has found out that the quota is used up.
    fn hold_begins(&mut self, item: &Slug, hold: Hold) {
        self.probes = if hold.known { 0 } else { self.probes + 1 };
        let text = format!("no session is started for now: {}", hold.reason);
        self.say(NoticeKind::HoldBegins, Level::Warning, item, text);
        self.carried.hold = Some(match self.carried.hold.take() {
            Some(other) => longer(other, hold),
            None => hold,
        });
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Infra {
    Again,
    GiveUp,
}
