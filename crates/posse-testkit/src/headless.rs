//! Runs the real agents without a terminal, with the flags that posse builds, until they exit.

use std::collections::BTreeMap;
use std::process::{Child, Command};
use std::time::Duration;

use posse_agents::headless::command::Asked;
use posse_agents::headless::{Dialect, Event, Policy, Reader, Request, Sandbox, Scope, Spawn, check_flags};
use posse_agents::manifest::built_in;

use crate::agents::AgentHome;
use crate::{env, process};

/// The files in the home that get the output of a session.
const STDOUT: &str = "stdout";
const STDERR: &str = "stderr";

pub struct HeadlessSession<'a> {
    home: &'a AgentHome,
    child: Child,
}

#[derive(Debug)]
pub struct SessionOutput {
    pub stdout: Vec<u8>,
    pub stderr: String,
    pub code: Option<i32>,
    /// Whether the session exited before the timeout.
    pub by_itself: bool,
}

impl SessionOutput {
    /// Parses the session's output with this provider's manifest.
    #[allow(clippy::unwrap_used)]
    pub fn events(&self, provider: &str) -> Vec<Event> {
        let mut reader = Reader::new(built_in(provider).unwrap().unwrap().manifest.headless.unwrap());
        let mut events = reader.stdout(&self.stdout);
        events.extend(reader.stderr(self.stderr.as_bytes()));
        events.extend(reader.finish());
        events
    }
}

/// Builds posse's command for a session of this agent. The scope is the home's project and a directory for results.
#[track_caller]
#[allow(clippy::unwrap_used)]
pub fn spawn(home: &AgentHome, dialect: Dialect, sandbox: Sandbox, agent: &str, prompt: &str) -> Spawn {
    let results = home.home().join("results");
    std::fs::create_dir_all(&results).unwrap();
    let results = results.canonicalize().unwrap();
    let scope =
        Scope { directory: home.directory.to_str().unwrap().into(), results: Some(results.to_str().unwrap().into()) };
    let policy = Policy::default();
    let granted = policy.grant(agent, None).unwrap();
    let request = Request { dialect, sandbox, profile: &granted.profile, scope: &scope, policy: &policy };
    let asked = Asked { prompt, ..Asked::default() };
    let spawn = Spawn::new(&home.command[0], &request, &asked, BTreeMap::new(), Vec::new()).unwrap();
    let real = |directory: &str| Some(std::fs::canonicalize(directory).ok()?.to_str()?.to_owned());
    check_flags(&spawn.argv[1..], &request, &[], real).unwrap();
    spawn
}

impl<'a> HeadlessSession<'a> {
    /// Starts the session in its home, with only the path from the test's environment.
    #[allow(clippy::unwrap_used)]
    pub fn start(home: &'a AgentHome, spawn: &Spawn) -> Self {
        let prompt = home.home().join("prompt.md");
        std::fs::write(&prompt, &spawn.prompt).unwrap();
        let file = |name| std::fs::File::create(home.home().join(name)).unwrap();
        let child = Command::new(&spawn.argv[0])
            .args(&spawn.argv[1..])
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .envs(&home.env)
            .envs(&spawn.set)
            .current_dir(&spawn.directory)
            .stdin(std::fs::File::open(&prompt).unwrap())
            .stdout(file(STDOUT))
            .stderr(file(STDERR))
            .spawn()
            .unwrap();
        Self { home, child }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Kills the session. The program installed by npm may be a script that has started the real one.
    pub fn kill(&self) {
        for process in self.home.processes() {
            env::kill(process.pid);
        }
    }

    /// Returns the output up to the exit, and kills the session after this time.
    #[allow(clippy::unwrap_used)]
    pub fn hear(mut self, patience: Duration) -> SessionOutput {
        let by_itself = process::ends_within(self.child.id(), patience);
        if !by_itself {
            self.kill();
        }
        let code = self.child.wait().unwrap().code();
        let read = |name| std::fs::read(self.home.home().join(name)).unwrap();
        let stderr = String::from_utf8_lossy(&read(STDERR)).into_owned();
        SessionOutput { stdout: read(STDOUT), stderr, code, by_itself }
    }
}
