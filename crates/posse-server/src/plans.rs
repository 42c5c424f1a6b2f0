//! Plans: tasks, each carried out by a headless session of its own. `posse_core::plan` decides; the driver of runs drives it.

mod adopt;
pub(crate) mod areas;
pub(crate) mod begin;
pub(crate) mod briefing;
mod driver;
pub(crate) mod executor;
mod keep;
mod messages;
mod place;
pub(crate) mod plan_file;
mod report;
mod view;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use posse_api::{PlanSpec, PlanView};
use posse_core::ids::RunId;
use posse_core::plan::edit::{Mark, write};
use posse_core::plan::file::Isolation;
use posse_core::plan::machine::Event;
use posse_core::plan::names::plan_slug;
use posse_core::plan::{Plan, Record, State, TaskId, TaskStatus};
use posse_core::time::Wall;
use tokio::sync::watch;

use crate::api::App;
use crate::disk::{self, Disk};
use crate::run::LaunchContext;
use crate::run::{RunLedger, Supervisor, SupervisorError, Workflow, lock};
use areas::{Areas, Ground};
pub(crate) use begin::PlanParams;
use driver::PlanLocal;
use executor::PlanWork;

pub(crate) type Plans = Supervisor<PlanWork>;
type PlanLedger = RunLedger<PlanWork>;

/// State that all runs of plans share.
#[derive(Clone, Default)]
pub(crate) struct PlanShared {
    /// The checkouts in which sessions of active runs work.
    in_place: Arc<Mutex<HashMap<RunId, PathBuf>>>,
    /// Serializes the removal of what runs left behind.
    cleaning: Arc<tokio::sync::Mutex<()>>,
}

impl Plans {
    /// Starts a run of a plan, or resumes the one that uses the file. Answered when that is journaled.
    pub(crate) async fn begin(
        &self,
        app: &App,
        wanted: PlanParams,
        context: LaunchContext,
    ) -> Result<PlanView, SupervisorError> {
        let _starting = self.starting.lock().await;
        let file = real_file(&wanted.file).await?;
        if wanted.try_now {
            self.services.limits.forget_hold(&wanted.provider);
        }
        if let Some(id) = self.journals.using(&file).await? {
            self.provide_context(app, id, context).await?;
            if wanted.try_now {
                self.tell(id, Event::TryNow).await;
            }
            return self.show(id).await;
        }
        let last = self.last(&file).await?;
        let files = last.as_ref().map(|last| self.state_of(last.spec.id));
        let (of_spec, with_context) = (app.clone(), context.clone());
        let look = move |disk: &Disk| {
            let spec = begin::spec(disk, &of_spec, wanted, file, last.as_ref().zip(files.as_deref()), &with_context)?;
            Ok::<_, SupervisorError>((spec, last))
        };
        let (mut spec, last) = disk::run(look).await?;
        for i in 0..spec.settings.levels.len() {
            spec.settings.levels[i].spent = self.spent(&spec.settings.levels[i], &PlanWork::fields(&spec)).await?;
        }
        let areas = self.find_place(&mut spec, last.as_ref()).await?;
        self.adopt(&areas, &mut spec, last.as_ref()).await?;
        let opened = self.opened(&spec, Ok(areas)).await;
        self.create(app, spec, opened, context).await
    }

    /// Provides the environment of sessions, but not before the runs of the last daemon are resumed.
    pub(crate) async fn give_context(
        &self,
        app: &App,
        id: RunId,
        context: LaunchContext,
    ) -> Result<(), SupervisorError> {
        let _starting = self.starting.lock().await;
        self.provide_context(app, id, context).await
    }

    /// Opens what the driver of a run in these areas needs.
    async fn opened(&self, spec: &PlanSpec, areas: Result<Areas, SupervisorError>) -> (PlanWork, PlanLocal) {
        if let (Isolation::InPlace, Ok(areas)) = (spec.git.isolation, &areas) {
            lock(&self.shared.in_place).insert(spec.id, areas.root().to_owned());
        }
        let areas = areas.map(Arc::new).map_err(|error| Arc::new(error.into()));
        let local = PlanLocal::open(spec, &self.state_of(spec.id)).await;
        (PlanWork { areas, no_checks: watch::Sender::new(false) }, local)
    }

    /// A person answers a task that asked, of a plan that runs or not.
    pub(crate) async fn answer(&self, file: &str, task: &str, answer: String) -> Result<(), SupervisorError> {
        let asks = |record: &Record, id: &TaskId, _| match record.status {
            TaskStatus::Suspended => Ok(()),
            _ => Err(SupervisorError::NotAsking(id.clone())),
        };
        self.change(
            file,
            task,
            asks,
            |task| Event::Answered { task, answer: answer.clone() },
            |record| {
                record.answer = Some(answer.clone());
                record.status = TaskStatus::Pending;
            },
        )
        .await
    }

