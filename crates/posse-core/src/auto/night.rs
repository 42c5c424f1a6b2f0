//! Simulates the pipeline in a random world. Sessions succeed, fail, lie, hang, hit limits and write broken plans.
//! People stop the pipeline and answer questions. The process dies at random.
//!
//! No work may be repeated or lost, nothing unproven may be archived, and the run must end.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

use super::evidence::{Evidence, Place};
use super::memory::Standing;
use super::messages::{Candidate, Effect, Event, Intake, PlanFound, Step, StepAnswer, StepId};
use super::settings::{Mode, Settings};
use super::tests::{candidate, cost, failed, infra, judgement, over, used};
use super::{Carried, Pipeline};
use crate::backlog::{ItemOutcome, Kind, Slug};
use crate::engine::hold::Hold;
use crate::engine::simulation::{Daemon, Dies, Journal, World};
use crate::engine::{Machine, RunOutcome, StopHow};
use crate::plan::TaskStatus;
use crate::plan::budget::Usage;
use crate::plan::outcome::Outcome;
use crate::plan::verdict::Verdict;
use crate::time::Wall;

const SECOND: i64 = 1000;
const MINUTE: i64 = 60 * SECOND;
const AWAY: &str = "something else is checked out";

/// The true state of an item.
#[derive(Clone, Debug, PartialEq)]
struct Thing {
    candidate: Candidate,
    /// The verification log.
    log: BTreeMap<u32, Verdict>,
    plan: Option<Plan>,
    place: Shelf,
    /// The number of moves.
    moves: u32,
}

#[derive(Clone, Debug, PartialEq)]
struct Plan {
    valid: bool,
    version: u32,
    /// The state that its run left behind, if there was one.
    tasks: TaskStatus,
    commits: Vec<String>,
    merged: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shelf {
    Backlog,
    Archive,
    Failed,
}

/// The world outside the process, which survives its death.
struct Outside {
    seed: u64,
    things: BTreeMap<Slug, Thing>,
    /// Every effect carried out, by name, with its answer.
    deeds: BTreeMap<String, StepAnswer>,
    /// The sessions and runs of each item.
    sessions: BTreeMap<Slug, u32>,
    /// The run of the pipeline. Names are unique within a run.
    run: u32,
    clock: i64,
    /// Another branch is checked out.
    away: bool,
}

impl Outside {
    fn new(seed: u64, items: u32) -> Self {
        let things = (0..items).map(|n| {
            let kind = if n.is_multiple_of(2) { Kind::Defect } else { Kind::Feature };
            let candidate = candidate(&format!("{n}-item"), kind);
            let thing = Thing { candidate, log: BTreeMap::new(), plan: None, place: Shelf::Backlog, moves: 0 };
            (thing.candidate.item.clone(), thing)
        });
        let things = things.collect();
        Self { seed, things, deeds: BTreeMap::new(), sessions: BTreeMap::new(), run: 0, clock: 0, away: false }
    }

