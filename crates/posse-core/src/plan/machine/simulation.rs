//! Runs against a world that answers by dice, and dies at every moment. What was done must not be done again, and the end
//! must be the same.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

use super::tests::{done, failed};
use super::{Effect, Event, GateFailure, MergeResult, Part, PlanCheck, Run, RunId, RunOutcome};
use crate::plan::budget::Usage;
use crate::plan::gates::GateVerdict;
use crate::plan::limits::Hold;
use crate::plan::outcome::{FailedHow, Outcome};
use crate::plan::select::satisfied;
use crate::plan::settings::Settings;
use crate::plan::verdict::{Judgement, Verdict};
use crate::plan::{Plan, State, TaskId, TaskStatus};
use crate::time::Wall;

const PLAN: &str = "meta:
  name: sim
  parallel: 3
  circuit_breaker_threshold: 1000
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

/// Where the process dies.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Dies {
    /// The event is written, and nothing was done about it.
    BeforeActing,
    /// Half of what it asks for is done.
    Midway,
    /// All of it is done.
    AfterActing,
}

/// What is outside of the process, and survives it.
struct World {
    seed: u64,
    /// Everything that was really done, by name, with its answer.
    deeds: BTreeMap<String, Event>,
}

impl World {
    fn dice(&self, what: &str, sides: u64) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.seed, what).hash(&mut hasher);
        hasher.finish() % sides
    }

    /// Does it, or finds that it was done. The answer is the same.
    fn perform(&mut self, effect: &Effect) -> Option<Event> {
        let name = match effect {
            Effect::MakeArea { run } => format!("area {run}"),
            Effect::StartSession { run, .. } => format!("session {run}"),
            Effect::RunGates { run } => format!("gates {run}"),
            Effect::Merge { run } => format!("merge {run}"),
            Effect::CheckPlan => "the plan".to_owned(),
            Effect::EndSession { .. } | Effect::WritePlan | Effect::Notify(_) | Effect::Finish { .. } => return None,
        };
        let answer = match self.deeds.get(&name) {
            Some(answer) => answer.clone(),
            None => self.answer(effect, &name)?,
        };
        self.deeds.insert(name, answer.clone());
        Some(answer)
    }

    fn answer(&self, effect: &Effect, name: &str) -> Option<Event> {
        let dice = self.dice(name, 10);
        let usage = Usage::default();
        Some(match effect {
            Effect::MakeArea { run } if dice == 0 => Event::AreaFailed { run: run.clone(), why: "full".into() },
            Effect::MakeArea { run } => Event::AreaReady { run: run.clone() },
            Effect::StartSession { run, .. } => {
                let outcome = match dice {
                    0 => Outcome::Failed(failed(FailedHow::Timeout)),
                    1 => Outcome::Infra(failed(FailedHow::Lost)),
                    2 => Outcome::Limited(Hold { until: Wall(0), reason: "limit".into(), known: false }),
                    _ => done(),
                };
                match run.part {
                    Part::Work => Event::SessionEnded { run: run.clone(), outcome, usage },
                    Part::Validation { .. } => {
                        let verdict = if dice == 9 { Verdict::Fail } else { Verdict::Pass };
                        let judgement = Judgement { verdict, findings: vec!["x".into()] };
                        Event::ValidatorEnded { run: run.clone(), judgement, outcome, usage }
                    }
                }
            }
            Effect::RunGates { run } => {
                let red = || GateFailure { gate: "make".into(), message: "red".into(), output: String::new() };
                Event::GatesEnded { run: run.clone(), failed: (dice == 0).then(red) }
            }
            Effect::Merge { run } => {
                let result = match dice {
                    0 => MergeResult::Conflict { paths: vec!["x".into()] },
                    _ => MergeResult::Merged { commits: vec![name.to_owned()] },
                };
                Event::MergeEnded { run: run.clone(), result }
            }
            Effect::CheckPlan => {
                let verdict = match dice {
                    0 => GateVerdict::NotRun("no server".into()),
                    _ => GateVerdict::Green,
                };
                Event::PlanChecked { checks: vec![PlanCheck { gate: "e2e".into(), verdict }] }
            }
            _ => return None,
        })
    }
}

/// How it ended: the outcome, and for every task its status, attempts and commits.
type End = (RunOutcome, Vec<(TaskId, TaskStatus, u32, Vec<String>)>);

