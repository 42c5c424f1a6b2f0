//! Scripted headless sessions: a program `claude` for plans and backlogs that runs shell commands.
//!
//! `claude.sh` documents what the commands of a play can use.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The home of scripted sessions, with a `claude` that plays them.
pub struct ScriptedClaude {
    directory: PathBuf,
}

/// The call of a session.
#[derive(Debug)]
pub struct SessionCall {
    pub arguments: Vec<String>,
    pub directory: String,
    environment: BTreeMap<String, String>,
    /// The target of the standard input.
    pub stdin: String,
    /// The standard input that the session read.
    pub prompt: String,
}

#[allow(clippy::unwrap_used)]
impl SessionCall {
    fn read(session: &Path) -> Self {
        let text = |name| String::from_utf8_lossy(&fs::read(session.join(name)).unwrap()).trim_end().to_owned();
        let words = |name| text(name).split_terminator('\0').map(str::to_owned).collect::<Vec<String>>();
        let variable = |word: &String| Some(word.split_once('=')?).map(|(name, value)| (name.into(), value.into()));
        Self {
            arguments: words("arguments"),
            directory: text("directory"),
            environment: words("environment").iter().filter_map(variable).collect(),
            stdin: text("stdin"),
            prompt: text("prompt"),
        }
    }

    pub fn variable(&self, name: &str) -> Option<&str> {
        self.environment.get(name).map(String::as_str)
    }

    pub fn flag(&self, name: &str) -> Option<&str> {
        let at = self.arguments.iter().position(|argument| argument == name)?;
        self.arguments.get(at + 1).map(String::as_str)
    }
}

#[allow(clippy::unwrap_used)]
impl ScriptedClaude {
    /// Installs the program into a directory.
    pub fn install(directory: &Path) -> Self {
        for name in ["bin", "play", "sessions"] {
            fs::create_dir_all(directory.join(name)).unwrap();
        }
        let claude = Self { directory: directory.to_owned() };
        let home = format!("'{}'", directory.display());
        fs::write(claude.program(), include_str!("scripted_claude/claude.sh").replace("@HOME@", &home)).unwrap();
        fs::set_permissions(claude.program(), fs::Permissions::from_mode(0o755)).unwrap();
        claude
    }

    pub fn program(&self) -> PathBuf {
        self.directory.join("bin/claude")
    }

    /// Returns a `PATH` that finds the program first.
    pub fn path(&self) -> String {
        let path = std::env::var("PATH").unwrap_or_default();
        format!("{}:{path}", self.directory.join("bin").display())
    }

    /// Sets the commands of all sessions of a task (`1.1`), or of one of them (`1.1.2`).
    pub fn play(&self, of: &str, commands: impl AsRef<str>) {
        fs::write(self.directory.join("play").join(of), commands.as_ref()).unwrap();
    }

    /// Creates a gate at which sessions wait.
    pub fn gate(&self, name: &str) {
        rustix::fs::mknodat(
            rustix::fs::CWD,
            self.directory.join(name),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
            0,
        )
        .unwrap();
    }

    /// Lets one waiting session pass.
    pub fn open_gate(&self, name: &str) {
        fs::write(self.directory.join(name), "go\n").unwrap();
    }

    pub fn waits(&self, task: &str, number: u32) -> bool {
        self.session(task, number).join("awaits").exists()
    }

    /// Returns the call of a session, if it was called.
    pub fn called(&self, task: &str, number: u32) -> Option<SessionCall> {
        let session = self.session(task, number);
        session.join("called").exists().then(|| SessionCall::read(&session))
    }

    pub fn sessions(&self) -> usize {
        fs::read_dir(self.directory.join("sessions")).unwrap().count()
    }

    /// Returns the directory of a session, `$session` in its commands.
    pub fn session(&self, task: &str, number: u32) -> PathBuf {
        self.directory.join("sessions").join(format!("{task}.{number}"))
    }
}