    fn dice(&self, what: &str, sides: u64) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.seed, self.run, what).hash(&mut hasher);
        hasher.finish() % sides
    }

    /// Returns the result of a scan.
    fn look(&self, pipeline: &Pipeline) -> Event {
        pipeline.difference(self.backlog(), self.away.then(|| AWAY.into()))
    }

    fn backlog(&self) -> Vec<Candidate> {
        let there = self.things.values().filter(|thing| thing.place == Shelf::Backlog);
        there.map(|thing| thing.candidate.clone()).collect()
    }

    fn thing(&mut self, item: &Slug) -> &mut Thing {
        self.things.get_mut(item).unwrap()
    }

    /// Carries out an effect, or finds that it was carried out. The answer is the same.
    fn perform(&mut self, effect: &Effect) -> Option<Event> {
        let Effect::Do { id, step } = effect else { return None };
        let name = format!("{}/{id}", self.run);
        if let Some(answer) = self.deeds.get(&name) {
            return Some(Event::Answered { id: id.clone(), answer: answer.clone() });
        }
        let session = step.spends();
        if self.away && !session {
            let answer = StepAnswer::NotNow { why: AWAY.into() };
            return Some(Event::Answered { id: id.clone(), answer });
        }
        let answer = self.answer(id, step, &name);
        self.deeds.insert(name, answer.clone());
        Some(Event::Answered { id: id.clone(), answer })
    }

    fn answer(&mut self, id: &StepId, step: &Step, name: &str) -> StepAnswer {
        let item = &id.item;
        let (dice, finer) = (self.dice(name, 20), self.dice(&format!("{name} finer"), 20));
        if step.spends() {
            *self.sessions.entry(item.clone()).or_default() += 1;
            assert_eq!(self.thing(item).place, Shelf::Backlog, "{item}: a session for what is done");
        }
        // Any small step can fail, too.
        let small = !step.spends() && !matches!(step, Step::Retire { .. });
        if small && finer == 0 && dice == 0 {
            return StepAnswer::Failed { why: "the disk is full".into() };
        }
        let (time, clock) = (self.clock, self.clock);
        let limit = |known| Hold { until: Wall(clock + 45 * MINUTE), reason: format!("limit {time}"), known };
        match step {
            Step::Intake => {
                self.clock += SECOND;
                let thing = self.thing(item);
                let intake = match dice {
                    0 if thing.log.is_empty() => Intake::Vague { question: "What is wrong?".into() },
                    _ => {
                        let failed = thing.log.values().filter(|verdict| **verdict == Verdict::Fail).count();
                        let next = thing.log.keys().last().map_or(1, |last| last + 1);
                        Intake::Ready { hash: thing.candidate.hash.clone(), failed: failed as u32, next }
                    }
                };
                StepAnswer::Intake(intake)
            }
            Step::Mark { question } => {
                self.thing(item).candidate.held = Some(format!("waits for an answer: {question}"));
                StepAnswer::Marked
            }
            Step::Check { .. } => {
                let plan = match &self.thing(item).plan {
                    None => PlanFound::Missing,
                    Some(plan) if !plan.valid => PlanFound::Invalid { problems: "broken".into() },
                    Some(plan) => {
                        PlanFound::Valid { hash: format!("{} {} {:?}", plan.version, plan.tasks, plan.commits) }
                    }
                };
                StepAnswer::PlanChecked(plan)
            }
            Step::SetAside => {
                self.thing(item).plan = None;
                StepAnswer::SetAside
            }
            Step::Plan { .. } => {
                self.clock += if dice == 1 { SECOND } else { 3 * MINUTE };
                let (outcome, usage) = match dice {
                    0 => (Outcome::Limited(limit(finer < 10)), Usage::default()),
                    1 => (infra("ended without a word"), Usage::default()),
                    2 => (failed("it hung"), cost(0.5)),
                    3 => (Outcome::Suspended { question: "Which colour?".into(), context: None }, cost(0.5)),
                    _ => (over(), cost(0.5)),
                };
                // 4 writes nothing and reports success; 5 and 6 write an invalid report.
                if outcome == over() && dice != 4 {
                    let (valid, version) = (dice > 6, self.sessions[item]);
                    let plan = Plan { valid, version, tasks: TaskStatus::Pending, commits: Vec::new(), merged: true };
                    self.thing(item).plan = Some(plan);
                }
                StepAnswer::SessionEnded { outcome: outcome.into(), judgement: None, usage }
            }
            Step::Execute => {
                self.clock += 12 * MINUTE;
                let outcome = match dice {
                    0 => RunOutcome::Failed,
                    1 => RunOutcome::CircuitOpen,
                    2 => RunOutcome::Deadlocked,
                    3 => RunOutcome::Suspended,
                    4 => RunOutcome::CompletedWithWarnings,
                    5 => RunOutcome::InternalError,
                    _ => RunOutcome::Verified,
                };
                let name = name.to_owned();
                let thing = self.thing(item);
                if outcome == RunOutcome::Suspended {
                    thing.candidate.asks = true;
                }
                if let Some(plan) = &mut thing.plan
                    && plan.tasks != TaskStatus::Verified
                {
                    plan.tasks = if outcome.is_success() { TaskStatus::Verified } else { TaskStatus::Failed };
                    // False reports: done without a change, done but not merged, done with a task left over.
                    plan.commits = if finer == 1 { Vec::new() } else { vec![name] };
                    plan.merged = finer != 2;
                    if finer == 3 {
                        plan.tasks = TaskStatus::Pending;
                    }
                }
                StepAnswer::PlanEnded { outcome, reason: "so it ended".into(), used: used(1.0) }
            }
            Step::Verify => {
                self.clock += 4 * MINUTE;
                let (outcome, verdict) = match dice {
                    0 => (Outcome::Limited(limit(true)), Verdict::Error),
                    1 | 2 => (failed("it took too long"), Verdict::Pass),
                    3 => (over(), Verdict::Error),
                    4..=9 => (over(), Verdict::Fail),
                    10 => (over(), Verdict::Warn),
                    _ => (over(), Verdict::Pass),
                };
                StepAnswer::SessionEnded {
                    outcome: outcome.into(),
                    judgement: Some(judgement(verdict)),
                    usage: cost(0.2),
                }
            }
            Step::Log { number, judgement } => {
                self.thing(item).log.entry(*number).or_insert(judgement.verdict);
                StepAnswer::Logged
            }
            Step::Gather => {
                let thing = self.thing(item);
                let evidence = match &thing.plan {
                    None => Evidence {
                        plan: Err("there is none".into()),
                        commits: Vec::new(),
                        unreachable: Ok(Vec::new()),
                        item: Place::InBacklog,
                    },
                    Some(plan) => Evidence {
                        plan: Ok(vec![("1".into(), plan.tasks)]),
                        commits: plan.commits.clone(),
                        unreachable: Ok(if plan.merged { Vec::new() } else { plan.commits.clone() }),
                        item: Place::InBacklog,
                    },
                };
                StepAnswer::Gathered(evidence)
            }
            Step::Retire { outcome, .. } => {
                if dice == 0 && finer < 5 {
                    return StepAnswer::Failed { why: "read-only".into() };
                }
                let thing = self.thing(item);
                if outcome.is_success() {
                    proven(thing, *outcome);
                }
                assert_eq!(thing.place, Shelf::Backlog, "{item} is moved twice");
                thing.moves += 1;
                thing.place = if outcome.is_success() { Shelf::Archive } else { Shelf::Failed };
                StepAnswer::Retired { place: format!("{:?}", thing.place), message: String::new() }
            }
        }
    }

    /// People answer questions, and attend to items that need attention.
    fn people(&mut self, pipeline: &Pipeline) -> Vec<Event> {
        for thing in self.things.values_mut() {
            if thing.candidate.held.take().is_some() {
                thing.candidate.hash.push('+');
            }
            thing.candidate.asks = false;
        }
        let parked = pipeline.standings().into_iter().filter(|(_, standing, reason)| {
            let looked_after = ["needs_attention", "archive_failed"].iter().any(|why| reason.starts_with(why));
            *standing == Standing::Parked && looked_after
        });
        parked.map(|(item, ..)| Event::Retry { item }).collect()
    }
}

