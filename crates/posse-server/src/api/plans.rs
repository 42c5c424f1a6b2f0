//! Begins runs of plans.

use posse_api::{PlanIn, PlanView};

use super::requester::Requester;
use super::{ApiError, App};
use crate::plans::PlanParams;

/// Begins a run of a plan, or continues the one that uses the file.
pub(super) async fn begin(app: App, requester: Requester, mut request: PlanIn) -> Result<PlanView, ApiError> {
    let may = requester.may_begin(&app, "begin a plan without its sandbox", &request.directory, &request.sessions);
    let (directory, only_commands) = may.await?;
    request.directory = directory;
    Ok(app.plans.begin(&app, PlanParams { request, only_commands, of_item: None }).await?)
}
