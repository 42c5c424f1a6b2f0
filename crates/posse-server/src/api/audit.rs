//! The audit: who answered which dialog, and whether the record of it is as it was written.

use axum::Json;
use axum::extract::State;
use posse_api::{AuditEntry, AuditFlaw, AuditQuery, AuditVerdict};
use posse_core::ids::RunId;
use posse_core::time::Wall;

use super::params::Params;
use super::{Answer, ApiError, App};
use crate::disk;
use crate::store::{self, AuditSlice, Checked};

/// The most entries one request gets.
const MOST: usize = 10_000;

/// Read the audit: every answer to a dialog
#[utoipa::path(get, path = "/audit", tag = "audit", params(AuditQuery),
    responses((status = 200, description = "Entries, oldest first", body = Vec<AuditEntry>)))]
pub(super) async fn entries(State(app): State<App>, Params(query): Params<AuditQuery>) -> Answer<Vec<AuditEntry>> {
    if let Some(run) = &query.run {
        known_run(&app, run).await?;
    }
    let slice = AuditSlice {
        run: query.run,
        terminal: query.terminal,
        since: query.since.map(|since| Wall(since.as_millisecond())),
        limit: query.limit.map_or(100, |limit| limit as usize).min(MOST),
    };
    let database = app.paths.database();
    let entries = disk::at(database, move |disk, database| store::read_audit(disk, database, &slice))
        .await
        .map_err(ApiError::from)?;
    Ok(Json(entries.into_iter().map(AuditEntry::from).collect()))
}

/// Refuses a run that is none.
async fn known_run(app: &App, run: &str) -> Result<(), ApiError> {
    let id: RunId = run.parse()?;
    let known = app.loops.show(id).await.map(drop);
    if known.is_err() && app.plans.show(id).await.is_err() && app.autos.show(id).await.is_err() {
        return Ok(known?);
    }
    Ok(())
}

/// Check the audit: whether an entry was changed, dropped, moved or added, and which
#[utoipa::path(get, path = "/audit/verify", tag = "audit",
    responses((status = 200, description = "The result of the verification", body = AuditVerdict)))]
pub(super) async fn verdict(State(app): State<App>) -> Answer<AuditVerdict> {
    let database = app.paths.database();
    Ok(Json(disk::at(database, store::verify_audit).await.map_err(ApiError::from)?.into()))
}

impl From<Checked> for AuditVerdict {
    fn from(Checked { entries, hash, flaws }: Checked) -> Self {
        let flaws: Vec<AuditFlaw> = flaws.iter().map(AuditFlaw::from).collect();
        Self { intact: flaws.is_empty(), entries: entries as u64, hash, flaws }
    }
}
