//! Backlog pipelines: from items to archived work. `posse_core::auto` decides; the driver of runs drives it. A project has one
//! active pipeline at most.

mod agents;
mod begin;
mod driver;
mod executor;
pub(crate) mod log_file;
pub(crate) mod place;
mod scan;
mod view;
mod watching;

use std::path::Path;
use std::time::Duration;

use posse_api::{BacklogIn, BacklogView, WhyView};
use posse_core::auto::Standing;
use posse_core::auto::messages::Event;
use posse_core::backlog::Slug;
use posse_core::ids::RunId;

use crate::api::App;
use crate::disk::{self, Disk};
use crate::run::LaunchContext;
use crate::run::journal::entry_of;
use crate::run::{RunLedger, Supervisor, SupervisorError, Workflow};
use driver::BacklogLocal;
use executor::BacklogWork;

pub(crate) type Autos = Supervisor<BacklogWork>;
type AutoLedger = RunLedger<BacklogWork>;

/// The number of newest pipelines that are searched for an item.
const PIPELINES_SEARCHED: usize = 20;
/// The longest time to wait for a scan of the backlog.
const SCAN_PATIENCE: Duration = Duration::from_secs(10);

impl Autos {
    /// Starts a pipeline. One of this project that waits for the environment of its sessions is resumed instead; one that is
    /// active is left alone. Answered when that is journaled.
    pub(crate) async fn begin(&self, app: &App, mut request: BacklogIn) -> Result<BacklogView, SupervisorError> {
        let _starting = self.starting.lock().await;
        let directory = begin::project(Path::new(&request.directory)).await?;
        let context = LaunchContext { environment: std::mem::take(&mut request.environment) };
        if let Some(run) = self.using(&directory).await? {
            let view = self.show(run).await?;
            if !view.waits {
                return Err(SupervisorError::InUse { run, directory, since: view.created });
            }
            self.provide_context(app, run, context).await?;
            return self.show(run).await;
        }
        let last = self.last(&directory).await?;
        let lock = begin::lock(&directory, &request.sessions.config.state_dir, &self.state).await?;
        let (of_spec, with_context) = (app.clone(), context.clone());
        let look = move |disk: &Disk| begin::spec(disk, &of_spec, request, directory, last.as_ref(), &with_context);
        let mut spec = disk::run(look).await?;
        let state = self.state_of(spec.id);
        begin::branches(&mut spec, &state).await?;
        for i in 0..spec.settings.levels.len() {
            spec.settings.levels[i].spent = self.spent(&spec.settings.levels[i], &BacklogWork::fields(&spec)).await?;
        }
        self.create(app, spec, (BacklogWork, BacklogLocal::new(lock)), context).await
    }

    /// Lets the active pipeline of this project try an item again. A new pipeline gets such items with its request.
    pub(crate) async fn retry(&self, app: &App, directory: &str, item: &str) -> Result<(), SupervisorError> {
        let slug = slug(item)?;
        let directory = begin::project(Path::new(directory)).await?;
        let id = self.using(&directory).await?.ok_or_else(|| {
            let hint = format!("`posse auto --retry {item}` begins one that takes it up again");
            SupervisorError::Idle { directory, hint }
        })?;
        let known = tokio::time::timeout(SCAN_PATIENCE, self.knows(app, id, &slug)).await;
        if !known.map_err(|_| SupervisorError::Looking(id))?? {
            return Err(SupervisorError::NoItem(item.to_owned()));
        }
        match self.tell(id, Event::Retry { item: slug }).await {
            true => Ok(()),
            false => Err(SupervisorError::Over(id)),
        }
    }

    /// Reports whether a pipeline knows an item. If a scan is running, waits for it.
    async fn knows(&self, app: &App, id: RunId, item: &Slug) -> Result<bool, SupervisorError> {
        let mut events = app.events.subscribe();
        loop {
            let (AutoLedger { machine: pipeline, closed, .. }, _) = self.load(id).await?;
            if pipeline.why(item).is_some() {
                return Ok(true);
            }
            if closed || !pipeline.is_looking() {
                return Ok(false);
            }
            entry_of(&mut events, id).await?;
        }
    }

    /// Explains the state of an item, from the newest pipeline of this project.
    pub(crate) async fn why(&self, directory: &str, item: &str) -> Result<WhyView, SupervisorError> {
        let directory = begin::project(Path::new(directory)).await?;
        let last = self.last(&directory).await?.ok_or_else(|| SupervisorError::Never(directory.clone()))?;
        let item = slug(item)?;
        let mut why = view::why(&last, &item).ok_or_else(|| SupervisorError::NoItem(item.to_string()))?;
        // Of what has ended a pipeline hands on only how; who did it knows the rest.
        if why.item.standing == Standing::Ended && why.history.len() <= 1 {
            let of_project =
                self.list(PIPELINES_SEARCHED).await?.into_iter().filter(|view| view.directory == directory);
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
}

fn slug(item: &str) -> Result<Slug, SupervisorError> {
    item.parse().map_err(|_| SupervisorError::NoItem(item.to_owned()))
}
