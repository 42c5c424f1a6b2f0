//! A run of a plan, for the driver of runs.

mod file;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use posse_api::{EntryView, EventBody, PlanEntry, PlanSpec, PlanView, RunKind};
use posse_core::file_problem::FileProblems;
use posse_core::plan::TaskId;
use posse_core::plan::budget::{Line, Phase, Total, Usage};
use posse_core::plan::file::Isolation;
use posse_core::plan::machine::{self, Effect, Event, MergeResult, Others, Run};
use posse_core::plan::outcome::Outcome;
use posse_core::plan::verdict::Judgement;
use posse_core::time::Wall;
use posse_core::turn::Level;
use tokio::sync::watch;
use tokio::time::{Duration, Instant};

use super::executor::{PlanWork, session_ended};
use super::plan_file::{PlanFile, PlanFileError};
use super::{PlanLedger, Plans, report, view};
use crate::api::App;
use crate::disk;
use crate::run::journal::entry_event;
use crate::run::ledger::verdict_word;
use crate::run::shared_limits::LimitsHandle;
use crate::run::{Effects, Executor, SessionEnded, SpecFields, Stopping, SupervisorError, Workflow, lock, messages};

type Driver = crate::run::Driver<PlanWork>;

/// Merged work trees are removed so long after the start of a session: what it needs to begin comes first.
const REMOVAL_DELAY: Duration = Duration::from_secs(1);

/// State that only drivers of plans have.
pub(crate) struct PlanLocal {
    file: PlanFile,
    /// The file is to be written when all effects are started: it is for people.
    write_due: bool,
    /// There is more to write than what is being written.
    file_behind: bool,
    /// Sessions whose work is merged. Their work trees are removed together while the next session works, or at the end.
    merged: Vec<machine::RunId>,
    /// The time at which these work trees are removed.
    removal: Option<Instant>,
}

impl PlanLocal {
    pub(super) async fn open(spec: &PlanSpec, state: &Path, run: &Run) -> Self {
        let file = PlanFile::open(&spec.file, state, run).await;
        Self { file, write_due: false, file_behind: false, merged: Vec::new(), removal: None }
    }
}

/// An event that only drivers of plans wait for.
pub(crate) enum PlanWake {
    /// The plan's file was written, or not because it was edited.
    Written(Result<bool, PlanFileError>),
    RemovalDue,
    /// A session has changed the copy of the plan that it was given.
    CopyEdited {
        given: String,
        theirs: String,
    },
}

impl Workflow for PlanWork {
    const KIND: RunKind = RunKind::Plan;
    const RUN: &'static str = "run of a plan";
    const WAITS: &'static str = "the daemon was restarted, and nobody is there who knows the environment of sessions; `posse plan run` with the same file goes on";
    const ENDED: &'static str = "plan_ended";

    type Spec = PlanSpec;
    type Machine = Run;
    type Session = machine::RunId;
    type View = PlanView;
    type Local = PlanLocal;
    type Wake = PlanWake;

