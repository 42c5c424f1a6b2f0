//! Decides an item's next step from the answer to its current one.

use std::time::Duration;

use super::{Job, Pipeline};
use crate::auto::evidence::{Evidence, Place, missing};
use crate::auto::memory::{Leaving, ParkedWhy, PhaseResult};
use crate::auto::messages::{Author, Intake, NoticeKind, PlanFound, Repair, Step, StepAnswer};
use crate::backlog::{ItemOutcome, Kind, Slug};
use crate::engine::{Machine, RunOutcome, StopHow};
use crate::plan::budget::exhausted;
use crate::plan::outcome::Outcome;
use crate::plan::verdict::{Judgement, Verdict};

/// A failure within this time counts as at once.
const AT_ONCE: Duration = Duration::from_secs(60);

impl<T> PhaseResult<T> {
    /// Whether it is of the item and the plan as they are now.
    fn is_of(&self, job: &Job) -> bool {
        self.item == job.hash && self.plan.is_some() && self.plan == job.plan
    }
}

impl Pipeline {
    /// Handles the answer to the current step of an item.
    pub(super) fn answered(&mut self, item: &Slug, answer: StepAnswer) {
        let Some(step) = self.jobs.get(item).map(|job| job.step.clone()) else { return };
        match (step, answer) {
            (Step::Retire { outcome, .. }, StepAnswer::Failed { why }) => {
                let reason = format!("{}, but still in the backlog: {why}", outcome.as_str());
                self.park(item, ParkedWhy::ArchiveFailed, reason);
            }
            (step, StepAnswer::Failed { why }) => {
                if !self.infra(item, &why) {
                    let text = format!("{} could not be done: {why}", step.word());
                    self.park(item, ParkedWhy::NeedsAttention, text);
                }
            }
            (_, StepAnswer::NotNow { why }) => {
                self.again(item);
                self.checkout_is(Some(why));
                // The checkout may be back already, without another event.
                self.stale = true;
            }
            (Step::Intake, StepAnswer::Intake(intake)) => self.taken_in(item, intake),
            (Step::Mark { question }, StepAnswer::Marked) => self.park(item, ParkedWhy::NeedsClarification, question),
            (Step::Check { by }, StepAnswer::PlanChecked(plan)) => self.plan_checked(item, by, plan),
            (Step::SetAside, StepAnswer::SetAside) => {
                self.forget_plan(item);
                self.step(item, "the old plan is set aside");
                self.ready(item, Step::Plan { repair: None });
            }
            (step @ (Step::Plan { .. } | Step::Verify), StepAnswer::SessionEnded { outcome, judgement, usage }) => {
                self.spent(item, &usage);
                self.session_ended(item, step, *outcome, judgement);
            }
            (Step::Execute, StepAnswer::PlanEnded { outcome, reason, used }) => {
                self.used(item, &used);
                self.plan_ended(item, outcome, reason);
            }
            (Step::Log { number, judgement }, StepAnswer::Logged) => self.logged(item, number, &judgement),
            (Step::Gather, StepAnswer::Gathered(evidence)) => self.judged(item, &evidence),
            (Step::Retire { outcome, reason, .. }, StepAnswer::Retired { place, message }) => {
                let message = Some(message).filter(|message| !message.is_empty());
                let text = format!("{}: {reason}; now in {place}", outcome.as_str());
                self.retired(item, outcome, text, message);
            }
            // Not the answer to the current step.
            _ => return,
        }
        self.progress.settle(|effect| effect.item() == Some(item));
    }

    fn taken_in(&mut self, item: &Slug, intake: Intake) {
        match intake {
            Intake::Ready { hash, failed, next } => {
                if let Some(job) = self.jobs.get_mut(item) {
                    (job.hash, job.next_entry) = (hash.clone(), next);
                }
                let memory = self.memory(item);
                memory.wanting = memory.wanting.max(failed);
                let leaving = memory.leaving.take().filter(|leaving| leaving.hash == hash);
                match leaving {
                    Some(leaving) => self.retire(item, leaving.outcome, leaving.reason),
                    None => self.ready(item, Step::Check { by: Author::Earlier }),
                }
            }
            Intake::Vague { question } => {
                self.step(item, format!("too little to begin with: {question}"));
                self.ready(item, Step::Mark { question });
            }
            Intake::Gone => {
                self.step(item, "it is not in the backlog any more");
                self.leave(item);
            }
            Intake::Unreadable { why } => self.park(item, ParkedWhy::NeedsAttention, why),
        }
    }

