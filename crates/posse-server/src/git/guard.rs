//! What posse's git reads of a repository that sessions can write to.
//!
//! Git gets the repository's places explicitly (`GIT_DIR`, `GIT_WORK_TREE`) and a common directory of posse's own
//! (`GIT_COMMON_DIR`). That directory has the configuration, the excludes and the attributes as they were when the run began, and links to
//! the objects and refs of the repository. So a program that a session enters in `.git/config`, `.git/hooks` or `.git/info`
//! is not started, and no command has to know all the ways to enter one.
//!
//! - `begin`: a run begins. The places of the repository are written down, and its configuration is copied.
//! - `check`: a session is over. What is different since `begin` is reported, and stays unused also in later runs until
//!   `confirm` is called.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::{Mutex, OnceLock, PoisonError};

use posse_core::git_config::{self, Entry};
use serde::{Deserialize, Serialize};

use super::{GitError, bare_git, failed};
use crate::disk::Disk;
use crate::environment::Environment;
use crate::sha256 as digest;

/// Entries of the common directory that posse has its own version of, or that mean nothing to git.
const OWN: [&str; 10] = [
    "config",
    "config.worktree",
    "hooks",
    "info",
    "commondir",
    "gitdir",
    "branches",
    "description",
    "config.lock",
    "posse",
];
/// Entries that are linked even if they do not exist yet: git creates them where the link leads.
const LINKED: [&str; 7] = ["objects", "refs", "packed-refs", "logs", "worktrees", "HEAD", "shallow"];
/// Files that git reads beside the configuration.
const FILES: [&str; 4] = ["info/attributes", "info/exclude", "info/grafts", "objects/info/alternates"];
const ALTERNATES: &str = "objects/info/alternates";
/// A hook that is longer than this is not copied, and so not run.
const HOOK_MAX: u64 = 4 << 20;

/// The places of a work tree and its repository.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Places {
    pub(crate) root: PathBuf,
    /// What belongs to this work tree alone.
    pub(crate) directory: PathBuf,
    /// What it shares with the other work trees.
    pub(crate) common: PathBuf,
}

/// What a search for a repository found.
pub(super) enum Found {
    Tree(Places),
    Bare,
    Nothing,
}

/// What can be told apart later: the configuration, and digests of hooks and other files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Facts {
    entries: Vec<Entry>,
    hooks: BTreeMap<String, String>,
    files: BTreeMap<String, String>,
}

/// What posse knows about a repository.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Trust {
    /// A run has begun here. Without that no hook is run.
    begun: bool,
    /// The hooks of the user, if they are out of reach of sessions.
    hooks_directory: Option<PathBuf>,
    trusted: Facts,
    /// What was changed while a session ran.
    distrusted: Facts,
}

static HOME: OnceLock<PathBuf> = OnceLock::new();
static PINNED: Mutex<BTreeMap<PathBuf, Places>> = Mutex::new(BTreeMap::new());
/// Serializes writers of what is trusted: links are made and removed one by one.
static WRITING: Mutex<()> = Mutex::new(());

/// Sets the directory in which copies of configurations are kept. To be called once, before any git is run.
pub(crate) fn keep_in(directory: PathBuf) {
    let _ = HOME.set(directory);
}

fn key(path: &Path) -> String {
    crate::sha256(path.as_os_str().as_bytes())[..32].to_owned()
}

/// The directory for what is known of a repository. Only tests have no home: there it lies in the repository.
fn home(common: &Path) -> PathBuf {
    HOME.get().map_or_else(|| common.join("posse"), |home| home.join(key(common)))
}

