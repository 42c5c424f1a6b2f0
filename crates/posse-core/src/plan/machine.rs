//! A run of a plan as one machine (`engine`). Times are of the wall clock, because pauses and holds outlive the process.
//!
//! The steps of a task: work tree, session, gates, validators (if its agent's work is validated), merge, verified. Work that
//! fails a gate or a validation is never merged.

mod after_plan;
#[cfg(test)]
mod after_plan_tests;
mod carryover;
#[cfg(test)]
mod carryover_tests;
mod messages;
mod retry_policy;
mod schedule;
mod shared_limits;
#[cfg(test)]
mod shared_limits_tests;
#[cfg(test)]
mod simulation;
mod stopping;
#[cfg(test)]
mod stopping_tests;
#[cfg(test)]
mod tests;
mod validation;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use jiff::Timestamp;

pub use carryover::{Left, Resumed, resume};
pub use messages::{Effect, Event, GateFailure, Launch, MergeResult, Part, PlanCheck, RunId};
pub use shared_limits::Others;

use self::after_plan::AfterPlan;
use super::breaker::{Breaker, Counts};
use super::edit::{NotWritten, PlanText};
use super::merge::merge;
use super::outcome::{Denial, FailedHow, Failure, Outcome};
use super::settings::Settings;
use super::{FailureKind, Plan, State, TaskId, TaskStatus};
use crate::engine::Machine;
use crate::engine::hold::{Hold, Quota};
use crate::engine::notice::{Notice, NoticeKind};
use crate::engine::progress::Progress;
use crate::file_problem::FileProblems;
use crate::plan::budget::{Level, Usage, spend};
use crate::time::Wall;

/// A run of a plan. Cheap to clone: each executor gets a copy as of its request.
#[derive(Clone, Debug)]
pub struct Run {
    file: Arc<str>,
    plan: Arc<Plan>,
    text: Arc<PlanText>,
    /// Texts that edits replaced, newest first. After a crash the file may still have one of them.
    earlier_texts: Vec<Arc<str>>,
    /// The text with the current statuses, made on first use.
    shown: Arc<OnceLock<Result<Arc<str>, NotWritten>>>,
    state: State,
    settings: Settings,
    stages: BTreeMap<TaskId, Stage>,
    /// The memory of each task between its attempts.
    memory: BTreeMap<TaskId, Memory>,
    /// Tasks that pause after a failure, and the ends of the pauses.
    resting: BTreeMap<TaskId, Wall>,
    breaker: Breaker,
    quota: Quota,
    after_plan: AfterPlan,
    /// The statuses with which the run left the file.
    left_in_file: BTreeMap<TaskId, TaskStatus>,
    progress: Progress<Effect>,
}

/// Plans with more tasks notify of each success, unless the plan sets otherwise.
const MANY: usize = 6;

/// The maximum number of edits that the file can be behind.
const EARLIER_TEXTS: usize = 16;

/// The step of a task in progress.
#[derive(Clone, Debug, PartialEq)]
enum Stage {
    Area,
    Session,
    Gates,
    /// This validator is running or next. It gave no verdict `errors` times in a row.
    Validation {
        validator: usize,
        errors: u32,
        asked: bool,
    },
    Merge,
    /// Done but not merged. Waits for a person.
    Unmerged,
}

impl Stage {
    /// The validators are next, from the first.
    const UNJUDGED: Self = Self::Validation { validator: 0, errors: 0, asked: false };

