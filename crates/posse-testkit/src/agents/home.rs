//! A home of an agent in a test: how the agent is started in it, and what of it still runs.

use std::ops::Deref;
use std::path::Path;
use std::time::Duration;

use posse_core::ids::TerminalId;
use posse_models::agents::{Home, MARK};

use crate::env::{self, Ran};
use crate::{TestEnv, process};

/// A home for one agent. It and the processes in it are gone when this value is.
pub struct AgentHome {
    home: Home,
}

impl Deref for AgentHome {
    type Target = Home;
    fn deref(&self) -> &Home {
        &self.home
    }
}

impl AgentHome {
    pub(super) fn new(home: Home) -> Self {
        Self { home }
    }

    /// Starts the agent in a terminal of posse.
    #[track_caller]
    pub fn launch(&self, env: &TestEnv) -> TerminalId {
        let mut arguments = vec!["launch".to_owned(), "--size".into(), "120x40".into()];
        arguments.extend(["--directory".into(), self.directory.display().to_string()]);
        for (name, value) in &self.env {
            arguments.extend(["--env".into(), format!("{name}={value}")]);
        }
        arguments.push("--".into());
        arguments.extend(self.command.iter().cloned());
        let id = env.run(arguments).ok();
        id.trim().parse().unwrap_or_else(|error| panic!("no id: {error}"))
    }

    /// Starts the agent the way people do: by its provider, which finds it in the path.
    #[track_caller]
    pub fn launch_as(&self, env: &TestEnv, provider: &str, more: &[&str]) -> serde_json::Value {
        self.start_as(env, provider, &[&["--size", "120x40"], more].concat()).json()
    }

    /// The same, in a size given with the other arguments, whether or not it starts.
    pub fn start_as(&self, env: &TestEnv, provider: &str, more: &[&str]) -> Ran {
        let programs = Path::new(&self.command[0]).parent().map(|path| path.display().to_string()).unwrap_or_default();
        let path = std::env::var("PATH").unwrap_or_default();
        let mut arguments = vec!["launch".to_owned(), provider.into(), "--json".into()];
        arguments.extend(["--directory".into(), self.directory.display().to_string()]);
        arguments.extend(["--env".into(), format!("PATH={programs}:{path}")]);
        for (name, value) in &self.env {
            arguments.extend(["--env".into(), format!("{name}={value}")]);
        }
        arguments.extend(more.iter().map(|&argument| argument.to_owned()));
        env.run(arguments)
    }

    /// Every process that was started from here and still runs.
    pub fn processes(&self) -> Vec<process::Process> {
        let root = self.home.root().to_str();
        process::all().into_iter().filter(|process| process.variable(MARK).as_deref() == root).collect()
    }
}

impl Drop for AgentHome {
    fn drop(&mut self) {
        // Posse ends what it started, and TestEnv insists on that. This is for tests that failed in between, and for
        // processes that must be gone before their directory is.
        for process in self.processes() {
            env::kill(process.pid);
            process::ends_within(process.pid, Duration::from_secs(5));
        }
    }
}
