//! git, as the user has it: their program, configuration and hooks; for a run of the loop also their environment. Nothing that a
//! session wrote into the repository is used (`guard`). Paths go in and out between NULs and are never patterns; nothing is
//! asked on a terminal; no shell is involved.

pub(crate) mod guard;
pub(crate) mod outlived;
mod places;
mod refs;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use posse_core::finalize::{Change, GitPath, Status, StatusError, changes, ignored};
use tokio::sync::{Mutex, OwnedMutexGuard};

use crate::disk::{self, Disk, ScratchDir};
use crate::environment::Environment;
use crate::watched_files::gone_within;
use guard::{Found, Places};
use posse_files::child::{self, ChildError, FinishedChild, Leftovers};

/// For what git does alone. A status of a large tree on a cold disk takes a while.
const PLUMBING: Duration = Duration::from_secs(120);
/// For a commit: hooks of the user's run whole test suites.
const COMMIT: Duration = Duration::from_secs(600);
/// How long another git may hold the index: editors look at the state now and then.
const LOCKED: Duration = Duration::from_secs(3);
/// The most of git's words, or of a hook's, that is passed on. What matters stands at the end.
const WORDS: usize = 2000;

/// Git would look into a repository within this one by a git of its own, which obeys the configuration in there.
pub(crate) const NOT_INSIDE: &str = "--ignore-submodules=dirty";
const STATUS: [&str; 6] = ["status", "--porcelain=v2", "-z", "--untracked-files=all", "--no-renames", NOT_INSIDE];