    /// Returns whether nothing runs for the task.
    fn waits(&self) -> bool {
        matches!(self, Stage::Validation { asked: false, .. } | Stage::Unmerged)
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Memory {
    /// The number of starts, including attempts that do not count.
    starts: u32,
    /// The number of validator sessions.
    asks: u32,
    infra: u32,
    conflicts: u32,
    denied: Vec<Denial>,
    before: Option<Failure>,
    rejected: Vec<String>,
}

impl Machine for Run {
    type Input = Event;
    type Effect = Effect;

    fn handle(&mut self, event: Event, now: Wall) -> Vec<Effect> {
        if self.progress.is_over() {
            self.after_the_end(event);
            return Vec::new();
        }
        let state = self.state.clone();
        let text = self.text.clone();
        self.progress.now = now;
        self.take_in(event);
        let mut effects = self
            .progress
            .take_effects(|effect| effect.run().is_some() || matches!(effect, Effect::CheckPlan | Effect::EndChecks));
        if !self.state.statuses().eq(state.statuses()) || !Arc::ptr_eq(&self.text, &text) {
            self.shown = Arc::default();
            effects.insert(0, Effect::WritePlan);
        }
        effects
    }

    fn progress(&self) -> &Progress<Effect> {
        &self.progress
    }

    fn deadline(&self) -> Option<Wall> {
        let breaker = self.breaker.reopens(&self.settings.breaker);
        self.progress.next_timer(self.resting.values().copied().chain(breaker).chain(self.quota.until()))
    }

    fn hold(&self) -> Option<&Hold> {
        self.quota.hold()
    }

    fn levels(&self) -> &[Level] {
        &self.settings.levels
    }
}

impl Run {
    /// Creates a run of this plan. `starts` has the number of starts of each task in earlier runs, so that no name is used
    /// twice.
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
            // The outcome of its session is unknown.
            if record.status == TaskStatus::InProgress {
                record.status = TaskStatus::Pending;
                record.attempts = record.attempts.saturating_sub(1);
            }
        }
        Ok(Self {
            file: file.into(),
            after_plan: AfterPlan::at_begin(&plan, &state, &settings),
            plan: Arc::new(plan),
            text: Arc::new(text),
            earlier_texts: Vec::new(),
            shown: Arc::default(),
            state,
            settings,
            stages: BTreeMap::new(),
            memory,
            resting: BTreeMap::new(),
            breaker: Breaker::default(),
            quota: Quota::default(),
            left_in_file: BTreeMap::new(),
            progress: Progress::default(),
        })
    }

    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    pub fn state(&self) -> &State {
        &self.state
    }

    /// The tasks that pause after a failure, and the ends of the pauses.
    pub fn resting(&self) -> &BTreeMap<TaskId, Wall> {
        &self.resting
    }

    /// The end of the pause that the breaker ordered.
    pub fn paused(&self) -> Option<Wall> {
        self.breaker.reopens(&self.settings.breaker).filter(|until| self.progress.now < *until)
    }

    pub fn quota(&self) -> &Quota {
        &self.quota
    }

    /// The plan as its authors wrote it.
    pub fn text(&self) -> &PlanText {
        &self.text
    }

    pub fn earlier_texts(&self) -> &[Arc<str>] {
        &self.earlier_texts
    }

    /// Returns the text that the plan file should have now.
    pub fn mirror(&self) -> Result<Arc<str>, NotWritten> {
        self.shown.get_or_init(|| self.text.with_statuses(&self.state).map(Arc::from)).clone()
    }

    fn take_in(&mut self, event: Event) {
        let trips = self.breaker.trips();
        self.apply(event);
        if self.breaker.trips() > trips && self.paused().is_some() {
            let minutes = self.settings.breaker.reset.as_secs().div_ceil(60);
            let reason = format!("sessions failed one after the other; one more is tried in {minutes} min");
            self.tell(NoticeKind::BreakerOpen, format!("paused: {reason}"));
        }
        self.schedule();
    }

    fn apply(&mut self, event: Event) {
        if !self.is_awaited(&event) {
            return;
        }
        match event {
            Event::Started => self.hear_earlier_answers(),
            Event::Time | Event::FileBehind { .. } => {}
            Event::AreaReady { run } if self.progress.stop.is_some() => self.refund(&run.task, Counts::Nothing),
            Event::AreaReady { run } => {
                self.stage(&run.task, Stage::Session);
                self.launch_work(run);
            }
            Event::AreaFailed { run, why } => {
                let message = format!("no work area: {why}");
                self.infra(&run.task, Failure::new(FailedHow::NotStarted, message));
            }
            Event::SessionEnded { run, outcome, usage } => {
                self.spent(&run.task, &usage);
                self.session_ended(&run, outcome);
            }
            Event::ValidatorEnded { run, judgement, outcome, usage } => {
                self.spent(&run.task, &usage);
                self.validator_ended(&run, judgement, outcome);
            }
            Event::GatesEnded { run, failed: None } => self.gates_passed(&run),
            Event::GatesEnded { run, failed: Some(gate) } => {
                self.fail(&run.task, gate_failure(gate), Counts::Failure);
            }
            Event::GatesStopped { run } => self.checks_stopped(&run.task),
            Event::GatesNotRun { run, why } => {
                let why = format!("the work could not be checked: {why}");
                self.infra(&run.task, Failure::new(FailedHow::Lost, why));
            }
            Event::MergeEnded { run, result } => self.merge_ended(&run.task, result),
            Event::PlanChecked { checks } => self.after_plan = AfterPlan::Said(checks),
            Event::PlanCheckStopped => self.after_plan = AfterPlan::Due,
            Event::PlanEdited { ours, theirs } => self.plan_edited(&ours, &theirs),
            Event::Stop(how) => self.stop_requested(how),
            Event::Answered { task, answer } => self.answered(&task, answer),
            Event::Retry { task } => self.retry(&task),
            Event::Others(others) => self.apply_shared_limits(others),
            Event::TryNow => self.try_now(),
            Event::Taken { run, name, held_by } => self.taken(&run, name, held_by),
        }
    }

