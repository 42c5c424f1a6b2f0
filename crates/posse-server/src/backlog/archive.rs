//! The end of an item: its outcome is written into it, it is moved to where it belongs, and exactly that is committed.
//!
//! Each step is decided from the state on disk and in git. After a crash the next call does the rest, and a redundant
//! call does nothing. The run named in the outcome identifies items that posse archived. The user's index and files are
//! left alone, except for the item itself.

use std::io;
use std::path::Path;

use posse_core::backlog::edit::{OutcomeBlock, set_outcome};
use posse_core::backlog::queue::Shelf;
use posse_core::backlog::{BacklogDirs, Item, Kind, Slug, Status, read};
use posse_core::finalize::GitPath;
use posse_files::backlog::{EditError, TRIES, edit, text};
use posse_files::replace::replace;

use super::checkout::away;
use crate::disk::Disk;
use crate::git::{GitError, WorkTree};
use crate::quarantine::move_to;

/// Maximum number of archived items with the same name; more indicate another problem.
const MOST: u32 = 100;

/// An item, and the project it belongs to.
#[derive(Clone, Copy)]
pub(crate) struct ItemPlace<'a> {
    /// Absolute.
    pub(crate) project: &'a Path,
    pub(crate) shelves: &'a BacklogDirs,
    pub(crate) slug: &'a Slug,
    pub(crate) kind: Kind,
    /// The item's file in the backlog, within the project.
    pub(crate) source: &'a str,
    /// The branch that the commit goes to. If another one is checked out, nothing is done.
    pub(crate) home: Option<&'a str>,
}