/// Settings for every git of ours, whatever any configuration says.
const SETTINGS: [(&str, &str); 7] = [
    ("core.fsmonitor", "false"),
    ("core.pager", "cat"),
    ("submodule.recurse", "false"),
    ("log.showSignature", "false"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("worktree.useRelativePaths", "false"),
];

/// Where no hooks are.
const NO_HOOKS: &str = "/dev/null";

/// Of the variables that are for git, these say who the user is and where their configuration lies. All others
/// speak of some other repository or call.
const KEPT: &[&str] = &[
    "GIT_AUTHOR_NAME",
    "GIT_AUTHOR_EMAIL",
    "GIT_COMMITTER_NAME",
    "GIT_COMMITTER_EMAIL",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_EXEC_PATH",
    "GIT_TEMPLATE_DIR",
];

pub(crate) fn speaks_of_another_repository(variable: &OsStr) -> bool {
    variable.as_bytes().starts_with(b"GIT_") && !KEPT.iter().any(|kept| variable == OsStr::new(kept))
}

#[derive(Debug, thiserror::Error)]
pub enum GitError {
    #[error("there is no program git; install it, or leave out the commit")]
    Missing,
    #[error("git {command}: {words}")]
    Failed { command: String, words: String },
    #[error("{0}")]
    Child(String),
    #[error(transparent)]
    Status(#[from] StatusError),
    #[error("{what}: {error}")]
    Io { what: &'static str, error: io::Error },
    #[error("{} is there: another git is at work, or one has died; if none runs, remove that file", .0.display())]
    Locked(PathBuf),
    #[error("somebody else committed at the same moment; try again")]
    Moved,
    #[error("{} leads to a repository that does not know this directory; if it is yours, put it right with `git worktree repair`", .0.display())]
    Elsewhere(PathBuf),
    #[error("{} is gone, where the repository was when the run began", .0.display())]
    Gone(PathBuf),
    #[error("{} is not as it was when the run began: the repository would take objects from elsewhere; put it right, then try again", .0.display())]
    Alternates(PathBuf),
}

impl From<ChildError> for GitError {
    fn from(error: ChildError) -> Self {
        match error {
            ChildError::Missing(_) => GitError::Missing,
            other => GitError::Child(other.to_string()),
        }
    }
}

/// A work tree and its repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WorkTree {
    pub(crate) root: PathBuf,
    /// What belongs to this work tree alone: HEAD, index, a merge under way.
    directory: PathBuf,
    /// What it shares with the other work trees: branches, commits.
    common: PathBuf,
    pub(crate) index: PathBuf,
    /// In which git is run here.
    environment: Environment,
}

/// An index in which a commit is put together. The user's own is not touched by that.
#[derive(Debug)]
pub(crate) struct Draft {
    directory: ScratchDir,
    /// What it starts from; `None` before the first commit.
    base: Option<String>,
}

impl Draft {
    fn index(&self) -> PathBuf {
        self.directory.path().join("index")
    }
}

/// What shows that something was begun and not finished.
const UNDER_WAY: [(&str, &str); 7] = [
    ("MERGE_HEAD", "a merge"),
    ("CHERRY_PICK_HEAD", "a cherry-pick"),
    ("REVERT_HEAD", "a revert"),
    ("rebase-merge", "a rebase"),
    ("rebase-apply", "a rebase"),
    ("sequencer", "a sequence of picks"),
    ("BISECT_LOG", "a bisection"),
];

impl WorkTree {
    pub(crate) async fn status(&self) -> Result<Vec<Change>, GitError> {
        Ok(changes(&success(self.git(None, &STATUS, b"").await?)?)?)
    }

    /// What is changed, and where HEAD is, of the same moment.
    pub(crate) async fn status_and_head(&self) -> Result<Status, GitError> {
        self.status_by(None).await
    }

    async fn status_by(&self, draft: Option<&Draft>) -> Result<Status, GitError> {
        let arguments = [&STATUS[..], &["--branch", "--no-ahead-behind"]].concat();
        let index = draft.map(Draft::index);
        Ok(Status::read(&success(self.git(index.as_deref(), &arguments, b"").await?)?)?)
    }

    /// What is changed, and what is ignored: of an ignored directory only its name.
    pub(crate) async fn status_and_ignored(&self) -> Result<(Vec<Change>, Vec<GitPath>), GitError> {
        let arguments = [&STATUS[..], &["--ignored=matching"]].concat();
        let said = success(self.git(None, &arguments, b"").await?)?;
        Ok((changes(&said)?, ignored(&said)))
    }

    /// What the user has begun and not finished: a commit now would become part of it.
    pub(crate) async fn under_way(&self) -> Option<&'static str> {
        let look = |disk: &Disk, directory: &Path| {
            UNDER_WAY.into_iter().find_map(|(file, what)| disk.exists(&directory.join(file)).then_some(what))
        };
        disk::at(&self.directory, look).await
    }

    /// Where git keeps what belongs to this work tree alone.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Whether a file of this name in that directory says what is checked out, or that something is under way.
    pub(crate) fn tells_of_checkout(name: &OsStr) -> bool {
        name == "HEAD" || UNDER_WAY.iter().any(|(file, _)| name == *file)
    }

    /// Nobody else of this daemon writes to this checkout as long as this lives: git does not wait for others, it fails.
    pub(crate) async fn alone(&self) -> OwnedMutexGuard<()> {
        static CHECKOUTS: std::sync::Mutex<BTreeMap<PathBuf, Arc<Mutex<()>>>> = std::sync::Mutex::new(BTreeMap::new());
        let lock = {
            let mut checkouts = CHECKOUTS.lock().unwrap_or_else(PoisonError::into_inner);
            checkouts.entry(self.directory.clone()).or_default().clone()
        };
        lock.lock_owned().await
    }

    fn lock(&self) -> PathBuf {
        let mut lock = self.index.clone().into_os_string();
        lock.push(".lock");
        PathBuf::from(lock)
    }

    /// Waits until no other git holds the index.
    pub(crate) async fn unlocked(&self) -> Result<(), GitError> {
        let lock = self.lock();
        let is_gone = disk::at(&lock, |disk, lock| gone_within(disk, lock, LOCKED)).await;
        if is_gone { Ok(()) } else { Err(GitError::Locked(lock)) }
    }

    /// A draft that says what HEAD says.
    pub(crate) async fn draft(&self) -> Result<Draft, GitError> {
        let mut draft = self.copied().await?;
        draft.base = self.head().await?;
        self.as_head(&draft).await?;
        Ok(draft)
    }

    /// A draft that says what the index says, because that knows which files need not be read again.
    async fn copied(&self) -> Result<Draft, GitError> {
        let copy = |disk: &Disk, index: &Path| {
            let directory = disk::scratch_dir(disk, "posse-index-")?;
            let draft = Draft { directory, base: None };
            // What is as new as the index is read again: by a younger one git would take it for unchanged.
            match disk.copy_with_time(index, &draft.index()) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => Ok(draft),
            }
        };
        let copied = disk::at(&self.index, copy).await;
        copied.map_err(|error| GitError::Io { what: "cannot make an index", error })
    }

    /// Makes a draft say what HEAD says.
    async fn as_head(&self, draft: &Draft) -> Result<(), GitError> {
        // With -i the work tree is neither looked at nor changed.
        let arguments = match &draft.base {
            Some(base) => &["read-tree", "-m", "-i", base][..],
            None => &["read-tree", "--empty"],
        };
        success(self.git(Some(&draft.index()), arguments, b"").await?).map(drop)
    }

    /// How everything stands, and a draft of that moment.
    pub(crate) async fn look(&self) -> Result<(Status, Draft), GitError> {
        let mut draft = self.copied().await?;
        let status = self.status_by(Some(&draft)).await?;
        draft.base.clone_from(&status.commit);
        Ok((status, draft))
    }

    /// Puts these as they are in the work tree, and takes those out; in a draft, or in the user's index.
    pub(crate) async fn stage<'a>(
        &self,
        draft: Option<&Draft>,
        add: impl IntoIterator<Item = &'a GitPath>,
        remove: impl IntoIterator<Item = &'a GitPath>,
    ) -> Result<(), GitError> {
        let index = draft.map(Draft::index);
        let (add, remove) = (joined(add), joined(remove));
        if !remove.is_empty() {
            let arguments = ["update-index", "--force-remove", "-z", "--stdin"];
            success(self.git(index.as_deref(), &arguments, &remove).await?)?;
        }
        if !add.is_empty() {
            let arguments = ["update-index", "--add", "--replace", "-z", "--stdin"];
            success(self.git(index.as_deref(), &arguments, &add).await?)?;
        }
        Ok(())
    }

    /// All files as a draft has them.
    pub(crate) async fn tree(&self, draft: &Draft) -> Result<String, GitError> {
        let tree = line(self.git(Some(&draft.index()), &["write-tree"], b"").await?)?;
        Ok(tree.to_string_lossy().into_owned())
    }

    /// All files as the user's index has them. In a copy: git would write into the index itself.
    pub(crate) async fn staged_tree(&self) -> Result<String, GitError> {
        self.tree(&self.copied().await?).await
    }

    /// Whether there is anything to commit in it.
    pub(crate) async fn differs(&self, draft: &Draft) -> Result<bool, GitError> {
        let tree = OsString::from(self.tree(draft).await?);
        let Some(base) = &draft.base else {
            return Ok(!success(self.git(Some(&draft.index()), &["ls-files", "-z"], b"").await?)?.is_empty());
        };
        let base = format!("{base}^{{tree}}");
        Ok(tree != line(self.git(None, &["rev-parse", "--verify", &base], b"").await?)?)
    }

    /// Makes a draft that was committed the index. For work trees of ours: all that is in their index is in the commit too.
    pub(crate) async fn adopt(&self, draft: &Draft) -> Result<(), GitError> {
        let draft = draft.index();
        let adopt = move |disk: &Disk, index: &Path| {
            // A new file that is renamed, because a session could have put a link to somewhere else there.
            let mut copy = disk.temporary_file(index.parent().unwrap_or(index), "posse-index-")?;
            copy.write_all(&disk.read(&draft)?)?;
            // With its time, by which git knows what it has to read again.
            copy.as_file().set_modified(disk.metadata(&draft)?.modified()?)?;
            disk.persist(copy, index)
        };
        let adopted = disk::at(&self.index, adopt).await;
        adopted.map_err(|error| GitError::Io { what: "cannot write an index", error })
    }

    /// Commits these as they are in the work tree, without those, and nothing else; `None` if that is what HEAD says. The
    /// user's index is not touched: `stage` brings it up to date.
    pub(crate) async fn commit_only<'a>(
        &self,
        add: impl IntoIterator<Item = &'a GitPath>,
        remove: impl IntoIterator<Item = &'a GitPath>,
        message: &str,
    ) -> Result<Option<String>, GitError> {
        let draft = self.draft().await?;
        self.stage(Some(&draft), add, remove).await?;
        if self.differs(&draft).await? { self.commit(&draft, message).await.map(Some) } else { Ok(None) }
    }

    /// The same, of what a look has shown to be changed.
    pub(crate) async fn commit_seen<'a>(
        &self,
        (status, draft): (&Status, &Draft),
        add: impl IntoIterator<Item = &'a GitPath>,
        remove: impl IntoIterator<Item = &'a GitPath>,
        message: &str,
    ) -> Result<Option<String>, GitError> {
        let from_scratch = status.staged || draft.base.is_none();
        if from_scratch {
            self.as_head(draft).await?;
        }
        self.stage(Some(draft), add, remove).await?;
        if from_scratch && !self.differs(draft).await? {
            return Ok(None);
        }
        match self.commit(draft, message).await {
            // Changed to the eye, but for git the same once it is entered.
            Err(GitError::Failed { .. }) if !self.differs(draft).await? => Ok(None),
            committed => committed.map(Some),
        }
    }

    /// What git calls a file in here.
    pub(crate) fn path_of(&self, file: &Path) -> Result<GitPath, GitError> {
        let outside = || GitError::Child(format!("{} is not in {}", file.display(), self.root.display()));
        let within = file.strip_prefix(&self.root).map_err(|_| outside())?;
        Ok(GitPath(within.as_os_str().as_bytes().to_vec()))
    }

    /// Whether the user does not want git to see this.
    pub(crate) async fn ignores(&self, path: &GitPath) -> Result<bool, GitError> {
        let call = self.git(None, &["check-ignore", "-z", "--stdin"], &joined([path])).await?;
        match call.status.code() {
            Some(1) => Ok(false),
            _ => success(call).map(|said| !said.is_empty()),
        }
    }

    /// The paths in which a draft, or the user's index, and a commit differ.
    pub(crate) async fn unlike(&self, draft: Option<&Draft>, commit: &str) -> Result<BTreeSet<GitPath>, GitError> {
        let index = draft.map(Draft::index);
        let arguments = ["diff-index", "--cached", "-z", "--name-only", "--no-renames", commit, "--"];
        let said = success(self.git(index.as_deref(), &arguments, b"").await?)?;
        let paths = said.split(|byte| *byte == 0).filter(|path| !path.is_empty());
        Ok(paths.map(|path| GitPath(path.to_vec())).collect())
    }

    /// Whether what is under way here ends by checking out that branch again (`refs/heads/…`).
    pub(crate) async fn comes_back_to(&self, branch: &str) -> bool {
        let read = |disk: &Disk, directory: &Path| {
            let notes = ["rebase-merge/head-name", "rebase-apply/head-name", "BISECT_START"];
            notes.map(|note| disk.read_to_string(&directory.join(note)).ok())
        };
        let noted = disk::at(&self.directory, read).await;
        let mut noted = noted.iter().flatten();
        let short = branch.strip_prefix("refs/heads/");
        noted.any(|name| name.trim() == branch || Some(name.trim()) == short)
    }

    /// Commits a draft, with the user's hooks and signature.
    pub(crate) async fn commit(&self, draft: &Draft, message: &str) -> Result<String, GitError> {
        // Git itself sees to it that HEAD does not move once the commit has begun.
        if self.head().await? != draft.base {
            return Err(GitError::Moved);
        }
        let index = draft.index();
        let mut command = command(&self.environment, self.places(), Some(&index), Hooks::Users, false).await?;
        // Hooks speak the user's language, and may use their own index.
        command.env_remove("GIT_OPTIONAL_LOCKS").env_remove("LC_ALL");
        let language = match self.environment.variables() {
            Some(variables) => variables.get("LC_ALL").map(OsString::from),
            None => std::env::var_os("LC_ALL"),
        };
        if let Some(language) = language {
            command.env("LC_ALL", language);
        }
        command.args(["commit", "--quiet", "--no-status", "--cleanup=whitespace", "--file=-"]);
        let ended = run(command, message.as_bytes(), COMMIT).await?;
        if let Err(error) = success(Call { command: "commit".into(), ended }) {
            return Err(if self.head().await? == draft.base { error } else { GitError::Moved });
        }
        self.head().await?.ok_or(GitError::Moved)
    }

    async fn git(&self, index: Option<&Path>, arguments: &[&str], input: &[u8]) -> Result<Call, GitError> {
        git(&self.environment, self.places(), index, arguments, input).await
    }

    /// Whether the repository said, when the run began, that it has no files.
    pub(crate) async fn is_bare(&self) -> Result<bool, GitError> {
        let places = self.places();
        disk::run(move |disk| places.is_bare(disk)).await
    }

    fn places(&self) -> Places {
        Places { root: self.root.clone(), directory: self.directory.clone(), common: self.common.clone() }
    }
}