    /// Returns whether an event counts. An answer counts if the effect that it answers is outstanding.
    fn is_awaited(&mut self, event: &Event) -> bool {
        let (run, is_answered): (_, fn(&Effect) -> bool) = match event {
            Event::AreaReady { run } | Event::AreaFailed { run, .. } | Event::Taken { run, .. } => {
                (Some(run), |effect| matches!(effect, Effect::MakeArea { .. }))
            }
            Event::SessionEnded { run, .. } | Event::ValidatorEnded { run, .. } => {
                (Some(run), |effect| matches!(effect, Effect::StartSession { .. } | Effect::EndSession { .. }))
            }
            Event::GatesEnded { run, .. } | Event::GatesStopped { run } | Event::GatesNotRun { run, .. } => {
                (Some(run), |effect| matches!(effect, Effect::RunGates { .. }))
            }
            Event::MergeEnded { run, .. } => (Some(run), |effect| matches!(effect, Effect::Merge { .. })),
            Event::PlanChecked { .. } | Event::PlanCheckStopped => (None, |effect| *effect == Effect::CheckPlan),
            _ => return true,
        };
        self.progress.settle(|effect| effect.run() == run && is_answered(effect))
    }

    /// Moves a task in progress to another step.
    fn stage(&mut self, task: &TaskId, stage: Stage) {
        if let Some(current) = self.stages.get_mut(task) {
            *current = stage;
        }
    }

    /// Identifies a session of the current start of a task.
    fn session(&self, task: &TaskId, part: Part) -> RunId {
        let start = self.memory.get(task).map_or(0, |memory| memory.starts);
        RunId { task: task.clone(), start, part }
    }

    fn tell(&mut self, what: NoticeKind, text: String) {
        self.progress.request(Effect::Notify(Notice::new(what, text)));
    }

    fn tell_hold(&mut self, reason: &str) {
        self.tell(NoticeKind::HoldBegins, format!("no session is started for now: {reason}"));
    }

    fn memory(&mut self, task: &TaskId) -> &mut Memory {
        self.memory.entry(task.clone()).or_default()
    }

    fn session_ended(&mut self, run: &RunId, outcome: Outcome) {
        let task = &run.task;
        if !matches!(outcome, Outcome::Limited(_)) {
            self.quota.not_limited();
        }
        match outcome {
            Outcome::Interrupted => self.refund(task, Counts::Nothing),
            Outcome::Limited(hold) => {
                self.hold_begins(hold);
                self.refund(task, Counts::Nothing);
            }
            Outcome::Infra(failure) => self.infra(task, failure),
            Outcome::Failed(failure) => self.fail(task, failure, Counts::Failure),
            Outcome::Suspended { question, context } => {
                let question = context.map_or(question.clone(), |context| format!("{question}\n\n{context}"));
                self.suspend(task, question);
            }
            Outcome::Done(report) => {
                self.state.of(task).result_message = Some(report.message);
                if self.settings.has_gates {
                    self.stage(task, Stage::Gates);
                    self.progress.request(Effect::RunGates { run: run.clone() });
                } else {
                    self.gates_passed(run);
                }
            }
        }
    }

    fn hold_begins(&mut self, hold: Hold) {
        self.tell_hold(&hold.reason);
        self.quota.limited(hold);
    }

