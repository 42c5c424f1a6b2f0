//! Pipelines: from a backlog to archived work. What is decided is decided in `posse_core::auto`; here it is done.
//!
//! A pipeline is its journal, like every run. While it goes on a task of its own drives it (`driver`), and there is one in a
//! project at most. After a crash of the daemon it is taken up again: sessions and runs of plans go on without us, what was
//! asked for and not answered is asked for again. The environment of sessions is never stored: a pipeline that must start one
//! waits until somebody comes who knows it.

mod begin;
mod briefing;
mod doing;
mod driver;
mod execute;
pub(crate) mod keeping;
mod ledger;
mod log_file;
mod logs;
mod place;
mod scan;
pub(crate) mod view;
mod watching;
mod words;

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use posse_api::{AutoEntry, AutoView, ProblemKind, WhyView};
use posse_core::auto::Standing;
use posse_core::auto::words::Event;
use posse_core::backlog::Slug;
use posse_core::ids::RunId;
use posse_core::plan::limits::Hold;
use posse_core::plan::machine::StopHow;
use posse_core::time::Wall;
use posse_term::lock::Lock;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{mpsc, oneshot};

use crate::api::ApiProblem;
use crate::api::App;
use crate::disk::{self, Disk};
use crate::driven::Driven;
use crate::journal::{self, Failed, Journals};
use crate::plans::areas::AreaError;
use crate::plans::session::Sessions;
use crate::plans::{Account, PlanError};
use crate::runs::Means;
use crate::store::Kind;
use crate::watched_files::WatchedFiles;
pub(crate) use begin::Wanted;
use doing::Doing;
use driver::{Driver, Ended};
use ledger::Ledger;

/// So many pipelines are looked at for a quota that is used up, or for what they know of an item.
const REMEMBERED: usize = 20;
/// How long a look at a backlog may take before nobody waits for it any more.
const LOOKING: Duration = Duration::from_secs(10);

