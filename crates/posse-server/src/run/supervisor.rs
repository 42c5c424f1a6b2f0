//! The runs of one kind: creates, resumes, stops and lists them.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use posse_api::RunEntry;
use posse_core::engine::StopHow;
use posse_core::engine::hold::Hold;
use posse_core::ids::RunId;
use posse_core::plan::budget::{Level, Line, Of, Total};
use posse_core::time::Wall;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::sync::{OwnedMutexGuard, mpsc, oneshot};

use super::driver::Command;
use super::journal::{self, Failed, journal_entry};
use super::ledger::RunLedger;
use super::shared_limits::SharedLimits;
use super::stop_file::StopFiles;
use super::{EntryOf, InputOf, SpecFields, SupervisorError, Workflow, lock};
use crate::api::App;
use crate::disk::{self, Disk};
use crate::run::LaunchContext;
use crate::store::{self, StoreError, UsageOf};
use crate::watched_files::WatchedFiles;

/// The number of newest runs that are searched for a usage limit.
const HOLDS_SEARCHED: usize = 100;

/// The runs that have a driver. The database has how a run began and how it ended.
pub(crate) type ActiveRuns<W> = Arc<Mutex<HashMap<RunId, ActiveRun<W>>>>;

pub(crate) struct ActiveRun<W: Workflow> {
    /// The ledger, as the driver publishes it.
    pub(super) ledger: Option<Arc<RunLedger<W>>>,
    commands: UnboundedSender<Command<W>>,
}

#[derive(Clone)]
pub(crate) struct RunServices {
    pub(crate) files: WatchedFiles,
    pub(crate) limits: SharedLimits,
    pub(crate) stop_files: StopFiles,
    pub(crate) database: PathBuf,
    pub(crate) executable: PathBuf,
    /// The checkouts in which sessions of active plans work.
    pub(crate) in_place: Arc<Mutex<HashMap<RunId, PathBuf>>>,
    /// Serializes the removal of what plans left behind.
    pub(crate) cleaning: Arc<tokio::sync::Mutex<()>>,
}

impl RunServices {
    pub(crate) fn new(files: WatchedFiles, database: PathBuf, executable: PathBuf) -> Self {
        let stop_files = StopFiles::new(files.clone());
        let (limits, in_place, cleaning) = Default::default();
        Self { files, limits, stop_files, database, executable, in_place, cleaning }
    }
}

#[derive(Clone)]
pub(crate) struct Supervisor<W: Workflow> {
    pub(crate) services: RunServices,
    pub(crate) active: ActiveRuns<W>,
    /// Serializes check-then-act on the set of active runs.
    pub(crate) starting: Arc<tokio::sync::Mutex<()>>,
    /// Holds `starting` until the runs of the last daemon are resumed.
    not_resumed: Arc<Mutex<Option<OwnedMutexGuard<()>>>>,
    /// The directory of the runs' files.
    pub(crate) state: PathBuf,
}

impl<W: Workflow> Supervisor<W> {
    pub(crate) fn new(services: RunServices, state: PathBuf) -> Self {
        let starting: Arc<tokio::sync::Mutex<()>> = Arc::default();
        Self {
            not_resumed: Arc::new(Mutex::new(starting.clone().try_lock_owned().ok())),
            services,
            active: Arc::default(),
            starting,
            state,
        }
    }

    /// Journals the creation of a run and drives it.
    pub(crate) async fn create(
        &self,
        app: &App,
        spec: W::Spec,
        (work, local): (W, W::Local),
        context: LaunchContext,
    ) -> Result<W::View, SupervisorError> {
        let ledger = RunLedger::new(spec.clone(), crate::now())?;
        let files = self.state_of(W::fields(&spec).id);
        let entry = RunEntry::Created { spec: Box::new(spec) };
        journal::write(app, journal_entry(&ledger, &files, 1, &entry, None)).await?;
        let view = W::view(&ledger, &files.to_string_lossy());
        self.drive(app, ledger, 1, (work, local), Some(context));
        Ok(view)
    }