impl Places {
    /// The common directory that posse's git gets.
    pub(super) fn guarded(&self, disk: &Disk) -> Result<PathBuf, GitError> {
        let directory = home(&self.common);
        let guarded = directory.join("common");
        if !disk.exists(&guarded.join("config")) {
            let current = current(disk, &self.common, None)?;
            write(disk, &self.common, &Trust { trusted: current, ..Trust::default() }, &[])?;
        }
        // For refs git follows this file, whatever it is told of the common directory.
        let commondir = self.directory.join("commondir");
        let leads_to = match disk.symlink_metadata(&commondir) {
            Ok(_) => pointer(disk, &commondir, b""),
            Err(_) => Some(self.directory.clone()),
        };
        if leads_to.as_ref() != Some(&self.common) {
            return Err(GitError::Elsewhere(commondir));
        }
        let trust = load(disk, &directory);
        let now = read_file(disk, &self.common.join(ALTERNATES));
        if now.map(|bytes| digest(&bytes)).as_ref() != trust.trusted.files.get(ALTERNATES) {
            return Err(GitError::Alternates(self.common.join(ALTERNATES)));
        }
        Ok(guarded)
    }

    /// Whether the configuration says that there is no work tree.
    pub(super) fn is_bare(&self, disk: &Disk) -> Result<bool, GitError> {
        self.guarded(disk)?;
        let says = |(key, value): &Entry| key == "core.bare" && value.as_deref() == Some("true");
        Ok(self.directory == self.common && load(disk, &home(&self.common)).trusted.entries.iter().any(says))
    }

    /// The user's hooks: as they are, or a copy of how they were if they were changed. `None`: there are none to run.
    pub(super) fn hooks(&self, disk: &Disk) -> Option<PathBuf> {
        let directory = home(&self.common);
        let trust = load(disk, &directory);
        let hooks = trust.hooks_directory.filter(|_| trust.begun && !trust.trusted.hooks.is_empty())?;
        if digests(disk, &hooks) == trust.trusted.hooks { Some(hooks) } else { Some(directory.join("hooks")) }
    }
}

/// The repository of a directory: as it was when a run began there, else as the files say that tie it to its repository.
pub(super) fn resolve(disk: &Disk, directory: &Path) -> Result<Found, GitError> {
    let directory = disk.canonicalize(directory).map_err(failed("cannot look for a repository"))?;
    if let Some(places) = pin(disk, &directory) {
        // Something else may be there now. It is not what the run began with.
        if disk.symlink_metadata(&places.directory.join("HEAD")).is_err() {
            return Err(GitError::Gone(places.directory));
        }
        return Ok(Found::Tree(places));
    }
    discover(disk, &directory, Strict::Yes)
}

fn pin_path(directory: &Path) -> Option<PathBuf> {
    HOME.get().map(|home| home.join("pins").join(format!("{}.json", key(directory))))
}

fn pin(disk: &Disk, directory: &Path) -> Option<Places> {
    if let Some(places) = PINNED.lock().unwrap_or_else(PoisonError::into_inner).get(directory) {
        return Some(places.clone());
    }
    let text = disk.read(&pin_path(directory)?).ok()?;
    let places: Places = serde_json::from_slice(&text).ok()?;
    PINNED.lock().unwrap_or_else(PoisonError::into_inner).insert(directory.to_owned(), places.clone());
    Some(places)
}

/// Whether a `.git` file must be one that the repository itself knows of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Strict {
    Yes,
    /// The user begins a run here, and so says that it is theirs.
    No,
}

fn discover(disk: &Disk, directory: &Path, strict: Strict) -> Result<Found, GitError> {
    for root in directory.ancestors() {
        let dot_git = root.join(".git");
        let Ok(found) = disk.symlink_metadata(&dot_git) else {
            if is_repository(disk, root) {
                return Ok(Found::Bare);
            }
            continue;
        };
        if found.is_symlink() && strict == Strict::Yes {
            return Err(GitError::Elsewhere(dot_git));
        }
        let (directory, common) = if disk.is_dir(&dot_git) {
            if !is_repository(disk, &dot_git) {
                continue;
            }
            let real = disk.canonicalize(&dot_git).map_err(failed("cannot read a repository"))?;
            (real.clone(), real)
        } else {
            linked(disk, root, &dot_git, strict)?
        };
        owned(disk, root, &common)?;
        return Ok(Found::Tree(Places { root: root.to_owned(), directory, common }));
    }
    Ok(Found::Nothing)
}

fn is_repository(disk: &Disk, directory: &Path) -> bool {
    disk.symlink_metadata(&directory.join("HEAD")).is_ok()
        && disk.is_dir(&directory.join("objects"))
        && disk.symlink_metadata(&directory.join("refs")).is_ok()
}