/// Checks the true state, whatever was reported: the work exists, and the latest verdict on a defect is good.
fn proven(thing: &Thing, outcome: ItemOutcome) {
    let item = &thing.candidate.item;
    let plan = thing.plan.as_ref().unwrap_or_else(|| panic!("{item} is archived without a plan"));
    assert!(plan.valid && plan.tasks == TaskStatus::Verified, "{item} is archived with an open task");
    assert!(plan.merged, "{item} is archived and its work is not in the branch");
    let last = thing.log.values().last();
    match thing.candidate.kind {
        Kind::Feature => assert!(!plan.commits.is_empty(), "{item} is archived and nothing was changed"),
        Kind::Defect => {
            let last = last.unwrap_or_else(|| panic!("{item} is archived and was not verified"));
            assert!(matches!(last, Verdict::Pass | Verdict::Warn), "{item} is archived after {last:?}");
            assert!(!plan.commits.is_empty() || *last == Verdict::Pass, "{item}: nothing is shown");
            assert!(*last == Verdict::Pass || outcome == ItemOutcome::CompletedWithWarnings, "{item}");
        }
    }
}

/// One run of the pipeline, until it is over.
struct Night {
    world: Outside,
    settings: Settings,
    journal: Journal<Self>,
    /// Answers that the pipeline has not received yet.
    queue: VecDeque<Event>,
    carried: Carried,
    /// The state that the last run began with.
    carried_in: Carried,
}

