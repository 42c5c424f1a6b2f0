//! A run of a plan as one machine: told what happened, it says what is to be done.
//!
//! A run is nothing but its events. They are written to the journal before they are acted on; handed to a new `Run` in the
//! same order and with the same times they give the same run, and `outstanding` says what was asked for and not answered.
//! So a run can be killed at any moment. Times are of the wall clock, because pauses and holds outlive the process.
//!
//! The way of a task: area, session, gates, validators (if its agent's work is validated), merge, verified. Work that fails
//! or is found wanting never reaches the merge.

mod after_plan;
#[cfg(test)]
mod after_plan_tests;
mod fate;
mod go_on;
mod left;
#[cfg(test)]
mod left_tests;
mod others;
#[cfg(test)]
mod others_tests;
#[cfg(test)]
mod scenarios;
#[cfg(test)]
mod simulation;
mod stopping;
#[cfg(test)]
mod stopping_tests;
#[cfg(test)]
mod tests;
mod validation;
mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use jiff::Timestamp;

pub use left::{Left, Resumed, resume};
pub use others::Others;
pub use words::{Effect, Event, GateFailure, Launch, MergeResult, Notice, Part, PlanCheck, RunId, RunOutcome, StopHow};

use self::after_plan::AfterPlan;
use super::breaker::{Breaker, Counts, Gate};
use super::edit::{NotWritten, PlanText};
use super::limits::{Hold, longer};
use super::merge::merge;
use super::outcome::{Denial, FailedHow, Failure, Outcome};
use super::settings::Settings;
use super::{FailureKind, Plan, State, TaskId, TaskStatus};
use crate::file_problem::FileProblems;
use crate::plan::budget::Usage;
use crate::time::Wall;

/// Cheap to copy: whoever does something for a run gets one as it was then.
#[derive(Clone, Debug)]
pub struct Run {
    plan: Arc<Plan>,
    text: Arc<PlanText>,
    /// Texts that were replaced by edits, newest first. After a crash the file may still have one of them.
    earlier_texts: Vec<Arc<str>>,
    /// The text with the current statuses, made when it is first needed.
    shown: Arc<OnceLock<Result<Arc<str>, NotWritten>>>,
    /// The time of the last event.
    now: Wall,
    state: State,
    settings: Settings,
    /// Tasks on their way.
    flights: BTreeMap<TaskId, Flight>,
    /// What is remembered of a task between its attempts.
    memory: BTreeMap<TaskId, Memory>,
    /// Tasks that pause after a failure, and until when.
    resting: BTreeMap<TaskId, Wall>,
    breaker: Breaker,
    hold: Option<Hold>,
    /// Holds in a row of which nobody knew the end.
    probes: u32,
    stop: Option<StopHow>,
    after_plan: AfterPlan,
    outcome: Option<(RunOutcome, String)>,
    /// The statuses with which the run left the file.
    left_in_file: BTreeMap<TaskId, TaskStatus>,
    outstanding: Vec<Effect>,
    effects: Vec<Effect>,
}

/// The file is not behind by more edits than this.
const EARLIER_TEXTS: usize = 16;

/// A task on its way.
#[derive(Clone, Debug, PartialEq)]
struct Flight {
    start: u32,
    stage: Stage,
}

#[derive(Clone, Debug, PartialEq)]
enum Stage {
    Area,
    Session,
    Gates,
    /// This validator is asked, or is the next to be; `errors` times in a row it gave no verdict.
    Validation {
        validator: usize,
        errors: u32,
        asked: bool,
    },
    Merge,
    /// Done, but it could not be merged. Waits for a person.
    Unmerged,
}

