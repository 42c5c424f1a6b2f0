//! The journals of runs: of loops, plans and backlogs. A run continues when an entry is on disk and not before. After a crash
//! its entries give the same run again.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use posse_api::{EntryView, EventBody, JournalView, LogEvent, ProblemKind, RunEntry, RunKind};
use posse_core::ids::RunId;
use posse_core::plan::budget::Line;
use posse_core::rounds::config::Notifications;
use posse_core::secrets::mask_json;
use posse_core::time::Wall;
use posse_core::turn::Level;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use super::{EntryOf, RunLedger, Workflow};
use crate::api::App;
use crate::api::{ApiProblem, hint};
use crate::disk::{self, Disk};
use crate::hub;
use crate::notify::Notice;
use crate::store::{self, JournalEntry, RunRow, StoreError};

/// The pause between two attempts to write to a disk that refuses.
const DISK_RETRY: Duration = Duration::from_secs(1);

/// The time after which a notification is sent.
const DISK_PATIENCE: Duration = Duration::from_secs(60);

/// The daemon stops.
pub(crate) struct Stopping;

/// An error of reading or writing a journal.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failed {
    #[error("the daemon is stopping")]
    Stopping,
    #[error(transparent)]
    Disk(#[from] hub::StoreRefusal),
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

/// Removes a run and its journal.
pub(crate) async fn remove(app: &App, run: RunId) -> Result<(), Failed> {
    match app.ask(|reply| hub::HubCommand::DropRun { run, reply }).await {
        Ok(removed) => Ok(removed?),
        Err(_) => Err(Failed::Stopping),
    }
}

async fn write_entry(app: &App, entry: JournalEntry) -> Result<(), Failed> {
    let entry = Box::new(entry);
    match app.ask(|reply| hub::HubCommand::Journal { entry, reply }).await {
        Ok(written) => Ok(written?),
        Err(_) => Err(Failed::Stopping),
    }
}

/// Writes an entry, however long the disk refuses: an active run waits for it, and a notification is sent. A run whose entry
/// cannot be written as JSON stops here, because nothing is done that is not journaled; that is a defect of posse.
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

/// A value that is read back from a journal.
pub(crate) trait Replay: Sized + Send + 'static {
    type Entry: DeserializeOwned;

    /// Returns nothing if the journal does not begin with the creation of a run.
    fn replay(journal: impl IntoIterator<Item = (Wall, Self::Entry)>) -> Option<Self>;
}

/// Returns the entry without what looks like a secret.
pub(crate) fn masked<W: Workflow>(entry: EntryOf<W>) -> EntryOf<W> {
    let by_a_person = match &entry {
        RunEntry::Created { .. } => true,
        RunEntry::Happened { event } => W::is_by_a_person(event),
        _ => false,
    };
    if by_a_person {
        return entry;
    }
    without_secrets(entry).unwrap_or_else(|error| {
        tracing::error!("an entry of a journal cannot be masked: {error}");
        let text = "something happened that cannot be shown without a secret in it";
        W::said(Level::Warning, None, text.into())
    })
}

fn without_secrets<E: Serialize + DeserializeOwned>(entry: E) -> Result<E, serde_json::Error> {
    let plain = serde_json::to_value(&entry)?;
    let mut masked = plain.clone();
    mask_json(&mut masked);
    if masked == plain { Ok(entry) } else { serde_json::from_value(masked) }
}

/// An entry as it is stored, with the usage of the session that ended with it, and with the view of the run if that is listed.
pub(crate) fn journal_entry<W: Workflow>(
    ledger: &RunLedger<W>,
    files: &Path,
    seq: i64,
    entry: &EntryOf<W>,
    usage: Option<Line>,
) -> serde_json::Result<JournalEntry> {
    let fields = W::fields(&ledger.spec);
    let row = || {
        let view = W::view(ledger, &files.to_string_lossy());
        serde_json::Result::Ok(RunRow {
            id: fields.id,
            kind: W::KIND,
            status: view.status.as_str().to_owned(),
            state_file: fields.resource.to_owned(),
            created: ledger.begun,
            view: serde_json::to_string(&view)?,
        })
    };
    Ok(JournalEntry {
        run: fields.id,
        seq,
        at: ledger.changed,
        entry: serde_json::to_string(entry)?,
        events: W::events(ledger, entry, seq),
        row: W::lists(ledger, entry).then(row).transpose()?,
        usage,
    })
}

/// The event that publishes an entry.
pub(crate) fn entry_event(run_id: RunId, seq: i64, at: Wall, entry: EntryView) -> EventBody {
    let view = JournalView { seq, at: at.timestamp(), entry };
    EventBody::RunEntry { run_id, run_seq: seq, view: Some(Box::new(view)) }
}

/// Waits for the next entry of a run. Returns earlier if events were missed.
pub(crate) async fn entry_of(events: &mut Receiver<Arc<LogEvent>>, run: RunId) -> Result<(), Failed> {
    loop {
        match events.recv().await {
            Ok(event) if event.body.entry_of().is_none_or(|(of, _)| of != run) => {}
            Ok(_) | Err(RecvError::Lagged(_)) => return Ok(()),
            Err(RecvError::Closed) => return Err(Failed::Stopping),
        }
    }
}

/// The journals of the runs of one kind.
#[derive(Clone)]
pub(crate) struct Journals {
    kind: RunKind,
    database: PathBuf,
}

impl Journals {
    pub(crate) fn new(kind: RunKind, database: PathBuf) -> Self {
        Self { kind, database }
    }

    /// The newest runs, newest first.
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

    /// The active run that uses this state file, plan or project.
    pub(crate) async fn using(&self, what: &str) -> Result<Option<RunId>, Failed> {
        let (kind, what) = (self.kind, what.to_owned());
        self.read(move |disk, database| store::using(disk, database, kind, &what)).await
    }

    /// The newest run that used it.
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// Nothing is done that is not written down, and nothing else is written down in its place.
    #[tokio::test]
    async fn entry_that_cannot_be_serialized_is_an_error_and_is_not_written() {
        let home = tempfile::tempdir().unwrap();
        let (app, mut hub) = App::played(home.path());
        let no_json = || Err(serde_json::to_string(&BTreeMap::from([([1, 2], 3)])).unwrap_err());
        assert!(matches!(write(&app, no_json()).await, Err(Failed::NoJson(_))));
        assert!(write_surely(&app, no_json(), &Notifications::default()).await.is_err());
        assert!(hub.try_recv().is_err(), "the store is asked for nothing");
    }
}
