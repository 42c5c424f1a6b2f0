//! Repositories that have lost objects.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{ask, write_files};

fn git(directory: &Path, arguments: &[&str]) -> String {
    let ran = Command::new("git").current_dir(directory).args(arguments).output().unwrap();
    assert!(ran.status.success(), "{arguments:?}: {ran:?}");
    String::from_utf8(ran.stdout).unwrap().trim().to_owned()
}

/// A repository with one commit, in which the file d/a is.
fn repository() -> (tempfile::TempDir, PathBuf) {
    let temporary = tempfile::tempdir().unwrap();
    let root = temporary.path().join("repository");
    std::fs::create_dir_all(root.join("d")).unwrap();
    std::fs::write(root.join("d/a"), "hello").unwrap();
    git(&root, &["init", "-q", "-b", "main"]);
    git(&root, &["add", "."]);
    git(&root, &["-c", "user.name=x", "-c", "user.email=x@example.com", "commit", "-qm", "one"]);
    (temporary, root)
}

#[tokio::test]
async fn a_missing_object_is_explained_with_what_to_do() {
    for lost in ["HEAD:d/a", "HEAD:d", "HEAD"] {
        let (_temporary, root) = repository();
        let object = git(&root, &["rev-parse", lost]);
        std::fs::remove_file(root.join(".git/objects").join(&object[..2]).join(&object[2..])).unwrap();
        let error = match lost {
            "HEAD" => ask(&root, &["log", "-1", "HEAD"]).await.unwrap_err(),
            _ => write_files(&root, &["worktree", "add", "-q", "--detach", "../area"]).await.unwrap_err(),
        };
        let error = error.to_string();
        assert!(error.contains("git fsck --full") && error.contains("git fetch --refetch"), "{lost}: {error}");
    }
}

#[tokio::test]
async fn other_failures_are_told_in_the_words_of_git() {
    let (_temporary, root) = repository();
    let error = ask(&root, &["rev-parse", "--verify", "no-such-branch"]).await.unwrap_err().to_string();
    assert!(!error.contains("fsck"), "{error}");
}
