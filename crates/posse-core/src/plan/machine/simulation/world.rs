//! The world outside the process, which survives a crash: sessions, git, the plan's file, and people. Random results
//! depend on the seed and the request, never on time or count. Crashes therefore leave the world unchanged.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use super::super::tests::{done, failed};
use super::super::{Effect, Event, GateFailure, MergeResult, Part, PlanCheck, RunId};
use crate::engine::StopHow;
use crate::engine::hold::Hold;
use crate::plan::TaskId;
use crate::plan::budget::Usage;
use crate::plan::gates::GateVerdict;
use crate::plan::outcome::{FailedHow, Outcome};
use crate::plan::verdict::{Judgement, Verdict};
use crate::time::Wall;

/// An effect in progress, and its result.
#[derive(Clone, Debug)]
pub(super) struct Deed {
    pub(super) event: Event,
    /// The time of the result, in milliseconds.
    pub(super) due: i64,
    /// The result is in the journal.
    pub(super) told: bool,
    /// The session's edit of its plan, sent before its end.
    pub(super) edit: Option<(String, Edit)>,
}

/// An edit of the text of a plan.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Edit {
    /// Adds a task with this name.
    Adds(String),
    /// Reports `f` as done.
    Vouches,
    /// Raises its own number of attempts.
    Spends,
    /// Skips `f`.
    Skips,
    /// Makes the plan invalid.
    Spoils,
}

impl Edit {
    pub(super) fn made_in(&self, text: &str) -> String {
        match self {
            Edit::Adds(name) if text.contains(&format!("{{id: {name},")) => text.to_owned(),
            Edit::Adds(name) => format!("{text}      - {{id: {name}, name: New, depends_on: [a]}}\n"),
            Edit::Vouches => text.replace("{id: f, name: F", "{id: f, name: F, status: verified, attempts: 1"),
            Edit::Spends => text.replace("  name: sim\n", "  name: sim\n  max_attempts_default: 99\n"),
            Edit::Skips => text.replace("{id: f, name: F", "{id: f, name: F, status: skipped, skip_reason: no"),
            Edit::Spoils => text.replace("sections:", "sections"),
        }
    }
}

/// An unprompted action of a person.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Act {
    Stop(StopHow),
    Edit(Edit),
    /// Retries this task in any state.
    Retry(TaskId),
}

#[derive(Clone, Debug)]
pub(super) struct World {
    seed: u64,
    /// In order of their start. The last one of a name counts.
    pub(super) deeds: BTreeMap<String, Vec<Deed>>,
    /// The future actions of people, and their times.
    pub(super) acts: Vec<(i64, Act)>,
    /// The run of the plan in which checks were ended.
    no_more_checks: Option<usize>,
}

/// Returns the result that replaces this one when a check is ended.
fn stopped(event: &Event) -> Option<Event> {
    match event {
        Event::GatesEnded { run, .. } | Event::GatesNotRun { run, .. } => {
            Some(Event::GatesStopped { run: run.clone() })
        }
        Event::MergeEnded { run, .. } => Some(Event::MergeEnded { run: run.clone(), result: MergeResult::Stopped }),
        Event::PlanChecked { .. } => Some(Event::PlanCheckStopped),
        _ => None,
    }
}

/// A second of the simulation.
const SECOND: i64 = 1000;

impl World {
    pub(super) fn new(seed: u64) -> Self {
        let mut world = Self { seed, deeds: BTreeMap::new(), acts: Vec::new(), no_more_checks: None };
        for i in 0..world.dice("acts", 5) {
            let what = match world.dice(&format!("act {i}"), 8) {
                0 => Act::Stop(StopHow::AfterTask),
                1 => Act::Stop(StopHow::Now),
                2 | 3 => Act::Edit(Edit::Adds(format!("p{i}"))),
                4 => Act::Edit(Edit::Skips),
                5 => Act::Edit(Edit::Spoils),
                6 => Act::Edit(Edit::Spends),
                _ => Act::Retry("c".parse().unwrap()),
            };
            world.acts.push((world.dice(&format!("when {i}"), 600) as i64 * SECOND, what));
        }
        world.acts.sort_by_key(|(at, _)| *at);
        world
    }

