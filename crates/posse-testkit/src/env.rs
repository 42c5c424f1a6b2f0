//! A hermetic home for one test.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use posse_api::Health;
use posse_core::ids::TerminalId;
use posse_term::paths::Paths;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::{http, process};

/// A temporary home. Dropping the value ends every process in it, and panics if one cannot be ended.
pub struct TestEnv {
    directory: TempDir,
    posse: PathBuf,
    paths: Paths,
}

#[derive(Debug)]
pub struct Ran {
    pub stdout: String,
    pub stderr: String,
    pub code: Option<i32>,
}

impl Ran {
    #[track_caller]
    pub fn ok(self) -> String {
        self.ends(0).stdout
    }

    #[track_caller]
    pub fn ends(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self:#?}");
        self
    }

    /// Asserts that standard output contains all of these texts.
    #[track_caller]
    pub fn prints(self, words: &[&str]) -> Self {
        assert_has(&self.stdout, words, &self);
        self
    }

    /// Asserts that standard error contains all of these texts.
    #[track_caller]
    pub fn complains(self, words: &[&str]) -> Self {
        assert_has(&self.stderr, words, &self);
        self
    }

    #[track_caller]
    pub fn json(self) -> serde_json::Value {
        let text = self.ok();
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("no JSON ({error}): {text}"))
    }
}

#[track_caller]
fn assert_has(text: &str, words: &[&str], ran: &Ran) {
    for word in words {
        assert!(text.contains(word), "{word:?} is missing: {ran:#?}");
    }
}

impl TestEnv {
    #[allow(clippy::unwrap_used)]
    pub fn new(posse: impl AsRef<Path>) -> Self {
        let directory = tempfile::Builder::new().prefix("posse-test-").tempdir().unwrap();
        let home = directory.path().join("home");
        std::fs::create_dir(&home).unwrap();
        std::fs::set_permissions(&home, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
        std::fs::create_dir(directory.path().join("work")).unwrap();
        let value = home.into_os_string();
        let paths = Paths::resolve(|name| (name == "POSSE_HOME").then(|| value.clone())).unwrap();
        Self { directory, posse: posse.as_ref().to_owned(), paths }
    }

    pub fn paths(&self) -> &Paths {
        &self.paths
    }

    pub fn posse_path(&self) -> &Path {
        &self.posse
    }

    pub fn work(&self) -> PathBuf {
        self.directory.path().join("work")
    }

    /// Returns a command of the program under test, with a fixed environment.
    pub fn command<I: IntoIterator<Item: AsRef<OsStr>>>(&self, arguments: I) -> Command {
        let mut command = Command::new(&self.posse);
        command.args(arguments);
        self.dress(&mut command);
        command
    }

    pub fn shell(&self, line: &str) -> Command {
        let mut command = Command::new("bash");
        command.args(["-c", line]);
        self.dress(&mut command);
        command
    }

    fn dress(&self, command: &mut Command) {
        let path = std::env::var_os("PATH").unwrap_or_default();
        command.current_dir(self.work()).env_clear();
        command.env("PATH", path).env("HOME", self.directory.path()).env("POSSE_HOME", &self.paths.home);
        command.env("TZ", "UTC").env("LANG", "C.UTF-8");
    }

    #[track_caller]
    pub fn run<I: IntoIterator<Item: AsRef<OsStr>>>(&self, arguments: I) -> Ran {
        let output = self.command(arguments).stdin(std::process::Stdio::null()).output();
        let Output { status, stdout, stderr } = output.unwrap_or_else(|error| panic!("cannot run posse: {error}"));
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Ran { stdout: text(stdout), stderr: text(stderr), code: status.code() }
    }

    #[track_caller]
    pub fn launch(&self, arguments: &[&str]) -> TerminalId {
        let all = ["launch", "--size", "80x24", "--"].iter().chain(arguments);
        let id = self.run(all).ok();
        id.trim().parse().unwrap_or_else(|error| panic!("no id: {error}"))
    }

    /// Makes `posse actor` play this scenario in place of a provider's program. Returns the log of the agent.
    #[allow(clippy::unwrap_used)]
    pub fn script_agent(&self, provider: &str, scenario: &str) -> PathBuf {
        let directory = self.paths.providers();
        std::fs::create_dir_all(&directory).unwrap();
        let file = directory.join(format!("{provider}.scenario"));
        let log = directory.join(format!("{provider}.jsonl"));
        std::fs::write(&file, format!("log = {log:?}\n{scenario}")).unwrap();
        let manifest = format!(
            "[launch]\nprogram = {:?}\nalways = {{ arguments = [\"actor\", {file:?}] }}\n\
             modes = {{ ask = {{ arguments = [] }}, edits = {{ arguments = [] }} }}\n\
             hooks = {{ events = [], arguments = [] }}\ntrusted = {{ arguments = [] }}\n",
            self.posse
        );
        std::fs::write(directory.join(format!("{provider}.toml")), manifest).unwrap();
        log
    }

    pub fn http(&self) -> http::Client {
        http::Client::new(self.paths.daemon_socket())
    }

    #[track_caller]
    pub fn daemon_pid(&self) -> u32 {
        let health: Health = self.http().get("/health").unwrap_or_else(|error| panic!("no daemon: {error}"));
        health.pid
    }

    #[track_caller]
    pub fn kill_daemon(&self) -> u32 {
        let pid = self.daemon_pid();
        kill(pid);
        assert!(process::ends(pid), "the daemon does not die");
        pid
    }

    pub fn keeper_pid(&self) -> Option<u32> {
        process::all().into_iter().find(|p| p.is_keeper_of(&self.paths.home)).map(|p| p.pid)
    }

    pub fn processes(&self) -> Vec<process::Process> {
        process::all().into_iter().filter(|p| p.variable("POSSE_HOME").as_deref() == self.paths.home.to_str()).collect()
    }
}

impl Drop for TestEnv {
    fn drop(&mut self) {
        // Ask first, then kill: a failed test must not leave processes either.
        if self.paths.holds_terminals() {
            let _ = self.command(["stop", "--all"]).output();
        }
        let mut left = self.processes();
        // Files are closed, and locks freed, a moment before a process leaves the process table.
        left.retain(|process| !process::ends_within(process.pid, Duration::from_secs(60)));
        for process in &left {
            kill(process.pid);
        }
        let _ = std::fs::remove_dir_all(&self.paths.runtime);
        if !left.is_empty() && !std::thread::panicking() {
            let log = std::fs::read_to_string(self.paths.log()).unwrap_or_default();
            let end: Vec<&str> = log.lines().rev().take(40).collect();
            panic!("`posse stop --all` left processes behind: {left:#?}\nits log, newest first: {end:#?}");
        }
    }
}

pub fn kill(pid: u32) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, Signal::KILL);
    }
}
