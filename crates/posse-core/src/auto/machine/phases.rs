//! Decides an item's next step from the answer to its current one.

use std::time::Duration;

use super::{Job, Pipeline};
use crate::auto::evidence::{Evidence, Place, missing};
use crate::auto::memory::{Leaving, ParkedWhy, PhaseResult};
use crate::auto::messages::{Author, Intake, PlanFound, Repair, Step, StepAnswer};
use crate::auto::settings::Mode;
use crate::backlog::{ItemOutcome, Kind, Slug};
use crate::engine::notice::NoticeKind;
use crate::engine::{Machine, RunOutcome, StopHow};
use crate::plan::budget::exhausted;
use crate::plan::outcome::Outcome;
use crate::plan::verdict::{Judgement, Verdict};

/// A failure within this time counts as at once.
const AT_ONCE: Duration = Duration::from_secs(60);

impl<T> PhaseResult<T> {
    /// Returns whether the result is of the current item and plan.
    fn is_of(&self, job: &Job) -> bool {
        self.item == job.hash && self.plan.is_some() && self.plan == job.plan
    }
}

impl Pipeline {
    /// Handles the answer to the current step of an item.
    pub(super) fn answered(&mut self, item: &Slug, answer: StepAnswer) {
        let Some(mut job) = self.jobs.remove(item) else { return };
        match (job.step.clone(), answer) {
            (Step::Retire { outcome, .. }, StepAnswer::Failed { why }) => {
                let reason = format!("{}, but still in the backlog: {why}", outcome.as_str());
                self.park(job, ParkedWhy::ArchiveFailed, reason);
            }
            (step, StepAnswer::Failed { why }) => {
                if let Some(job) = self.infra(job, &why) {
                    let text = format!("{} could not be done: {why}", step.word());
                    self.park(job, ParkedWhy::NeedsAttention, text);
                }
            }
            (_, StepAnswer::NotNow { why }) => {
                self.again(job);
                self.checkout_is(Some(why));
                // The checkout may be back already, without another event.
                self.stale = true;
            }
            (Step::Intake, StepAnswer::Intake(intake)) => self.taken_in(job, intake),
            (Step::Mark { question }, StepAnswer::Marked) => self.park(job, ParkedWhy::NeedsClarification, question),
            (Step::Check { by }, StepAnswer::PlanChecked(plan)) => self.plan_checked(job, by, plan),
            (Step::SetAside, StepAnswer::SetAside) => {
                self.forget_plan(item);
                self.step(item, "the old plan is set aside");
                self.ready(job, Step::Plan { repair: None });
            }
            (Step::Plan { .. } | Step::Verify, StepAnswer::SessionEnded { outcome, judgement, usage }) => {
                self.spent(&mut job, &usage);
                self.session_ended(job, *outcome, judgement);
            }
            (Step::Execute, StepAnswer::PlanEnded { outcome, reason, used }) => {
                self.used(&mut job, &used);
                self.plan_ended(job, outcome, reason);
            }
            (Step::Log { number, judgement }, StepAnswer::Logged) => self.logged(job, number, &judgement),
            (Step::Gather, StepAnswer::Gathered(evidence)) => self.judged(job, &evidence),
            (Step::Retire { outcome, reason, .. }, StepAnswer::Retired { place, message }) => {
                let message = Some(message).filter(|message| !message.is_empty());
                let text = format!("{}: {reason}; now in {place}", outcome.as_str());
                self.retired(job, outcome, text, message);
            }
            // Not the answer to the current step.
            _ => return self.keep(job),
        }
        self.progress.settle(|effect| effect.item() == Some(item));
    }

    fn taken_in(&mut self, job: Job, intake: Intake) {
        match intake {
            Intake::Ready { hash, failed, next } => {
                let memory = self.memory(&job.item);
                memory.wanting = memory.wanting.max(failed);
                let leaving = memory.leaving.take().filter(|leaving| leaving.hash == hash);
                let job = Job { hash, next_entry: next, ..job };
                match leaving {
                    Some(leaving) => self.retire(job, leaving.outcome, leaving.reason),
                    None => self.ready(job, Step::Check { by: Author::Earlier }),
                }
            }
            Intake::Vague { question } => {
                self.step(&job.item, format!("too little to begin with: {question}"));
                self.ready(job, Step::Mark { question });
            }
            Intake::Gone => {
                self.step(&job.item, "it is not in the backlog any more");
                if self.settings.mode == Mode::Once {
                    self.close(RunOutcome::Verified, "nothing to do".into());
                }
                self.leave(job);
            }
            Intake::Unreadable { why } => self.park(job, ParkedWhy::NeedsAttention, why),
        }
    }

