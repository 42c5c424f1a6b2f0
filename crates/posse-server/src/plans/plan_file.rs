//! The plan's file, which mirrors a run for people, and which people may edit meanwhile.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};

use posse_core::aftermath::UNFINISHED;
use posse_files::replace::{beside, called, prepare};
use posse_term::text_file::MAX_TEXT;
use tempfile::NamedTempFile;
use tokio::task::JoinHandle;

use crate::disk::{self, Disk};

/// Its name in the run's own directory.
const NOTE: &str = "plan.json";
/// What we have put into it, or are about to, is kept beside the run: after a crash this tells our hand from others'.
///
/// Writing the file takes longer than all decisions of a run. `begin` therefore prepares the text in the background; the driver
/// waits only for `put`, which renames the text into place in the order of the run's decisions.
pub(super) struct PlanFile {
    path: PathBuf,
    note: PathBuf,
    /// Texts that are ours. The last is the newest, and after a crash perhaps not there yet.
    known: Vec<String>,
    /// How a text is called that lies beside it.
    prefix: String,
    begun: Option<JoinHandle<io::Result<Option<Prepared>>>>,
    /// How often somebody has changed it.
    edits: u64,
}

/// A text that lies beside the plan, noted as ours, and has only to be put in its place.
pub(crate) struct Prepared {
    text: String,
    edits: u64,
    file: NamedTempFile,
}

/// What somebody has made of it.
#[derive(Debug, PartialEq)]
pub(super) enum Edited {
    Text {
        ours: String,
        theirs: String,
    },
    /// It is not UTF-8.
    NoText(Vec<u8>),
}

impl PlanFile {
    /// `text` is what the run began with.
    pub(super) async fn open(path: &str, state: &Path, text: &str) -> Self {
        let (path, text) = (PathBuf::from(path), text.to_owned());
        let open = move |disk: &Disk, state: &Path| {
            let note = state.join(NOTE);
            let prefix = format!("{UNFINISHED}{}-", state.file_name().unwrap_or_default().to_string_lossy());
            // What a daemon before us was about to put there when it died.
            for left in called(disk, beside(&path), &prefix) {
                let _ = disk.remove_file(&left.path());
            }
            Self { known: known(disk, &note, &text), path, note, prefix, begun: None, edits: 0 }
        };
        disk::at(state, open).await
    }

    /// What we left there, and what is there now, if somebody has changed it. Told once.
    pub(super) async fn edited(&mut self) -> Option<Edited> {
        let there = disk::at(&self.path, |disk, path| disk.read_bounded(path, MAX_TEXT)).await.ok()?;
        let theirs = Some(there).filter(|there| is_foreign(there, &self.known))?;
        let ours = basis(&self.known, &String::from_utf8_lossy(&theirs)).to_owned();
        self.known = vec![String::from_utf8_lossy(&theirs).into_owned()];
        self.edits += 1;
        Some(match String::from_utf8(theirs) {
            Ok(theirs) => Edited::Text { ours, theirs },
            Err(error) => Edited::NoText(error.into_bytes()),
        })
    }

    /// Whether a text is on its way there.
    pub(super) fn is_busy(&self) -> bool {
        self.begun.is_some()
    }

    /// Begins to write this text, if it is not there.
    pub(super) fn begin(&mut self, text: String) {
        self.begun = Some(tokio::spawn(disk::run(self.prepare(text))));
    }

    /// When what was begun is through. `None`: the text is there.
    pub(super) async fn prepared(&mut self) -> io::Result<Option<Prepared>> {
        let Some(begun) = &mut self.begun else { return std::future::pending().await };
        let prepared = begun.await;
        self.begun = None;
        prepared.map_err(io::Error::other)?
    }

    /// Waits for what was begun. What becomes of it nobody is told: something else will be written.
    pub(super) async fn settle(&mut self) {
        if self.is_busy()
            && let Ok(prepared) = self.prepared().await
        {
            let _ = self.put(prepared).await;
        }
    }

