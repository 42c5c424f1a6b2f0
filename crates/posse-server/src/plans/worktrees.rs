//! The work trees of a run: each session works in one of its own, on a branch of its own, and its work is merged into the
//! user's branch. Or, if the user wants that, sessions work in the user's checkout (`in_place`).
//!
//! The user's checkout is never stashed, reset, cleaned or checked out over. Their git fast-forwards it, the way it does for
//! them, and only if nothing of theirs is in the way. Every operation may be repeated after a crash: a record per work tree
//! (`record`) says how far it had come, and git itself whether it is merged.
//!
//! - `make` and `find`: the work tree of a session. `work`: what was done in it.
//! - `commit_leftovers`: the end of the work. What the session left uncommitted is committed; what checks and validators leave
//!   behind later is not the task's.
//! - `gates`: commands that check the work, or the result of merging it.
//! - `merge`: the way back. `tidy`: removes what is merged; the rest is kept for a while, and reported.

use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::{MutexGuard, PoisonError};

use posse_core::finalize::{self, GitPath, Snapshot, Status};
use posse_core::plan::fast_forward::{AheadBehind, Difference, ahead_behind, difference};
use posse_core::plan::file::Isolation;
use posse_core::plan::machine::{Part, RunId};
use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;

use crate::disk::{self, Disk};
use crate::git::outlived::Outlived;
use crate::git::{self, Draft, GitError, WorkTree};

mod after_plan;
pub(crate) mod gates;
mod in_place;
mod leftovers;
mod make;
mod merge;
mod obstacle;
mod outlived_checks;
mod record;
mod tidy;

pub(crate) use after_plan::not_made;
pub(crate) use gates::Gates;
pub(crate) use in_place::Earlier;
pub(super) use merge::at_fault;
use merge::not_committed;
pub(crate) use obstacle::obstacle;
pub(crate) use record::has_records;
pub(crate) use tidy::{Keeping, Kept, Sweep};

