//! The audit in the database, and its head beside it.

use std::io;

use jiff::Timestamp;
use posse_api::{AuditEntry, AuditQuery};
use posse_core::audit::{Chain, Flaw, Hash, Mark, Row, Step, Verifier};
use rusqlite::{OptionalExtension, Transaction, params};

use super::writer::WriteError;
use super::*;
use crate::anchor::AnchorProblem;

const TRIES: usize = 20;

pub(crate) fn head_path(database: &Path) -> PathBuf {
    database.with_file_name("audit.head")
}

fn read_head(disk: &Disk, database: &Path) -> Option<Chain> {
    serde_json::from_slice(&disk.read(&head_path(database)).ok()?).ok()
}

/// The end of the chain, in the hands of the one thread that writes.
pub(super) struct Ledger {
    disk: Disk,
    chain: Chain,
    head: PathBuf,
    anchor: Anchor,
}

impl Ledger {
    pub(super) fn open(
        disk: Disk,
        connection: &Connection,
        database: &Path,
        mut anchor: Anchor,
    ) -> rusqlite::Result<Self> {
        let sql = "SELECT seq, hash FROM audit ORDER BY seq DESC LIMIT 1";
        let last = connection.query_row(sql, [], |row| Ok((row.get(0)?, lossy(row, 1)?))).optional()?;
        // An invalid hash was tampered with; the chain continues, and the check reports it.
        let last = last
            .map_or(Mark::BEGINNING, |(seq, hash)| Mark { seq, hash: hash.parse().unwrap_or(Mark::BEGINNING.hash) });
        let head = read_head(&disk, database);
        if head.is_none_or(|head| head.end != last && head.before != Some(last)) && (last.seq > 0 || head.is_some()) {
            tracing::error!("the audit does not end where audit.head says; `posse audit verify` has the details");
        }
        let chain = Chain::resume(head.as_ref(), last);
        // The daemon before this one may have been cut off between the entry and its anchor.
        if last.seq > 0 && last == chain.end {
            anchor.head(&disk, last);
        }
        Ok(Self { disk, chain, head: head_path(database), anchor })
    }

    /// The reason why the audit cannot be anchored, if there is one.
    pub(super) fn anchor_problem(&self) -> AnchorProblem {
        self.anchor.problem()
    }

    /// A copy of the chain for one transaction to extend.
    pub(super) fn draft(&self) -> Chain {
        self.chain
    }

    /// Commits a transaction that extends the chain. The head is announced before: from then on either end is right.
    pub(super) fn commit(
        &mut self,
        ahead: Chain,
        commit: impl FnOnce() -> rusqlite::Result<()>,
    ) -> Result<(), WriteError> {
        if ahead == self.chain {
            return Ok(commit()?);
        }
        self.write(&ahead.after(&self.chain))?;
        // It must not be older than the commit after a power cut.
        let directory = self.head.parent().unwrap_or(Path::new("."));
        self.disk.sync_dir(directory).map_err(|error| self.unwritten(error))?;
        let committed = commit();
        if committed.is_ok() {
            self.chain = ahead;
        }
        // If this cannot be written, the announcement remains, which has the same facts and more.
        if let Err(error) = self.write(&self.chain) {
            tracing::warn!("{error}");
        }
        committed?;
        self.anchor.head(&self.disk, ahead.end);
        Ok(())
    }

    fn write(&self, head: &Chain) -> Result<(), WriteError> {
        let text = serde_json::to_vec(head)?;
        self.disk.write_private(&self.head, &text).map_err(|error| self.unwritten(error))
    }

    fn unwritten(&self, error: io::Error) -> WriteError {
        WriteError::Head { path: self.head.clone(), error }
    }
}

/// Adds an entry within a transaction, and gives its number.
pub(super) fn append(transaction: &Transaction<'_>, chain: &mut Chain, note: &Note) -> Result<i64, WriteError> {
    // Another program may have put a row at the next position. The chain skips it; the check names it.
    let free = "SELECT CASE WHEN EXISTS (SELECT 1 FROM audit WHERE seq = ?1) THEN (SELECT max(seq) + 1 FROM audit) ELSE ?1 END";
    let seq = transaction.prepare_cached(free)?.query_row([chain.next()], |row| row.get(0))?;
    let row = chain.append(note.clone(), seq)?;
    let insert = "INSERT INTO audit (seq, entry, previous, hash) VALUES (?1, ?2, ?3, ?4)";
    transaction.prepare_cached(insert)?.execute(params![row.seq, row.text, row.previous, row.hash])?;
    match &note.step {
        Step::Answering(_) => {
            transaction.prepare_cached("INSERT OR IGNORE INTO audit_open (seq) VALUES (?1)")?.execute([row.seq])?
        }
        Step::Outcome(ended) => {
            transaction.prepare_cached("DELETE FROM audit_open WHERE seq = ?1")?.execute([ended.of])?
        }
    };
    Ok(row.seq)
}

