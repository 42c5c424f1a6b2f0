//! The end of an item: its outcome is written into it, it is moved to where it belongs, and exactly that is committed.
//!
//! Each step is decided from what is on disk and in git, so whoever was killed in the middle does the rest when called again,
//! and whoever is called once too often does nothing. What tells our own hand is the run that is named in the outcome.
//! The user's index and files are left alone, but for the item itself.

use std::io;
use std::path::Path;

use posse_core::backlog::edit::{OutcomeBlock, set_outcome};
use posse_core::backlog::queue::Shelf;
use posse_core::backlog::{BacklogDirs, Item, Kind, Slug, read};
use posse_core::finalize::GitPath;
use posse_files::backlog::{EditError, TRIES, edit, text};
use posse_files::replace::replace;

use super::checkout::{Away, away};
use crate::disk::Disk;
use crate::git::{GitError, WorkTree};
use crate::quarantine::move_to;

/// So many items of one name can lie in the archive; then something else is wrong.
const MOST: u32 = 100;

/// What is to be done.
#[derive(Clone, Copy)]
pub(crate) struct Wanted<'a> {
    /// Absolute.
    pub(crate) project: &'a Path,
    pub(crate) shelves: &'a BacklogDirs,
    pub(crate) slug: &'a Slug,
    pub(crate) kind: Kind,
    /// The item, within the project.
    pub(crate) source: &'a str,
    pub(crate) block: &'a OutcomeBlock,
    /// The branch that the commit goes to. If another one is checked out, nothing is done.
    pub(crate) home: Option<&'a str>,
    /// What goes beside the item, from the item as it is archived. Written once; what is there stays.
    pub(crate) report: &'a (dyn Fn(&Item) -> String + Sync),
}

/// What was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Done {
    /// Where the item is now, within the project.
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
    #[error(transparent)]
    Away(#[from] Away),
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
    #[cfg(test)]
    #[error("ended by a test")]
    Ended,
}

/// A point up to which it came. Tests end it there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    OutcomeWritten,
    Moved,
    SourceRemoved,
    ReportWritten,
    Committed,
}

/// Archives an item, or gives it up: its outcome says which.
pub(crate) async fn archive(disk: &Disk, wanted: &Wanted<'_>) -> Result<Done, ArchiveError> {
    archive_with(disk, wanted, &|_| Ok(())).await
}

/// Called after each step. In tests it may end it all, as a crash would.
type After<'a> = &'a (dyn Fn(Step) -> Result<(), ArchiveError> + Sync);

pub(super) async fn archive_with(disk: &Disk, wanted: &Wanted<'_>, after: After<'_>) -> Result<Done, ArchiveError> {
    let tree = ready(wanted.project, wanted.home).await?;
    let mut warnings = Vec::new();
    let source = wanted.project.join(wanted.source);
    let path = match (disk.exists(&source), placed(disk, wanted)?) {
        (false, None) => return Err(ArchiveError::SourceMissing(wanted.source.to_owned())),
        (false, Some(path)) => path,
        // It was archived, and the source has come back: by a checkout, or by a merge.
        (true, Some(path)) => {
            if !same_item(disk, wanted, &source, &path) {
                warnings.push(format!("{} is there again and says something else: it is left there", wanted.source));
            } else {
                // Named in it, the run is found again by who comes after a crash.
                edit(disk, &wanted.project.join(&path), |text| set_outcome(text, wanted.kind, wanted.block))?;
                remove(disk, &source)?;
                after(Step::SourceRemoved)?;
            }
            path
        }
        (true, None) => {
            edit(disk, &source, |text| set_outcome(text, wanted.kind, wanted.block))?;
            after(Step::OutcomeWritten)?;
            let path = move_in(disk, wanted, &source, &mut warnings)?;
            after(Step::Moved)?;
            path
        }
    };
    let report = report_path(&path);
    let file = wanted.project.join(&report);
    if !disk.exists(&file)
        && let Some(item) = item(disk, wanted.project, &path, wanted.kind, wanted.slug)
    {
        replace(disk, &file, &(wanted.report)(&item)).map_err(failed(&report))?;
    }
    after(Step::ReportWritten)?;
    let Some(tree) = tree else { return Ok(Done { path, commit: None, warnings }) };
    let message = message(wanted, &path);
    let add: Vec<&str> = [path.as_str()].into_iter().chain(disk.exists(&file).then_some(report.as_str())).collect();
    let gone: Vec<&str> = if disk.exists(&source) { Vec::new() } else { vec![wanted.source] };
    let what = What { project: wanted.project, home: wanted.home, path: &path, add: &add, gone: &gone };
    let commit = commit(&tree, &what, &message, after).await?;
    Ok(Done { path, commit, warnings })
}