/// Which hooks a git runs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Hooks {
    None,
    /// The user's, as they were when the run began.
    Users,
}

/// The repository that a directory is in.
async fn places_of(directory: &Path) -> Result<Places, GitError> {
    match disk::at(directory, guard::resolve).await? {
        Found::Tree(places) => Ok(places),
        Found::Bare | Found::Nothing => {
            let words = format!("{} is not in a git repository", directory.display());
            Err(GitError::Failed { command: "rev-parse".into(), words })
        }
    }
}

/// A run begins in this directory. Returns what in the repository is not used because a session can write or wrote it.
pub(crate) async fn begin(environment: &Environment, directory: &Path) -> Result<Vec<String>, GitError> {
    let (environment, directory) = (environment.clone(), directory.to_owned());
    disk::run(move |disk| guard::begin(disk, &environment, &directory)).await
}

/// A session is over. Returns what is different in the repository since its run began; none of it is used.
pub(crate) async fn check(directory: &Path) -> Result<Vec<String>, GitError> {
    disk::at(directory, guard::check).await
}

/// Whether a directory is in a repository without files.
pub(crate) async fn is_bare(directory: &Path) -> bool {
    matches!(disk::at(directory, guard::resolve).await, Ok(Found::Bare))
}

/// What git says in one line. Ids, names of refs: text.
pub(crate) async fn ask(directory: &Path, arguments: &[&str]) -> Result<String, GitError> {
    let places = places_of(directory).await?;
    Ok(line(git(&Environment::default(), places, None, arguments, b"").await?)?.to_string_lossy().into_owned())
}

