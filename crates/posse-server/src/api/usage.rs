//! What posse takes on disk, in figures.

use std::path::Path;

use axum::Json;
use axum::extract::State;
use posse_core::time::Wall;

use super::{ApiError, App};
use crate::disk::{self, Disk};
use crate::{retention, store};

/// What posse takes on disk
#[utoipa::path(get, path = "/usage", tag = "daemon",
    responses((status = 200, description = "Sizes of the files and numbers of kept events", body = posse_api::Usage)))]
pub(super) async fn usage(State(app): State<App>) -> Result<Json<posse_api::Usage>, ApiError> {
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
