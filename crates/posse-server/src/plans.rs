//! Plans: tasks, each carried out by a headless session of its own. `posse_core::plan` decides; the driver of runs drives it.

pub(crate) mod begin;
pub(crate) mod briefing;
mod driver;
pub(crate) mod executor;
mod keep;
pub(crate) mod plan_file;
mod report;
mod view;
pub(crate) mod worktrees;

use std::path::Path;
use std::sync::Arc;

use posse_api::{PlanSpec, PlanView};
use posse_core::ids::RunId;
use posse_core::plan::edit::PlanText;
use posse_core::plan::file::Isolation;
use posse_core::plan::machine::{Event, Run};
use posse_core::plan::names::plan_slug;
use posse_core::plan::{Plan, State, TaskId, TaskStatus};
use posse_core::time::Wall;
use tokio::sync::watch;

use crate::api::App;
use crate::disk::{self, Disk};
use crate::project_files::real_path;
use crate::run::LaunchContext;
use crate::run::journal::{self, journal_entry};
use crate::run::{RunLedger, StepError, Supervisor, SupervisorError, Workflow, lock};
pub(crate) use begin::{ItemLimits, PlanParams};
use driver::PlanLocal;
use executor::PlanWork;
use plan_file::PlanFileError;
use worktrees::{Worktrees, WorktreesParams};

pub(crate) type Plans = Supervisor<PlanWork>;
type PlanLedger = RunLedger<PlanWork>;

impl Plans {
    /// Starts a run of a plan, or resumes the one that uses the file. Answered when that is journaled.
    pub(crate) async fn begin(&self, app: &App, mut wanted: PlanParams) -> Result<PlanView, SupervisorError> {
        let _starting = self.starting.lock().await;
        let request = &mut wanted.request;
        let (file, try_now) = (real_file(&request.file).await?, request.try_now);
        let context = LaunchContext { environment: std::mem::take(&mut request.environment) };
        if try_now {
            self.services.limits.forget_hold(&request.sessions.provider);
        }
        if let Some(id) = self.using(&file).await? {
            self.provide_context(app, id, context).await?;
            if try_now {
                self.tell(id, Event::TryNow).await;
            }
            return self.show(id).await;
        }
        let last = self.last(&file).await?;
        let (of_spec, with_context) = (app.clone(), context.clone());
        let look = move |disk: &Disk| {
            let (spec, plan) = begin::spec(disk, &of_spec, wanted, file, last.as_ref(), &with_context)?;
            Ok::<_, SupervisorError>((spec, plan, last))
        };
        let (mut spec, plan, last) = disk::run(look).await?;
        for i in 0..spec.settings.levels.len() {
            spec.settings.levels[i].spent = self.spent(&spec.settings.levels[i], &PlanWork::fields(&spec)).await?;
        }
        let worktrees = self.find_place(&mut spec, &plan, last.as_ref()).await?;
        self.adopt(&worktrees, &mut spec, plan, last.as_ref()).await?;
        let run = PlanWork::machine(&spec, crate::now())?;
        let opened = self.opened(&spec, Ok(worktrees), &run).await;
        self.create(app, spec, opened, context).await
    }

    /// Opens what the driver of a run in these work trees needs.
    async fn opened(
        &self,
        spec: &PlanSpec,
        worktrees: Result<Worktrees, SupervisorError>,
        run: &Run,
    ) -> (PlanWork, PlanLocal) {
        if let (Isolation::InPlace, Ok(worktrees)) = (spec.git.isolation, &worktrees) {
            lock(&self.services.in_place).insert(spec.id, worktrees.root().to_owned());
        }
        let worktrees = worktrees.map(Arc::new).map_err(StepError::from);
        let local = PlanLocal::open(spec, &self.state_of(spec.id), run).await;
        (PlanWork { worktrees, no_checks: watch::Sender::new(false) }, local)
    }

    /// Answers a task that asked, of a plan that runs or not.
    pub(crate) async fn answer(
        &self,
        app: &App,
        file: &str,
        task: &str,
        answer: String,
    ) -> Result<(), SupervisorError> {
        let asks = |status, _| match status {
            TaskStatus::Suspended => Ok(()),
            _ => Err(SupervisorError::NotAsking(task.to_owned())),
        };
        self.change(app, file, task, asks, |task| Event::Answered { task, answer: answer.clone() }).await
    }

    /// Has a task tried again from the beginning.
    pub(crate) async fn retry(&self, app: &App, file: &str, task: &str) -> Result<(), SupervisorError> {
        // While a run is active, completed tasks are being validated or merged.
        let rests = |status, runs| match status {
            TaskStatus::InProgress | TaskStatus::Completed if runs => Err(SupervisorError::Busy(task.to_owned())),
            _ => Ok(()),
        };
        self.change(app, file, task, rests, |task| Event::Retry { task }).await
    }

