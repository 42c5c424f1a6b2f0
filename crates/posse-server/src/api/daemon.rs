//! The daemon itself: its health, what it takes on disk, its settings, its end.

use std::path::Path;

use axum::Json;
use axum::extract::State;
use posse_api::Terminal;
use posse_core::time::Wall;

use super::params::Params;
use super::requester::Requester;
use super::{Answer, App};
use crate::disk::{self, Disk};
use crate::hub::{HubCommand, HubEvent};
use crate::{recording, retention, store};

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

/// What posse takes on disk
#[utoipa::path(get, path = "/usage", tag = "daemon",
    responses((status = 200, description = "Sizes of the files and numbers of kept events", body = posse_api::Usage)))]
pub(super) async fn usage(State(app): State<App>) -> Answer<posse_api::Usage> {
    let count = move |disk: &Disk| {
        let paths = &app.paths;
        let size = |path: &Path| disk.metadata(path).map_or(0, |found| found.len());
        let size_of_all = |directory: &Path| {
            let files = disk.read_dir(directory).into_iter().flatten().flatten();
            files.map(|file| size(&file.path())).sum()
        };
        let figures = store::figures(disk, &paths.database())?;
        let database =
            ["posse.db", "posse.db-wal", "posse.db-shm"].iter().map(|name| size(&paths.home.join(name))).sum();
        Ok(posse_api::Usage {
            home: paths.home.to_string_lossy().into_owned(),
            database_bytes: database,
            log_bytes: size(&paths.log()) + size(&paths.log().with_extension("log.1")),
            screens_bytes: size_of_all(&paths.screens()),
            recordings_bytes: size_of_all(&paths.recordings()),
            events: figures.events,
            oldest_event: figures.oldest.map(|at| Wall(at).timestamp()),
            kept_days: retention::AGE.as_secs() / 86_400,
            kept_events: retention::EVENTS,
            kept_recordings_bytes: retention::RECORDINGS,
        })
    };
    disk::run(count).await.map(Json)
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
        app.ask(|reply| HubCommand::Set { name: recording::SETTING, value, reply }).await??;
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
