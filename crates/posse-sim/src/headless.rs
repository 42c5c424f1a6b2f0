//! Sessions without a terminal: the home of scripted ones, and the cases by which real ones are recorded.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::scenario::{Scenario, ScriptTurn};
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

/// A recording of a real session.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HeadlessCase {
    pub name: String,
    /// The agent whose permissions the session gets.
    #[serde(default = "coder")]
    pub agent: String,
    /// How often a failed request is repeated.
    #[serde(default = "once")]
    pub retries: u32,
    /// Claude Code believes that it has a subscription, which has its own limits.
    #[serde(default)]
    pub subscribed: bool,
    /// Only for Claude Code.
    pub max_turns: Option<u32>,
    /// The session is killed when the model waits at this gate.
    pub killed_at: Option<String>,
    #[serde(rename = "turn")]
    turns: Vec<ScriptTurn>,
}

fn coder() -> String {
    "coder".to_owned()
}

fn once() -> u32 {
    1
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HeadlessFile {
    case: Vec<HeadlessCase>,
}

impl HeadlessCase {
    pub fn all() -> Vec<HeadlessCase> {
        let file: Result<HeadlessFile, _> = toml::from_str(include_str!("../headless/cases.toml"));
        file.unwrap_or_else(|error| panic!("{error}")).case
    }

    pub fn scenario(&self) -> Scenario {
        Scenario::of(self.turns.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::ScenarioPlayer;

    #[test]
    fn every_case_can_be_played() {
        let cases = HeadlessCase::all();
        assert_eq!(cases.len(), 16);
        for case in cases {
            case.scenario().check_for(ScenarioPlayer::Model).unwrap();
        }
    }
}