/// An item that is in the archive as done, and in the backlog again: the one in the backlog goes. Says whether it did;
/// if the two do not say the same, both stay.
pub(crate) async fn remove_returned(
    disk: &Disk,
    project: &Path,
    home: Option<&str>,
    shelves: &BacklogDirs,
    (kind, slug): (Kind, &Slug),
    source: &str,
) -> Result<bool, ArchiveError> {
    let directory = shelves.archive(kind, Shelf::Completed);
    let path = format!("{directory}/{}", slug.file_name());
    let done = item(disk, project, &path, kind, slug).is_some_and(|item| item.status.is_done());
    let same = || {
        item(disk, project, source, kind, slug)
            .is_some_and(|back| says_the_same(disk, &back, project, &path, kind, slug))
    };
    if !done || !same() {
        return Ok(false);
    }
    // The file goes last: as long as it is there, this is done again after a crash.
    if let Some(tree) = ready(project, home).await? {
        let message = format!("archive {slug}: it was back in the backlog\n\nItem: {path}\n");
        let what = What { project, home, path: &path, add: &[], gone: &[source] };
        commit(&tree, &what, &message, &|_| Ok(())).await?;
    }
    // Somebody may have written to it meanwhile.
    let still = same();
    if still {
        remove(disk, &project.join(source))?;
    }
    Ok(still)
}

/// The work tree, if there is one, in a state in which something can be committed. Asked before anything is touched.
async fn ready(project: &Path, home: Option<&str>) -> Result<Option<WorkTree>, ArchiveError> {
    let Some(tree) = WorkTree::find(project).await? else { return Ok(None) };
    tree.unlocked().await?;
    match away(&tree, home).await? {
        Some(away) => Err(away.into()),
        None => Ok(Some(tree)),
    }
}

fn failed(path: &str) -> impl Fn(io::Error) -> ArchiveError {
    let path = path.to_owned();
    move |error| ArchiveError::Io { path: path.clone(), error }
}

fn shelf(block: &OutcomeBlock) -> Shelf {
    if block.outcome.is_success() { Shelf::Completed } else { Shelf::Failed }
}

/// Where the item may go: under its own name, or with a number after it if that is taken by another.
fn destinations(wanted: &Wanted<'_>) -> impl Iterator<Item = String> {
    let directory = wanted.shelves.archive(wanted.kind, shelf(wanted.block));
    let slug = wanted.slug.clone();
    (1..=MOST).map(move |n| match n {
        1 => format!("{directory}/{slug}.md"),
        n => format!("{directory}/{slug}-{n}.md"),
    })
}

fn item(disk: &Disk, project: &Path, path: &str, kind: Kind, slug: &Slug) -> Option<Item> {
    let text = text(disk, &project.join(path)).ok()?;
    read(slug, kind, path, &text).ok().map(|(item, _)| item)
}

/// Where it lies in the archive already: put there by this run, or before, with the same words and the same outcome.
fn placed(disk: &Disk, wanted: &Wanted<'_>) -> Result<Option<String>, ArchiveError> {
    let source = item(disk, wanted.project, wanted.source, wanted.kind, wanted.slug);
    for path in destinations(wanted) {
        if !disk.exists(&wanted.project.join(&path)) {
            return Ok(None);
        }
        let Some(there) = item(disk, wanted.project, &path, wanted.kind, wanted.slug) else { continue };
        let Some(ended) = &there.ended else { continue };
        let ours = ended.run.as_deref() == Some(wanted.block.run.as_str());
        let same = source
            .as_ref()
            .is_some_and(|source| says_the_same(disk, source, wanted.project, &path, wanted.kind, wanted.slug));
        if ended.outcome == wanted.block.outcome && (ours || same) {
            return Ok(Some(path));
        }
    }
    Err(ArchiveError::TooMany(wanted.slug.clone()))
}