/// Reads a file with a path in it, relative to where it lies.
fn pointer(disk: &Disk, file: &Path, prefix: &[u8]) -> Option<PathBuf> {
    let text = read_file(disk, file)?;
    let path = text.trim_ascii_end().strip_prefix(prefix)?;
    disk.canonicalize(&file.parent()?.join(OsStr::from_bytes(path))).ok()
}

/// The repository that a `.git` file leads to, if that repository leads back.
fn linked(disk: &Disk, root: &Path, dot_git: &Path, strict: Strict) -> Result<(PathBuf, PathBuf), GitError> {
    let elsewhere = || GitError::Elsewhere(dot_git.to_owned());
    let directory = pointer(disk, dot_git, b"gitdir: ").ok_or_else(elsewhere)?;
    let common = match disk.symlink_metadata(&directory.join("commondir")) {
        Ok(_) => pointer(disk, &directory.join("commondir"), b"").ok_or_else(elsewhere)?,
        Err(_) => directory.clone(),
    };
    if !is_repository(disk, &common) {
        return Err(elsewhere());
    }
    let tied = if common == directory {
        // A submodule: its own configuration names its work tree.
        let entries = entries(disk, &directory.join("config"))?;
        let named = entries.iter().rev().find(|(key, _)| key == "core.worktree").and_then(|(_, value)| value.clone());
        named.and_then(|named| disk.canonicalize(&directory.join(named)).ok()).as_deref() == Some(root)
    } else {
        let back = pointer(disk, &directory.join("gitdir"), b"");
        directory.parent() == Some(&common.join("worktrees")) && back.as_deref() == Some(dot_git)
    };
    if tied || strict == Strict::No { Ok((directory, common)) } else { Err(elsewhere()) }
}

/// Git itself refuses a repository of another user unless that is configured, and does not look any more when it is told
/// where the repository is.
fn owned(disk: &Disk, root: &Path, common: &Path) -> Result<(), GitError> {
    let us = rustix::process::geteuid().as_raw();
    if disk.metadata(common).is_ok_and(|found| found.uid() == us) {
        return Ok(());
    }
    let mut command = bare_git(&Environment::default());
    let output = disk.output(command.current_dir(root).args(["rev-parse", "--git-dir"]));
    said(output.map_err(failed("cannot run git"))?, "rev-parse").map(drop)
}

/// What a git said, if it has succeeded.
fn said(output: Output, name: &str) -> Result<Vec<u8>, GitError> {
    if output.status.success() {
        return Ok(output.stdout);
    }
    let words = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(GitError::Failed { command: name.into(), words })
}

/// What the user's own configuration says, without any repository.
fn users_configuration(disk: &Disk, environment: &Environment) -> Result<Vec<Entry>, GitError> {
    let mut command = bare_git(environment);
    command.current_dir("/").env("GIT_DIR", "/dev/null/none").args(["config", "--list", "-z"]);
    let output = disk.output(&mut command).map_err(failed("cannot run git"))?;
    // Without a repository and without a file of the user's git has nothing to list.
    Ok(git_config::read(&output.stdout))
}

/// What a file said, and its entries.
type Known = (Vec<u8>, Vec<Entry>);

/// The entries of one file, without what it includes. Git is asked once for each content, and about the text that was read
/// here: the file itself may have another one by then.
fn entries(disk: &Disk, file: &Path) -> Result<Vec<Entry>, GitError> {
    static KNOWN: Mutex<BTreeMap<PathBuf, Known>> = Mutex::new(BTreeMap::new());
    let Some(text) = read_file(disk, file) else { return Ok(Vec::new()) };
    if let Some((known, entries)) = KNOWN.lock().unwrap_or_else(PoisonError::into_inner).get(file)
        && *known == text
    {
        return Ok(entries.clone());
    }
    let mut command = bare_git(&Environment::default());
    command.current_dir("/").env("GIT_DIR", "/dev/null/none");
    command.args(["config", "--no-includes", "--list", "-z", "--file", "-"]);
    let output = disk.output_for(&mut command, &text).map_err(failed("cannot run git"))?;
    let entries = git_config::read(&said(output, &format!("config --file {}", file.display()))?);
    let known = (text, entries.clone());
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner).insert(file.to_owned(), known);
    Ok(entries)
}