    fn plan_checked(&mut self, item: &Slug, by: Author, plan: PlanFound) {
        let Some(job) = self.jobs.get_mut(item) else { return };
        let hash = job.hash.clone();
        if let PlanFound::Valid { hash } = &plan {
            job.plan = Some(hash.clone());
        }
        let known = self.carried.items.get(item).and_then(|memory| memory.planned.as_ref());
        let (was_planned, for_this) = (known.is_some(), known == Some(&hash));
        match (by, plan) {
            (Author::Earlier, PlanFound::Valid { .. }) if for_this => {
                self.step(item, "its plan is still good");
                self.after_plan(item);
            }
            (Author::Earlier, PlanFound::Missing) => {
                self.forget_plan(item);
                self.ready(item, Step::Plan { repair: None });
            }
            (Author::Earlier, found) => {
                self.step(
                    item,
                    match found {
                        PlanFound::Invalid { problems } => format!("there is a plan that is not valid: {problems}"),
                        _ if was_planned => "the item has changed since it was planned".into(),
                        _ => "there is a plan for it that no planner of ours wrote".into(),
                    },
                );
                self.ready(item, Step::SetAside);
            }
            (Author::Planner { .. }, PlanFound::Valid { .. }) => {
                let branch = self.settings.branch.clone();
                let memory = self.memory(item);
                (memory.planned, memory.branch) = (Some(hash), branch);
                self.say(NoticeKind::ItemPlanned, item, "planned", None);
                self.ready(item, Step::Execute);
            }
            (Author::Planner { number, repairs: false }, PlanFound::Invalid { problems }) => {
                self.step(item, format!("the plan is not valid; the planner gets one chance to repair it: {problems}"));
                self.ready(item, Step::Plan { repair: Some(Repair { planner: number, problems }) });
            }
            (Author::Planner { .. }, PlanFound::Missing) => {
                self.attempt_failed(item, "the planner wrote no plan".into());
            }
            (Author::Planner { .. }, PlanFound::Invalid { problems }) => {
                self.attempt_failed(item, format!("the plan is not valid, also after a repair: {problems}"));
            }
            (Author::Run, PlanFound::Valid { hash }) => {
                if let Some(executed) = &mut self.memory(item).executed {
                    executed.plan = Some(hash);
                }
                self.after_execution(item);
            }
            (Author::Run, PlanFound::Missing) => {
                self.attempt_failed(item, "the plan was carried out, and is gone".into());
            }
            (Author::Run, PlanFound::Invalid { problems }) => {
                self.attempt_failed(item, format!("the plan was carried out, and does not load: {problems}"));
            }
        }
    }

    fn session_ended(&mut self, item: &Slug, step: Step, outcome: Outcome, judgement: Option<Judgement>) {
        if !matches!(outcome, Outcome::Limited(_)) {
            self.carried.quota.not_limited();
        }
        match (step, outcome) {
            (step, Outcome::Interrupted) => self.interrupted(item, &step),
            (_, Outcome::Limited(hold)) => {
                self.hold_begins(item, hold);
                self.again(item);
            }
            (Step::Verify, Outcome::Infra(failure) | Outcome::Failed(failure)) => {
                self.no_verdict(item, &failure.message);
            }
            (Step::Verify, Outcome::Suspended { question, .. }) => self.no_verdict(item, &question),
            (Step::Verify, Outcome::Done(_)) => match judgement {
                Some(judgement) if judgement.verdict != Verdict::Error => {
                    let number = self.jobs.get(item).map_or(1, |job| job.next_entry);
                    self.ready(item, Step::Log { number, judgement });
                }
                other => self.no_verdict(item, &other.unwrap_or_else(Judgement::none).findings.join("; ")),
            },
            (_, Outcome::Infra(failure)) => {
                if !self.infra(item, &failure.message) {
                    self.attempt_failed(item, format!("no plan: {}", failure.message));
                }
            }
            (_, Outcome::Failed(failure)) => self.attempt_failed(item, format!("no plan: {}", failure.message)),
            (_, Outcome::Suspended { question, .. }) => {
                self.step(item, format!("the planner asks: {question}"));
                self.ready(item, Step::Mark { question });
            }
            (step, Outcome::Done(_)) => {
                let Some(job) = self.jobs.get(item) else { return };
                let (number, repairs) = (job.number, step != Step::Plan { repair: None });
                self.ready(item, Step::Check { by: Author::Planner { number, repairs } });
            }
        }
    }