/// What git says, all of it; with an index of one's own, perhaps.
pub(crate) async fn hear(
    directory: &Path,
    index: Option<&Path>,
    arguments: &[&str],
    input: &[u8],
) -> Result<Vec<u8>, GitError> {
    success(git(&Environment::default(), places_of(directory).await?, index, arguments, input).await?)
}

/// Whether it is so: git answers with its exit code.
pub(crate) async fn holds(directory: &Path, arguments: &[&str]) -> Result<bool, GitError> {
    Ok(hear_either(directory, arguments).await?.0)
}

/// What git says, and whether it is well with it: exit code 1 means that it is not.
pub(crate) async fn hear_either(directory: &Path, arguments: &[&str]) -> Result<(bool, Vec<u8>), GitError> {
    let call = git(&Environment::default(), places_of(directory).await?, None, arguments, b"").await?;
    if call.status.code() == Some(1) {
        return Ok((false, call.ended.stdout));
    }
    success(call).map(|said| (true, said))
}

/// Writes files into a work tree, with the hooks that the user has for that. Takes as long as a commit may.
pub(crate) async fn write_files(directory: &Path, arguments: &[&str]) -> Result<(), GitError> {
    let of_worktrees = name(arguments) == "worktree";
    let places = places_of(directory).await?;
    let mut command = command(&Environment::default(), places, None, Hooks::Users, of_worktrees).await?;
    command.args(arguments);
    success(Call { command: name(arguments), ended: run(command, b"", COMMIT).await? }).map(drop)
}

