//! Runs of a plan in a random world (`world`). Sessions fail, ask questions, hit limits and edit the plan. People stop
//! the run, answer, edit, and request retries. The daemon dies at every entry of the journal, before and after it is
//! durable.
//!
//! No work may be repeated or lost, and the result must be the same as without crashes.

mod world;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use jiff::Timestamp;
use world::{Act, World};

use super::{Effect, Event, Left, MergeResult, Part, Run, RunId, resume};
use crate::engine::simulation::{self, Daemon, Dies, Journal};
use crate::engine::{Machine, RunOutcome};
use crate::plan::outcome::Outcome;
use crate::plan::select::satisfied;
use crate::plan::settings::Settings;
use crate::plan::verdict::Verdict;
use crate::plan::{Plan, State, TaskId, TaskStatus};
use crate::time::Wall;

const PLAN: &str = "meta:
  name: sim
  parallel: 3
  circuit_breaker_threshold: 6
  validation: {enabled: true, run_after: [tester], validators: [v, w]}
  gates: [{cmd: make}, {cmd: make e2e, when: after_plan}]
sections:
  - id: one
    tasks:
      - {id: a, name: A}
      - {id: b, name: B, depends_on: [a], parallel_group: g, agent: tester}
      - {id: c, name: C, depends_on: [a], parallel_group: g, exclusive_resources: [db]}
      - {id: d, name: D, depends_on: [a], parallel_group: g, exclusive_resources: [db], agent: tester}
  - id: two
    tasks:
      - {id: e, name: E, depends_on: [b, c]}
      - {id: f, name: F, depends_on: [d]}
";

const WORKERS: usize = 3;
const ATTEMPTS: u32 = 3;
/// The maximum number of runs that a person starts.
const ROUNDS: usize = 12;

/// The next event of the simulation.
#[derive(Clone)]
enum Next {
    Edit(String),
    Deed(String),
    Act,
    Answer(TaskId),
    Time,
}

#[derive(Clone)]
struct Sim {
    daemon: Daemon<Outside>,
    outside: Outside,
}

#[derive(Clone)]
struct Outside {
    world: World,
    /// The text at the start of this run.
    text: String,
    before: BTreeMap<TaskId, u32>,
    state: State,
    left: BTreeMap<TaskId, Left>,
    starts: BTreeMap<TaskId, u32>,
    /// The journals and outcomes of earlier runs.
    rounds: Vec<(Journal<Self>, RunOutcome)>,
    clock: i64,
    /// The event being handled.
    next: Option<Next>,
    /// The number of actions by people.
    acts: usize,
    /// Answers that sessions must receive.
    answers: BTreeMap<TaskId, String>,
    /// Tasks that a person has retried.
    wanted_again: BTreeSet<TaskId>,
    second_chance: bool,
    /// The tasks of the plan so far.
    tasks: BTreeSet<TaskId>,
    /// Runs replayed from journals of this length, by round. Cached because a replay takes longer than all the rest.
    read_back: Rc<RefCell<BTreeMap<(usize, usize), Run>>>,
}

impl simulation::World for Outside {
    type Run = Run;

    fn new_run(&self) -> Run {
        new_run(&self.text, &self.before, self.state.clone(), &self.left)
    }

    fn read_back(&self, journal: &Journal<Self>) -> Run {
        let length = (self.rounds.len(), journal.len());
        let known = self.read_back.borrow().get(&length).cloned();
        known.unwrap_or_else(|| {
            let mut run = self.new_run();
            for (event, at) in journal.iter().cloned() {
                run.handle(event, at);
            }
            self.read_back.borrow_mut().insert(length, run.clone());
            run
        })
    }

    /// Marks the event as durable: it is not sent again.
    fn durable(&mut self, event: &Event) {
        match event {
            Event::Answered { task, answer } => drop(self.answers.insert(task.clone(), answer.clone())),
            Event::Retry { task } => {
                self.answers.remove(task);
                self.wanted_again.insert(task.clone());
            }
            Event::SessionEnded { run, outcome: Outcome::Suspended { .. }, .. } => drop(self.answers.remove(&run.task)),
            _ => {}
        }
        match self.next.take() {
            Some(Next::Deed(name)) => {
                self.world.deeds.get_mut(&name).and_then(|deeds| deeds.last_mut()).unwrap().told = true;
            }
            Some(next) => self.skip(&next),
            None => {}
        }
    }

