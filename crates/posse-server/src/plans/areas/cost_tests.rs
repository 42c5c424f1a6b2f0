//! What one task asks of git. A plan has hundreds of tasks, and every question takes as long as a process.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::time::SystemTime;

use super::tests::{Repo, gates, git_in, merged, run, words, write};
use super::*;
use crate::git::ASKED;

/// A task from its area to its end, and what git was asked for in it.
async fn task(areas: &Areas, name: &str, gates: &Gates, work: impl FnOnce(&Area)) -> Vec<String> {
    ASKED.take();
    let area = areas.begin(&run(name, 1), gates).await.unwrap();
    work(&area);
    assert!(areas.has_work(&area).await.unwrap());
    if !gates.commands.is_empty() {
        assert_eq!(areas.check(&area, &words(&area), gates).await, None);
    }
    merged(&areas.merge(&area, &words(&area), gates).await);
    assert_eq!(areas.done_with(&area.run).await.unwrap(), None);
    ASKED.take()
}

#[tokio::test]
async fn an_ordinary_task_asks_git_for_nothing_that_is_known() {
    let repo = Repo::new();
    let areas = repo.areas().await;
    let none = gates(&[]);
    let asked = task(&areas, "1", &none, |area| write(&area.directory, "one", "x\n")).await;
    assert_eq!(asked.iter().filter(|name| *name == "ls-tree").count(), 1, "submodules are looked for once: {asked:?}");

    let change = |area: &Area| {
        write(&area.directory, "a", "changed\n");
        write(&area.directory, "two", "x\n");
    };
    let made = ["worktree", "checkout"];
    let seen = ["status"];
    // Into a draft, which becomes the area's index.
    let sealed = ["update-index", "commit"];
    // Which files differ; what is in the way; forward.
    let landed = ["diff-tree", "status", "merge"];
    // Whether all of it is committed; then it goes, and its branch.
    let removed = ["status", "update-ref"];
    let expected = [&made[..], &seen, &sealed, &landed, &removed].concat();
    assert_eq!(task(&areas, "2", &none, change).await, expected);

    let commit = |area: &Area| {
        write(&area.directory, "b", "by the session\n");
        git_in(&area.directory, &["commit", "--quiet", "-am", "by the session"]);
    };
    // Somebody else's commits have to be counted, and compared with the user's branch.
    let expected = [&made[..], &seen, &["rev-list"], &["rev-list"], &landed, &removed].concat();
    assert_eq!(task(&areas, "3", &none, commit).await, expected);

    // The tree that a check is about, once.
    let expected = [&made[..], &seen, &sealed, &["rev-parse"], &landed, &removed].concat();
    let asked = task(&areas, "4", &gates(&["test -e d/e"]), |area| write(&area.directory, "c", "x\n")).await;
    assert_eq!(asked, expected);
    assert_eq!((repo.status().as_str(), repo.git(&["worktree", "list"]).lines().count()), ("", 1));
    assert_eq!(repo.git(&["branch", "--format=%(refname:short)"]), "main");
}

#[tokio::test]
async fn a_submodule_that_came_with_a_task_is_found() {
    let repo = Repo::new();
    let areas = repo.areas().await;
    let head = repo.git(&["rev-parse", "HEAD"]);
    task(&areas, "1", &gates(&[]), |area| {
        git_in(&area.directory, &["update-index", "--add", "--cacheinfo", &format!("160000,{head},vendor/lib")]);
        git_in(&area.directory, &["commit", "--quiet", "-m", "a submodule"]);
        fs::create_dir_all(area.directory.join("vendor/lib")).unwrap();
    })
    .await;
    let refused = areas.begin(&run("2", 1), &gates(&[])).await.unwrap_err();
    assert!(refused.to_string().starts_with("vendor/lib is a repository within this one"), "{refused}");
}

