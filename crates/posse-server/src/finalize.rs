//! The optional steps after a run that passed: archive the OpenSpec change, commit the work. `posse_core::finalize`
//! decides what is committed and what is left.
//!
//! The commit is built in a separate index, from HEAD and the run's paths. So the user's index stays unchanged until
//! the commit is made, also if a hook refuses it. Then only the committed paths are updated in it. If posse dies
//! between the two, the next call does the rest. (`git commit --only` requires new files in the user's index first, and
//! fails where a file has become a directory.)

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fmt::Display;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use posse_core::finalize::{self, Change, CommitPlan, GitPath, LeftBecause, Snapshot, Status, Step, Was};

pub use crate::git::GitError;

use crate::disk::{self, Disk};
use crate::environment::Environment;
use crate::git::{self, Draft, WorkTree};
use crate::quarantine::put_aside;
use posse_files::child::{self, ChildError, Leftovers};

/// For `openspec archive`.
const ARCHIVE: Duration = Duration::from_secs(120);
/// How much of what is dirty is compared by its content, which takes a second at most; the rest by size and time.
const HASHED: u64 = 64 << 20;
/// Between size and time, where there is no hash.
const SIZED: &str = " bytes of ";
/// Maximum retries if the user commits at the same moment.
const TRIES: usize = 5;
/// Maximum number of paths named in a text.
const NAMED: usize = 10;

/// Archives the OpenSpec change in this directory, if there is exactly one.
pub(crate) async fn openspec_archive(directory: &Path, environment: &Environment) -> Step {
    archive_with(OsStr::new("openspec"), directory, environment).await
}