impl Stage {
    /// Nothing is on its way: what waits for a validator waits for us, and what waits to be merged for a person.
    fn waits(&self) -> bool {
        matches!(self, Stage::Validation { asked: false, .. } | Stage::Unmerged)
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Memory {
    /// How often it was started, attempts that did not count included.
    starts: u32,
    /// How often a validator was asked about it.
    asks: u32,
    infra: u32,
    conflicts: u32,
    denied: Vec<Denial>,
    before: Option<Failure>,
    rejected: Vec<String>,
}

impl Run {
    /// A run of this plan from where it stands. `starts` is how often tasks were started in earlier runs, so that no name is
    /// used twice.
    pub fn new(
        file: &str,
        text: &str,
        state: State,
        settings: Settings,
        starts: &BTreeMap<TaskId, u32>,
    ) -> Result<Self, FileProblems> {
        let (plan, _) = Plan::read(file, text)?;
        let problem = |problem| FileProblems { file: file.into(), problems: vec![problem], warnings: Vec::new() };
        let text = PlanText::parse(text).map_err(problem)?;
        let mut memory: BTreeMap<TaskId, Memory> = BTreeMap::new();
        for (task, starts) in starts {
            memory.entry(task.clone()).or_default().starts = *starts;
        }
        let mut state = state;
        for task in plan.tasks() {
            let record = state.of(&task.id);
            // Whoever worked on it is gone, and nobody knows what came of it.
            if record.status == TaskStatus::InProgress {
                record.status = TaskStatus::Pending;
                record.attempts = record.attempts.saturating_sub(1);
            }
        }
        Ok(Self {
            after_plan: AfterPlan::at_begin(&plan, &state, &settings),
            plan: Arc::new(plan),
            text: Arc::new(text),
            earlier_texts: Vec::new(),
            shown: Arc::default(),
            now: Wall(i64::MIN),
            state,
            settings,
            flights: BTreeMap::new(),
            memory,
            resting: BTreeMap::new(),
            breaker: Breaker::default(),
            hold: None,
            probes: 0,
            stop: None,
            outcome: None,
            left_in_file: BTreeMap::new(),
            outstanding: Vec::new(),
            effects: Vec::new(),
        })
    }

    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The plan as it is now, to keep.
    pub fn shared_plan(&self) -> Arc<Plan> {
        self.plan.clone()
    }

    pub fn state(&self) -> &State {
        &self.state
    }

    pub fn outcome(&self) -> Option<(RunOutcome, &str)> {
        self.outcome.as_ref().map(|(outcome, reason)| (*outcome, reason.as_str()))
    }

    pub fn hold(&self) -> Option<&Hold> {
        self.hold.as_ref()
    }

    /// Tasks that pause after a failure, and until when.
    pub fn resting(&self) -> &BTreeMap<TaskId, Wall> {
        &self.resting
    }

    /// Sessions failed one after the other, and nothing is started before then.
    pub fn paused(&self) -> Option<Wall> {
        match self.breaker.gate(self.now, &self.settings.breaker) {
            Gate::Wait(until) if until.0 < i64::MAX => Some(until),
            _ => None,
        }
    }

    /// How often in a row a limit was hit of which nobody knew the end (`limits::detect`).
    pub fn probes(&self) -> u32 {
        self.probes
    }

    /// The plan as its authors wrote it.
    pub fn text(&self) -> &PlanText {
        &self.text
    }

    pub fn earlier_texts(&self) -> &[Arc<str>] {
        &self.earlier_texts
    }

    /// The plan file as it should be now.
    pub fn mirror(&self) -> Result<Arc<str>, NotWritten> {
        self.shown.get_or_init(|| self.text.with_statuses(&self.state).map(Arc::from)).clone()
    }

    /// What was asked for and has not been answered. After a restart it is asked for again.
    pub fn outstanding(&self) -> &[Effect] {
        &self.outstanding
    }

    pub fn handle(&mut self, event: Event, now: Wall) -> Vec<Effect> {
        if self.outcome.is_some() {
            self.after_the_end(event);
            return Vec::new();
        }
        let before = (self.state.clone(), self.text.clone());
        self.now = now;
        let trips = self.breaker.trips();
        self.take_in(event, now);
        if self.breaker.trips() > trips && self.paused().is_some() {
            let minutes = self.settings.breaker.reset.as_secs().div_ceil(60);
            let reason = format!("sessions failed one after the other; one more is tried in {minutes} min");
            self.effects.push(Effect::Notify(Notice::BreakerOpen(reason)));
        }
        self.go_on(now);
        if !self.state.statuses().eq(before.0.statuses()) || !Arc::ptr_eq(&self.text, &before.1) {
            self.shown = Arc::default();
            self.effects.insert(0, Effect::WritePlan);
        }
        let effects = std::mem::take(&mut self.effects);
        let answered =
            |effect: &&Effect| !matches!(effect, Effect::WritePlan | Effect::Notify(_) | Effect::Finish { .. });
        self.outstanding.extend(effects.iter().filter(answered).cloned());
        effects
    }

    fn take_in(&mut self, event: Event, now: Wall) {
        match event {
            Event::Started => self.hear_earlier_answers(),
            Event::Time | Event::FileBehind { .. } => {}
            Event::AreaReady { run } => {
                if !self.answers(&run, |stage| *stage == Stage::Area) {
                    return;
                }
                if self.stop.is_some() {
                    return self.refund(&run.task, Counts::Nothing, now);
                }
                self.stage(&run.task, Stage::Session);
                self.launch_work(run);
            }
            Event::AreaFailed { run, why } => {
                if self.answers(&run, |stage| *stage == Stage::Area) {
                    let message = format!("no work area: {why}");
                    self.infra(&run.task, failure(FailedHow::NotStarted, message), now);
                }
            }
            Event::SessionEnded { run, outcome, usage } => {
                if self.answers(&run, |stage| *stage == Stage::Session) {
                    self.spent(&run.task, &usage);
                    self.session_ended(&run, outcome, now);
                }
            }
            Event::ValidatorEnded { run, judgement, outcome, usage } => {
                let Part::Validation { validator, .. } = run.part else { return };
                let asked = |stage: &Stage| matches!(stage, Stage::Validation { validator: v, asked: true, .. } if *v == validator);
                if self.answers(&run, asked) {
                    self.spent(&run.task, &usage);
                    self.validator_ended(&run, judgement, outcome, now);
                }
            }
            Event::GatesEnded { run, failed } => {
                if self.answers(&run, |stage| *stage == Stage::Gates) {
                    match failed {
                        None => self.gates_passed(&run, now),
                        Some(gate) => self.fail(&run.task, gate_failure(gate), Counts::Failure, now),
                    }
                }
            }
            Event::GatesStopped { run } => {
                if self.answers(&run, |stage| *stage == Stage::Gates) {
                    self.checks_stopped(&run.task, now);
                }
            }
            Event::GatesNotRun { run, why } => {
                if self.answers(&run, |stage| *stage == Stage::Gates) {
                    let why = format!("the work could not be checked: {why}");
                    self.infra(&run.task, failure(FailedHow::Lost, why), now);
                }
            }
            Event::MergeEnded { run, result } => {
                if self.answers(&run, |stage| *stage == Stage::Merge) {
                    self.merge_ended(&run.task, result, now);
                }
            }
            Event::PlanChecked { checks } => self.plan_checked(checks),
            Event::PlanCheckStopped => self.plan_check_stopped(),
            Event::PlanEdited { ours, theirs } => self.plan_edited(&ours, &theirs),
            Event::Stop(how) => self.stop_requested(how),
            Event::Answered { task, answer } => self.answered(&task, answer),
            Event::Retry { task } => self.retry(&task),
            Event::Others(others) => self.hear_of_others(others),
            Event::TryNow => self.try_now(),
            Event::Taken { run, name, held_by } => self.taken(&run, name, held_by, now),
        }
    }

    /// Whether this is the answer that is awaited. What is late, repeated or of another start is none.
    fn answers(&mut self, run: &RunId, stage: impl Fn(&Stage) -> bool) -> bool {
        let awaited =
            self.flights.get(&run.task).is_some_and(|flight| flight.start == run.start && stage(&flight.stage));
        if awaited {
            self.outstanding.retain(|effect| match effect {
                Effect::MakeArea { run: other }
                | Effect::StartSession { run: other, .. }
                | Effect::EndSession { run: other }
                | Effect::RunGates { run: other }
                | Effect::Merge { run: other } => other != run,
                Effect::CheckPlan | Effect::EndChecks => true,
                Effect::WritePlan | Effect::Notify(_) | Effect::Finish { .. } => false,
            });
        }
        awaited
    }

    fn stage(&mut self, task: &TaskId, stage: Stage) {
        if let Some(flight) = self.flights.get_mut(task) {
            flight.stage = stage;
        }
    }

    fn memory(&mut self, task: &TaskId) -> &mut Memory {
        self.memory.entry(task.clone()).or_default()
    }

    fn session_ended(&mut self, run: &RunId, outcome: Outcome, now: Wall) {
        let task = &run.task;
        if !matches!(outcome, Outcome::Limited(_)) {
            self.probes = 0;
        }
        match outcome {
            Outcome::Interrupted => self.refund(task, Counts::Nothing, now),
            Outcome::Limited(hold) => {
                self.hold_begins(hold);
                self.refund(task, Counts::Nothing, now);
            }
            Outcome::Infra(failure) => self.infra(task, failure, now),
            Outcome::Failed(failure) => self.fail(task, failure, Counts::Failure, now),
            Outcome::Suspended { question, context } => {
                let question = context.map_or(question.clone(), |context| format!("{question}\n\n{context}"));
                self.suspend(task, question, now);
            }
            Outcome::Done(report) => {
                self.state.of(task).result_message = Some(report.message);
                if self.settings.has_gates {
                    self.stage(task, Stage::Gates);
                    self.effects.push(Effect::RunGates { run: run.clone() });
                } else {
                    self.gates_passed(run, now);
                }
            }
        }
    }

    fn hold_begins(&mut self, hold: Hold) {
        self.probes = if hold.known { 0 } else { self.probes + 1 };
        self.effects.push(Effect::Notify(Notice::HoldBegins(hold.reason.clone())));
        self.hold = Some(match self.hold.take() {
            Some(other) => longer(other, hold),
            None => hold,
        });
    }

    fn gates_passed(&mut self, run: &RunId, now: Wall) {
        self.memory(&run.task).infra = 0;
        self.breaker.ended(Counts::Success, now, &self.settings.breaker);
        let validates = self.plan.task(run.task.as_str()).is_some_and(|task| self.plan.validates(task));
        if validates && !self.plan.meta.validation.validators.is_empty() {
            self.state.of(&run.task).status = TaskStatus::Completed;
            self.stage(&run.task, Stage::Validation { validator: 0, errors: 0, asked: false });
        } else {
            self.begin_merge(&run.task);
        }
    }

    fn begin_merge(&mut self, task: &TaskId) {
        self.stage(task, Stage::Merge);
        if let Some(flight) = self.flights.get(task) {
            let run = RunId { task: task.clone(), start: flight.start, part: Part::Work };
            self.effects.push(Effect::Merge { run });
        }
    }

    fn merge_ended(&mut self, task: &TaskId, result: MergeResult, now: Wall) {
        match result {
            MergeResult::Merged { commits } => {
                let record = self.state.of(task);
                record.status = TaskStatus::Verified;
                record.completed_at = Some(time(now));
                record.commits.extend(commits);
                record.last_error = None;
                self.flights.remove(task);
                self.effects.push(Effect::Notify(Notice::TaskVerified(task.clone())));
            }
            MergeResult::Stopped => self.checks_stopped(task, now),
            MergeResult::RedTogether(gate) => self.fail(task, gate_failure(gate), Counts::Failure, now),
            MergeResult::NotNow { why } => {
                self.stage(task, Stage::Unmerged);
                let question =
                    format!("the work is done, but cannot be merged: {why}; then answer, and it is tried again");
                self.ask_person(task, question, now);
            }
            MergeResult::Conflict { paths } => {
                let message = format!("its work does not merge with what others did meanwhile: {}", paths.join(", "));
                let memory = self.memory(task);
                memory.conflicts += 1;
                memory.before = Some(failure(FailedHow::Merge, message.clone()));
                if memory.conflicts > 1 {
                    self.give_up(task, FailureKind::MergeConflict, message);
                } else {
                    // Once more on what is there now. It is not the task's fault.
                    self.state.of(task).last_error = Some(message);
                    self.refund(task, Counts::Nothing, now);
                }
            }
        }
    }

    fn plan_edited(&mut self, ours: &str, theirs: &str) {
        let merged = merge(ours, theirs, &self.state).map_err(|problems| problems.to_string());
        let parsed = merged.and_then(|merged| {
            let text = PlanText::parse(&merged.text).map_err(|problem| problem.to_string())?;
            Ok((merged, text))
        });
        match parsed {
            Ok((merged, text)) => {
                for rejected in &merged.rejected {
                    self.effects.push(Effect::Notify(Notice::EditRejected(rejected.clone())));
                    for task in self.flights.keys().cloned().collect::<Vec<_>>() {
                        self.memory(&task).rejected.push(rejected.clone());
                    }
                }
                (self.plan, self.state) = (Arc::new(merged.plan), merged.state);
                let before = std::mem::replace(&mut self.text, Arc::new(text));
                self.earlier_texts.insert(0, before.text().clone());
                self.earlier_texts.truncate(EARLIER_TEXTS);
            }
            Err(error) => self.effects.push(Effect::Notify(Notice::EditRejected(error))),
        }
        self.effects.push(Effect::WritePlan);
    }

    fn answered(&mut self, task: &TaskId, answer: String) {
        if self.state.status(task) != TaskStatus::Suspended || self.plan.task(task.as_str()).is_none() {
            return;
        }
        // If only the validators had no verdict, or only the merge is due, the work is not done again.
        let stage = self.flights.get(task).map(|flight| flight.stage.clone());
        let record = self.state.of(task);
        record.answer = Some(answer);
        record.status = match stage {
            Some(Stage::Unmerged) => TaskStatus::InProgress,
            Some(_) => TaskStatus::Completed,
            None => TaskStatus::Pending,
        };
        if stage == Some(Stage::Unmerged) {
            self.begin_merge(task);
        }
    }

    /// What a session used. Every session counts, on every level.
    fn spent(&mut self, task: &TaskId, usage: &Usage) {
        for level in &mut self.settings.levels {
            level.spent.add_usage(usage);
        }
        if let Some(cost) = usage.cost_usd {
            let record = self.state.of(task);
            record.cost_usd = Some(record.cost_usd.unwrap_or(0.0) + cost);
        }
    }

    fn resting_ids(&self) -> BTreeSet<TaskId> {
        self.resting.keys().cloned().collect()
    }
}

fn failure(kind: FailedHow, message: String) -> Failure {
    Failure { kind, message, denials: Vec::new(), output: None }
}

fn gate_failure(gate: GateFailure) -> Failure {
    let message = format!("{}: {}", gate.gate, gate.message);
    Failure { output: Some(gate.output), ..failure(FailedHow::Gate, message) }
}

/// As people and other tools read it, with an offset.
fn time(now: Wall) -> String {
    Timestamp::from_millisecond(now.0).map(|time| time.to_string()).unwrap_or_default()
}
