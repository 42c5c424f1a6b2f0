//! Runs git the way the user has it: their program, configuration and hooks; for a loop also their environment. Nothing that a
//! session wrote into the repository is used (`guard`). Paths are separated by NUL and are never patterns, git asks nothing on
//! a terminal, and no shell is involved.

pub(crate) mod guard;
mod index;
pub(crate) mod outlived;
mod refs;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use posse_core::finalize::{GitPath, StatusError};
use tokio::sync::{Mutex, OwnedMutexGuard};

use crate::disk::{self, Disk};
use crate::environment::Environment;
use guard::{Found, Places};
pub(crate) use index::{Draft, paths};
use posse_files::child::{self, ChildError, FinishedChild, Leftovers};

/// For what git does alone. A status of a large tree on a cold disk takes a while.
const PLUMBING: Duration = Duration::from_secs(120);
/// For a commit: hooks of the user's run whole test suites.
const COMMIT: Duration = Duration::from_secs(600);
/// The most of git's words, or of a hook's, that is passed on. What matters stands at the end.
const WORDS: usize = 2000;

/// Git would look into a repository within this one by a git of its own, which obeys the configuration in there.
pub(crate) const NOT_INSIDE: &str = "--ignore-submodules=dirty";

/// Settings for every git of ours. They override all configuration.
const SETTINGS: [(&str, &str); 7] = [
    ("core.fsmonitor", "false"),
    ("core.pager", "cat"),
    ("submodule.recurse", "false"),
    ("log.showSignature", "false"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("worktree.useRelativePaths", "false"),
];

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

impl GitError {
    /// git printed something else than it should.
    pub(crate) fn unexpected(command: &str) -> Self {
        Self::Failed { command: command.into(), words: "its output is not what posse expects".into() }
    }
}

/// A git without the variables that speak of another repository.
fn bare_git(environment: &Environment) -> Command {
    let mut command = Command::new("git");
    if let Some(variables) = environment.variables() {
        command.env_clear();
        command.envs(variables.iter().filter(|(name, _)| !speaks_of_another_repository(OsStr::new(name))));
    } else {
        for (name, _) in std::env::vars_os().filter(|(name, _)| speaks_of_another_repository(name)) {
            command.env_remove(name);
        }
    }
    command
}

fn failed(what: &'static str) -> impl Fn(io::Error) -> GitError {
    move |error| GitError::Io { what, error }
}

impl From<ChildError> for GitError {
    fn from(error: ChildError) -> Self {
        match error {
            ChildError::Missing(_) => GitError::Missing,
            other => GitError::Child(other.to_string()),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WorkTree {
    places: Places,
    /// The environment in which git is run here.
    environment: Environment,
}

impl std::ops::Deref for WorkTree {
    type Target = Places;
    fn deref(&self) -> &Places {
        &self.places
    }
}

/// The files in a work tree's own directory that show an operation which was begun and not finished.
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
    /// The work tree that this directory is in. Git is not asked: it would obey what a session wrote there.
    pub(crate) async fn find(directory: &Path) -> Result<Option<Self>, GitError> {
        Self::find_in(&Environment::default(), directory).await
    }

    /// The same, in this environment; what is done there later is done in it too.
    pub(crate) async fn find_in(environment: &Environment, directory: &Path) -> Result<Option<Self>, GitError> {
        Ok(match disk::at(directory, guard::resolve).await? {
            Found::Tree(places) => Some(Self { places, environment: environment.clone() }),
            Found::Bare | Found::Nothing => None,
        })
    }

    /// What the user has begun and not finished: a commit now would become part of it.
    pub(crate) async fn under_way(&self) -> Option<&'static str> {
        let look = |disk: &Disk, directory: &Path| {
            UNDER_WAY.into_iter().find_map(|(file, what)| disk.exists(&directory.join(file)).then_some(what))
        };
        disk::at(&self.directory, look).await
    }

    /// Whether a file of this name in the work tree's own directory says what is checked out, or that an operation is under way.
    pub(crate) fn tells_of_checkout(name: &OsStr) -> bool {
        name == "HEAD" || UNDER_WAY.iter().any(|(file, _)| name == *file)
    }

    /// Serializes what this daemon writes to a checkout: git does not wait for another git, it fails.
    pub(crate) async fn alone(&self) -> OwnedMutexGuard<()> {
        static CHECKOUTS: std::sync::Mutex<BTreeMap<PathBuf, Arc<Mutex<()>>>> = std::sync::Mutex::new(BTreeMap::new());
        let lock = {
            let mut checkouts = CHECKOUTS.lock().unwrap_or_else(PoisonError::into_inner);
            checkouts.entry(self.directory.clone()).or_default().clone()
        };
        lock.lock_owned().await
    }

    pub(crate) fn path_of(&self, file: &Path) -> Result<GitPath, GitError> {
        let outside = || GitError::Child(format!("{} is not in {}", file.display(), self.root.display()));
        let within = file.strip_prefix(&self.root).map_err(|_| outside())?;
        Ok(GitPath(within.as_os_str().as_bytes().to_vec()))
    }

    /// Whether what is under way here ends by checking out that branch again (`refs/heads/…`).
    pub(crate) async fn comes_back_to(&self, branch: &str) -> bool {
        let read = |disk: &Disk, directory: &Path| {
            let files = ["rebase-merge/head-name", "rebase-apply/head-name", "BISECT_START"];
            files.map(|file| disk.read_to_string(&directory.join(file)).ok())
        };
        let names = disk::at(&self.directory, read).await;
        let short = branch.strip_prefix("refs/heads/");
        names.iter().flatten().any(|name| name.trim() == branch || Some(name.trim()) == short)
    }

    /// The work tree of a directory that has to be in one.
    pub(crate) async fn at(directory: impl AsRef<Path>) -> Result<Self, GitError> {
        let directory = directory.as_ref();
        Self::find(directory).await?.ok_or_else(|| {
            let words = format!("{} is not in a git repository", directory.display());
            GitError::Failed { command: "rev-parse".into(), words }
        })
    }

    /// git's output of one line. Ids and names of refs are text.
    pub(crate) async fn ask(&self, arguments: &[&str]) -> Result<String, GitError> {
        self.git(None, arguments, b"").await?.line()
    }

    /// git's output, all of it.
    pub(crate) async fn hear(&self, arguments: &[&str]) -> Result<Vec<u8>, GitError> {
        self.git(None, arguments, b"").await?.success()
    }

    /// Gives git something to read.
    pub(crate) async fn tell(&self, arguments: &[&str], input: &[u8]) -> Result<(), GitError> {
        self.git(None, arguments, input).await?.success().map(drop)
    }

    /// git's answer to a question, which is its exit code.
    pub(crate) async fn holds(&self, arguments: &[&str]) -> Result<bool, GitError> {
        Ok(self.hear_either(arguments).await?.0)
    }

    /// git's output, and `false` if it exits with 1.
    pub(crate) async fn hear_either(&self, arguments: &[&str]) -> Result<(bool, Vec<u8>), GitError> {
        self.git(None, arguments, b"").await?.either()
    }

    /// Writes files into the work tree, with the hooks that the user has for that. Takes as long as a commit may.
    pub(crate) async fn write_files(&self, arguments: &[&str]) -> Result<(), GitError> {
        let mut command = self.command(None, Hooks::Users, name(arguments) == "worktree").await?;
        // Its messages are read.
        command.env("LC_ALL", "C").args(arguments);
        run(command, None, b"", COMMIT).await?.success().map(drop)
    }

    /// Commits a draft, with the user's hooks and signature.
    pub(crate) async fn commit(&self, draft: &Draft, message: &str) -> Result<String, GitError> {
        // Git itself sees to it that HEAD does not move once the commit has begun.
        if self.head().await? != draft.base {
            return Err(GitError::Moved);
        }
        let mut command = self.command(Some(draft), Hooks::Users, false).await?;
        // Hooks may use their own index.
        command.env_remove("GIT_OPTIONAL_LOCKS");
        command.args(["commit", "--quiet", "--no-status", "--cleanup=whitespace", "--file=-"]);
        if let Err(error) = run(command, Some(draft), message.as_bytes(), COMMIT).await?.success() {
            return Err(if self.head().await? == draft.base { error } else { GitError::Moved });
        }
        self.head().await?.ok_or(GitError::Moved)
    }

    /// Whether the user has hooks, which a commit may run.
    pub(crate) async fn has_hooks(&self) -> bool {
        let places = self.places.clone();
        disk::run(move |disk| places.hooks(disk).is_some()).await
    }

    /// Whether the repository said, when the run began, that it has no files.
    pub(crate) async fn is_bare(&self) -> Result<bool, GitError> {
        let places = self.places.clone();
        disk::run(move |disk| places.is_bare(disk)).await
    }

    async fn git(&self, draft: Option<&Draft>, arguments: &[&str], input: &[u8]) -> Result<Call, GitError> {
        let mut command = self.command(draft, Hooks::None, name(arguments) == "worktree").await?;
        command.args(arguments);
        let call = run(command, draft, input, PLUMBING).await?;
        // Half a list would make the user's work look like the run's.
        if !call.ended.complete {
            return Err(GitError::Child(format!("git {} left a program behind that holds its output", call.name)));
        }
        Ok(call)
    }

    /// `of_worktrees`: for `git worktree`, which tells and writes down where the common directory is. It gets the real one; it
    /// reads no files of the work tree, and is never asked to.
    async fn command(&self, draft: Option<&Draft>, hooks: Hooks, of_worktrees: bool) -> Result<Command, GitError> {
        let places = self.places.clone();
        let (guarded, users_hooks) = disk::run(move |disk| {
            let guarded = places.guarded(disk)?;
            let users_hooks = if hooks == Hooks::Users { places.hooks(disk) } else { None };
            Ok::<_, GitError>((guarded, users_hooks))
        })
        .await?;
        let mut command = bare_git(&self.environment);
        command.current_dir(&self.root);
        // No person is there to answer. Reads must not take locks that other gits need.
        command.env("GIT_TERMINAL_PROMPT", "0").env("GIT_EDITOR", ":").env("SSH_ASKPASS_REQUIRE", "never");
        command.env("GIT_OPTIONAL_LOCKS", "0");
        // Hooks speak the user's language.
        if hooks == Hooks::None {
            command.env("LC_ALL", "C");
        }
        command.env("GIT_DIR", &self.directory).env("GIT_WORK_TREE", &self.root);
        command.env("GIT_COMMON_DIR", if of_worktrees { &self.common } else { &guarded });
        // What commits stand for, and which objects there are, is not for a session to say.
        command.env("GIT_NO_REPLACE_OBJECTS", "1").env("GIT_NO_LAZY_FETCH", "1");
        let hooks = users_hooks.unwrap_or_else(|| PathBuf::from(NO_HOOKS));
        let settings = SETTINGS.map(|(name, value)| (name, OsString::from(value)));
        let settings = settings.into_iter().chain([("core.hooksPath", hooks.into_os_string())]);
        let mut count = 0;
        for (name, value) in settings {
            command.env(format!("GIT_CONFIG_KEY_{count}"), name).env(format!("GIT_CONFIG_VALUE_{count}"), value);
            count += 1;
        }
        command.env("GIT_CONFIG_COUNT", count.to_string());
        if let Some(draft) = draft {
            command.env("GIT_INDEX_FILE", draft.index());
        }
        Ok(command)
    }
}

/// Which hooks a git runs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Hooks {
    None,
    /// The user's, as they were when the run began.
    Users,
}

/// A run begins in this directory. Returns what in the repository is not used because a session can write or wrote it.
pub(crate) async fn begin(environment: &Environment, directory: &Path) -> Result<Vec<String>, GitError> {
    let environment = environment.clone();
    disk::at(directory, move |disk, directory| guard::begin(disk, &environment, directory)).await
}

/// A session is over. Returns what is different in the repository since its run began; none of it is used.
pub(crate) async fn check(directory: &Path) -> Result<Vec<String>, GitError> {
    disk::at(directory, guard::check).await
}

/// Whether a directory is in a repository without files.
pub(crate) async fn is_bare(directory: &Path) -> bool {
    matches!(disk::at(directory, guard::resolve).await, Ok(Found::Bare))
}

/// A git that came to an end, good or bad.
struct Call {
    name: String,
    ended: FinishedChild,
}

impl Call {
    fn success(self) -> Result<Vec<u8>, GitError> {
        if self.ended.status.success() {
            return Ok(self.ended.stdout);
        }
        Err(GitError::Failed { words: words(&self.ended), command: self.name })
    }

    /// The output, and `false` if the exit code is 1, which is an answer for some commands.
    fn either(self) -> Result<(bool, Vec<u8>), GitError> {
        if self.ended.status.code() == Some(1) {
            return Ok((false, self.ended.stdout));
        }
        Ok((true, self.success()?))
    }

    /// The output, without the end of the line.
    fn line(self) -> Result<String, GitError> {
        Ok(as_line(self.success()?))
    }
}

fn as_line(mut said: Vec<u8>) -> String {
    said.pop_if(|last| *last == b'\n');
    String::from_utf8_lossy(&said).into_owned()
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

async fn run(command: Command, draft: Option<&Draft>, input: &[u8], limit: Duration) -> Result<Call, GitError> {
    let arguments: Vec<&str> = command.get_args().filter_map(OsStr::to_str).collect();
    let name = name(&arguments);
    #[cfg(test)]
    ASKED.with_borrow_mut(|asked| asked.push(name.clone()));
    let index = draft.map(|draft| draft.directory.clone());
    let ended = child::run_until(command, input, limit, Leftovers::Stay, index, std::future::pending()).await?;
    Ok(Call { name, ended })
}

#[cfg(test)]
mod damage_tests;

#[cfg(test)]
mod guard_tests;
#[cfg(test)]
pub(crate) mod test_repo;
