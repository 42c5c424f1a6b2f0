//! Gits that a daemon which was killed has left running, and the locks of those that were killed with it.

use std::fs;
use std::process::{Child, Command};
use std::time::Duration;

use futures_util::FutureExt;
use posse_core::plan::machine::MergeResult;

use super::in_place::Traces;
use super::in_place_tests::in_place;
use super::tests::{begin, gates, merged, run, words};
use super::*;
use crate::git::test_repo::{TestRepo, git_in, write};

/// Begins a commit whose hook waits for the file `go`, as a daemon before us did, and waits until the hook has begun.
fn commit_that_waits(repo: &TestRepo, directory: &Path) -> Child {
    let place = repo.root.parent().unwrap().display();
    let fifo = repo.root.with_file_name("go");
    assert!(Command::new("mkfifo").arg(&fifo).arg(repo.root.with_file_name("begun")).status().unwrap().success());
    repo.hook("pre-commit", &format!("echo >> {place}/hooks; echo > {place}/begun; read line < {place}/go"));
    git_in(directory, &["add", "."]);
    let mut command = Command::new("git");
    let child = command.args(["commit", "--quiet", "-m", "ours"]).current_dir(directory).spawn().unwrap();
    fs::read(repo.root.with_file_name("begun")).unwrap();
    child
}

#[tokio::test]
async fn a_commit_that_outlived_its_daemon_is_waited_for() {
    let repo = TestRepo::new();
    let worktree = begin(&repo.worktrees().await, "1").await;
    write(&worktree.directory, "new", "work\n");
    let mut child = commit_that_waits(&repo, &worktree.directory);
    let worktrees = repo.worktrees().await;
    let words = words(&worktree);
    let mut commit_leftovers = std::pin::pin!(worktrees.commit_leftovers(&worktree, &words));
    git::ASKED.take();
    assert!((&mut commit_leftovers).now_or_never().is_none(), "it waits");
    assert_eq!(git::ASKED.take(), [""; 0], "for that git, before any other");
    fs::write(repo.root.with_file_name("go"), "\n").unwrap();
    let final_commit =
        tokio::time::timeout(Duration::from_secs(300), commit_leftovers).await.expect("it ends").unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(git_in(&worktree.directory, &["log", "--format=%s %H", "main..HEAD"]), format!("ours {final_commit}"));
    assert_eq!(
        fs::read_to_string(repo.root.with_file_name("hooks")).unwrap().lines().count(),
        1,
        "nobody else commits"
    );
    assert_eq!(git_in(&worktree.directory, &["status", "--porcelain"]), "");
}

fn lock(directory: &Path) -> PathBuf {
    let lock = git_in(directory, &["rev-parse", "--path-format=absolute", "--git-path", "index.lock"]);
    fs::write(&lock, "").unwrap();
    lock.into()
}

#[tokio::test]
async fn lock_of_a_dead_git_is_removed() {
    let repo = TestRepo::new();
    let worktrees = repo.worktrees().await;
    let gates = gates(&["test -e a"]);
    let (one, two) = (begin(&worktrees, "1").await, begin(&worktrees, "2").await);
    write(&one.directory, "one", "x\n");
    write(&two.directory, "two", "x\n");
    let in_area = lock(&one.directory);
    assert_eq!(worktrees.check(&one, &words(&one), &gates).await.unwrap(), None, "in the area");
    assert!(!in_area.exists());
    merged(&worktrees.merge(&one, &words(&one), &gates).await);
    // The scratch work tree is used for what both give together.
    worktrees.check(&two, &words(&two), &gates).await.unwrap();
    let scratch = worktrees.scratch_directory();
    git_in(&repo.root, &["worktree", "add", "--quiet", "--detach", scratch.to_str().unwrap()]);
    let on_scratch = lock(&scratch);
    merged(&worktrees.merge(&two, &words(&two), &gates).await);
    assert!(!on_scratch.exists());
    // While a work tree is furnished.
    let mut half = worktrees.known_record(&run("2", 1)).await.unwrap();
    half.ready = false;
    worktrees.write_record(&half).await.unwrap();
    let in_half = lock(&two.directory);
    worktrees.make(&run("2", 1)).await.unwrap();
    assert!(!in_half.exists());
}

#[tokio::test]
async fn lock_of_a_running_git_stays() {
    let repo = TestRepo::new();
    let worktrees = repo.worktrees().await;
    let worktree = begin(&worktrees, "1").await;
    write(&worktree.directory, "new", "work\n");
    let mut child = commit_that_waits(&repo, &worktree.directory);
    let tree = worktrees.tree(&worktree).await.unwrap();
    let lock = lock(&worktree.directory);
    let mut unlock = std::pin::pin!(tree.unlock());
    assert!((&mut unlock).now_or_never().is_none() && lock.exists());
    fs::remove_file(&lock).unwrap();
    fs::write(repo.root.with_file_name("go"), "\n").unwrap();
    unlock.await;
    assert!(child.wait().unwrap().success());
}

/// In the user's checkout it may be the user's git, and is not touched. It is not the session's fault.
#[tokio::test]
async fn lock_in_the_users_checkout_is_not_a_failed_check() {
    let repo = TestRepo::new();
    let worktrees = Worktrees::open(in_place(&repo)).await.unwrap();
    worktrees.may_begin(false, None).await.unwrap();
    let worktree = worktrees.begin(&run("1", 1), &gates(&[])).await.unwrap();
    write(&repo.root, "new", "work\n");
    assert_eq!(worktrees.session_over(&worktree.run, &worktree).await.unwrap(), Traces::default());
    let lock = lock(&repo.root);
    let checked = worktrees.check(&worktree, &words(&worktree), &gates(&[])).await;
    assert!(matches!(&checked, Err(why) if why.to_string().contains("another git is at work")), "{checked:?}");
    assert!(matches!(worktrees.merge(&worktree, &words(&worktree), &gates(&[])).await, MergeResult::NotNow { .. }));
    fs::remove_file(&lock).unwrap();
    assert_eq!(worktrees.check(&worktree, &words(&worktree), &gates(&[])).await.unwrap(), None);
}

/// Whose fault it is that work was not committed: of all that git may say, only what it says about the work is the author's.
#[test]
fn only_a_refused_commit_is_the_authors_fault() {
    let refused = GitError::Failed { command: "commit".into(), words: "no".into() };
    for (error, authors) in [
        (refused, true),
        (GitError::Locked("index.lock".into()), false),
        (GitError::Moved, false),
        (GitError::Child("git did not end within 600 s".into()), false),
    ] {
        let text = error.to_string();
        assert_eq!(at_fault(&not_committed(Some(error), text.clone())).is_some(), authors, "{text}");
    }
}
