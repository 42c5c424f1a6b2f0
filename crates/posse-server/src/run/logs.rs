//! The files of sessions, for people to read: prompts, results, transcripts.

use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use posse_api::{SessionFiles, SessionLines};
use posse_core::ids::RunId;
use posse_core::secrets::masked;

use super::effects::{session, transcript};
use super::{Supervisor, SupervisorError, Workflow};
use crate::disk::{self, Disk};

/// The largest piece that is returned at once. A longer line is returned alone.
const PIECE: u64 = 1 << 20;
/// The longest line that is returned whole.
const LONGEST: u64 = 32 << 20;

impl<W: Workflow> Supervisor<W> {
    /// The prompt and the results of a session. Files that are gone are left out.
    pub(crate) async fn session_files(&self, run: RunId, session: &str) -> Result<SessionFiles, SupervisorError> {
        let files = move |disk: &Disk, directory: &Path| {
            let read = |name: &str| Some(masked(&disk.read_text(&directory.join(name)).ok()?).into_owned());
            SessionFiles {
                prompt: read("prompt.md"),
                report: read("result/result.json"),
                stderr: masked(&session::end_of(disk, &directory.join("stderr.log"))).into_owned(),
                directory: directory.to_string_lossy().into_owned(),
            }
        };
        Ok(disk::at(self.session_directory(run, session).await?, files).await)
    }

    /// The transcript of a session after this offset: whole lines only.
    pub(crate) async fn session_lines(
        &self,
        run: RunId,
        session: &str,
        after: u64,
        raw: bool,
    ) -> Result<SessionLines, SupervisorError> {
        let name = if raw { "stream.jsonl" } else { transcript::NAME };
        let path = self.session_directory(run, session).await?.join(name);
        let found = disk::at(path, move |disk, path| lines(disk, path, after)).await;
        Ok(found.unwrap_or(SessionLines { lines: Vec::new(), next: after }))
    }

    async fn session_directory(&self, run: RunId, session: &str) -> Result<PathBuf, SupervisorError> {
        self.show(run).await?;
        let directory = W::session_directory(session).ok_or_else(|| SupervisorError::NoItem(session.to_owned()))?;
        Ok(self.state_of(run).join(directory))
    }
}

fn lines(disk: &Disk, path: &Path, after: u64) -> std::io::Result<SessionLines> {
    let mut file = disk.open_regular(path)?;
    file.seek(SeekFrom::Start(after))?;
    let mut bytes = Vec::new();
    let mut room = PIECE;
    let end = loop {
        let read = file.by_ref().take(room).read_to_end(&mut bytes)? as u64;
        match bytes.iter().rposition(|byte| *byte == b'\n') {
            Some(end) => break end + 1,
            // An incomplete line is returned later.
            None if read < room => break 0,
            None if bytes.len() as u64 > LONGEST => break bytes.len(),
            None => room = bytes.len() as u64,
        }
    };
    let text = String::from_utf8_lossy(&bytes[..end]);
    Ok(SessionLines { lines: text.lines().map(|line| masked(line).into_owned()).collect(), next: after + end as u64 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::DISK;

    #[test]
    fn whole_lines_and_where_to_go_on() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let long = "x".repeat(3 * PIECE as usize);
        std::fs::write(&path, format!("one\n{long}\ntwo\nha")).unwrap();
        let at = |after| {
            let found = lines(DISK, &path, after).unwrap();
            (found.lines.iter().map(String::len).collect::<Vec<_>>(), found.next)
        };
        assert_eq!(at(0), (vec![3], 4));
        let behind = 5 + 3 * PIECE;
        assert_eq!(at(4).0[0], 3 * PIECE as usize);
        assert_eq!(at(behind), (vec![3], behind + 4));
        assert_eq!(at(behind + 4), (vec![], behind + 4), "half a line is none");
        std::fs::write(&path, format!("one\n{long}\ntwo\nhalf\n")).unwrap();
        assert_eq!(at(behind + 4).0, [4]);
    }
}
