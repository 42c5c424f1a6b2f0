//! The journal: one SQLite database, written by one thread.
//!
//! Callers hand over batches of changes and do not wait. The thread commits the batches that have piled up together and
//! reports the result of each. If the disk refuses, the batches that must not be lost are kept and tried again.

mod audit;
mod runs;
mod writer;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use posse_api::{LogEvent, LogQuery, RunKind};
use posse_core::audit::{Entry, Note};
use posse_core::ids::{RunId, TerminalId, WriterId};
use rusqlite::types::Type;
use rusqlite::{Connection, OpenFlags, Params, Row};

use crate::anchor::Anchor;
use crate::database;
use crate::disk::{self, Disk};
use crate::record::Record;
pub(crate) use audit::{Checked, audit_hashes, head_path as audit_head, read_audit, verify_audit};
pub(crate) use runs::{
    JournalEntry, RunRow, UsageOf, going_on_in, journal, kind_of, newest_of, run, runs, usage, using,
};
#[cfg(test)]
pub(crate) use writer::{Batch, WriteError};
pub(crate) use writer::{StoreHandle, StoreRefusal, WriteResult, Writer};

/// The schema, one step per version of the database.
pub(crate) const STEPS: &[&str] = &[include_str!("store/schema/001.sql")];

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("cannot use the database {path}: {error}")]
    Sqlite { path: PathBuf, error: rusqlite::Error },
    #[error("the database {path} is damaged: {why}")]
    Damaged { path: PathBuf, why: String },
    #[error("the database {0} is not a file: move it away")]
    NotAFile(PathBuf),
    #[error(
        "the database {path} was written by a newer posse (schema {found}, this one knows {known}); \
         use that one, or set POSSE_HOME to another directory"
    )]
    Newer { path: PathBuf, found: usize, known: usize },
}

impl StoreError {
    pub(crate) fn of(path: &Path, error: rusqlite::Error) -> Self {
        let path = path.to_owned();
        if database::is_damage(&error) {
            Self::Damaged { path, why: error.to_string() }
        } else {
            Self::Sqlite { path, error }
        }
    }