async fn archive_with(program: &OsStr, directory: &Path, environment: &Environment) -> Step {
    let changes = directory.join("openspec/changes");
    let shown = changes.display();
    let name = match disk::at(&changes, open_changes).await {
        Ok(mut names) => match (names.pop(), names.len()) {
            (Some(name), 0) => name,
            (None, _) => return Step::Skipped(format!("no change in {shown}")),
            (Some(_), others) => {
                let text = "changes, and posse does not know which one is done; archive it yourself";
                return Step::Skipped(format!("{shown} has {} {text}", others + 1));
            }
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Step::Skipped(format!("there is no {shown}")),
        Err(error) => return Step::Failed(format!("cannot read {shown}: {error}")),
    };
    if name.as_encoded_bytes().starts_with(b"-") {
        return Step::Skipped(format!("{} looks like an option, not like a change", name.display()));
    }
    let mut command = Command::new(program);
    if let Some(variables) = environment.variables() {
        command.env_clear().envs(variables);
    }
    command.arg("archive").arg(&name).arg("--yes").current_dir(directory).env("NO_COLOR", "1");
    match child::run(command, b"", ARCHIVE, Leftovers::Stay).await {
        Ok(ended) if ended.status.success() => Step::Done(format!("archived the OpenSpec change {}", name.display())),
        Ok(ended) => Step::Failed(format!("openspec archive {}: {}", name.display(), git::words(&ended))),
        Err(error @ ChildError::Missing(_)) => Step::Failed(format!(
            "{error}; install it (`npm install -g @fission-ai/openspec`), or turn the archive step off"
        )),
        Err(error) => Step::Failed(error.to_string()),
    }
}

/// The directories in there, but for `archive`.
fn open_changes(disk: &Disk, directory: &Path) -> io::Result<Vec<std::ffi::OsString>> {
    let mut names = Vec::new();
    for entry in disk.read_dir(directory)? {
        let entry = entry?;
        if disk.is_dir(&entry.path()) && entry.file_name() != "archive" {
            names.push(entry.file_name());
        }
    }
    Ok(names)
}

/// Returns the user's own changes at the start of a run, and logs which git settings are not used; `None` outside of a
/// repository.
pub(crate) async fn begin(directory: &Path, environment: &Environment) -> Result<Option<Snapshot>, GitError> {
    for what in git::begin(environment, directory).await? {
        tracing::warn!("not used by posse's git in {}: {what}", directory.display());
    }
    snapshot(directory, environment).await
}

/// Returns the user's own changes now; `None` outside of a repository. Kept as long as the run.
pub(crate) async fn snapshot(directory: &Path, environment: &Environment) -> Result<Option<Snapshot>, GitError> {
    match WorkTree::find_in(environment, directory).await? {
        Some(tree) => Ok(Some(snapshot_of(&tree).await?.0)),
        None => Ok(None),
    }
}

pub(crate) async fn snapshot_of(tree: &WorkTree) -> Result<(Snapshot, Vec<Change>), GitError> {
    let (changes, ignored) = tree.status_and_ignored().await?;
    let paths: BTreeSet<GitPath> = changes.iter().map(|change| change.path.clone()).collect();
    let root = tree.root.clone();
    let dirty = disk::run(move |disk| {
        let mut left_to_hash = HASHED;
        let was = |path: GitPath| {
            let file = on_disk(&root, &path);
            let content = content(disk, &file, left_to_hash);
            let length = disk.symlink_metadata(&file).map_or(0, |found| found.len());
            left_to_hash -= if content.contains(SIZED) { 0 } else { length.min(left_to_hash) };
            Was { path, content }
        };
        paths.into_iter().map(was).collect()
    });
    Ok((Snapshot { root: git_path(&tree.root), dirty: dirty.await, ignored }, changes))
}

/// Commits what has changed since the run began. Suspicious new files go to the quarantine.
pub(crate) async fn git_commit(
    directory: &Path,
    message: &str,
    quarantine: &Path,
    before: Option<&Snapshot>,
    environment: &Environment,
) -> Step {
    let tree = match WorkTree::find_in(environment, directory).await {
        Ok(Some(tree)) => tree,
        Ok(None) => return Step::Skipped(format!("{} is not in a git repository", directory.display())),
        Err(error) => return Step::Failed(error.to_string()),
    };
    let changed = match git::check(directory).await {
        Ok(changed) => changed,
        Err(error) => return Step::Failed(error.to_string()),
    };
    let request = CommitRequest { tree: &tree, is_sessions: false, message, quarantine, before };
    let mut step = request.commit(None).await.step;
    let (Step::Done(text) | Step::Skipped(text) | Step::Failed(text)) = &mut step;
    if !changed.is_empty() {
        text.push_str(&format!("; changed in the repository during the run, and not used: {}", changed.join(", ")));
    }
    step
}

/// The result of a commit, and where that leaves the work tree.
pub(crate) struct Committed {
    pub(crate) step: Step,
    /// The last commit, if it got so far that this is known.
    pub(crate) head: Option<String>,
    /// The status before the run.
    pub(crate) before: Status,
    /// The error, if it failed.
    pub(crate) error: Option<GitError>,
}

impl From<Step> for Committed {
    fn from(step: Step) -> Self {
        Self { step, head: None, before: Status::default(), error: None }
    }
}

/// A commit of what has changed in a work tree since a snapshot was taken.
pub(crate) struct CommitRequest<'a> {
    pub(crate) tree: &'a WorkTree,
    /// Only a session works in this work tree: all that is in its index is committed. In the user's index only the committed
    /// paths are brought up to date.
    pub(crate) is_sessions: bool,
    pub(crate) message: &'a str,
    /// The directory for suspicious new files.
    pub(crate) quarantine: &'a Path,
    pub(crate) before: Option<&'a Snapshot>,
}

