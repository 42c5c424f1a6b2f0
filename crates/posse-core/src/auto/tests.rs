//! Tests of single items, step by step. This file has the bench; the cases are in the modules below.

mod bounds;
mod checkout;
mod choosing;
mod people;
mod together;
mod way;

use super::evidence::{Evidence, Place};
use super::memory::{Memory, Standing};
use super::messages::{Candidate, Effect, Event, Intake, PlanFound, Step, StepAnswer, StepId};
use super::settings::{Mode, Settings};
use super::{Carried, Pipeline};
use crate::backlog::{ItemOutcome, Kind, Priority, Slug};
use crate::engine::hold::Hold;
use crate::engine::{Machine, RunOutcome, StopHow};
use crate::plan::TaskStatus;
use crate::plan::budget::{Total, Usage};
use crate::plan::outcome::{FailedHow, Failure, Outcome};
use crate::plan::report::Report;
use crate::plan::verdict::{Judgement, Verdict};
use crate::time::Wall;

const MINUTE: i64 = 60_000;

pub(super) fn slug(name: &str) -> Slug {
    name.parse().unwrap()
}

pub(super) fn candidate(name: &str, kind: Kind) -> Candidate {
    Candidate {
        item: slug(name),
        path: format!("docs/{name}.md"),
        kind,
        priority: Priority::Medium,
        title: name.into(),
        hash: "h1".into(),
        held: None,
        archived: false,
        asks: false,
        limit_usd: None,
    }
}

pub(super) fn cost(usd: f64) -> Usage {
    Usage { cost_usd: Some(usd), ..Usage::default() }
}

pub(super) fn used(usd: f64) -> Total {
    let mut total = Total::default();
    total.add_usage(&cost(usd));
    total
}

pub(super) fn over() -> Outcome {
    Outcome::Done(Report::completed("plan", "done"))
}

pub(super) fn infra(why: &str) -> Outcome {
    Outcome::Infra(Failure::new(FailedHow::NotStarted, why.into()))
}

pub(super) fn failed(why: &str) -> Outcome {
    Outcome::Failed(Failure::new(FailedHow::Tool, why.into()))
}

pub(super) fn judgement(verdict: Verdict) -> Judgement {
    Judgement { verdict, findings: vec![format!("[{}] S1: looked", format!("{verdict:?}").to_uppercase())] }
}

pub(super) fn good() -> Evidence {
    Evidence {
        plan: Ok(vec![("1".into(), TaskStatus::Verified)]),
        commits: vec!["c".into()],
        unreachable: Ok(Vec::new()),
        item: Place::InBacklog,
    }
}

/// A pipeline, a clock and a backlog.
struct Bench {
    pipeline: Pipeline,
    clock: i64,
    backlog: Vec<Candidate>,
    effects: Vec<Effect>,
    /// The item to answer next, if several are in progress.
    turn: Option<Slug>,
}

impl Bench {
    fn new(settings: Settings, backlog: Vec<Candidate>) -> Self {
        Self::carried(settings, backlog, Carried::default(), 0)
    }

    fn carried(settings: Settings, backlog: Vec<Candidate>, carried: Carried, clock: i64) -> Self {
        let mut bench =
            Self { pipeline: Pipeline::new(settings, carried), clock, backlog, effects: Vec::new(), turn: None };
        bench.tell(Event::Started);
        bench
    }

    /// Sends the pipeline an event, and scans the backlog when requested.
    fn tell(&mut self, event: Event) -> &mut Self {
        self.effects = self.pipeline.handle(event, Wall(self.clock));
        if self.effects.contains(&Effect::Scan) {
            let scanned = self.pipeline.difference(self.backlog.clone(), None);
            self.effects.extend(self.pipeline.handle(scanned, Wall(self.clock)));
        }
        self
    }

    /// Reports a changed backlog.
    fn rescan(&mut self) -> &mut Self {
        let scanned = self.pipeline.difference(self.backlog.clone(), None);
        self.tell(scanned)
    }

    /// The next run.
    fn next_run(self, settings: Settings) -> Self {
        Self::carried(settings, self.backlog, self.pipeline.carried().for_the_next(), self.clock)
    }

    /// Waits for the next timer, if there is one.
    fn wait(&mut self) -> &mut Self {
        if let Some(deadline) = self.pipeline.deadline() {
            self.clock = deadline.0;
            self.tell(Event::Time);
        }
        self
    }

    fn memory(&self, item: &str) -> &Memory {
        &self.pipeline.carried().items[&slug(item)]
    }

    fn history(&self, item: &str) -> Vec<&str> {
        self.memory(item).history.iter().map(|line| line.text.as_str()).collect()
    }

    fn turn_to(&mut self, item: &str) -> &mut Self {
        self.turn = Some(slug(item));
        self
    }

    /// Returns the current step.
    #[track_caller]
    fn step(&self) -> (StepId, Step) {
        let mut steps = self.pipeline.outstanding().iter().rev().filter_map(|effect| match effect {
            Effect::Do { id, step } => Some((id.clone(), step.clone())),
            _ => None,
        });
        steps
            .find(|(id, _)| self.turn.as_ref().is_none_or(|turn| id.item == *turn))
            .unwrap_or_else(|| panic!("nothing is done: {:?}", self.pipeline.outcome()))
    }