/// A regular file, and nothing that could block or lead elsewhere.
pub(super) fn read_file(disk: &Disk, path: &Path) -> Option<Vec<u8>> {
    disk.symlink_metadata(path).ok().filter(std::fs::Metadata::is_file)?;
    disk.read(path).ok()
}

/// Digests of the hooks in a directory. Git ignores files that cannot be executed.
fn digests(disk: &Disk, directory: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for entry in disk.read_dir(directory).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Ok(about) = disk.metadata(&entry.path()) else { continue };
        if name.ends_with(".sample") || !about.is_file() || about.permissions().mode() & 0o111 == 0 {
            continue;
        }
        let content = if about.len() <= HOOK_MAX { disk.read(&entry.path()).ok() } else { None };
        found.insert(name, content.map_or_else(|| format!("{} bytes", about.len()), |bytes| digest(&bytes)));
    }
    found
}

/// The repository as it is now.
fn current(disk: &Disk, common: &Path, hooks: Option<&Path>) -> Result<Facts, GitError> {
    let file = |name: &&str| Some(((*name).to_owned(), digest(&read_file(disk, &common.join(name))?)));
    let mut entries = self::entries(disk, &common.join("config"))?;
    let more = |(key, value): &Entry| key == "extensions.worktreeconfig" && value.as_deref() != Some("false");
    if entries.iter().any(more) {
        // A sparse checkout is configured there.
        entries.extend(self::entries(disk, &common.join("config.worktree"))?);
    }
    let hooks = hooks.map(|hooks| digests(disk, hooks)).unwrap_or_default();
    Ok(Facts { entries, hooks, files: FILES.iter().filter_map(file).collect() })
}

fn load(disk: &Disk, directory: &Path) -> Trust {
    let text = disk.read(&directory.join("trust.json")).unwrap_or_default();
    serde_json::from_slice(&text).unwrap_or_default()
}

/// Writes down what is trusted, and makes the common directory from it. `users`: their own configuration.
fn write(disk: &Disk, common: &Path, trust: &Trust, users: &[Entry]) -> Result<(), GitError> {
    let _writing = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
    let failed = failed("cannot keep what git may use");
    let directory = home(common);
    let guarded = directory.join("common");
    disk.create_private_dir(&guarded.join("info")).map_err(&failed)?;
    let there = disk.read_dir(common).map_err(&failed)?.flatten().map(|entry| entry.file_name());
    let names: BTreeSet<OsString> = there.chain(LINKED.iter().map(|name| OsString::from(*name))).collect();
    for name in names.iter().filter(|name| !OWN.iter().any(|own| name.as_os_str() == *own)) {
        let (link, to) = (guarded.join(name), common.join(name));
        if disk.read_link(&link).is_ok_and(|found| found == to) {
            continue;
        }
        let _ = disk.remove_file(&link);
        match disk.symlink(&to, &link) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(failed(error)),
            _ => {}
        }
    }
    // Git creates the directory of its logs, but not where a link leads.
    let _ = disk.create_dir(&common.join("logs"));
    for name in ["info/attributes", "info/exclude"] {
        let file = guarded.join(name);
        match read_file(disk, &common.join(name)).filter(|bytes| trust.trusted.files.get(name) == Some(&digest(bytes)))
        {
            Some(bytes) => disk.write_private_unsynced(&file, &bytes).map_err(&failed)?,
            // If it was changed, the copy of the last run stays. If it is gone, so is the copy.
            None if !trust.trusted.files.contains_key(name) => drop(disk.remove_file(&file)),
            None => {}
        }
    }
    if let Some(hooks) = trust.hooks_directory.as_ref().filter(|_| trust.begun) {
        copy_hooks(disk, hooks, &directory.join("hooks"), &trust.trusted.hooks).map_err(&failed)?;
    }
    let text = serde_json::to_vec(trust).map_err(|error| failed(error.into()))?;
    disk.write_private_unsynced(&directory.join("trust.json"), &text).map_err(&failed)?;
    let users_filters = users.iter().filter_map(git_config::filter_name).map(str::to_owned).collect();
    let config = git_config::trusted(&trust.trusted.entries, &users_filters);
    disk.write_private_unsynced(&guarded.join("config"), config.as_bytes()).map_err(&failed)
}