impl CommitRequest<'_> {
    /// `seen`: how everything stood when the session ended, if that is known.
    pub(crate) async fn commit(&self, mut seen: Option<(Status, Draft)>) -> Committed {
        let mut put_aside = Vec::new();
        let mut tries = TRIES;
        loop {
            let was_seen = seen.is_some();
            let committed = self.attempt(seen.take(), &mut put_aside).await;
            tries -= 1;
            // Perhaps a git that outlived its daemon has moved HEAD: then there is nothing left to do. And what was seen earlier
            // may not be there now.
            let again = matches!(committed.error, Some(GitError::Moved)) || (was_seen && committed.error.is_some());
            if tries == 0 || !again {
                return committed;
            }
        }
    }

    /// Files that were put aside are reported even after several attempts.
    async fn attempt(&self, seen: Option<(Status, Draft)>, put_aside: &mut Vec<String>) -> Committed {
        let Self { tree, quarantine, .. } = self;
        let Some(before) = self.before.filter(|before| before.root == git_path(&tree.root)) else {
            let text = "was not a repository when the run began: posse cannot tell what is yours; commit it yourself";
            return Step::Skipped(format!("{} {text}", tree.root.display())).into();
        };
        if let Some(what) = tree.under_way().await {
            let text = format!("{what} is under way in {}; finish it, then commit", tree.root.display());
            return Step::Skipped(text).into();
        }
        let look = async {
            tree.unlocked().await?;
            match seen {
                Some(seen) => Ok(seen),
                None => tree.look().await,
            }
        };
        let (status, draft) = match look.await {
            Ok(seen) => seen,
            Err(error) => {
                let step = Step::Failed(error.to_string());
                return Committed { error: Some(error), ..step.into() };
            }
        };
        if let Some(conflict) = status.changes.iter().find(|change| change.unmerged) {
            let step = Step::Skipped(format!("{} has conflicts; resolve them, then commit", conflict.path));
            return Committed { before: status, ..step.into() };
        }
        let mut notes = Vec::new();
        // Git's root has no links in it.
        let aside = disk::at(*quarantine, Disk::canonicalize).await.unwrap_or_else(|_| quarantine.to_path_buf());
        let within = aside.strip_prefix(&tree.root).ok().map(git_path);
        let plan = finalize::plan(&status.changes, before, within.as_ref());
        let result = async {
            tell_what_is_left(tree, &plan, before, &mut notes).await;
            put_all_aside(tree, &plan, &status.changes, quarantine, put_aside).await?;
            self.commit_plan((&status, &draft), &plan, &mut notes).await
        };
        let result = result.await;
        let text = |begin: String| [vec![begin], notes, put_aside.clone()].concat().join("; ");
        let (step, head, error) = match result {
            Ok(Some(id)) => {
                let branch = status.branch.as_ref().map_or("a detached HEAD".into(), |name| format!("branch {name}"));
                let count = plan.add.len() + plan.remove.len();
                let files = if count == 1 { "1 file".into() } else { format!("{count} files") };
                let done = format!("committed {files} as {} on {branch}", &id[..id.len().min(10)]);
                (Step::Done(text(done)), Some(id), None)
            }
            Ok(None) => (Step::Skipped(text("nothing to commit".into())), status.commit.clone(), None),
            Err(error) => (Step::Failed(text(error.to_string())), None, Some(error)),
        };
        Committed { step, head, before: status, error }
    }

    /// The commit; `None` if there was nothing. What else the user should know goes to `notes`.
    async fn commit_plan(
        &self,
        (status, draft): (&Status, &Draft),
        plan: &CommitPlan,
        notes: &mut Vec<String>,
    ) -> Result<Option<String>, GitError> {
        let Self { tree, message, .. } = self;
        let CommitPlan { add, remove, .. } = plan;
        if add.is_empty() && remove.is_empty() {
            return Ok(None);
        }
        let id = tree.commit_only(draft, status.staged, add, remove, message).await?;

        // Also if there was nothing: perhaps an earlier call came no further than this.
        let stage = async {
            tree.unlocked().await?;
            if self.is_sessions && id.is_some() {
                return tree.adopt(draft).await;
            }
            tree.stage(None, add, remove).await
        };
        let staged = stage.await;
        let Some(id) = id else { return staged.map(|()| None) };
        if let Err(error) = staged {
            notes.push(format!("git shows them as staged changes until `git add` is run on them, because: {error}"));
        }
        Ok(Some(id))
    }
}

async fn tell_what_is_left(tree: &WorkTree, plan: &CommitPlan, before: &Snapshot, notes: &mut Vec<String>) {
    let users = before.dirty.iter().filter(|was| plan.left.get(&was.path) == Some(&LeftBecause::UsersWork));
    let (users, root) = (users.cloned().collect::<Vec<Was>>(), tree.root.clone());
    let changed_again = move |disk: &Disk| -> Vec<Was> {
        let longest = |was: &Was| if was.content.contains(SIZED) { 0 } else { HASHED };
        let now = |was: &Was| content(disk, &on_disk(&root, &was.path), longest(was));
        users.into_iter().filter(|was| now(was) != was.content).collect()
    };
    let changed_again = disk::run(changed_again).await;
    let mut tell = |paths: Vec<&GitPath>, text: &str| {
        if !paths.is_empty() {
            notes.push(format!("{text}: {}", named(&paths)));
        }
    };
    let left = |why: LeftBecause| plan.left.iter().filter(move |(_, left)| **left == why).map(|(path, _)| path);
    let dirty: BTreeSet<&GitPath> = before.dirty.iter().map(|was| &was.path).collect();
    let within = left(LeftBecause::UsersWork).filter(|path| !dirty.contains(path));
    let changed_again = changed_again.iter().map(|was| &was.path).chain(within).collect();
    tell(changed_again, "not committed, because they had uncommitted changes before the run, which changed them too");
    tell(plan.vanished.iter().collect(), "had uncommitted changes before the run, and have none now");
    tell(left(LeftBecause::Ignored).collect(), "not committed, because git ignored them before the run");
    tell(left(LeftBecause::Repository).collect(), "not committed, because they are repositories of their own");
    tell(left(LeftBecause::InTheWay).collect(), "not committed, because that would delete uncommitted work of yours");
}