    /// Answers the current step, a minute later.
    #[track_caller]
    fn answer(&mut self, answer: StepAnswer) -> &mut Self {
        self.clock += MINUTE;
        let (id, _) = self.step();
        self.tell(Event::Answered { id, answer })
    }

    #[track_caller]
    fn intake(&mut self) -> &mut Self {
        assert_eq!(self.step().1, Step::Intake);
        let intake = Intake::Ready { hash: "h1".into(), failed: 0, next: 1 };
        self.answer(StepAnswer::Intake(intake))
    }

    #[track_caller]
    fn checked(&mut self, plan: PlanFound) -> &mut Self {
        assert!(matches!(self.step().1, Step::Check { .. }), "{:?}", self.step());
        self.answer(StepAnswer::PlanChecked(plan))
    }

    #[track_caller]
    fn planner(&mut self, outcome: Outcome) -> &mut Self {
        assert!(matches!(self.step().1, Step::Plan { .. }), "{:?}", self.step());
        self.answer(StepAnswer::SessionEnded { outcome: outcome.into(), judgement: None, usage: cost(0.5) })
    }

    /// Ends the planner at once and without cost.
    #[track_caller]
    fn at_once(&mut self, outcome: Outcome) -> &mut Self {
        let (id, step) = self.step();
        assert!(matches!(step, Step::Plan { .. }), "{step:?}");
        let answer = StepAnswer::SessionEnded { outcome: outcome.into(), judgement: None, usage: Usage::default() };
        self.tell(Event::Answered { id, answer })
    }

    #[track_caller]
    fn executed(&mut self, outcome: RunOutcome) -> &mut Self {
        assert!(matches!(self.step().1, Step::Execute), "{:?}", self.step());
        self.answer(StepAnswer::PlanEnded { outcome, reason: "so it ended".into(), used: used(1.0) })
    }

    #[track_caller]
    fn verifier(&mut self, outcome: Outcome, verdict: Verdict) -> &mut Self {
        assert!(matches!(self.step().1, Step::Verify), "{:?}", self.step());
        self.answer(StepAnswer::SessionEnded {
            outcome: outcome.into(),
            judgement: Some(judgement(verdict)),
            usage: cost(0.25),
        })
    }

    #[track_caller]
    fn logged(&mut self, number: u32) -> &mut Self {
        assert!(matches!(self.step().1, Step::Log { number: n, .. } if n == number), "{:?}", self.step());
        self.answer(StepAnswer::Logged)
    }

    #[track_caller]
    fn gathered(&mut self, evidence: Evidence) -> &mut Self {
        assert_eq!(self.step().1, Step::Gather);
        self.answer(StepAnswer::Gathered(evidence))
    }

    /// Moves the item out of the backlog.
    #[track_caller]
    fn retired(&mut self, outcome: ItemOutcome) -> &mut Self {
        let (id, step) = self.step();
        assert!(matches!(&step, Step::Retire { outcome: o, .. } if *o == outcome), "{step:?}");
        self.backlog.retain(|candidate| candidate.item != id.item);
        self.answer(StepAnswer::Retired { place: "there".into(), message: "it is done".into() })
    }

    /// Runs the item up to its planner.
    #[track_caller]
    fn begun(&mut self) -> &mut Self {
        self.intake().checked(PlanFound::Missing)
    }

    /// Continues from the planner to a valid plan.
    #[track_caller]
    fn plans(&mut self) -> &mut Self {
        self.planner(over()).checked(valid())
    }

    /// Runs the item up to a valid plan.
    #[track_caller]
    fn planned(&mut self) -> &mut Self {
        self.begun().plans()
    }

    /// Completes the run of the plan.
    #[track_caller]
    fn carried_out(&mut self) -> &mut Self {
        self.executed(RunOutcome::Verified).checked(valid())
    }

    /// Continues from the execution to the end of a feature.
    #[track_caller]
    fn done(&mut self) -> &mut Self {
        self.carried_out().gathered(good()).retired(ItemOutcome::Completed)
    }

    #[track_caller]
    fn ended(&self, outcome: RunOutcome, reason: &str) {
        let (found, why) = self.pipeline.outcome().unwrap_or_else(|| panic!("it goes on: {:?}", self.pipeline.jobs()));
        assert_eq!(found, outcome, "{why}");
        assert!(why.contains(reason), "{why}");
    }

    #[track_caller]
    fn why(&self, item: &str, standing: Standing, reason: &str) {
        let (found, why) = self.pipeline.why(&slug(item)).unwrap();
        assert_eq!(found, standing, "{why}");
        assert!(why.contains(reason), "{why}");
    }
}

fn valid() -> PlanFound {
    PlanFound::Valid { hash: "p1".into() }
}

fn drain() -> Settings {
    Settings { mode: Mode::Drain, ..Settings::default() }
}

fn parallel(items: u32, mode: Mode) -> Settings {
    let mut settings = Settings { mode, ..Settings::default() };
    settings.pipeline.max_parallel_items = items;
    settings
}

fn feature(name: &str) -> Vec<Candidate> {
    vec![candidate(name, Kind::Feature)]
}

fn defect(name: &str) -> Vec<Candidate> {
    vec![candidate(name, Kind::Defect)]
}