fn same_item(disk: &Disk, wanted: &Wanted<'_>, source: &Path, path: &str) -> bool {
    let Ok(text) = text(disk, source) else { return false };
    let read = read(wanted.slug, wanted.kind, wanted.source, &text);
    read.is_ok_and(|(item, _)| says_the_same(disk, &item, wanted.project, path, wanted.kind, wanted.slug))
}

/// Whether nothing is lost if this item goes and the archived one stays.
fn says_the_same(disk: &Disk, item: &Item, project: &Path, archived: &str, kind: Kind, slug: &Slug) -> bool {
    self::item(disk, project, archived, kind, slug)
        .is_some_and(|there| there.hash == item.hash && item.log.iter().all(|entry| there.log.contains(entry)))
}

/// Moves the source to the first free place. Nothing is ever overwritten.
fn move_in(
    disk: &Disk,
    wanted: &Wanted<'_>,
    source: &Path,
    warnings: &mut Vec<String>,
) -> Result<String, ArchiveError> {
    for (n, path) in destinations(wanted).enumerate() {
        let to = wanted.project.join(&path);
        let directory = to.parent().unwrap_or(wanted.project);
        disk.create_dir_all(directory).map_err(failed(&path))?;
        match move_to(disk, source, &to) {
            Ok(()) => {
                if n > 0 {
                    warnings.push(format!("another item called {} is in the archive: this one is {path}", wanted.slug));
                }
                return Ok(path);
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(failed(&path)(error)),
        }
    }
    Err(ArchiveError::TooMany(wanted.slug.clone()))
}

fn remove(disk: &Disk, source: &Path) -> Result<(), ArchiveError> {
    disk.remove_file_if_exists(source).map_err(failed(&source.to_string_lossy()))
}

fn report_path(path: &str) -> String {
    format!("{}.report.md", path.strip_suffix(".md").unwrap_or(path))
}

fn message(wanted: &Wanted<'_>, path: &str) -> String {
    let outcome = wanted.block.outcome;
    let verb = if outcome.is_success() { "archive" } else { "give up" };
    format!(
        "{verb} {}: {}\n\nItem: {path}\nOutcome: {}\nRun: {}\n",
        wanted.slug,
        outcome.as_str().replace('_', " "),
        outcome.as_str(),
        wanted.block.run
    )
}

/// What a commit is made of.
struct What<'a> {
    project: &'a Path,
    home: Option<&'a str>,
    /// Where the item is.
    path: &'a str,
    add: &'a [&'a str],
    gone: &'a [&'a str],
}

/// Commits these paths and no others. What git ignores stays out of it.
async fn commit(
    tree: &WorkTree,
    what: &What<'_>,
    message: &str,
    after: After<'_>,
) -> Result<Option<String>, ArchiveError> {
    let not_committed = |error| ArchiveError::NotCommitted { path: what.path.to_owned(), error };
    let within = |path: &str| tree.path_of(&what.project.join(path)).map_err(not_committed);
    let mut added: Vec<GitPath> = Vec::new();
    for path in what.add {
        let path = within(path)?;
        if !tree.ignores(&path).await.map_err(not_committed)? {
            added.push(path);
        }
    }
    let gone: Vec<GitPath> = what.gone.iter().map(|path| within(path)).collect::<Result<_, _>>()?;
    let _alone = tree.alone().await;
    let mut commit = Err(GitError::Moved);
    for _ in 0..TRIES {
        // Somebody may have checked something else out since it was begun.
        if let Some(away) = away(tree, what.home).await? {
            return Err(away.into());
        }
        commit = tree.commit_only(&added, &gone, message).await;
        if !matches!(commit, Err(GitError::Moved)) {
            break;
        }
    }
    let commit = commit.map_err(not_committed)?;
    after(Step::Committed)?;
    let follow = async {
        tree.unlocked().await?;
        tree.stage(None, &added, &gone).await
    };
    follow.await.map_err(not_committed)?;
    Ok(commit)
}
