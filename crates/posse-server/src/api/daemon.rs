//! The daemon itself: its health, its settings, its end.

use super::*;
use crate::recording;

/// Whether the daemon is well
#[utoipa::path(get, path = "/health", tag = "daemon",
    responses((status = 200, description = "The state of the daemon", body = posse_api::Health)))]
pub(super) async fn health(State(app): State<App>) -> Answer<posse_api::Health> {
    Ok(Json(posse_api::Health {
        status: "ok".into(),
        service: "posse".into(),
        version: posse_api::VERSION.into(),
        pid: std::process::id(),
        problem: app.ask(HubCommand::Health).await?,
    }))
}

/// Changes what the daemon is told once and remembers. Only on the private socket.
pub(super) async fn change_settings(
    State(app): State<App>,
    requester: Requester,
    Params(body): Params<posse_api::Settings>,
) -> Answer<posse_api::Success> {
    requester.may(&app, "change settings of the daemon").await?;
    if let Some(on) = body.recordings {
        let value = (!on).then(|| "off".to_owned());
        app.set(recording::SETTING, value).await??;
        let _ = app.hub.send(HubEvent::Command(HubCommand::Record(on)));
    }
    Ok(Json(posse_api::Success { success: true }))
}

/// Stops the daemon. Only on the private socket.
pub(super) async fn stop(State(app): State<App>, Params(stop): Params<posse_api::Stop>) -> Answer<posse_api::Stopped> {
    let stopped = app.ask(|reply| HubCommand::Stop { all: stop.all.unwrap_or(false), reply }).await??;
    let running = stopped.running.into_iter().map(Terminal::from).collect();
    let problem = stopped.keeper_silent.map(|why| why.to_string());
    Ok(Json(posse_api::Stopped { running, problem, unsaved: stopped.unsaved }))
}
