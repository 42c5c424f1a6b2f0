//! Where an agent lives during a test: files, environment, command.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use posse_core::ids::TerminalId;
use tempfile::TempDir;

use crate::env::{self, Ran};
use crate::{TestEnv, process};

/// Every process of a home has this in its environment.
const MARK: &str = "POSSE_TEST_AGENT_HOME";

/// A home of its own for one agent, in which nothing waits for a person and nothing is fetched from outside, except
/// where the test asked for that. It and the processes in it are gone when this value is.
pub struct AgentHome {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// What the agent needs on top of a usual environment.
    pub env: BTreeMap<String, String>,
    /// The project it works in.
    pub directory: PathBuf,
    root: TempDir,
}

impl AgentHome {
    #[allow(clippy::unwrap_used)]
    pub(super) fn new(program: &Path) -> Self {
        let root = tempfile::Builder::new().prefix("posse-agent-").tempdir().unwrap();
        for name in ["home", "project", "tmp"] {
            std::fs::create_dir(root.path().join(name)).unwrap();
        }
        // Agents know their project by its real path.
        let directory = root.path().join("project").canonicalize().unwrap();
        make_repository(&directory).unwrap();
        let mut home = Self { command: vec![program.display().to_string()], env: BTreeMap::new(), directory, root };
        home.set("HOME", &home.home().display().to_string());
        // What they put into the common directory for temporary files stays behind otherwise. Codex also refuses to
        // have its home in it.
        home.set("TMPDIR", &home.root.path().join("tmp").display().to_string());
        home.set("TERM", "xterm-256color");
        home.set(MARK, &home.root.path().display().to_string());
        home
    }

    /// The agent's home directory.
    pub fn home(&self) -> PathBuf {
        self.root.path().join("home")
    }

    pub(super) fn set(&mut self, name: &str, value: &str) {
        self.env.insert(name.to_owned(), value.to_owned());
    }

    pub(super) fn add<S: Into<String>>(&mut self, arguments: impl IntoIterator<Item = S>) {
        self.command.extend(arguments.into_iter().map(Into::into));
    }

    /// Writes a file below the home directory.
    #[allow(clippy::unwrap_used)]
    pub(super) fn write(&self, path: &str, content: &str) {
        let path = self.home().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
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
        let root = self.root.path().to_str();
        process::all().into_iter().filter(|process| process.variable(MARK).as_deref() == root).collect()
    }
}

/// The least that git takes for a repository. Projects are repositories, and Codex does not even ask for trust in an
/// empty directory.
fn make_repository(directory: &Path) -> std::io::Result<()> {
    for name in ["objects", "refs"] {
        std::fs::create_dir_all(directory.join(".git").join(name))?;
    }
    std::fs::write(directory.join(".git/HEAD"), "ref: refs/heads/main\n")?;
    std::fs::write(directory.join("README.md"), "A project for tests.\n")
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