    pub(super) fn dice(&self, what: &str, sides: u64) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.seed, what).hash(&mut hasher);
        hasher.finish() % sides
    }

    /// Returns the time that a person takes to answer. Some go home first.
    pub(super) fn patience(&self, task: &TaskId, asked: &str) -> i64 {
        match self.dice(&format!("patience {task} {asked}"), 3) {
            0 => i64::MAX,
            n => n as i64 * 20 * SECOND,
        }
    }

    /// Carries out an effect, or finds that it was carried out. `round` is the run of the plan, `given` the session's
    /// copy of the plan.
    pub(super) fn perform(&mut self, effect: &Effect, round: usize, now: i64, given: impl Fn() -> String) {
        let name = match effect {
            Effect::MakeArea { run } => format!("{round} area {run}"),
            Effect::StartSession { run, .. } => format!("{round} session {run}"),
            Effect::RunGates { run } => format!("{round} gates {run}"),
            Effect::Merge { run } => format!("{round} merge {run}"),
            Effect::CheckPlan => format!("{round} check of the plan"),
            Effect::EndChecks => return self.end_checks(round, now),
            Effect::EndSession { run } => return self.interrupt(&format!("{round} session {run}"), now),
            Effect::WritePlan | Effect::Notify(_) | Effect::Finish => return,
        };
        let done = self.deeds.entry(name.clone()).or_default();
        if let Some(last) = done.last() {
            if !last.told {
                return;
            }
            // Only merges that wait for a person, and checks of the whole plan, are requested again.
            let again = matches!(
                &last.event,
                Event::MergeEnded { result: MergeResult::NotNow { .. }, .. } | Event::PlanChecked { .. }
            );
            assert!(again, "{name} is asked for again, and its result is known: {:?}", last.event);
        }
        let time = format!("{name} {}", done.len());
        let due = now + (1 + self.dice(&format!("{time} takes"), 60) as i64) * SECOND;
        let edit = match effect {
            Effect::StartSession { run, .. } => self.edit(&time, run),
            _ => None,
        };
        let edit = edit.map(|edit| (given(), edit));
        let event = self.answer(effect, &time, due);
        let event = if self.no_more_checks == Some(round) { stopped(&event).unwrap_or(event) } else { event };
        let deed = Deed { event, due, told: false, edit };
        self.deeds.entry(name).or_default().push(deed);
    }

    /// Interrupts a session, unless it has ended already.
    fn interrupt(&mut self, name: &str, now: i64) {
        let Some(deed) = self.deeds.get_mut(name).and_then(|deeds| deeds.last_mut()) else { return };
        if deed.told || deed.due <= now {
            return;
        }
        if let Event::SessionEnded { outcome, .. } | Event::ValidatorEnded { outcome, .. } = &mut deed.event
            && *outcome != Outcome::Interrupted
        {
            (*outcome, deed.edit, deed.due) = (Outcome::Interrupted, None, now + SECOND);
        }
    }

    /// Ends running checks, and prevents new ones.
    fn end_checks(&mut self, round: usize, now: i64) {
        // A repetition after a crash changes nothing.
        if self.no_more_checks.replace(round) == Some(round) {
            return;
        }
        let of_round = format!("{round} ");
        let deeds = self.deeds.iter_mut().filter(|(name, _)| name.starts_with(&of_round));
        for deed in deeds.filter_map(|(_, deeds)| deeds.last_mut()).filter(|deed| !deed.told && deed.due > now) {
            if let Some(event) = stopped(&deed.event) {
                (deed.event, deed.due) = (event, now + SECOND);
            }
        }
    }

    fn edit(&self, name: &str, run: &RunId) -> Option<Edit> {
        match self.dice(&format!("{name} edits"), 16) {
            0 if run.task.as_str().len() == 1 => Some(Edit::Adds(format!("x-{}", run.task))),
            1 => Some(Edit::Vouches),
            2 => Some(Edit::Spends),
            3 => Some(Edit::Spoils),
            _ => None,
        }
    }

    fn answer(&self, effect: &Effect, name: &str, due: i64) -> Event {
        let dice = self.dice(name, 14);
        let usage = Usage { cost_usd: Some(0.5), ..Usage::default() };
        let red = || GateFailure { gate: "make".into(), message: "red".into(), output: String::new() };
        match effect {
            Effect::MakeArea { run } if dice == 0 => Event::AreaFailed { run: run.clone(), why: "full".into() },
            Effect::MakeArea { run } => Event::AreaReady { run: run.clone() },
            Effect::StartSession { run, .. } => {
                let hold = |wait, known| Hold { until: Wall(due + wait * SECOND), reason: "limit".into(), known };
                let outcome = match dice {
                    0 | 1 => Outcome::Failed(failed(FailedHow::Timeout)),
                    2 => Outcome::Infra(failed(FailedHow::Lost)),
                    3 => Outcome::Limited(hold(300, false)),
                    4 => Outcome::Limited(hold(1000 + self.dice(&format!("{name} resets"), 4000) as i64, true)),
                    5 => Outcome::Suspended { question: format!("what about {name}?"), context: None },
                    _ => done(),
                };
                match run.part {
                    Part::Work => Event::SessionEnded { run: run.clone(), outcome, usage },
                    Part::Validation { .. } => {
                        let verdict = match dice {
                            12 => Verdict::Fail,
                            13 => Verdict::Warn,
                            _ => Verdict::Pass,
                        };
                        let judgement = Judgement { verdict, findings: vec!["x".into()] };
                        Event::ValidatorEnded { run: run.clone(), judgement, outcome, usage }
                    }
                }
            }
            Effect::RunGates { run } if dice == 13 => Event::GatesNotRun { run: run.clone(), why: "full".into() },
            Effect::RunGates { run } => Event::GatesEnded { run: run.clone(), failed: (dice == 0).then(red) },
            Effect::Merge { run } => {
                let result = match dice {
                    0 => MergeResult::Conflict { paths: vec!["x".into()] },
                    1 => MergeResult::RedTogether(red()),
                    2 => MergeResult::NotNow { why: "commit y".into() },
                    _ => MergeResult::Merged { commits: vec![name.to_owned()] },
                };
                Event::MergeEnded { run: run.clone(), result }
            }
            Effect::CheckPlan => {
                let verdict = match dice {
                    0 => GateVerdict::NotRun("no server".into()),
                    1 => GateVerdict::Red(red()),
                    _ => GateVerdict::Green,
                };
                Event::PlanChecked { checks: vec![PlanCheck { gate: "e2e".into(), verdict }] }
            }
            Effect::EndSession { .. } | Effect::EndChecks | Effect::WritePlan | Effect::Notify(_) | Effect::Finish => {
                Event::Time
            }
        }
    }

    /// Returns unreported effects, the earliest first.
    pub(super) fn pending(&self) -> impl Iterator<Item = (&String, &Deed)> {
        let last = self.deeds.iter().filter_map(|(name, deeds)| Some((name, deeds.last()?)));
        last.filter(|(_, deed)| !deed.told)
    }

    /// Returns the names of all effects.
    pub(super) fn names(&self) -> BTreeSet<(&String, usize)> {
        self.deeds.iter().map(|(name, deeds)| (name, deeds.len())).collect()
    }
}
