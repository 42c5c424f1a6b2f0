//! Gits that a daemon which was killed has left running, and the locks of those that were killed with it.

use std::fs;
use std::process::{Child, Command};
use std::time::Duration;

use futures_util::FutureExt;
use posse_core::plan::machine::MergeResult;

use super::in_place::Traces;
use super::in_place_tests::in_place;
use super::tests::{Repo, begin, gates, git_in, merged, run, words, write};
use super::*;

/// Begins a commit whose hook waits for the file `go`, as a daemon before us did, and waits until the hook has begun.
fn commit_that_waits(repo: &Repo, directory: &Path) -> Child {
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
    let repo = Repo::new();
    let area = begin(&repo.areas().await, "1").await;
    write(&area.directory, "new", "work\n");
    let mut child = commit_that_waits(&repo, &area.directory);
    let areas = repo.areas().await;
    let words = words(&area);
    let mut seal = std::pin::pin!(areas.seal(&area, &words));
    git::ASKED.take();
    assert!((&mut seal).now_or_never().is_none(), "it waits");
    assert_eq!(git::ASKED.take(), [""; 0], "for that git, before any other");
    fs::write(repo.root.with_file_name("go"), "\n").unwrap();
    let sealed = tokio::time::timeout(Duration::from_secs(300), seal).await.expect("it ends").unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(git_in(&area.directory, &["log", "--format=%s %H", "main..HEAD"]), format!("ours {sealed}"));
    assert_eq!(
        fs::read_to_string(repo.root.with_file_name("hooks")).unwrap().lines().count(),
        1,
        "nobody else commits"
    );
    assert_eq!(git_in(&area.directory, &["status", "--porcelain"]), "");
}

fn lock(directory: &Path) -> PathBuf {
    let lock = git_in(directory, &["rev-parse", "--path-format=absolute", "--git-path", "index.lock"]);
    fs::write(&lock, "").unwrap();
    lock.into()
}

#[tokio::test]
async fn the_lock_of_a_git_that_died_goes() {
    let repo = Repo::new();
    let areas = repo.areas().await;
    let gates = gates(&["test -e a"]);
    let (one, two) = (begin(&areas, "1").await, begin(&areas, "2").await);
    write(&one.directory, "one", "x\n");
    write(&two.directory, "two", "x\n");
    let in_area = lock(&one.directory);
    assert_eq!(areas.check(&one, &words(&one), &gates).await, None, "in the area");
    assert!(!in_area.exists());
    merged(&areas.merge(&one, &words(&one), &gates).await);
    // The bench is used for what both give together.
    areas.check(&two, &words(&two), &gates).await;
    let bench = areas.bench_directory();
    git_in(&repo.root, &["worktree", "add", "--quiet", "--detach", bench.to_str().unwrap()]);
    let on_bench = lock(&bench);
    merged(&areas.merge(&two, &words(&two), &gates).await);
    assert!(!on_bench.exists());
    // While an area is furnished.
    let mut half = areas.known(&run("2", 1)).await.unwrap();
    half.ready = false;
    areas.write_note(&run("2", 1), &half).await.unwrap();
    let in_half = lock(&two.directory);
    areas.make(&run("2", 1), &two.base).await.unwrap();
    assert!(!in_half.exists());
}

#[tokio::test]
async fn the_lock_of_one_that_works_stays() {
    let repo = Repo::new();
    let areas = repo.areas().await;
    let area = begin(&areas, "1").await;
    write(&area.directory, "new", "work\n");
    let mut child = commit_that_waits(&repo, &area.directory);
    let tree = areas.tree(&area).await.unwrap();
    let lock = lock(&area.directory);
    let mut unlock = std::pin::pin!(tree.unlock());
    assert!((&mut unlock).now_or_never().is_none() && lock.exists());
    fs::remove_file(&lock).unwrap();
    fs::write(repo.root.with_file_name("go"), "\n").unwrap();
    unlock.await;
    assert!(child.wait().unwrap().success());
}

/// In the user's checkout it may be the user's git, and is not touched. It is not the session's fault.
#[tokio::test]
async fn a_lock_in_the_users_checkout_is_nobodys_failure() {
    let repo = Repo::new();
    let areas = Areas::open(in_place(&repo)).await.unwrap();
    areas.may_begin(false, None).await.unwrap();
    let area = areas.begin(&run("1", 1), &gates(&[])).await.unwrap();
    write(&repo.root, "new", "work\n");
    assert_eq!(areas.session_over(&area.run, &area).await.unwrap(), Traces::default());
    let lock = lock(&repo.root);
    let checked = areas.check_unless_stopped(&area, &words(&area), &gates(&[])).await;
    assert!(matches!(&checked, Err(NotChecked::Unable(why)) if why.contains("another git is at work")), "{checked:?}");
    assert!(matches!(areas.merge(&area, &words(&area), &gates(&[])).await, MergeResult::NotNow { .. }));
    fs::remove_file(&lock).unwrap();
    assert_eq!(areas.check(&area, &words(&area), &gates(&[])).await, None);
}

/// Whose fault it is that work was not committed: of all that git may say, only what it says about the work is the author's.
#[test]
fn only_a_refusal_is_the_authors_fault() {
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

/// What a hook says about the work is for its author.
#[tokio::test]
async fn a_hook_that_refuses_the_work_is_a_failed_check() {
    let repo = Repo::new();
    let areas = repo.areas().await;
    let area = begin(&areas, "1").await;
    write(&area.directory, "new", "work\n");
    repo.hook("pre-commit", "echo no; exit 1");
    let failure = areas.check(&area, &words(&area), &gates(&[])).await.unwrap();
    assert_eq!((failure.gate.as_str(), failure.output.ends_with("no")), ("commit", true), "{failure:?}");
}