#[derive(Clone, Copy)]
pub(crate) struct ArchiveRequest<'a> {
    pub(crate) place: ItemPlace<'a>,
    pub(crate) block: &'a OutcomeBlock,
    /// Writes the report that goes beside the archived item. A report that is there stays.
    pub(crate) report: &'a (dyn Fn(&Item) -> String + Sync),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Done {
    /// The item's current path within the project.
    pub(crate) path: String,
    /// `None`: there was nothing to commit, or no repository.
    pub(crate) commit: Option<String>,
    pub(crate) warnings: Vec<String>,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum ArchiveError {
    #[error("{0} is gone, and was not archived")]
    SourceMissing(String),
    /// Nothing is lost: called again when the checkout is as it was, it does the rest.
    #[error("{0}")]
    Away(String),
    #[error("there are too many items called {0} in the archive")]
    TooMany(Slug),
    #[error("{path}: {error}")]
    Io { path: String, error: io::Error },
    #[error(transparent)]
    Edit(#[from] EditError),
    #[error("it was moved to {path}, but not committed: {error}")]
    NotCommitted { path: String, error: GitError },
    #[error(transparent)]
    Git(#[from] GitError),
}

/// Archives an item as done or abandoned, depending on its outcome.
pub(crate) async fn archive(disk: &Disk, request: &ArchiveRequest<'_>) -> Result<Done, ArchiveError> {
    let ArchiveRequest { place, block, .. } = request;
    let tree = place.ready().await?;
    let mut warnings = Vec::new();
    let source = place.project.join(place.source);
    let path = match (disk.exists(&source), request.placed(disk)?) {
        (false, None) => return Err(ArchiveError::SourceMissing(place.source.to_owned())),
        (false, Some(path)) => path,
        // It was archived, and the source has come back: by a checkout, or by a merge.
        (true, Some(path)) if place.is_archived_as(disk, &path) => {
            // After a crash the run is found by its name in the item.
            edit(disk, &place.project.join(&path), |text| set_outcome(text, place.kind, block))?;
            disk.remove_file_if_exists(&source).map_err(failed(place.source))?;
            path
        }
        (true, Some(path)) => {
            warnings.push(format!("{} is there again and says something else: it is left there", place.source));
            path
        }
        (true, None) => {
            edit(disk, &source, |text| set_outcome(text, place.kind, block))?;
            request.move_in(disk, &source, &mut warnings)?
        }
    };
    let report = format!("{}.report.md", path.strip_suffix(".md").unwrap_or(&path));
    let file = place.project.join(&report);
    if !disk.exists(&file)
        && let Some(item) = place.item(disk, &path)
    {
        replace(disk, &file, &(request.report)(&item)).map_err(failed(&report))?;
    }
    let Some(tree) = tree else { return Ok(Done { path, commit: None, warnings }) };
    let add: Vec<&str> = [path.as_str()].into_iter().chain(disk.exists(&file).then_some(report.as_str())).collect();
    let gone: Vec<&str> = if disk.exists(&source) { Vec::new() } else { vec![place.source] };
    let commit = place.commit(&tree, &path, (&add, &gone), &request.message(&path)).await?;
    Ok(Done { path, commit, warnings })
}

fn failed(path: &str) -> impl Fn(io::Error) -> ArchiveError {
    let path = path.to_owned();
    move |error| ArchiveError::Io { path: path.clone(), error }
}

impl ArchiveRequest<'_> {
    /// Returns possible destinations: the item's own name, or the name with a number if it is taken.
    fn destinations(&self) -> impl Iterator<Item = String> {
        let shelf = if self.block.outcome.is_success() { Shelf::Completed } else { Shelf::Failed };
        let directory = self.place.shelves.archive(self.place.kind, shelf);
        let slug = self.place.slug;
        (1..=MOST).map(move |n| match n {
            1 => format!("{directory}/{slug}.md"),
            n => format!("{directory}/{slug}-{n}.md"),
        })
    }

    /// Returns the item's path in the archive, if this or an earlier run put it there with the same text and outcome.
    fn placed(&self, disk: &Disk) -> Result<Option<String>, ArchiveError> {
        for path in self.destinations() {
            if !disk.exists(&self.place.project.join(&path)) {
                return Ok(None);
            }
            let Some(there) = self.place.item(disk, &path) else { continue };
            let outcome = self.block.outcome;
            let known = match &there.ended {
                Some(ended) => ended.outcome == outcome || (ended.outcome.is_success() && outcome.is_success()),
                None => there.status.is_some_and(Status::is_done) && outcome.is_success(),
            };
            let ours = there.ended.and_then(|ended| ended.run).as_deref() == Some(self.block.run.as_str());
            if known && (ours || self.place.is_archived_as(disk, &path)) {
                return Ok(Some(path));
            }
        }
        Err(ArchiveError::TooMany(self.place.slug.clone()))
    }

    /// Moves the source to the first free place. Nothing is ever overwritten.
    fn move_in(&self, disk: &Disk, source: &Path, warnings: &mut Vec<String>) -> Result<String, ArchiveError> {
        let ItemPlace { project, slug, .. } = self.place;
        for (n, path) in self.destinations().enumerate() {
            let to = project.join(&path);
            disk.create_dir_all(to.parent().unwrap_or(project)).map_err(failed(&path))?;
            match move_to(disk, source, &to) {
                Ok(()) => {
                    if n > 0 {
                        warnings.push(format!("another item called {slug} is in the archive: this one is {path}"));
                    }
                    return Ok(path);
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(failed(&path)(error)),
            }
        }
        Err(ArchiveError::TooMany(slug.clone()))
    }

    fn message(&self, path: &str) -> String {
        let OutcomeBlock { outcome, run, .. } = self.block;
        let verb = if outcome.is_success() { "archive" } else { "give up" };
        let (words, outcome) = (outcome.as_str().replace('_', " "), outcome.as_str());
        format!("{verb} {}: {words}\n\nItem: {path}\nOutcome: {outcome}\nRun: {run}\n", self.place.slug)
    }
}

impl ItemPlace<'_> {
    /// The work tree, if there is one, in a state in which something can be committed. Asked before anything is touched.
    async fn ready(&self) -> Result<Option<WorkTree>, ArchiveError> {
        let Some(tree) = WorkTree::find(self.project).await? else { return Ok(None) };
        tree.unlocked().await?;
        match away(&tree, self.home).await? {
            Some(away) => Err(ArchiveError::Away(away)),
            None => Ok(Some(tree)),
        }
    }

    fn item(&self, disk: &Disk, path: &str) -> Option<Item> {
        let text = text(disk, &self.project.join(path)).ok()?;
        read(self.slug, self.kind, path, &text).ok().map(|(item, _)| item)
    }

    /// Reports whether the archive has the item as done, with the same text. Then it only has to leave the backlog.
    pub(crate) fn is_archived(&self, disk: &Disk) -> bool {
        let path = format!("{}/{}", self.shelves.archive(self.kind, Shelf::Completed), self.slug.file_name());
        self.item(disk, &path).is_some_and(|there| there.status.is_some_and(Status::is_done))
            && self.is_archived_as(disk, &path)
    }

    /// Reports whether the archived copy makes the item in the backlog redundant.
    fn is_archived_as(&self, disk: &Disk, path: &str) -> bool {
        let items = self.item(disk, self.source).zip(self.item(disk, path));
        let same =
            |(item, there): (Item, Item)| there.hash == item.hash && item.log.iter().all(|e| there.log.contains(e));
        items.is_some_and(same)
    }

    /// Commits what was added and removed, and nothing else. What git ignores stays out of it. The item is at `path`.
    async fn commit(
        &self,
        tree: &WorkTree,
        path: &str,
        (add, gone): (&[&str], &[&str]),
        message: &str,
    ) -> Result<Option<String>, ArchiveError> {
        let not_committed = |error| ArchiveError::NotCommitted { path: path.to_owned(), error };
        let within = |path: &str| tree.path_of(&self.project.join(path)).map_err(not_committed);
        let mut added: Vec<GitPath> = Vec::new();
        for path in add {
            let path = within(path)?;
            if !tree.ignores(&path).await.map_err(not_committed)? {
                added.push(path);
            }
        }
        let gone: Vec<GitPath> = gone.iter().map(|path| within(path)).collect::<Result<_, _>>()?;
        let _alone = tree.alone().await;
        let mut commit = Err(GitError::Moved);
        for _ in 0..TRIES {
            // The user may have checked out another branch meanwhile.
            if let Some(away) = away(tree, self.home).await? {
                return Err(ArchiveError::Away(away));
            }
            commit = async { tree.commit_only(&tree.draft().await?, true, &added, &gone, message).await }.await;
            if !matches!(commit, Err(GitError::Moved)) {
                break;
            }
        }
        let commit = commit.map_err(not_committed)?;
        let follow = async {
            tree.unlocked().await?;
            tree.stage(None, &added, &gone).await
        };
        follow.await.map_err(not_committed)?;
        Ok(commit)
    }
}