/// A call that came to an end, good or bad.
struct Call {
    command: String,
    ended: FinishedChild,
}

impl std::ops::Deref for Call {
    type Target = FinishedChild;
    fn deref(&self) -> &FinishedChild {
        &self.ended
    }
}

fn success(call: Call) -> Result<Vec<u8>, GitError> {
    if call.status.success() {
        return Ok(call.ended.stdout);
    }
    Err(GitError::Failed { command: call.command, words: words(&call.ended) })
}

/// What it says, without the end of the line. The rest may be any bytes.
fn line(call: Call) -> Result<OsString, GitError> {
    let mut said = success(call)?;
    said.pop_if(|last| *last == b'\n');
    Ok(OsString::from_vec(said))
}

/// What a program said about its failure.
pub(crate) fn words(ended: &FinishedChild) -> String {
    let said = if ended.stderr.trim_ascii().is_empty() { &ended.stdout } else { &ended.stderr };
    let said = String::from_utf8_lossy(said);
    let said = said.trim();
    match said {
        "" => ended.status.to_string(),
        _ => {
            let end = &said[said.ceil_char_boundary(said.len().saturating_sub(WORDS))..];
            let advice = if speaks_of_missing_objects(said) { MISSING_OBJECTS } else { "" };
            format!("{end}{advice}")
        }
    }
}

/// What to do about a repository that has lost some of what was committed. Git itself only names an object.
const MISSING_OBJECTS: &str = "\nobjects are missing from this repository, or damaged: `git fsck --full` names them. \
    `git fetch --refetch` gets them from the remote; or copy .git/objects from another clone, or clone anew";

/// Whether git failed because it could not read an object that should be there. Its own words, as `LC_ALL=C` makes them.
fn speaks_of_missing_objects(said: &str) -> bool {
    const SIGNS: [&str; 12] = [
        "unable to read sha1 file",
        "unable to read tree",
        "unable to read commit",
        "could not read tree",
        "bad object",
        "missing object",
        "missing blob",
        "missing tree",
        "missing commit",
        "invalid object",
        "is corrupt",
        "unable to find all commit-graph files",
    ];
    let empty_object = said.contains("object file") && said.contains("is empty");
    empty_object || SIGNS.iter().any(|sign| said.contains(sign))
}

