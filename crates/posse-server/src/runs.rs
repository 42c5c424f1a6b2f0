//! Runs: which there are, who drives them, and how one is begun, stopped and resumed.
//!
//! A run is its journal. While it is running, a task of its own drives it (`driver`); while it rests, none does. After a
//! crash of the daemon the runs that were going on are taken up again as far as that is possible without the environment
//! of their agents, which is never stored: a run that must start an agent then stops, and says so.

mod claim;
mod driver;
mod executor;
mod files;
pub(crate) mod view;

use std::path::PathBuf;
use std::sync::Arc;

use posse_api::{ProblemKind, RunView};
use posse_core::ids::{RunId, TerminalId};
use posse_core::run::{Caller, Entry, Ledger, Run, Spec, Stop};
use posse_core::time::Wall;
use tokio::sync::oneshot;

use crate::api::ApiProblem;
use crate::api::App;
use crate::disk;
use crate::run::LaunchContext;
use crate::run::journal::{self, Failed, Journals};
use crate::run::registry::DriverRegistry;
use crate::store::{self, Kind};
use crate::watched_files::WatchedFiles;
use claim::Claim;
pub(crate) use claim::ClaimError;
use driver::{Driver, Ended, LoopDriverParams};
pub(crate) use files::RunFiles;

/// How many of the newest runs are searched for a terminal. Terminals end with their runs, or soon after.
const RUNS_SEARCHED: usize = 100;

