//! With the real git, in repositories of the tests' own.

use std::fs;
use std::process::Command;
use std::time::Duration;

use posse_core::plan::file::{Gate, GateWhen};
use posse_core::plan::machine::{GateFailure, MergeResult};
use posse_core::plan::names::commit_message;

use super::*;
use crate::git::test_repo::{TestRepo, git_in, write};

impl TestRepo {
    pub(crate) fn params(&self) -> WorktreesParams {
        WorktreesParams {
            directory: self.root.clone(),
            state: self.place.path().join("state"),
            plan_slug: "p-1".into(),
            branch: None,
            make_branch: true,
            isolation: Isolation::Worktree,
            plan_file: None,
        }
    }

    pub(crate) async fn worktrees(&self) -> Worktrees {
        Worktrees::open(self.params()).await.unwrap()
    }
}

pub(crate) fn run(task: &str, start: u32) -> RunId {
    RunId { task: task.parse().unwrap(), start, part: Part::Work }
}

pub(crate) fn words(worktree: &TaskWorktree) -> String {
    commit_message("The plan", (&worktree.run.task, "Do it"), &worktree.run.to_string(), 1)
}

pub(crate) fn gates(commands: &[&str]) -> Gates {
    let gate = |command: &&str| Gate { name: "check".into(), command: (*command).into(), when: GateWhen::AfterTask };
    Gates {
        commands: commands.iter().map(gate).collect(),
        limit: Duration::from_secs(300),
        environment: vec![("PATH".into(), std::env::var("PATH").unwrap())],
        stop: None,
    }
}

pub(crate) async fn begin(worktrees: &Worktrees, task: &str) -> TaskWorktree {
    worktrees.make(&run(task, 1)).await.unwrap()
}

pub(crate) async fn merge(worktrees: &Worktrees, worktree: &TaskWorktree) -> MergeResult {
    worktrees.merge(worktree, &words(worktree), &gates(&[])).await
}

