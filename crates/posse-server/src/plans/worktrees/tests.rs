//! With the real git, in repositories of the tests' own.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;
use std::time::Duration;

use posse_core::plan::file::{Gate, GateWhen};
use posse_core::plan::machine::{GateFailure, MergeResult};
use posse_core::plan::names::CommitWords;

use super::*;
use crate::disk::DISK;

/// A checkout with one commit in which are the files a, b, c and d/e, and room for the work trees beside it.
pub(crate) struct TestRepo {
    place: tempfile::TempDir,
    pub(crate) root: PathBuf,
}

impl TestRepo {
    pub(crate) fn empty() -> Self {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap().join("project");
        fs::create_dir(&root).unwrap();
        git_in(&root, &["init", "--quiet", "-b", "main"]);
        // No signature; and no hooks but the test's own, whatever the machine's configuration says.
        let hooks = root.join(".git/hooks");
        for (key, value) in [
            ("user.name", "T"),
            ("user.email", "t@example.org"),
            ("commit.gpgSign", "false"),
            ("core.hooksPath", hooks.to_str().unwrap()),
        ] {
            git_in(&root, &["config", key, value]);
        }
        Self { place, root }
    }

    pub(crate) fn new() -> Self {
        let repo = Self::empty();
        for name in ["a", "b", "c", "d/e"] {
            write(&repo.root, name, "1\n2\n3\n4\n5\n");
        }
        repo.git(&["add", "."]);
        repo.git(&["commit", "--quiet", "-m", "first"]);
        repo
    }

    #[track_caller]
    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        git_in(&self.root, arguments)
    }

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

    pub(crate) fn commit(&self, name: &str, content: &str) {
        write(&self.root, name, content);
        self.git(&["add", "--", name]);
        self.git(&["commit", "--quiet", "-m", name, "--", name]);
    }

    pub(crate) fn read(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.root.join(name)).ok()
    }

    pub(crate) fn hook(&self, name: &str, script: &str) {
        use std::os::unix::fs::PermissionsExt;
        let path = self.root.join(".git/hooks").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
        // It is there before the run begins.
        crate::git::guard::begin(DISK, &crate::environment::Environment::default(), &self.root).unwrap();
    }

    pub(crate) fn status(&self) -> String {
        self.git(&["status", "--porcelain", "--untracked-files=all"])
    }
}

#[track_caller]
pub(crate) fn git_in(directory: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git").args(arguments).current_dir(directory).env("LC_ALL", "C").output().unwrap();
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim_end_matches('\n').to_owned()
}

