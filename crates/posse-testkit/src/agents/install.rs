//! Installs agents from npm in pinned versions, once per version, in separate directories.

use std::cell::RefCell;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Arc, Weak};

use super::Agent;

const NO_NETWORK: [&str; 7] =
    ["ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ECONNRESET", "ENETUNREACH", "EHOSTUNREACH", "ETIMEDOUT"];

#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    #[error("reach npm: {0}")]
    Unreachable(String),
    #[error("install {0}")]
    Failed(String),
}

/// Installs a package from npm if it is missing, and returns the path of its program. Concurrent callers wait.
pub(super) fn installed(package: &str, version: &str, program: &str) -> Result<PathBuf, InstallError> {
    let cache = cache();
    let fails = |error: io::Error| InstallError::Failed(format!("into {}: {error}", cache.display()));
    let name = format!("{}-{version}", package.rsplit('/').next().unwrap_or(package));
    let directory = cache.join(&name);
    let program = Path::new("node_modules/.bin").join(program);
    let installed = directory.join(&program);
    if installed.exists() {
        return Ok(installed);
    }
    fs::create_dir_all(&cache).map_err(fails)?;
    // The kernel releases the lock with the process; the file stays for the next lock.
    let lock = File::create(cache.join(format!("{name}.lock"))).map_err(fails)?;
    lock.lock().map_err(fails)?;
    if !installed.exists() {
        let unfinished = tempfile::Builder::new().prefix(".unfinished-").tempdir_in(&cache).map_err(fails)?;
        npm(unfinished.path(), &format!("{package}@{version}"))?;
        check(unfinished.path(), &unfinished.path().join(&program), package, version)?;
        fs::rename(unfinished.path(), &directory).map_err(fails)?;
    }
    Ok(installed)
}

fn npm(directory: &Path, package: &str) -> Result<(), InstallError> {
    let mut npm = Command::new("npm");
    npm.args(["install", "--no-save", "--no-package-lock", "--no-audit", "--no-fund", "--loglevel=error"]);
    // Two packages fetch or link their binary in a script. On an offline machine npm should fail quickly.
    npm.args(["--ignore-scripts=false", "--fetch-retries=1", "--fetch-retry-mintimeout=1000", "--prefix", "."]);
    let ran = npm.arg(package).current_dir(directory).output();
    let ran = ran.map_err(|error| InstallError::Unreachable(format!("cannot run npm: {error}")))?;
    if ran.status.success() {
        return Ok(());
    }
    let output = text(&ran);
    match output.lines().find(|line| NO_NETWORK.iter().any(|word| line.contains(word))) {
        Some(line) => Err(InstallError::Unreachable(line.to_owned())),
        None => Err(InstallError::Failed(format!("{package}: {output}"))),
    }
}

/// Checks that the program runs, and has the wanted version.
fn check(directory: &Path, program: &Path, package: &str, version: &str) -> Result<(), InstallError> {
    let runs = || {
        let ran = Command::new(program).arg("--version").env("HOME", directory).output();
        let said = ran.map_or_else(|error| error.to_string(), |ran| text(&ran));
        if said.contains(version) { Ok(()) } else { Err(said) }
    };
    if runs().is_ok() {
        return Ok(());
    }
    // If scripts are disabled, Claude Code's script must be run by hand.
    let script = directory.join("node_modules").join(package).join("install.cjs");
    if script.exists() {
        let _ = Command::new("node").arg(&script).current_dir(directory).output();
    }
    runs().map_err(|output| InstallError::Failed(format!("{package}, which does not run: {output}")))
}

fn text(ran: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr))
}

thread_local! {
    static HELD: RefCell<Weak<File>> = const { RefCell::new(Weak::new()) };
}

/// Returns the machine-wide lock that this thread already has, or waits for it. It is held until the last clone is
/// dropped. The kernel also releases it with the process.
#[track_caller]
pub(super) fn lock() -> Arc<File> {
    if let Some(held) = HELD.with_borrow(Weak::upgrade) {
        return held;
    }
    let path = cache().join("turn.lock");
    let lock = File::create(&path).and_then(|file| file.lock().map(|()| file));
    let lock = Arc::new(lock.unwrap_or_else(|error| panic!("cannot lock {}: {error}", path.display())));
    HELD.set(Arc::downgrade(&lock));
    lock
}

/// Returns `$POSSE_TEST_AGENTS`, or a directory beside cargo's output.
fn cache() -> PathBuf {
    let given = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let target =
        || given("CARGO_TARGET_DIR").unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target"));
    let cache = given("POSSE_TEST_AGENTS").unwrap_or_else(|| target().join("agents"));
    // Agents are started from other directories.
    std::path::absolute(&cache).unwrap_or(cache)
}

/// Returns whether a missing agent is a failure. In CI a skipped test would hide a gap.
fn required() -> bool {
    let set = |name| std::env::var(name).is_ok_and(|value| !matches!(value.as_str(), "" | "0" | "false"));
    set("CI") || set("POSSE_REQUIRE_AGENTS")
}

/// Returns the installed agent. If npm is unreachable, prints one line with the reason and returns `None`. Every other
/// failure fails the test, and so does this one if `CI` or `POSSE_REQUIRE_AGENTS=1` is set. No other real agent runs on
/// this machine until the test is over: see [`Agent::alone`].
#[track_caller]
pub fn or_skip(installed: Result<Agent, InstallError>) -> Option<Agent> {
    match installed {
        Ok(agent) => Some(agent.alone()),
        Err(error @ InstallError::Unreachable(_)) if !required() => {
            println!("SKIPPED, because we could not {error}");
            None
        }
        Err(error) => panic!("could not {error}"),
    }
}
