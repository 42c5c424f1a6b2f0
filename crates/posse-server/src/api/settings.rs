//! What the daemon is told once and remembers. Only on the private socket.

use axum::Json;
use axum::extract::State;

use super::params::Params;
use super::requester::Requester;
use super::{ApiError, App};
use crate::hub::{HubCommand, HubEvent};
use crate::recording;

pub(super) async fn change(
    State(app): State<App>,
    requester: Requester,
    Params(body): Params<posse_api::Settings>,
) -> Result<Json<posse_api::Success>, ApiError> {
    requester.may(&app, "change settings of the daemon").await?;
    if let Some(on) = body.recordings {
        let value = (!on).then(|| "off".to_owned());
        app.ask(|reply| HubCommand::Set { name: recording::SETTING, value, reply }).await??;
        let _ = app.hub.send(HubEvent::Command(HubCommand::Record(on)));
    }
    Ok(Json(posse_api::Success { success: true }))
}