    fn perform(&mut self, run: &Run, effect: &Effect) {
        if let Effect::MakeArea { run } = effect {
            self.starts.insert(run.task.clone(), run.start);
        }
        self.world.perform(effect, self.rounds.len(), self.clock, || run.mirror().unwrap().to_string());
    }

    fn check(&mut self, daemon: &Daemon<Self>, effects: &[Effect]) {
        let (plan, state) = (daemon.run.plan(), daemon.run.state());
        let tasks: BTreeSet<TaskId> = plan.tasks().map(|task| task.id.clone()).collect();
        assert!(tasks.is_superset(&self.tasks), "{:?} became {tasks:?}", self.tasks);
        self.tasks = tasks;
        assert_eq!(plan.meta.max_attempts, None, "a rule was changed");
        let sessions: BTreeSet<&RunId> = daemon.run.outstanding().iter().filter_map(session).collect();
        assert!(sessions.len() <= WORKERS, "{sessions:?}");
        for effect in effects {
            if let Effect::MakeArea { run: started } = effect {
                let task = plan.task(started.task.as_str()).unwrap();
                for need in &task.depends_on {
                    let need = plan.task(need.as_str()).unwrap();
                    assert!(satisfied(plan, need, state), "{} was started without {}", task.id, need.id);
                }
                let merged = |(event, _): &(Event, Wall)| merged(event).is_some_and(|run| run.task == started.task);
                let again = self.history(&daemon.journal).iter().any(merged);
                let wanted_again = self.wanted_again.contains(&task.id);
                assert!(!again || wanted_again, "{started} was started, and it is done");
                let last = self
                    .history(&daemon.journal)
                    .into_iter()
                    .rev()
                    .find_map(|(event, _)| work_is_there(&event, &task.id));
                assert!(last != Some(true) || wanted_again, "{started} was started, and there is work of it");
            }
            let work = session(effect).filter(|run| run.part == Part::Work);
            if let Some((run, answer)) = work.and_then(|run| Some((run, self.answers.get(&run.task)?))) {
                let heard = state.get(&run.task).and_then(|record| record.answer.as_ref());
                assert_eq!(heard, Some(answer), "{run} does not hear its answer");
            }
        }
        for (id, record) in state.iter() {
            assert!(record.attempts <= ATTEMPTS, "{id} was tried {} times", record.attempts);
        }
        if let Some(at) = daemon.run.deadline() {
            assert!(at > daemon.run.progress.now, "a deadline that is past");
        }
    }
}

impl Outside {
    /// Returns everything that was ever journaled.
    fn history(&self, journal: &Journal<Self>) -> Journal<Self> {
        self.rounds.iter().flat_map(|(journal, _)| journal).chain(journal).cloned().collect()
    }

    fn skip(&mut self, next: &Next) {
        match next {
            Next::Edit(name) => self.world.deeds.get_mut(name).and_then(|deeds| deeds.last_mut()).unwrap().edit = None,
            Next::Act => self.acts += 1,
            Next::Deed(_) | Next::Answer(_) | Next::Time => {}
        }
    }
}

fn new_run(text: &str, starts: &BTreeMap<TaskId, u32>, state: State, left: &BTreeMap<TaskId, Left>) -> Run {
    let (plan, _) = Plan::read("sim", text).unwrap_or_else(|problems| panic!("{problems}\n{text}"));
    let mut run = Run::new("sim", text, state, Settings::of(&plan), starts).unwrap();
    run.take_over(left);
    run
}

impl Sim {
    fn new(seed: u64) -> Self {
        let outside = Outside {
            world: World::new(seed),
            text: PLAN.into(),
            before: BTreeMap::new(),
            state: State::recorded(&Plan::read("sim", PLAN).unwrap().0),
            left: BTreeMap::new(),
            starts: BTreeMap::new(),
            rounds: Vec::new(),
            clock: 0,
            next: None,
            acts: 0,
            answers: BTreeMap::new(),
            wanted_again: BTreeSet::new(),
            second_chance: false,
            tasks: BTreeSet::new(),
            read_back: Rc::default(),
        };
        let mut sim = Self { daemon: Daemon::new(&outside), outside };
        sim.happen(Event::Started, 1, None);
        sim
    }

