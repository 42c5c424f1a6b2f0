//! Begins runs of backlogs.

use posse_api::{BacklogIn, BacklogView};

use super::requester::Requester;
use super::{ApiError, App};

/// Begins a pipeline, or continues the one that waits for the environment of its sessions.
pub(super) async fn begin(app: App, requester: Requester, mut request: BacklogIn) -> Result<BacklogView, ApiError> {
    let may = requester.may_begin(&app, "begin a pipeline without its sandbox", &request.directory, &request.sessions);
    request.directory = may.await?.0;
    Ok(app.autos.begin(&app, request).await?)
}
