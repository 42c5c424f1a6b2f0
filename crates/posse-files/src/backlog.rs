//! The files of a backlog: where they are, their contents, and the few writes posse makes. `posse_core::backlog`
//! decides what follows from them.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use posse_core::backlog::edit::NotEdited;
use posse_core::backlog::names::{new_slug, next_number};
use posse_core::backlog::queue::{Archived, Backlog, QueueEntry, queue};
use posse_core::backlog::{BacklogDirs, BadSlug, Item, Kind, Slug, read};
use posse_core::file_problem::FileProblem;
use serde::Serialize;

use crate::disk::Disk;
use crate::replace::replace;

/// The number of attempts to change a file that another process writes at the same time.
pub const TRIES: usize = 5;

#[derive(Debug, Default)]
pub struct Scan {
    pub items: Vec<FoundItem>,
    /// Files that are no items, and why.
    pub others: Vec<Other>,
    pub archived: Vec<Archived>,
}

#[derive(Clone, Debug, Serialize)]
pub struct FoundItem {
    pub item: Item,
    /// Within the project.
    pub path: String,
    pub warnings: Vec<FileProblem>,
}

/// A file that lies among the items and cannot be worked on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Other {
    pub path: String,
    pub kind: Kind,
    /// It has the name of an item, so others may wait for it.
    pub slug: Option<Slug>,
    pub why: String,
}

impl Scan {
    /// Returns the items in the order of work. `unfinished` and `parked`: see [`Backlog`].
    pub fn queue(&self, unfinished: &BTreeSet<Slug>, parked: &BTreeMap<Slug, String>) -> Vec<QueueEntry> {
        let items: Vec<Item> = self.items.iter().map(|found| found.item.clone()).collect();
        let unreadable: Vec<Slug> = self.others.iter().filter_map(|other| other.slug.clone()).collect();
        let archived = &self.archived;
        queue(&Backlog { items: &items, unreadable: &unreadable, archived, unfinished, parked })
    }

    pub fn find(&self, slug: &Slug) -> Option<&FoundItem> {
        self.items.iter().find(|found| found.item.slug == *slug)
    }
}

/// Looks at everything there is. Directories that are not there are empty; files that cannot be read are named.
pub fn scan(disk: &Disk, project: &Path, shelves: &BacklogDirs) -> Scan {
    let mut scan = Scan::default();
    for kind in [Kind::Defect, Kind::Feature] {
        for (name, path) in files(disk, project, shelves.of(kind), kind, &mut scan.others) {
            look(disk, &mut scan, project, &name, path, kind);
        }
    }
    for (directory, shelf) in shelves.archives() {
        let mut unreadable = Vec::new();
        for (name, path) in files(disk, project, &directory, Kind::Defect, &mut unreadable) {
            let Ok(slug) = Slug::of_file(&name) else { continue };
            // An unreadable file proves nothing.
            let status = text(disk, &project.join(&path))
                .ok()
                .and_then(|text| read(&slug, Kind::Defect, &path, &text).ok()?.0.status);
            scan.archived.push(Archived { slug, status, shelf });
        }
    }
    scan
}

fn look(disk: &Disk, scan: &mut Scan, project: &Path, name: &str, path: String, kind: Kind) {
    let slug = match Slug::of_file(name) {
        Ok(slug) => slug,
        // The directory also holds notes and pictures; report only files that look like items.
        Err(BadSlug::NotMarkdown) if !name.to_ascii_lowercase().ends_with(".md") => return,
        Err(error) => return scan.others.push(Other { path, kind, slug: None, why: error.to_string() }),
    };
    let read = text(disk, &project.join(&path))
        .map_err(|error| error.to_string())
        .and_then(|text| read(&slug, kind, &path, &text).map_err(|problems| problems.to_string()));
    match read {
        Ok((item, warnings)) => scan.items.push(FoundItem { item, path, warnings }),
        Err(why) => scan.others.push(Other { path, kind, slug: Some(slug), why }),
    }
}