    /// Returns the earliest pending event. Ties are broken consistently.
    fn next(&self) -> (i64, Next) {
        let deeds = self.outside.world.pending().map(|(name, deed)| {
            let name = name.clone();
            (deed.due, if deed.edit.is_some() { Next::Edit(name) } else { Next::Deed(name) })
        });
        let act = self.outside.world.acts.get(self.outside.acts).map(|(at, _)| (*at, Next::Act));
        let answers = self.asking().map(|(task, since, due)| (since.saturating_add(due), Next::Answer(task)));
        let answers = answers.filter(|(due, _)| *due < i64::MAX);
        let time = self.daemon.run.deadline().map(|deadline| (deadline.0, Next::Time));
        let all = deeds.chain(act).chain(answers).chain(time);
        all.min_by_key(|(due, _)| *due)
            .unwrap_or_else(|| panic!("nothing to do and nothing to wait for: {:?}", self.daemon.run))
    }

    /// Returns tasks with a question, the time of the question, and the time until the answer.
    fn asking(&self) -> impl Iterator<Item = (TaskId, i64, i64)> {
        let asking = self.daemon.run.state().iter().filter(|(_, record)| record.status == TaskStatus::Suspended);
        asking.map(|(task, record)| {
            let since = record.suspended_at.clone().unwrap();
            (
                task.clone(),
                since.parse::<Timestamp>().unwrap().as_millisecond(),
                self.outside.world.patience(task, &since),
            )
        })
    }

    /// Handles one event, during which the daemon may die. Returns whether more events follow.
    fn step(&mut self, dies: Option<Dies>) -> bool {
        let (due, next) = self.next();
        match self.event(&next) {
            Some(event) => {
                self.outside.next = Some(next);
                self.happen(event, due.max(self.outside.clock + 1), dies);
            }
            None => {
                self.outside.next = None;
                self.outside.skip(&next);
            }
        }
        dies == Some(Dies::BeforeDurable) || self.daemon.run.outcome().is_none() || self.again()
    }

    /// Returns the event for the machine, if there is one.
    fn event(&self, next: &Next) -> Option<Event> {
        let edited = |given: &str, edit: &world::Edit| {
            // The merged text is what the author of the second edit would have written.
            let is_current = self.daemon.run.text().is_same_plan(given);
            let ours = if is_current { given.to_owned() } else { self.daemon.run.mirror().unwrap().to_string() };
            let theirs = edit.made_in(&ours);
            (ours != theirs).then_some(Event::PlanEdited { ours, theirs })
        };
        match next {
            Next::Edit(name) => {
                let (given, edit) = self.outside.world.deeds[name].last()?.edit.as_ref()?;
                edited(given, edit)
            }
            Next::Deed(name) => Some(self.outside.world.deeds[name].last()?.event.clone()),
            Next::Act => match &self.outside.world.acts[self.outside.acts].1 {
                Act::Stop(how) => Some(Event::Stop(*how)),
                Act::Edit(edit) => edited(&self.daemon.run.mirror().unwrap(), edit),
                Act::Retry(task) => {
                    let busy =
                        matches!(self.daemon.run.state().status(task), TaskStatus::InProgress | TaskStatus::Completed);
                    (!busy).then(|| Event::Retry { task: task.clone() })
                }
            },
            Next::Answer(task) => Some(Event::Answered { task: task.clone(), answer: self.answer(task) }),
            Next::Time => Some(Event::Time),
        }
    }

    fn answer(&self, task: &TaskId) -> String {
        let question = self.daemon.run.state().get(task).and_then(|record| record.question.clone());
        format!("said to {}", question.unwrap_or_default())
    }

    fn happen(&mut self, event: Event, now: i64, dies: Option<Dies>) {
        if dies != Some(Dies::BeforeDurable) {
            self.outside.clock = now;
        }
        self.daemon.handle(&mut self.outside, event, Wall(now), dies);
        let run = &self.daemon.run;
        let waits = run.outcome().is_none() && self.outside.world.pending().next().is_none();
        assert!(!waits || run.deadline().is_some(), "it waits for ever: {run:?}");
    }

