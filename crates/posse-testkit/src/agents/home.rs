//! The home of an agent in a test: its launch settings and its remaining processes.

use std::ffi::{OsStr, OsString};
use std::io;
use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::process::{Command, Stdio};

use posse_api::{Create, Terminal};
use posse_core::screen::Size;
use posse_sim::home::{MARK, ScriptedHome};

use crate::http::HttpAnswer;
use crate::{TestEnv, env, process};

/// A home for one or several agents. Dropping the value removes it and its processes.
pub struct AgentHome {
    home: ScriptedHome,
    path: OsString,
}

impl Deref for AgentHome {
    type Target = ScriptedHome;
    fn deref(&self) -> &ScriptedHome {
        &self.home
    }
}

impl DerefMut for AgentHome {
    fn deref_mut(&mut self) -> &mut ScriptedHome {
        &mut self.home
    }
}

impl AgentHome {
    pub(super) fn new(home: ScriptedHome, program: &Path) -> Self {
        let mut home = Self { home, path: std::env::var_os("PATH").unwrap_or_default() };
        home.add_program(program);
        home
    }

    /// Makes the `PATH` find a program before any others.
    pub(super) fn add_program(&mut self, program: &Path) {
        let all = program.parent().map(Path::to_owned).into_iter().chain(std::env::split_paths(&self.path));
        self.path = std::env::join_paths(all).unwrap_or_else(|error| panic!("no path: {error}"));
    }

    /// Returns a posse command in the agent's project, with the agent's environment.
    pub fn posse<I: IntoIterator<Item: AsRef<OsStr>>>(&self, env: &TestEnv, words: I) -> Command {
        let mut command = env.command(words);
        command.current_dir(&self.directory).envs(&self.env).env("PATH", &self.path).stdin(Stdio::null());
        command
    }

    /// Starts the agent by its provider, which finds the agent in the path.
    #[track_caller]
    pub fn launch_as(&self, env: &TestEnv, provider: &str) -> Terminal {
        let create = Create { provider: Some(provider.to_owned()), ..Create::default() };
        let answer = self.start(env, create).unwrap_or_else(|error| panic!("no daemon: {error}"));
        serde_json::from_str(&answer.body).unwrap_or_else(|error| panic!("not started ({error}): {answer:?}"))
    }

    /// Asks the daemon to start the agent here. Uses HTTP because `posse launch` refuses to start an agent that asks
    /// for trust when no person can answer.
    pub fn start(&self, env: &TestEnv, create: Create) -> io::Result<HttpAnswer> {
        env.run(["ls"]).ok();
        let words = self.posse(env, [""; 0]);
        let text = |value: &OsStr| value.to_string_lossy().into_owned();
        let environment = words.get_envs().filter_map(|(name, value)| Some((text(name), text(value?)))).collect();
        let working_directory = self.directory.to_string_lossy().into_owned();
        let size = create.size.or(Some(Size::clamped(40, 120)));
        env.http().post("/terminals", &Create { working_directory, environment, size, wait: Some(true), ..create })
    }

    /// Returns every running process that was started from here.
    pub fn processes(&self) -> Vec<process::Process> {
        let root = self.home.root().to_str();
        process::all().into_iter().filter(|process| process.variable(MARK).as_deref() == root).collect()
    }
}

impl Drop for AgentHome {
    fn drop(&mut self) {
        // Posse ends what it started, and TestEnv checks that. This covers tests that failed earlier, and processes
        // that must exit before their directory is removed.
        for process in self.processes() {
            env::kill(process.pid);
            process::ends(process.pid);
        }
    }
}
