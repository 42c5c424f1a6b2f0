//! Runs and their journals.

use std::path::Path;

use posse_api::{EventBody, RunKind};
use posse_core::ids::RunId;
use posse_core::plan::budget::Line;
use posse_core::time::Wall;
use rusqlite::{Connection, OptionalExtension, Transaction, params};
use serde::de::DeserializeOwned;

use super::{StoreError, json, query, text};
use crate::disk::Disk;

/// One entry of a run's journal, and what the run is after it if that is worth it.
#[derive(Clone, Debug)]
pub(crate) struct JournalEntry {
    pub(crate) run: RunId,
    /// Its place in the run's journal, from 1.
    pub(crate) seq: i64,
    pub(crate) at: Wall,
    /// JSON.
    pub(crate) entry: String,
    /// The events that publish the entry.
    pub(crate) events: Vec<EventBody>,
    pub(crate) row: Option<RunRow>,
    /// What a session has used, if the entry tells of the end of one.
    pub(crate) usage: Option<Line>,
}

/// A run as it is now.
#[derive(Clone, Debug)]
pub(crate) struct RunRow {
    pub(crate) id: RunId,
    pub(crate) kind: RunKind,
    pub(crate) status: String,
    /// Of a plan: its file. Of a pipeline: its project.
    pub(crate) state_file: String,
    pub(crate) created: Wall,
    /// JSON.
    pub(crate) view: String,
}

pub(super) fn append(transaction: &Transaction<'_>, entry: &JournalEntry) -> rusqlite::Result<()> {
    // Not "or replace": two drivers of one run must not overwrite each other.
    let insert = "INSERT INTO journal (run, seq, at, entry) VALUES (?1, ?2, ?3, ?4)";
    transaction.prepare_cached(insert)?.execute(params![entry.run.as_str(), entry.seq, entry.at.0, entry.entry])?;
    if let Some(row) = &entry.row {
        let put = "INSERT OR REPLACE INTO runs (id, kind, status, state_file, created, changed, view)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        transaction.prepare_cached(put)?.execute(params![
            row.id.as_str(),
            row.kind.as_str(),
            row.status,
            row.state_file,
            row.created.0,
            entry.at.0,
            row.view
        ])?;
    }
    super::usage::append(transaction, entry)
}

pub(super) fn remove(transaction: &Transaction<'_>, run: RunId) -> rusqlite::Result<()> {
    transaction.prepare_cached("DELETE FROM journal WHERE run = ?1")?.execute([run.as_str()])?;
    transaction.prepare_cached("DELETE FROM runs WHERE id = ?1")?.execute([run.as_str()])?;
    Ok(())
}

/// The runs that were going on when the last daemon ended.
pub(super) fn unfinished(connection: &Connection, kind: RunKind) -> rusqlite::Result<Vec<RunId>> {
    let mut statement = connection
        .prepare("SELECT id FROM runs WHERE kind = ?1 AND status IN ('running', 'parked') ORDER BY created")?;
    statement.query_map([kind.as_str()], |row| text(row, "id"))?.collect()
}

/// A run's journal after this entry. Blocking: for a thread that may wait.
pub(crate) fn journal<E: DeserializeOwned>(
    disk: &Disk,
    path: &Path,
    run: RunId,
    after: i64,
) -> Result<Vec<(i64, Wall, E)>, StoreError> {
    query(disk, path, |connection| {
        let mut statement =
            connection.prepare("SELECT seq, at, entry FROM journal WHERE run = ?1 AND seq > ?2 ORDER BY seq")?;
        let rows = statement
            .query_map((run.as_str(), after), |row| Ok((row.get("seq")?, Wall(row.get("at")?), json(row, "entry")?)))?;
        rows.collect::<rusqlite::Result<_>>()
    })
}

/// All runs of a kind, newest first, as JSON. Blocking.
pub(crate) fn runs(disk: &Disk, path: &Path, kind: RunKind, limit: usize) -> Result<Vec<String>, StoreError> {
    query(disk, path, |connection| {
        let select = "SELECT view FROM runs WHERE kind = ?1 ORDER BY created DESC, id LIMIT ?2";
        let mut statement = connection.prepare(select)?;
        let rows = statement.query_map((kind.as_str(), limit as i64), |row| row.get(0))?;
        rows.collect::<rusqlite::Result<_>>()
    })
}

/// One run, as JSON. Blocking.
pub(crate) fn run(disk: &Disk, path: &Path, kind: RunKind, run: RunId) -> Result<Option<String>, StoreError> {
    query(disk, path, |connection| {
        let find = "SELECT view FROM runs WHERE kind = ?1 AND id = ?2";
        connection.query_row(find, (kind.as_str(), run.as_str()), |row| row.get(0)).optional()
    })
}

/// What a run carries out. Blocking.
pub(crate) fn kind_of(disk: &Disk, path: &Path, run: RunId) -> Result<Option<RunKind>, StoreError> {
    query(disk, path, |connection| {
        let find = "SELECT kind FROM runs WHERE id = ?1";
        connection.query_row(find, [run.as_str()], |row| text(row, "kind")).optional()
    })
}

/// The run that uses this file now. Blocking.
pub(crate) fn using(disk: &Disk, path: &Path, kind: RunKind, state_file: &str) -> Result<Option<RunId>, StoreError> {
    let find = "SELECT id FROM runs
                WHERE kind = ?1 AND state_file = ?2 AND status IN ('running', 'parked') LIMIT 1";
    of_file(disk, path, find, kind, state_file)
}

/// The run that began last with this file. Blocking.
pub(crate) fn newest_of(
    disk: &Disk,
    path: &Path,
    kind: RunKind,
    state_file: &str,
) -> Result<Option<RunId>, StoreError> {
    let find = "SELECT id FROM runs WHERE kind = ?1 AND state_file = ?2 ORDER BY created DESC, rowid DESC LIMIT 1";
    of_file(disk, path, find, kind, state_file)
}

fn of_file(disk: &Disk, path: &Path, find: &str, kind: RunKind, state_file: &str) -> Result<Option<RunId>, StoreError> {
    query(disk, path, |connection| {
        connection.query_row(find, (kind.as_str(), state_file), |row| text(row, "id")).optional()
    })
}

/// Another run that goes on in this directory. Blocking.
pub(crate) fn going_on_in(
    disk: &Disk,
    path: &Path,
    directory: &str,
    besides: RunId,
) -> Result<Option<RunId>, StoreError> {
    query(disk, path, |connection| {
        let find = "SELECT id FROM runs
                    WHERE kind = 'loop' AND status IN ('running', 'parked') AND id <> ?2 AND json_extract(view, '$.directory') = ?1 LIMIT 1";
        connection.query_row(find, (directory, besides.as_str()), |row| text(row, "id")).optional()
    })
}