async fn put_all_aside(
    tree: &WorkTree,
    plan: &CommitPlan,
    changes: &[Change],
    quarantine: &Path,
    notes: &mut Vec<String>,
) -> Result<(), GitError> {
    let mut moved = BTreeSet::new();
    for path in &plan.quarantine {
        let (root, relative, aside) = (tree.root.clone(), on_disk(Path::new(""), path), quarantine.to_owned());
        match disk::run(move |disk| put_aside(disk, &root, &relative, &aside)).await {
            Ok(to) => {
                notes.push(format!("moved {path} to {}: its name looks like a slip", to.display()));
                moved.insert(path);
            }
            Err(error) => notes.push(format!("{path} looks like a slip; not committed, and not moved: {error}")),
        }
    }
    // Changes the run staged would end up in the user's next commit.
    let staged = changes.iter().filter(|change| change.tracked && moved.contains(&change.path));
    tree.stage(None, [], staged.map(|change| &change.path)).await
}

/// Lists the first paths for a sentence, and the number of the others.
pub(crate) fn named(paths: &[impl Display]) -> String {
    let mut names: Vec<String> = paths.iter().take(NAMED).map(ToString::to_string).collect();
    if paths.len() > NAMED {
        names.push(format!("and {} more", paths.len() - NAMED));
    }
    names.join(", ")
}

fn git_path(path: &Path) -> GitPath {
    GitPath(path.as_os_str().to_owned().into_vec())
}

pub(crate) fn on_disk(root: &Path, path: &GitPath) -> PathBuf {
    root.join(OsStr::from_bytes(&path.0))
}

/// The kind of a work tree's entry at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TreeEntryKind {
    File,
    Directory,
    Missing,
}

pub(crate) type TreeEntries = Vec<(GitPath, TreeEntryKind)>;

pub(crate) fn of_kind(entries: &TreeEntries, kind: TreeEntryKind) -> impl Iterator<Item = &GitPath> {
    entries.iter().filter(move |entry| entry.1 == kind).map(|(path, _)| path)
}

/// Looks up what a work tree has at these paths.
pub(crate) async fn inspect(root: &Path, paths: Vec<GitPath>) -> TreeEntries {
    let inspect = move |disk: &Disk, root: &Path| {
        let kind = |path: &GitPath| match disk.symlink_metadata(&on_disk(root, path)) {
            Ok(found) if found.is_dir() => TreeEntryKind::Directory,
            Ok(_) => TreeEntryKind::File,
            Err(_) => TreeEntryKind::Missing,
        };
        paths.into_iter().map(|path| (path.clone(), kind(&path))).collect()
    };
    disk::at(root, inspect).await
}

/// Something that changes when the content does: a hash, or size and time of a file that has more bytes than `longest`.
fn content(disk: &Disk, path: &Path, longest: u64) -> String {
    let Ok(found) = disk.symlink_metadata(path) else { return "absent".into() };
    if found.is_symlink() {
        let target = disk.read_link(path).unwrap_or_default();
        return format!("link {}", crate::sha256(target.as_os_str().as_bytes()));
    }
    if !found.is_file() {
        return "no file".into();
    }
    if found.len() <= longest
        && let Ok(bytes) = disk.read_bounded(path, longest)
    {
        return crate::sha256(&bytes);
    }
    let modified = found.modified().ok().and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
    format!("{}{SIZED}{}", found.len(), modified.unwrap_or_default().as_nanos())
}

#[cfg(test)]
mod property_tests;
#[cfg(test)]
mod tests;