    /// A person wants a task to be tried again from the beginning.
    pub(crate) async fn retry(&self, file: &str, task: &str) -> Result<(), SupervisorError> {
        // While a run goes on, what is completed is being validated or merged.
        let rests = |record: &Record, id: &TaskId, runs| match record.status {
            TaskStatus::InProgress => Err(SupervisorError::Busy(id.clone())),
            TaskStatus::Completed if runs => Err(SupervisorError::Busy(id.clone())),
            _ => Ok(()),
        };
        self.change(file, task, rests, |task| Event::Retry { task }, |record| *record = Record::default()).await
    }

    /// Changes what has become of a task: in the run that goes on, else in the file, from which the next run begins.
    async fn change(
        &self,
        file: &str,
        task: &str,
        may: impl Fn(&Record, &TaskId, bool) -> Result<(), SupervisorError>,
        event: impl FnOnce(TaskId) -> Event,
        edit: impl FnOnce(&mut Record),
    ) -> Result<(), SupervisorError> {
        let _starting = self.starting.lock().await;
        let file = real_file(file).await?;
        let no_task = || SupervisorError::NoTask(task.to_owned());
        if let Some(id) = self.journals.using(&file).await? {
            let view = self.show(id).await?;
            let found = view.tasks.into_iter().find(|one| one.id.as_str() == task).ok_or_else(no_task)?;
            may(&found.record, &found.id, true)?;
            if self.tell(id, event(found.id)).await {
                return Ok(());
            }
        }
        let text = disk::at(&file, read).await?;
        let (plan, _) = Plan::read(&file, &text)?;
        let id = plan.task(task).ok_or_else(no_task)?.id.clone();
        let mut state = State::recorded(&plan);
        // Nothing works on it: whoever did is gone.
        let record = state.of(&id);
        if record.status == TaskStatus::InProgress {
            record.status = TaskStatus::Pending;
        }
        may(record, &id, false)?;
        edit(record);
        let written =
            write(&text, &state, &Mark::default()).map_err(|error| SupervisorError::NotWritten(error.to_string()))?;
        let replaced = disk::at(&file, move |disk, file| posse_files::replace::replace(disk, file, &written)).await;
        replaced.map_err(|error| SupervisorError::NotWritten(format!("cannot write {file}: {error}")))
    }

    async fn areas(&self, spec: &PlanSpec) -> Result<Areas, SupervisorError> {
        let (plan, _) = Plan::read(&spec.file, &spec.text)?;
        let ground = Ground {
            directory: spec.directory.clone().into(),
            state: self.state_of(spec.id),
            plan_slug: plan_slug(&plan.name, &spec.file),
            branch: spec.branch.clone(),
            make_branch: spec.git.base.is_none(),
            isolation: spec.git.isolation,
            plan_file: Some(spec.file.clone().into()),
        };
        Ok(Areas::open(ground).await?)
    }

    /// The run of this file that began last, if it began at this time or later.
    pub(crate) async fn newest_since(&self, file: &str, since: Wall) -> Result<Option<PlanView>, SupervisorError> {
        let Some(id) = self.journals.newest_of(file).await? else { return Ok(None) };
        let view = self.show(id).await?;
        Ok(Some(view).filter(|view| view.created >= since.timestamp()))
    }

    /// The view of a run without its tasks, of which there may be many.
    pub(crate) async fn show_without_tasks(&self, id: RunId) -> Result<PlanView, SupervisorError> {
        let active = lock(&self.active).get(&id).cloned();
        match active {
            Some(ledger) => Ok(view::without_tasks(&ledger, &self.state_of(id).to_string_lossy())),
            None => Ok(PlanView { tasks: Vec::new(), ..self.show(id).await? }),
        }
    }
}

/// The file itself, whatever links lead to it: one plan, one name.
pub(crate) async fn real_file(path: &str) -> Result<String, SupervisorError> {
    let unreadable = |error| SupervisorError::Unreadable { path: path.to_owned(), error };
    let real = disk::at(path, Disk::canonicalize).await.map_err(unreadable)?;
    let no_text = |path: std::ffi::OsString| SupervisorError::Wrong(format!("{} is not valid UTF-8", path.display()));
    real.into_os_string().into_string().map_err(no_text)
}

fn read(disk: &Disk, file: &Path) -> Result<String, SupervisorError> {
    disk.read_text(file).map_err(|error| SupervisorError::Unreadable { path: file.display().to_string(), error })
}