impl World for Night {
    type Run = Pipeline;

    fn new_run(&self) -> Pipeline {
        Pipeline::new(self.settings.clone(), self.carried.clone())
    }

    fn check(&mut self, daemon: &Daemon<Self>, _: &[Effect]) {
        check(&daemon.run);
    }

    fn perform(&mut self, pipeline: &Pipeline, effect: &Effect) {
        let event = match effect {
            Effect::Scan => Some(self.world.look(pipeline)),
            effect => self.world.perform(effect),
        };
        self.queue.extend(event);
    }

    fn returned(&mut self, daemon: &Daemon<Self>) {
        self.queue.clear();
        daemon.run.outstanding().iter().for_each(|effect| self.perform(&daemon.run, effect));
    }
}

impl Night {
    fn new(seed: u64, items: u32, parallel: u32) -> Self {
        let mut settings = Settings { mode: Mode::Drain, ..Settings::default() };
        (settings.limits.items_per_hour, settings.pipeline.max_parallel_items) = (1000, parallel);
        let (journal, queue, carried, carried_in) = Default::default();
        Self { world: Outside::new(seed, items), settings, journal, queue, carried, carried_in }
    }

    /// Runs the pipeline and also returns the number of events. `dies` is called for every event; `people` stop the run
    /// and check out branches.
    fn run(&mut self, dies: impl Fn(&Outside, usize) -> Option<Dies>, people: bool) -> (Pipeline, usize) {
        self.world.run += 1;
        self.world.away = false;
        self.queue = VecDeque::from([Event::Started]);
        let mut daemon = Daemon::new(self);
        while daemon.run.outcome().is_none() {
            let at = daemon.journal.len();
            assert!(at < 20_000, "it does not come to an end");
            let event = self.next(&daemon.run, at, people);
            self.world.clock += SECOND;
            let death = dies(&self.world, at);
            daemon.handle(self, event, Wall(self.world.clock), death);
        }
        let Daemon { run: pipeline, journal } = daemon;
        let events = journal.len();
        self.journal = journal;
        self.explained(&pipeline);
        self.carried_in = std::mem::replace(&mut self.carried, pipeline.carried().for_the_next());
        (pipeline, events)
    }

