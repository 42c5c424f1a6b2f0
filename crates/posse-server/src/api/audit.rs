//! The audit: who answered which dialog, and whether the record of it is as it was written.

use std::path::Path;

use posse_api::{AuditEntry, AuditQuery, AuditVerdict};

use super::*;
use crate::store::Checked;

/// Read the audit: every answer to a dialog
#[utoipa::path(get, path = "/audit", tag = "audit", params(AuditQuery),
    responses((status = 200, description = "Entries, oldest first", body = Vec<AuditEntry>)))]
pub(super) async fn entries(State(app): State<App>, Params(query): Params<AuditQuery>) -> Answer<Vec<AuditEntry>> {
    if let Some(run) = &query.run {
        runs::kind_of(&app, run.parse()?).await?;
    }
    let read = move |disk: &Disk, database: &Path| store::read_audit(disk, database, &query);
    Ok(Json(disk::at(app.paths.database(), read).await?))
}

/// Check the audit: whether an entry was changed, dropped, moved or added, and which
#[utoipa::path(get, path = "/audit/verify", tag = "audit",
    responses((status = 200, description = "The result of the verification", body = AuditVerdict)))]
pub(super) async fn verdict(State(app): State<App>) -> Answer<AuditVerdict> {
    Ok(Json(disk::at(app.paths.database(), store::verify_audit).await?.into()))
}

impl From<Checked> for AuditVerdict {
    fn from(Checked { entries, hash, flaws }: Checked) -> Self {
        Self { intact: flaws.is_empty(), entries: entries as u64, hash, flaws }
    }
}
