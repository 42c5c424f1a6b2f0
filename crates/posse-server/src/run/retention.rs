//! Removes the files of runs: when they are old or too large, and when a user asks. A run of a plan is removed as a whole. Of a pipeline items are removed one by one: a pipeline that watches has no end, its items do.
//!
//! `posse_core::plan::retention` decides what may be removed; git reports whether work is merged (`work trees`).

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use posse_api::{BacklogView, CleanItem, CleanView, CleanWhat, ItemView, PlanView};
use posse_core::auto::Standing;
use posse_core::backlog::Slug;
use posse_core::engine::RunOutcome;
use posse_core::ids::RunId;
use posse_core::plan::retention::{self, Stays, StoredRun};
use posse_core::time::Wall;

use super::SupervisorError;
use crate::api::App;
use crate::auto::log_file;
use crate::auto::place::of_item;
use crate::disk::{self, Disk};
use crate::plans::real_file;
use crate::plans::worktrees::{Sweep, has_records};

/// More runs than there can be.
pub(crate) const ALL: usize = i32::MAX as usize;

/// A run of a plan, or an item of a pipeline.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Owner {
    Plan(RunId),
    Item(RunId, Slug),
}

impl Owner {
    /// Returns the reason why the files are kept or may be removed.
    fn reason(&self, stays: Option<Stays>) -> &'static str {
        match (self, stays) {
            (Self::Plan(_), None) => "its plan is done",
            (Self::Item(..), None) => "it is out of the backlog",
            (Self::Item(..), Some(Stays::Unfinished)) => "it is still in the backlog",
            (_, Some(stays)) => stays.as_str(),
        }
    }
}

/// The directories of the files of plans and of pipelines.
#[derive(Clone)]
struct StateDirs {
    plans: PathBuf,
    autos: PathBuf,
}

impl StateDirs {
    fn of(app: &App) -> Self {
        Self { plans: app.plans.state.clone(), autos: app.autos.state.clone() }
    }

    fn directory(&self, owner: &Owner) -> PathBuf {
        match owner {
            Owner::Plan(run) => self.plans.join(run.as_str()),
            Owner::Item(run, item) => of_item(&self.autos.join(run.as_str()), item),
        }
    }