    fn plan_checked(&mut self, mut job: Job, by: Author, plan: PlanFound) {
        if let PlanFound::Valid { hash } = &plan {
            job.plan = Some(hash.clone());
        }
        let known = self.carried.items.get(&job.item).and_then(|memory| memory.planned.as_ref());
        let (was_planned, for_this) = (known.is_some(), known == Some(&job.hash));
        match (by, plan) {
            (Author::Earlier, PlanFound::Valid { .. }) if for_this => {
                self.step(&job.item, "its plan is still good");
                self.after_plan(job);
            }
            (Author::Earlier, PlanFound::Missing) => {
                self.forget_plan(&job.item);
                self.ready(job, Step::Plan { repair: None });
            }
            (Author::Earlier, found) => {
                let text = match found {
                    PlanFound::Invalid { problems } => format!("there is a plan that is not valid: {problems}"),
                    _ if was_planned => "the item has changed since it was planned".into(),
                    _ => "there is a plan for it that no planner of ours wrote".into(),
                };
                self.step(&job.item, text);
                self.ready(job, Step::SetAside);
            }
            (Author::Planner { .. }, PlanFound::Valid { .. }) => {
                let branch = self.settings.branch.clone();
                let memory = self.memory(&job.item);
                (memory.planned, memory.branch) = (Some(job.hash.clone()), branch);
                self.say(NoticeKind::ItemPlanned, &job.item, "planned", None);
                self.ready(job, Step::Execute);
            }
            (Author::Planner { number, repairs: false }, PlanFound::Invalid { problems }) => {
                let text = format!("the plan is not valid; the planner gets one chance to repair it: {problems}");
                self.step(&job.item, text);
                self.ready(job, Step::Plan { repair: Some(Repair { planner: number, problems }) });
            }
            (Author::Planner { .. }, PlanFound::Missing) => {
                self.attempt_failed(job, "the planner wrote no plan".into());
            }
            (Author::Planner { .. }, PlanFound::Invalid { problems }) => {
                self.attempt_failed(job, format!("the plan is not valid, also after a repair: {problems}"));
            }
            (Author::Run, PlanFound::Valid { hash }) => {
                if let Some(executed) = &mut self.memory(&job.item).executed {
                    executed.plan = Some(hash);
                }
                self.after_execution(job);
            }
            (Author::Run, PlanFound::Missing) => {
                self.attempt_failed(job, "the plan was carried out, and is gone".into());
            }
            (Author::Run, PlanFound::Invalid { problems }) => {
                self.attempt_failed(job, format!("the plan was carried out, and does not load: {problems}"));
            }
        }
    }

    fn session_ended(&mut self, job: Job, outcome: Outcome, judgement: Option<Judgement>) {
        if !matches!(outcome, Outcome::Limited(_)) {
            self.carried.quota.not_limited();
        }
        match (&job.step, outcome) {
            (_, Outcome::Interrupted) => self.interrupted(job),
            (_, Outcome::Limited(hold)) => {
                self.hold_begins(&job.item, hold);
                self.again(job);
            }
            (Step::Verify, Outcome::Infra(failure) | Outcome::Failed(failure)) => {
                self.no_verdict(job, &failure.message);
            }
            (Step::Verify, Outcome::Suspended { question, .. }) => self.no_verdict(job, &question),
            (Step::Verify, Outcome::Done(_)) => match judgement {
                Some(judgement) if judgement.verdict != Verdict::Error => {
                    let number = job.next_entry;
                    self.ready(job, Step::Log { number, judgement });
                }
                other => self.no_verdict(job, &other.unwrap_or_else(Judgement::none).findings.join("; ")),
            },
            (_, Outcome::Infra(failure)) => {
                if let Some(job) = self.infra(job, &failure.message) {
                    self.attempt_failed(job, format!("no plan: {}", failure.message));
                }
            }
            (_, Outcome::Failed(failure)) => self.attempt_failed(job, format!("no plan: {}", failure.message)),
            (_, Outcome::Suspended { question, .. }) => {
                self.step(&job.item, format!("the planner asks: {question}"));
                self.ready(job, Step::Mark { question });
            }
            (step, Outcome::Done(_)) => {
                let by = Author::Planner { number: job.number, repairs: *step != Step::Plan { repair: None } };
                self.ready(job, Step::Check { by });
            }
        }
    }

