//! Sessions without a terminal: a scripted `claude -p`, and the cases by which real sessions are recorded.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::scenario::{Scenario, ScriptTurn};

/// A scripted `claude -p` and its records. A play is a piece of shell that uses the functions of `headless/claude.sh`.
pub struct ScriptedClaude {
    directory: PathBuf,
}

/// The call of a session.
#[derive(Debug)]
pub struct SessionCall {
    pub arguments: Vec<String>,
    pub directory: String,
    pub environment: Vec<String>,
    /// The target of its standard input.
    pub stdin: String,
    /// What it read from there.
    pub prompt: String,
}

impl SessionCall {
    pub fn prompt(&self) -> &str {
        &self.prompt
    }

    pub fn variable(&self, name: &str) -> Option<&str> {
        self.environment.iter().find_map(|line| line.strip_prefix(name)?.strip_prefix('='))
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
        let program = directory.join("bin/claude");
        fs::write(&program, include_str!("../headless/claude.sh").replace("@HOME@", directory.to_str().unwrap()))
            .unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        Self { directory: directory.to_owned() }
    }

    /// Returns a `PATH` that finds the program first.
    pub fn path(&self) -> String {
        let path = std::env::var("PATH").unwrap_or_default();
        format!("{}:{path}", self.directory.join("bin").display())
    }

    /// Sets the play of a task (`1.1`), or of one of its sessions (`1.1.2`).
    pub fn play(&self, of: &str, script: &str) {
        fs::write(self.directory.join("play").join(of), script).unwrap();
    }

    /// Creates a gate at which sessions wait (`await NAME`).
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

    /// Returns whether a session waits at a gate.
    pub fn waits(&self, task: &str, number: u32) -> bool {
        self.session(task, number).join("awaits").exists()
    }

    /// Returns the call of a session, if it was called.
    pub fn called(&self, task: &str, number: u32) -> Option<SessionCall> {
        let session = self.session(task, number);
        session.join("called").exists().then(|| {
            let read = |name: &str| String::from_utf8_lossy(&fs::read(session.join(name)).unwrap()).into_owned();
            SessionCall {
                arguments: read("arguments").trim_end_matches('\0').split('\0').map(str::to_owned).collect(),
                directory: read("directory").trim_end().to_owned(),
                environment: read("environment").lines().map(str::to_owned).collect(),
                stdin: read("stdin").trim_end().to_owned(),
                prompt: read("prompt"),
            }
        })
    }

    /// Returns the number of sessions of all tasks.
    pub fn sessions(&self) -> usize {
        fs::read_dir(self.directory.join("sessions")).unwrap().count()
    }

    /// Returns the directory of a session (`$me`).
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
    /// Returns all cases of `headless/cases.toml`.
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