#[derive(Debug, thiserror::Error)]
pub(crate) enum WorktreeError {
    #[error("{} is not in a git repository; run `git init` and commit what is there", .0.display())]
    NoRepository(PathBuf),
    #[error("{} is a bare repository; run the plan in a checkout of it", .0.display())]
    Bare(PathBuf),
    #[error("{} has no commit yet; make the first one, then run the plan", .0.display())]
    NoCommit(PathBuf),
    #[error(
        "git does not know who you are, and posse commits what sessions leave uncommitted; tell it with \
         `git config --global user.name NAME` and `git config --global user.email ADDRESS`"
    )]
    Nobody,
    #[error("no branch is checked out in {}; check one out, or name one with --branch", .0.display())]
    Detached(PathBuf),
    #[error("{0:?} cannot be the name of a branch")]
    BadBranch(String),
    #[error("the branch {0} is gone; make it again, or run the plan on another one")]
    BranchGone(String),
    #[error("{0} is a repository within this one, which would be missing in a work area; set `isolation: in_place`")]
    Submodule(GitPath),
    #[error(
        "{} has changes that are not committed: {files}; commit them or put them elsewhere, or use --allow-dirty: then \
         sessions may not commit these files",
        directory.display()
    )]
    NotClean { directory: PathBuf, files: String },
    #[error("{} MiB are not committed in {}; that is too much to be kept safe; commit or ignore it", bytes >> 20, directory.display())]
    TooMuch { directory: PathBuf, bytes: u64 },
    #[error(
        "{0} is a repository within this one that has changes of its own, which cannot be kept safe; commit them there"
    )]
    DirtySubmodule(GitPath),
    #[error("{0} has conflicts; resolve them, then run the plan")]
    Conflicts(GitPath),
    #[error("{what} is under way in {}; finish it", directory.display())]
    UnderWay { directory: PathBuf, what: &'static str },
    #[error("{branch} is not checked out in {}; check it out, because sessions work there", directory.display())]
    OtherBranch { directory: PathBuf, branch: String },
    #[error("what was on {branch} when the task began is not all there any more; it is kept as {saved}")]
    Rewritten { branch: String, saved: String },
    #[error("{} is a link; posse works in directories of its own only", .0.display())]
    Link(PathBuf),
    #[error("there is no work area of {0}; it was never made, or has been removed")]
    NotMade(String),
    #[error("{} is not a work area any more; its branch is {branch}", directory.display())]
    Broken { directory: PathBuf, branch: String },
    #[error("the session left {what} unfinished in {}", directory.display())]
    Unfinished { directory: PathBuf, what: &'static str },
    #[error("the session left work on {branch} and other work in {}; put them together there", directory.display())]
    Strayed { directory: PathBuf, branch: String },
    #[error("the work could not be committed: {0}")]
    NotCommitted(String),
    #[error("all names for the work area of {0} are taken; remove old branches of this plan")]
    NoName(String),
    #[error("the name of {} is not text; posse needs one that is", .0.display())]
    NotText(PathBuf),
    #[error("the checks were stopped, because the run is to stop")]
    Stopped,
    #[error(transparent)]
    Git(#[from] GitError),
    #[error("cannot write {}: {error}", path.display())]
    Write { path: PathBuf, error: io::Error },
    #[error("{} does not say what posse wrote into it: {error}", path.display())]
    Record { path: PathBuf, error: serde_json::Error },
}

impl WorktreeError {
    fn write(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |error| Self::Write { path, error }
    }
}

type Result<T, E = WorktreeError> = std::result::Result<T, E>;

/// The directory, within that of a run, through which work trees are removed.
const TRASH: &str = "trash";

/// What a run of a plan works on.
#[derive(Clone, Debug)]
pub(crate) struct WorktreesParams {
    /// Somewhere in the user's checkout.
    pub directory: PathBuf,
    /// A private directory of this run, outside of the checkout or ignored in it.
    pub state: PathBuf,
    pub plan_slug: String,
    /// The branch that gathers the results. `None`: the one that is checked out.
    pub branch: Option<String>,
    /// Whether that branch is made if it is missing. Not for a run that has begun: then the user has removed it.
    pub make_branch: bool,
    /// Whether sessions work in the checkout itself.
    pub isolation: Isolation,
    /// The plan file. Sessions' copies of it are not merged: what they change in it is taken over by other rules.
    pub plan_file: Option<PathBuf>,
}

/// The work trees of one run of a plan.
#[derive(Debug)]
pub(crate) struct Worktrees {
    /// The user's checkout, as it was found.
    home: WorkTree,
    state: PathBuf,
    plan_slug: String,
    /// In full: `refs/heads/main`.
    target: String,
    isolation: Isolation,
    /// A merge keeps this file as the target has it.
    plan_file: Option<GitPath>,
    /// Held while the list of work trees is changed.
    list: Mutex<()>,
    /// Held while a result is merged: the next one is merged with it.
    merging: Mutex<()>,
    /// Held while the scratch work tree is used.
    scratch: Mutex<()>,
    /// Held between a look at the user's checkout and the record of who owns which change.
    checkout: Mutex<()>,
    facts: std::sync::Mutex<Facts>,
    /// Gits in directories of this run that an earlier daemon started.
    outlived: Vec<Outlived>,
}

/// The last answers of git that need not be asked for again: a commit never changes.
#[derive(Debug, Default)]
struct Facts {
    /// A commit without submodules.
    simple: String,
    tree: (String, String),
    /// The last two commits of which it was asked how they stand to each other.
    compared: Option<(String, String, AheadBehind)>,
    /// A commit that was made here, behind its parent, and in what the two differ.
    difference: Option<(String, String, Difference)>,
    /// The status of the work tree whose session ended last.
    seen: Option<(PathBuf, (Status, Draft))>,
}

/// Where one session works.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TaskWorktree {
    pub run: RunId,
    pub directory: PathBuf,
    pub branch: String,
    /// The commit it began with.
    pub base: String,
}

impl TaskWorktree {
    fn broken(&self) -> WorktreeError {
        WorktreeError::Broken { directory: self.directory.clone(), branch: self.branch.clone() }
    }
}

impl Worktrees {
    pub(crate) async fn open(params: WorktreesParams) -> Result<Self> {
        let WorktreesParams { directory, state, plan_slug, branch, make_branch, isolation, plan_file } = params;
        let Some(home) = WorkTree::find(&directory).await? else {
            let bare = git::is_bare(&directory).await;
            return Err(if bare { WorktreeError::Bare(directory) } else { WorktreeError::NoRepository(directory) });
        };
        if home.is_bare().await? {
            return Err(WorktreeError::Bare(directory));
        }
        let Some(head) = home.head().await? else { return Err(WorktreeError::NoCommit(home.root.clone())) };
        let target = match branch {
            None => home.branch().await?.ok_or_else(|| WorktreeError::Detached(home.root.clone()))?,
            Some(branch) => {
                let full = format!("refs/heads/{branch}");
                if branch.starts_with('-') || !home.holds(&["check-ref-format", &full]).await? {
                    return Err(WorktreeError::BadBranch(branch));
                }
                if make_branch && isolation == Isolation::Worktree && home.last_of(&full).await?.is_none() {
                    // Fails if it was made meanwhile.
                    home.ask(&["update-ref", "-m", "posse: for a plan", &full, &head, ""]).await?;
                }
                branch
            }
        };
        let prepare = move |disk: &Disk| {
            let plan_file = plan_file.map(|file| disk.canonicalize(&file).unwrap_or(file));
            private(disk, &state)?;
            let state = disk.canonicalize(&state).map_err(WorktreeError::write(&state))?;
            for name in ["worktrees", "records", "gates", TRASH] {
                private(disk, &state.join(name))?;
            }
            for left in disk.read_dir(&state.join(TRASH)).into_iter().flatten().flatten() {
                let _ = disk.remove_dir_all(&left.path());
            }
            outlived_checks::end(disk, &state);
            let outlived = git::outlived::in_directory(disk, &state);
            Ok::<_, WorktreeError>((plan_file, state, outlived))
        };
        let (plan_file, state, outlived) = disk::run(prepare).await?;
        let plan_file = plan_file.and_then(|file| home.path_of(&file).ok());
        Ok(Self {
            home,
            state,
            plan_slug,
            target: format!("refs/heads/{target}"),
            isolation,
            plan_file,
            list: Mutex::default(),
            merging: Mutex::default(),
            scratch: Mutex::default(),
            checkout: Mutex::default(),
            facts: std::sync::Mutex::default(),
            outlived,
        })
    }

    /// Fails if git does not know who commits: without that no work can be kept, so a run asks before it begins.
    pub(crate) async fn knows_who_commits(&self) -> Result<()> {
        for who in ["GIT_AUTHOR_IDENT", "GIT_COMMITTER_IDENT"] {
            match self.home.ask(&["var", who]).await {
                Ok(_) => {}
                Err(GitError::Failed { .. }) => return Err(WorktreeError::Nobody),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// The name of the branch that gathers the results.
    pub(crate) fn branch(&self) -> &str {
        self.target.strip_prefix("refs/heads/").unwrap_or(&self.target)
    }

    /// The root of the user's checkout.
    pub(crate) fn root(&self) -> &Path {
        &self.home.root
    }

    /// Makes sure that a session has a place to work in, with all that is done so far.
    pub(crate) async fn begin(&self, run: &RunId, gates: &Gates) -> Result<TaskWorktree> {
        match self.isolation {
            Isolation::Worktree => self.make(run).await,
            Isolation::InPlace => self.begin_in_place(run, gates).await,
        }
    }

    /// The last commit of the branch that gathers the results.
    pub(crate) async fn tip(&self) -> Result<String> {
        let tip = self.home.last_of(&self.target).await?;
        tip.ok_or_else(|| WorktreeError::BranchGone(self.target.clone()))
    }

    /// The work tree of a session, or of the session whose work a validator looks at.
    pub(crate) async fn find(&self, run: &RunId) -> Result<TaskWorktree> {
        match self.record(run).await? {
            Some(record) if record.ready => Ok(record.worktree),
            _ => Err(WorktreeError::NotMade(run.to_string())),
        }
    }

    /// git's work tree in a directory of ours, if it still is one. Where it is none, git would find the user's.
    async fn tree(&self, worktree: &TaskWorktree) -> Result<WorkTree> {
        if !disk::at(worktree.directory.join(".git"), Disk::is_file).await {
            return Err(worktree.broken());
        }
        self.tree_in(&worktree.directory).await?.ok_or_else(|| worktree.broken())
    }

    /// Waits for a git that an earlier daemon left running in a work tree of ours, and removes the lock of one that died.
    /// Called before we write there.
    async fn settle(&self, tree: &WorkTree) {
        for git in self.outlived.iter().filter(|git| git.is_in(&tree.root)) {
            git.ends().await;
        }
        tree.unlock().await;
    }

    /// The work tree that has its root here, if it is one of this repository. A session may have put another repository there.
    async fn tree_in(&self, root: &Path) -> Result<Option<WorkTree>, GitError> {
        Ok(WorkTree::find(root).await?.filter(|tree| tree.root == root && tree.common == self.home.common))
    }

    /// Whether there is evidence in a work tree that something was done.
    pub(crate) async fn has_work(&self, worktree: &TaskWorktree) -> Result<bool> {
        if self.isolation == Isolation::InPlace {
            return self.has_work_in_place(worktree).await;
        }
        let tree = self.tree(worktree).await?;
        let (status, draft) = tree.look().await?;
        // Not what is posse's own.
        let plan = finalize::plan(&status.changes, &nothing_of_the_users(&tree), None);
        let is_dirty = !(plan.add.is_empty() && plan.remove.is_empty() && plan.quarantine.is_empty());
        let head = status.commit.clone();
        self.facts().seen = Some((tree.root.clone(), (status, draft)));
        match head {
            _ if is_dirty => Ok(true),
            Some(head) if head != worktree.base => {
                Ok(!self.ahead_behind(&worktree.base, &head).await?.ahead.is_empty())
            }
            _ => Ok(false),
        }
    }

    /// The work of a session as `git diff --stat` tells it. New files that are not committed are not in it.
    pub(crate) async fn stat(&self, worktree: &TaskWorktree) -> Result<String> {
        let (tree, files) = match self.isolation {
            Isolation::Worktree => (self.tree(worktree).await?, None),
            Isolation::InPlace => self.files_in_place(worktree).await.map(|(tree, files)| (tree, Some(files)))?,
        };
        let mut arguments = vec!["diff", "--no-ext-diff", "--no-textconv", git::NOT_INSIDE, "--no-color", "--stat=100"];
        arguments.extend([Some(worktree.base.as_str()), files.as_deref(), Some("--")].into_iter().flatten());
        Ok(String::from_utf8_lossy(&tree.hear(&arguments).await?).into_owned())
    }

    /// The commits that the second has and the first has not, oldest first.
    async fn commits(&self, from: &str, to: &str) -> Result<Vec<String>> {
        let said = self.home.ask(&["rev-list", "--reverse", "--topo-order", to, &format!("^{from}"), "--"]).await?;
        Ok(said.lines().map(str::to_owned).collect())
    }

    /// How two commits stand to each other.
    async fn ahead_behind(&self, first: &str, second: &str) -> Result<AheadBehind> {
        let known = self.facts().compared.clone();
        if let Some((_, _, known)) = known.filter(|(a, b, _)| a == first && b == second) {
            return Ok(known);
        }
        let both = format!("{first}...{second}");
        let arguments = ["rev-list", "--left-right", "--reverse", "--topo-order", &both, "--"];
        let said = self.home.ask(&arguments).await?;
        let found = ahead_behind(&said).ok_or_else(|| GitError::unexpected("rev-list"))?;
        self.facts().compared = Some((first.to_owned(), second.to_owned(), found.clone()));
        Ok(found)
    }

    /// The difference of two commits, or trees.
    async fn changed(&self, from: &str, to: &str) -> Result<Difference> {
        let known = self.facts().difference.clone();
        if let Some((_, _, known)) = known.filter(|(a, b, _)| a == from && b == to) {
            return Ok(known);
        }
        let arguments = ["diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", from, to, "--"];
        let said = self.home.hear(&arguments).await?;
        Ok(difference(&said).ok_or_else(|| GitError::unexpected("diff-tree"))?)
    }

    async fn has(&self, descendant: &str, commit: &str) -> Result<bool> {
        if descendant == commit {
            return Ok(true);
        }
        Ok(self.home.holds(&["merge-base", "--is-ancestor", commit, descendant]).await?)
    }

    async fn tree_of(&self, commit: &str) -> Result<String> {
        let (of, tree) = self.facts().tree.clone();
        if of == commit {
            return Ok(tree);
        }
        let tree = self.home.ask(&["rev-parse", "--verify", &format!("{commit}^{{tree}}")]).await?;
        self.facts().tree = (commit.to_owned(), tree.clone());
        Ok(tree)
    }

    fn facts(&self) -> MutexGuard<'_, Facts> {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The session that did the work which this one is about.
fn work_of(run: &RunId) -> RunId {
    RunId { part: Part::Work, ..run.clone() }
}

/// In a work tree, everything is the session's.
fn nothing_of_the_users(tree: &WorkTree) -> Snapshot {
    let root = GitPath(tree.root.clone().into_os_string().into_vec());
    Snapshot { root, dirty: Vec::new(), ignored: Vec::new() }
}

fn text(path: &Path) -> Result<&str> {
    path.to_str().ok_or_else(|| WorktreeError::NotText(path.to_owned()))
}

/// A directory of ours alone. A link in its place could lead anywhere.
fn private(disk: &Disk, path: &Path) -> Result<()> {
    match disk.symlink_metadata(path) {
        Ok(found) if found.is_symlink() => Err(WorktreeError::Link(path.to_owned())),
        Ok(_) => Ok(()),
        Err(_) => disk.create_private_dir(path).map_err(WorktreeError::write(path)),
    }
}

#[cfg(test)]
mod cost_tests;
#[cfg(test)]
mod in_place_property_tests;
#[cfg(test)]
mod in_place_tests;
#[cfg(test)]
mod merge_tests;
#[cfg(test)]
mod outlived_tests;
#[cfg(test)]
mod property_tests;
#[cfg(test)]
pub(crate) mod tests;
