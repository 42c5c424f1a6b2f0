//! Runs and their journals.

use std::path::Path;

use posse_core::ids::RunId;
use posse_core::run::Entry;
use posse_core::time::Wall;
use rusqlite::{Connection, OptionalExtension, Transaction, params};

use super::{StoreError, json, read_only, text};

/// One entry of a run's journal, and what the run is after it.
#[derive(Clone, Debug)]
pub(crate) struct JournalEntry {
    pub(crate) run: RunId,
    /// Its place in the run's journal, from 1.
    pub(crate) seq: i64,
    pub(crate) at: Wall,
    /// JSON.
    pub(crate) entry: String,
    pub(crate) row: RunRow,
}

/// A run as it is now.
#[derive(Clone, Debug)]
pub(crate) struct RunRow {
    pub(crate) id: RunId,
    pub(crate) status: String,
    pub(crate) state_file: String,
    pub(crate) created: Wall,
    /// JSON.
    pub(crate) view: String,
}

pub(super) fn append(transaction: &Transaction<'_>, entry: &JournalEntry) -> rusqlite::Result<()> {
    // Not "or replace": two drivers of one run must not overwrite each other.
    let insert = "INSERT INTO journal (run, seq, at, entry) VALUES (?1, ?2, ?3, ?4)";
    transaction.prepare_cached(insert)?.execute(params![entry.run.as_str(), entry.seq, entry.at.0, entry.entry])?;
    let put =
        "INSERT OR REPLACE INTO runs (id, status, state_file, created, changed, view) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    let row = &entry.row;
    transaction.prepare_cached(put)?.execute(params![
        row.id.as_str(),
        row.status,
        row.state_file,
        row.created.0,
        entry.at.0,
        row.view
    ])?;
    Ok(())
}

/// The runs that were going on when the last daemon ended.
pub(super) fn unfinished(connection: &Connection) -> rusqlite::Result<Vec<RunId>> {
    let mut statement =
        connection.prepare("SELECT id FROM runs WHERE status IN ('running', 'parked') ORDER BY created")?;
    statement.query_map([], |row| text(row, "id"))?.collect()
}

/// A run's journal after this entry. Blocking: for a thread that may wait.
pub(crate) fn journal(path: &Path, run: RunId, after: i64) -> Result<Vec<(i64, Wall, Entry)>, StoreError> {
    let read = || {
        let connection = read_only(path)?;
        let mut statement =
            connection.prepare("SELECT seq, at, entry FROM journal WHERE run = ?1 AND seq > ?2 ORDER BY seq")?;
        let rows = statement
            .query_map((run.as_str(), after), |row| Ok((row.get("seq")?, Wall(row.get("at")?), json(row, "entry")?)))?;
        rows.collect::<rusqlite::Result<_>>()
    };
    read().map_err(|error| StoreError::Sqlite { path: path.to_owned(), error })
}

/// All runs, newest first, as JSON. Blocking.
pub(crate) fn runs(path: &Path, limit: usize) -> Result<Vec<String>, StoreError> {
    let read = || {
        let connection = read_only(path)?;
        let mut statement = connection.prepare("SELECT view FROM runs ORDER BY created DESC, id LIMIT ?1")?;
        statement.query_map([limit as i64], |row| row.get(0))?.collect::<rusqlite::Result<_>>()
    };
    read().map_err(|error| StoreError::Sqlite { path: path.to_owned(), error })
}

/// One run, as JSON. Blocking.
pub(crate) fn run(path: &Path, run: RunId) -> Result<Option<String>, StoreError> {
    let read = || {
        let connection = read_only(path)?;
        connection.query_row("SELECT view FROM runs WHERE id = ?1", [run.as_str()], |row| row.get(0)).optional()
    };
    read().map_err(|error| StoreError::Sqlite { path: path.to_owned(), error })
}

/// The run that uses this state file now. Blocking.
pub(crate) fn using(path: &Path, state_file: &str) -> Result<Option<RunId>, StoreError> {
    let read = || {
        let connection = read_only(path)?;
        let find = "SELECT id FROM runs
                    WHERE state_file = ?1 AND status IN ('running', 'parked') LIMIT 1";
        connection.query_row(find, [state_file], |row| text(row, "id")).optional()
    };
    read().map_err(|error| StoreError::Sqlite { path: path.to_owned(), error })
}

/// Another run that goes on in this directory. Blocking.
pub(crate) fn going_on_in(path: &Path, directory: &str, besides: RunId) -> Result<Option<RunId>, StoreError> {
    let read = || {
        let connection = read_only(path)?;
        let find = "SELECT id FROM runs
                    WHERE status IN ('running', 'parked') AND id <> ?2 AND json_extract(view, '$.directory') = ?1 LIMIT 1";
        connection.query_row(find, (directory, besides.as_str()), |row| text(row, "id")).optional()
    };
    read().map_err(|error| StoreError::Sqlite { path: path.to_owned(), error })
}
