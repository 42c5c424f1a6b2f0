//! What can be known about a machine without changing it.

use std::path::PathBuf;

use posse_agents::account::Sign;
use posse_agents::version::Version;
use posse_api::DatabaseCondition;
use posse_term::lock::Holder;

#[derive(Clone, Debug)]
pub(super) struct Facts {
    /// This program, as it calls itself.
    pub(super) version: String,
    pub(super) agents: Vec<Agent>,
    /// What `git --version` says.
    pub(super) git: Option<String>,
    /// The locale, which decides the character set.
    pub(super) locale: Option<String>,
    /// posse's directories, or why they are not known.
    pub(super) directories: Directories,
    pub(super) configuration: Configuration,
    /// Why the user's prompt templates cannot be used; `None` if they can.
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
    /// Where its program is.
    pub(super) program: Option<PathBuf>,
    pub(super) install: String,
    /// What it says when it is asked for its version; `None` if it fails.
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
pub(super) enum Directories {
    Known(Vec<Directory>),
    Unknown(String),
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

/// As the kernel gives them to this shell; `None` is no limit, or nobody knows.
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