    /// A session was ended, on request or because it had spent what was left. Without a stop of the pipeline it is retried.
    fn interrupted(&mut self, item: &Slug, step: &Step) {
        let spent = exhausted(self.levels()).or(self.item_level(item).and_then(|level| exhausted(&[level])));
        if self.progress.stop.is_some() {
            self.step(item, format!("stopped while {}; goes on from here", step.word()));
            self.leave(item);
        } else if spent.is_some() {
            self.again(item);
        } else if !self.infra(item, "its session was ended") {
            let reason = "its sessions are ended by somebody, or what is left of its budget is not enough";
            self.park(item, ParkedWhy::NeedsAttention, reason.into());
        }
    }

    fn no_verdict(&mut self, item: &Slug, why: &str) {
        if !self.infra(item, why) {
            let tries = self.jobs.get(item).map_or(0, |job| job.infra);
            self.park(item, ParkedWhy::NeedsAttention, format!("no verdict in {tries} tries: {why}"));
        }
    }

    fn after_plan(&mut self, item: &Slug) {
        let Some(job) = self.jobs.get(item) else { return };
        let executed = self.carried.items.get(item).and_then(|memory| memory.executed.as_ref());
        if executed.is_some_and(|done| done.is_of(job) && done.result.is_success()) {
            self.step(item, "its plan was carried out already");
            self.after_execution(item);
        } else {
            self.ready(item, Step::Execute);
        }
    }

    fn after_execution(&mut self, item: &Slug) {
        let Some(job) = self.jobs.get(item) else { return };
        let verified = self.carried.items.get(item).and_then(|memory| memory.verified.as_ref());
        match job.kind {
            Kind::Defect if verified.is_some_and(|done| done.is_of(job)) => {
                self.step(item, "it was verified already");
                self.ready(item, Step::Gather);
            }
            Kind::Defect => self.ready(item, Step::Verify),
            Kind::Feature => self.ready(item, Step::Gather),
        }
    }

    fn plan_ended(&mut self, item: &Slug, outcome: RunOutcome, reason: String) {
        let Some(job) = self.jobs.get_mut(item) else { return };
        job.run = None;
        let hash = job.hash.clone();
        match outcome {
            RunOutcome::Verified | RunOutcome::CompletedWithWarnings => {
                self.memory(item).executed = Some(PhaseResult { item: hash, plan: None, result: outcome });
                self.step(item, format!("its plan is carried out: {reason}"));
                self.ready(item, Step::Check { by: Author::Run });
            }
            RunOutcome::Failed | RunOutcome::CircuitOpen | RunOutcome::InvalidPlan | RunOutcome::InternalError => {
                self.attempt_failed(item, format!("its plan failed: {reason}"));
            }
            RunOutcome::Deadlocked => self.retire(item, ItemOutcome::Deadlocked, reason),
            RunOutcome::Suspended => self.park(item, ParkedWhy::Suspended, reason),
            RunOutcome::Stopped => {
                self.step(item, "stopped while executing; goes on from here");
                self.leave(item);
                // A person stopped the run of the plan, so the pipeline stops, too.
                if self.progress.stop.is_none() && self.closing.is_none() {
                    self.stop_requested(StopHow::AfterTask);
                }
            }
            RunOutcome::BudgetExhausted if exhausted(self.levels()).is_some() => {
                self.step(item, format!("stays as it is: {reason}"));
                self.leave(item);
            }
            RunOutcome::BudgetExhausted => self.park(item, ParkedWhy::Budget, reason),
            RunOutcome::RateLimited => {
                self.step(item, format!("stays as it is: {reason}"));
                self.leave(item);
                self.close(RunOutcome::RateLimited, reason);
            }
        }
    }