fn fresh() -> Run {
    let (plan, _) = Plan::read("sim", PLAN).unwrap();
    Run::new("sim", PLAN, State::recorded(&plan), Settings::of(&plan), &BTreeMap::new()).unwrap()
}

/// Runs to the end, dying once if told to. Also how many events it took.
fn drive(seed: u64, dies: Option<(usize, Dies)>) -> (End, usize, World) {
    let mut world = World { seed, deeds: BTreeMap::new() };
    let mut journal: Vec<(Event, Wall)> = Vec::new();
    let mut run = fresh();
    let mut clock = 0;
    let mut queue: VecDeque<Event> = VecDeque::from([Event::Started]);
    while run.outcome().is_none() {
        assert!(journal.len() < 500, "it does not come to an end");
        let event = queue.pop_front().unwrap_or_else(|| {
            let deadline = run.deadline().unwrap_or_else(|| panic!("nothing to do and nothing to wait for: {run:?}"));
            clock = clock.max(deadline.0);
            Event::Time
        });
        clock += 1;
        journal.push((event.clone(), Wall(clock)));
        let death = dies.filter(|(at, _)| *at + 1 == journal.len()).map(|(_, how)| how);
        if death != Some(Dies::BeforeActing) {
            let effects = run.handle(event, Wall(clock));
            check(&run, &effects);
            let enough = if death == Some(Dies::Midway) { effects.len() / 2 } else { effects.len() };
            queue.extend(effects[..enough].iter().filter_map(|effect| world.perform(effect)));
        }
        if death.is_some() {
            // Only the journal and the world are left.
            run = fresh();
            for (event, at) in &journal {
                run.handle(event.clone(), *at);
            }
            queue = run.outstanding().to_vec().iter().filter_map(|effect| world.perform(effect)).collect();
        }
    }
    let end = run.plan().tasks().map(|task| {
        let record = run.state().get(&task.id).unwrap();
        (task.id.clone(), record.status, record.attempts, record.commits.clone())
    });
    let outcome = run.outcome().unwrap();
    ((outcome, end.collect()), journal.len(), world)
}

/// What must hold after every event.
fn check(run: &Run, effects: &[Effect]) {
    let sessions: BTreeSet<&RunId> = run
        .outstanding()
        .iter()
        .filter_map(|effect| match effect {
            Effect::StartSession { run, .. } => Some(run),
            _ => None,
        })
        .collect();
    assert!(sessions.len() <= 3, "{sessions:?}");
    for effect in effects {
        if let Effect::MakeArea { run: started } = effect {
            let task = run.plan().task(started.task.as_str()).unwrap();
            for need in &task.depends_on {
                let need = run.plan().task(need.as_str()).unwrap();
                assert!(satisfied(run.plan(), need, run.state()), "{} was started without {}", task.id, need.id);
            }
        }
    }
    for (id, record) in run.state().iter() {
        assert!(record.attempts <= 3, "{id} was tried {} times", record.attempts);
    }
    if let Some(at) = run.deadline() {
        assert!(at > run.now, "a deadline that is past");
    }
}

#[test]
fn killed_at_every_write_it_ends_the_same() {
    for seed in SEEDS {
        let (end, events, world) = drive(seed, None);
        for at in 0..events {
            for how in [Dies::BeforeActing, Dies::Midway, Dies::AfterActing] {
                let (again, _, after) = drive(seed, Some((at, how)));
                assert_eq!(again, end, "seed {seed}, killed at event {at}, {how:?}");
                let (deeds, before): (Vec<&String>, Vec<&String>) =
                    (after.deeds.keys().collect(), world.deeds.keys().collect());
                assert_eq!(deeds, before, "seed {seed}, killed at event {at}, {how:?}: the same was done");
            }
        }
    }
}

/// Worlds that go well and worlds that do not.
const SEEDS: [u64; 3] = [0, 1, 2];

#[test]
fn every_run_comes_to_an_end() {
    let ends: BTreeSet<String> = (0..100).map(|seed| format!("{:?}", drive(seed, None).0.0)).collect();
    assert!(ends.contains("Verified") && ends.contains("Deadlocked") && ends.contains("Failed"), "{ends:?}");
    let dying: BTreeSet<String> = SEEDS.iter().map(|seed| format!("{:?}", drive(*seed, None).0.0)).collect();
    assert!(dying.len() > 1, "{dying:?}");
}
