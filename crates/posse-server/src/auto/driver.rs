//! A backlog pipeline, for the driver of runs. A pipeline with nothing to do sleeps until a file changes; it has no timer and
//! writes nothing (`looking`).

mod looking;

use std::path::{Path, PathBuf};

use posse_api::{AutoEntry, AutoSpec, BacklogView, EntryView, EventBody, RunKind};
use posse_core::auto::Pipeline;
use posse_core::auto::messages::{Effect, Event, Step, StepAnswer, StepId};
use posse_core::backlog::Slug;
use posse_core::engine::notice::Notice;
use posse_core::engine::{RunOutcome, StopHow};
use posse_core::file_problem::FileProblems;
use posse_core::plan::budget::{Line, Phase, Total, Usage};
use posse_core::plan::outcome::Outcome;
use posse_core::plan::verdict::Judgement;
use posse_core::secrets::masked;
use posse_core::time::Wall;
use posse_core::turn::Level;
use posse_term::lock::Lock;
use tokio::sync::watch;
use tokio::time::Instant;

use super::executor::BacklogWork;
use super::place::of_item;
use super::{AutoLedger, Autos, begin, log_file, view, watching};
use crate::run::journal::entry_event;
use crate::run::ledger::verdict_word;
use crate::run::shared_limits::LimitsHandle;
use crate::run::{Effects, Executor, SessionEnded, SpecFields, Stopping, SupervisorError, Workflow, messages};
use crate::watched_files::FileWatch;
use looking::Seen;

type Driver = crate::run::Driver<BacklogWork>;

/// State that only drivers of pipelines have.
pub(crate) struct BacklogLocal {
    /// No other pipeline works in this project.
    _lock: Lock,
    watches: Vec<FileWatch>,
    /// The time of the next scan after a change, and the start of the last one.
    look: Option<Instant>,
    looked_at: Instant,
    /// The number of scans so far.
    looks: u64,
}

impl BacklogLocal {
    pub(super) fn new(lock: Lock) -> Self {
        let looked_at = Instant::now();
        Self { _lock: lock, watches: Vec::new(), look: None, looked_at, looks: 0 }
    }
}

/// An event that only drivers of pipelines wait for.
pub(crate) enum BacklogWake {
    Changed(watching::BacklogChange),
    LookDue,
    Seen(Seen),
}

impl Workflow for BacklogWork {
    const KIND: RunKind = RunKind::Backlog;
    const RUN: &'static str = "pipeline";
    const WAITS: &'static str = "the daemon was restarted, and nobody is there who knows the environment of sessions; `posse auto` in the same project goes on";
    const ENDED: &'static str = "auto_ended";

    type Spec = AutoSpec;
    type Machine = Pipeline;
    type Session = StepId;
    type View = BacklogView;
    type Local = BacklogLocal;
    type Wake = BacklogWake;

