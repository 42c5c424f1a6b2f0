//! Where tasks are worked on: a work tree of its own for each session, on a branch of its own, and how what was done there
//! gets back into the user's branch. Or, if the user wants that, their own checkout (`in_place`).
//!
//! The user's checkout is never stashed, reset, cleaned or checked out over. Their git brings a result into it, the way it
//! does for them, and only if nothing of theirs is in the way. Everything may be asked for again after a crash: a record per
//! work tree (`record`) says how far it had come, and git itself whether it is merged.
//!
//! - `make` and `find`: the work tree of a session. `work`: what was done in it.
//! - `commit_leftovers`: the end of the work. What the session left uncommitted is committed; what checks and validators leave behind
//!   later is not the task's.
//! - `gates`: commands that check the work, or what it gives together with others'.
//! - `merge`: the way back. `tidy`: what can go when it is merged, what is kept, and for how long.

use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::PoisonError;

use posse_core::finalize::{self, Change, GitPath, Snapshot, Status};
use posse_core::plan::fast_forward::{Difference, difference};
use posse_core::plan::file::Isolation;
use posse_core::plan::machine::{Part, RunId};
use tokio::sync::Mutex;

use crate::disk::{self, Disk};
use crate::git::outlived::Outlived;
use crate::git::{self, Draft, GitError, WorkTree};
use record::WorktreeRecord;

mod after_plan;
pub(crate) mod gates;
mod identity;
mod in_place;
mod leftovers;
mod make;
mod merge;
mod obstacle;
mod record;
mod running;
mod tidy;

