//! The files, environment and command of an agent.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// The variable in the environment of every process of a home; its value is the home's root.
pub const MARK: &str = "POSSE_AGENT_HOME";

/// A temporary home for an agent, in which the agent starts unattended and fetches nothing. Dropping the value deletes
/// the files, so processes in the home must have ended before.
pub struct ScriptedHome {
    pub command: Vec<String>,
    /// Variables in addition to a usual environment.
    pub env: BTreeMap<String, String>,
    pub directory: PathBuf,
    root: TempDir,
}

impl ScriptedHome {
    pub(super) fn new(program: &Path) -> io::Result<Self> {
        let root = tempfile::Builder::new().prefix("posse-agent-").tempdir()?;
        for name in ["home", "project", "tmp"] {
            std::fs::create_dir(root.path().join(name))?;
        }
        // Agents identify their project by its real path.
        let directory = root.path().join("project").canonicalize()?;
        make_repository(&directory)?;
        let mut home = Self { command: vec![program.display().to_string()], env: BTreeMap::new(), directory, root };
        home.set("HOME", &home.home().display().to_string());
        // Temporary files are deleted with the home. Codex also refuses a home inside the temporary directory.
        home.set("TMPDIR", &home.root.path().join("tmp").display().to_string());
        home.set("TERM", "xterm-256color");
        home.set(MARK, &home.root.path().display().to_string());
        Ok(home)
    }

    pub fn home(&self) -> PathBuf {
        self.root.path().join("home")
    }

    /// The directory that contains everything.
    pub fn root(&self) -> &Path {
        self.root.path()
    }

    pub(super) fn set(&mut self, name: &str, value: &str) {
        self.env.insert(name.to_owned(), value.to_owned());
    }

    pub(super) fn write(&self, path: &str, content: &str) -> io::Result<()> {
        let path = self.home().join(path);
        path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
        std::fs::write(path, content)
    }
}

/// Creates the minimum that git accepts as a repository. Codex does not ask for trust in an empty directory.
fn make_repository(directory: &Path) -> io::Result<()> {
    for name in ["objects", "refs"] {
        std::fs::create_dir_all(directory.join(".git").join(name))?;
    }
    std::fs::write(directory.join(".git/HEAD"), "ref: refs/heads/main\n")?;
    std::fs::write(directory.join("README.md"), "A project for tests.\n")
}