/// A command of a person to the driver of a run.
pub(crate) enum Command {
    Stop {
        why: String,
    },
    /// A client provides the environment. Answered when the driver has it; a driver that has ended does not answer.
    Came {
        means: LaunchContext,
        caller: Caller,
        taken: oneshot::Sender<()>,
    },
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum RunError {
    #[error("there is no run {0}")]
    None(RunId),
    #[error(
        "run {run} uses the state file {state_file}; follow it with `posse loop --resume {run}`, or stop it with `posse run stop {run}`"
    )]
    InUse { run: RunId, state_file: String },
    #[error(
        "run {run} goes on in {directory}, and two at once would take each other's answers; follow it with `posse loop --resume {run}`, or stop it with `posse run stop {run}`"
    )]
    Shared { run: RunId, directory: String },
    #[error(transparent)]
    Claimed(#[from] ClaimError),
    #[error("{program} is not installed, or not in the PATH of this shell")]
    NoProgram { program: String, install: String },
    #[error("run {0} is over")]
    Over(RunId),
    #[error("run {0} does not go on; there is nothing to stop")]
    Rests(RunId),
    #[error(transparent)]
    Journal(#[from] Failed),
}

impl ApiProblem for RunError {
    fn problem(&self) -> (ProblemKind, Option<&str>) {
        use ProblemKind as Kind;
        match self {
            Self::None(_) => (Kind::NoRun, Some("`posse runs` shows those there are")),
            Self::InUse { .. } | Self::Shared { .. } => (Kind::InUse, None),
            Self::Claimed(ClaimError::Held { .. }) => (Kind::Locked, None),
            Self::Claimed(ClaimError::Io { .. }) => (Kind::Disk, Some("put that right and try again")),
            Self::NoProgram { install, .. } => (Kind::NoProgram, Some(install)),
            Self::Over(_) => (Kind::Over, Some("`posse run show` says how it ended")),
            Self::Rests(_) => (Kind::Rests, Some("`posse loop --resume` goes on with it")),
            Self::Journal(error) => error.problem(),
        }
    }
}

/// Checks that all agents are installed: one error is better than five terminals that fail one by one. Other problems of a
/// provider are reported when it is started.
async fn agents_are_there(app: &App, spec: &Spec, means: &LaunchContext) -> Result<(), RunError> {
    let Some(path) = means.environment.get("PATH") else { return Ok(()) };
    for choice in spec.config.agents.values() {
        let Ok(provider) = app.provider(&choice.provider).await else { continue };
        let Some(launch) = &provider.manifest.launch else { continue };
        let (program, path) = (launch.program.clone(), path.clone());
        if disk::run(move |disk| disk.locate_program(&program, &path)).await.is_none() {
            return Err(RunError::NoProgram { program: launch.program.clone(), install: launch.install.clone() });
        }
    }
    Ok(())
}

/// The runs that go on.
#[derive(Clone)]
pub(crate) struct Runs {
    driven: DriverRegistry<Command>,
    journals: Journals,
    /// Serializes check-then-act on which runs are driven and which state files are in use.
    beginning: Arc<tokio::sync::Mutex<()>>,
    files: WatchedFiles,
}

impl Runs {
    pub(crate) fn new(files: WatchedFiles, database: PathBuf) -> Self {
        Self {
            driven: DriverRegistry::default(),
            journals: Journals::new(Kind::Loop, database),
            beginning: Arc::default(),
            files,
        }
    }

    /// Begins a run. Answered when it is written down.
    pub(crate) async fn create(&self, app: &App, spec: Spec, means: LaunchContext) -> Result<RunView, RunError> {
        let _beginning = self.beginning.lock().await;
        let state_file = spec.state_file.clone();
        if let Some(run) = self.journals.using(&state_file).await? {
            return Err(RunError::InUse { run, state_file });
        }
        self.alone_in(&spec.directory, spec.id).await?;
        let claim = Claim::take(&spec, &app.paths.home).await?;
        agents_are_there(app, &spec, &means).await?;
        let caller = Caller { hurry: true, auto_accept: Some(spec.config.handoff.auto_accept_permissions) };
        let (run, _) = Run::create(spec.clone(), crate::now());
        write(app, run.ledger(), 1, &Entry::Created { spec: Box::new(spec) }).await?;
        let view = view::run_view(run.ledger());
        drop(self.drive(app, LoopDriverParams { run, seq: 1, caller: Some((means, caller)), claim }));
        Ok(view)
    }

    /// Goes on with a run that rests; one that goes on is told that somebody is there. Answered when it goes on: what is
    /// seen of it afterwards is not the stop that came before.
    pub(crate) async fn resume(
        &self,
        app: &App,
        id: RunId,
        means: LaunchContext,
        caller: Caller,
    ) -> Result<RunView, RunError> {
        let _beginning = self.beginning.lock().await;
        if self.driven.tell(id, |taken| Command::Came { means: means.clone(), caller, taken }).await {
            return self.show(id).await;
        }
        // What is no run of the loop is not there.
        self.show(id).await?;
        let (run, seq) = self.load(id).await?;
        if run.ledger().status().is_over() {
            return Err(RunError::Over(id));
        }
        self.alone_in(&run.ledger().spec.directory, id).await?;
        let claim = Claim::take(&run.ledger().spec, &app.paths.home).await?;
        // An end that comes at once is as good as a beginning: it is written down.
        let _ = self.drive(app, LoopDriverParams { run, seq, caller: Some((means, caller)), claim }).await;
        self.show(id).await
    }

    pub(crate) async fn stop(&self, id: RunId, why: String) -> Result<(), RunError> {
        let view = self.show(id).await?;
        match self.driven.send(id, Command::Stop { why }) {
            true => Ok(()),
            false if view.status.is_over() => Err(RunError::Over(id)),
            false => Err(RunError::Rests(id)),
        }
    }

    /// Takes up the runs that were going on when the last daemon ended.
    pub(crate) async fn take_up(&self, app: &App, runs: Vec<RunId>) {
        for id in runs {
            let _beginning = self.beginning.lock().await;
            // Whoever follows it may have been faster.
            if self.driven.has(id) {
                continue;
            }
            match self.load(id).await {
                Ok((run, _)) if run.ledger().stopped.is_some() || run.ledger().status().is_over() => {}
                Ok((run, seq)) => match Claim::take(&run.ledger().spec, &app.paths.home).await {
                    Ok(claim) => drop(self.drive(app, LoopDriverParams { run, seq, caller: None, claim })),
                    Err(error) => rest(app, run.ledger(), seq, &error).await,
                },
                Err(error) => tracing::error!("run {id} cannot be taken up: {error}"),
            }
        }
    }

    /// All runs, newest first.
    pub(crate) async fn list(&self, limit: usize) -> Result<Vec<RunView>, RunError> {
        Ok(self.journals.list(limit).await?)
    }

    pub(crate) async fn show(&self, id: RunId) -> Result<RunView, RunError> {
        self.journals.show(id).await?.ok_or(RunError::None(id))
    }

    /// The run that a terminal belongs to, newest first, and the role in it.
    pub(crate) async fn of_terminal(&self, terminal: TerminalId) -> Option<(RunId, Option<String>)> {
        let runs = self.list(RUNS_SEARCHED).await.unwrap_or_default();
        runs.into_iter().find_map(|run| {
            let role = run.terminals.iter().find(|(_, id)| **id == terminal).map(|(role, _)| role.to_string());
            role.map(|role| (run.id, Some(role)))
        })
    }

    pub(crate) async fn journal(&self, id: RunId, after: i64) -> Result<Vec<(i64, Wall, Entry)>, RunError> {
        Ok(self.journals.entries(id, after).await?)
    }

    /// Response files have the same names in every run: only one may go on in a directory.
    async fn alone_in(&self, directory: &str, id: RunId) -> Result<(), RunError> {
        let directory = directory.to_owned();
        let wanted = directory.clone();
        match self.journals.read(move |disk, database| store::going_on_in(disk, database, &wanted, id)).await? {
            Some(run) => Err(RunError::Shared { run, directory }),
            None => Ok(()),
        }
    }

    async fn load(&self, id: RunId) -> Result<(Run, i64), RunError> {
        let loaded = self.journals.load::<Ledger>(id).await?;
        loaded.map(|(ledger, seq)| (Run::from(ledger), seq)).ok_or(RunError::None(id))
    }

    /// Drives the run from now on. The receiver hears when the run has begun, and nothing if it could not.
    fn drive(&self, app: &App, params: LoopDriverParams) -> oneshot::Receiver<()> {
        let id = params.run.ledger().spec.id;
        let (commands, inbox) = self.driven.enter(id);
        let (begun, begins) = oneshot::channel();
        let driver = Driver::new(params, app.clone(), self.files.clone(), inbox, begun);
        let driven = self.driven.clone();
        crate::spawn(async move {
            if let Ended::Rests = driver.drive().await {
                driven.leave(id, &commands);
            }
        });
        begins
    }
}

/// Writes down an entry of a run that is not driven.
async fn write(app: &App, ledger: &Ledger, seq: i64, entry: &Entry) -> Result<(), RunError> {
    Ok(journal::write(app, driver::journal_entry(ledger, seq, entry)).await?)
}

/// Somebody else uses the files of a run that was going on when the last daemon ended. It is theirs now, or until they are
/// done with them.
async fn rest(app: &App, ledger: &Ledger, seq: i64, why: &ClaimError) {
    let entry = Entry::Stopped { stop: Stop::Asked, why: why.to_string() };
    let mut after = ledger.clone();
    after.apply(&entry, crate::now());
    if let Err(error) = write(app, &after, seq + 1, &entry).await {
        tracing::error!("run {} cannot be taken up ({why}), and that cannot be written down: {error}", ledger.spec.id);
    }
}