    /// The database can be read, but not what stands in it.
    pub(crate) fn is_of_content(&self) -> bool {
        matches!(self, Self::Sqlite { error: rusqlite::Error::FromSqlConversionFailure(..), .. })
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Change {
    Event(Box<LogEvent>),
    Put(Box<Record>),
    Drop(TerminalId),
    /// A setting, or its end.
    Setting(&'static str, Option<String>),
    /// This input is about to be sent.
    Ahead {
        terminal: TerminalId,
        writer: WriterId,
        sequence: u64,
    },
    /// It has arrived, and so has all its writer sent before; or it certainly has not.
    Settled {
        terminal: TerminalId,
        writer: WriterId,
        sequence: u64,
        arrived: bool,
    },
    Journal(Box<JournalEntry>),
    /// Removes a run and its journal. What its sessions used stays: budgets are sums over it.
    DropRun(RunId),
    /// An audit entry. Writes committed with it are on disk before it is reported.
    Audit(Box<Note>),
    /// Removes events before this time, and all but the newest.
    Trim {
        before: i64,
        keep: i64,
    },
}

pub(crate) struct Found {
    pub(crate) terminals: Vec<Record>,
    pub(crate) newest: i64,
    pub(crate) settings: BTreeMap<String, String>,
    /// Input that was sent, and whether it is known to have arrived.
    pub(crate) inputs: Vec<(TerminalId, KnownInput)>,
    pub(crate) runs: Vec<(RunKind, RunId)>,
    /// Answers to dialogs whose result is unknown.
    pub(crate) unfinished: Vec<Entry>,
}

/// Input of which something was written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KnownInput {
    pub(crate) writer: WriterId,
    pub(crate) sequence: u64,
    pub(crate) arrived: bool,
}

pub(crate) fn open(disk: Disk, path: &Path, anchor: Anchor) -> Result<(Writer, Found), StoreError> {
    let wrap = |error| StoreError::of(path, error);
    require_file(&disk, path)?;
    // Made private before SQLite opens it; its side files take over the mode.
    let _ = disk.append(path, b"").and_then(|()| disk.set_mode(path, 0o600));
    let mut connection = disk::open_database(&disk, path, OpenFlags::default()).map_err(wrap)?;
    connection.busy_timeout(Duration::from_secs(5)).map_err(wrap)?;
    // Space that is freed goes back to the disk. Takes effect when the database is made.
    connection.pragma_update(None, "auto_vacuum", "incremental").map_err(wrap)?;
    connection.pragma_update(None, "journal_mode", "wal").map_err(wrap)?;
    connection.pragma_update(None, "journal_size_limit", 4 << 20).map_err(wrap)?;
    // With WAL this loses nothing but the last moments before a power cut, never consistency.
    connection.pragma_update(None, "synchronous", "normal").map_err(wrap)?;
    for (version, step) in STEPS.iter().enumerate().skip(version(&connection, path)?) {
        let transaction = connection.transaction().map_err(wrap)?;
        transaction.execute_batch(step).map_err(wrap)?;
        transaction.pragma_update(None, "user_version", version as u32 + 1).map_err(wrap)?;
        transaction.commit().map_err(wrap)?;
    }
    let found = read_everything(&connection).map_err(wrap)?;
    let ledger = audit::Ledger::open(disk, &connection, path, anchor).map_err(wrap)?;
    Ok((Writer::start(connection, ledger), found))
}

/// Anything but a file could keep SQLite waiting.
pub(crate) fn require_file(disk: &Disk, path: &Path) -> Result<(), StoreError> {
    let is_something_else = disk.metadata(path).is_ok_and(|found| !found.is_file());
    if is_something_else { Err(StoreError::NotAFile(path.to_owned())) } else { Ok(()) }
}

/// The version of the schema, which must be one that this build knows.
pub(crate) fn version(connection: &Connection, path: &Path) -> Result<usize, StoreError> {
    let found = connection.pragma_query_value(None, "user_version", |row| row.get::<_, u32>(0));
    let found = found.map_err(|error| StoreError::of(path, error))? as usize;
    let known = STEPS.len();
    if found > known {
        return Err(StoreError::Newer { path: path.to_owned(), found, known });
    }
    Ok(found)
}

pub(crate) fn read_everything(connection: &Connection) -> rusqlite::Result<Found> {
    Ok(Found {
        terminals: rows(connection, "SELECT record FROM terminals ORDER BY id", [], |row| json(row, "record"))?,
        newest: connection.query_row("SELECT coalesce(max(seq), 0) FROM events", [], |row| row.get(0))?,
        settings: rows(connection, "SELECT name, value FROM settings", [], |row| Ok((row.get(0)?, row.get(1)?)))?,
        inputs: rows(connection, "SELECT terminal, writer, sequence, done FROM inputs", [], known_input)?,
        runs: runs::unfinished(connection)?,
        unfinished: audit::unfinished(connection)?,
    })
}

fn known_input(row: &Row<'_>) -> rusqlite::Result<(TerminalId, KnownInput)> {
    // SQLite's integers are signed; the bits are what matters.
    let writer = WriterId(row.get::<_, i64>("writer")?.cast_unsigned());
    let sequence = row.get::<_, i64>("sequence")?.cast_unsigned();
    Ok((text(row, "terminal")?, KnownInput { writer, sequence, arrived: row.get("done")? }))
}

fn rows<T, C: FromIterator<T>>(
    connection: &Connection,
    select: &str,
    parameters: impl Params,
    read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<C> {
    connection.prepare(select)?.query_map(parameters, read)?.collect()
}

/// Reads the database. Blocking: for a thread that may wait.
fn query<T>(disk: &Disk, path: &Path, read: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, StoreError> {
    let read = read_only(disk, path).and_then(|connection| read(&connection));
    read.map_err(|error| StoreError::Sqlite { path: path.to_owned(), error })
}

/// Reads all rows that a statement selects. Blocking: for a thread that may wait.
fn query_rows<T, C: FromIterator<T>>(
    disk: &Disk,
    path: &Path,
    select: &str,
    parameters: impl Params,
    read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> Result<C, StoreError> {
    query(disk, path, |connection| rows(connection, select, parameters, read))
}

pub(crate) fn read_only(disk: &Disk, path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = disk::open_database(disk, path, flags)?;
    connection.busy_timeout(Duration::from_secs(5))?;
    Ok(connection)
}

/// The most rows that one request gets.
const MOST: u32 = 10_000;

fn at_most(limit: Option<u32>) -> u32 {
    limit.unwrap_or(100).min(MOST)
}

/// Reads events off the log, in order.
pub(crate) fn read_events(disk: &Disk, path: &Path, query: &LogQuery) -> Result<Vec<LogEvent>, StoreError> {
    let order = if query.after.is_some() { "ASC" } else { "DESC" };
    let select = format!(
        "SELECT seq, at, terminal, output_offset, body FROM events
         WHERE seq > ?1 AND (?2 IS NULL OR terminal = ?2) ORDER BY seq {order} LIMIT ?3"
    );
    let terminal = query.terminal.map(|id| id.to_string());
    let parameters = (query.after.unwrap_or(0), terminal, at_most(query.limit));
    let event = |row: &Row<'_>| {
        Ok(LogEvent {
            seq: row.get("seq")?,
            at: jiff::Timestamp::from_millisecond(row.get("at")?).unwrap_or_default(),
            terminal: row.get::<_, Option<String>>("terminal")?.and_then(|id| id.parse().ok()),
            offset: row.get::<_, Option<i64>>("output_offset")?.map(i64::cast_unsigned),
            body: json(row, "body")?,
        })
    };
    let mut events: Vec<_> = query_rows(disk, path, &select, parameters, event)?;
    if query.after.is_none() {
        events.reverse();
    }
    Ok(events)
}

fn text<T: std::str::FromStr<Err: std::error::Error + Send + Sync + 'static>>(
    row: &Row<'_>,
    column: &str,
) -> rusqlite::Result<T> {
    let text: String = row.get(column)?;
    text.parse().map_err(|error| rusqlite::Error::FromSqlConversionFailure(0, Type::Text, Box::new(error)))
}

fn json<T: serde::de::DeserializeOwned>(row: &Row<'_>, column: &str) -> rusqlite::Result<T> {
    let text: String = row.get(column)?;
    serde_json::from_str(&text)
        .map_err(|error| rusqlite::Error::FromSqlConversionFailure(0, Type::Text, Box::new(error)))
}

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
