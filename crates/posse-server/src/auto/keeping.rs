//! What is kept of those who planned and verified an item, and what of it goes. Decided as for runs of plans
//! (`posse_core::plan::retention`), item by item: a pipeline that watches has no end, its items do.

use std::path::{Path, PathBuf};

use posse_api::{AutoView, CleanItem, CleanView, CleanWhat, ItemView, PlanRunStatus};
use posse_core::auto::Standing;
use posse_core::backlog::Slug;
use posse_core::ids::RunId;
use posse_core::plan::retention::{self, Run, Stays};
use posse_core::time::Wall;

use super::log_file;
use super::logs::sessions_of;
use super::place::of_item;
use super::{AutoError, Autos};
use crate::disk::{self, Disk};
use crate::plans::keeping::{ALL, holds_work, size};

/// An item, and the pipeline that worked on it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ItemOf {
    pub(crate) run: RunId,
    pub(crate) item: Slug,
}

impl Autos {
    /// Adds what may go, and what may not, to what is known of plans. With `remove` it goes.
    pub(crate) async fn clean(&self, remove: bool, found: &mut CleanView) -> Result<(), AutoError> {
        // Nobody begins a pipeline meanwhile.
        let _beginning = self.beginning.lock().await;
        let (views, state) = (self.list(ALL).await?, self.state.clone());
        let looked = disk::run(move |disk| {
            let mut found = CleanView::default();
            let items = on_disk(disk, &state, &views);
            let stays = retention::stays(&items, |file| disk.exists(Path::new(file)));
            for Run { id, file, bytes, .. } in items {
                let name = of_item(&state.join(id.run.as_str()), &id.item).display().to_string();
                let one = |why: &str| CleanItem { what: CleanWhat::Item, name, run: id.run, file, why: why.to_owned() };
                match stays.get(&id) {
                    Some(why) => found.kept.push(one(words(*why))),
                    None => {
                        found.bytes += bytes;
                        found.gone.push(one("it is out of the backlog"));
                        if remove {
                            self::remove(disk, &state, &id);
                        }
                    }
                }
            }
            found
        });
        let CleanView { gone, kept, bytes } = looked.await;
        found.gone.extend(gone);
        found.kept.extend(kept);
        found.bytes += bytes;
        Ok(())
    }
}

fn words(stays: Stays) -> &'static str {
    match stays {
        Stays::Unfinished => "it is still in the backlog",
        Stays::Running | Stays::HoldsWork => stays.as_str(),
    }
}

/// Every item of which there is something on disk.
pub(crate) fn on_disk(disk: &Disk, state: &Path, views: &[AutoView]) -> Vec<Run<ItemOf>> {
    views.iter().flat_map(|view| of_pipeline(disk, state, view)).collect()
}

fn of_pipeline(disk: &Disk, state: &Path, view: &AutoView) -> Vec<Run<ItemOf>> {
    let directory = state.join(view.id.as_str());
    let entries = disk.read_dir(&directory.join("items")).into_iter().flatten().flatten();
    let directories = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let items = directories.filter_map(|entry| entry.file_name().to_str()?.parse::<Slug>().ok());
    let run = |item: Slug| {
        let known = view.items.iter().find(|known| known.item == item);
        let directory = of_item(&directory, &item);
        let begun = Wall(view.created.as_millisecond());
        Run {
            file: file(view, known),
            begun,
            changed: changed(disk, &sessions_of(&directory)).unwrap_or(begun),
            over: view.status == PlanRunStatus::Over || known.is_some_and(is_done),
            success: known.is_some_and(is_done),
            holds_work: holds_work(disk, &directory),
            bytes: size(disk, &directory),
            id: ItemOf { run: view.id, item },
        }
    };
    items.map(run).collect()
}

fn is_done(item: &ItemView) -> bool {
    matches!(item.standing, Standing::Ended | Standing::Gone)
}

/// The item itself; when it is out of the backlog, that is where it would be. Of one that nobody knows, the project.
fn file(view: &AutoView, known: Option<&ItemView>) -> String {
    let project = PathBuf::from(&view.directory);
    let file = match known {
        Some(ItemView { path: Some(path), .. }) => project.join(path),
        Some(item) => project.join(format!("{}.md", item.item)),
        None => project,
    };
    file.to_string_lossy().into_owned()
}

/// When its last session was begun.
fn changed(disk: &Disk, sessions: &Path) -> Option<Wall> {
    let changed = disk.metadata(sessions).ok()?.modified().ok()?;
    Some(Wall(jiff::Timestamp::try_from(changed).ok()?.as_millisecond()))
}

pub(crate) fn remove(disk: &Disk, state: &Path, ItemOf { run, item }: &ItemOf) {
    let pipeline = state.join(run.as_str());
    let directory = of_item(&pipeline, item);
    match disk.remove_dir_all(&directory) {
        Ok(()) => tracing::info!("the files of item {item} of pipeline {run} have been removed"),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => tracing::warn!("{error}"),
    }
    let _ = disk.remove_file(&log_file::of_item(&pipeline, item));
    // If it was the last one.
    if disk.remove_dir(&pipeline.join("items")).is_ok() {
        let _ = disk.remove_file(&log_file::of_pipeline(&pipeline));
        let _ = disk.remove_dir(&pipeline);
    }
}