    fn fields(spec: &AutoSpec) -> SpecFields<'_> {
        SpecFields {
            id: spec.id,
            resource: &spec.directory,
            directory: &spec.directory,
            provider: &spec.provider,
            stop_files: Some(&spec.config.state_dir),
            idle_timeout: spec.config.task.idle_timeout,
            asked: Wall(spec.asked.as_millisecond()),
            notifications: &spec.notifications,
            plan_file: None,
            item: None,
        }
    }

    fn machine(spec: &AutoSpec, _: Wall) -> Result<Pipeline, FileProblems> {
        Ok(Pipeline::new(spec.settings.clone(), spec.carried.clone()))
    }

    fn title(_: &AutoLedger) -> String {
        "backlog".into()
    }

    fn used(ledger: &AutoLedger) -> &Total {
        ledger.machine.total()
    }

    fn view(ledger: &AutoLedger, files: &str) -> BacklogView {
        view::auto_view(ledger, files)
    }

    fn said(level: Level, session: Option<&StepId>, text: String) -> AutoEntry {
        AutoEntry::Said { level, item: session.map(|session| session.item.clone()), text }
    }

    fn is_by_a_person(event: &Event) -> bool {
        matches!(event, Event::Scanned { .. } | Event::Retry { .. })
    }

    fn events(ledger: &AutoLedger, entry: &AutoEntry, seq: i64) -> Vec<EventBody> {
        vec![entry_event(ledger.spec.id, seq, ledger.changed, EntryView::Backlog(entry.clone()))]
    }

    fn session_ended(input: &Event) -> Option<SessionEnded<'_, Self>> {
        let Event::Answered { id: session, answer: StepAnswer::SessionEnded { outcome, judgement, usage } } = input
        else {
            return None;
        };
        let verdict = judgement.as_ref().map(|judgement| verdict_word(judgement.verdict));
        Some(SessionEnded {
            session,
            phase: if verdict.is_none() { Phase::Planning } else { Phase::Verification },
            outcome: outcome.word(verdict.unwrap_or("done")),
            usage,
            hold: outcome.hold(),
        })
    }

    fn complete_line(ledger: &AutoLedger, session: &StepId, line: &mut Line) {
        let memory = ledger.machine.carried().items.get(&session.item);
        line.item = Some(session.item.to_string());
        line.attempt = Some(1 + memory.map_or(0, |memory| memory.attempts));
    }

    /// A session is called by its item and a number: `7-empty-export-2`.
    fn session_directory(session: &str) -> Option<PathBuf> {
        let (item, number) = session.rsplit_once('-')?;
        let (item, number) = (item.parse::<Slug>().ok()?, number.parse::<u32>().ok()?);
        Some(of_item(Path::new(""), &item).join("sessions").join(number.to_string()))
    }

    async fn open(autos: &Autos, ledger: &AutoLedger) -> Result<(Self, BacklogLocal), SupervisorError> {
        let lock = begin::lock(&ledger.spec.directory, &ledger.spec.config.state_dir, &autos.state).await?;
        Ok((Self, BacklogLocal::new(lock)))
    }

    async fn begin(driver: &mut Driver) -> Effects<Self> {
        let Executor { spec, sessions, signals, .. } = driver.executor.clone();
        // Before the first scan, so that later changes are reported.
        driver.local.watches = watching::watch(&sessions.files, &spec, signals).await;
        let mut effects = Vec::new();
        if driver.ledger.started {
            driver.look_first();
            return Ok(effects);
        }
        // Twice is the same as once.
        for item in spec.retry.clone() {
            effects.extend(driver.apply(Event::Retry { item }).await?);
        }
        Ok(effects)
    }

    async fn start(driver: &mut Driver, effect: Effect) -> Effects<Self> {
        match effect {
            Effect::Scan => driver.look_elsewhere(),
            Effect::Do { .. } => return driver.spawn(effect).await,
            Effect::EndSession { id } => return driver.end_session(&id).await,
            Effect::StopPlan { id, how } => return driver.stop_plan(&id, how).await,
            Effect::Tell(notice) => {
                driver.notify(messages::notice(&driver.ledger, &notice));
                let Notice { what, item, text, .. } = notice;
                let level = what.level();
                driver.record(AutoEntry::Said { level, item: item.clone(), text: text.clone() }).await?;
                let state = &driver.executor.state;
                log_file::append(state, crate::now(), what, level, item.as_ref(), &masked(&text)).await;
            }
            // The pipeline is closed when all other effects are started.
            Effect::Finish => {}
        }
        Ok(Vec::new())
    }

    fn session_of(effect: &Effect) -> Option<&StepId> {
        match effect {
            Effect::Do { id, step: Step::Plan { .. } | Step::Verify } => Some(id),
            _ => None,
        }
    }

    /// A session or plan that was started needs no environment.
    async fn needs_context(executor: &Executor<Self>, ledger: &AutoLedger, effect: &Effect) -> bool {
        match effect {
            Effect::Do { id, step: Step::Plan { .. } | Step::Verify } => !executor.is_known(id).await,
            Effect::Do { id, step: Step::Execute } => {
                matches!(executor.active_plan(&ledger.machine, id).await, Ok(None))
            }
            _ => false,
        }
    }

    async fn carry_out(
        executor: &Executor<Self>,
        effect: Effect,
        machine: &Pipeline,
        stop: watch::Receiver<bool>,
    ) -> Option<Event> {
        let Effect::Do { id, step } = effect else { return None };
        let answer = executor.perform(&id, step, machine, stop).await;
        let answer = answer.unwrap_or_else(|error| StepAnswer::Failed { why: error.to_string() });
        Some(Event::Answered { id, answer })
    }

    fn not_started(effect: Effect) -> Option<Event> {
        let Effect::Do { id, step } = effect else { return None };
        let answer = match step {
            Step::Execute => {
                let (outcome, reason) = (RunOutcome::Stopped, "stopped before it began".to_owned());
                StepAnswer::PlanEnded { outcome, reason, used: Total::default() }
            }
            step => {
                let (outcome, usage) = (Outcome::Interrupted, Usage::none());
                let judgement = (step == Step::Verify).then(Judgement::none);
                StepAnswer::SessionEnded { outcome: outcome.into(), judgement, usage }
            }
        };
        Some(Event::Answered { id, answer })
    }

    fn dropped_by_stop(_: &Effect) -> bool {
        true
    }

    async fn answered(driver: &mut Driver, input: Event) -> Effects<Self> {
        let mut effects = Vec::new();
        // The cost of its sessions is in the usage table by now, and decides what follows.
        if let Event::Answered { answer: StepAnswer::PlanEnded { .. }, .. } = &input {
            effects.extend(driver.look_at_limits().await?);
        }
        effects.extend(driver.apply(input).await?);
        Ok(effects)
    }

    async fn wait(local: &mut BacklogLocal, ledger: &AutoLedger) -> BacklogWake {
        match looking::next_look(local, ledger) {
            Some(at) => tokio::time::sleep_until(at).await,
            None => std::future::pending().await,
        }
        BacklogWake::LookDue
    }

    async fn woken(driver: &mut Driver, wake: BacklogWake) -> Effects<Self> {
        match wake {
            BacklogWake::Changed(change) => {
                driver.changed(change);
                Ok(Vec::new())
            }
            BacklogWake::LookDue => {
                driver.look_now();
                Ok(Vec::new())
            }
            BacklogWake::Seen(seen) => driver.looked(seen).await,
        }
    }

    /// Runs of plans may wait for the environment too.
    async fn context_provided(driver: &mut Driver) {
        for run in driver.ledger.machine.jobs().values().filter_map(|job| job.run).collect::<Vec<_>>() {
            driver.executor.provide_context(run).await;
        }
    }

    fn limits_input(ledger: &AutoLedger, _: &LimitsHandle, levels: Vec<(String, Total)>) -> Option<Event> {
        (!ledger.machine.knows(&levels)).then_some(Event::Spent { levels })
    }

    async fn close(driver: &mut Driver) -> Result<(), Stopping> {
        driver.over(None).await
    }
}

impl Driver {
    async fn stop_plan(&mut self, id: &StepId, how: StopHow) -> Effects<BacklogWork> {
        let effects =
            self.drop_waiting(|effect| matches!(effect, Effect::Do { id: waiting, .. } if waiting == id)).await?;
        // The machine has moved on if the effect was dropped.
        let job = self.ledger.machine.jobs().get(&id.item).filter(|job| job.id() == *id);
        if let Some(run) = job.and_then(|job| job.run) {
            self.executor.stop_plan(run, how).await;
        }
        Ok(effects)
    }
}
