//! Plans: tasks, each carried out by a headless session of its own. What is decided is decided in `posse_core::plan`; here
//! it is done.
//!
//! A run of a plan is its journal, like a run of the loop. While it goes on a task of its own drives it (`driver`). After a
//! crash of the daemon it is taken up again: sessions that run go on under the keeper, what was asked for and not answered
//! is asked for again. The environment of sessions is never stored: a run that must start one waits until somebody comes
//! who knows it.

mod adopt;
pub(crate) mod areas;
pub(crate) mod begin;
pub(crate) mod briefing;
pub(crate) mod doing;
pub(crate) mod driver;
pub(crate) mod facts;
mod keep;
pub(crate) mod keeping;
mod known;
mod ledger;
mod live;
pub(crate) mod logs;
mod others;
mod place;
pub(crate) mod plan_file;
mod report;
pub(crate) mod said;
pub(crate) mod session;
mod step_error;
pub(crate) mod stop_file;
pub(crate) mod view;
pub(crate) mod words;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use posse_api::{PlanEntry, PlanRunStatus, PlanView, ProblemKind};
use posse_core::file_problem::FileProblems;
use posse_core::ids::RunId;
use posse_core::plan::budget::{Level, Line, Of, Total};
use posse_core::plan::edit::{Mark, write};
use posse_core::plan::file::Isolation;
use posse_core::plan::limits::Hold;
use posse_core::plan::machine::{Event, StopHow};
use posse_core::plan::names::plan_slug;
use posse_core::plan::{Plan, Record, State, TaskId, TaskStatus};
use posse_core::time::Wall;
use tokio::sync::{OwnedMutexGuard, mpsc, oneshot, watch};

use crate::api::App;
use crate::api::{ApiProblem, hint};
use crate::disk::{self, Disk};
use crate::driven::Driven;
use crate::journal::{self, Failed, Journals};
use crate::runs::Means;
use crate::store::{self, Kind, UsageOf};
use crate::watched_files::WatchedFiles;
use areas::{AreaError, Areas, Ground};
pub(crate) use begin::Wanted;
use doing::Doing;
use driver::{Driver, Ended};
use ledger::Ledger;
pub(crate) use ledger::verdict_word;
use live::Live;
use others::Shared;
pub(crate) use others::{Listening, News};
use session::Sessions;
pub(crate) use step_error::StepError;
use stop_file::StopFiles;

/// So many runs are looked at for a quota that is used up.
const REMEMBERED: usize = 100;