/// Returns entries that announce an action without a result. They remain after a crash.
pub(super) fn unfinished(connection: &Connection) -> rusqlite::Result<Vec<Entry>> {
    let select = "SELECT entry FROM audit_open JOIN audit USING (seq) ORDER BY seq";
    let texts: Vec<String> = rows(connection, select, [], |row| lossy(row, 0))?;
    Ok(texts.iter().filter_map(|text| serde_json::from_str(text).ok()).collect())
}

/// Reads the newest entries of those asked for, in order. What can no longer be read as an entry is left out: the check names it.
pub(crate) fn read_audit(disk: &Disk, path: &Path, query: &AuditQuery) -> Result<Vec<AuditEntry>, StoreError> {
    let select = "SELECT entry, hash FROM audit WHERE CASE WHEN json_valid(entry) THEN
                  (?1 IS NULL OR entry ->> 'run' = ?1)
                  AND (?2 IS NULL OR entry ->> 'terminal' = ?2 OR entry ->> 'name' = ?2)
                  AND (?3 IS NULL OR entry ->> 'at' >= ?3) END ORDER BY seq DESC LIMIT ?4";
    let since = query.since.map(Timestamp::as_millisecond);
    let parameters = params![query.run, query.terminal, since, super::at_most(query.limit)];
    let entry = |row: &rusqlite::Row<'_>| Ok((lossy(row, 0)?, lossy(row, 1)?));
    let rows: Vec<(String, String)> = query_rows(disk, path, select, parameters, entry)?;
    let entry = |(text, hash): (String, String)| Some(AuditEntry::from((serde_json::from_str(&text).ok()?, hash)));
    Ok(rows.into_iter().rev().filter_map(entry).collect())
}

#[derive(Debug)]
pub(crate) struct Checked {
    pub(crate) entries: usize,
    pub(crate) hash: Option<String>,
    pub(crate) flaws: Vec<Flaw>,
}

/// Checks the whole audit against itself and its head. Blocking: for a thread that may wait.
pub(crate) fn verify_audit(disk: &Disk, path: &Path) -> Result<Checked, StoreError> {
    let mut head = read_head(disk, path);
    let mut read = query(disk, path, read_links)?;
    for _ in 0..TRIES {
        // The two are read one after the other, and posse may write in between.
        let again = read_head(disk, path);
        if again == head {
            break;
        }
        head = again;
        read = query(disk, path, read_links)?;
    }
    let (verifier, entries, hash) = read;
    Ok(Checked { entries, hash, flaws: verifier.finish(head.as_ref()) })
}

/// The hashes of all entries, by number. What is no hash was tampered with, and is like no other. Blocking: for a thread
/// that may wait.
pub(crate) fn audit_hashes(disk: &Disk, path: &Path) -> Result<BTreeMap<i64, Hash>, StoreError> {
    query_rows(disk, path, "SELECT seq, hash FROM audit ORDER BY seq", [], |row| {
        Ok((row.get(0)?, lossy(row, 1)?.parse().unwrap_or(Hash::BEGINNING)))
    })
}

/// Text, also if someone has put there what is none.
fn lossy(row: &rusqlite::Row<'_>, column: usize) -> rusqlite::Result<String> {
    let value = row.get_ref(column)?;
    Ok(String::from_utf8_lossy(value.as_bytes().unwrap_or_default()).into_owned())
}

/// Reads the whole audit, row by row: how many there are, and the last hash.
fn read_links(connection: &Connection) -> rusqlite::Result<(Verifier, usize, Option<String>)> {
    let mut statement = connection.prepare("SELECT seq, entry, previous, hash FROM audit ORDER BY seq")?;
    let rows = statement.query_map([], |row| {
        Ok(Row { seq: row.get(0)?, text: lossy(row, 1)?, previous: lossy(row, 2)?, hash: lossy(row, 3)? })
    })?;
    let (mut verifier, mut entries, mut hash) = (Verifier::default(), 0, None);
    for row in rows {
        let row = row?;
        verifier.add(&row);
        entries += 1;
        hash = Some(row.hash);
    }
    Ok((verifier, entries, hash))
}

#[cfg(test)]
mod tests;