    fn gates_passed(&mut self, run: &RunId) {
        self.memory(&run.task).infra = 0;
        self.breaker.ended(Counts::Success, self.progress.now, &self.settings.breaker);
        let validates = self.plan.task(run.task.as_str()).is_some_and(|task| self.plan.validates(task));
        if validates && !self.plan.meta.validation.validators.is_empty() {
            self.state.of(&run.task).status = TaskStatus::Completed;
            self.stage(&run.task, Stage::UNJUDGED);
        } else {
            self.begin_merge(&run.task);
        }
    }

    fn begin_merge(&mut self, task: &TaskId) {
        self.stage(task, Stage::Merge);
        let run = self.session(task, Part::Work);
        self.progress.request(Effect::Merge { run });
    }

    fn merge_ended(&mut self, task: &TaskId, result: MergeResult) {
        match result {
            MergeResult::Merged { commits } => {
                let record = self.state.of(task);
                record.status = TaskStatus::Verified;
                record.completed_at = Some(time(self.progress.now));
                record.commits.extend(commits);
                record.last_error = None;
                self.stages.remove(task);
                let every = self.plan.meta.step_notifications.unwrap_or(self.plan.tasks().count() > MANY);
                let what = if every { NoticeKind::TaskVerified } else { NoticeKind::Step };
                self.tell(what, format!("task {task} is done"));
            }
            MergeResult::Stopped => self.checks_stopped(task),
            MergeResult::RedTogether(gate) => self.fail(task, gate_failure(gate), Counts::Failure),
            MergeResult::NotNow { why } => {
                self.stage(task, Stage::Unmerged);
                let question =
                    format!("the work is done, but cannot be merged: {why}; then answer, and it is tried again");
                self.ask_person(task, question);
            }
            MergeResult::Conflict { paths } => {
                let message = format!("its work does not merge with what others did meanwhile: {}", paths.join(", "));
                let memory = self.memory(task);
                memory.conflicts += 1;
                memory.before = Some(Failure::new(FailedHow::Merge, message.clone()));
                if memory.conflicts > 1 {
                    self.give_up(task, FailureKind::MergeConflict, message);
                } else {
                    // Retried on the current state of the branch, at no cost, because the task is not at fault.
                    self.state.of(task).last_error = Some(message);
                    self.refund(task, Counts::Nothing);
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
                    self.tell(NoticeKind::EditRejected, format!("not taken over: {rejected}"));
                    for task in self.stages.keys().cloned().collect::<Vec<_>>() {
                        self.memory(&task).rejected.push(rejected.clone());
                    }
                }
                (self.plan, self.state) = (Arc::new(merged.plan), merged.state);
                let before = std::mem::replace(&mut self.text, Arc::new(text));
                self.earlier_texts.insert(0, before.text().clone());
                self.earlier_texts.truncate(EARLIER_TEXTS);
            }
            Err(error) => self.tell(NoticeKind::EditRejected, format!("not taken over: {error}")),
        }
        self.progress.request(Effect::WritePlan);
    }

    fn answered(&mut self, task: &TaskId, answer: String) {
        if self.state.status(task) != TaskStatus::Suspended || self.plan.task(task.as_str()).is_none() {
            return;
        }
        // If only the verdict or the merge is missing, the work is not repeated.
        let stage = self.stages.get(task);
        let is_unmerged = stage == Some(&Stage::Unmerged);
        let record = self.state.of(task);
        record.answer = Some(answer);
        record.status = match stage {
            Some(Stage::Unmerged) => TaskStatus::InProgress,
            Some(_) => TaskStatus::Completed,
            None => TaskStatus::Pending,
        };
        if is_unmerged {
            self.begin_merge(task);
        }
    }

    /// Counts a session's usage on every level.
    fn spent(&mut self, task: &TaskId, usage: &Usage) {
        spend(&mut self.settings.levels, usage);
        if let Some(cost) = usage.cost_usd {
            let record = self.state.of(task);
            record.cost_usd = Some(record.cost_usd.unwrap_or(0.0) + cost);
        }
    }
}

fn gate_failure(gate: GateFailure) -> Failure {
    let message = format!("{}: {}", gate.gate, gate.message);
    Failure { output: Some(gate.output), ..Failure::new(FailedHow::Gate, message) }
}

/// Returns the time in the format of plan files.
fn time(now: Wall) -> String {
    Timestamp::from_millisecond(now.0).map(|time| time.to_string()).unwrap_or_default()
}