    /// Hands the environment of sessions to the driver of a run. Returns whether there is one.
    pub(crate) async fn hand_context(&self, id: RunId, context: &LaunchContext) -> bool {
        self.tell_driver(id, |taken| Command::Context(context.clone(), taken)).await
    }

    /// Provides the environment of sessions. A run that no driver serves is resumed.
    pub(crate) async fn provide_context(
        &self,
        app: &App,
        id: RunId,
        context: LaunchContext,
    ) -> Result<(), SupervisorError> {
        if self.hand_context(id, &context).await {
            return Ok(());
        }
        let (ledger, seq) = self.load(id).await.map_err(|error| match error {
            SupervisorError::NoRun { id, .. } => {
                SupervisorError::NoJournal { id, why: "its journal does not begin as one does".into() }
            }
            SupervisorError::Journal(Failed::Store(error)) if error.is_of_content() => {
                SupervisorError::NoJournal { id, why: error.to_string() }
            }
            error => error,
        })?;
        if !ledger.closed {
            let opened = W::open(self, &ledger).await?;
            self.drive(app, ledger, seq, opened, Some(context));
        }
        Ok(())
    }

    /// Resumes the runs that were active when the last daemon ended. No other run is started before.
    pub(crate) async fn resume_all(&self, app: &App, runs: Vec<RunId>) {
        let not_resumed = lock(&self.not_resumed).take();
        let mut loaded = Vec::new();
        for id in runs {
            match self.load(id).await {
                Ok(run) => loaded.push(run),
                Err(error) => tracing::error!("run {id} cannot be resumed: {error}"),
            }
        }
        // Before the first run is resumed, which may want what another one has.
        loaded.iter().for_each(|(ledger, _)| self.services.limits.adopt(ledger));
        self.restore_holds().await;
        for (ledger, seq) in loaded {
            match W::open(self, &ledger).await {
                Ok(opened) => self.drive(app, ledger, seq, opened, None),
                Err(error) => {
                    tracing::error!("run {} cannot be resumed: {error}", W::fields(&ledger.spec).id);
                }
            }
        }
        drop(not_resumed);
    }

    /// A usage limit holds even if the run that ran into it is over.
    async fn restore_holds(&self) {
        let views = match self.list(HOLDS_SEARCHED).await {
            Ok(views) => views,
            Err(error) => return tracing::warn!("cannot read which usage limits hold: {error}"),
        };
        for view in views {
            if let (Some(provider), Some(hold)) = (&view.provider, &view.hold) {
                let until = Wall(hold.until.as_millisecond());
                self.services.limits.hold(provider, &Hold { until, reason: hold.reason.clone(), known: true });
            }
        }
    }

    /// Provides a run with the environment of its sessions.
    pub(crate) async fn provide(
        &self,
        app: &App,
        id: RunId,
        context: LaunchContext,
    ) -> Result<W::View, SupervisorError> {
        let _starting = self.starting.lock().await;
        if !self.show(id).await?.is_active() {
            return Err(SupervisorError::Over(id));
        }
        self.provide_context(app, id, context).await?;
        self.show(id).await
    }

    pub(crate) async fn stop(&self, id: RunId, how: StopHow) -> Result<(), SupervisorError> {
        // A run that is not resumed yet is not over.
        drop(self.starting.lock().await);
        self.show(id).await?;
        match self.tell_driver(id, |taken| Command::Stop(how, taken)).await {
            true => Ok(()),
            false => Err(SupervisorError::Over(id)),
        }
    }

    /// Removes a run that is not active: its journal, and its files if no work in them waits to be merged. Branches, the audit
    /// and what sessions used stay.
    pub(crate) async fn drop_run(&self, app: &App, id: RunId) -> Result<(), SupervisorError> {
        let _starting = self.starting.lock().await;
        if self.show(id).await?.is_active() {
            return Err(SupervisorError::Active(id));
        }
        let state = self.state_of(id);
        if disk::at(&state, super::retention::holds_work).await {
            return Err(SupervisorError::HoldsWork { run: id, directory: state.display().to_string() });
        }
        journal::remove(app, id).await?;
        if let Err(error) = disk::at(&state, Disk::remove_dir_all).await
            && error.kind() != std::io::ErrorKind::NotFound
        {
            tracing::warn!("the files of dropped run {id} stay: {error}");
        }
        Ok(())
    }