/// What the driver of a run is told by people. Answered when it is written down; a driver that has come to its end does not.
pub(crate) enum Command {
    Event(Box<Event>, oneshot::Sender<()>),
    /// Somebody is there who knows the environment.
    Means(Box<Means>, oneshot::Sender<()>),
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum PlanError {
    #[error("there is no run {0} of a plan")]
    None(RunId),
    #[error("cannot read {path}: {error}")]
    Unreadable { path: String, error: std::io::Error },
    #[error("{0}")]
    Invalid(FileProblems),
    #[error("a process in a terminal may not begin a plan with commands that you have not confirmed: gate {0}")]
    Unconfirmed(String),
    #[error("there is no task {0:?} in this plan")]
    NoTask(String),
    #[error("task {0} does not ask anything")]
    NotAsking(TaskId),
    #[error("a session works on task {0}; stop the plan first, or wait")]
    Busy(TaskId),
    #[error("{0}")]
    Wrong(String),
    #[error("{program} is not installed, or not in the PATH of this shell")]
    NoProgram { program: String, install: String },
    #[error(transparent)]
    Area(#[from] AreaError),
    #[error("run {id} of this plan is not over, and what it did cannot be read: {why}")]
    NoJournal { id: RunId, why: String },
    #[error("the run of this plan is over; there is nothing to stop")]
    Over,
    #[error("{0}")]
    NotWritten(String),
    #[error(transparent)]
    Journal(#[from] Failed),
}

impl ApiProblem for PlanError {
    fn problem(&self) -> (ProblemKind, Option<&str>) {
        use ProblemKind as Kind;
        match self {
            Self::None(_) => (Kind::NoRun, None),
            Self::Unreadable { .. } => (Kind::NoFile, Some("`posse plan init` makes a sample plan")),
            Self::Invalid(_) => (Kind::InvalidPlan, Some("`posse plan check` shows every mistake with its place")),
            Self::NoTask(_) => (Kind::NoTask, Some("`posse plan status` shows those there are")),
            Self::NotAsking(_) => (Kind::NotAsking, Some("`posse plan status` shows who asks")),
            Self::Unconfirmed(_) => (Kind::FromTerminal, Some(hint::OUTSIDE)),
            Self::Busy(_) => (Kind::Busy, None),
            Self::Wrong(_) => (Kind::Invalid, None),
            Self::NoProgram { install, .. } => (Kind::NoProgram, Some(install)),
            Self::Area(_) => (Kind::NoArea, None),
            Self::NoJournal { .. } => (
                Kind::NoJournal,
                Some(
                    "the posse that wrote it may go on with it; or copy the plan to a file of another name, and run that",
                ),
            ),
            Self::Over => (Kind::Over, None),
            Self::NotWritten(_) => (Kind::NotWritten, None),
            Self::Journal(error) => error.problem(),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whose sessions count on a level of money.
pub(crate) struct Account<'a> {
    pub(crate) run: &'a str,
    /// The plan's file.
    pub(crate) file: Option<&'a str>,
    pub(crate) item: Option<&'a str>,
    pub(crate) project: &'a str,
}

/// The runs of plans that go on.
#[derive(Clone)]
pub(crate) struct Plans {
    driven: Driven<Command>,
    journals: Journals,
    live: Live,
    /// Held by whoever looks whether a plan runs, and acts on it.
    beginning: Arc<tokio::sync::Mutex<()>>,
    /// The same, until the runs of the last daemon are taken up: they have what they had.
    not_taken_up: Arc<Mutex<Option<OwnedMutexGuard<()>>>>,
    /// What runs share.
    shared: Shared,
    pub(crate) stop_files: StopFiles,
    /// The checkouts in which sessions work, and of which run.
    in_place: Arc<Mutex<HashMap<RunId, PathBuf>>>,
    /// Held by whoever removes what is not needed any more.
    cleaning: Arc<tokio::sync::Mutex<()>>,
    files: WatchedFiles,
    /// Where runs keep their files.
    state: PathBuf,
    executable: PathBuf,
}

impl Plans {
    pub(crate) fn new(files: WatchedFiles, database: PathBuf, state: PathBuf, executable: PathBuf) -> Self {
        let (driven, live, shared, in_place, cleaning) = Default::default();
        let journals = Journals::new(Kind::Plan, database);
        let beginning: Arc<tokio::sync::Mutex<()>> = Arc::default();
        let not_taken_up = Arc::new(Mutex::new(beginning.clone().try_lock_owned().ok()));
        let stop_files = StopFiles::new(files.clone());
        Self {
            driven,
            journals,
            live,
            beginning,
            not_taken_up,
            shared,
            stop_files,
            in_place,
            cleaning,
            files,
            state,
            executable,
        }
    }

    /// Begins a run of a plan, or goes on with the one that uses the file. Answered when it is written down.
    pub(crate) async fn begin(&self, app: &App, wanted: Wanted, means: Means) -> Result<PlanView, PlanError> {
        let _beginning = self.beginning.lock().await;
        let file = real_file(&wanted.file).await?;
        if wanted.try_now {
            self.shared.forget_hold(&wanted.provider);
        }
        if let Some(id) = self.journals.using(&file).await? {
            self.go_on(app, id, means).await?;
            if wanted.try_now {
                self.tell(id, Event::TryNow).await;
            }
            return self.show(id).await;
        }
        let last = self.last(&file).await?;
        let files = last.as_ref().map(|last| self.state_of(last.spec.id));
        let (of_spec, with_means) = (app.clone(), means.clone());
        let look = move |disk: &Disk| {
            let spec = begin::spec(disk, &of_spec, wanted, file, last.as_ref().zip(files.as_deref()), &with_means)?;
            Ok::<_, PlanError>((spec, last))
        };
        let (mut spec, last) = disk::run(look).await?;
        for i in 0..spec.settings.levels.len() {
            spec.settings.levels[i].spent = self.spent(&spec.settings.levels[i], &spec).await?;
        }
        let state = self.state_of(spec.id);
        let areas = self.find_place(&mut spec, last.as_ref()).await?;
        self.adopt(&areas, &mut spec, last.as_ref()).await?;
        let ledger = Ledger::new(spec.clone(), crate::now()).map_err(PlanError::Invalid)?;
        let entry = PlanEntry::Created { spec: Box::new(spec) };
        let files = state.to_string_lossy();
        journal::write(app, driver::journal_entry(&ledger, &files, 1, &entry, None)).await?;
        let view = view::plan_view(&ledger, &files);
        self.drive(app, ledger, 1, Ok(areas), Some(means));
        Ok(view)
    }

    /// Tells a run that somebody is there who knows the environment. Not before the runs of the last daemon are taken up:
    /// nobody else drives them then.
    pub(crate) async fn give_means(&self, app: &App, id: RunId, means: Means) -> Result<(), PlanError> {
        let _beginning = self.beginning.lock().await;
        self.go_on(app, id, means).await
    }

    /// Tells a run that somebody is there who knows the environment.
    async fn go_on(&self, app: &App, id: RunId, means: Means) -> Result<(), PlanError> {
        if self.driven.tell(id, |taken| Command::Means(Box::new(means.clone()), taken)).await {
            return Ok(());
        }
        let (ledger, seq) = self.load(id).await.map_err(|error| match error {
            PlanError::None(_) => PlanError::NoJournal { id, why: "its journal does not begin as one does".into() },
            PlanError::Journal(Failed::Store(error)) if error.is_of_content() => {
                PlanError::NoJournal { id, why: error.to_string() }
            }
            error => error,
        })?;
        if !ledger.closed {
            let areas = self.areas(&ledger.spec).await;
            self.drive(app, ledger, seq, areas, Some(means));
        }
        Ok(())
    }

    pub(crate) async fn stop(&self, id: RunId, how: StopHow) -> Result<(), PlanError> {
        // Whoever comes right after a restart waits until the run is taken up: it is not over.
        drop(self.beginning.lock().await);
        self.show(id).await?;
        match self.tell(id, Event::Stop(how)).await {
            true => Ok(()),
            false => Err(PlanError::Over),
        }
    }

    /// A person answers a task that asked, of a plan that runs or not.
    pub(crate) async fn answer(&self, file: &str, task: &str, answer: String) -> Result<(), PlanError> {
        let asks = |record: &Record, id: &TaskId, _| match record.status {
            TaskStatus::Suspended => Ok(()),
            _ => Err(PlanError::NotAsking(id.clone())),
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
    pub(crate) async fn retry(&self, file: &str, task: &str) -> Result<(), PlanError> {
        // While a run goes on, what is completed is being validated or merged.
        let rests = |record: &Record, id: &TaskId, runs| match record.status {
            TaskStatus::InProgress => Err(PlanError::Busy(id.clone())),
            TaskStatus::Completed if runs => Err(PlanError::Busy(id.clone())),
            _ => Ok(()),
        };
        self.change(file, task, rests, |task| Event::Retry { task }, |record| *record = Record::default()).await
    }

    /// Changes what has become of a task: in the run that goes on, else in the file, from which the next run begins.
    async fn change(
        &self,
        file: &str,
        task: &str,
        may: impl Fn(&Record, &TaskId, bool) -> Result<(), PlanError>,
        event: impl FnOnce(TaskId) -> Event,
        edit: impl FnOnce(&mut Record),
    ) -> Result<(), PlanError> {
        let _beginning = self.beginning.lock().await;
        let file = real_file(file).await?;
        let no_task = || PlanError::NoTask(task.to_owned());
        if let Some(id) = self.journals.using(&file).await? {
            let view = self.show(id).await?;
            let found = view.tasks.into_iter().find(|one| one.id.as_str() == task).ok_or_else(no_task)?;
            may(&found.record, &found.id, true)?;
            if self.tell(id, event(found.id)).await {
                return Ok(());
            }
        }
        let text = disk::at(&file, read).await?;
        let (plan, _) = Plan::read(&file, &text).map_err(PlanError::Invalid)?;
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
            write(&text, &state, &Mark::default()).map_err(|error| PlanError::NotWritten(error.to_string()))?;
        let replaced = disk::at(&file, move |disk, file| posse_files::replace::replace(disk, file, &written)).await;
        replaced.map_err(|error| PlanError::NotWritten(format!("cannot write {file}: {error}")))
    }

    /// Whether the driver of this run has written it down.
    async fn tell(&self, id: RunId, event: Event) -> bool {
        self.driven.tell(id, |taken| Command::Event(Box::new(event), taken)).await
    }

    /// Takes up the runs that were going on when the last daemon ended. Nobody begins another one before.
    pub(crate) async fn take_up(&self, app: &App, runs: Vec<RunId>) {
        let not_taken_up = lock(&self.not_taken_up).take();
        let mut ledgers = Vec::new();
        for id in runs {
            match self.load(id).await {
                Ok(loaded) => ledgers.push(loaded),
                Err(error) => tracing::error!("run {id} of a plan cannot be taken up: {error}"),
            }
        }
        // Of all of them, before the first goes on and wants something.
        ledgers.iter().for_each(|(ledger, _)| self.shared.adopt(ledger));
        self.remember_holds().await;
        for (ledger, seq) in ledgers {
            let areas = self.areas(&ledger.spec).await;
            self.drive(app, ledger, seq, areas, None);
        }
        drop(not_taken_up);
    }

    /// A quota that is used up stays so, also if the run that found out is over.
    async fn remember_holds(&self) {
        let views = match self.list(REMEMBERED).await {
            Ok(views) => views,
            Err(error) => return tracing::warn!("nobody knows whether a quota was used up: {error}"),
        };
        for view in views {
            if let Some(hold) = view.hold {
                let until = Wall(hold.until.as_millisecond());
                self.shared.hold(&view.provider, &Hold { until, reason: hold.reason, known: true });
            }
        }
    }

    /// Somebody who is no run of a plan and spends money as well.
    pub(crate) fn listen(&self, run: RunId) -> Listening {
        self.shared.listen(run)
    }

    /// No session of this provider before then: somebody outside of plans has found out.
    pub(crate) fn hold(&self, provider: &str, hold: &Hold) {
        self.shared.hold_all(provider, hold);
    }

    /// Until when sessions of this provider wait for the quota.
    pub(crate) fn held(&self, provider: &str, now: Wall) -> Option<Hold> {
        self.shared.held(provider, now)
    }

    fn state_of(&self, id: RunId) -> PathBuf {
        self.state.join(id.as_str())
    }

    async fn areas(&self, spec: &posse_api::PlanSpec) -> Result<Areas, PlanError> {
        let (plan, _) = Plan::read(&spec.file, &spec.text).map_err(PlanError::Invalid)?;
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

    /// Drives it from now on.
    fn drive(&self, app: &App, ledger: Ledger, seq: i64, areas: Result<Areas, PlanError>, means: Option<Means>) {
        let (id, file) = (ledger.spec.id, ledger.spec.file.clone());
        if let (Isolation::InPlace, Ok(areas)) = (ledger.spec.git.isolation, &areas) {
            lock(&self.in_place).insert(id, areas.root().to_owned());
        }
        let (commands, inbox) = self.driven.enter(id);
        let (tell, told) = mpsc::unbounded_channel();
        let sessions = Sessions { app: app.clone(), files: self.files.clone(), executable: self.executable.clone() };
        let doing = Doing {
            spec: Arc::new(ledger.spec.clone()),
            areas: areas.map(Arc::new).map_err(|error| Arc::new(error.into())),
            sessions,
            means,
            state: self.state_of(id),
            told: tell,
            no_checks: watch::Sender::new(false),
        };
        self.live.put(&ledger, &self.state_of(id).to_string_lossy());
        let (app, of_all, live) = (app.clone(), app.clone(), self.live.clone());
        let mine = self.shared.join(&ledger);
        let spec = &ledger.spec;
        let stop_files = self.stop_files.watch(Path::new(&spec.directory), &spec.config.state_dir, id, spec.asked);
        let parts = driver::Parts { ledger, seq, app, doing, told, commands: inbox, live, mine, stop_files };
        let plans = self.clone();
        crate::spawn(async move {
            if let Ended::Over = Driver::new(parts).await.drive().await {
                plans.driven.leave(id, &commands);
                plans.live.remove(id);
                lock(&plans.in_place).remove(&id);
                plans.clean_up(Some(&file)).await;
                keeping::tidy(&of_all).await;
            }
        });
    }
}

/// The file itself, whatever links lead to it: one plan, one name.
async fn real_file(path: &str) -> Result<String, PlanError> {
    let unreadable = |error| PlanError::Unreadable { path: path.to_owned(), error };
    let real = disk::at(path, Disk::canonicalize).await.map_err(unreadable)?;
    let no_text = |path: std::ffi::OsString| PlanError::Wrong(format!("{} is not valid UTF-8", path.display()));
    real.into_os_string().into_string().map_err(no_text)
}

fn read(disk: &Disk, file: &Path) -> Result<String, PlanError> {
    disk.read_text(file).map_err(|error| PlanError::Unreadable { path: file.display().to_string(), error })
}