    /// Handles the end of a run. Returns whether a person starts another run for the rest.
    fn again(&mut self) -> bool {
        let (outcome, _) = self.daemon.run.outcome().unwrap();
        self.outside.rounds.push((std::mem::take(&mut self.daemon.journal), outcome));
        self.outside.text = self.daemon.run.mirror().unwrap().to_string();
        let (plan, _) = Plan::read("sim", &self.outside.text).unwrap();
        assert!(State::recorded(&plan).statuses().eq(self.daemon.run.state().statuses()), "the file says the same");
        let ended = matches!(outcome, RunOutcome::Failed | RunOutcome::Deadlocked);
        if outcome.is_success() || self.outside.rounds.len() == ROUNDS || (ended && self.outside.second_chance) {
            return false;
        }
        self.outside.second_chance |= ended;
        let mut last = self.daemon.run.clone();
        for task in plan.tasks().map(|task| task.id.clone()) {
            match last.state().status(&task) {
                TaskStatus::Suspended => {
                    let answer = self.answer(&task);
                    self.outside.answers.insert(task.clone(), answer.clone());
                    last.handle(Event::Answered { task, answer }, Wall(self.outside.clock));
                }
                TaskStatus::Failed if ended => {
                    self.outside.answers.remove(&task);
                    // A retry starts from the beginning, even if work of an earlier attempt exists.
                    self.outside.wanted_again.insert(task.clone());
                    last.handle(Event::Retry { task }, Wall(self.outside.clock));
                }
                _ => {}
            }
        }
        self.outside.before.clone_from(&self.outside.starts);
        self.outside.state = last.state_between_runs(&plan);
        let there = |_: &TaskId| Ok::<_, ()>(true);
        self.outside.left = resume(&plan, &mut self.outside.state, Some(&last), there).unwrap().left;
        self.daemon = Daemon::new(&self.outside);
        self.happen(Event::Started, self.outside.clock + 1, None);
        // The new run may end at once.
        self.daemon.run.outcome().is_none() || self.again()
    }

    fn history(&self) -> Journal<Outside> {
        self.outside.history(&self.daemon.journal)
    }

    /// Checks that every verified task was worked on, checked, validated and merged within one start.
    fn check_evidence(&self) {
        let history = self.history();
        let happened = |fits: &dyn Fn(&Event) -> bool| history.iter().any(|(event, _)| fits(event));
        let succeeded = self.outside.rounds.last().is_some_and(|(_, outcome)| outcome.is_success());
        assert!(
            !succeeded || happened(&|event| matches!(event, Event::PlanChecked { .. })),
            "nobody looked at the whole"
        );
        for task in self.daemon.run.plan().tasks() {
            let status = self.daemon.run.state().status(&task.id);
            if succeeded {
                assert!(matches!(status, TaskStatus::Verified | TaskStatus::Skipped), "{}: {status}", task.id);
            }
            if status != TaskStatus::Verified {
                continue;
            }
            let proven = |start: u32| {
                let is = |run: &RunId| run.task == task.id && run.start == start;
                let worked = |event: &Event| matches!(event, Event::SessionEnded { run, outcome: Outcome::Done(_), .. } if is(run));
                let green = |event: &Event| matches!(event, Event::GatesEnded { run, failed: None } if is(run));
                let landed = |event: &Event| merged(event).is_some_and(is);
                let validators = if self.daemon.run.plan().validates(task) { 2 } else { 0 };
                let passed = (0..validators).all(|number| {
                    happened(&|event| {
                        matches!(event, Event::ValidatorEnded { run, judgement, outcome: Outcome::Done(_), .. }
                        if is(run) && matches!(run.part, Part::Validation { validator, .. } if validator == number)
                            && matches!(judgement.verdict, Verdict::Pass | Verdict::Warn))
                    })
                });
                happened(&worked) && happened(&green) && happened(&landed) && passed
            };
            let starts = self.outside.starts.get(&task.id).copied().unwrap_or(0);
            assert!((1..=starts).any(proven), "{} is verified without evidence", task.id);
        }
    }
}

fn session(effect: &Effect) -> Option<&RunId> {
    match effect {
        Effect::StartSession { run, .. } => Some(run),
        _ => None,
    }
}

fn merged(event: &Event) -> Option<&RunId> {
    match event {
        Event::MergeEnded { run, result: MergeResult::Merged { .. } } => Some(run),
        _ => None,
    }
}

