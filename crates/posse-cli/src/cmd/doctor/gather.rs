//! The facts about this machine, and how they are found out. Starts nothing but the programs it asks for their versions, changes
//! nothing, and reads no credential.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use posse_agents::Manifest;
use posse_agents::account::Sign;
use posse_agents::version::Version;
use posse_api::{DatabaseCondition, Health};
use posse_files::providers::{Listed, Providers, prompt_templates};
use posse_files::versions;
use posse_term::client as keeper;
use posse_term::lock::{self, Holder, LockStatus};
use posse_term::paths::{Paths, PathsError};
use rustix::fs::{Access, access};
use rustix::process::{Resource, getrlimit};

use crate::client::{self, Client};
use crate::config;
use crate::daemon;
use crate::error::Error;

#[derive(Clone, Debug)]
pub(super) struct Facts {
    /// This program, as it calls itself.
    pub(super) version: String,
    pub(super) agents: Vec<Agent>,
    /// The output of `git --version`.
    pub(super) git: Option<String>,
    /// The locale, which decides the character set.
    pub(super) locale: Option<String>,
    /// The reason why posse's directories are not known.
    pub(super) home_problem: Option<String>,
    pub(super) directories: Vec<Directory>,
    pub(super) configuration: Configuration,
    /// The problem of the user's prompt templates; `None` if they can be used.
    pub(super) prompts: Option<String>,
    /// Files of the configuration that others can write.
    pub(super) writable_by_others: Vec<Writable>,
    pub(super) limits: Limits,
    pub(super) daemon: Daemon,
    pub(super) keeper: Process,
    pub(super) database: DatabaseCondition,
    pub(super) disk: Disk,
}

/// One agent that posse has a manifest for.
#[derive(Clone, Debug)]
pub(super) struct Agent {
    pub(super) id: String,
    /// Its manifest cannot be used.
    pub(super) is_broken: bool,
    /// The path of its program.
    pub(super) program: Option<PathBuf>,
    pub(super) install: String,
    /// The output of `--version`; `None` if it fails.
    pub(super) said: Option<String>,
    pub(super) known: Vec<Version>,
    pub(super) account: Account,
}

#[derive(Clone, Debug)]
pub(super) enum Account {
    Signed(Sign),
    NoSign {
        sign_in: String,
    },
    /// Its manifest does not say how one could know.
    Unknown,
}

#[derive(Clone, Debug)]
pub(super) struct Directory {
    pub(super) path: PathBuf,
    pub(super) found: Found,
}

#[derive(Clone, Debug)]
pub(super) enum Found {
    /// It will be made when it is needed.
    Absent,
    Fine,
    Refused {
        why: String,
        advice: String,
    },
}

#[derive(Clone, Debug)]
pub(super) enum Configuration {
    Absent(PathBuf),
    Sound(PathBuf),
    Wrong(String),
}

/// A file that its owner is not alone with.
#[derive(Clone, Debug)]
pub(super) struct Writable {
    pub(super) path: PathBuf,
    /// Not only by the group.
    pub(super) by_all: bool,
}

/// As the kernel gives them to this shell; `None` is no limit, or unknown.
#[derive(Clone, Debug, Default)]
pub(super) struct Limits {
    pub(super) open_files: Option<u64>,
    pub(super) processes: Option<u64>,
    /// In use, and how many there may be.
    pub(super) terminals: Option<(u64, u64)>,
    /// A process may type into its own terminal (`TIOCSTI`).
    pub(super) types_into_itself: bool,
}

#[derive(Clone, Debug)]
pub(super) enum Process {
    Off,
    Runs(Option<Holder>),
    /// By a signal or a debugger.
    Stopped(Holder),
    Unknown(String),
}

#[derive(Clone, Debug)]
pub(super) enum Daemon {
    Off,
    Answers {
        pid: u32,
        version: String,
        problem: Option<String>,
    },
    /// It holds its lock and does not answer.
    Silent {
        holder: Option<Holder>,
        why: String,
    },
    Unknown(String),
}