    /// Handles a session that was ended, on request or because its money was spent. Unless the pipeline stops, it is
    /// retried.
    fn interrupted(&mut self, job: Job) {
        let spent = exhausted(self.levels()).or(self.item_level(&job.item).and_then(|level| exhausted(&[level])));
        if self.progress.stop.is_some() {
            self.step(&job.item, format!("stopped while {}; goes on from here", job.step.word()));
            self.leave(job);
        } else if spent.is_some() {
            self.again(job);
        } else if let Some(job) = self.infra(job, "its session was ended") {
            let reason = "its sessions are ended by somebody, or what is left of its budget is not enough";
            self.park(job, ParkedWhy::NeedsAttention, reason.into());
        }
    }

    fn no_verdict(&mut self, job: Job, why: &str) {
        if let Some(job) = self.infra(job, why) {
            let reason = format!("no verdict in {} tries: {why}", job.infra);
            self.park(job, ParkedWhy::NeedsAttention, reason);
        }
    }

    fn after_plan(&mut self, job: Job) {
        let executed = self.carried.items.get(&job.item).and_then(|memory| memory.executed.as_ref());
        if executed.is_some_and(|done| done.is_of(&job) && done.result.is_success()) {
            self.step(&job.item, "its plan was carried out already");
            self.after_execution(job);
        } else {
            self.ready(job, Step::Execute);
        }
    }

    fn after_execution(&mut self, job: Job) {
        let verified = self.carried.items.get(&job.item).and_then(|memory| memory.verified.as_ref());
        match job.kind {
            Kind::Defect if verified.is_some_and(|done| done.is_of(&job)) => {
                self.step(&job.item, "it was verified already");
                self.ready(job, Step::Gather);
            }
            Kind::Defect => self.ready(job, Step::Verify),
            Kind::Feature => self.ready(job, Step::Gather),
        }
    }

    fn plan_ended(&mut self, mut job: Job, outcome: RunOutcome, reason: String) {
        job.run = None;
        match outcome {
            RunOutcome::Verified | RunOutcome::CompletedWithWarnings => {
                let executed = PhaseResult { item: job.hash.clone(), plan: None, result: outcome };
                self.memory(&job.item).executed = Some(executed);
                self.step(&job.item, format!("its plan is carried out: {reason}"));
                self.ready(job, Step::Check { by: Author::Run });
            }
            RunOutcome::Failed | RunOutcome::CircuitOpen | RunOutcome::InvalidPlan | RunOutcome::InternalError => {
                self.attempt_failed(job, format!("its plan failed: {reason}"));
            }
            RunOutcome::Deadlocked => self.retire(job, ItemOutcome::Deadlocked, reason),
            RunOutcome::Suspended => self.park(job, ParkedWhy::Suspended, reason),
            RunOutcome::Stopped => {
                self.step(&job.item, "stopped while executing; goes on from here");
                self.leave(job);
                // A person stopped the run of the plan, so the pipeline stops, too.
                if self.progress.stop.is_none() && self.closing.is_none() {
                    self.stop_requested(StopHow::AfterTask);
                }
            }
            RunOutcome::BudgetExhausted if exhausted(self.levels()).is_some() => {
                self.step(&job.item, format!("stays as it is: {reason}"));
                self.leave(job);
            }
            RunOutcome::BudgetExhausted => self.park(job, ParkedWhy::Budget, reason),
            RunOutcome::RateLimited => {
                self.step(&job.item, format!("stays as it is: {reason}"));
                self.leave(job);
                self.close(RunOutcome::RateLimited, reason);
            }
        }
    }

