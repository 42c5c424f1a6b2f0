//! Runs of the loop. `posse_core::run` decides; the driver of runs drives them.
//!
//! After a crash of the daemon, active runs are resumed as far as possible without the environment of their agents,
//! which is never stored. A run that must start an agent then stops and reports why. A stopped run waits until a user
//! resumes it.

mod claim;
mod driver;
mod executor;
mod files;
mod view;

use posse_api::{JournalView, LoopView};
use posse_core::ids::{RunId, TerminalId};
use posse_core::run::{Caller, RunEvent, Spec};
use posse_files::versions;
use tokio::sync::oneshot;

use crate::api::App;
use crate::disk;
use crate::run::{LaunchContext, RunLedger, Supervisor, SupervisorError};
use crate::store;
use claim::Claim;
pub(crate) use claim::ClaimError;
use driver::LoopLocal;
use executor::LoopWork;
pub(crate) use files::RunFiles;

pub(crate) type Loops = Supervisor<LoopWork>;
type LoopLedger = RunLedger<LoopWork>;

/// Number of newest runs that are searched for a terminal. Terminals end with their runs, or soon after.
const RUNS_SEARCHED: usize = 100;

/// Checks that all agents are installed: one error is better than five terminals that fail one by one. Other problems of a
/// provider are reported when it is started.
async fn agents_are_there(app: &App, spec: &Spec, context: &LaunchContext) -> Result<(), SupervisorError> {
    let Some(path) = context.environment.get("PATH") else { return Ok(()) };
    for choice in spec.config.agents.values() {
        let Ok(provider) = app.provider(&choice.provider).await else { continue };
        let Some(launch) = &provider.manifest.launch else { continue };
        let (program, path) = (launch.program.clone(), path.clone());
        if disk::run(move |disk| versions::locate(disk, &program, &path)).await.is_none() {
            let (program, install) = (launch.program.clone(), launch.install.clone());
            return Err(SupervisorError::NoProgram { program, install });
        }
    }
    Ok(())
}

impl Loops {
    /// Begins a run. Answered when that is journaled.
    pub(crate) async fn begin(
        &self,
        app: &App,
        spec: Spec,
        context: LaunchContext,
    ) -> Result<LoopView, SupervisorError> {
        let _starting = self.starting.lock().await;
        let state_file = spec.state_file.clone();
        if let Some(run) = self.using(&state_file).await? {
            return Err(SupervisorError::StateInUse { run, state_file });
        }
        let claim = self.claim_alone(&spec).await?;
        agents_are_there(app, &spec, &context).await?;
        let caller = Caller { hurry: true, auto_accept: Some(spec.config.handoff.auto_accept_permissions) };
        let opened = (LoopWork::new(&spec), LoopLocal::new(Ok(claim), Some(caller), None));
        self.create(app, spec, opened, context).await
    }

    /// Resumes a stopped run; notifies an active one that a user is present. Returns once that is journaled, so that
    /// later views do not show the earlier stop.
    pub(crate) async fn resume(
        &self,
        app: &App,
        id: RunId,
        context: LaunchContext,
        caller: Caller,
    ) -> Result<LoopView, SupervisorError> {
        let _starting = self.starting.lock().await;
        if self.hand_context(id, &context).await && self.tell(id, RunEvent::Came(caller).into()).await {
            return self.show(id).await;
        }
        // Only runs of the loop can be found here.
        self.show(id).await?;
        let (ledger, seq) = self.load(id).await?;
        if ledger.machine.status().is_over() {
            return Err(SupervisorError::Over(id));
        }
        let claim = self.claim_alone(&ledger.spec).await?;
        let (begun, begins) = oneshot::channel();
        let opened = (LoopWork::new(&ledger.spec), LoopLocal::new(Ok(claim), Some(caller), Some(begun)));
        self.drive(app, ledger, seq, opened, Some(context));
        // An end that comes at once is as good as a beginning: it is journaled.
        let _ = begins.await;
        self.show(id).await
    }

    pub(crate) async fn stop_run(&self, id: RunId, why: String) -> Result<(), SupervisorError> {
        // A run that is not resumed yet does not rest.
        drop(self.starting.lock().await);
        let view = self.show(id).await?;
        match self.tell(id, RunEvent::Stop { why }.into()).await {
            true => Ok(()),
            false if view.status.is_over() => Err(SupervisorError::Over(id)),
            false => Err(SupervisorError::Rests(id)),
        }
    }

    /// The run that a terminal belongs to, newest first, and the role in it.
    pub(crate) async fn of_terminal(&self, terminal: TerminalId) -> Option<(RunId, Option<String>)> {
        let runs = self.list(RUNS_SEARCHED).await.unwrap_or_default();
        runs.into_iter().find_map(|run| {
            let role = run.terminals.iter().find(|(_, id)| **id == terminal).map(|(role, _)| role.to_string());
            role.map(|role| (run.id, Some(role)))
        })
    }

    pub(crate) async fn told(&self, id: RunId, after: i64) -> Result<Vec<JournalView>, SupervisorError> {
        self.show(id).await?;
        self.read(move |disk, database| Ok(view::told_after(store::journal(disk, database, id, 0)?, after))).await
    }

    /// The claim of a run that is to be alone in its directory: response files have the same names in every run.
    async fn claim_alone(&self, spec: &Spec) -> Result<Claim, SupervisorError> {
        let (directory, id) = (spec.directory.clone(), spec.id);
        match self.read(move |disk, database| store::going_on_in(disk, database, &directory, id)).await? {
            Some(run) => Err(SupervisorError::DirectoryInUse { run, directory: spec.directory.clone() }),
            None => Ok(self.claim(spec).await?),
        }
    }

    /// Its files are in the project: the state of all runs of the loop is the home.
    async fn claim(&self, spec: &Spec) -> Result<Claim, ClaimError> {
        Claim::take(spec, &self.state).await
    }
}