    fn next(&mut self, pipeline: &Pipeline, at: usize, people: bool) -> Event {
        let person = if people { self.world.dice(&format!("people {at}"), 400) } else { 400 };
        let how = if at.is_multiple_of(2) { StopHow::Now } else { StopHow::AfterTask };
        // Several answers may arrive in any order.
        let any = self.world.dice(&format!("first {at}"), self.queue.len().max(1) as u64) as usize;
        let event = match person {
            0 => Some(Event::Stop(how)),
            1..5 if !self.world.away => {
                self.world.away = true;
                Some(self.world.look(pipeline))
            }
            _ => self.queue.remove(any),
        };
        match event {
            // An ended session counts as an answer if its end was requested.
            Some(Event::Answered { id, mut answer }) if ended(pipeline, &id) => {
                if let StepAnswer::SessionEnded { outcome, .. } = &mut answer {
                    **outcome = Outcome::Interrupted;
                }
                Event::Answered { id, answer }
            }
            Some(event) => event,
            // Everything waits until the branch is checked out again.
            None if pipeline.away().is_some() => {
                self.world.away = false;
                self.world.clock += 20 * MINUTE;
                self.world.look(pipeline)
            }
            None => {
                let deadline = pipeline.deadline();
                let deadline = deadline.unwrap_or_else(|| panic!("nothing to do, nothing to wait for: {pipeline:?}"));
                self.world.clock = self.world.clock.max(deadline.0);
                Event::Time
            }
        }
    }

    /// Checks that the journal alone gives the true state and reason of every item.
    fn explained(&self, pipeline: &Pipeline) {
        let again = self.read_back(&self.journal);
        let looked = self.journal.iter().any(|(event, _)| matches!(event, Event::Scanned { .. }));
        for (item, thing) in self.world.things.iter().filter(|_| looked) {
            let (standing, reason) = pipeline.why(item).unwrap();
            assert_eq!(again.why(item), Some((standing, reason.clone())));
            assert!(!reason.is_empty(), "{item}");
            let is_ended = thing.place != Shelf::Backlog;
            assert_eq!(
                is_ended,
                matches!(standing, Standing::Ended | Standing::Gone),
                "{item}: {standing:?}, {reason}"
            );
            assert_eq!(thing.moves, u32::from(is_ended), "{item}");
            if is_ended || standing == Standing::Parked {
                let last = &pipeline.carried().items[item].history.last().unwrap().text;
                assert!(last.starts_with(&reason), "{item}: {last}, {reason}");
            }
        }
    }
}

/// Returns whether the end of this session was requested.
fn ended(pipeline: &Pipeline, id: &StepId) -> bool {
    pipeline.outstanding().iter().any(|effect| matches!(effect, Effect::EndSession { id: other } if other == id))
}

/// Checks the invariants after every event.
fn check(pipeline: &Pipeline) {
    let doing: BTreeSet<&StepId> = pipeline
        .outstanding()
        .iter()
        .filter_map(|effect| match effect {
            Effect::Do { id, .. } => Some(id),
            _ => None,
        })
        .collect();
    let items: BTreeSet<&Slug> = doing.iter().map(|id| &id.item).collect();
    assert_eq!(items.len(), doing.len(), "one thing at a time for an item: {doing:?}");
    assert!(items.len() <= pipeline.settings().pipeline.max_parallel_items as usize, "too many items: {doing:?}");
    for (item, memory) in &pipeline.carried().items {
        assert!(memory.attempts <= 2, "{item} was tried {} times", memory.attempts);
        assert!(memory.wanting <= 3, "{item} was found wanting {} times", memory.wanting);
    }
    if let Some(at) = pipeline.deadline() {
        assert!(pipeline.outcome().is_none() && at.0 > 0);
    }
}

/// Returns whether the plans of two items were carried out at the same time.
fn together_once(night: &Night) -> bool {
    let mut pipeline = Pipeline::new(night.settings.clone(), night.carried_in.clone());
    night.journal.iter().any(|(event, at)| {
        pipeline.handle(event.clone(), *at);
        pipeline.jobs().values().filter(|job| job.step == Step::Execute).count() > 1
    })
}

/// Checks that nothing is left to start.
fn is_through(pipeline: &Pipeline) -> bool {
    let (outcome, _) = pipeline.outcome().unwrap();
    matches!(
        outcome,
        RunOutcome::Verified | RunOutcome::CompletedWithWarnings | RunOutcome::Failed | RunOutcome::Suspended
    )
}

#[test]
fn two_hundred_items_and_a_process_that_dies_all_night() {
    all_night(1, 0..3, ["Stopped", "Suspended"]);
}

