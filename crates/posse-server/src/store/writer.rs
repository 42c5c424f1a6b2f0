//! The thread that writes.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SendError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Instant;

use posse_api::ProblemKind;
use posse_core::audit::Chain;
use posse_core::visible;
use rusqlite::{ToSql, Transaction, params};

use super::audit::{self, Ledger};
use super::*;
use crate::anchor::AnchorProblem;
use crate::api::ApiProblem;
use crate::run::lock;

const RETRY: Duration = Duration::from_secs(1);
/// The maximum number of refused batches kept. Beyond it the oldest are dropped: memory cannot wait for a disk that stays
/// full for this long.
const BACKLOG: usize = 10_000;

/// The result of writing one batch: the numbers that the log and the audit gave to their entries, in order.
pub(crate) type WriteResult = Result<Vec<i64>, StoreRefusal>;

type Tell = Box<dyn FnOnce(WriteResult) + Send>;

/// The reason why a batch was not written.
#[derive(Clone, Debug, thiserror::Error)]
#[error("the database cannot be written: {0}")]
pub(crate) struct StoreRefusal(#[source] pub(crate) Arc<WriteError>);

impl From<WriteError> for StoreRefusal {
    fn from(error: WriteError) -> Self {
        Self(Arc::new(error))
    }
}

impl ApiProblem for StoreRefusal {
    fn problem(&self) -> (ProblemKind, Option<&str>) {
        (ProblemKind::Disk, Some("free some space and try again"))
    }
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum WriteError {
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    #[error(transparent)]
    Text(#[from] serde_json::Error),
    #[error("cannot write {path}: {error}")]
    Head { path: PathBuf, error: io::Error },
    #[error("what came before it is not written yet")]
    Blocked,
    #[error("the thread that writes the database has ended")]
    ThreadEnded,
}

pub(crate) struct Batch {
    pub(crate) changes: Vec<Change>,
    /// Keep it and try again when the disk refuses.
    pub(crate) keep: bool,
    tell: Option<Tell>,
    /// Called when it is committed, however late.
    written: Option<Box<dyn FnOnce() + Send>>,
}

impl Batch {
    fn records(&self) -> impl Iterator<Item = TerminalId> {
        self.changes.iter().filter_map(|change| match change {
            Change::Put(record) => Some(record.id),
            Change::Drop(id) => Some(*id),
            _ => None,
        })
    }

    pub(crate) fn tell(&mut self, result: WriteResult) {
        if let Some(tell) = self.tell.take() {
            tell(result);
        }
    }

    fn tell_written(mut self, numbers: Vec<i64>) {
        self.tell(Ok(numbers));
        if let Some(written) = self.written {
            written();
        }
    }
}

enum StoreMessage {
    Batch(Batch),
    End,
}

/// Hands changes to the thread.
#[derive(Clone)]
pub(crate) struct StoreHandle(Sender<StoreMessage>);

/// The thread. Dropping it lets the thread write what is left and end.
pub(crate) struct Writer {
    pub(crate) handle: StoreHandle,
    thread: Option<JoinHandle<()>>,
    anchor_problem: AnchorProblem,
}

impl Writer {
    pub(super) fn start(connection: Connection, ledger: Ledger) -> Self {
        let anchor_problem = ledger.anchor_problem();
        let (messages, queue) = channel();
        let thread =
            std::thread::Builder::new().name("store".into()).spawn(move || run(connection, ledger, &queue)).ok();
        Self { handle: StoreHandle(messages), thread, anchor_problem }
    }

    /// The reason why the audit cannot be anchored, if there is one.
    pub(crate) fn anchor_problem(&self) -> Option<String> {
        lock(&self.anchor_problem).clone()
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let _ = self.handle.0.send(StoreMessage::End);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl StoreHandle {
    /// Written together or not at all; not tried again when the disk refuses.
    pub(crate) fn write(&self, changes: Vec<Change>, tell: impl FnOnce(WriteResult) + Send + 'static) {
        self.send(Batch { changes, keep: false, tell: Some(Box::new(tell)), written: None });
    }

    /// Like `write`, but retried until it succeeds. `tell` gets the result of the first attempt; `written` runs after
    /// the commit, however late.
    pub(crate) fn write_surely(
        &self,
        changes: Vec<Change>,
        tell: impl FnOnce(WriteResult) + Send + 'static,
        written: impl FnOnce() + Send + 'static,
    ) {
        self.send(Batch { changes, keep: true, tell: Some(Box::new(tell)), written: Some(Box::new(written)) });
    }

    /// Writes an entry of the audit. `tell` gets its number, or `None` if it could not be written at once.
    pub(crate) fn write_audit(&self, note: Note, keep: bool, tell: impl FnOnce(Option<i64>) + Send + 'static) {
        let changes = vec![Change::Audit(Box::new(note.clone()))];
        let tell = move |result| tell(log_audit(note, result));
        self.send(Batch { changes, keep, tell: Some(Box::new(tell)), written: None });
    }

    fn send(&self, batch: Batch) {
        if let Err(SendError(StoreMessage::Batch(mut unsent))) = self.0.send(StoreMessage::Batch(batch)) {
            unsent.tell(Err(WriteError::ThreadEnded.into()));
        }
    }
}

#[cfg(test)]
impl StoreHandle {
    pub(super) fn unconnected() -> (Self, impl Iterator<Item = Batch> + Send) {
        let (messages, queue) = channel();
        let batches = queue.into_iter().filter_map(|message| match message {
            StoreMessage::Batch(batch) => Some(batch),
            StoreMessage::End => None,
        });
        (Self(messages), batches)
    }
}

/// Copies an entry of the audit to the log file. Returns its number, if it was written.
fn log_audit(note: Note, result: WriteResult) -> Option<i64> {
    match result {
        Ok(numbers) => {
            let seq = numbers.first().copied()?;
            tracing::info!("{}", visible::lines(&Entry { seq, note }.to_string()));
            Some(seq)
        }
        Err(StoreRefusal(why)) => {
            tracing::warn!(terminal = %note.terminal, "the audit cannot be written: {why}");
            None
        }
    }
}

fn run(connection: Connection, ledger: Ledger, queue: &Receiver<StoreMessage>) {
    let mut desk = Desk { connection, ledger, backlog: VecDeque::new(), refusing: None };
    let mut retry_at = Instant::now();
    loop {
        let first = if desk.backlog.is_empty() {
            queue.recv().map_err(|_| RecvTimeoutError::Disconnected)
        } else {
            queue.recv_timeout(retry_at.saturating_duration_since(Instant::now()))
        };
        let mut ending = matches!(first, Err(RecvTimeoutError::Disconnected));
        let mut group = Vec::new();
        for message in first.into_iter().chain(queue.try_iter()) {
            match message {
                StoreMessage::Batch(batch) => group.push(batch),
                StoreMessage::End => ending = true,
            }
        }
        if !group.is_empty() {
            desk.commit(group);
        }
        if ending || Instant::now() >= retry_at {
            desk.retry();
            retry_at = Instant::now() + RETRY;
        }
        if ending {
            return;
        }
    }
}

struct Desk {
    connection: Connection,
    ledger: Ledger,
    backlog: VecDeque<Batch>,
    /// The error of the last attempt, if it failed. Logged once, not each time.
    refusing: Option<StoreRefusal>,
}

impl Desk {
    /// Commits a group in one transaction; if that fails, each batch on its own, so that one bad batch or the
    /// last free page decides for itself only.
    fn commit(&mut self, group: Vec<Batch>) {
        if group.len() > 1
            && self.backlog.is_empty()
            && let Ok(numbers) = self.write(&group)
        {
            self.taken();
            for (batch, numbers) in group.into_iter().zip(numbers) {
                batch.tell_written(numbers);
            }
            return;
        }
        for batch in group {
            if let Err((mut batch, why)) = self.commit_one(batch) {
                batch.tell(Err(why));
                if batch.keep {
                    self.backlog.push_back(batch);
                    if self.backlog.len() > BACKLOG {
                        self.backlog.pop_front();
                    }
                }
            }
        }
    }

    /// Gives it back, with the reason, if the disk refuses it; also if an older record of its terminal still waits, which would
    /// be written over it later.
    fn commit_one(&mut self, batch: Batch) -> Result<(), (Batch, StoreRefusal)> {
        let older = |kept: &Batch| kept.records().any(|id| batch.records().any(|own| own == id));
        if self.backlog.iter().any(older) {
            let why = self.refusing.clone().unwrap_or_else(|| WriteError::Blocked.into());
            return Err((batch, why));
        }
        match self.write(std::slice::from_ref(&batch)) {
            Ok(mut numbers) => {
                self.taken();
                batch.tell_written(numbers.pop().unwrap_or_default());
                Ok(())
            }
            Err(error) => {
                if self.refusing.is_none() {
                    tracing::warn!("the database refuses to be written: {error}");
                }
                let why = StoreRefusal::from(error);
                self.refusing = Some(why.clone());
                Err((batch, why))
            }
        }
    }

    /// Tries what was refused again, in order, as far as it goes.
    fn retry(&mut self) {
        // Each is taken out before it is tried: it does not wait for itself.
        for mut kept in std::mem::take(&mut self.backlog) {
            if self.backlog.is_empty() {
                match self.commit_one(kept) {
                    Ok(()) => continue,
                    Err((batch, _)) => kept = batch,
                }
            }
            self.backlog.push_back(kept);
        }
    }

    fn write(&mut self, group: &[Batch]) -> Result<Vec<Vec<i64>>, WriteError> {
        let mut ahead = self.ledger.draft();
        let audited = group.iter().flat_map(|batch| &batch.changes).any(|change| matches!(change, Change::Audit(_)));
        // A key follows an entry of the audit. A power cut must not lose the entry and leave what the key did.
        self.connection.pragma_update(None, "synchronous", if audited { "full" } else { "normal" })?;
        let transaction = self.connection.transaction()?;
        let mut numbers = Vec::new();
        for batch in group {
            let written = batch.changes.iter().map(|change| apply(&transaction, &mut ahead, change));
            numbers.push(written.filter_map(Result::transpose).collect::<Result<_, _>>()?);
        }
        self.ledger.commit(ahead, || transaction.commit())?;
        Ok(numbers)
    }

    fn taken(&mut self) {
        if self.refusing.take().is_some() {
            tracing::info!("the database can be written again");
        }
    }
}

/// Writes one change. Returns the number that the log or the audit gave to it.
fn apply(transaction: &Transaction<'_>, chain: &mut Chain, change: &Change) -> Result<Option<i64>, WriteError> {
    let run = |sql: &str, parameters: &[&dyn ToSql]| transaction.prepare_cached(sql)?.execute(parameters);
    match change {
        Change::Audit(note) => return audit::append(transaction, chain, note).map(Some),
        Change::Event(event) => {
            let terminal = event.terminal.map(|id| id.to_string());
            let offset = event.offset.map(u64::cast_signed);
            run(
                "INSERT INTO events (at, terminal, output_offset, body) VALUES (?1, ?2, ?3, ?4)",
                params![event.at.as_millisecond(), terminal, offset, json(&event.body)?],
            )?;
            return Ok(Some(transaction.last_insert_rowid()));
        }
        Change::Put(record) => {
            let put = "INSERT OR REPLACE INTO terminals (id, record) VALUES (?1, ?2)";
            run(put, params![record.id.as_str(), json(record)?])?;
        }
        Change::Drop(id) => {
            run("DELETE FROM terminals WHERE id = ?1", params![id.as_str()])?;
            run("DELETE FROM inputs WHERE terminal = ?1", params![id.as_str()])?;
        }
        Change::Setting(name, Some(value)) => {
            run("INSERT OR REPLACE INTO settings (name, value) VALUES (?1, ?2)", params![name, value])?;
        }
        Change::Setting(name, None) => drop(run("DELETE FROM settings WHERE name = ?1", params![name])?),
        Change::Ahead { terminal, writer, sequence } => {
            let put = "INSERT OR REPLACE INTO inputs (terminal, writer, sequence, done) VALUES (?1, ?2, ?3, 0)";
            run(put, params![terminal.as_str(), writer.0 as i64, *sequence as i64])?;
        }
        Change::Settled { terminal, writer, sequence, arrived } => {
            let key = params![terminal.as_str(), writer.0 as i64, *sequence as i64];
            if *arrived {
                run("INSERT OR REPLACE INTO inputs (terminal, writer, sequence, done) VALUES (?1, ?2, ?3, 1)", key)?;
                // One row a writer is enough: what it sent before has arrived too.
                run("DELETE FROM inputs WHERE terminal = ?1 AND writer = ?2 AND sequence < ?3", key)?;
            } else {
                run("DELETE FROM inputs WHERE terminal = ?1 AND writer = ?2 AND sequence = ?3 AND done = 0", key)?;
            }
        }
        Change::Journal(entry) => super::runs::append(transaction, entry)?,
        Change::DropRun(run) => super::runs::remove(transaction, *run)?,
        Change::Trim { before, keep } => {
            let trim = "DELETE FROM events WHERE at < ?1 OR seq <= (SELECT max(seq) FROM events) - ?2";
            run(trim, params![before, keep])?;
            // A part of the freed pages each time: a round must not hold up the next event for long.
            transaction.pragma_update(None, "incremental_vacuum", 1000)?;
        }
    }
    Ok(None)
}

pub(super) fn json<T: serde::Serialize>(value: &T) -> rusqlite::Result<String> {
    serde_json::to_string(value).map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))
}
