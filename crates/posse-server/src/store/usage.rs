//! The usage of sessions: rows that are written with the journal and never removed.

use std::path::Path;

use posse_core::plan::budget::Line;
use posse_core::time::Wall;
use rusqlite::{Transaction, params};

use super::runs::JournalEntry;
use super::{StoreError, json, query_rows};
use crate::disk::Disk;

/// Which of them. What is not said does not matter.
#[derive(Clone, Debug, Default)]
pub(crate) struct UsageOf {
    /// Not before this.
    pub(crate) since: Option<Wall>,
    pub(crate) run: Option<String>,
    pub(crate) project: Option<String>,
    /// The plan's file.
    pub(crate) plan: Option<String>,
    pub(crate) item: Option<String>,
}

pub(super) fn append(transaction: &Transaction<'_>, entry: &JournalEntry) -> rusqlite::Result<()> {
    let Some(line) = &entry.usage else { return Ok(()) };
    let text = super::writer::json(line)?;
    let insert = "INSERT INTO usage (run, seq, at, project, plan, item, line) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    let row = params![entry.run.as_str(), entry.seq, line.at.0, line.project, line.plan, line.item, text];
    transaction.prepare_cached(insert)?.execute(row)?;
    Ok(())
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
