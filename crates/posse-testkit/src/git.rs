//! Git repositories for tests.

use std::path::Path;
use std::process::Command;

/// Runs git, which must succeed, and returns its output.
#[track_caller]
#[allow(clippy::unwrap_used)]
pub fn git(directory: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git").args(arguments).current_dir(directory).output().unwrap();
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Makes a directory a repository with one commit of its whole content.
#[track_caller]
pub fn commit_all(directory: &Path) {
    git(directory, &["init", "-q", "-b", "main"]);
    git(directory, &["config", "user.name", "U"]);
    git(directory, &["config", "user.email", "u@example.org"]);
    git(directory, &["add", "-A"]);
    git(directory, &["commit", "-q", "--allow-empty", "-m", "first"]);
}

#[track_caller]
#[allow(clippy::unwrap_used)]
pub fn copy_example(directory: &Path) {
    let example = crate::docs::root().join("examples/plan/.");
    assert!(Command::new("cp").arg("-r").arg(example).arg(directory).status().unwrap().success());
}