/// Names of the files in a directory, and their paths within the project, in order.
fn files(
    disk: &Disk,
    project: &Path,
    directory: &str,
    kind: Kind,
    unreadable: &mut Vec<Other>,
) -> Vec<(String, String)> {
    let other = |path: String, why: String| Other { path, kind, slug: None, why };
    let entries = match disk.read_dir(&project.join(directory)) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Vec::new(),
        Err(error) => {
            unreadable.push(other(directory.to_owned(), format!("cannot be read: {error}")));
            return Vec::new();
        }
    };
    let mut names = Vec::new();
    for entry in entries.flatten() {
        let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
        match entry.file_name().into_string() {
            Ok(name) if name.starts_with('.') || is_directory => {}
            Ok(name) => names.push(name),
            Err(name) => {
                let why = "its name is not valid UTF-8; rename it".to_owned();
                unreadable.push(other(format!("{directory}/{}", name.display()), why));
            }
        }
    }
    names.sort();
    names.into_iter().map(|name| (name.clone(), format!("{directory}/{name}"))).collect()
}

/// The text of an item. Links are not followed: an item must not show what lies elsewhere.
pub fn text(disk: &Disk, path: &Path) -> io::Result<String> {
    if !disk.symlink_metadata(path)?.is_file() {
        return Err(io::Error::other("it is a link or something else that is no file"));
    }
    disk.read_text(path)
}

#[derive(Debug, thiserror::Error)]
pub enum EditError {
    #[error("{path}: {error}")]
    Io { path: String, error: io::Error },
    #[error(transparent)]
    Not(#[from] NotEdited),
    #[error("{0} is being changed by somebody else all the time; try again")]
    Busy(String),
}

/// Changes the file of an item, whole or not at all. A change that another process makes at the same time is kept.
pub fn edit(disk: &Disk, path: &Path, change: impl Fn(&str) -> Result<String, NotEdited>) -> Result<(), EditError> {
    let failed = |error| EditError::Io { path: path.display().to_string(), error };
    for _ in 0..TRIES {
        let before = text(disk, path).map_err(failed)?;
        let after = change(&before)?;
        if after == before {
            return Ok(());
        }
        // As near to the writing as it gets.
        if text(disk, path).map_err(failed)? == before {
            return replace(disk, path, &after).map_err(failed);
        }
    }
    Err(EditError::Busy(path.display().to_string()))
}

/// Creates the file of a new item and returns its path. The item's number has never been used before. Numbers are
/// reserved in the directory `reserved`, so that no two items get the same one.
pub fn create(
    disk: &Disk,
    project: &Path,
    shelves: &BacklogDirs,
    reserved: &Path,
    kind: Kind,
    title: &str,
    text: &str,
) -> io::Result<String> {
    let directory = shelves.of(kind);
    disk.create_dir_all(&project.join(directory))?;
    disk.create_dir_all(reserved)?;
    let mut new_file = File::options();
    new_file.write(true).create_new(true);
    let mut number = next_number(&slugs(disk, project, shelves));
    loop {
        match disk.open(&reserved.join(number.to_string()), &new_file) {
            Ok(_) => break,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < u32::MAX => number += 1,
            Err(error) => return Err(error),
        }
    }
    let path = format!("{directory}/{}", new_slug(number, title).file_name());
    let mut file = disk.open(&project.join(&path), &new_file)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    Ok(path)
}

fn slugs(disk: &Disk, project: &Path, shelves: &BacklogDirs) -> Vec<Slug> {
    let active = [Kind::Defect, Kind::Feature].map(|kind| shelves.of(kind).to_owned());
    let aside = active
        .iter()
        .flat_map(|directory| ["on-hold", "completed", "archive"].map(|below| format!("{directory}/{below}")));
    let archives = shelves.archives().map(|(directory, _)| directory);
    let all: Vec<String> = active.iter().cloned().chain(aside).chain(archives).collect();
    let names = |directory: &String| files(disk, project, directory, Kind::Defect, &mut Vec::new());
    all.iter().flat_map(names).filter_map(|(name, _)| Slug::of_file(&name).ok()).collect()
}
