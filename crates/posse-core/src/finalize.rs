//! Decides what happens to the changes of a run that passed: commit, quarantine, or leave.
//!
//! A path with uncommitted changes when the run began belongs to the user and stays as it is. The user's lines and the
//! run's cannot be told apart there, and a commit would mix them. All other changes belong to the run. Edits that the
//! user makes elsewhere during the run look the same.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

mod names;
mod status;

pub use names::is_suspicious;
pub use status::{Change, Status, StatusError, changes, ignored};

/// The result of one step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "step", content = "text")]
pub enum Step {
    Done(String),
    Skipped(String),
    Failed(String),
}

/// Returns the commit message, unless the user has set one.
pub fn commit_message(wished: &str, run: &str) -> String {
    match wished.trim() {
        "" => format!("posse: the work of run {run}"),
        wished => wished.to_owned(),
    }
}

/// A path in git's form: relative to the root, any bytes but NUL, `/` between names.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "Written", into = "Written")]
pub struct GitPath(pub Vec<u8>);

/// Text where the path is valid UTF-8.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Written {
    Text(String),
    Bytes(Vec<u8>),
}

impl From<Written> for GitPath {
    fn from(written: Written) -> Self {
        match written {
            Written::Text(text) => Self(text.into_bytes()),
            Written::Bytes(bytes) => Self(bytes),
        }
    }
}

impl From<GitPath> for Written {
    fn from(path: GitPath) -> Self {
        String::from_utf8(path.0).map_or_else(|error| Written::Bytes(error.into_bytes()), Written::Text)
    }
}

impl std::fmt::Display for GitPath {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = String::from_utf8_lossy(&self.0);
        if text.chars().any(|c| c.is_control() || c.is_whitespace() || c == '"') {
            write!(f, "{text:?}")
        } else {
            f.write_str(&text)
        }
    }
}

impl GitPath {
    fn names(&self) -> impl DoubleEndedIterator<Item = &[u8]> {
        self.0.split(|byte| *byte == b'/')
    }

    fn name(&self) -> &[u8] {
        self.names().next_back().unwrap_or_default()
    }

    /// Returns whether the path is below that directory.
    pub fn is_in(&self, directory: &GitPath) -> bool {
        self.0.strip_prefix(directory.0.as_slice()).is_some_and(|rest| rest.starts_with(b"/"))
    }

    /// Returns the directories that contain the path, outermost first.
    fn parents(&self) -> impl Iterator<Item = GitPath> {
        let ends = self.0.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
        ends.map(|at| GitPath(self.0[..at].to_vec()))
    }
}

/// The state of the repository when the run began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// The directory of its work tree.
    pub root: GitPath,
    /// The paths with uncommitted changes.
    pub dirty: Vec<Was>,
    /// The ignored directories, and ignored files outside them. They stay excluded if the run changes the rules,
    /// because they may hold passwords.
    pub ignored: Vec<GitPath>,
}

/// A path with uncommitted changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Was {
    pub path: GitPath,
    /// The content, in a form that only supports comparison.
    pub content: String,
}

/// The reason why a changed path is left as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LeftBecause {
    /// It belongs to posse.
    Ours,
    /// The path or a directory above it had uncommitted changes before the run, such as a former repository.
    UsersWork,
    /// Git ignored it before the run.
    Ignored,
    /// A nested repository, registered as a submodule or not.
    Repository,
    /// The path replaces something that is left. A commit would delete that.
    InTheWay,
}

/// The decision for each changed path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommitPlan {
    /// Paths to commit as they are in the work tree.
    pub add: BTreeSet<GitPath>,
    /// Paths to commit as deleted.
    pub remove: BTreeSet<GitPath>,
    /// New files with names that look accidental, to move aside.
    pub quarantine: BTreeSet<GitPath>,
    pub left: BTreeMap<GitPath, LeftBecause>,
    /// Paths that had uncommitted changes before the run, and have none now.
    pub vanished: BTreeSet<GitPath>,
}

/// Directories that are never committed, at any depth: answer files and archives of runs.
const OURS: [&[u8]; 2] = [b".tmp", b".posse"];
/// The prefix of temporary files that are about to be renamed.
pub const UNFINISHED: &str = ".posse-";

/// Returns whether a path belongs to posse, at any depth.
pub fn is_ours(path: &GitPath) -> bool {
    path.names().any(|name| OURS.contains(&name) || name.starts_with(UNFINISHED.as_bytes()))
}

/// Decides for each change. `quarantine` is the directory for suspicious files, if it is in the repository.
pub fn plan(changes: &[Change], before: &Snapshot, quarantine: Option<&GitPath>) -> CommitPlan {
    let users: BTreeSet<&GitPath> = before.dirty.iter().map(|was| &was.path).collect();
    let ignored: BTreeSet<&GitPath> = before.ignored.iter().collect();
    let among = |set: &BTreeSet<&GitPath>, path: &GitPath| {
        set.contains(path) || path.parents().any(|parent| set.contains(&parent))
    };
    let mut plan = CommitPlan::default();
    for change in changes {
        let path = &change.path;
        let aside = quarantine.is_some_and(|directory| among(&BTreeSet::from([directory]), path));
        let ours = aside || is_ours(path);
        let why = if ours {
            LeftBecause::Ours
        } else if among(&users, path) {
            LeftBecause::UsersWork
        } else if change.new && among(&ignored, path) {
            LeftBecause::Ignored
        } else if change.repository {
            LeftBecause::Repository
        } else {
            let to = match change {
                Change { present: false, .. } => &mut plan.remove,
                Change { new: true, .. } if is_suspicious(path.name()) => &mut plan.quarantine,
                _ => &mut plan.add,
            };
            to.insert(path.clone());
            continue;
        };
        plan.left.insert(path.clone(), why);
    }
    // The run removed it from the index only, so git lists it twice.
    plan.remove.retain(|path| !plan.add.contains(path) && !plan.quarantine.contains(path));
    let left: BTreeSet<GitPath> = plan.left.keys().cloned().collect();
    let left_within: BTreeSet<GitPath> = left.iter().flat_map(GitPath::parents).collect();
    plan.add.retain(|path| {
        let in_the_way = left_within.contains(path) || path.parents().any(|parent| left.contains(&parent));
        if in_the_way {
            plan.left.insert(path.clone(), LeftBecause::InTheWay);
        }
        !in_the_way
    });
    let changed: BTreeSet<&GitPath> = changes.iter().map(|change| &change.path).collect();
    plan.vanished = users.into_iter().filter(|path| !changed.contains(path)).cloned().collect();
    plan
}

#[cfg(test)]
mod tests;
