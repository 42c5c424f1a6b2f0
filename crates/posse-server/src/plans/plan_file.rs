//! The plan's file, which mirrors a run for people, and which people may edit meanwhile.

use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

/// What we have put into it, or are about to, is kept beside the run: after a crash this tells our hand from others'.
pub(super) struct PlanFile {
    path: PathBuf,
    note: PathBuf,
    /// Texts that are ours. The last is the newest.
    known: Vec<String>,
}

impl PlanFile {
    /// `text` is what the run began with.
    pub(super) fn new(path: &str, state: &Path, text: &str) -> Self {
        let note = state.join("plan.json");
        let noted = std::fs::read(&note).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        Self { path: path.into(), note, known: noted.unwrap_or_else(|| vec![text.to_owned()]) }
    }

    /// What we left there, and what is there now, if somebody has changed it. Told once.
    pub(super) fn edited(&mut self) -> Option<(String, String)> {
        let theirs = self.foreign()?;
        let ours = self.known.last().cloned().unwrap_or_default();
        self.known = vec![theirs.clone()];
        Some((ours, theirs))
    }

    /// What is there, if it is not ours. A file that is gone or is no text is written anew: the run has it all.
    fn foreign(&self) -> Option<String> {
        let text = std::fs::read_to_string(&self.path).ok()?;
        (!self.known.contains(&text)).then_some(text)
    }

    /// Puts this text there, whole or not at all. `false`: somebody has just written there; that has to be taken over first.
    pub(super) fn write(&mut self, text: &str) -> io::Result<bool> {
        if self.known.last().is_some_and(|known| known == text) && self.path.exists() {
            return Ok(true);
        }
        let prepared = prepare(&self.path, text)?;
        self.known.push(text.to_owned());
        let noted = serde_json::to_vec(&self.known)?;
        crate::serve::write_private_unsynced(&self.note, &noted)?;
        // As late as can be: between this look and the next line nothing can be seen.
        if self.foreign().is_some() {
            self.known.pop();
            return Ok(false);
        }
        prepared.persist(&self.path).map_err(|error| error.error)?;
        self.known = vec![text.to_owned()];
        Ok(true)
    }
}

/// Writes beside it and renames, so that nobody ever reads half of it.
pub(crate) fn replace(path: &Path, text: &str) -> io::Result<()> {
    prepare(path, text)?.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// The text in a file beside this one. Who may read it is as it was.
fn prepare(path: &Path, text: &str) -> io::Result<NamedTempFile> {
    let directory = path.parent().unwrap_or(Path::new("/"));
    let mut file = tempfile::Builder::new().prefix(".posse-").tempfile_in(directory)?;
    file.write_all(text.as_bytes())?;
    let mode = std::fs::metadata(path).map_or(0o644, |old| old.permissions().mode());
    file.as_file().set_permissions(std::fs::Permissions::from_mode(mode))?;
    file.as_file().sync_all()?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_hand_is_told_from_others() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("plan.yaml");
        let open = || PlanFile::new(path.to_str().unwrap(), directory.path(), "a");
        std::fs::write(&path, "a").unwrap();
        let mut file = open();
        assert_eq!(file.edited(), None, "as it was read");
        file.write("b").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "b");
        assert_eq!((file.edited(), open().edited()), (None, None), "also after a crash");
        // A crash after the note, before the file.
        crate::serve::write_private(&directory.path().join("plan.json"), br#"["b","c"]"#).unwrap();
        assert_eq!(open().edited(), None);
        std::fs::write(&path, "theirs").unwrap();
        let mut file = open();
        assert_eq!(file.edited(), Some(("c".into(), "theirs".into())));
        assert_eq!(file.edited(), None, "told once");
        file.write("d").unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(file.edited(), None);
        assert!(file.write("d").unwrap());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "d", "the run has it all");
        // Somebody was faster.
        std::fs::write(&path, "faster").unwrap();
        assert!(!file.write("e").unwrap());
        assert_eq!(file.edited(), Some(("d".into(), "faster".into())));
        assert!(file.write("e").unwrap());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "e");
    }

    #[test]
    fn who_may_read_it_stays() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("plan.yaml");
        std::fs::write(&path, "a").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        replace(&path, "b").unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    }
}
