//! Where an agent lives: files, environment, command.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// Every process of a home has this in its environment; its value is the home's root.
pub const MARK: &str = "POSSE_AGENT_HOME";

/// A home of its own for one agent, in which nothing waits for a person and nothing is fetched from outside, except
/// where its options asked for that. Its files are gone when this value is; processes in it must be gone before.
pub struct Home {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// What the agent needs on top of a usual environment.
    pub env: BTreeMap<String, String>,
    /// The project it works in.
    pub directory: PathBuf,
    root: TempDir,
}

impl Home {
    pub(super) fn new(program: &Path) -> io::Result<Self> {
        let root = tempfile::Builder::new().prefix("posse-agent-").tempdir()?;
        for name in ["home", "project", "tmp"] {
            std::fs::create_dir(root.path().join(name))?;
        }
        // Agents know their project by its real path.
        let directory = root.path().join("project").canonicalize()?;
        make_repository(&directory)?;
        let mut home = Self { command: vec![program.display().to_string()], env: BTreeMap::new(), directory, root };
        home.set("HOME", &home.home().display().to_string());
        // What they put into the common directory for temporary files stays behind otherwise. Codex also refuses to
        // have its home in it.
        home.set("TMPDIR", &home.root.path().join("tmp").display().to_string());
        home.set("TERM", "xterm-256color");
        home.set(MARK, &home.root.path().display().to_string());
        Ok(home)
    }

    /// The agent's home directory.
    pub fn home(&self) -> PathBuf {
        self.root.path().join("home")
    }

    /// The directory that holds all of it.
    pub fn root(&self) -> &Path {
        self.root.path()
    }

    pub(super) fn set(&mut self, name: &str, value: &str) {
        self.env.insert(name.to_owned(), value.to_owned());
    }

    pub(super) fn add<S: Into<String>>(&mut self, arguments: impl IntoIterator<Item = S>) {
        self.command.extend(arguments.into_iter().map(Into::into));
    }

    /// Writes a file below the home directory.
    pub(super) fn write(&self, path: &str, content: &str) -> io::Result<()> {
        let path = self.home().join(path);
        path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
        std::fs::write(path, content)
    }
}

/// The least that git takes for a repository. Projects are repositories, and Codex does not even ask for trust in an
/// empty directory.
fn make_repository(directory: &Path) -> io::Result<()> {
    for name in ["objects", "refs"] {
        std::fs::create_dir_all(directory.join(".git").join(name))?;
    }
    std::fs::write(directory.join(".git/HEAD"), "ref: refs/heads/main\n")?;
    std::fs::write(directory.join("README.md"), "A project for tests.\n")
}