    fn fields(spec: &PlanSpec) -> SpecFields<'_> {
        SpecFields {
            id: spec.id,
            resource: &spec.file,
            directory: &spec.directory,
            provider: &spec.provider,
            stop_files: Some(&spec.config.state_dir),
            idle_timeout: spec.config.task.idle_timeout,
            asked: Wall(spec.asked.as_millisecond()),
            notifications: &spec.notifications,
            plan_file: Some(&spec.file),
            item: spec.item.as_deref(),
        }
    }

    fn machine(spec: &PlanSpec, _: Wall) -> Result<Run, FileProblems> {
        let mut run = Run::new(&spec.file, &spec.text, spec.state.clone(), spec.settings.clone(), &spec.starts)?;
        run.take_over(&spec.left);
        Ok(run)
    }

    fn title(ledger: &PlanLedger) -> String {
        ledger.machine.plan().name.clone()
    }

    fn view(ledger: &PlanLedger, files: &str) -> PlanView {
        view::plan_view(ledger, files)
    }

    fn said(level: Level, session: Option<&machine::RunId>, text: String) -> PlanEntry {
        let text = session.map(|session| format!("task {}: {text}", session.task)).unwrap_or(text);
        PlanEntry::Said { level, item: None, text }
    }

    fn is_by_a_person(event: &Event) -> bool {
        matches!(event, Event::PlanEdited { .. } | Event::Answered { .. })
    }

    fn events(ledger: &PlanLedger, entry: &PlanEntry, seq: i64) -> Vec<EventBody> {
        vec![entry_event(ledger.spec.id, seq, ledger.changed, EntryView::Plan(entry.clone()))]
    }

    fn session_ended(input: &Event) -> Option<SessionEnded<'_, Self>> {
        let (session, outcome, usage, verdict) = match input {
            Event::SessionEnded { run, outcome, usage } => (run, outcome, usage, None),
            Event::ValidatorEnded { run, outcome, usage, judgement } => (run, outcome, usage, Some(judgement.verdict)),
            _ => return None,
        };
        Some(SessionEnded {
            session,
            phase: if verdict.is_none() { Phase::Task } else { Phase::Validation },
            outcome: outcome.word(verdict.map_or("done", verdict_word)),
            usage,
            hold: outcome.hold(),
        })
    }

    fn complete_line(ledger: &PlanLedger, session: &machine::RunId, line: &mut Line) {
        let plan = ledger.machine.plan();
        line.section = plan.section_of(&session.task).map(|section| section.id.clone());
        line.task = Some(session.task.to_string());
        if line.agent.is_empty() {
            line.agent = plan.task(session.task.as_str()).map(|task| task.agent().to_owned()).unwrap_or_default();
        }
    }

    fn session_directory(session: &str) -> Option<PathBuf> {
        Some(Path::new("sessions").join(session))
    }

    async fn open(plans: &Plans, ledger: &PlanLedger) -> Result<(Self, PlanLocal), SupervisorError> {
        let worktrees = plans.worktrees(&ledger.spec, ledger.machine.plan()).await;
        Ok(plans.opened(&ledger.spec, worktrees, &ledger.machine).await)
    }

    async fn begin(driver: &mut Driver) -> Effects<Self> {
        if driver.seq == 1 {
            for text in driver.ledger.spec.remarks.clone() {
                driver.say(Level::Warning, text).await?;
            }
        }
        Ok(vec![Effect::WritePlan])
    }

    async fn start(driver: &mut Driver, effect: Effect) -> Effects<Self> {
        match effect {
            Effect::MakeArea { ref run } => {
                let needed = resources(&driver.ledger.machine, &run.task);
                match driver.limits.acquire(&run.task, needed) {
                    Ok(()) => driver.spawn(effect).await,
                    Err((name, held_by)) => driver.apply(Event::Taken { run: run.clone(), name, held_by }).await,
                }
            }
            Effect::StartSession { .. } => {
                if !driver.local.merged.is_empty() {
                    driver.local.removal.get_or_insert(Instant::now() + REMOVAL_DELAY);
                }
                driver.spawn(effect).await
            }
            Effect::RunGates { .. } | Effect::Merge { .. } | Effect::CheckPlan => driver.spawn(effect).await,
            Effect::EndSession { run } => driver.end_session(&run).await,
            Effect::EndChecks => {
                driver.executor.work.no_checks.send_replace(true);
                let checks = |effect: &Effect| {
                    matches!(effect, Effect::RunGates { .. } | Effect::Merge { .. } | Effect::CheckPlan)
                };
                driver.drop_waiting(checks).await
            }
            Effect::WritePlan => {
                driver.local.write_due = true;
                Ok(Vec::new())
            }
            Effect::Notify(notice) => {
                driver.notify(messages::notice(&driver.ledger, &notice));
                driver.say(notice.what.level(), notice.text).await?;
                Ok(Vec::new())
            }
            // The run is closed when all other effects are started.
            Effect::Finish => Ok(Vec::new()),
        }
    }

    fn session_of(effect: &Effect) -> Option<&machine::RunId> {
        if let Effect::StartSession { run, .. } = effect { Some(run) } else { None }
    }

    async fn needs_context(executor: &Executor<Self>, _: &PlanLedger, effect: &Effect) -> bool {
        let spec = &executor.spec;
        match effect {
            Effect::StartSession { run, .. } => !executor.is_known(run).await,
            // If sessions work in the user's checkout, the checks also run before them.
            Effect::MakeArea { .. } => spec.settings.has_gates && spec.git.isolation == Isolation::InPlace,
            _ => spec.settings.has_gates,
        }
    }

    async fn carry_out(
        executor: &Executor<Self>,
        effect: Effect,
        machine: &Run,
        stop: watch::Receiver<bool>,
    ) -> Option<Event> {
        executor.carry_out_plan(effect, machine, stop).await
    }

    fn not_started(effect: Effect) -> Option<Event> {
        match effect {
            Effect::StartSession { run, .. } => {
                Some(session_ended(&run, Outcome::Interrupted, Judgement::none(), Usage::none()))
            }
            // No session is started in a work tree when a run stops.
            Effect::MakeArea { run } => Some(Event::AreaReady { run }),
            Effect::RunGates { run } => Some(Event::GatesStopped { run }),
            Effect::Merge { run } => Some(Event::MergeEnded { run, result: MergeResult::Stopped }),
            Effect::CheckPlan => Some(Event::PlanCheckStopped),
            _ => None,
        }
    }

    fn dropped_by_stop(effect: &Effect) -> bool {
        matches!(effect, Effect::StartSession { .. } | Effect::MakeArea { .. })
    }

    async fn before_input(driver: &mut Driver) -> Effects<Self> {
        driver.file_edited().await
    }

    async fn answered(driver: &mut Driver, input: Event) -> Effects<Self> {
        if let Event::MergeEnded { run, result: MergeResult::Merged { .. } } = &input {
            driver.local.merged.push(run.clone());
        }
        driver.apply(input).await
    }

    async fn settle(driver: &mut Driver) -> Effects<Self> {
        match std::mem::take(&mut driver.local.write_due) {
            true => driver.write_plan().await,
            false => Ok(Vec::new()),
        }
    }

    async fn wait(local: &mut PlanLocal, _: &PlanLedger) -> PlanWake {
        let due = local.removal;
        let removal = async {
            match due {
                Some(due) => tokio::time::sleep_until(due).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            written = local.file.written() => PlanWake::Written(written),
            () = removal => PlanWake::RemovalDue,
        }
    }

    async fn woken(driver: &mut Driver, wake: PlanWake) -> Effects<Self> {
        match wake {
            PlanWake::Written(written) => driver.plan_written(written).await,
            PlanWake::RemovalDue => {
                driver.local.removal = None;
                driver.executor.remove_areas(std::mem::take(&mut driver.local.merged));
                Ok(Vec::new())
            }
            PlanWake::CopyEdited { given, theirs } => driver.copy_edited(given, theirs).await,
        }
    }

    fn limits_input(ledger: &PlanLedger, limits: &LimitsHandle, spent: Vec<(String, Total)>) -> Option<Event> {
        let run = &ledger.machine;
        let others = Others { taken: limits.taken(run.plan()), spent, hold: limits.held(crate::now()) };
        (!run.knows(&others)).then_some(Event::Others(others))
    }

    fn held_resources(machine: &Run) -> Vec<(&TaskId, &str)> {
        let of_task = |task| resources(machine, task).iter().map(move |name| (task, name.as_str()));
        machine.begun().flat_map(of_task).collect()
    }

    fn tasks_in_progress(machine: &Run) -> BTreeSet<&TaskId> {
        machine.under_way().collect()
    }

    async fn close(driver: &mut Driver) -> Result<(), Stopping> {
        driver.write_last().await?;
        let kept = driver.executor.tidy(driver.ledger.machine.state()).await;
        let path = driver.executor.state.join("report.md");
        let text = report::markdown(&driver.ledger, &kept);
        let written = disk::at(&path, move |disk, path| disk.write_private(path, text.as_bytes())).await;
        let report = match written {
            Ok(()) => Some(path.display().to_string()),
            Err(error) => {
                tracing::warn!("{}: {error}", path.display());
                None
            }
        };
        if let Err(error) = report::write_usage(&driver.ledger, &driver.executor.state).await {
            tracing::warn!("{error}");
        }
        driver.over(report).await
    }

    async fn ended(app: &App, spec: &PlanSpec) {
        lock(&app.plans.services.in_place).remove(&spec.id);
        app.plans.clean_up(Some(&spec.file)).await;
    }
}

fn resources<'a>(run: &'a Run, task: &TaskId) -> &'a [String] {
    run.plan().task(task.as_str()).map_or(&[], |task| &task.exclusive_resources)
}