#[track_caller]
pub(crate) fn merged(result: &MergeResult) -> &[String] {
    match result {
        MergeResult::Merged { commits } => commits,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn work_tree_is_made_once() {
    let repo = TestRepo::new();
    let worktrees = repo.worktrees().await;
    let worktree = begin(&worktrees, "1.1").await;
    assert_eq!(worktree.branch, "plan/p-1/1.1/1");
    assert!(worktree.directory.ends_with("state/worktrees/p-1/1.1-1"), "{}", worktree.directory.display());
    assert_eq!(git_in(&worktree.directory, &["status", "--porcelain", "--branch"]), "## plan/p-1/1.1/1");
    assert_eq!(fs::read_to_string(worktree.directory.join("d/e")).unwrap(), "1\n2\n3\n4\n5\n");

    write(&worktree.directory, "a", "work\n");
    repo.commit("b", "others\n");
    // After a crash, by whoever comes next.
    let again = begin(&repo.worktrees().await, "1.1").await;
    assert_eq!(again, worktree);
    assert_eq!(fs::read_to_string(worktree.directory.join("a")).unwrap(), "work\n");
    let validator = RunId { part: Part::Validation { validator: 0, time: 1 }, ..run("1.1", 1) };
    assert_eq!(worktrees.find(&validator).await.unwrap(), worktree);
    assert!(matches!(worktrees.find(&run("1.1", 2)).await, Err(WorktreeError::NotMade(_))));
}

/// Settings of the work tree that a run began in are also those of its work trees, as with `git worktree add`.
#[tokio::test]
async fn work_tree_has_the_settings_of_the_users() {
    let repo = TestRepo::new();
    let linked = repo.place.path().join("linked");
    repo.git(&["config", "extensions.worktreeConfig", "true"]);
    repo.git(&["worktree", "add", "--quiet", "-b", "side", linked.to_str().unwrap()]);
    git_in(&linked, &["config", "--worktree", "user.name", "another name"]);
    let params = WorktreesParams { directory: linked, ..repo.params() };
    let worktree = begin(&Worktrees::open(params).await.unwrap(), "1").await;
    assert_eq!(git_in(&worktree.directory, &["config", "--worktree", "user.name"]), "another name");
}

#[tokio::test]
async fn half_made_work_tree_is_completed() {
    for half in ["the note", "the branch", "the directory", "some files"] {
        let repo = TestRepo::new();
        let worktrees = repo.worktrees().await;
        let base = worktrees.tip().await.unwrap();
        let record = worktrees.unused(&run("1", 1), &base).await.unwrap();
        worktrees.write_record(&record).await.unwrap();
        let directory = record.worktree.directory.to_str().unwrap();
        match half {
            "the branch" => drop(repo.git(&["branch", &record.worktree.branch, &base])),
            "the directory" | "some files" => {
                fs::create_dir_all(record.worktree.directory.parent().unwrap()).unwrap();
                repo.git(&[
                    "worktree",
                    "add",
                    "--quiet",
                    "--no-checkout",
                    "-b",
                    &record.worktree.branch,
                    directory,
                    &base,
                ]);
            }
            _ => {}
        }
        if half == "some files" {
            write(&record.worktree.directory, "a", "1\n2\n");
        }
        let worktree = begin(&worktrees, "1").await;
        assert_eq!(
            (worktree.directory.to_str().unwrap(), &worktree.branch),
            (directory, &record.worktree.branch),
            "{half}"
        );
        assert_eq!(git_in(&worktree.directory, &["status", "--porcelain"]), "", "{half}");
        fs::remove_dir_all(&worktree.directory).unwrap();
        begin(&worktrees, "1").await;
        assert_eq!(git_in(&worktree.directory, &["status", "--porcelain"]), "", "removed, after {half}");
    }
}

#[tokio::test]
async fn t81_what_is_there_under_a_name_is_left_alone() {
    let repo = TestRepo::new();
    repo.git(&["checkout", "--quiet", "-b", "plan/p-1/1.1/1"]);
    repo.commit("a", "work of a run that nobody remembers\n");
    let theirs = repo.git(&["rev-parse", "HEAD"]);
    repo.git(&["checkout", "--quiet", "main"]);
    let worktrees = repo.worktrees().await;
    let worktree = begin(&worktrees, "1.1").await;
    assert_eq!(worktree.branch, "plan/p-1/1.1/1-2");
    assert_eq!(repo.git(&["rev-parse", "plan/p-1/1.1/1"]), theirs);
    assert_eq!(begin(&worktrees, "1.1").await, worktree);
}

#[tokio::test]
async fn t82_two_plans_do_not_meet() {
    let repo = TestRepo::new();
    let one = begin(&repo.worktrees().await, "1.1").await;
    let other = WorktreesParams { plan_slug: "q-2".into(), state: repo.place.path().join("other"), ..repo.params() };
    let other = begin(&Worktrees::open(other).await.unwrap(), "1.1").await;
    assert_ne!(one.branch, other.branch);
    assert_ne!(one.directory, other.directory);
}

#[tokio::test]
async fn unfit_checkouts_are_refused() {
    let (bare, empty, detached) = (TestRepo::new(), TestRepo::empty(), TestRepo::new());
    bare.git(&["config", "core.bare", "true"]);
    detached.git(&["checkout", "--quiet", "--detach"]);
    let nowhere = tempfile::tempdir().unwrap();
    let link = detached.place.path().join("link");
    std::os::unix::fs::symlink(nowhere.path(), &link).unwrap();
    let on = |branch: &str| WorktreesParams { branch: Some(branch.into()), ..detached.params() };
    for (params, expected) in [
        (bare.params(), "is a bare repository; run the plan in a checkout of it"),
        (empty.params(), "has no commit yet; make the first one, then run the plan"),
        (detached.params(), "check one out, or name one with --branch"),
        (WorktreesParams { directory: nowhere.path().into(), ..detached.params() }, "is not in a git repository"),
        (on("-x"), "cannot be the name of a branch"),
        (on("a..b"), "cannot be the name of a branch"),
        (on("a b"), "cannot be the name of a branch"),
        (WorktreesParams { state: link, ..on("main") }, "is a link"),
    ] {
        let text = Worktrees::open(params).await.unwrap_err().to_string();
        assert!(text.contains(expected), "{text}");
    }

    let repo = TestRepo::new();
    let head = repo.git(&["rev-parse", "HEAD"]);
    repo.git(&["update-index", "--add", "--cacheinfo", &format!("160000,{head},vendor/lib")]);
    repo.git(&["commit", "--quiet", "-m", "a submodule"]);
    let worktrees = repo.worktrees().await;
    let refused = worktrees.make(&run("1", 1)).await.unwrap_err();
    assert!(refused.to_string().starts_with("vendor/lib is a repository within this one"), "{refused}");
}

#[tokio::test]
async fn work_is_what_was_committed_or_left() {
    let repo = TestRepo::new();
    let worktrees = repo.worktrees().await;
    let (one, two) = (begin(&worktrees, "1").await, begin(&worktrees, "2").await);
    write(&one.directory, ".posse/state", "no work\n");
    assert!(!worktrees.has_work(&one).await.unwrap());
    write(&one.directory, "a", "1\n");
    git_in(&one.directory, &["commit", "--quiet", "-m", "by the session", "a"]);
    assert!(worktrees.has_work(&one).await.unwrap());
    fs::remove_file(one.directory.join("b")).unwrap();
    let stat = worktrees.stat(&one).await.unwrap();
    assert!(stat.contains("2 files changed"), "{stat}");
    write(&two.directory, "new file", "x\n");
    assert!(worktrees.has_work(&two).await.unwrap());
}

#[tokio::test]
async fn t47_leftovers_are_committed_with_trailers_and_nothing_of_the_users() {
    let repo = TestRepo::new();
    write(&repo.root, "a", "staged by the user\n");
    repo.git(&["add", "a"]);
    write(&repo.root, "b", "changed by the user\n");
    let (index, status) = (fs::read(repo.root.join(".git/index")).unwrap(), repo.status());
    let worktrees = repo.worktrees().await;
    let worktree = begin(&worktrees, "1").await;
    write(&worktree.directory, "c", "by the session\n");
    write(&worktree.directory, "new", "by the session\n");
    write(&worktree.directory, "x = 1", "a slip\n");
    write(&worktree.directory, ".posse/notes", "ours\n");
    let final_commit = worktrees.commit_leftovers(&worktree, &words(&worktree)).await.unwrap();
    assert_eq!(
        git_in(&worktree.directory, &["show", "--name-only", "--format=%s", &final_commit]),
        "task 1: Do it\n\nc\nnew"
    );
    let trailers = git_in(&worktree.directory, &["log", "-1", "--format=%(trailers:only,unfold)", &final_commit]);
    assert_eq!(trailers.trim(), "Plan: The plan\nTask: 1\nRun: 1-1\nAttempt: 1");
    assert_eq!(fs::read_to_string(worktrees.state.join("quarantine/1-1/x = 1")).unwrap(), "a slip\n");

    // What checks leave behind is not the task's, also after a crash.
    write(&worktree.directory, "coverage", "by a check\n");
    assert_eq!(repo.worktrees().await.commit_leftovers(&worktree, &words(&worktree)).await.unwrap(), final_commit);
    assert_eq!((fs::read(repo.root.join(".git/index")).unwrap(), repo.status()), (index, status));
}

#[tokio::test]
async fn work_on_another_branch_is_found() {
    let repo = TestRepo::new();
    let worktrees = repo.worktrees().await;
    for (task, there) in
        [("own", &["checkout", "--quiet", "-b", "feature"][..]), ("none", &["checkout", "--quiet", "--detach"])]
    {
        let worktree = begin(&worktrees, task).await;
        git_in(&worktree.directory, there);
        write(&worktree.directory, task, "x\n");
        git_in(&worktree.directory, &["add", task]);
        git_in(&worktree.directory, &["commit", "--quiet", "-m", "elsewhere"]);
        let final_commit = worktrees.commit_leftovers(&worktree, &words(&worktree)).await.unwrap();
        assert_eq!(repo.git(&["rev-parse", &worktree.branch]), final_commit);
        merged(&merge(&worktrees, &worktree).await);
        assert_eq!(repo.read(task).as_deref(), Some("x\n"));
    }
    let worktree = begin(&worktrees, "two").await;
    write(&worktree.directory, "a", "one\n");
    git_in(&worktree.directory, &["commit", "--quiet", "-am", "one"]);
    git_in(&worktree.directory, &["checkout", "--quiet", "-b", "other", "HEAD^"]);
    write(&worktree.directory, "b", "two\n");
    let MergeResult::RedTogether(GateFailure { message, .. }) = merge(&worktrees, &worktree).await else {
        panic!("merged")
    };
    assert!(message.starts_with("the session left work on plan/p-1/two/1 and other work"), "{message}");
}

#[tokio::test]
async fn broken_work_tree_does_not_lead_to_the_users_checkout() {
    let repo = TestRepo::new();
    // Ignored, but within: git would find the user's checkout from there.
    let worktrees =
        Worktrees::open(WorktreesParams { state: repo.root.join(".posse/state"), ..repo.params() }).await.unwrap();
    write(&repo.root, "a", "the user's\n");
    let worktree = begin(&worktrees, "1").await;
    fs::remove_file(worktree.directory.join(".git")).unwrap();
    let broken = worktrees.has_work(&worktree).await.unwrap_err();
    assert!(broken.to_string().ends_with("is not a work area any more; its branch is plan/p-1/1/1"), "{broken}");
    assert!(matches!(merge(&worktrees, &worktree).await, MergeResult::RedTogether(_)));
    assert_eq!(repo.git(&["rev-list", "--count", "HEAD"]), "1");
    assert_eq!(worktrees.tidy().await.unwrap().len(), 1, "it is kept");
}

#[tokio::test]
async fn unfinished_merge_and_refused_commit_are_reported() {
    let repo = TestRepo::new();
    let worktrees = repo.worktrees().await;
    let worktree = begin(&worktrees, "1").await;
    write(&worktree.directory, "a", "mine\n");
    git_in(&worktree.directory, &["commit", "--quiet", "-am", "mine"]);
    repo.commit("a", "theirs\n");
    assert!(
        !Command::new("git")
            .args(["merge", "--quiet", "main"])
            .current_dir(&worktree.directory)
            .status()
            .unwrap()
            .success()
    );
    let failure = worktrees.check(&worktree, &words(&worktree), &gates(&[])).await.unwrap().unwrap();
    assert!(failure.message.starts_with("the session left a merge unfinished in "), "{failure:?}");
    repo.hook("pre-commit", "echo the hook says no; exit 1");
    let worktree = begin(&worktrees, "2").await;
    write(&worktree.directory, "b", "mine\n");
    let MergeResult::RedTogether(at_merge) = merge(&worktrees, &worktree).await else { panic!("merged") };
    let at_check = worktrees.check(&worktree, &words(&worktree), &gates(&[])).await.unwrap().unwrap();
    for failure in [at_merge, at_check] {
        assert!(failure.gate == "commit" && failure.output.ends_with("the hook says no"), "{failure:?}");
    }
}

#[tokio::test]
async fn only_merged_and_clean_work_trees_are_removed() {
    let repo = TestRepo::new();
    let worktrees = repo.worktrees().await;
    for task in ["merged", "dirty", "unmerged", "uncommitted"] {
        let worktree = begin(&worktrees, task).await;
        write(&worktree.directory, task, "x\n");
        match task {
            "merged" | "dirty" => drop(merge(&worktrees, &worktree).await),
            "unmerged" => drop(worktrees.commit_leftovers(&worktree, &words(&worktree)).await.unwrap()),
            _ => {}
        }
    }
    let empty = begin(&worktrees, "empty").await;
    let dirty = worktrees.find(&run("dirty", 1)).await.unwrap();
    write(&dirty.directory, "later", "x\n");
    for _ in 0..2 {
        let kept = worktrees.tidy().await.unwrap();
        let shown: Vec<String> = kept.iter().map(|kept| format!("{}: {}", kept.branch, kept.why)).collect();
        assert_eq!(
            shown,
            [
                "plan/p-1/dirty/1: it has changes that are not committed: later; its task is not verified",
                "plan/p-1/uncommitted/1: it has changes that are not committed: uncommitted; its task is not verified",
                "plan/p-1/unmerged/1: its work is not merged; its task is not verified",
            ]
        );
    }
    let branches = repo.git(&["branch", "--list", "--format=%(refname:short)", "plan/*"]);
    assert_eq!(branches, "plan/p-1/dirty/1\nplan/p-1/uncommitted/1\nplan/p-1/unmerged/1");
    assert!(!empty.directory.exists() && dirty.directory.join("later").exists());
}