/// Returns whether a task's work is done and waits for a verdict or its merge, if the event decides that.
fn work_is_there(event: &Event, task: &TaskId) -> Option<bool> {
    match event {
        Event::SessionEnded { run, outcome, .. } if run.task == *task => Some(matches!(outcome, Outcome::Done(_))),
        Event::ValidatorEnded { run, judgement, outcome, .. } if run.task == *task => {
            Some(!matches!(outcome, Outcome::Done(_)) || judgement.verdict != Verdict::Fail)
        }
        Event::GatesEnded { run, failed } if run.task == *task => Some(failed.is_none()),
        // The work counts as not tried, because its quality is unknown.
        Event::GatesStopped { run } if run.task == *task => Some(false),
        Event::GatesNotRun { run, .. } if run.task == *task => Some(false),
        Event::MergeEnded { run, result } if run.task == *task => Some(matches!(result, MergeResult::NotNow { .. })),
        _ => None,
    }
}

/// Returns a world without crashes: before each step, and at its end.
fn undisturbed(seed: u64) -> (Vec<Sim>, Sim) {
    let (mut sim, mut moments) = (Sim::new(seed), Vec::new());
    loop {
        assert!(moments.len() < 2000, "it does not come to an end");
        moments.push(sim.clone());
        if !sim.step(None) {
            sim.check_evidence();
            return (moments, sim);
        }
    }
}

/// Small worlds that cover almost every event; `every_run_comes_to_an_end` lists them.
const SEEDS: [u64; 3] = [11, 17, 22];

#[test]
fn killed_at_every_write_it_goes_on_as_if_nothing_had_been() {
    SEEDS.into_iter().for_each(killed_at_every_write);
}

#[test]
#[ignore = "takes minutes"]
fn killed_at_every_write_in_many_worlds() {
    (0..60).for_each(killed_at_every_write);
}

fn killed_at_every_write(seed: u64) {
    let (moments, end) = undisturbed(seed);
    let history = end.history();
    for (at, before) in moments.iter().enumerate() {
        for dies in Dies::ALL {
            let mut sim = before.clone();
            let mut more = sim.step(Some(dies));
            // Some continue to the end. A few steps suffice for the others, because the same run in the same world is
            // deterministic.
            let far = if at % 25 == 0 { usize::MAX } else { 4 };
            let mut steps = 0;
            while more && steps < far {
                more = sim.step(None);
                steps += 1;
            }
            let (now, moment) = (sim.history(), format!("seed {seed}, killed at {at}, {dies:?}"));
            assert!(history.starts_with(&now), "{moment}: another history\n{:#?}", now.last());
            if !more {
                assert_eq!(sim.outside.world.names(), end.outside.world.names(), "{moment}");
                assert_eq!(sim.daemon.run.state(), end.daemon.run.state(), "{moment}");
            }
        }
    }
}

/// While a daemon is down, much can happen. The outcome may then differ, but the invariants hold.
#[test]
fn whatever_happens_while_nobody_looks() {
    for seed in 0..5 {
        let mut sim = Sim::new(seed);
        let (mut more, mut steps) = (true, 0_u64);
        while more {
            assert!(steps < 3000, "it does not come to an end");
            steps += 1;
            let dice = sim.outside.world.dice(&format!("death {steps}"), 12) as usize;
            more = sim.step(Dies::ALL.get(dice).copied());
            if dice < Dies::ALL.len() && more {
                sim.outside.clock += sim.outside.world.dice(&format!("downtime {steps}"), 2_000_000) as i64;
            }
        }
        sim.check_evidence();
    }
}

#[test]
fn every_run_comes_to_an_end() {
    let ends: Vec<Sim> = (0..30).map(|seed| undisturbed(seed).1).collect();
    let outcomes = ends.iter().flat_map(|sim| &sim.outside.rounds).map(|(_, outcome)| format!("{outcome:?}"));
    let outcomes: BTreeSet<String> = outcomes.collect();
    for outcome in ["Verified", "CompletedWithWarnings", "Failed", "Deadlocked", "Suspended", "Stopped"] {
        assert!(outcomes.contains(outcome), "no {outcome} in {outcomes:?}");
    }
    // The journals name every event.
    let journal = |sims: &[Sim]| serde_json::to_string(&sims.iter().map(Sim::history).collect::<Vec<_>>()).unwrap();
    let (seen, dying) = (journal(&ends), journal(&SEEDS.map(|seed| undisturbed(seed).1)));
    for what in
        ["answered", "retry", "plan_edited", "stop", "not_now", "limited", "FAIL", "gates_not_run", "interrupted"]
    {
        let what = format!("{what}\"");
        assert!(seen.contains(&what) && dying.contains(&what), "nobody dies around {what}");
    }
    assert!(seen.contains("area_failed\"") && seen.contains("stopped\""));
}
