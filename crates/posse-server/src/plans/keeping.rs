//! What runs of plans leave behind, and what of it goes: by itself when it is old or too much, and when somebody asks. Of
//! pipelines the same, item by item (`auto::keeping`); the gigabyte is for both.
//! What may go is decided in `posse_core::plan::retention`; whether work is merged, git says (`areas`).

use std::collections::HashSet;
use std::path::Path;
use std::time::SystemTime;

use posse_api::{CleanItem, CleanView, CleanWhat, PlanRunStatus, PlanView};
use posse_core::ids::RunId;
use posse_core::plan::machine::RunOutcome;
use posse_core::plan::retention::{self, Run};
use posse_core::time::Wall;

use super::areas::{Sweep, has_notes};
use super::keep::KeptWork;
use super::{PlanError, Plans};
use crate::api::App;
use crate::auto::keeping as items;
use crate::disk::{self, Disk};

/// More runs than anybody has.
pub(crate) const ALL: usize = i32::MAX as usize;

/// Whose files they are.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Of {
    Plan(RunId),
    Item(items::ItemOf),
}

/// Removes the files of runs and items that are old, or too much. When the daemon starts and when a run ends, so nothing waits
/// for a clock.
pub(crate) async fn tidy(app: &App) {
    let (Ok(plans), Ok(autos)) = (app.plans.list(ALL).await, app.autos.list(ALL).await) else { return };
    let (state, autos_state) = (app.plans.state.clone(), app.paths.autos());
    disk::run(move |disk| {
        let mut all: Vec<Run<Of>> = on_disk(disk, &state, &plans).into_iter().map(|run| named(run, Of::Plan)).collect();
        all.extend(items::on_disk(disk, &autos_state, &autos).into_iter().map(|run| named(run, Of::Item)));
        let stays = retention::stays(&all, |file| disk.exists(Path::new(file)));
        for of in retention::surplus(&all, &stays, crate::now()) {
            match of {
                Of::Plan(id) => remove(disk, &state, id),
                Of::Item(item) => items::remove(disk, &autos_state, &item),
            }
        }
        remove_strangers(disk, &state, &plans);
    })
    .await;
}

fn named<I, J>(run: Run<I>, name: impl FnOnce(I) -> J) -> Run<J> {
    let Run { id, file, begun, changed, over, success, holds_work, bytes } = run;
    Run { id: name(id), file, begun, changed, over, success, holds_work, bytes }
}

impl Plans {
    /// What may go of what runs left behind, and what may not; of all plans, or of this one. With `remove` it goes.
    pub(crate) async fn clean_all(&self, file: Option<&str>, remove: bool) -> Result<CleanView, PlanError> {
        // Nobody begins a run meanwhile.
        let _beginning = self.beginning.lock().await;
        let file = match file {
            Some(file) => Some(super::real_file(file).await.unwrap_or_else(|_| file.to_owned())),
            None => None,
        };
        let works = self.clean(file.as_deref(), if remove { Sweep::Remove } else { Sweep::Look }).await?;
        let views = self.list(ALL).await?;
        let mut runs = self.measured(&views).await;
        for run in runs.iter_mut().filter(|run| run.holds_work) {
            // What could not be looked at is not named, and stays.
            let mut of_run = works.iter().filter(|work| work.run == run.id).peekable();
            run.holds_work = of_run.peek().is_none() || of_run.any(|work| !work.goes);
        }
        let mut found = CleanView::default();
        for KeptWork { run, file, directory, branch, why, goes } in works {
            let name = format!("{} (branch {branch})", directory.display());
            let list = if goes { &mut found.gone } else { &mut found.kept };
            list.push(CleanItem { what: CleanWhat::WorkTree, name, run, file, why });
        }
        let state = self.state.clone();
        let look = move |disk: &Disk| {
            let stays = retention::stays(&runs, |file| disk.exists(Path::new(file)));
            runs.retain(|run| disk.exists(&state.join(run.id.as_str())));
            (runs, stays)
        };
        let (runs, stays) = disk::run(look).await;
        for run in runs.iter().filter(|run| file.as_ref().is_none_or(|file| *file == run.file)) {
            let directory = self.state_of(run.id);
            let item = |why: &str| CleanItem {
                what: CleanWhat::Run,
                name: directory.display().to_string(),
                run: run.id,
                file: run.file.clone(),
                why: why.to_owned(),
            };
            match stays.get(&run.id) {
                Some(why) => found.kept.push(item(why.as_str())),
                None => {
                    found.bytes += run.bytes;
                    found.gone.push(item("its plan is done"));
                    if remove {
                        let id = run.id;
                        disk::at(&self.state, move |disk, state| self::remove(disk, state, id)).await;
                    }
                }
            }
        }
        Ok(found)
    }