    fn logged(&mut self, item: &Slug, number: u32, judgement: &Judgement) {
        let Some(job) = self.jobs.get_mut(item) else { return };
        job.next_entry = number + 1;
        let (hash, plan) = (job.hash.clone(), job.plan.clone());
        let found = judgement.findings.join("; ");
        match judgement.verdict {
            verdict @ (Verdict::Pass | Verdict::Warn) => {
                self.memory(item).verified = Some(PhaseResult { item: hash, plan, result: verdict });
                self.step(item, format!("verification {number}: {verdict:?}"));
                self.ready(item, Step::Gather);
            }
            Verdict::Fail | Verdict::Error => {
                let memory = self.memory(item);
                memory.wanting += 1;
                memory.before = Some(format!("verification {number} found it wanting: {found}"));
                let wanting = memory.wanting;
                let max = self.settings.pipeline.max_verification_cycles;
                self.step(item, format!("verification {number} failed ({wanting} of {max}): {found}"));
                self.streak.clear();
                if wanting >= max {
                    self.retire(
                        item,
                        ItemOutcome::Exhausted,
                        format!("verified {wanting} times, and never right: {found}"),
                    );
                } else {
                    self.ready(item, Step::SetAside);
                }
            }
        }
    }

    fn judged(&mut self, item: &Slug, evidence: &Evidence) {
        let Some(job) = self.jobs.get(item) else { return };
        let memory = self.carried.items.get(item).cloned().unwrap_or_default();
        let executed = memory.executed.filter(|done| done.is_of(job));
        let verdict = memory.verified.filter(|done| done.is_of(job)).map(|verified| verified.result);
        let missing = missing(evidence, job.kind, verdict);
        if evidence.item == Place::Gone {
            self.step(item, "it is not in the backlog any more");
            return self.leave(item);
        }
        if missing.len() == 1 && evidence.unreachable.is_err() {
            if !self.infra(item, &missing[0]) {
                self.park(item, ParkedWhy::NeedsAttention, missing.concat());
            }
            return;
        }
        let Some(executed) = executed else {
            return self.attempt_failed(item, "its plan was not carried out as it is now".into());
        };
        if !missing.is_empty() {
            return self.attempt_failed(item, format!("it says it is done, but {}", missing.join("; ")));
        }
        let warned = verdict == Some(Verdict::Warn) || executed.result == RunOutcome::CompletedWithWarnings;
        let outcome = if warned { ItemOutcome::CompletedWithWarnings } else { ItemOutcome::Completed };
        self.step(item, "all evidence is there");
        self.retire(item, outcome, "every task is done, and its work is in the branch".into());
    }

    /// Moves an item out of the backlog, in this run or the next.
    fn retire(&mut self, item: &Slug, outcome: ItemOutcome, reason: String) {
        let Some(job) = self.jobs.get(item) else { return };
        let (hash, after) = (job.hash.clone(), job.number);
        self.memory(item).leaving = Some(Leaving { outcome, reason: reason.clone(), hash });
        self.ready(item, Step::Retire { outcome, reason, after });
    }

    fn retired(&mut self, item: &Slug, outcome: ItemOutcome, text: String, message: Option<String>) {
        let what = match outcome {
            ItemOutcome::Completed | ItemOutcome::CompletedWithWarnings => NoticeKind::ItemFinished,
            ItemOutcome::Exhausted => NoticeKind::ItemExhausted,
            ItemOutcome::Failed | ItemOutcome::Deadlocked => NoticeKind::ItemFailed,
        };
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
        self.leave(item);
    }

    fn forget_plan(&mut self, item: &Slug) {
        let memory = self.memory(item);
        (memory.planned, memory.executed, memory.verified) = (None, None, None);
    }

    fn attempt_failed(&mut self, item: &Slug, reason: String) {
        let Some(job) = self.jobs.get(item) else { return };
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
        if attempts >= max { self.retire(item, ItemOutcome::Failed, reason) } else { self.leave(item) }
    }
}