    /// All that needs no order.
    fn prepare(&self, text: String) -> impl FnOnce(&Disk) -> io::Result<Option<Prepared>> + Send + use<> {
        let (path, note, prefix, edits) = (self.path.clone(), self.note.clone(), self.prefix.clone(), self.edits);
        let mut known = self.known.clone();
        known.push(text.clone());
        move |disk| {
            if disk.read_bounded(&path, MAX_TEXT).is_ok_and(|there| there == text.as_bytes()) {
                return Ok(None);
            }
            let file = prepare(disk, &path, &prefix, &text)?;
            disk.write_private_unsynced(&note, &serde_json::to_vec(&known)?)?;
            Ok(Some(Prepared { text, edits, file }))
        }
    }

    /// Puts a text in its place, whole or not at all. `false`: somebody has just written there; that has to be taken over first.
    pub(super) async fn put(&mut self, prepared: Option<Prepared>) -> io::Result<bool> {
        let Some(Prepared { text, edits, file }) = prepared else { return Ok(true) };
        let known = self.known.clone();
        let told_since = edits != self.edits;
        let persist = move |disk: &Disk, path: &Path| {
            // As late as can be: between this look and the next line nothing can be seen. What somebody wrote before, and what
            // has been told since, is not in this text either.
            if told_since || disk.read_bounded(path, MAX_TEXT).is_ok_and(|there| is_foreign(&there, &known)) {
                return Ok(false);
            }
            disk.persist(file, path).map(|()| true)
        };
        let is_there = disk::at(&self.path, persist).await?;
        if is_there {
            self.known = vec![text];
        }
        Ok(is_there)
    }

    /// All of it at once.
    pub(super) async fn write(&mut self, text: &str) -> io::Result<bool> {
        let prepared = disk::run(self.prepare(text.to_owned())).await?;
        self.put(prepared).await
    }
}

/// Whether a text is not ours. A file that is gone is written anew: the run has it all.
fn is_foreign(there: &[u8], known: &[String]) -> bool {
    let text = String::from_utf8_lossy(there);
    !known.iter().any(|known| *known == text)
}

/// Texts that are ours, as they are noted; else the one that the run began with.
fn known(disk: &Disk, note: &Path, text: &str) -> Vec<String> {
    let noted = disk.read(note).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
    noted.unwrap_or_else(|| vec![text.to_owned()])
}

/// The text that a run has left in the file, as far as it got: what is not like that there now, somebody has changed since.
/// `began` is the text the run began with, `found` what is there now.
pub(super) fn left_by(disk: &Disk, state: &Path, began: &str, found: &str) -> String {
    basis(&known(disk, &state.join(NOTE), began), found).to_owned()
}

