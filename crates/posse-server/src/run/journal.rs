//! The journals of runs: of loops, plans and backlogs. A run continues when an entry is on disk and not before. After a crash
//! its entries give the same run again.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use posse_api::{EntryView, EventBody, JournalView, LogEvent, ProblemKind, RunEntry};
use posse_core::ids::RunId;
use posse_core::plan::budget::Line;
use posse_core::review_loop::config::Notifications;
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
use crate::hub;
use crate::notify::Notice;
use crate::store::{Change, JournalEntry, RunRow, StoreError};

/// The pause between two attempts to write to a disk that refuses.
const DISK_RETRY: Duration = Duration::from_secs(1);

/// The time after which a notification is sent.
const DISK_PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Stopping;

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

pub(crate) async fn remove(app: &App, run: RunId) -> Result<(), Failed> {
    commit(app, Change::DropRun(run), vec![EventBody::RunDropped { run_id: run }]).await
}

async fn write_entry(app: &App, mut entry: JournalEntry) -> Result<(), Failed> {
    let events = std::mem::take(&mut entry.events);
    commit(app, Change::Journal(Box::new(entry)), events).await
}

async fn commit(app: &App, change: Change, events: Vec<EventBody>) -> Result<(), Failed> {
    let change = Box::new(change);
    match app.ask(|reply| hub::HubCommand::Commit { change, events, reply }).await {
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// An effect needs a journaled entry, and no other entry may replace it.
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
