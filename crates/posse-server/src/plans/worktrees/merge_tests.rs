//! Merging back: what others did stays, what the user has not committed stays, and after a crash it goes on.

use std::fs;
use std::time::Duration;

use posse_core::plan::machine::{GateFailure, MergeResult};

use super::tests::{begin, gates, merge, merged, words};
use super::*;
use crate::git::test_repo::{TestRepo, git_in, write};

#[track_caller]
fn not_now(result: &MergeResult) -> &str {
    match result {
        MergeResult::NotNow { why } => why,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn red(result: MergeResult) -> GateFailure {
    match result {
        MergeResult::RedTogether(failure) => failure,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn t78_edits_to_one_file_are_both_there() {
    let repo = TestRepo::new();
    let worktrees = repo.worktrees().await;
    let (one, two) = (begin(&worktrees, "1").await, begin(&worktrees, "2").await);
    write(&one.directory, "a", "one\n2\n3\n4\n5\n");
    write(&two.directory, "a", "1\n2\n3\n4\ntwo\n");
    let first = merge(&worktrees, &one).await;
    assert_eq!(merged(&first).len(), 1, "the branch was taken forward");
    let second = merge(&worktrees, &two).await;
    assert_eq!(merged(&second).len(), 1, "its own commit");
    assert_eq!(repo.read("a").unwrap(), "one\n2\n3\n4\ntwo\n");
    assert_eq!(repo.status(), "");
    assert_eq!(repo.git(&["log", "-1", "--format=%s|%(trailers:key=Run)"]).trim(), "task 2: Do it|Run: 2-1");
    // Asked again, also by whoever comes after a crash.
    let head = repo.git(&["rev-parse", "HEAD"]);
    let worktrees = repo.worktrees().await;
    assert_eq!((merge(&worktrees, &one).await, merge(&worktrees, &two).await), (first, second));
    assert_eq!(repo.git(&["rev-parse", "HEAD"]), head);
}

#[tokio::test]
async fn t79_what_was_deleted_meanwhile_stays_deleted() {
    let repo = TestRepo::new();
    let worktrees = repo.worktrees().await;
    let worktree = begin(&worktrees, "1").await;
    repo.git(&["rm", "--quiet", "c"]);
    repo.git(&["commit", "--quiet", "-m", "without c"]);
    write(&worktree.directory, "a", "work\n");
    fs::rename(worktree.directory.join("b"), worktree.directory.join("ein Ümlaut")).unwrap();
    std::os::unix::fs::symlink("a", worktree.directory.join("link")).unwrap();
    merged(&merge(&worktrees, &worktree).await);
    assert_eq!((repo.read("c"), repo.read("b")), (None, None));
    assert_eq!(repo.read("ein Ümlaut").unwrap(), "1\n2\n3\n4\n5\n");
    assert_eq!(fs::read_link(repo.root.join("link")).unwrap(), Path::new("a"));
    assert_eq!(repo.status(), "");
}

#[tokio::test]
async fn t80_a_conflict_merges_nothing_and_loses_nothing() {
    let repo = TestRepo::new();
    let worktrees = repo.worktrees().await;
    let worktree = begin(&worktrees, "1").await;
    write(&worktree.directory, "a", "mine\n");
    write(&worktree.directory, "b", "mine\n");
    repo.commit("a", "theirs\n");
    let head = repo.git(&["rev-parse", "HEAD"]);
    assert_eq!(merge(&worktrees, &worktree).await, MergeResult::Conflict { paths: vec!["a".into()] });
    assert_eq!((repo.git(&["rev-parse", "HEAD"]), repo.status()), (head, String::new()));
    assert_eq!(repo.git(&["show", "plan/p-1/1/1:a"]), "mine");
    assert_eq!(worktrees.tidy().await.unwrap()[0].why, "its work is not merged; its task is not verified");
}

#[tokio::test]
async fn nothing_of_the_users_is_written_over() {
    type Act = fn(&TestRepo);
    let cases: [(&str, Act, &str); 9] = [
        ("changed", |repo| write(&repo.root, "a", "user\n"), "a"),
        ("staged", |repo| drop((write(&repo.root, "a", "user\n"), repo.git(&["add", "a"]))), "a"),
        ("deleted", |repo| fs::remove_file(repo.root.join("a")).unwrap(), "a"),
        ("untracked", |repo| write(&repo.root, "new", "user\n"), "new"),
        ("ignored", |repo| write(&repo.root, "hidden", "user\n"), "hidden"),
        ("in an ignored directory", |repo| write(&repo.root, "dir/hidden", "user\n"), "dir/hidden"),
        ("a directory", |repo| write(&repo.root, "new/file", "user\n"), "new/file"),
        (
            "another repository",
            |repo| {
                write(&repo.root, "deep/user", "user\n");
                git_in(&repo.root.join("deep"), &["init", "--quiet"]);
            },
            "deep",
        ),
        ("a file for a directory", |repo| write(&repo.root, "deep", "user\n"), "deep"),
    ];
    for (name, act, path) in cases {
        let repo = TestRepo::new();
        repo.commit(".gitignore", "hidden\n");
        let worktrees = repo.worktrees().await;
        let worktree = begin(&worktrees, "1").await;
        for file in ["a", "new", "deep/er", "hidden", "dir/hidden"] {
            write(&worktree.directory, file, "work\n");
        }
        git_in(&worktree.directory, &["add", "--force", "."]);
        act(&repo);
        let files =
            |repo: &TestRepo| (repo.status(), repo.git(&["ls-files", "--stage"]), repo.read(path), repo.read("b"));
        let (before, head) = (files(&repo), repo.git(&["rev-parse", "HEAD"]));
        for _ in 0..2 {
            let result = merge(&worktrees, &worktree).await;
            assert!(
                not_now(&result).ends_with(&format!("commit them or put them elsewhere: {path}")),
                "{name}: {result:?}"
            );
            assert_eq!((files(&repo), repo.git(&["rev-parse", "HEAD"])), (before.clone(), head.clone()), "{name}");
        }
        // Out of the way, it is merged.
        repo.git(&["checkout", "--quiet", "HEAD", "--", "a"]);
        let _ = fs::remove_dir_all(repo.root.join("new"));
        let _ = fs::remove_dir_all(repo.root.join("deep"));
        for file in ["new", "deep", "hidden", "dir/hidden"] {
            let _ = fs::remove_file(repo.root.join(file));
        }
        merged(&merge(&worktrees, &worktree).await);
        assert_eq!((repo.read("hidden").as_deref(), repo.status().as_str()), (Some("work\n"), ""), "{name}");
    }
}

#[tokio::test]
async fn merge_waits_for_an_operation_of_the_user() {
    let repo = TestRepo::new();
    let worktrees = repo.worktrees().await;
    let worktree = begin(&worktrees, "1").await;
    write(&worktree.directory, "c", "work\n");
    repo.git(&["checkout", "--quiet", "-b", "other"]);
    repo.commit("a", "other\n");
    repo.git(&["checkout", "--quiet", "main"]);
    repo.commit("a", "main\n");
    for (command, what) in [("merge", "a merge"), ("rebase", "a rebase")] {
        assert!(!repo.try_git(&[command, "other"]));
        let before = (repo.status(), repo.git(&["rev-parse", "refs/heads/main"]));
        let result = merge(&worktrees, &worktree).await;
        assert!(not_now(&result).starts_with(&format!("{what} is under way in ")), "{result:?}");
        assert_eq!((repo.status(), repo.git(&["rev-parse", "refs/heads/main"])), before);
        repo.git(&[command, "--abort"]);
    }
    fs::write(repo.root.join(".git/index.lock"), "").unwrap();
    assert!(not_now(&merge(&worktrees, &worktree).await).contains("index.lock is there"));
    fs::remove_file(repo.root.join(".git/index.lock")).unwrap();
    merged(&merge(&worktrees, &worktree).await);
}

#[tokio::test]
async fn a_branch_that_is_not_checked_out_just_moves() {
    let repo = TestRepo::new();
    write(&repo.root, "c", "the user's\n");
    let worktrees = Worktrees::open(WorktreesParams { branch: Some("review".into()), ..repo.params() }).await.unwrap();
    let (one, two) = (begin(&worktrees, "1").await, begin(&worktrees, "2").await);
    write(&one.directory, "c", "work\n");
    write(&two.directory, "b", "work\n");
    let before = (repo.git(&["rev-parse", "main"]), repo.status());
    merged(&merge(&worktrees, &one).await);
    merged(&merge(&worktrees, &two).await);
    assert_eq!((repo.git(&["rev-parse", "main"]), repo.status()), before);
    assert_eq!((repo.git(&["show", "review:c"]).as_str(), repo.git(&["show", "review:b"]).as_str()), ("work", "work"));
    repo.git(&["branch", "--quiet", "-D", "review"]);
    let gone = worktrees.tip().await.unwrap_err().to_string();
    assert!(gone.starts_with("the branch refs/heads/review is gone"), "{gone}");
}

#[tokio::test]
async fn the_plan_file_is_not_merged() {
    let repo = TestRepo::new();
    repo.commit("plan.yaml", "status: pending\n");
    let params = WorktreesParams { plan_file: Some(repo.root.join("plan.yaml")), ..repo.params() };
    let worktrees = Worktrees::open(params).await.unwrap();
    let (one, two) = (begin(&worktrees, "1").await, begin(&worktrees, "2").await);
    for worktree in [&one, &two] {
        write(&worktree.directory, "plan.yaml", &format!("by {}\n", worktree.run));
        write(&worktree.directory, &format!("file-{}", worktree.run), "work\n");
    }
    write(&repo.root, "plan.yaml", "status: completed\n");
    merged(&merge(&worktrees, &one).await);
    repo.commit("plan.yaml", "status: verified\n");
    merged(&merge(&worktrees, &two).await);
    assert_eq!(repo.git(&["show", "HEAD:plan.yaml"]), "status: verified");
    assert_eq!((repo.read("file-1-1").is_some(), repo.read("file-2-1").is_some()), (true, true));
}

#[tokio::test]
async fn t83_green_alone_and_red_together() {
    let repo = TestRepo::new();
    let worktrees = repo.worktrees().await;
    let (one, two) = (begin(&worktrees, "1").await, begin(&worktrees, "2").await);
    write(&one.directory, "one", "x\n");
    write(&two.directory, "two", "x\n");
    let gates = gates(&["! test -e one || ! test -e two || { echo together; exit 3; }"]);
    for worktree in [&one, &two] {
        assert_eq!(worktrees.check(worktree, &words(worktree), &gates).await.unwrap(), None);
    }
    merged(&worktrees.merge(&one, &words(&one), &gates).await);
    let head = repo.git(&["rev-parse", "HEAD"]);
    let failure = red(worktrees.merge(&two, &words(&two), &gates).await);
    assert_eq!((failure.message.as_str(), failure.output.as_str()), ("exited with 3", "together"));
    assert_eq!(repo.git(&["rev-parse", "HEAD"]), head);
    assert_eq!(repo.git(&["worktree", "list"]).lines().count(), 4, "the bench is one");
    worktrees.tidy().await.unwrap();
    assert!(!worktrees.state.join("scratch").exists());
}

#[tokio::test]
async fn t50_what_was_red_before_does_not_count() {
    let repo = TestRepo::new();
    let worktrees = repo.worktrees().await;
    let worktree = begin(&worktrees, "1").await;
    write(&worktree.directory, "b", "work\n");
    let known = "echo 'test old ... FAILED'; exit 1";
    let with_new = "echo 'test old ... FAILED'; grep -q work b && echo 'test new ... FAILED'; exit 1";
    assert_eq!(worktrees.check(&worktree, &words(&worktree), &gates(&[known])).await.unwrap(), None);
    let failure = worktrees.check(&worktree, &words(&worktree), &gates(&[known, with_new])).await.unwrap().unwrap();
    assert_eq!(failure.message, "exited with 1; new: new");
}

#[tokio::test]
async fn a_check_gets_its_time_and_no_more_and_is_not_repeated() {
    let repo = TestRepo::new();
    let worktrees = repo.worktrees().await;
    let worktree = begin(&worktrees, "1").await;
    write(&worktree.directory, "b", "work\n");
    let count = repo.root.join(".git/count");
    let counting = gates(&[&format!("echo x >> {}; sleep 1000 & true", count.display())]);
    for _ in 0..2 {
        assert_eq!(worktrees.check(&worktree, &words(&worktree), &counting).await.unwrap(), None);
    }
    merged(&worktrees.merge(&worktree, &words(&worktree), &counting).await);
    assert_eq!(fs::read_to_string(count).unwrap(), "x\n", "these files were checked already");
    let slow = Gates { limit: Duration::from_millis(300), ..gates(&["sleep 1000"]) };
    let failure = worktrees.check(&worktree, &words(&worktree), &slow).await.unwrap().unwrap();
    assert!(failure.message.starts_with("did not end within 0 s"), "{failure:?}");
    let environment = gates(&["test -z \"$HOME\" && test -z \"$GIT_DIR\""]);
    assert_eq!(worktrees.check(&worktree, &words(&worktree), &environment).await.unwrap(), None);
}

#[tokio::test]
async fn a_merge_that_was_interrupted_is_finished() {
    for half in ["nothing written", "a file written", "all written", "in the index", "another file touched"] {
        let repo = TestRepo::new();
        let worktrees = repo.worktrees().await;
        let worktree = begin(&worktrees, "1").await;
        write(&worktree.directory, "a", "work\n");
        write(&worktree.directory, "new", "work\n");
        fs::remove_file(worktree.directory.join("b")).unwrap();
        let final_commit = worktrees.commit_leftovers(&worktree, &words(&worktree)).await.unwrap();
        if half != "nothing written" {
            write(&repo.root, "new", "work\n");
        }
        match half {
            "all written" | "in the index" => {
                write(&repo.root, "a", "work\n");
                fs::remove_file(repo.root.join("b")).unwrap();
            }
            "another file touched" => write(&repo.root, "a", "the user's\n"),
            _ => {}
        }
        if half == "in the index" {
            repo.git(&["add", "--all"]);
        }
        let before = repo.status();
        let result = merge(&repo.worktrees().await, &worktree).await;
        if half == "another file touched" {
            assert!(not_now(&result).ends_with(": a, new"), "{result:?}");
            assert_eq!((repo.status(), repo.read("a").as_deref()), (before, Some("the user's\n")));
        } else {
            assert_eq!(merged(&result), [final_commit.as_str()], "{half}");
            assert_eq!(repo.status(), "", "{half}");
        }
    }
}