#[derive(Clone, Debug, Default)]
pub(super) struct Disk {
    /// Bytes by what they are for.
    pub(super) parts: Vec<(&'static str, u64)>,
    pub(super) free: Option<u64>,
}

/// The time a daemon has to report its health.
const PATIENCE: Duration = Duration::from_secs(5);

pub(super) async fn gather() -> Facts {
    let paths = client::paths();
    let environment = super::super::launch::environment();
    let (agents, git, daemon) =
        tokio::join!(agents(paths.as_ref().ok(), &environment), git(&environment), daemon(paths.as_ref().ok()),);
    let loaded = config::load();
    Facts {
        version: crate::VERSION.to_owned(),
        agents,
        git,
        locale: ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(|name| environment.get(*name)).cloned(),
        prompts: paths
            .as_ref()
            .ok()
            .and_then(|paths| prompt_templates(&paths.prompts()).err())
            .map(|bad| bad.to_string()),
        writable_by_others: paths.as_ref().map(writable_by_others).unwrap_or_default(),
        configuration: configuration(paths.as_ref().ok(), loaded.err()),
        limits: limits(),
        daemon,
        keeper: paths.as_ref().map_or(Process::Off, keeper),
        database: paths
            .as_ref()
            .map_or(DatabaseCondition::Absent, |paths| (daemon::functions().inspect_database)(&paths.database())),
        disk: paths.as_ref().map(disk).unwrap_or_default(),
        home_problem: paths.as_ref().err().map(ToString::to_string),
        directories: paths.as_ref().map(directories).unwrap_or_default(),
    }
}

async fn agents(paths: Option<&Paths>, environment: &BTreeMap<String, String>) -> Vec<Agent> {
    let Some(paths) = paths else { return Vec::new() };
    let providers = Providers::new(paths.providers());
    let mut agents = Vec::new();
    for listed in providers.list() {
        let manifest = providers.load(&listed.id).ok().map(|provider| provider.manifest.clone());
        agents.push(agent(listed, manifest, environment));
    }
    // All are asked at once: some take seconds.
    let ask = |agent: &Agent| {
        let (program, environment) = (agent.program.clone(), environment.clone());
        tokio::spawn(async move { versions::ask(&program?, &environment).await })
    };
    let asked: Vec<_> = agents.iter().map(ask).collect();
    for (agent, said) in agents.iter_mut().zip(asked) {
        agent.said = said.await.ok().flatten();
    }
    agents
}

/// Without what it says itself.
fn agent(listed: Listed, manifest: Option<Manifest>, environment: &BTreeMap<String, String>) -> Agent {
    let launch = manifest.as_ref().and_then(|manifest| manifest.launch.as_ref());
    let path = environment.get("PATH").map(String::as_str).unwrap_or_default();
    let account =
        manifest.as_ref().and_then(|manifest| manifest.account.as_ref()).map_or(Account::Unknown, |account| {
            let sign = account.sign(|name| environment.get(name).cloned(), Path::exists);
            sign.map_or_else(|| Account::NoSign { sign_in: account.sign_in.clone() }, Account::Signed)
        });
    Agent {
        program: launch.and_then(|launch| versions::locate(&launch.program, path)),
        install: launch.map(|launch| launch.install.clone()).unwrap_or_default(),
        id: listed.id,
        is_broken: listed.problem.is_some(),
        said: None,
        known: manifest.map(|manifest| manifest.versions).unwrap_or_default(),
        account,
    }
}

async fn git(environment: &BTreeMap<String, String>) -> Option<String> {
    let program = versions::locate("git", environment.get("PATH")?)?;
    versions::ask(&program, environment).await
}

fn directories(paths: &Paths) -> Vec<Directory> {
    let may_write = |path: &Path| access(path, Access::WRITE_OK | Access::EXEC_OK).is_ok();
    let refused = |why: &str, advice: String| Found::Refused { why: why.to_owned(), advice };
    let judge = |path: &Path, looked: Option<Result<(), PathsError>>| match looked {
        Some(Ok(())) if may_write(path) => Found::Fine,
        Some(Ok(())) => refused("you cannot write in it", format!("chmod u+rwx {}", path.display())),
        Some(Err(PathsError::Open(_))) => refused("others can enter it", format!("chmod 700 {}", path.display())),
        Some(Err(PathsError::NotADirectory(_))) => refused("it is no directory", "move it away".into()),
        Some(Err(PathsError::Foreign(_))) => {
            refused("it belongs to another user", "set POSSE_HOME to a directory of your own".into())
        }
        Some(Err(error)) => refused(&error.to_string(), "see to it that you may use it".into()),
        None => match path.ancestors().skip(1).find(|above| above.exists()) {
            Some(above) if !may_write(above) => {
                let why = format!("it cannot be made: you cannot write in {}", above.display());
                refused(&why, "set POSSE_HOME to a directory of your own".into())
            }
            _ => Found::Absent,
        },
    };
    let looked = paths.inspect().into_iter();
    looked.map(|(path, looked)| Directory { found: judge(&path, looked), path }).collect()
}

fn configuration(paths: Option<&Paths>, error: Option<Error>) -> Configuration {
    let path = paths.map(Paths::config_file).unwrap_or_default();
    match error {
        Some(error) => Configuration::Wrong(error.to_string()),
        None if path.exists() => Configuration::Sound(path),
        None => Configuration::Absent(path),
    }
}

/// Of what the user has written, and by which agents are guarded.
fn writable_by_others(paths: &Paths) -> Vec<Writable> {
    let manifests = fs::read_dir(paths.providers()).into_iter().flatten().flatten().map(|file| file.path());
    let files = [paths.config.clone(), paths.config_file(), paths.providers()].into_iter().chain(manifests);
    files
        .filter_map(|path| match fs::metadata(&path).ok()?.permissions().mode() {
            mode if mode & 0o002 != 0 => Some(Writable { path, by_all: true }),
            mode if mode & 0o020 != 0 => Some(Writable { path, by_all: false }),
            _ => None,
        })
        .collect()
}

fn limits() -> Limits {
    let number = |file: &str| fs::read_to_string(file).ok()?.trim().parse::<u64>().ok();
    Limits {
        open_files: getrlimit(Resource::Nofile).current,
        processes: getrlimit(Resource::Nproc).current,
        terminals: number("/proc/sys/kernel/pty/nr").zip(number("/proc/sys/kernel/pty/max")),
        // Kernels before 6.2 have no such file, and always allow it.
        types_into_itself: number("/proc/sys/dev/tty/legacy_tiocsti") != Some(0),
    }
}

async fn daemon(paths: Option<&Paths>) -> Daemon {
    let Some(paths) = paths else { return Daemon::Off };
    let answer = async {
        let Some(mut client) = Client::connect_if_running().await? else { return Ok(None) };
        // One that ends now must not be started again.
        client.only_running();
        client.get::<Health>("/health").await.map(Some)
    };
    let why = match tokio::time::timeout(PATIENCE, answer).await {
        Ok(Ok(Some(Health { pid, version, problem, .. }))) => return Daemon::Answers { pid, version, problem },
        Ok(Ok(None)) => "nobody listens on its socket".to_owned(),
        Ok(Err(error)) => error.to_string(),
        Err(_) => format!("it took more than {} s", PATIENCE.as_secs()),
    };
    match lock::look(&paths.daemon_lock()) {
        Ok(LockStatus::Free) => Daemon::Off,
        Ok(LockStatus::Held(holder)) => Daemon::Silent { holder, why },
        Err(error) => Daemon::Unknown(format!("cannot read {}: {error}", paths.daemon_lock().display())),
    }
}

fn keeper(paths: &Paths) -> Process {
    match lock::look(&paths.keeper_lock()) {
        Ok(LockStatus::Free) => Process::Off,
        Ok(LockStatus::Held(Some(holder))) if keeper::is_stopped(holder.pid as i32) => Process::Stopped(holder),
        Ok(LockStatus::Held(holder)) => Process::Runs(holder),
        Err(error) => Process::Unknown(format!("cannot read {}: {error}", paths.keeper_lock().display())),
    }
}

fn disk(paths: &Paths) -> Disk {
    let journal = ["", "-wal", "-shm"].map(|end| {
        let mut path = OsString::from(paths.database());
        path.push(end);
        size(Path::new(&path))
    });
    let logs = [paths.log(), paths.log().with_extension("log.1")].map(|path| size(&path));
    let parts = vec![
        ("journal", journal.iter().sum()),
        ("log", logs.iter().sum()),
        ("last screens", size(&paths.screens())),
        ("recordings", size(&paths.recordings())),
        ("plans", size(&paths.plans())),
    ];
    let existing = paths.home.ancestors().find(|path| path.exists());
    let free = existing.and_then(|path| rustix::fs::statvfs(path).ok()).map(|disk| disk.f_bavail * disk.f_frsize);
    Disk { parts, free }
}

/// Of a file, or of everything in a directory. Links are not followed, and what cannot be read counts as nothing.
fn size(path: &Path) -> u64 {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => {
            fs::read_dir(path).into_iter().flatten().flatten().map(|entry| size(&entry.path())).sum()
        }
        Ok(found) => found.len(),
        Err(_) => 0,
    }
}