    /// Hands an input to the driver of a run. Returns whether the driver has journaled it.
    pub(crate) async fn tell(&self, id: RunId, input: InputOf<W>) -> bool {
        self.tell_driver(id, |taken| Command::Input(Box::new(input), taken)).await
    }

    /// Sends a command to the driver of a run and waits for its receipt. Returns false if the driver has ended.
    async fn tell_driver(&self, id: RunId, command: impl FnOnce(oneshot::Sender<()>) -> Command<W>) -> bool {
        let (taken, answer) = oneshot::channel();
        let sent = lock(&self.active).get(&id).is_some_and(|run| run.commands.send(command(taken)).is_ok());
        sent && answer.await.is_ok()
    }

    pub(super) fn enter(&self, id: RunId) -> (UnboundedSender<Command<W>>, UnboundedReceiver<Command<W>>) {
        let (commands, inbox) = mpsc::unbounded_channel();
        lock(&self.active).insert(id, ActiveRun { ledger: None, commands: commands.clone() });
        (commands, inbox)
    }

    /// Removes a driver that has ended. A new driver of the same run stays.
    pub(super) fn leave(&self, id: RunId, commands: &UnboundedSender<Command<W>>) {
        let mut active = lock(&self.active);
        if active.get(&id).is_some_and(|run| run.commands.same_channel(commands)) {
            active.remove(&id);
        }
    }

    /// All runs, newest first.
    pub(crate) async fn list(&self, limit: usize) -> Result<Vec<W::View>, SupervisorError> {
        let mut views = Vec::new();
        for row in self.read(move |disk, database| store::runs(disk, database, W::KIND, limit)).await? {
            // Written by another version, it may not be understood.
            match serde_json::from_str(&row) {
                Ok(row) => views.push(self.current(row).await),
                Err(error) => tracing::warn!("a run is left out of the list: {error}"),
            }
        }
        Ok(views)
    }

    pub(crate) async fn show(&self, id: RunId) -> Result<W::View, SupervisorError> {
        if let Some(view) = self.active_view(id) {
            return Ok(view);
        }
        let row = self.read(move |disk, database| store::run(disk, database, W::KIND, id)).await?;
        match row.and_then(|row| serde_json::from_str(&row).ok()) {
            Some(row) => Ok(self.current(row).await),
            None => Err(no_run::<W>(id)),
        }
    }

    pub(crate) fn active_ledger(&self, id: RunId) -> Option<Arc<RunLedger<W>>> {
        lock(&self.active).get(&id)?.ledger.clone()
    }

    fn active_view(&self, id: RunId) -> Option<W::View> {
        let ledger = self.active_ledger(id)?;
        Some(W::view(&ledger, &self.state_of(id).to_string_lossy()))
    }

    /// Returns the current view of a run. The row of an active run shows its initial state; if no driver serves it yet,
    /// its journal is read.
    async fn current(&self, row: W::View) -> W::View {
        if !row.is_active() {
            return row;
        }
        if let Some(view) = self.active_view(row.id) {
            return view;
        }
        match self.load(row.id).await {
            Ok((ledger, _)) => W::view(&ledger, &row.files),
            Err(error) => {
                tracing::error!("run {} cannot be read: {error}", row.id);
                row
            }
        }
    }

    pub(crate) async fn journal(&self, id: RunId, after: i64) -> Result<Vec<(i64, Wall, EntryOf<W>)>, SupervisorError> {
        self.read(move |disk, database| store::journal(disk, database, id, after)).await
    }

    /// The active run that uses this state file, plan or project.
    pub(crate) async fn using(&self, resource: &str) -> Result<Option<RunId>, SupervisorError> {
        let resource = resource.to_owned();
        self.read(move |disk, database| store::using(disk, database, W::KIND, &resource)).await
    }

    pub(crate) async fn newest_of(&self, resource: &str) -> Result<Option<RunId>, SupervisorError> {
        let resource = resource.to_owned();
        self.read(move |disk, database| store::newest_of(disk, database, W::KIND, &resource)).await
    }