/// Copies the hooks that are as they should be. Of the others the copy of the last run stays.
fn copy_hooks(disk: &Disk, from: &Path, to: &Path, trusted: &BTreeMap<String, String>) -> io::Result<()> {
    disk.create_private_dir(to)?;
    for entry in disk.read_dir(to)?.flatten() {
        if !trusted.contains_key(&*entry.file_name().to_string_lossy()) {
            disk.remove_file(&entry.path())?;
        }
    }
    for (name, expected) in trusted {
        let Some(bytes) = disk.read(&from.join(name)).ok().filter(|bytes| digest(bytes) == *expected) else {
            continue;
        };
        let file = to.join(name);
        disk.write_private_unsynced(&file, &bytes)?;
        disk.set_mode(&file, 0o700)?;
    }
    Ok(())
}

/// A run begins in this directory: what is there now is the user's, but for what was changed while a session ran. Returns
/// what the user should know.
pub(crate) fn begin(disk: &Disk, environment: &Environment, directory: &Path) -> Result<Vec<String>, GitError> {
    let directory = disk.canonicalize(directory).map_err(failed("cannot look for a repository"))?;
    let Found::Tree(places) = discover(disk, &directory, Strict::No)? else { return Ok(Vec::new()) };
    let users = users_configuration(disk, environment)?;
    let before = load(disk, &home(&places.common));
    let now = current(disk, &places.common, None)?;
    let same = |entry: &&Entry| before.distrusted.entries.contains(entry);
    let entries: Vec<Entry> = now.entries.iter().filter(|entry| !same(entry)).cloned().collect();
    let mut notes = Vec::new();
    let hooks_directory = hooks_directory(disk, environment, &places, &users, &entries, &mut notes);
    let now = Facts { hooks: hooks_directory.as_deref().map(|hooks| digests(disk, hooks)).unwrap_or_default(), ..now };
    let still = |now: &BTreeMap<String, String>, was: &BTreeMap<String, String>| {
        let kept = was.iter().filter(|(name, digest)| now.get(*name) == Some(digest));
        kept.map(|(name, digest)| (name.clone(), digest.clone())).collect::<BTreeMap<_, _>>()
    };
    let distrusted = Facts {
        entries: now.entries.iter().filter(same).cloned().collect(),
        hooks: still(&now.hooks, &before.distrusted.hooks),
        files: still(&now.files, &before.distrusted.files),
    };
    // What is distrusted stays as it was before it was changed.
    let restored = |now: BTreeMap<String, String>, bad: &BTreeMap<String, String>, was: &BTreeMap<String, String>| {
        let names: BTreeSet<String> = now.keys().chain(was.keys()).cloned().collect();
        let value = |name: String| {
            let from = if bad.contains_key(&name) { was.get(&name) } else { now.get(&name) };
            Some((name.clone(), from?.clone()))
        };
        names.into_iter().filter_map(value).collect::<BTreeMap<_, _>>()
    };
    let trusted = Facts {
        entries,
        hooks: restored(now.hooks, &distrusted.hooks, &before.trusted.hooks),
        files: restored(now.files, &distrusted.files, &before.trusted.files),
    };
    notes.extend(distrusted.entries.iter().map(|(key, _)| format!("{key} in .git/config")));
    notes.extend(distrusted.hooks.keys().map(|name| format!("the hook {name}")));
    notes.extend(distrusted.files.keys().map(|name| format!(".git/{name}")));
    if users.iter().any(|(key, _)| key == "filter.lfs.clean") {
        // Git LFS keeps its files in the common directory, and must find the real ones.
        let _ = disk.create_dir(&places.common.join("lfs"));
    }
    write(disk, &places.common, &Trust { begun: true, hooks_directory, trusted, distrusted }, &users)?;
    for directory in BTreeSet::from([directory, places.root.clone()]) {
        if let Some(file) = pin_path(&directory) {
            let failed = failed("cannot keep where the repository is");
            let parent = file.parent().unwrap_or(&file);
            disk.create_private_dir(parent).map_err(&failed)?;
            let text = serde_json::to_vec(&places).map_err(|error| failed(error.into()))?;
            disk.write_private_unsynced(&file, &text).map_err(&failed)?;
        }
        PINNED.lock().unwrap_or_else(PoisonError::into_inner).insert(directory, places.clone());
    }
    Ok(notes)
}

