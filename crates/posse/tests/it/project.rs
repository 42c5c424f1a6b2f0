//! A project in which a scripted `claude` carries out plans and backlogs: the real daemon, real git, real work trees.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use posse_testkit::TestEnv;
use posse_testkit::files::when;
use posse_testkit::git::{commit_all, git};
use posse_testkit::scripted_claude::ScriptedClaude;

use crate::{contains, env};

pub(crate) struct Project {
    pub(crate) claude: ScriptedClaude,
    /// Dropped last, because it ends every process.
    pub(crate) env: TestEnv,
}

impl Project {
    /// A project with one commit of what `fill` puts into its directory.
    pub(crate) fn new(fill: impl FnOnce(&Path)) -> Self {
        let env = env();
        let outside = env.work().parent().unwrap().join("outside");
        fs::create_dir(&outside).unwrap();
        let claude = ScriptedClaude::install(&outside);
        fill(&env.work());
        commit_all(&env.work());
        Self { claude, env }
    }

    /// A path beside the project.
    pub(crate) fn outside(&self, name: &str) -> PathBuf {
        self.env.work().parent().unwrap().join("outside").join(name)
    }

    #[track_caller]
    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        git(&self.env.work(), arguments)
    }

    /// The number of work trees. The checkout itself is one.
    #[track_caller]
    pub(crate) fn worktrees(&self) -> usize {
        self.git(&["worktree", "list"]).lines().count()
    }

    pub(crate) fn file(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.env.work().join(name)).ok()
    }

    /// Writes a file of the project, and the directories it is in.
    pub(crate) fn put(&self, name: &str, text: &str) {
        let path = self.env.work().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// The names in a directory of the project, sorted.
    pub(crate) fn names(&self, directory: &str) -> Vec<String> {
        let entries = fs::read_dir(self.env.work().join(directory)).into_iter().flatten();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// The configuration of the project.
    pub(crate) fn configure(&self, text: &str) {
        self.put(".posse/config.toml", text);
    }

    /// The configuration of the user.
    pub(crate) fn configure_user(&self, text: &str) {
        fs::create_dir_all(&self.env.paths().config).unwrap();
        fs::write(self.env.paths().config.join("config.toml"), text).unwrap();
    }

    /// A posse command of a user with this `claude`.
    pub(crate) fn posse(&self, words: &[&str]) -> Command {
        let mut command = self.env.command(words);
        command.env("PATH", self.claude.path()).env("CLAUDECODE", "1").stdin(Stdio::null());
        command
    }

    /// Waits until this session of a task is at its gate.
    #[track_caller]
    pub(crate) fn until_waits(&self, task: &str, number: u32) {
        when(&format!("session {number} of {task}"), || self.claude.waits(task, number).then_some(()));
    }
}

/// Starts a command whose output is read at its end.
pub(crate) fn spawned(mut command: Command) -> Child {
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Exit code, and everything that was printed.
pub(crate) fn said(output: &Output) -> (i32, String) {
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    (output.status.code().unwrap_or(-1), String::from_utf8_lossy(&text).into_owned())
}

/// Runs a command that has to end with this code. Returns what it printed, which has all of these words.
#[track_caller]
pub(crate) fn says(code: i32, mut command: Command, words: &[&str]) -> String {
    let (found, text) = said(&command.output().unwrap());
    assert_eq!(found, code, "{text}");
    contains(&text, words);
    text
}

#[track_caller]
pub(crate) fn ended(child: Child) -> (i32, String) {
    said(&child.wait_with_output().unwrap())
}

/// Waits for the end of a command, which must have this exit code. Returns what it printed.
#[track_caller]
pub(crate) fn ended_with(code: i32, child: Child) -> String {
    let (found, text) = ended(child);
    assert_eq!(found, code, "{text}");
    text
}