    async fn measured(&self, views: &[PlanView]) -> Vec<Run<RunId>> {
        let views = views.to_vec();
        disk::at(&self.state, move |disk, state| on_disk(disk, state, &views)).await
    }
}

/// All runs, with what there is of them on disk. Those of which nothing is left count too: how the newest run of a plan
/// ended says whether the plan is at its end.
fn on_disk(disk: &Disk, state: &Path, views: &[PlanView]) -> Vec<Run<RunId>> {
    let run = |view: &PlanView| {
        let directory = state.join(view.id.as_str());
        Run {
            id: view.id,
            file: view.file.clone(),
            begun: Wall(view.created.as_millisecond()),
            changed: Wall(view.changed.as_millisecond()),
            over: view.status == PlanRunStatus::Over,
            success: view.outcome.is_some_and(RunOutcome::is_success),
            holds_work: holds_work(disk, &directory),
            bytes: size(disk, &directory),
        }
    };
    views.iter().map(run).collect()
}

/// Work areas are left in it.
pub(crate) fn holds_work(disk: &Disk, directory: &Path) -> bool {
    !is_empty(disk, &directory.join("worktrees")) || has_notes(disk, directory)
}

/// No file is below it. What cannot be looked at may hold anything.
fn is_empty(disk: &Disk, directory: &Path) -> bool {
    match disk.read_dir(directory) {
        Ok(mut entries) => entries.all(|entry| {
            let found = entry.and_then(|entry| Ok((entry.file_type()?.is_dir(), entry.path())));
            found.is_ok_and(|(is_directory, path)| is_directory && is_empty(disk, &path))
        }),
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    }
}

/// What logs take. Work trees, which may be as large as the project, are no logs, and go when their work is merged.
pub(crate) fn size(disk: &Disk, directory: &Path) -> u64 {
    let entries = disk.read_dir(directory).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(found) if found.is_dir() && matches!(entry.file_name().to_str(), Some("worktrees" | "bench")) => 0,
            Ok(found) if found.is_dir() => size(disk, &entry.path()),
            Ok(found) => found.len(),
            Err(_) => 0,
        })
        .sum()
}

fn remove(disk: &Disk, state: &Path, id: RunId) {
    let directory = state.join(id.as_str());
    match disk.remove_dir_all(&directory) {
        Ok(()) => tracing::info!("the files of run {id} have been removed"),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => tracing::warn!("{error}"),
    }
}

/// Directories of runs that nobody knows: begun, and not written down before a crash. They never held anything.
fn remove_strangers(disk: &Disk, state: &Path, views: &[PlanView]) {
    let known: HashSet<&str> = views.iter().map(|view| view.id.as_str()).collect();
    for entry in disk.read_dir(state).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(id) = name.to_str().filter(|name| !known.contains(name)).and_then(|name| name.parse().ok()) else {
            continue;
        };
        let directory = entry.path();
        let old = entry
            .metadata()
            .and_then(|found| found.modified())
            .is_ok_and(|changed| SystemTime::now().duration_since(changed).is_ok_and(|age| age > retention::AGE));
        if old && !holds_work(disk, &directory) {
            remove(disk, state, id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::DISK;

    #[test]
    fn only_notes_and_files_of_areas_are_work() {
        let run = tempfile::tempdir().unwrap();
        let make = |path: &str| {
            let path = run.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        };
        assert!(!holds_work(DISK, run.path()), "nothing was ever made");
        std::fs::create_dir_all(run.path().join("worktrees/a/empty")).unwrap();
        // Left by somebody who was killed while writing a note.
        make("areas/.tmpQ3x9");
        make("areas/a.1.new");
        assert!(!holds_work(DISK, run.path()), "that is no work");
        make("areas/a.1.json");
        assert!(holds_work(DISK, run.path()), "a note");
        std::fs::remove_file(run.path().join("areas/a.1.json")).unwrap();
        make("worktrees/a/file");
        assert!(holds_work(DISK, run.path()), "a file without a note");
    }
}
