//! Runs, their journals, and the usage of their sessions, which is never removed.

use posse_api::EventBody;
use posse_core::plan::budget::Line;
use posse_core::time::Wall;
use rusqlite::{OptionalExtension, Transaction, params};
use serde::de::DeserializeOwned;

use super::*;

/// One entry of a run's journal, and what the run is after it if that is worth it.
#[derive(Clone, Debug)]
pub(crate) struct JournalEntry {
    pub(crate) run: RunId,
    /// Its place in the run's journal, from 1.
    pub(crate) seq: i64,
    pub(crate) at: Wall,
    /// JSON.
    pub(crate) entry: String,
    pub(crate) events: Vec<EventBody>,
    pub(crate) row: Option<RunRow>,
    /// The usage of a session, if the entry reports the end of one.
    pub(crate) usage: Option<Line>,
}

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

/// The sessions whose usage to read. Unset fields do not matter.
#[derive(Clone, Debug, Default)]
pub(crate) struct UsageOf {
    pub(crate) since: Option<Wall>,
    pub(crate) run: Option<String>,
    pub(crate) project: Option<String>,
    pub(crate) plan: Option<String>,
    pub(crate) item: Option<String>,
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
    if let Some(line) = &entry.usage {
        let insert = "INSERT INTO usage (run, seq, at, project, plan, item, line) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        let text = super::writer::json(line)?;
        let row = params![entry.run.as_str(), entry.seq, line.at.0, line.project, line.plan, line.item, text];
        transaction.prepare_cached(insert)?.execute(row)?;
    }
    Ok(())
}

pub(super) fn remove(transaction: &Transaction<'_>, run: RunId) -> rusqlite::Result<()> {
    transaction.prepare_cached("DELETE FROM journal WHERE run = ?1")?.execute([run.as_str()])?;
    transaction.prepare_cached("DELETE FROM runs WHERE id = ?1")?.execute([run.as_str()])?;
    Ok(())
}

/// The runs that were going on when the last daemon ended.
pub(super) fn unfinished(connection: &Connection) -> rusqlite::Result<Vec<(RunKind, RunId)>> {
    let select = "SELECT kind, id FROM runs WHERE status IN ('running', 'parked') ORDER BY created";
    rows(connection, select, [], |row| Ok((text(row, "kind")?, text(row, "id")?)))
}

/// A run's journal after this entry. Blocking: for a thread that may wait.
pub(crate) fn journal<E: DeserializeOwned>(
    disk: &Disk,
    path: &Path,
    run: RunId,
    after: i64,
) -> Result<Vec<(i64, Wall, E)>, StoreError> {
    let select = "SELECT seq, at, entry FROM journal WHERE run = ?1 AND seq > ?2 ORDER BY seq";
    query_rows(disk, path, select, (run.as_str(), after), |row| {
        Ok((row.get("seq")?, Wall(row.get("at")?), json(row, "entry")?))
    })
}

/// All runs of a kind, newest first, as JSON. Blocking.
pub(crate) fn runs(disk: &Disk, path: &Path, kind: RunKind, limit: usize) -> Result<Vec<String>, StoreError> {
    let select = "SELECT view FROM runs WHERE kind = ?1 ORDER BY created DESC, id LIMIT ?2";
    query_rows(disk, path, select, (kind.as_str(), limit as i64), |row| row.get(0))
}

/// One run, as JSON. Blocking.
pub(crate) fn run(disk: &Disk, path: &Path, kind: RunKind, run: RunId) -> Result<Option<String>, StoreError> {
    let find = "SELECT view FROM runs WHERE kind = ?1 AND id = ?2";
    find_one(disk, path, find, (kind.as_str(), run.as_str()), |row| row.get(0))
}

pub(crate) fn kind_of(disk: &Disk, path: &Path, run: RunId) -> Result<Option<RunKind>, StoreError> {
    find_one(disk, path, "SELECT kind FROM runs WHERE id = ?1", [run.as_str()], |row| text(row, "kind"))
}

/// The run that uses this file now. Blocking.
pub(crate) fn using(disk: &Disk, path: &Path, kind: RunKind, state_file: &str) -> Result<Option<RunId>, StoreError> {
    let find = "SELECT id FROM runs
                WHERE kind = ?1 AND state_file = ?2 AND status IN ('running', 'parked') LIMIT 1";
    find_one(disk, path, find, (kind.as_str(), state_file), |row| text(row, "id"))
}

/// The run that began last with this file. Blocking.
pub(crate) fn newest_of(
    disk: &Disk,
    path: &Path,
    kind: RunKind,
    state_file: &str,
) -> Result<Option<RunId>, StoreError> {
    let find = "SELECT id FROM runs WHERE kind = ?1 AND state_file = ?2 ORDER BY created DESC, rowid DESC LIMIT 1";
    find_one(disk, path, find, (kind.as_str(), state_file), |row| text(row, "id"))
}

/// Returns another run that is active in this directory. Blocking.
pub(crate) fn going_on_in(
    disk: &Disk,
    path: &Path,
    directory: &str,
    besides: RunId,
) -> Result<Option<RunId>, StoreError> {
    let find = "SELECT id FROM runs
                WHERE kind = 'loop' AND status IN ('running', 'parked') AND id <> ?2 AND json_extract(view, '$.directory') = ?1 LIMIT 1";
    find_one(disk, path, find, (directory, besides.as_str()), |row| text(row, "id"))
}

fn find_one<T>(
    disk: &Disk,
    path: &Path,
    find: &str,
    parameters: impl Params,
    read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
) -> Result<Option<T>, StoreError> {
    query(disk, path, |connection| connection.query_row(find, parameters, read).optional())
}

/// Sessions, oldest first. Blocking: for a thread that may wait.
pub(crate) fn usage(disk: &Disk, path: &Path, of: &UsageOf) -> Result<Vec<Line>, StoreError> {
    let select = "SELECT line FROM usage
                  WHERE at >= ?1 AND (?2 IS NULL OR run = ?2) AND (?3 IS NULL OR project = ?3)
                    AND (?4 IS NULL OR plan = ?4) AND (?5 IS NULL OR item = ?5)
                  ORDER BY at, run, seq";
    let since = of.since.map_or(i64::MIN, |since| since.0);
    let parameters = params![since, of.run, of.project, of.plan, of.item];
    query_rows(disk, path, select, parameters, |row| json(row, "line"))
}