/// Which of our texts somebody has made this of: the one that has most of its lines. Of two that were noted, the file may have
/// had either.
fn basis<'k>(known: &'k [String], theirs: &str) -> &'k str {
    let foreign = |text: &&String| {
        let ours: HashSet<&str> = text.lines().collect();
        theirs.lines().filter(|line| !ours.contains(line)).count()
    };
    let same = known.iter().find(|text| *text == theirs);
    same.or_else(|| known.iter().rev().min_by_key(foreign)).map_or("", String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::DISK;

    fn text(ours: &str, theirs: &str) -> Option<Edited> {
        Some(Edited::Text { ours: ours.into(), theirs: theirs.into() })
    }

    #[tokio::test]
    async fn our_hand_is_told_from_others() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("plan.yaml");
        let open = || PlanFile::open(path.to_str().unwrap(), directory.path(), "a");
        std::fs::write(&path, "a").unwrap();
        let mut file = open().await;
        assert_eq!(file.edited().await, None, "as it was read");
        file.write("b").await.unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "b");
        assert_eq!((file.edited().await, open().await.edited().await), (None, None), "also after a crash");
        // A crash after the note, before the file.
        DISK.write_private(&directory.path().join("plan.json"), br#"["b","c"]"#).unwrap();
        assert_eq!(open().await.edited().await, None);
        std::fs::write(&path, "theirs").unwrap();
        let mut file = open().await;
        assert_eq!(file.edited().await, text("c", "theirs"));
        assert_eq!(file.edited().await, None, "told once");
        file.write("d").await.unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(file.edited().await, None);
        assert!(file.write("d").await.unwrap());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "d", "the run has it all");
        // Somebody was faster.
        std::fs::write(&path, "faster").unwrap();
        assert!(!file.write("e").await.unwrap());
        assert_eq!(file.edited().await, text("d", "faster"));
        assert!(file.write("e").await.unwrap());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "e");
        std::fs::write(&path, b"f\xff").unwrap();
        assert!(!file.write("g").await.unwrap());
        assert_eq!((file.edited().await, file.edited().await), (Some(Edited::NoText(b"f\xff".to_vec())), None));
        assert!(file.write("g").await.unwrap());
    }

    /// The daemon dies after the note, before the file: what is noted is not taken for what is there.
    #[tokio::test]
    async fn noted_and_not_there() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("plan.yaml");
        let state = directory.path().join("run1");
        std::fs::create_dir(&state).unwrap();
        let open = || PlanFile::open(path.to_str().unwrap(), &state, "1\n2\n3\n");
        std::fs::write(&path, "1\n2\n3\n").unwrap();
        let prepared = open().await.prepare("1\nb\n3\n".into())(DISK).unwrap().unwrap();
        // As after a kill: it lies there, and nobody will put it in its place.
        let (_file, left) = prepared.file.keep().unwrap();
        assert!(left.exists());
        let mut file = open().await;
        assert!(!left.exists(), "it is taken away");
        assert_eq!(file.edited().await, None);
        assert!(file.write("1\nb\n3\n").await.unwrap());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "1\nb\n3\n");
        // Somebody has edited one of the two: which, its lines tell.
        for (theirs, ours) in [("1\n2\n3\n4\n", "1\n2\n3\n"), ("1\nb\n3\n4\n", "1\nb\n3\n"), ("4\n", "1\nb\n3\n")] {
            std::fs::write(&path, theirs).unwrap();
            assert_eq!(open().await.edited().await, text(ours, theirs));
            assert_eq!(left_by(DISK, &state, "", theirs), ours);
        }
    }

    /// What others write while a text is on its way stays there.
    #[tokio::test]
    async fn somebody_writes_meanwhile() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("plan.yaml");
        let there = || std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, "a").unwrap();
        let mut file = PlanFile::open(path.to_str().unwrap(), directory.path(), "a").await;
        file.begin("b".into());
        assert!(file.is_busy());
        let prepared = file.prepared().await.unwrap();
        assert_eq!((there().as_str(), file.is_busy()), ("a", false), "not before it is told");
        assert!(file.put(prepared).await.unwrap());
        assert_eq!(there(), "b");
        file.begin("b".into());
        assert!(file.prepared().await.unwrap().is_none(), "it is there already");

        file.begin("c".into());
        std::fs::write(&path, "theirs").unwrap();
        let prepared = file.prepared().await.unwrap();
        assert!(!file.put(prepared).await.unwrap());
        assert_eq!((there(), file.edited().await), ("theirs".into(), text("b", "theirs")));

        std::fs::write(&path, "b").unwrap();
        assert!(file.edited().await.is_some());
        file.begin("c".into());
        std::fs::write(&path, "theirs").unwrap();
        assert!(file.edited().await.is_some(), "told before the text is there");
        let prepared = file.prepared().await.unwrap();
        assert!(!file.put(prepared).await.unwrap(), "it knows nothing of theirs");

        file.begin("d".into());
        file.settle().await;
        assert_eq!(there(), "d", "what was begun is better than nothing");
        let beside = std::fs::read_dir(directory.path()).unwrap().count();
        assert_eq!(beside, 2, "the plan and the note, and nothing that was not put in its place");
    }

    /// What could not be put there is not there, also when it is asked for again.
    #[tokio::test]
    async fn who_cannot_write_says_so_every_time() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("plan.yaml");
        std::fs::create_dir(&path).unwrap();
        let mut file = PlanFile::open(path.to_str().unwrap(), directory.path(), "a").await;
        assert!(file.write("b").await.is_err() && file.write("b").await.is_err());
        std::fs::remove_dir(&path).unwrap();
        assert!(file.write("b").await.unwrap());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "b");
    }

    /// After a run: what it left there, whether or not it got to the end of that.
    #[test]
    fn what_a_run_has_left_there() {
        let directory = tempfile::tempdir().unwrap();
        let left = |found: &str| left_by(DISK, directory.path(), "began", found);
        assert_eq!((left("began"), left("edited")), ("began".to_owned(), "began".to_owned()), "it never wrote");
        DISK.write_private(&directory.path().join(NOTE), br#"["b","c"]"#).unwrap();
        assert_eq!((left("c"), left("b")), ("c".to_owned(), "b".to_owned()), "the last one is not there yet");
        assert_eq!(left("edited"), "c");
    }
}
