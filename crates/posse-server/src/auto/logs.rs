//! What planners and verifiers left behind, for people to read. Their files are those of every session (`plans::logs`).

use std::path::PathBuf;

use posse_api::{SessionFiles, SessionLines};
use posse_core::backlog::Slug;
use posse_core::ids::RunId;

use super::place::of_item;
use super::{AutoError, Autos};
use crate::plans::logs::{files_in, lines_in};

impl Autos {
    /// What a session was asked and left behind. Nothing of what is gone.
    pub(crate) async fn session_files(&self, run: RunId, session: &str) -> Result<SessionFiles, AutoError> {
        Ok(files_in(self.session_directory(run, session).await?).await)
    }

    /// What it did and said after this place: whole lines only.
    pub(crate) async fn session_lines(
        &self,
        run: RunId,
        session: &str,
        after: u64,
        raw: bool,
    ) -> Result<SessionLines, AutoError> {
        Ok(lines_in(&self.session_directory(run, session).await?, after, raw).await)
    }

    /// A session is called by its item and a number: `7-empty-export-2`.
    async fn session_directory(&self, run: RunId, session: &str) -> Result<PathBuf, AutoError> {
        self.show(run).await?;
        let named = session
            .rsplit_once('-')
            .and_then(|(item, number)| Some((item.parse::<Slug>().ok()?, number.parse::<u32>().ok()?)));
        let (item, number) = named.ok_or_else(|| AutoError::NoItem(session.to_owned()))?;
        Ok(sessions_of(&of_item(&self.state_of(run), &item)).join(number.to_string()))
    }
}

/// Where the sessions of an item keep their files.
pub(super) fn sessions_of(item: &std::path::Path) -> PathBuf {
    item.join("sessions")
}