    fn logged(&mut self, mut job: Job, number: u32, judgement: &Judgement) {
        job.next_entry = number + 1;
        let found = judgement.findings.join("; ");
        match judgement.verdict {
            verdict @ (Verdict::Pass | Verdict::Warn) => {
                let verified = PhaseResult { item: job.hash.clone(), plan: job.plan.clone(), result: verdict };
                self.memory(&job.item).verified = Some(verified);
                self.step(&job.item, format!("verification {number}: {verdict:?}"));
                self.ready(job, Step::Gather);
            }
            Verdict::Fail | Verdict::Error => {
                let memory = self.memory(&job.item);
                memory.wanting += 1;
                memory.before = Some(format!("verification {number} found it wanting: {found}"));
                let wanting = memory.wanting;
                let max = self.settings.pipeline.max_verification_cycles;
                self.step(&job.item, format!("verification {number} failed ({wanting} of {max}): {found}"));
                self.streak.clear();
                if wanting >= max {
                    let reason = format!("verified {wanting} times, and never right: {found}");
                    self.retire(job, ItemOutcome::Exhausted, reason);
                } else {
                    self.ready(job, Step::SetAside);
                }
            }
        }
    }

    fn judged(&mut self, job: Job, evidence: &Evidence) {
        let memory = self.carried.items.get(&job.item).cloned().unwrap_or_default();
        let executed = memory.executed.filter(|done| done.is_of(&job));
        let verdict = memory.verified.filter(|done| done.is_of(&job)).map(|verified| verified.result);
        let missing = missing(evidence, job.kind, verdict);
        if evidence.item == Place::Gone {
            self.step(&job.item, "it is not in the backlog any more");
            return self.leave(job);
        }
        if missing.len() == 1 && evidence.unreachable.is_err() {
            if let Some(job) = self.infra(job, &missing[0]) {
                self.park(job, ParkedWhy::NeedsAttention, missing.concat());
            }
            return;
        }
        let Some(executed) = executed else {
            return self.attempt_failed(job, "its plan was not carried out as it is now".into());
        };
        if !missing.is_empty() {
            return self.attempt_failed(job, format!("it says it is done, but {}", missing.join("; ")));
        }
        let warned = verdict == Some(Verdict::Warn) || executed.result == RunOutcome::CompletedWithWarnings;
        let outcome = if warned { ItemOutcome::CompletedWithWarnings } else { ItemOutcome::Completed };
        self.step(&job.item, "all evidence is there");
        self.retire(job, outcome, "every task is done, and its work is in the branch".into());
    }

    /// Moves an item out of the backlog, in this run or the next one.
    fn retire(&mut self, job: Job, outcome: ItemOutcome, reason: String) {
        let leaving = Leaving { outcome, reason: reason.clone(), hash: job.hash.clone() };
        self.memory(&job.item).leaving = Some(leaving);
        let after = job.number;
        self.ready(job, Step::Retire { outcome, reason, after });
    }

    fn retired(&mut self, job: Job, outcome: ItemOutcome, text: String, message: Option<String>) {
        let what = match outcome {
            ItemOutcome::Completed | ItemOutcome::CompletedWithWarnings => NoticeKind::ItemFinished,
            ItemOutcome::Exhausted => NoticeKind::ItemExhausted,
            ItemOutcome::Failed | ItemOutcome::Deadlocked => NoticeKind::ItemFailed,
        };
        let item = &job.item;
        self.say(what, item, text, message);
        if outcome.is_success() {
            self.streak.clear();
        }
        let memory = self.memory(item);
        memory.leaving = None;
        memory.ended = Some(outcome);
        self.forget_plan(item);
        self.handled.push((item.clone(), outcome));
        self.backlog.remove(item);
        self.leave(job);
    }

    fn forget_plan(&mut self, item: &Slug) {
        let memory = self.memory(item);
        (memory.planned, memory.executed, memory.verified) = (None, None, None);
    }

    fn attempt_failed(&mut self, job: Job, reason: String) {
        let item = &job.item;
        let at_once = self.progress.now < job.since.after(AT_ONCE) || job.spent.cost_usd <= 0.0;
        if at_once {
            self.streak.insert(item.clone());
        } else {
            self.streak.clear();
        }
        self.forget_plan(item);
        let memory = self.memory(item);
        memory.attempts += 1;
        memory.before = Some(reason.clone());
        let (attempts, max) = (memory.attempts, self.settings.pipeline.max_item_attempts);
        self.step(item, format!("attempt {attempts} of {max} failed: {reason}"));
        if attempts >= max { self.retire(job, ItemOutcome::Failed, reason) } else { self.leave(job) }
    }
}