/// What the driver of a pipeline is told by people. Answered when it is written down; a driver that has come to its end does
/// not.
pub(crate) enum Command {
    Event(Box<Event>, oneshot::Sender<()>),
    /// Somebody is there who knows the environment.
    Means(Box<Means>, oneshot::Sender<()>),
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum AutoError {
    #[error("there is no pipeline {0}")]
    None(RunId),
    #[error("no pipeline has ever run in {0}")]
    Never(String),
    #[error("pipeline {run} works in {directory} since {since}; one at a time")]
    InUse { run: RunId, directory: String, since: jiff::Timestamp },
    #[error("{by} works through the backlog of {directory}; one at a time")]
    Locked { by: String, directory: String },
    #[error("nothing is known of an item {0:?}")]
    NoItem(String),
    #[error("pipeline {0} is still looking at its backlog; ask again in a moment")]
    Looking(RunId),
    #[error("pipeline {0} is over; there is nothing to stop")]
    Over(RunId),
    #[error("{0}")]
    Wrong(String),
    #[error(transparent)]
    Plan(#[from] PlanError),
    #[error(transparent)]
    Journal(#[from] Failed),
}

impl ApiProblem for AutoError {
    fn problem(&self) -> (ProblemKind, Option<&str>) {
        use ProblemKind as Kind;
        match self {
            Self::None(_) | Self::Never(_) => (Kind::NoRun, None),
            Self::Locked { .. } => (Kind::InUse, None),
            Self::InUse { .. } => {
                (Kind::InUse, Some("`posse auto status` shows what it does, `posse auto stop` stops it"))
            }
            Self::NoItem(_) => (Kind::NoItem, Some("`posse auto items` shows those there are")),
            Self::Looking(_) => (Kind::Looking, None),
            Self::Over(_) => (Kind::Over, None),
            Self::Wrong(_) => (Kind::Invalid, None),
            Self::Plan(error) => error.problem(),
            Self::Journal(error) => error.problem(),
        }
    }
}

impl From<AreaError> for AutoError {
    fn from(error: AreaError) -> Self {
        Self::Plan(PlanError::Area(error))
    }
}

/// What the sessions of a pipeline are heard to do, each for an item. Only for who looks now.
type AllHeard = Arc<Mutex<HashMap<RunId, BTreeMap<Slug, String>>>>;

fn guard<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The pipelines that go on.
#[derive(Clone)]
pub(crate) struct Autos {
    driven: Driven<Command>,
    journals: Journals,
    heard: AllHeard,
    /// Held by whoever looks whether a project has a pipeline, and acts on it.
    beginning: Arc<tokio::sync::Mutex<()>>,
    files: WatchedFiles,
    /// Where pipelines keep their files.
    state: PathBuf,
    executable: PathBuf,
}

impl Autos {
    pub(crate) fn new(files: WatchedFiles, database: PathBuf, state: PathBuf, executable: PathBuf) -> Self {
        let (driven, heard, beginning) = Default::default();
        Self { driven, journals: Journals::new(Kind::Auto, database), heard, beginning, files, state, executable }
    }

    /// Begins a pipeline. One that waits in this project for somebody who knows the environment goes on instead; one that
    /// goes on already is left alone. Answered when it is written down.
    pub(crate) async fn begin(&self, app: &App, wanted: Wanted, means: Means) -> Result<AutoView, AutoError> {
        let _beginning = self.beginning.lock().await;
        let directory = begin::project(&wanted.directory).await?;
        if let Some(run) = self.journals.using(&directory).await? {
            let view = self.show(run).await?;
            if !view.waits {
                return Err(AutoError::InUse { run, directory, since: view.created });
            }
            self.give(app, run, means).await?;
            return self.show(run).await;
        }
        let last = self.last(&directory).await?;
        let lock = self.lock(&directory, &wanted.config.state_dir).await?;
        let (of_spec, with_means) = (app.clone(), means.clone());
        let look = move |disk: &Disk| begin::spec(disk, &of_spec, wanted, directory, last.as_ref(), &with_means);
        let mut spec = disk::run(look).await?;
        let (id, state) = (spec.id, self.state_of(spec.id));
        begin::branches(&mut spec, &state).await?;
        let run = id.to_string();
        let account = Account { run: &run, file: None, item: None, project: &spec.directory };
        for level in &mut spec.settings.levels {
            level.spent = app.plans.spent_by(level, &account).await?;
        }
        let ledger = Ledger::new(spec.clone(), crate::now());
        let entry = AutoEntry::Created { spec: Box::new(spec) };
        journal::write(app, driver::journal_entry(&ledger, &state, 1, &entry)).await?;
        let view = view::auto_view(&ledger, &state.to_string_lossy());
        self.drive(app, ledger, 1, Some(means), lock);
        Ok(view)
    }

    /// Tells a pipeline that somebody is there who knows the environment.
    pub(crate) async fn go_on(&self, app: &App, id: RunId, means: Means) -> Result<AutoView, AutoError> {
        let _beginning = self.beginning.lock().await;
        self.show(id).await?;
        self.give(app, id, means).await?;
        self.show(id).await
    }

    async fn give(&self, app: &App, id: RunId, means: Means) -> Result<(), AutoError> {
        if self.driven.tell(id, |taken| Command::Means(Box::new(means.clone()), taken)).await {
            return Ok(());
        }
        let (ledger, seq) = self.load(id).await?;
        if !ledger.closed {
            let lock = self.lock(&ledger.spec.directory, &ledger.spec.config.state_dir).await?;
            self.drive(app, ledger, seq, Some(means), lock);
        }
        Ok(())
    }

    pub(crate) async fn stop(&self, id: RunId, how: StopHow) -> Result<(), AutoError> {
        self.show(id).await?;
        match self.tell(id, Event::Stop(how)).await {
            true => Ok(()),
            false => Err(AutoError::Over(id)),
        }
    }

    /// A person wants an item to be taken up again. Only by a pipeline that goes on; the next one is told when it begins.
    pub(crate) async fn retry(&self, app: &App, id: RunId, item: &str) -> Result<(), AutoError> {
        let slug = slug(item)?;
        let known = tokio::time::timeout(LOOKING, self.knows(app, id, &slug)).await;
        if !known.map_err(|_| AutoError::Looking(id))?? {
            return Err(AutoError::NoItem(item.to_owned()));
        }
        match self.tell(id, Event::Retry { item: slug }).await {
            true => Ok(()),
            false => Err(AutoError::Over(id)),
        }
    }

    /// Whether a pipeline knows of an item. If it is just looking at its backlog, that is waited for.
    async fn knows(&self, app: &App, id: RunId, item: &Slug) -> Result<bool, AutoError> {
        let mut events = app.events.subscribe();
        loop {
            let (Ledger { pipeline, closed, .. }, _) = self.load(id).await?;
            if pipeline.why(item).is_some() {
                return Ok(true);
            }
            if closed || !pipeline.is_looking() {
                return Ok(false);
            }
            loop {
                match events.recv().await {
                    Ok(event) if event.body.entry_of().is_some_and(|(run, _)| run == id) => break,
                    Ok(_) => {}
                    Err(RecvError::Lagged(_)) => break,
                    Err(RecvError::Closed) => return Err(Failed::Stopping.into()),
                }
            }
        }
    }

    /// Whether the driver of this pipeline has written it down.
    async fn tell(&self, id: RunId, event: Event) -> bool {
        self.driven.tell(id, |taken| Command::Event(Box::new(event), taken)).await
    }

    /// Takes up the pipelines that were going on when the last daemon ended.
    pub(crate) async fn take_up(&self, app: &App, runs: Vec<RunId>) {
        // A quota that is used up stays so, whoever found out.
        for view in self.list(REMEMBERED).await.unwrap_or_default() {
            if let Some(hold) = view.hold {
                let until = Wall(hold.until.as_millisecond());
                app.plans.hold(&view.provider, &Hold { until, reason: hold.reason, known: true });
            }
        }
        for id in runs {
            let _beginning = self.beginning.lock().await;
            if self.driven.has(id) {
                continue;
            }
            if let Err(error) = self.take_up_one(app, id).await {
                tracing::error!("pipeline {id} cannot be taken up: {error}");
            }
        }
    }

    async fn take_up_one(&self, app: &App, id: RunId) -> Result<(), AutoError> {
        let (ledger, seq) = self.load(id).await?;
        let lock = self.lock(&ledger.spec.directory, &ledger.spec.config.state_dir).await?;
        self.drive(app, ledger, seq, None, lock);
        Ok(())
    }

    async fn lock(&self, directory: &str, state: &str) -> Result<Lock, AutoError> {
        begin::lock(directory, state, &self.state).await
    }

    /// All pipelines, newest first.
    pub(crate) async fn list(&self, limit: usize) -> Result<Vec<AutoView>, AutoError> {
        let views = self.journals.list(limit).await?.into_iter();
        Ok(views.map(|view| self.with_doing(view)).collect())
    }

    pub(crate) async fn show(&self, id: RunId) -> Result<AutoView, AutoError> {
        Ok(self.with_doing(self.journals.show(id).await?.ok_or(AutoError::None(id))?))
    }

    fn with_doing(&self, view: AutoView) -> AutoView {
        let heard = guard(&self.heard);
        match heard.get(&view.id) {
            Some(heard) => view::with_activity(view, heard),
            None => view,
        }
    }

    /// Why an item stands as it does, as the newest pipeline of this project knows it.
    pub(crate) async fn why(&self, directory: &str, item: &str) -> Result<WhyView, AutoError> {
        let directory = begin::project(Path::new(directory)).await?;
        let last = self.last(&directory).await?.ok_or_else(|| AutoError::Never(directory.clone()))?;
        let item = slug(item)?;
        let mut why = view::why(&last, &item).ok_or_else(|| AutoError::NoItem(item.to_string()))?;
        // Of what has ended a pipeline hands on only how; who did it knows the rest.
        if why.item.standing == Standing::Ended && why.history.len() <= 1 {
            let of_project = self.list(REMEMBERED).await?.into_iter().filter(|view| view.directory == directory);
            for before in of_project.filter(|view| view.id != last.spec.id) {
                let known = self.load(before.id).await.ok().and_then(|(ledger, _)| view::why(&ledger, &item));
                if let Some(known) = known.filter(|known| known.history.len() > 1) {
                    why.history = known.history;
                    break;
                }
            }
        }
        Ok(why)
    }

    pub(crate) async fn journal(&self, id: RunId, after: i64) -> Result<Vec<(i64, Wall, AutoEntry)>, AutoError> {
        Ok(self.journals.entries(id, after).await?)
    }

    /// The pipeline of this project that began last.
    async fn last(&self, directory: &str) -> Result<Option<Ledger>, AutoError> {
        match self.journals.newest_of(directory).await? {
            Some(id) => Ok(self.load(id).await.ok().map(|(ledger, _)| ledger)),
            None => Ok(None),
        }
    }

    async fn load(&self, id: RunId) -> Result<(Ledger, i64), AutoError> {
        self.journals.load(id).await?.ok_or(AutoError::None(id))
    }

    fn state_of(&self, id: RunId) -> PathBuf {
        self.state.join(id.as_str())
    }

    /// Drives it from now on.
    fn drive(&self, app: &App, ledger: Ledger, seq: i64, means: Option<Means>, lock: Lock) {
        let id = ledger.spec.id;
        let (commands, inbox) = self.driven.enter(id);
        let (tell, told) = mpsc::unbounded_channel();
        let sessions = Sessions { app: app.clone(), files: self.files.clone(), executable: self.executable.clone() };
        let doing =
            Doing { spec: Arc::new(ledger.spec.clone()), sessions, means, state: self.state_of(id), told: tell };
        let (app, of_all, heard) = (app.clone(), app.clone(), self.heard.clone());
        let (spec, files) = (&ledger.spec, &app.plans.stop_files);
        let stop_files = files.watch(Path::new(&spec.directory), &spec.config.state_dir, id, spec.asked);
        let others = app.plans.listen(id);
        let parts = driver::Parts { ledger, seq, app, doing, told, commands: inbox, heard, stop_files, others };
        let driver = Driver::new(parts);
        let (driven, heard) = (self.driven.clone(), self.heard.clone());
        crate::spawn(async move {
            let ended = driver.drive().await;
            drop(lock);
            if let Ended::Over = ended {
                driven.leave(id, &commands);
                guard(&heard).remove(&id);
                crate::plans::keeping::tidy(&of_all).await;
            }
        });
    }
}

fn slug(item: &str) -> Result<Slug, AutoError> {
    item.parse().map_err(|_| AutoError::NoItem(item.to_owned()))
}