    pub(crate) async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Disk, &Path) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, SupervisorError> {
        Ok(disk::at(&self.services.database, read).await.map_err(Failed::from)?)
    }

    /// The run that used this plan file or project last. Nothing if its journal cannot be understood.
    pub(crate) async fn last(&self, resource: &str) -> Result<Option<RunLedger<W>>, SupervisorError> {
        let Some(id) = self.newest_of(resource).await? else { return Ok(None) };
        match self.load(id).await {
            Ok((ledger, _)) => Ok(Some(ledger)),
            Err(SupervisorError::NoRun { .. }) => Ok(None),
            Err(SupervisorError::Journal(Failed::Store(error))) if error.is_of_content() => {
                tracing::warn!("the journal of run {id} cannot be understood: {error}");
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    pub(crate) async fn load(&self, id: RunId) -> Result<(RunLedger<W>, i64), SupervisorError> {
        let load = move |disk: &Disk, database: &Path| {
            let journal = store::journal(disk, database, id, 0)?;
            let seq = journal.last().map_or(0, |(seq, ..)| *seq);
            Ok(RunLedger::replay(journal).map(|ledger| (ledger, seq)))
        };
        self.read(load).await?.ok_or_else(|| no_run::<W>(id))
    }

    /// The directory of a run's files.
    pub(crate) fn state_of(&self, id: RunId) -> PathBuf {
        self.state.join(id.as_str())
    }

    /// The sum spent on a level so far, by all runs that count.
    pub(crate) async fn spent(&self, level: &Level, of: &SpecFields<'_>) -> Result<Total, SupervisorError> {
        let all = UsageOf::default();
        let project = || Some(of.directory.to_owned());
        let of = match level.of {
            Of::Run => UsageOf { run: Some(of.id.to_string()), ..all },
            Of::Plan => UsageOf { plan: of.plan_file.map(str::to_owned), ..all },
            Of::Item if of.item.is_none() => return Ok(Total::default()),
            Of::Item => UsageOf { item: of.item.map(str::to_owned), project: project(), ..all },
            Of::Backlog | Of::Project => UsageOf { project: project(), ..all },
            Of::Everything => all,
        };
        let window = level.window.map(|window| i64::try_from(window.as_millis()).unwrap_or(i64::MAX));
        let window = window.map(|window| Wall(crate::now().0.saturating_sub(window)));
        let lines = self.usage(UsageOf { since: level.since.max(window), ..of }).await?;
        Ok(Total::of(lines.iter().filter(|line| level.of != Of::Backlog || line.item.is_some())))
    }

    /// The usage of sessions, oldest first.
    pub(crate) async fn usage(&self, of: UsageOf) -> Result<Vec<Line>, SupervisorError> {
        self.read(move |disk, database| store::usage(disk, database, &of)).await
    }
}

fn no_run<W: Workflow>(id: RunId) -> SupervisorError {
    SupervisorError::NoRun { kind: W::RUN, id }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plans::Plans;

    #[tokio::test]
    async fn a_driver_at_its_end_takes_nothing_and_puts_nobody_out() {
        let services = RunServices::new(WatchedFiles::start(), PathBuf::new(), PathBuf::new());
        let (plans, id) = (Plans::new(services, PathBuf::new()), RunId::from_random(7));
        let stop = || plans.tell_driver(id, |taken| Command::Stop(StopHow::Now, taken));
        assert!(!stop().await, "nobody drives it");
        let (first, inbox) = plans.enter(id);
        assert!(!tokio::join!(stop(), async { drop(inbox) }).0, "it ended before it heard of it");
        let (second, mut inbox) = plans.enter(id);
        plans.leave(id, &first);
        let takes = async {
            let Some(Command::Stop(_, taken)) = inbox.recv().await else { panic!("no stop") };
            taken.send(()).unwrap();
        };
        assert!(tokio::join!(stop(), takes).0);
        plans.leave(id, &second);
        assert!(!stop().await, "nobody drives it any more");
    }
}