pub(crate) fn write(directory: &Path, name: &str, content: &str) {
    let path = directory.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

pub(crate) fn run(task: &str, start: u32) -> RunId {
    RunId { task: task.parse().unwrap(), start, part: Part::Work }
}

pub(crate) fn words(worktree: &TaskWorktree) -> CommitWords {
    CommitWords {
        plan: "The plan".into(),
        task: worktree.run.task.clone(),
        task_name: "Do it".into(),
        run: worktree.run.to_string(),
        attempt: 1,
    }
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
    let base = worktrees.tip().await.unwrap();
    worktrees.make(&run(task, 1), &base).await.unwrap()
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
async fn an_area_is_made_once() {
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

#[tokio::test]
async fn a_half_made_area_is_finished() {
    for half in ["the note", "the branch", "the directory", "some files"] {
        let repo = TestRepo::new();
        let worktrees = repo.worktrees().await;
        let base = worktrees.tip().await.unwrap();
        let record = worktrees.unused(&run("1", 1), &base).await.unwrap();
        worktrees.write_record(&run("1", 1), &record).await.unwrap();
        let directory = record.directory.to_str().unwrap();
        match half {
            "the branch" => drop(repo.git(&["branch", &record.branch, &base])),
            "the directory" | "some files" => {
                fs::create_dir_all(record.directory.parent().unwrap()).unwrap();
                repo.git(&["worktree", "add", "--quiet", "--no-checkout", "-b", &record.branch, directory, &base]);
            }
            _ => {}
        }
        if half == "some files" {
            write(&record.directory, "a", "1\n2\n");
        }
        let worktree = begin(&worktrees, "1").await;
        assert_eq!((worktree.directory.to_str().unwrap(), &worktree.branch), (directory, &record.branch), "{half}");
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
async fn where_no_area_can_be() {
    let opened = async |params| Worktrees::open(params).await.map(drop).unwrap_err().to_string();
    let bare = TestRepo::new();
    bare.git(&["config", "core.bare", "true"]);
    let text = opened(bare.params()).await;
    assert!(text.ends_with("is a bare repository; run the plan in a checkout of it"), "{text}");
    let text = opened(TestRepo::empty().params()).await;
    assert!(text.ends_with("has no commit yet; make the first one, then run the plan"), "{text}");
    let detached = TestRepo::new();
    detached.git(&["checkout", "--quiet", "--detach"]);
    let text = opened(detached.params()).await;
    assert!(text.ends_with("check one out, or name one with --branch"), "{text}");
    let nowhere = tempfile::tempdir().unwrap();
    let text = opened(WorktreesParams { directory: nowhere.path().into(), ..detached.params() }).await;
    assert!(text.contains("is not in a git repository"), "{text}");
    for name in ["-x", "a..b", "a b"] {
        let text = opened(WorktreesParams { branch: Some(name.into()), ..detached.params() }).await;
        assert!(text.ends_with("cannot be the name of a branch"), "{text}");
    }
    let elsewhere = detached.place.path().join("link");
    std::os::unix::fs::symlink(nowhere.path(), &elsewhere).unwrap();
    let text = opened(WorktreesParams { state: elsewhere, branch: Some("main".into()), ..detached.params() }).await;
    assert!(text.contains("is a link"), "{text}");

    let repo = TestRepo::new();
    let head = repo.git(&["rev-parse", "HEAD"]);
    repo.git(&["update-index", "--add", "--cacheinfo", &format!("160000,{head},vendor/lib")]);
    repo.git(&["commit", "--quiet", "-m", "a submodule"]);
    let worktrees = repo.worktrees().await;
    let refused = worktrees.make(&run("1", 1), &worktrees.tip().await.unwrap()).await.unwrap_err();
    assert!(refused.to_string().starts_with("vendor/lib is a repository within this one"), "{refused}");
}

#[tokio::test]
async fn what_was_done_is_seen() {
    let repo = TestRepo::new();
    let worktrees = repo.worktrees().await;
    let worktree = begin(&worktrees, "1").await;
    assert_eq!(worktrees.work(&worktree).await.unwrap(), Work::default());
    write(&worktree.directory, ".posse/state", "no work\n");
    assert!(!worktrees.work(&worktree).await.unwrap().is_there());
    write(&worktree.directory, "new file", "x\n");
    write(&worktree.directory, "a", "1\n");
    git_in(&worktree.directory, &["commit", "--quiet", "-m", "by the session", "a"]);
    fs::remove_file(worktree.directory.join("b")).unwrap();
    let work = worktrees.work(&worktree).await.unwrap();
    let names = |paths: &[GitPath]| paths.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    assert_eq!((work.commits.len(), names(&work.files).as_str()), (1, "a b \"new file\""));
    assert!(work.is_there() && work.stat.contains("2 files changed"), "{}", work.stat);
    assert_eq!(names(&work.dirty), "\"new file\" b");
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
async fn a_session_that_breaks_its_area_does_not_get_to_the_users() {
    let repo = TestRepo::new();
    // Ignored, but within: git would find the user's checkout from there.
    let worktrees =
        Worktrees::open(WorktreesParams { state: repo.root.join(".posse/state"), ..repo.params() }).await.unwrap();
    write(&repo.root, "a", "the user's\n");
    let worktree = begin(&worktrees, "1").await;
    fs::remove_file(worktree.directory.join(".git")).unwrap();
    let broken = worktrees.work(&worktree).await.unwrap_err();
    assert!(broken.to_string().ends_with("is not a work area any more; its branch is plan/p-1/1/1"), "{broken}");
    assert!(matches!(merge(&worktrees, &worktree).await, MergeResult::RedTogether(_)));
    assert_eq!(repo.git(&["rev-list", "--count", "HEAD"]), "1");
    assert_eq!(worktrees.tidy(&BTreeSet::new()).await.unwrap().len(), 1, "it is kept");
}

#[tokio::test]
async fn what_a_session_left_unfinished_is_told() {
    let repo = TestRepo::new();
    let worktrees = repo.worktrees().await;
    let worktree = begin(&worktrees, "1").await;
    write(&worktree.directory, "a", "mine\n");
    git_in(&worktree.directory, &["commit", "--quiet", "-am", "mine"]);
    repo.commit("a", "theirs\n");
    let conflict = Command::new("git").args(["merge", "--quiet", "main"]).current_dir(&worktree.directory).output();
    assert!(!conflict.unwrap().status.success());
    let failure = worktrees.check(&worktree, &words(&worktree), &gates(&[])).await.unwrap();
    assert!(failure.message.starts_with("the session left a merge unfinished in "), "{failure:?}");
    repo.hook("pre-commit", "echo the hook says no; exit 1");
    let worktree = begin(&worktrees, "2").await;
    write(&worktree.directory, "b", "mine\n");
    let MergeResult::RedTogether(failure) = merge(&worktrees, &worktree).await else { panic!("merged") };
    assert!(failure.gate == "commit" && failure.output.contains("the hook says no"), "{failure:?}");
}

#[tokio::test]
async fn only_what_is_merged_and_clean_goes() {
    let repo = TestRepo::new();
    let worktrees = repo.worktrees().await;
    for task in ["merged", "dirty", "unmerged", "uncommitted", "used"] {
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
    let used = BTreeSet::from([run("used", 1)]);
    for _ in 0..2 {
        let kept = worktrees.tidy(&used).await.unwrap();
        let shown: Vec<String> = kept.iter().map(|kept| format!("{}: {}", kept.branch, kept.why)).collect();
        assert_eq!(
            shown,
            [
                "plan/p-1/dirty/1: it has changes that are not committed: later",
                "plan/p-1/uncommitted/1: it has changes that are not committed: uncommitted",
                "plan/p-1/unmerged/1: its work is not merged",
            ]
        );
    }
    let branches = repo.git(&["branch", "--list", "--format=%(refname:short)", "plan/*"]);
    assert_eq!(branches, "plan/p-1/dirty/1\nplan/p-1/uncommitted/1\nplan/p-1/unmerged/1\nplan/p-1/used/1");
    assert!(!empty.directory.exists() && dirty.directory.join("later").exists());
    assert!(worktrees.find(&run("used", 1)).await.unwrap().directory.join("used").exists());
}

#[tokio::test]
async fn an_area_goes_when_its_work_is_merged_and_not_before() {
    let repo = TestRepo::new();
    let worktrees = repo.worktrees().await;
    let worktree = begin(&worktrees, "1").await;
    write(&worktree.directory, "a", "work\n");
    let kept = worktrees.done_with(&worktree.run).await.unwrap().unwrap();
    assert_eq!(kept.why, "it has changes that are not committed: a");
    worktrees.commit_leftovers(&worktree, &words(&worktree)).await.unwrap();
    assert_eq!(worktrees.done_with(&worktree.run).await.unwrap().unwrap().why, "its work is not merged");
    merged(&merge(&worktrees, &worktree).await);
    // Twice, as after a crash.
    for _ in 0..2 {
        assert_eq!(worktrees.done_with(&worktree.run).await.unwrap(), None);
    }
    assert!(!worktree.directory.exists() && repo.git(&["branch", "--list", "plan/*"]).is_empty());
    assert_eq!(repo.git(&["worktree", "list"]).lines().count(), 1);
}
