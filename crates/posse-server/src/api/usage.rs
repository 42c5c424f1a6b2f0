//! What posse takes on disk, in figures.

use std::path::Path;

use axum::Json;
use axum::extract::State;
use posse_core::time::Wall;

use super::{ApiError, App, types};
use crate::{retention, store};

/// What posse takes on disk
#[utoipa::path(get, path = "/usage", tag = "daemon",
    responses((status = 200, description = "Figures", body = types::Usage), (status = "default", description = "Refused", body = types::Problem)))]
pub(super) async fn usage(State(app): State<App>) -> Result<Json<types::Usage>, ApiError> {
    let count = tokio::task::spawn_blocking(move || {
        let paths = &app.paths;
        let figures = store::figures(&paths.database())?;
        let database =
            ["posse.db", "posse.db-wal", "posse.db-shm"].iter().map(|name| size(&paths.home.join(name))).sum();
        Ok(types::Usage {
            home: paths.home.to_string_lossy().into_owned(),
            database_bytes: database,
            log_bytes: size(&paths.log()) + size(&paths.log().with_extension("log.1")),
            screens_bytes: size_of_all(&paths.screens()),
            recordings_bytes: size_of_all(&paths.recordings()),
            events: figures.events,
            oldest_event: figures.oldest.map(|at| crate::timestamp(Wall(at))),
            kept_days: retention::AGE.as_secs() / 86_400,
            kept_events: retention::EVENTS,
            kept_recordings_bytes: retention::RECORDINGS,
        })
    });
    count.await.map_err(|_| ApiError::Stopping)?.map(Json)
}

fn size_of_all(directory: &Path) -> u64 {
    std::fs::read_dir(directory).into_iter().flatten().flatten().map(|file| size(&file.path())).sum()
}

fn size(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |found| found.len())
}
