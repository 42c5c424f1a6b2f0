//! The home of scripted sessions without a terminal.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::scenario::Scenario;
pub use crate::session::SessionCall;

/// The home of scripted sessions, with a `claude` that plays them.
pub struct ScriptedClaude {
    directory: PathBuf,
}

impl SessionCall {
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
    /// Installs the program into a directory. `posse` plays the sessions.
    pub fn install(directory: &Path, posse: &Path) -> Self {
        for name in ["bin", "play", "sessions"] {
            fs::create_dir_all(directory.join(name)).unwrap();
        }
        let claude = Self { directory: directory.to_owned() };
        let script = format!("#!/bin/sh\nexec {posse:?} actor {directory:?} \"$@\"\n");
        fs::write(claude.program(), script).unwrap();
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

    /// Sets the steps of all sessions of a task (`1.1`), or of one of them (`1.1.2`).
    #[track_caller]
    pub fn play(&self, of: &str, steps: impl AsRef<str>) {
        self.play_turns(of, &format!("[[turn]]\nsteps = [{}]\n", steps.as_ref()));
    }

    #[track_caller]
    pub fn play_turns(&self, of: &str, scenario: &str) {
        Scenario::parse(scenario).unwrap_or_else(|error| panic!("{of}: {error}\n{scenario}"));
        fs::write(self.directory.join("play").join(format!("{of}.toml")), scenario).unwrap();
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
        let call = fs::read_to_string(self.session(task, number).join("call")).ok()?;
        Some(serde_json::from_str(&call).unwrap())
    }

    pub fn sessions(&self) -> usize {
        fs::read_dir(self.directory.join("sessions")).unwrap().count()
    }

    /// Returns the directory of a session, `$session` in its commands.
    pub fn session(&self, task: &str, number: u32) -> PathBuf {
        self.directory.join("sessions").join(format!("{task}.{number}"))
    }
}