    /// Sends a user's change to the run of a plan. A run that is over journals it for the next one.
    async fn change(
        &self,
        app: &App,
        file: &str,
        task: &str,
        may: impl Fn(TaskStatus, bool) -> Result<(), SupervisorError>,
        event: impl Fn(TaskId) -> Event,
    ) -> Result<(), SupervisorError> {
        let _starting = self.starting.lock().await;
        let file = real_file(file).await?;
        let no_task = || SupervisorError::NoTask(task.to_owned());
        if let Some(id) = self.using(&file).await? {
            let view = self.show(id).await?;
            let found = view.tasks.into_iter().find(|one| one.id.as_str() == task).ok_or_else(no_task)?;
            may(found.status, true)?;
            if self.tell(id, event(found.id)).await {
                return Ok(());
            }
        }
        let last = self.newest_of(&file).await?.ok_or_else(|| SupervisorError::NeverRan(file.clone()))?;
        let (mut ledger, seq) = self.load(last).await?;
        if !ledger.closed {
            return Err(SupervisorError::Busy(task.to_owned()));
        }
        let id = ledger.machine.plan().task(task).ok_or_else(no_task)?.id.clone();
        may(ledger.machine.state().status(&id), false)?;
        let entry = PlanWork::happened(event(id.clone()));
        ledger.take(&entry, crate::now());
        journal::write(app, journal_entry(&ledger, &self.state_of(last), seq + 1, &entry, None)).await?;
        show_status(&file, &id, ledger.machine.state()).await;
        Ok(())
    }

    /// Returns a plan file and the state of its tasks: as the last run left them, with later changes by users.
    pub(crate) async fn state_of_plan(&self, file: &str) -> Result<(Plan, State), SupervisorError> {
        let file = real_file(file).await?;
        let text = disk::at(&file, read).await?;
        let (plan, _) = Plan::read(&file, &text)?;
        let state = match self.last(&file).await? {
            Some(last) => last.machine.state_between_runs(&plan),
            None => State::recorded(&plan),
        };
        Ok((plan, state))
    }

    async fn worktrees(&self, spec: &PlanSpec, plan: &Plan) -> Result<Worktrees, SupervisorError> {
        let params = WorktreesParams {
            directory: spec.directory.clone().into(),
            state: self.state_of(spec.id),
            plan_slug: plan_slug(&plan.name, &spec.file),
            branch: spec.branch.clone(),
            make_branch: spec.git.base.is_none(),
            isolation: spec.git.isolation,
            plan_file: Some(spec.file.clone().into()),
        };
        Ok(Worktrees::open(params).await?)
    }

    /// The run of this file that began last, if it began at this time or later.
    pub(crate) async fn newest_since(&self, file: &str, since: Wall) -> Result<Option<PlanView>, SupervisorError> {
        let Some(id) = self.newest_of(file).await? else { return Ok(None) };
        let view = self.show(id).await?;
        Ok(Some(view).filter(|view| view.created >= since.timestamp()))
    }

    pub(crate) async fn show_without_tasks(&self, id: RunId) -> Result<PlanView, SupervisorError> {
        let active = self.active_ledger(id);
        match active {
            Some(ledger) => Ok(view::without_tasks(&ledger, &self.state_of(id).to_string_lossy())),
            None => Ok(PlanView { tasks: Vec::new(), ..self.show(id).await? }),
        }
    }
}

/// Shows the status of a task in a plan file. The journal has it, so a file that cannot be written stays as it is.
async fn show_status(file: &str, task: &TaskId, state: &State) {
    let mut changed = State::default();
    changed.of(task).status = state.status(task);
    let write = move |disk: &Disk, file: &Path| -> Result<(), PlanFileError> {
        let text = disk.read_text(file)?;
        let text = PlanText::parse(&text).map_err(|_| PlanFileError::NoPlan)?.with_statuses(&changed)?;
        Ok(posse_files::replace::replace(disk, file, &text)?)
    };
    if let Err(error) = disk::at(file, write).await {
        tracing::warn!("{file} does not show the status of task {task}: {error}");
    }
}

pub(crate) async fn real_file(path: &str) -> Result<String, SupervisorError> {
    let unreadable = |error| SupervisorError::Unreadable { path: path.to_owned(), error };
    disk::at(path, real_path).await.map_err(unreadable)
}

fn read(disk: &Disk, file: &Path) -> Result<String, SupervisorError> {
    disk.read_text(file).map_err(|error| SupervisorError::Unreadable { path: file.display().to_string(), error })
}
