//! After a run that passed: what of its work is committed, what is put aside, what is left as it is.
//!
//! The user's work is sacred. What had uncommitted changes when the run began is theirs, and stays as it is, whatever the
//! run did to it since: nobody can tell their lines from the run's, and a commit would mix them. Everything else that
//! changed since is the run's. Edits the user makes elsewhere during the run cannot be told apart from it.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

mod names;
mod status;

pub use names::is_suspicious;
pub use status::{Change, Status, StatusError, changes, ignored};

/// What became of one step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "step", content = "text")]
pub enum Step {
    Done(String),
    Skipped(String),
    Failed(String),
}

/// What the commit says, if the user has said nothing.
pub fn commit_message(wished: &str, run: &str) -> String {
    match wished.trim() {
        "" => format!("posse: the work of run {run}"),
        wished => wished.to_owned(),
    }
}

/// A path as git has it: relative to the root, any bytes but NUL, `/` between names.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "Written", into = "Written")]
pub struct GitPath(pub Vec<u8>);

/// As text where it is text.
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

    /// Whether it is somewhere below that directory.
    pub fn is_in(&self, directory: &GitPath) -> bool {
        self.0.strip_prefix(directory.0.as_slice()).is_some_and(|rest| rest.starts_with(b"/"))
    }

    /// The directories it is in, outermost first.
    fn parents(&self) -> impl Iterator<Item = GitPath> {
        let ends = self.0.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
        ends.map(|at| GitPath(self.0[..at].to_vec()))
    }
}

/// The repository when the run began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// Where its work tree is.
    pub root: GitPath,
    /// What had uncommitted changes.
    pub dirty: Vec<Was>,
    /// What git ignored: directories, and files that are in none of those. Should the run change the rules, these are not
    /// its work; passwords are among them.
    pub ignored: Vec<GitPath>,
}

/// A path with uncommitted changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Was {
    pub path: GitPath,
    /// What was in it, in a form that is only good for comparing.
    pub content: String,
}

/// LeftBecause a changed path is left as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LeftBecause {
    /// It belongs to posse.
    Ours,
    /// It had uncommitted changes before the run, or something it is in had: a repository that is none any more.
    UsersWork,
    /// Git ignored it before the run.
    Ignored,
    /// A repository of its own, registered as a submodule or not.
    Repository,
    /// Where it is now, something that is left was before: the commit would delete that.
    InTheWay,
}

/// What is to be done with each changed path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommitPlan {
    /// Committed as they are in the work tree.
    pub add: BTreeSet<GitPath>,
    /// Committed as deleted.
    pub remove: BTreeSet<GitPath>,
    /// Put aside: new, and nobody names a file like that on purpose.
    pub quarantine: BTreeSet<GitPath>,
    pub left: BTreeMap<GitPath, LeftBecause>,
    /// Had uncommitted changes before the run, and has none now.
    pub vanished: BTreeSet<GitPath>,
}

/// Directories that never get into a commit, wherever they are: answer files and archives of runs.
const OURS: [&[u8]; 2] = [b".tmp", b".posse"];
/// How files are called that are on their way to another name.
pub const UNFINISHED: &str = ".posse-";

/// Whether this belongs to posse, wherever it is.
pub fn is_ours(path: &GitPath) -> bool {
    path.names().any(|name| OURS.contains(&name) || name.starts_with(UNFINISHED.as_bytes()))
}

/// Decides. `quarantine` is the directory for what is put aside, if it is in the repository.
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
    // Taken out of the index by the run, and still there: git names it twice.
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