#[test]
fn the_same_with_three_at_once() {
    all_night(3, 3..5, ["Stopped", "Failed"]);
}

fn all_night(parallel: u32, seeds: std::ops::Range<u64>, ends: [&str; 2]) {
    let (mut outcomes, mut kills) = (BTreeSet::new(), 0);
    let (mut away, mut together) = (false, false);
    for seed in seeds.clone() {
        let mut night = Night::new(seed, 200, parallel);
        let died = std::cell::Cell::new(0);
        let dies = |world: &Outside, at: usize| {
            let dice = world.dice(&format!("dies {at}"), 150);
            let how = Dies::ALL[1..].get(dice as usize).copied();
            died.set(died.get() + usize::from(how.is_some()));
            how
        };
        let mut asked = 0;
        for run in 0.. {
            assert!(run < 100, "seed {seed}: it does not come to an end");
            let (pipeline, _) = night.run(dies, true);
            outcomes.insert(format!("{:?}", pipeline.outcome().unwrap().0));
            away |= night
                .journal
                .iter()
                .any(|(event, _)| matches!(event, Event::Answered { answer: StepAnswer::NotNow { .. }, .. }));
            together |= together_once(&night);
            // A user returns in the morning.
            night.world.clock += 60 * MINUTE;
            if is_through(&pipeline) {
                let left = night.world.backlog();
                for candidate in &left {
                    let (standing, why) = pipeline.why(&candidate.item).unwrap();
                    assert!(matches!(standing, Standing::Parked | Standing::Held), "{why}");
                }
                // Questions are answered a few times. After that they may stay open.
                asked += 1;
                if left.is_empty() || asked > 5 {
                    break;
                }
                let mut morning = Pipeline::new(night.settings.clone(), night.carried.clone());
                for event in night.world.people(&pipeline) {
                    morning.handle(event, Wall(night.world.clock));
                }
                night.carried = morning.carried().clone();
            }
        }
        kills += died.get();
        let shelf = |shelf| night.world.things.values().filter(|thing| thing.place == shelf).count();
        let (done, failed) = (shelf(Shelf::Archive), shelf(Shelf::Failed));
        assert!(done > 80 && failed > 10, "seed {seed}: {done} done, {failed} failed");
        for (item, sessions) in &night.world.sessions {
            assert!(*sessions <= 60, "{item} took {sessions} sessions");
        }
    }
    assert!(kills > 20 * seeds.count() && away && together == (parallel > 1), "{kills} {away} {together}");
    for outcome in ends {
        assert!(outcomes.contains(outcome), "{outcomes:?}");
    }
}

/// The outcome, the final state of every item, and the effects carried out.
type End = (RunOutcome, Vec<(Slug, Shelf, BTreeMap<u32, Verdict>)>, Vec<String>);

fn small(seed: u64, dies: Option<(usize, Dies)>) -> (End, usize) {
    let mut night = Night::new(seed, 5, 1);
    let (pipeline, events) = night.run(|_, at| dies.filter(|(when, _)| *when == at).map(|(_, how)| how), false);
    let things =
        night.world.things.values().map(|thing| (thing.candidate.item.clone(), thing.place, thing.log.clone()));
    let deeds = night.world.deeds.keys().cloned().collect();
    ((pipeline.outcome().unwrap().0, things.collect(), deeds), events)
}

#[test]
fn killed_at_every_entry_it_ends_the_same() {
    let mut ends = BTreeSet::new();
    for seed in 0..6 {
        let (end, events) = small(seed, None);
        ends.insert(format!("{:?}", end.0));
        for at in 0..events {
            for how in &Dies::ALL[1..] {
                let (again, _) = small(seed, Some((at, *how)));
                assert_eq!(again, end, "seed {seed}, killed at entry {at}, {how:?}");
            }
        }
    }
    assert!(ends.len() > 1, "{ends:?}");
}
