//! The plan file of a run. It shows statuses to people, who may edit it meanwhile.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use posse_core::finalize::UNFINISHED;
use posse_core::plan::edit::{NotWritten, PlanText};
use posse_core::plan::machine::Run;
use posse_core::plan::{Plan, State, TaskStatus};
use posse_files::replace::{beside, called, prepare};
use posse_term::text_file::MAX_TEXT;
use tokio::task::JoinHandle;

use crate::disk::{self, Disk};

/// Reasons why the plan file does not show the state of the run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PlanFileError {
    #[error(transparent)]
    Edit(#[from] NotWritten),
    #[error("it is not a plan")]
    NoPlan,
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Writing the file takes longer than all decisions of a run, so `begin` writes in the background.
pub(super) struct PlanFile {
    path: PathBuf,
    /// The text in the file, as far as the run knows.
    last: Arc<str>,
    /// The beginning of the names of texts that are prepared beside the file.
    prefix: String,
    writing: Option<JoinHandle<Result<Written, PlanFileError>>>,
}

/// The text that is in the file now. Nothing if the file was edited: the edit has to be taken over first.
type Written = Option<Arc<str>>;

/// An edit by the user or a session.
#[derive(Debug, PartialEq)]
pub(super) struct Edited {
    pub(super) ours: Arc<str>,
    /// It may not be UTF-8.
    pub(super) theirs: Vec<u8>,
}

impl PlanFile {
    /// Opens the file of a run that begins or is resumed. `state` is the directory of the run.
    pub(super) async fn open(path: &str, state: &Path, run: &Run) -> Self {
        let prefix = format!("{UNFINISHED}{}-", state.file_name().unwrap_or_default().to_string_lossy());
        let (path, run) = (PathBuf::from(path), run.clone());
        let open = move |disk: &Disk| {
            // A daemon that died may have prepared a text.
            for left in called(disk, beside(&path), &prefix) {
                let _ = disk.remove_file(&left.path());
            }
            let there = disk.read_bounded(&path, MAX_TEXT).ok().and_then(|there| String::from_utf8(there).ok());
            let last = there.map_or_else(|| run.text().text().clone(), |there| basis(&run, &there));
            Self { path, last, prefix, writing: None }
        };
        disk::run(open).await
    }

    /// The text that the run left there, and the text there now, if it was edited. Each edit is returned once, and none while a
    /// text is being written.
    pub(super) async fn edited(&mut self) -> Option<Edited> {
        let there = disk::at(&self.path, |disk, path| disk.read_bounded(path, MAX_TEXT)).await.ok()?;
        if self.is_busy() || is(&there, &self.last) {
            return None;
        }
        let ours = std::mem::replace(&mut self.last, String::from_utf8_lossy(&there).into());
        Some(Edited { ours, theirs: there })
    }

    /// Reports whether a text is being written.
    pub(super) fn is_busy(&self) -> bool {
        self.writing.is_some()
    }

    /// Begins to bring the file up to date.
    pub(super) fn begin(&mut self, run: Run) {
        let write = self.write(move || Ok(run.mirror()?));
        self.writing = Some(tokio::spawn(disk::run(write)));
    }

    /// Waits for the text that is being written. `false`: the file was edited.
    pub(super) async fn written(&mut self) -> Result<bool, PlanFileError> {
        let Some(writing) = &mut self.writing else { return std::future::pending().await };
        let written = writing.await;
        self.writing = None;
        Ok(self.knows(written.map_err(io::Error::other)??))
    }

    fn knows(&mut self, written: Written) -> bool {
        let is_written = written.is_some();
        self.last = written.unwrap_or_else(|| self.last.clone());
        is_written
    }

    /// Puts a text into the file, whole or not at all.
    fn write<F: FnOnce() -> Result<Arc<str>, PlanFileError> + Send + 'static>(
        &self,
        text: F,
    ) -> impl FnOnce(&Disk) -> Result<Written, PlanFileError> + Send + use<F> {
        let (path, prefix, over) = (self.path.clone(), self.prefix.clone(), self.last.clone());
        move |disk| {
            let text = text()?;
            let there = || disk.read_bounded(&path, MAX_TEXT);
            if there().is_ok_and(|there| there == text.as_bytes()) {
                return Ok(Some(text));
            }
            let file = prepare(disk, &path, &prefix, &text)?;
            // As late as possible: an edit between this look and the next line is not seen. A file that is gone is written
            // anew.
            if there().is_ok_and(|there| !is(&there, &over)) {
                return Ok(None);
            }
            disk.persist(file, &path)?;
            Ok(Some(text))
        }
    }

    /// Writes the statuses with which a run ends. Edits of the last moment stay, for the next run.
    pub(super) async fn write_last(&mut self, run: &Run) -> Result<(), PlanFileError> {
        if self.is_busy() {
            // If this text cannot be written, the last write fails too and reports it.
            let _ = self.written().await;
        }
        let (mut edit, run) = (None, run.clone());
        loop {
            if let Some(Edited { theirs, .. }) = self.edited().await {
                // If it is no plan at the moment, it is not ours to write over.
                edit = Some(String::from_utf8(theirs).map_err(|_| PlanFileError::NoPlan)?);
            }
            let (edit, run) = (edit.clone(), run.clone());
            let text = move || match edit {
                None => Ok(run.mirror()?),
                Some(edit) => {
                    let text = PlanText::parse(&edit).map_err(|_| PlanFileError::NoPlan)?;
                    Ok(text.with_statuses(run.state())?.into())
                }
            };
            let written = disk::run(self.write(text)).await?;
            if self.knows(written) {
                return Ok(());
            }
        }
    }

    /// The statuses in the file, as far as they are known.
    pub(super) fn shown(&self) -> State {
        Plan::read("plan", &self.last).map(|(plan, _)| State::recorded(&plan)).unwrap_or_default()
    }
}