pub(crate) use gates::{Gates, NotChecked, Stopped};
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
    #[error(transparent)]
    Stopped(#[from] Stopped),
    #[error(transparent)]
    Git(#[from] GitError),
    #[error("cannot write {}: {error}", path.display())]
    Write { path: PathBuf, error: io::Error },
    #[error("{} does not say what posse wrote into it: {error}", path.display())]
    WorktreeRecord { path: PathBuf, error: serde_json::Error },
}

/// Where a work tree goes on its way out, within the directory of a run.
const TRASH: &str = "trash";

/// What a run of a plan works on.
#[derive(Clone, Debug)]
pub(crate) struct WorktreesParams {
    /// Somewhere in the user's checkout.
    pub directory: PathBuf,
    /// A private directory of this run, outside of the checkout or ignored in it.
    pub state: PathBuf,
    /// The plan as part of a path (`names::plan_slug`).
    pub plan_slug: String,
    /// The branch that gathers the results. `None`: the one that is checked out.
    pub branch: Option<String>,
    /// Whether that branch is made if it is not there. Not for a run that has begun: then somebody has removed it.
    pub make_branch: bool,
    /// Whether sessions work in the checkout itself.
    pub isolation: Isolation,
    /// The plan file. Sessions' copies of it are not merged: what they change in it is taken over by other rules.
    pub plan_file: Option<PathBuf>,
}

/// The work trees of one run of a plan.
#[derive(Debug)]
pub(crate) struct Worktrees {
    /// The root of the user's checkout.
    root: PathBuf,
    /// The user's checkout, as it was found.
    home: WorkTree,
    state: PathBuf,
    plan_slug: String,
    /// In full: `refs/heads/main`.
    target: String,
    isolation: Isolation,
    /// Stays as the target has it, whatever a task did to it.
    plan_file: Option<GitPath>,
    /// Held while the list of work trees is changed.
    list: Mutex<()>,
    /// Held while a result is merged: the next one is merged with it.
    merging: Mutex<()>,
    /// Held by whoever uses the scratch work tree.
    scratch: Mutex<()>,
    /// Held by whoever looks at the user's checkout and writes down whose is what.
    checkout: Mutex<()>,
    facts: Facts,
    /// Gits in directories of ours that a daemon before us has started.
    outlived: Vec<Outlived>,
}

/// What was found out last, and need not be asked again. Of commits nothing ever changes.
#[derive(Debug, Default)]
struct Facts {
    /// The last one that was found to have no submodule.
    simple: std::sync::Mutex<String>,
    /// The last one whose tree was asked for, and that tree.
    tree: std::sync::Mutex<(String, String)>,
    /// The last one that was made, behind its parent.
    child: std::sync::Mutex<(String, String)>,
    /// How the work tree of the session that ended last stood then.
    seen: std::sync::Mutex<Option<(PathBuf, (Status, Draft))>>,
}

impl Facts {
    /// How a work tree stood when its session ended. Told once.
    fn take_seen(&self, root: &Path) -> Option<(Status, Draft)> {
        locked(&self.seen).take_if(|(of, _)| of.as_path() == root).map(|(_, seen)| seen)
    }
}

fn locked<T>(fact: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    fact.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Where one session works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TaskWorktree {
    pub run: RunId,
    pub directory: PathBuf,
    pub branch: String,
    /// The commit it began with.
    pub base: String,
}

/// What was done in a work tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Work {
    /// Oldest first.
    pub commits: Vec<String>,
    /// Changed, new or deleted, committed or not.
    pub files: Vec<GitPath>,
    /// Of these, what is not committed.
    pub dirty: Vec<GitPath>,
    /// As `git diff --stat` tells it; new files that are not committed are not in it.
    pub stat: String,
}

impl Work {
    /// Evidence that something was done.
    pub(crate) fn is_there(&self) -> bool {
        !self.commits.is_empty() || !self.dirty.is_empty()
    }
}

impl Worktrees {
    pub(crate) async fn open(params: WorktreesParams) -> Result<Self, WorktreeError> {
        let WorktreesParams { directory, state, plan_slug, branch, make_branch, isolation, plan_file } = params;
        let Some(tree) = WorkTree::find(&directory).await? else {
            let bare = git::is_bare(&directory).await;
            return Err(if bare { WorktreeError::Bare(directory) } else { WorktreeError::NoRepository(directory) });
        };
        let root = tree.root.clone();
        if tree.is_bare().await? {
            return Err(WorktreeError::Bare(directory));
        }
        let Some(head) = tree.head().await? else { return Err(WorktreeError::NoCommit(root)) };
        let target = match branch {
            None => tree.branch().await?.ok_or_else(|| WorktreeError::Detached(root.clone()))?,
            Some(branch) => {
                let full = format!("refs/heads/{branch}");
                if branch.starts_with('-') || !git::holds(&root, &["check-ref-format", &full]).await? {
                    return Err(WorktreeError::BadBranch(branch));
                }
                if make_branch && isolation == Isolation::Worktree && tree.last_of(&full).await?.is_none() {
                    // Made only if nobody else has made it meanwhile.
                    git::ask(&root, &["update-ref", "-m", "posse: for a plan", &full, &head, ""]).await?;
                }
                branch
            }
        };
        let prepare = move |disk: &Disk| {
            let plan_file = plan_file.map(|file| disk.canonicalize(&file).unwrap_or(file));
            private(disk, &state)?;
            let state =
                disk.canonicalize(&state).map_err(|error| WorktreeError::Write { path: state.clone(), error })?;
            for name in ["worktrees", "records", "gates", TRASH] {
                private(disk, &state.join(name))?;
            }
            for left in disk.read_dir(&state.join(TRASH)).into_iter().flatten().flatten() {
                let _ = disk.remove_dir_all(&left.path());
            }
            Ok::<_, WorktreeError>((plan_file, state))
        };
        let (plan_file, state) = disk::run(prepare).await?;
        let within = |file: PathBuf| Some(GitPath(file.strip_prefix(&root).ok()?.as_os_str().as_bytes().to_vec()));
        let plan_file = plan_file.and_then(within);
        running::end_all(&state).await;
        let outlived = disk::at(&state, git::outlived::in_directory).await;
        Ok(Self {
            root,
            home: tree,
            state,
            plan_slug,
            target: format!("refs/heads/{target}"),
            isolation,
            plan_file,
            list: Mutex::default(),
            merging: Mutex::default(),
            scratch: Mutex::default(),
            checkout: Mutex::default(),
            facts: Facts::default(),
            outlived,
        })
    }

    /// The name of the branch that gathers the results.
    pub(crate) fn branch(&self) -> &str {
        self.target.strip_prefix("refs/heads/").unwrap_or(&self.target)
    }

    /// The root of the user's checkout.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Makes sure that a session has a place to work in, with all that is done so far.
    pub(crate) async fn begin(&self, run: &RunId, gates: &Gates) -> Result<TaskWorktree, WorktreeError> {
        match self.isolation {
            Isolation::Worktree => self.make_on(run, None).await,
            Isolation::InPlace => self.begin_in_place(run, gates).await,
        }
    }

    /// The last commit of the branch that gathers the results.
    pub(crate) async fn tip(&self) -> Result<String, WorktreeError> {
        let tip = self.home.last_of(&self.target).await?;
        tip.ok_or_else(|| WorktreeError::BranchGone(self.target.clone()))
    }

    /// The work tree of a session, or of the session whose work a validator looks at.
    pub(crate) async fn find(&self, run: &RunId) -> Result<TaskWorktree, WorktreeError> {
        match self.record(run).await? {
            Some(record) if record.ready => Ok(worktree(run, record)),
            _ => Err(WorktreeError::NotMade(run.to_string())),
        }
    }

    /// The work tree of a work tree, if it still is one. Where it is none, git would find the user's.
    async fn tree(&self, worktree: &TaskWorktree) -> Result<WorkTree, WorktreeError> {
        let broken =
            || WorktreeError::Broken { directory: worktree.directory.clone(), branch: worktree.branch.clone() };
        if !disk::at(worktree.directory.join(".git"), Disk::is_file).await {
            return Err(broken());
        }
        self.tree_in(&worktree.directory).await?.ok_or_else(broken)
    }

    /// Before we write into a work tree of ours: a git that outlived the daemon which started it there is waited for, and
    /// the lock of one that died goes.
    async fn settle(&self, tree: &WorkTree) {
        for git in self.outlived.iter().filter(|git| git.is_in(&tree.root)) {
            git.ends().await;
        }
        tree.unlock().await;
    }

    /// The work tree that has its root here, if there is one.
    async fn tree_in(&self, root: &Path) -> Result<Option<WorkTree>, GitError> {
        Ok(self.tree_at(root).await?.filter(|tree| tree.root == root))
    }

    /// The work tree that this is in, if it is one of this repository. A session may have put another repository there.
    async fn tree_at(&self, directory: &Path) -> Result<Option<WorkTree>, GitError> {
        match self.home.beside(directory).await {
            Some(tree) => Ok(Some(tree)),
            None => Ok(WorkTree::find(directory).await?.filter(|tree| tree.shares_with(&self.home))),
        }
    }

    /// Whether there is evidence in a work tree that something was done.
    pub(crate) async fn has_work(&self, worktree: &TaskWorktree) -> Result<bool, WorktreeError> {
        if self.isolation == Isolation::InPlace {
            return Ok(self.work_in_place(worktree).await?.is_there());
        }
        let tree = self.tree(worktree).await?;
        let (status, draft) = tree.look().await?;
        let is_dirty = !self.dirty(&tree, &status.changes).is_empty();
        let head = status.commit.clone();
        *locked(&self.facts.seen) = Some((tree.root, (status, draft)));
        match head {
            _ if is_dirty => Ok(true),
            Some(head) if head != worktree.base => Ok(!self.commits(&worktree.base, &head).await?.is_empty()),
            _ => Ok(false),
        }
    }

    /// What is not committed, but for what is posse's own.
    fn dirty(&self, tree: &WorkTree, changes: &[Change]) -> Vec<GitPath> {
        let plan = finalize::plan(changes, &nothing_of_the_users(tree), None);
        plan.add.into_iter().chain(plan.remove).chain(plan.quarantine).collect()
    }

    pub(crate) async fn work(&self, worktree: &TaskWorktree) -> Result<Work, WorktreeError> {
        if self.isolation == Isolation::InPlace {
            return self.work_in_place(worktree).await;
        }
        let tree = self.tree(worktree).await?;
        let status = tree.status_and_head().await?;
        let head = status.commit.unwrap_or_else(|| worktree.base.clone());
        let dirty = self.dirty(&tree, &status.changes);
        let mut files = self.changed(&worktree.base, &head).await?.paths;
        files.extend(dirty.iter().cloned());
        files.sort();
        files.dedup();
        let arguments = [
            "diff",
            "--no-ext-diff",
            "--no-textconv",
            git::NOT_INSIDE,
            "--no-color",
            "--stat=100",
            &worktree.base,
            "--",
        ];
        let stat = git::hear(&worktree.directory, None, &arguments, b"").await?;
        let stat = String::from_utf8_lossy(&stat).into_owned();
        Ok(Work { commits: self.commits(&worktree.base, &head).await?, files, dirty, stat })
    }

    /// What the second has and the first has not, oldest first.
    async fn commits(&self, from: &str, to: &str) -> Result<Vec<String>, WorktreeError> {
        let said =
            git::ask(&self.root, &["rev-list", "--reverse", "--topo-order", to, &format!("^{from}"), "--"]).await?;
        Ok(said.lines().map(str::to_owned).collect())
    }

    /// In what two commits, or trees, differ.
    async fn changed(&self, from: &str, to: &str) -> Result<Difference, WorktreeError> {
        let arguments = ["diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", from, to, "--"];
        let said = git::hear(&self.root, None, &arguments, b"").await?;
        let words = || "it said something else than what differs".to_owned();
        let failed = || GitError::Failed { command: "diff-tree".into(), words: words() };
        Ok(difference(&said).ok_or_else(failed)?)
    }

    async fn has(&self, descendant: &str, commit: &str) -> Result<bool, WorktreeError> {
        if descendant == commit {
            return Ok(true);
        }
        Ok(git::holds(&self.root, &["merge-base", "--is-ancestor", commit, descendant]).await?)
    }

    async fn tree_of(&self, commit: &str) -> Result<String, WorktreeError> {
        let known = locked(&self.facts.tree).clone();
        if known.0 == commit {
            return Ok(known.1);
        }
        let tree = git::ask(&self.root, &["rev-parse", "--verify", &format!("{commit}^{{tree}}")]).await?;
        *locked(&self.facts.tree) = (commit.to_owned(), tree.clone());
        Ok(tree)
    }

    /// Whether a commit is known to have no submodule.
    fn is_simple(&self, commit: &str) -> bool {
        *locked(&self.facts.simple) == commit
    }

    /// Whether the second commit is known to be the first one and one more.
    fn is_child(&self, parent: &str, commit: &str) -> bool {
        let child = locked(&self.facts.child);
        child.0 == parent && child.1 == commit
    }

    fn found_child(&self, parent: &str, commit: &str) {
        *locked(&self.facts.child) = (parent.to_owned(), commit.to_owned());
    }

    fn found_simple(&self, commit: &str) {
        commit.clone_into(&mut locked(&self.facts.simple));
    }
}

fn worktree(run: &RunId, record: WorktreeRecord) -> TaskWorktree {
    TaskWorktree { run: work_of(run), directory: record.directory, branch: record.branch, base: record.base }
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

fn text(path: &Path) -> Result<&str, WorktreeError> {
    path.to_str().ok_or_else(|| WorktreeError::NotText(path.to_owned()))
}

/// A directory of ours alone. A link in its place could lead anywhere.
fn private(disk: &Disk, path: &Path) -> Result<(), WorktreeError> {
    let write = |error| WorktreeError::Write { path: path.to_owned(), error };
    match disk.symlink_metadata(path) {
        Ok(found) if found.is_symlink() => Err(WorktreeError::Link(path.to_owned())),
        Ok(_) => Ok(()),
        Err(_) => disk.create_private_dir(path).map_err(write),
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
pub(crate) mod property_tests;
#[cfg(test)]
pub(crate) mod tests;