/// What the files say of a work tree is what git says, or nothing.
#[tokio::test]
async fn a_work_tree_is_known_by_its_files_only_where_git_knows_it_too() {
    let repo = Repo::new();
    let areas = repo.areas().await;
    let ours = areas.begin(&run("1", 1), &gates(&[])).await.unwrap();
    let other = areas.begin(&run("2", 1), &gates(&[])).await.unwrap();
    let by_git = async |directory: &Path| WorkTree::find(directory).await.unwrap();
    for directory in [&repo.root, &ours.directory, &other.directory] {
        let by_files = areas.home.beside(directory).await;
        assert!(by_files.is_some(), "{}", directory.display());
        assert_eq!(by_files, by_git(directory).await);
    }
    assert_eq!(areas.home.beside(&repo.root.join("d")).await, None);
    let linked = WorkTree::find(&ours.directory).await.unwrap().unwrap();
    assert_eq!(linked.beside(&other.directory).await, by_git(&other.directory).await);

    let dot_git = ours.directory.join(".git");
    let right = fs::read_to_string(&dot_git).unwrap();
    let unknown = async |what: &str| assert_eq!(areas.home.beside(&ours.directory).await, None, "{what}");
    fs::copy(other.directory.join(".git"), &dot_git).unwrap();
    unknown("it leads to the files of another").await;
    fs::write(&dot_git, format!("gitdir: {}\n", repo.root.join(".git").display())).unwrap();
    unknown("it leads to the user's checkout").await;
    fs::write(&dot_git, "gitdir: ../../../../../project/.git/worktrees/1-1\n").unwrap();
    unknown("it is not a full path").await;
    fs::remove_file(&dot_git).unwrap();
    unknown("it is gone").await;
    fs::create_dir(&dot_git).unwrap();
    unknown("it is a directory").await;
    fs::remove_dir(&dot_git).unwrap();
    fs::write(&dot_git, right).unwrap();
    assert!(areas.home.beside(&ours.directory).await.is_some());

    // Where a session could say that its files are the user's. Nobody reads it.
    repo.git(&["config", "extensions.worktreeConfig", "true"]);
    git_in(&ours.directory, &["config", "--worktree", "core.worktree", repo.root.to_str().unwrap()]);
    assert!(areas.home.beside(&ours.directory).await.is_some());
    assert!(!areas.has_work(&ours).await.unwrap());
}

/// Git takes a file that is as new as the index for one that may have changed. In a copy of the index it must do so too.
#[tokio::test]
async fn what_was_changed_in_the_instant_of_the_checkout_is_committed() {
    let repo = Repo::new();
    // Only size and time are left to tell by.
    repo.git(&["config", "core.trustctime", "false"]);
    repo.git(&["config", "core.checkStat", "minimal"]);
    let areas = repo.areas().await;
    let area = areas.begin(&run("1", 1), &gates(&[])).await.unwrap();
    let at =
        |path: &Path, time: SystemTime| File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
    let file = area.directory.join("a");
    let then = fs::metadata(&file).unwrap().modified().unwrap();
    write(&area.directory, "a", "9\n2\n3\n4\n5\n");
    at(&file, then);
    at(Path::new(&git_in(&area.directory, &["rev-parse", "--path-format=absolute", "--git-path", "index"])), then);
    merged(&areas.merge(&area, &words(&area), &gates(&[])).await);
    assert_eq!(repo.read("a").as_deref(), Some("9\n2\n3\n4\n5\n"));
}

/// New files are work, also for a user who does not want to be told of them.
#[tokio::test]
async fn an_area_with_new_files_stays_whatever_the_user_is_told_of() {
    let repo = Repo::new();
    repo.git(&["config", "status.showUntrackedFiles", "no"]);
    let areas = repo.areas().await;
    let area = areas.begin(&run("1", 1), &gates(&[])).await.unwrap();
    write(&area.directory, "b", "work\n");
    merged(&areas.merge(&area, &words(&area), &gates(&[])).await);
    write(&area.directory, "new", "by hand\n");
    let once = areas.done_with(&area.run).await.unwrap();
    let at_the_end = areas.tidy(&BTreeSet::new()).await.unwrap();
    assert_eq!(once.as_slice(), at_the_end);
    assert_eq!(at_the_end[0].why, "it has changes that are not committed: new");
    assert_eq!(fs::read_to_string(area.directory.join("new")).unwrap(), "by hand\n");
}

/// What is checked out in the area counts, not what is checked out where git is asked.
#[tokio::test]
async fn work_without_a_branch_stays_though_the_user_looks_at_the_branch() {
    let repo = Repo::new();
    let areas = repo.areas().await;
    let area = areas.begin(&run("1", 1), &gates(&[])).await.unwrap();
    write(&area.directory, "b", "work\n");
    merged(&areas.merge(&area, &words(&area), &gates(&[])).await);
    // An area that is not known by its files alone.
    write(&area.directory, ".git", "gitdir: ../../../../project/.git/worktrees/1-1\n");
    assert_eq!(areas.home.beside(&area.directory).await, None);
    git_in(&area.directory, &["checkout", "--quiet", "--detach"]);
    write(&area.directory, "b", "more\n");
    git_in(&area.directory, &["commit", "--quiet", "-am", "on no branch"]);
    repo.git(&["checkout", "--quiet", &area.branch]);
    let kept = areas.done_with(&area.run).await.unwrap().unwrap();
    assert_eq!(kept.why, "what is checked out in it is not merged");
    assert_eq!(fs::read_to_string(area.directory.join("b")).unwrap(), "more\n");
}