fn joined<'a>(paths: impl IntoIterator<Item = &'a GitPath>) -> Vec<u8> {
    paths.into_iter().flat_map(|path| [path.0.as_slice(), b"\0"].concat()).collect()
}

async fn git(
    environment: &Environment,
    places: Places,
    index: Option<&Path>,
    arguments: &[&str],
    input: &[u8],
) -> Result<Call, GitError> {
    let name = name(arguments);
    let mut command = command(environment, places, index, Hooks::None, name == "worktree").await?;
    command.args(arguments);
    let ended = run(command, input, PLUMBING).await?;
    // Half a list would make the user's work look like the run's.
    if !ended.complete {
        return Err(GitError::Child(format!("git {name} left a program behind that holds its output")));
    }
    Ok(Call { command: name, ended })
}

/// What git is asked for, behind what is set for all of it.
fn name(arguments: &[&str]) -> String {
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        match *word {
            "-c" => drop(words.next()),
            word if word.starts_with('-') => {}
            word => return word.to_owned(),
        }
    }
    String::new()
}

#[cfg(test)]
thread_local! {
    /// What git was asked on this thread, for tests that count.
    pub(crate) static ASKED: std::cell::RefCell<Vec<String>> = const { std::cell::RefCell::new(Vec::new()) };
}

async fn run(command: Command, input: &[u8], limit: Duration) -> Result<FinishedChild, GitError> {
    #[cfg(test)]
    ASKED.with_borrow_mut(|asked| {
        let words: Vec<&str> = command.get_args().filter_map(OsStr::to_str).collect();
        asked.push(name(&words));
    });
    Ok(child::run(command, input, limit, Leftovers::Stay).await?)
}

/// `of_worktrees`: for `git worktree`, which tells and writes down where the common directory is. It gets the real one; it
/// reads no files of the work tree, and is never asked to.
async fn command(
    environment: &Environment,
    places: Places,
    index: Option<&Path>,
    hooks: Hooks,
    of_worktrees: bool,
) -> Result<Command, GitError> {
    let (places, guarded, hooks) = disk::run(move |disk| {
        let guarded = places.guarded(disk)?;
        let hooks = if hooks == Hooks::Users { places.hooks(disk) } else { None };
        Ok::<_, GitError>((places, guarded, hooks))
    })
    .await?;
    let mut command = Command::new("git");
    command.current_dir(&places.root);
    if let Some(variables) = environment.variables() {
        command.env_clear();
        command.envs(variables.iter().filter(|(name, _)| !speaks_of_another_repository(OsStr::new(name))));
    } else {
        for (name, _) in std::env::vars_os().filter(|(name, _)| speaks_of_another_repository(name)) {
            command.env_remove(name);
        }
    }
    // Nobody is there to answer. And looking must not get in the way of other gits.
    command.env("GIT_TERMINAL_PROMPT", "0").env("GIT_EDITOR", ":").env("SSH_ASKPASS_REQUIRE", "never");
    command.env("GIT_OPTIONAL_LOCKS", "0").env("LC_ALL", "C");
    command.env("GIT_DIR", &places.directory).env("GIT_WORK_TREE", &places.root);
    command.env("GIT_COMMON_DIR", if of_worktrees { &places.common } else { &guarded });
    // What commits stand for, and which objects there are, is not for a session to say.
    command.env("GIT_NO_REPLACE_OBJECTS", "1").env("GIT_NO_LAZY_FETCH", "1");
    let hooks = hooks.unwrap_or_else(|| PathBuf::from(NO_HOOKS));
    let settings = SETTINGS.map(|(name, value)| (name, OsString::from(value)));
    let settings = settings.into_iter().chain([("core.hooksPath", hooks.into_os_string())]);
    let mut count = 0;
    for (name, value) in settings {
        command.env(format!("GIT_CONFIG_KEY_{count}"), name).env(format!("GIT_CONFIG_VALUE_{count}"), value);
        count += 1;
    }
    command.env("GIT_CONFIG_COUNT", count.to_string());
    if let Some(index) = index {
        command.env("GIT_INDEX_FILE", index);
    }
    Ok(command)
}

#[cfg(test)]
mod damage_tests;

#[cfg(test)]
mod guard_tests;