/// Compares the content of a file, which may be no text, with a text.
fn is(there: &[u8], text: &str) -> bool {
    String::from_utf8_lossy(there) == text
}

/// Returns the text of the run on which an edit is based. A daemon that died may have left any of them in the file.
fn basis(run: &Run, there: &str) -> Arc<str> {
    let earlier = run.earlier_texts().iter().filter_map(|text| PlanText::parse(text).ok());
    if run.text().is_same_plan(there) || earlier.clone().any(|text| text.is_same_plan(there)) {
        return there.into();
    }
    let strange = |text: &PlanText| {
        let ours: HashSet<&str> = text.text().lines().collect();
        there.lines().filter(|line| !ours.contains(line)).count()
    };
    // Edits do not change statuses, except that they can skip tasks; otherwise statuses are as a daemon left them.
    let mut state = Plan::read("plan", there).map(|(plan, _)| State::recorded(&plan)).unwrap_or_default();
    let skipped = state.iter().filter(|(_, record)| record.status == TaskStatus::Skipped).map(|(task, _)| task.clone());
    for task in skipped.collect::<Vec<_>>() {
        state.of(&task).status = run.state().status(&task);
    }
    let shown = |text: &PlanText| text.with_statuses(&state).map_or_else(|_| text.text().clone(), Arc::from);
    let nearest = earlier.min_by_key(strange).filter(|text| strange(text) < strange(run.text()));
    nearest.as_ref().map_or_else(|| shown(run.text()), shown)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use posse_core::engine::{Machine, StopHow};
    use posse_core::plan::machine::Event;
    use posse_core::plan::settings::Settings;
    use posse_core::time::Wall;

    use super::*;

    const PLAN: &str = "meta: {name: p}\nsections:\n  - id: s\n    tasks:\n      - {id: a, name: A}\n";

    struct Scene {
        directory: tempfile::TempDir,
        path: PathBuf,
        run: Run,
    }

    impl Scene {
        fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("plan.yaml");
            std::fs::write(&path, PLAN).unwrap();
            let (plan, _) = Plan::read("p", PLAN).unwrap();
            let run = Run::new("p", PLAN, State::recorded(&plan), Settings::of(&plan), &BTreeMap::new()).unwrap();
            Self { directory, path, run }
        }

        async fn open(&self) -> PlanFile {
            PlanFile::open(self.path.to_str().unwrap(), &self.directory.path().join("run1"), &self.run).await
        }

        fn starts(&mut self) {
            self.run.handle(Event::Started, Wall(0));
        }

        fn write(&self, text: &str) {
            std::fs::write(&self.path, text).unwrap();
        }

        fn text(&self) -> String {
            std::fs::read_to_string(&self.path).unwrap()
        }

        async fn update(&self, file: &mut PlanFile) -> Result<bool, PlanFileError> {
            file.begin(self.run.clone());
            file.written().await
        }
    }

    fn with_status(status: &str) -> String {
        PLAN.replace("name: A", &format!("name: A, status: {status}"))
    }

    fn edited(ours: &str, theirs: &str) -> Option<Edited> {
        Some(Edited { ours: ours.into(), theirs: theirs.into() })
    }

    #[tokio::test]
    async fn own_writes_are_told_from_edits() {
        let mut scene = Scene::new();
        let mut file = scene.open().await;
        assert_eq!(file.edited().await, None, "as it was read");
        scene.starts();
        assert!(scene.update(&mut file).await.unwrap());
        let begun = with_status("in_progress");
        assert_eq!(scene.text(), begun);
        assert_eq!((file.edited().await, scene.open().await.edited().await), (None, None), "also after a crash");
        let theirs = format!("{begun}      - {{id: b, name: B}}\n");
        scene.write(&theirs);
        assert_eq!(scene.open().await.edited().await, edited(&begun, &theirs), "after a crash");
        assert_eq!(file.edited().await, edited(&begun, &theirs));
        assert_eq!(file.edited().await, None, "told once");
        std::fs::remove_file(&scene.path).unwrap();
        assert_eq!(file.edited().await, None);
        assert!(scene.update(&mut file).await.unwrap());
        assert_eq!(scene.text(), begun, "the run has it all");
        std::fs::write(&scene.path, b"f\xff").unwrap();
        assert!(!scene.update(&mut file).await.unwrap());
        assert_eq!(file.edited().await.unwrap().theirs, b"f\xff");
        assert_eq!(file.edited().await, None);
        assert!(scene.update(&mut file).await.unwrap());
        assert_eq!(scene.text(), begun);
    }

    /// A daemon may die before it has put a text in its place. The next one does not take the old text for an edit.
    #[tokio::test]
    async fn a_file_that_is_behind_is_no_edit() {
        let mut scene = Scene::new();
        scene.starts();
        let left = scene.directory.path().join(format!("{UNFINISHED}run1-x"));
        std::fs::write(&left, scene.run.mirror().unwrap().as_bytes()).unwrap();
        let mut file = scene.open().await;
        assert!(!left.exists(), "it is taken away");
        assert_eq!(file.edited().await, None);
        // A session has added a task, and the file does not have it yet.
        let ours = scene.run.mirror().unwrap().to_string();
        let added = format!("{ours}      - {{id: b, name: B}}\n");
        scene.run.handle(Event::PlanEdited { ours, theirs: added.clone() }, Wall(1));
        assert_eq!(scene.open().await.edited().await, None);
        // The user has edited one of the two. The edited lines show which; statuses are not edits.
        for theirs in [format!("# mine\n{PLAN}"), format!("# mine\n{added}")] {
            scene.write(&theirs);
            let ours = theirs.replace("# mine\n", "");
            assert_eq!(scene.open().await.edited().await, edited(&ours, &theirs));
        }
        let skipped = PLAN.replace("name: A", "name: A, status: skipped, skip_reason: x");
        scene.write(&skipped);
        let ours = scene.open().await.edited().await.unwrap().ours;
        assert!(ours.contains("status: in_progress"), "{ours}");
    }

    /// Concurrent writes by others before a text is in its place are kept.
    #[tokio::test]
    async fn somebody_writes_meanwhile() {
        let mut scene = Scene::new();
        let mut file = scene.open().await;
        scene.starts();
        scene.write("theirs");
        file.begin(scene.run.clone());
        assert_eq!((file.is_busy(), file.edited().await), (true, None));
        assert!(!file.written().await.unwrap());
        assert_eq!((scene.text(), file.edited().await), ("theirs".into(), edited(PLAN, "theirs")));
        let beside = std::fs::read_dir(scene.directory.path()).unwrap().count();
        assert_eq!(beside, 1, "nothing is left beside the plan");
    }

    /// Edits of the last moment stay, with the statuses in them.
    #[tokio::test]
    async fn the_last_statuses_are_written_into_the_last_edit() {
        let mut scene = Scene::new();
        let mut file = scene.open().await;
        scene.starts();
        file.begin(scene.run.clone());
        scene.run.handle(Event::Stop(StopHow::Now), Wall(1));
        let theirs = format!("# mine\n{PLAN}");
        scene.write(&theirs);
        file.write_last(&scene.run).await.unwrap();
        assert_eq!(scene.text(), format!("# mine\n{}", scene.run.mirror().unwrap()));
        scene.write("{");
        assert!(matches!(file.write_last(&scene.run).await, Err(PlanFileError::NoPlan)));
        assert_eq!(scene.text(), "{");
    }

    /// A failed write is reported again on the next request.
    #[tokio::test]
    async fn write_errors_are_reported_every_time() {
        let mut scene = Scene::new();
        let mut file = scene.open().await;
        scene.starts();
        std::fs::remove_file(&scene.path).unwrap();
        std::fs::create_dir(&scene.path).unwrap();
        assert!(scene.update(&mut file).await.is_err() && scene.update(&mut file).await.is_err());
        let shown = |file: &PlanFile| file.shown().status(&"a".parse().unwrap());
        assert_eq!(shown(&file), TaskStatus::Pending, "as it was last written");
        std::fs::remove_dir(&scene.path).unwrap();
        assert!(scene.update(&mut file).await.unwrap());
        assert_eq!((scene.text(), shown(&file)), (with_status("in_progress"), TaskStatus::InProgress));
    }
}
