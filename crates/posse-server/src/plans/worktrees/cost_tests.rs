//! What one task asks of git. A plan has hundreds of tasks, and every question takes as long as a process.

use std::fs::{self, File};
use std::time::SystemTime;

use super::tests::{gates, merged, run, words};
use super::*;
use crate::git::ASKED;
use crate::git::test_repo::{TestRepo, git_in, write};

/// A task from its work tree to its end, and what git was asked for in it.
async fn task(worktrees: &Worktrees, name: &str, gates: &Gates, work: impl FnOnce(&TaskWorktree)) -> Vec<String> {
    ASKED.take();
    let worktree = worktrees.begin(&run(name, 1), gates).await.unwrap();
    work(&worktree);
    assert!(worktrees.has_work(&worktree).await.unwrap());
    if !gates.commands.is_empty() {
        assert_eq!(worktrees.check(&worktree, &words(&worktree), gates).await.unwrap(), None);
    }
    merged(&worktrees.merge(&worktree, &words(&worktree), gates).await);
    worktrees.done_with(&[worktree.run]).await.unwrap();
    ASKED.take()
}

#[tokio::test]
async fn an_ordinary_task_asks_git_for_nothing_that_is_known() {
    let repo = TestRepo::new();
    let worktrees = repo.worktrees().await;
    let none = gates(&[]);
    let asked = task(&worktrees, "1", &none, |worktree| write(&worktree.directory, "one", "x\n")).await;
    assert_eq!(asked.iter().filter(|name| *name == "ls-tree").count(), 1, "submodules are looked for once: {asked:?}");

    let change = |worktree: &TaskWorktree| {
        write(&worktree.directory, "a", "changed\n");
        write(&worktree.directory, "two", "x\n");
    };
    let made = ["checkout"];
    let seen = ["status"];
    // Into a draft, which becomes the work tree's index.
    let final_commit = ["update-index", "commit"];
    let landed = ["merge"];
    // Whether all of it is committed; then it goes, and its branch.
    let removed = ["status", "update-ref"];
    let expected = [&made[..], &seen, &final_commit, &landed, &removed].concat();
    assert_eq!(task(&worktrees, "2", &none, change).await, expected);

    let commit = |worktree: &TaskWorktree| {
        write(&worktree.directory, "b", "by the session\n");
        git_in(&worktree.directory, &["commit", "--quiet", "-am", "by the session"]);
    };
    // Somebody else's commits have to be counted, and compared with the user's branch.
    let expected = [&made[..], &seen, &["rev-list"], &["diff-tree"], &landed, &removed].concat();
    assert_eq!(task(&worktrees, "3", &none, commit).await, expected);

    // The tree that a check is about, once.
    let expected = [&made[..], &seen, &final_commit, &["rev-parse"], &landed, &removed].concat();
    let asked =
        task(&worktrees, "4", &gates(&["test -e d/e"]), |worktree| write(&worktree.directory, "c", "x\n")).await;
    assert_eq!(asked, expected);
    assert_eq!((repo.status().as_str(), repo.git(&["worktree", "list"]).lines().count()), ("", 1));
    assert_eq!(repo.git(&["branch", "--format=%(refname:short)"]), "main");
}

#[tokio::test]
async fn a_submodule_that_came_with_a_task_is_found() {
    let repo = TestRepo::new();
    let worktrees = repo.worktrees().await;
    let head = repo.git(&["rev-parse", "HEAD"]);
    task(&worktrees, "1", &gates(&[]), |worktree| {
        git_in(&worktree.directory, &["update-index", "--add", "--cacheinfo", &format!("160000,{head},vendor/lib")]);
        git_in(&worktree.directory, &["commit", "--quiet", "-m", "a submodule"]);
        fs::create_dir_all(worktree.directory.join("vendor/lib")).unwrap();
    })
    .await;
    let refused = worktrees.begin(&run("2", 1), &gates(&[])).await.unwrap_err();
    assert!(refused.to_string().starts_with("vendor/lib is a repository within this one"), "{refused}");
}

/// Git takes a file that is as new as the index for one that may have changed. In a copy of the index it must do so too.
#[tokio::test]
async fn what_was_changed_in_the_instant_of_the_checkout_is_committed() {
    let repo = TestRepo::new();
    // Only size and time are left to tell by.
    repo.git(&["config", "core.trustctime", "false"]);
    repo.git(&["config", "core.checkStat", "minimal"]);
    let worktrees = repo.worktrees().await;
    let worktree = worktrees.begin(&run("1", 1), &gates(&[])).await.unwrap();
    let at =
        |path: &Path, time: SystemTime| File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
    let file = worktree.directory.join("a");
    let then = fs::metadata(&file).unwrap().modified().unwrap();
    write(&worktree.directory, "a", "9\n2\n3\n4\n5\n");
    at(&file, then);
    at(Path::new(&git_in(&worktree.directory, &["rev-parse", "--path-format=absolute", "--git-path", "index"])), then);
    merged(&worktrees.merge(&worktree, &words(&worktree), &gates(&[])).await);
    assert_eq!(repo.read("a").as_deref(), Some("9\n2\n3\n4\n5\n"));
}

/// New files are work, also for a user who does not want to be told of them.
#[tokio::test]
async fn an_area_with_new_files_stays_whatever_the_user_is_told_of() {
    let repo = TestRepo::new();
    repo.git(&["config", "status.showUntrackedFiles", "no"]);
    let worktrees = repo.worktrees().await;
    let worktree = worktrees.begin(&run("1", 1), &gates(&[])).await.unwrap();
    write(&worktree.directory, "b", "work\n");
    merged(&worktrees.merge(&worktree, &words(&worktree), &gates(&[])).await);
    write(&worktree.directory, "new", "by hand\n");
    worktrees.done_with(std::slice::from_ref(&worktree.run)).await.unwrap();
    let at_the_end = worktrees.tidy().await.unwrap();
    assert_eq!(at_the_end[0].why, "it has changes that are not committed: new; its task is not verified");
    assert_eq!(fs::read_to_string(worktree.directory.join("new")).unwrap(), "by hand\n");
}

/// What is checked out in the work tree counts, not what is checked out where git is asked.
#[tokio::test]
async fn work_without_a_branch_stays_though_the_user_looks_at_the_branch() {
    let repo = TestRepo::new();
    let worktrees = repo.worktrees().await;
    let worktree = worktrees.begin(&run("1", 1), &gates(&[])).await.unwrap();
    write(&worktree.directory, "b", "work\n");
    merged(&worktrees.merge(&worktree, &words(&worktree), &gates(&[])).await);
    // Not as git writes it.
    write(&worktree.directory, ".git", "gitdir: ../../../../project/.git/worktrees/1-1\n");
    git_in(&worktree.directory, &["checkout", "--quiet", "--detach"]);
    write(&worktree.directory, "b", "more\n");
    git_in(&worktree.directory, &["commit", "--quiet", "-am", "on no branch"]);
    repo.git(&["checkout", "--quiet", &worktree.branch]);
    worktrees.done_with(std::slice::from_ref(&worktree.run)).await.unwrap();
    let kept = worktrees.tidy().await.unwrap();
    assert!(kept[0].why.starts_with("what is checked out in it is not merged"), "{kept:?}");
    assert_eq!(fs::read_to_string(worktree.directory.join("b")).unwrap(), "more\n");
}
