//! The journals of runs: of loops, plans and pipelines alike. A run goes on when an entry is on disk and not before, and after
//! a crash it is what its entries say.

use std::path::Path;
use std::time::Duration;

use posse_core::ids::RunId;
use posse_core::time::Wall;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::api::App;
use crate::hub;
use crate::store::{self, JournalEntry, StoreError};

/// How long before it is tried again when the disk refuses.
const DISK_RETRY: Duration = Duration::from_secs(1);

/// What is passed on when the daemon is going.
pub(crate) struct Stopping;

pub(crate) enum NotWritten {
    Stopping,
    Disk(String),
}

/// Writes an entry down, and tells everyone.
pub(crate) async fn write(app: &App, entry: JournalEntry, told: Value) -> Result<(), NotWritten> {
    let entry = Box::new(entry);
    match app.ask(|reply| hub::Command::Journal { entry, told, reply }).await {
        Ok(written) => written.map_err(NotWritten::Disk),
        Err(_) => Err(NotWritten::Stopping),
    }
}

/// The same, however long the disk refuses: a run that goes on waits for it.
pub(crate) async fn write_surely(app: &App, entry: JournalEntry, told: Value) -> Result<(), Stopping> {
    loop {
        match write(app, entry.clone(), told.clone()).await {
            Ok(()) => return Ok(()),
            Err(NotWritten::Disk(why)) => {
                tracing::warn!(run = %entry.run, "the journal cannot be written, and the run waits: {why}");
            }
            Err(NotWritten::Stopping) => return Err(Stopping),
        }
        tokio::time::sleep(DISK_RETRY).await;
    }
}

/// What a journal tells.
pub(crate) trait Replay: Sized + Send + 'static {
    type Entry: DeserializeOwned;

    /// Nothing if it does not begin as one does.
    fn replay(journal: impl IntoIterator<Item = (Wall, Self::Entry)>) -> Option<Self>;
}

/// A run as its journal tells it, and the number of the last entry. Blocking: for a thread that may wait.
pub(crate) fn load<L: Replay>(database: &Path, id: RunId) -> Result<Option<(L, i64)>, StoreError> {
    let journal: Vec<(i64, Wall, L::Entry)> = store::journal(database, id, 0)?;
    let seq = journal.last().map_or(0, |(seq, ..)| *seq);
    Ok(L::replay(journal.into_iter().map(|(_, at, entry)| (at, entry))).map(|ledger| (ledger, seq)))
}

impl Replay for posse_core::run::Ledger {
    type Entry = posse_core::run::Entry;

    fn replay(journal: impl IntoIterator<Item = (Wall, Self::Entry)>) -> Option<Self> {
        Self::replay(journal)
    }
}
