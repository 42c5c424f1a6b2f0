//! The journals of runs: of loops, plans and pipelines alike. A run goes on when an entry is on disk and not before, and after
//! a crash it is what its entries say.

use std::path::{Path, PathBuf};
use std::time::Duration;

use posse_api::ProblemKind;
use posse_core::ids::RunId;
use posse_core::rounds::config::Notifications;
use posse_core::time::Wall;
use serde::de::DeserializeOwned;

use crate::api::App;
use crate::api::{ApiProblem, hint};
use crate::disk::{self, Disk};
use crate::hub;
use crate::notify::Notice;
use crate::store::{self, JournalEntry, Kind, StoreError};

/// How long before it is tried again when the disk refuses.
const DISK_RETRY: Duration = Duration::from_secs(1);

/// How long until people are told.
const DISK_PATIENCE: Duration = Duration::from_secs(60);

/// What is passed on when the daemon is going.
pub(crate) struct Stopping;

/// Why nothing was read or written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failed {
    #[error("the daemon is stopping")]
    Stopping,
    #[error(transparent)]
    Disk(#[from] hub::JournalError),
    #[error("an entry of the journal cannot be written as JSON: {0}")]
    NoJson(#[from] serde_json::Error),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl ApiProblem for Failed {
    fn problem(&self) -> (ProblemKind, Option<&str>) {
        match self {
            Self::Stopping => (ProblemKind::Stopping, Some(hint::AGAIN)),
            Self::Disk(_) | Self::NoJson(_) => (ProblemKind::Disk, Some("free some space; nothing was started")),
            Self::Store(error) => error.problem(),
        }
    }
}

/// Writes an entry, and publishes it when it is written.
pub(crate) async fn write(app: &App, entry: serde_json::Result<JournalEntry>) -> Result<(), Failed> {
    write_entry(app, entry?).await
}

async fn write_entry(app: &App, entry: JournalEntry) -> Result<(), Failed> {
    let entry = Box::new(entry);
    match app.ask(|reply| hub::HubCommand::Journal { entry, reply }).await {
        Ok(written) => Ok(written?),
        Err(_) => Err(Failed::Stopping),
    }
}

/// The same, however long the disk refuses: a run that goes on waits for it. Its people are told. A run whose entry cannot be
/// written as JSON stops here, because nothing is done that is not written down; that is a defect of posse.
pub(crate) async fn write_surely(
    app: &App,
    entry: serde_json::Result<JournalEntry>,
    channels: &Notifications,
) -> Result<(), Stopping> {
    let entry = match entry {
        Ok(entry) => entry,
        Err(error) => {
            tracing::error!("a run stops, this is a defect of posse: {}", Failed::NoJson(error));
            return Err(Stopping);
        }
    };
    let began = tokio::time::Instant::now();
    let mut silent = true;
    loop {
        match write_entry(app, entry.clone()).await {
            Ok(()) => return Ok(()),
            Err(Failed::Stopping) => return Err(Stopping),
            Err(error) => tracing::warn!(run = %entry.run, "the run waits: {error}"),
        }
        if silent && began.elapsed() >= DISK_PATIENCE {
            silent = false;
            app.notifier.tell(channels, disk_notice(entry.run));
        }
        tokio::time::sleep(DISK_RETRY).await;
    }
}

fn disk_notice(run: RunId) -> Notice {
    Notice {
        event: "parked",
        priority: 5,
        title: format!("run {run} waits for the disk"),
        text: "Its journal cannot be written, and nothing is done without it. It goes on when there is room again."
            .into(),
        run: Some(run.to_string()),
    }
}

/// What a journal tells.
pub(crate) trait Replay: Sized + Send + 'static {
    type Entry: DeserializeOwned;

    /// Nothing if it does not begin as one does.
    fn replay(journal: impl IntoIterator<Item = (Wall, Self::Entry)>) -> Option<Self>;
}

/// What is written down of the runs of one kind.
#[derive(Clone)]
pub(crate) struct Journals {
    kind: Kind,
    database: PathBuf,
}

impl Journals {
    pub(crate) fn new(kind: Kind, database: PathBuf) -> Self {
        Self { kind, database }
    }

    /// Those that began last, newest first.
    pub(crate) async fn list<V: DeserializeOwned>(&self, limit: usize) -> Result<Vec<V>, Failed> {
        let kind = self.kind;
        let views = self.read(move |disk, database| store::runs(disk, database, kind, limit)).await?;
        Ok(views.iter().filter_map(|view| understood(view)).collect())
    }

    pub(crate) async fn show<V: DeserializeOwned>(&self, id: RunId) -> Result<Option<V>, Failed> {
        let kind = self.kind;
        let view = self.read(move |disk, database| store::run(disk, database, kind, id)).await?;
        Ok(view.and_then(|view| understood(&view)))
    }

    /// The entries after this one, each with its number.
    pub(crate) async fn entries<E>(&self, id: RunId, after: i64) -> Result<Vec<(i64, Wall, E)>, Failed>
    where
        E: DeserializeOwned + Send + 'static,
    {
        self.read(move |disk, database| store::journal(disk, database, id, after)).await
    }

    /// A run as its journal tells it, and the number of the last entry.
    pub(crate) async fn load<L: Replay>(&self, id: RunId) -> Result<Option<(L, i64)>, Failed> {
        self.read(move |disk, database| {
            let journal: Vec<(i64, Wall, L::Entry)> = store::journal(disk, database, id, 0)?;
            let seq = journal.last().map_or(0, |(seq, ..)| *seq);
            Ok(L::replay(journal.into_iter().map(|(_, at, entry)| (at, entry))).map(|ledger| (ledger, seq)))
        })
        .await
    }

    /// The run that goes on with this state file, plan or project.
    pub(crate) async fn using(&self, what: &str) -> Result<Option<RunId>, Failed> {
        let (kind, what) = (self.kind, what.to_owned());
        self.read(move |disk, database| store::using(disk, database, kind, &what)).await
    }

    /// The run of it that began last.
    pub(crate) async fn newest_of(&self, what: &str) -> Result<Option<RunId>, Failed> {
        let (kind, what) = (self.kind, what.to_owned());
        self.read(move |disk, database| store::newest_of(disk, database, kind, &what)).await
    }

    pub(crate) async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Disk, &Path) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, Failed> {
        Ok(disk::at(&self.database, read).await?)
    }
}

/// Written by another version, it may not be.
fn understood<V: DeserializeOwned>(view: &str) -> Option<V> {
    serde_json::from_str(view).inspect_err(|error| tracing::warn!("a run is left out of the list: {error}")).ok()
}

impl Replay for posse_core::run::Ledger {
    type Entry = posse_core::run::Entry;

    fn replay(journal: impl IntoIterator<Item = (Wall, Self::Entry)>) -> Option<Self> {
        Self::replay(journal)
    }
}