/// Where the user's hooks are, if sessions do not work there.
fn hooks_directory(
    disk: &Disk,
    environment: &Environment,
    places: &Places,
    users: &[Entry],
    entries: &[Entry],
    notes: &mut Vec<String>,
) -> Option<PathBuf> {
    let named = |entries: &[Entry]| {
        let found = entries.iter().rev().find(|(key, _)| key == "core.hookspath").and_then(|(_, value)| value.clone());
        found.filter(|path| !path.is_empty())
    };
    let Some(path) = named(entries).or_else(|| named(users)) else { return Some(places.common.join("hooks")) };
    let path = match path.strip_prefix("~/") {
        Some(below) => {
            let of_run = environment.variables().and_then(|variables| variables.get("HOME").map(PathBuf::from));
            of_run.or_else(|| std::env::var_os("HOME").map(PathBuf::from))?.join(below)
        }
        None => places.root.join(path),
    };
    let real = disk.canonicalize(&path).ok()?;
    if real.starts_with(&places.root) && !real.starts_with(&places.common) {
        notes.push(format!("the hooks in {}, because sessions can write there", real.display()));
        return None;
    }
    Some(real)
}

/// A session is over: what is different in the repository since its run began. None of it is used.
pub(crate) fn check(disk: &Disk, directory: &Path) -> Result<Vec<String>, GitError> {
    let Found::Tree(places) = resolve(disk, directory)? else { return Ok(Vec::new()) };
    let home = home(&places.common);
    let mut trust = load(disk, &home);
    if !trust.begun {
        return Ok(Vec::new());
    }
    let now = current(disk, &places.common, trust.hooks_directory.as_deref())?;
    let mut told = Vec::new();
    let known: Vec<Entry> = [trust.trusted.entries.clone(), trust.distrusted.entries.clone()].concat();
    for line in git_config::differences(&known, &now.entries) {
        told.push(format!(".git/config: {line}"));
    }
    trust.distrusted.entries.extend(now.entries.into_iter().filter(|entry| !known.contains(entry)));
    let mut compare = |what: &str,
                       now: &BTreeMap<String, String>,
                       trusted: &BTreeMap<String, String>,
                       bad: &mut BTreeMap<String, String>| {
        for (name, digest) in now {
            if trusted.get(name) != Some(digest) && bad.get(name) != Some(digest) {
                told.push(format!("{what}{name} was changed"));
                bad.insert(name.clone(), digest.clone());
            }
        }
        for name in trusted.keys().filter(|name| !now.contains_key(*name)) {
            told.push(format!("{what}{name} is gone"));
        }
    };
    let Trust { trusted, distrusted, .. } = &mut trust;
    compare("the hook ", &now.hooks, &trusted.hooks, &mut distrusted.hooks);
    compare(".git/", &now.files, &trusted.files, &mut distrusted.files);
    if !told.is_empty() {
        let text = serde_json::to_vec(&trust).map_err(|error| failed("cannot keep what git may use")(error.into()))?;
        disk.write_private_unsynced(&home.join("trust.json"), &text).map_err(failed("cannot keep what git may use"))?;
    }
    Ok(told)
}

/// The user says that the repository is as they want it.
pub(crate) fn confirm(disk: &Disk, directory: &Path) -> Result<(), GitError> {
    let directory = disk.canonicalize(directory).map_err(failed("cannot look for a repository"))?;
    let Found::Tree(places) = discover(disk, &directory, Strict::No)? else { return Ok(()) };
    let mut trust = load(disk, &home(&places.common));
    trust.distrusted = Facts::default();
    write(disk, &places.common, &trust, &users_configuration(disk, &Environment::default())?)
}