    fn remove(&self, disk: &Disk, owner: &Owner) {
        let directory = self.directory(owner);
        match disk.remove_dir_all(&directory) {
            Ok(()) => tracing::info!("{} has been removed", directory.display()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => tracing::warn!("{error}"),
        }
        if let Owner::Item(run, item) = owner {
            let pipeline = self.autos.join(run.as_str());
            let _ = disk.remove_file(&log_file::of_item(&pipeline, item));
            // If it was the last item.
            if disk.remove_dir(&pipeline.join("items")).is_ok() {
                let _ = disk.remove_file(&log_file::of_pipeline(&pipeline));
                let _ = disk.remove_dir(&pipeline);
            }
        }
    }

    /// Measures all runs of plans, and all items with files. Runs without files count too: the newest run of a plan
    /// determines whether the plan is done.
    fn measure(&self, disk: &Disk, plans: &[PlanView], autos: &[BacklogView]) -> Vec<StoredRun<Owner>> {
        let mut all: Vec<StoredRun<Owner>> = plans.iter().map(|view| self.measure_plan(disk, view)).collect();
        all.extend(autos.iter().flat_map(|view| self.measure_items(disk, view)));
        all
    }

    fn measure_plan(&self, disk: &Disk, view: &PlanView) -> StoredRun<Owner> {
        let id = Owner::Plan(view.id);
        let directory = self.directory(&id);
        StoredRun {
            id,
            file: view.file.clone(),
            begun: Wall(view.created.as_millisecond()),
            changed: Wall(view.changed.as_millisecond()),
            over: !view.is_active(),
            success: view.outcome.is_some_and(RunOutcome::is_success),
            holds_work: holds_work(disk, &directory),
            bytes: size(disk, &directory),
        }
    }

    fn measure_items(&self, disk: &Disk, view: &BacklogView) -> Vec<StoredRun<Owner>> {
        let entries = disk.read_dir(&self.autos.join(view.id.as_str()).join("items")).into_iter().flatten().flatten();
        let directories = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        let items = directories.filter_map(|entry| entry.file_name().to_str()?.parse::<Slug>().ok());
        let measure = |item: Slug| {
            let known = view.items.iter().find(|known| known.item == item);
            let done = known.is_some_and(|item| matches!(item.standing, Standing::Ended | Standing::Gone));
            let id = Owner::Item(view.id, item);
            let directory = self.directory(&id);
            let begun = Wall(view.created.as_millisecond());
            StoredRun {
                id,
                file: item_file(view, known),
                begun,
                // The time of its last session.
                changed: modified(disk, &directory.join("sessions")).unwrap_or(begun),
                over: !view.is_active() || done,
                success: done,
                holds_work: holds_work(disk, &directory),
                bytes: size(disk, &directory),
            }
        };
        items.map(measure).collect()
    }
}

/// Removes the files of runs and items that are old, or too much. Called when the daemon starts and when a run ends, so no timer
/// is needed.
pub(crate) async fn tidy(app: &App) {
    let (Ok(plans), Ok(autos)) = (app.plans.list(ALL).await, app.autos.list(ALL).await) else { return };
    let dirs = StateDirs::of(app);
    disk::run(move |disk| {
        let all = dirs.measure(disk, &plans, &autos);
        let stays = retention::stays(&all, |file| disk.exists(Path::new(file)));
        for owner in retention::surplus(&all, &stays, crate::now()) {
            dirs.remove(disk, &owner);
        }
        remove_unknown(disk, &dirs, &plans);
    })
    .await;
}

/// Lists what may be removed and what stays: of all plans and items, or of this plan. With `remove` it is removed.
pub(crate) async fn clean(app: &App, file: Option<&str>, remove: bool) -> Result<CleanView, SupervisorError> {
    // No run is started meanwhile.
    let (_plans, _autos) = (app.plans.starting.lock().await, app.autos.starting.lock().await);
    let file = match file {
        Some(file) => Some(real_file(file).await.unwrap_or_else(|_| file.to_owned())),
        None => None,
    };
    let works = app.plans.clean(file.as_deref(), if remove { Sweep::Remove } else { Sweep::Look }).await?;
    let plans = app.plans.list(ALL).await?;
    let autos = if file.is_none() { app.autos.list(ALL).await? } else { Vec::new() };
    let dirs = StateDirs::of(app);
    let look = move |disk: &Disk| {
        let mut found = CleanView::default();
        let mut all = dirs.measure(disk, &plans, &autos);
        for run in all.iter_mut().filter(|run| run.holds_work) {
            // Work that could not be looked at is not named, and stays.
            let mut of_run = works.iter().filter(|(work, _)| Owner::Plan(work.run) == run.id).peekable();
            run.holds_work = of_run.peek().is_none() || of_run.any(|(_, goes)| !goes);
        }
        for (work, goes) in works {
            if goes { &mut found.gone } else { &mut found.kept }.push(work);
        }
        let stays = retention::stays(&all, |file| disk.exists(Path::new(file)));
        for StoredRun { id, file: of, bytes, .. } in all {
            let directory = dirs.directory(&id);
            if file.as_ref().is_some_and(|file| *file != of) || !disk.exists(&directory) {
                continue;
            }
            let why = stays.get(&id).copied();
            let (what, run) = match &id {
                Owner::Plan(run) => (CleanWhat::Run, *run),
                Owner::Item(run, _) => (CleanWhat::Item, *run),
            };
            let name = directory.display().to_string();
            let item = CleanItem { what, name, run, file: of, why: id.reason(why).to_owned() };
            if why.is_some() {
                found.kept.push(item);
                continue;
            }
            found.bytes += bytes;
            found.gone.push(item);
            if remove {
                dirs.remove(disk, &id);
            }
        }
        found
    };
    Ok(disk::run(look).await)
}

/// The file of an item; if it is out of the backlog, where it would be. The project for an item that is not known.
fn item_file(view: &BacklogView, known: Option<&ItemView>) -> String {
    let project = PathBuf::from(&view.directory);
    let file = match known {
        Some(ItemView { path: Some(path), .. }) => project.join(path),
        Some(item) => project.join(format!("{}.md", item.item)),
        None => project,
    };
    file.to_string_lossy().into_owned()
}

fn modified(disk: &Disk, path: &Path) -> Option<Wall> {
    let changed = disk.metadata(path).ok()?.modified().ok()?;
    Some(Wall(jiff::Timestamp::try_from(changed).ok()?.as_millisecond()))
}

pub(super) fn holds_work(disk: &Disk, directory: &Path) -> bool {
    !is_empty(disk, &directory.join("worktrees")) || has_records(disk, directory)
}

/// Reports whether no file is below the directory. One that cannot be read may hold anything.
fn is_empty(disk: &Disk, directory: &Path) -> bool {
    match disk.read_dir(directory) {
        Ok(mut entries) => entries.all(|entry| {
            let found = entry.and_then(|entry| Ok((entry.file_type()?.is_dir(), entry.path())));
            found.is_ok_and(|(is_directory, path)| is_directory && is_empty(disk, &path))
        }),
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    }
}

/// The size of logs. Work trees, which may be as large as the project, are no logs, and go when their work is merged.
fn size(disk: &Disk, directory: &Path) -> u64 {
    let entries = disk.read_dir(directory).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(found) if found.is_dir() && matches!(entry.file_name().to_str(), Some("worktrees" | "scratch")) => 0,
            Ok(found) if found.is_dir() => size(disk, &entry.path()),
            Ok(found) => found.len(),
            Err(_) => 0,
        })
        .sum()
}

/// Removes directories of runs that were not journaled before a crash. They never held anything.
fn remove_unknown(disk: &Disk, dirs: &StateDirs, views: &[PlanView]) {
    let known: HashSet<&str> = views.iter().map(|view| view.id.as_str()).collect();
    for entry in disk.read_dir(&dirs.plans).into_iter().flatten().flatten() {
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
            dirs.remove(disk, &Owner::Plan(id));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::DISK;

    #[test]
    fn only_records_and_files_of_work_trees_are_work() {
        let run = tempfile::tempdir().unwrap();
        let make = |path: &str| {
            let path = run.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        };
        assert!(!holds_work(DISK, run.path()), "nothing was ever made");
        std::fs::create_dir_all(run.path().join("worktrees/a/empty")).unwrap();
        // Left by a process that was killed while writing a note.
        make("records/.tmpQ3x9");
        make("records/a.1.new");
        assert!(!holds_work(DISK, run.path()), "that is no work");
        make("records/a.1.json");
        assert!(holds_work(DISK, run.path()), "a note");
        std::fs::remove_file(run.path().join("records/a.1.json")).unwrap();
        make("worktrees/a/file");
        assert!(holds_work(DISK, run.path()), "a file without a note");
    }
}
