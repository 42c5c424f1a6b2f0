//! With the real git, in repositories of the tests' own.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;
use crate::disk::DISK;
use crate::git::test_repo::{TestRepo, git_in};

impl TestRepo {
    pub(super) fn quarantine(&self) -> PathBuf {
        self.root.with_file_name("quarantine")
    }

    pub(super) async fn snapshot(&self) -> Option<Snapshot> {
        snapshot(&self.root, &Environment::default()).await.unwrap()
    }

    pub(super) async fn commit_work(&self, before: Option<&Snapshot>) -> Step {
        git_commit(&self.root, "the work", &self.quarantine(), before, &Environment::default()).await
    }

    #[track_caller]
    fn check_commit(&self, step: &Step, expected: &[&str]) {
        assert!(matches!(step, Step::Done(_)), "{step:?}");
        assert_eq!(self.committed(), expected);
    }

    /// Returns the paths the last commit changed, each prefixed with a letter.
    fn committed(&self) -> Vec<String> {
        let said =
            self.git(&["diff-tree", "--root", "-r", "-z", "--no-commit-id", "--no-renames", "--name-status", "HEAD"]);
        let words: Vec<&str> = said.split('\0').collect();
        let mut lines: Vec<String> = words.chunks_exact(2).map(|pair| pair.join(" ")).collect();
        lines.sort_by_key(|line| line[2..].to_owned());
        lines
    }
}

fn text(step: &Step) -> &str {
    match step {
        Step::Done(text) | Step::Skipped(text) | Step::Failed(text) => text,
    }
}

#[tokio::test]
async fn what_was_dirty_stays_whatever_the_run_did_to_it() {
    let repo = TestRepo::new();
    for name in ["a", "b", "c", "mine"] {
        repo.write(name, "by the user\n");
    }
    let before = repo.snapshot().await;
    repo.write("a", "by both\n");
    repo.write("b", "by the user\n"); // only touched
    repo.write("c", "1\n2\n3\n4\n5\n"); // undone
    repo.remove("mine");
    let (head, index) = (repo.head(), repo.index());
    let step = repo.commit_work(before.as_ref()).await;
    assert_eq!(
        step,
        Step::Skipped(
            "nothing to commit; not committed, because they had uncommitted changes before the run, which changed them \
             too: a; had uncommitted changes before the run, and have none now: c, mine"
                .into()
        )
    );
    assert_eq!((repo.head(), repo.index()), (head, index));
    assert_eq!(repo.status(), " M a\n M b");
}

/// S-190, and every other name that has ever been a problem.
#[tokio::test]
async fn s_190_names_are_taken_as_they_are() {
    let repo = TestRepo::new();
    let before = repo.snapshot().await;
    for name in
        ["[id].tsx", "two words", "two\nlines", "-f", "*", ":(top)a.rs", "\"q\"", "back\\slash", "größe", "d/(g).ts"]
    {
        repo.write(name, "new\n");
    }
    let odd = repo.root.join(OsStr::from_bytes(b"\xff\xfe"));
    fs::write(&odd, "new\n").unwrap();
    symlink("nowhere", repo.root.join("link")).unwrap();
    fs::set_permissions(repo.root.join("a"), fs::Permissions::from_mode(0o755)).unwrap();
    let step = repo.commit_work(before.as_ref()).await;
    let committed = repo.committed();
    assert!(committed.contains(&"A [id].tsx".to_owned()) && committed.contains(&"A two\nlines".to_owned()));
    assert_eq!(committed.len(), 13, "{committed:?}\n{step:?}");
    assert_eq!(repo.status(), "");
    assert_eq!(repo.read("[id].tsx").as_deref(), Some("new\n"));
    assert!(!repo.quarantine().exists());
    assert!(repo.git(&["ls-tree", "HEAD", "a", "link"]).starts_with("100755 blob"));
}

#[tokio::test]
async fn directory_that_has_become_a_link_is_committed_as_one() {
    let repo = TestRepo::new();
    let before = repo.snapshot().await;
    fs::rename(repo.root.join("d"), repo.root.join("real")).unwrap();
    symlink("real", repo.root.join("d")).unwrap();
    let step = repo.commit_work(before.as_ref()).await;
    repo.check_commit(&step, &["A d", "D d/e", "A real/e"]);
    assert_eq!(repo.status(), "");
}

/// A run that changes the rules does not get at passwords.
#[tokio::test]
async fn what_was_ignored_before_the_run_is_not_committed() {
    let repo = TestRepo::new();
    repo.write(".gitignore", ".env\ntarget/\n*.log\n");
    repo.git(&["add", "."]);
    repo.git(&["commit", "--quiet", "-m", "rules"]);
    for name in [".env", "target/deep/out", "x.log", "d/y.log"] {
        repo.write(name, "secret\n");
    }
    let before = repo.snapshot().await;
    assert_eq!(before.as_ref().unwrap().ignored.len(), 4, "{before:?}");
    repo.write(".gitignore", "\n");
    repo.write("target/new", "x\n");
    repo.write("new.log", "x\n");
    let step = repo.commit_work(before.as_ref()).await;
    repo.check_commit(&step, &["M .gitignore", "A new.log"]);
    assert!(text(&step).ends_with("ignored them before the run: .env, d/y.log, target/deep/out, target/new, x.log"));
}

/// Once a commit begins, git itself ensures that no other commit is lost.
#[tokio::test]
async fn a_commit_of_somebody_else_is_not_taken_back() {
    let repo = TestRepo::new();
    let before = repo.snapshot().await;
    repo.write("a", "by the run\n");
    // One that commits whenever we do.
    let commit = "git commit --quiet --no-verify --allow-empty -m theirs";
    repo.hook("pre-commit", &format!("unset GIT_INDEX_FILE; echo theirs > b; git add b; {commit}"));
    let first = repo.git(&["rev-parse", "HEAD"]);
    let step = repo.commit_work(before.as_ref()).await;
    assert!(
        matches!(&step, Step::Failed(why) if why.contains("somebody else committed at the same moment")),
        "{step:?}"
    );
    let theirs = format!("{first}..HEAD");
    assert_eq!(repo.git(&["rev-list", "--count", &theirs]), TRIES.to_string());
    assert_eq!(repo.status(), " M a");
    // One that commits once: ours comes on top of it.
    repo.hook("pre-commit", &format!("unset GIT_INDEX_FILE; mkdir .git/once || exit 0; {commit}"));
    let step = repo.commit_work(before.as_ref()).await;
    repo.check_commit(&step, &["M a"]);
    assert_eq!(repo.git(&["rev-list", "--count", &theirs]), (TRIES + 2).to_string());
}

#[tokio::test]
async fn suspicious_new_files_are_put_aside() {
    let repo = TestRepo::new();
    repo.write("f(x)", "the user's own\n");
    let before = repo.snapshot().await;
    repo.write("x = 1", "a slip\n");
    repo.write("d/map.get(y)", "staged by the run\n");
    repo.git(&["add", "d/map.get(y)"]);
    repo.write("good", "x\n");
    let step = repo.commit_work(before.as_ref()).await;
    repo.check_commit(&step, &["A good"]);
    let aside = repo.quarantine();
    assert_eq!(fs::read_to_string(aside.join("x = 1")).unwrap(), "a slip\n");
    assert_eq!(fs::read_to_string(aside.join("d/map.get(y)")).unwrap(), "staged by the run\n");
    assert!(text(&step).contains("moved \"x = 1\" to ") && text(&step).contains("moved d/map.get(y) to "), "{step:?}");
    assert_eq!(repo.status(), "?? f(x)");
}

#[tokio::test]
async fn what_cannot_be_put_aside_stays() {
    let repo = TestRepo::new();
    let before = repo.snapshot().await;
    repo.write("x=1", "a slip\n");
    repo.write("a", "x\n");
    fs::write(repo.quarantine(), "in the way").unwrap();
    let step = repo.commit_work(before.as_ref()).await;
    repo.check_commit(&step, &["M a"]);
    assert!(text(&step).contains("x=1 looks like a slip; not committed, and not moved"), "{step:?}");
    assert_eq!(repo.status(), "?? x=1");
}

#[tokio::test]
async fn our_own_and_what_is_ignored_is_never_committed() {
    let repo = TestRepo::new();
    let before = repo.snapshot().await;
    for name in [".tmp/x=1", ".posse/state.json", "sub/.tmp/answer.md", "target/out"] {
        repo.write(name, "x\n");
    }
    repo.write(".gitignore", "target\n");
    // A quarantine within the project.
    let aside = repo.root.join("aside");
    repo.write("aside/y=1", "put aside before\n");
    let step = git_commit(&repo.root, "m", &aside, before.as_ref(), &Environment::default()).await;
    repo.check_commit(&step, &["A .gitignore"]);
    assert_eq!(repo.read("aside/y=1").as_deref(), Some("put aside before\n"));
    assert_eq!(repo.read(".tmp/x=1").as_deref(), Some("x\n"));
}

#[tokio::test]
async fn repositories_within_are_left_alone() {
    let (repo, other) = (TestRepo::new(), TestRepo::new());
    let other = other.root.to_str().unwrap();
    repo.git(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", other, "sub"]);
    repo.git(&["commit", "--quiet", "-m", "with a submodule"]);
    let before = repo.snapshot().await;
    let inside = repo.root.join("sub");
    for arguments in [["config", "user.name", "T"], ["config", "user.email", "t@example.org"]] {
        git_in(&inside, &arguments);
    }
    fs::write(inside.join("a"), "changed\n").unwrap();
    git_in(&inside, &["commit", "--quiet", "-a", "-m", "in the submodule"]);
    let head = git_in(&inside, &["rev-parse", "HEAD"]);
    git_in(&repo.root, &["clone", "--quiet", other, "nested"]);
    repo.write("a", "x\n");
    let step = repo.commit_work(before.as_ref()).await;
    repo.check_commit(&step, &["M a"]);
    assert!(text(&step).ends_with("repositories of their own: nested, sub"), "{step:?}");
    assert_eq!(repo.status(), " M sub\n?? nested/");
    assert_eq!(git_in(&inside, &["rev-parse", "HEAD"]), head);
}

#[tokio::test]
async fn without_a_repository_nothing_is_done() {
    let place = tempfile::tempdir().unwrap();
    assert_eq!(snapshot(place.path(), &Environment::default()).await.unwrap(), None);
    let step = git_commit(place.path(), "m", place.path(), None, &Environment::default()).await;
    assert!(matches!(&step, Step::Skipped(why) if why.ends_with("is not in a git repository")), "{step:?}");

    // It has become one, or another one, during the run.
    let (repo, other) = (TestRepo::new(), TestRepo::new());
    repo.write("a", "x\n");
    for before in [None, other.snapshot().await] {
        let step = repo.commit_work(before.as_ref()).await;
        assert!(matches!(&step, Step::Skipped(why) if why.contains("cannot tell what is yours")), "{step:?}");
    }
    let step = git_commit(&repo.root.join(".git"), "m", place.path(), None, &Environment::default()).await;
    assert!(matches!(step, Step::Skipped(_)), "{step:?}");
}

#[tokio::test]
async fn the_first_commit_of_a_repository() {
    let repo = TestRepo::empty();
    repo.write("mine", "x\n");
    repo.write("staged", "x\n");
    repo.git(&["add", "staged"]);
    let before = repo.snapshot().await;
    assert_eq!(repo.commit_work(before.as_ref()).await, Step::Skipped("nothing to commit".into()));
    repo.write("new", "x\n");
    let step = repo.commit_work(before.as_ref()).await;
    repo.check_commit(&step, &["A new"]);
    assert_eq!(repo.status(), "A  staged\n?? mine");
}

#[tokio::test]
async fn detached_in_a_linked_work_tree_or_from_a_directory_within() {
    let repo = TestRepo::new();
    repo.git(&["checkout", "--quiet", "--detach"]);
    let before = repo.snapshot().await;
    repo.write("a", "x\n");
    let step = repo.commit_work(before.as_ref()).await;
    repo.check_commit(&step, &["M a"]);
    assert!(text(&step).ends_with("on a detached HEAD"), "{step:?}");

    let linked = repo.root.parent().unwrap().join("linked");
    repo.git(&["worktree", "add", "--quiet", linked.to_str().unwrap(), "main"]);
    let within = linked.join("d");
    let before = snapshot(&within, &Environment::default()).await.unwrap();
    fs::write(linked.join("d/e"), "x\n").unwrap();
    fs::write(linked.join("lock"), "x\n").unwrap();
    let step = git_commit(&within, "m", &repo.quarantine(), before.as_ref(), &Environment::default()).await;
    assert!(text(&step).ends_with("on branch main"), "{step:?}");
    assert_eq!(git_in(&linked, &["status", "--porcelain"]), "");
    assert_eq!(repo.git(&["diff", "--name-only", "main~", "main"]), "d/e\nlock");
    assert_eq!(repo.status(), "");
}

#[tokio::test]
async fn a_hook_that_refuses_is_quoted_and_nothing_has_changed() {
    let repo = TestRepo::new();
    repo.write("b", "staged\n");
    repo.git(&["add", "b"]);
    let before = repo.snapshot().await;
    repo.write("a", "x\n");
    repo.write("new", "x\n");
    repo.hook("pre-commit", "echo looking; git diff --cached --name-only >&2; echo 'no tests, no commit' >&2; exit 1");
    let (head, index) = (repo.head(), repo.index());
    let step = repo.commit_work(before.as_ref()).await;
    let Step::Failed(why) = &step else { panic!("{step:?}") };
    assert_eq!(why, "git commit: looking\na\nnew\nno tests, no commit", "it saw what would be committed");
    assert_eq!((repo.head(), repo.index()), (head, index));
    assert_eq!(repo.status(), " M a\nM  b\n?? new");
}

#[tokio::test]
async fn a_hook_may_change_what_is_committed() {
    let repo = TestRepo::new();
    repo.write("b", "staged\n");
    repo.git(&["add", "b"]);
    let before = repo.snapshot().await;
    repo.write("a", "unformatted\n");
    repo.hook("pre-commit", "echo formatted > a; git add a");
    repo.hook("commit-msg", "echo 'Reviewed-by: hook' >> \"$1\"");
    let step = repo.commit_work(before.as_ref()).await;
    repo.check_commit(&step, &["M a"]);
    assert_eq!(repo.git(&["show", "HEAD:a"]), "formatted");
    assert!(repo.git(&["log", "-1", "--format=%B"]).contains("Reviewed-by: hook"));
    assert_eq!(repo.status(), "M  b");
}

#[tokio::test]
async fn a_held_index_is_waited_for_but_not_for_ever() {
    let repo = TestRepo::new();
    let before = repo.snapshot().await;
    repo.write("a", "x\n");
    let (head, lock) = (repo.head(), repo.root.join(".git/index.lock"));
    fs::write(&lock, "").unwrap();
    let step = repo.commit_work(before.as_ref()).await;
    assert!(matches!(&step, Step::Failed(why) if why.contains("index.lock is there: another git")), "{step:?}");
    assert_eq!(repo.head(), head);
    assert!(lock.exists(), "it is not ours to remove");

    let released = async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        fs::remove_file(&lock).unwrap();
    };
    let (step, ()) = tokio::join!(repo.commit_work(before.as_ref()), released);
    repo.check_commit(&step, &["M a"]);
}

#[tokio::test]
async fn a_merge_of_the_users_is_not_concluded() {
    let repo = TestRepo::new();
    repo.git(&["checkout", "--quiet", "-b", "side"]);
    repo.write("a", "side\n");
    repo.git(&["commit", "--quiet", "-a", "-m", "side"]);
    repo.git(&["checkout", "--quiet", "main"]);
    repo.write("a", "main\n");
    repo.git(&["commit", "--quiet", "-a", "-m", "main"]);
    assert!(!repo.try_git(&["merge", "--quiet", "side"]));
    let before = repo.snapshot().await;
    assert_eq!(before.as_ref().unwrap().dirty.len(), 1);
    repo.write("new", "x\n");
    let head = repo.head();
    let step = repo.commit_work(before.as_ref()).await;
    assert!(matches!(&step, Step::Skipped(why) if why.starts_with("a merge is under way")), "{step:?}");
    // Conflicts without a merge: a stash that did not fit.
    fs::remove_file(repo.root.join(".git/MERGE_HEAD")).unwrap();
    let step = repo.commit_work(before.as_ref()).await;
    assert!(matches!(&step, Step::Skipped(why) if why.starts_with("a has conflicts")), "{step:?}");
    assert_eq!(repo.head(), head);
}

/// posse died after the commit, before the index was brought up to date. The next call does that.
#[tokio::test]
async fn a_commit_that_was_cut_short_is_finished() {
    let repo = TestRepo::new();
    repo.write("b", "staged\n");
    repo.git(&["add", "b"]);
    let before = repo.snapshot().await;
    repo.write("a", "x\n");
    repo.write("new", "x\n");
    repo.remove("c");
    let index = repo.index();
    repo.commit_work(before.as_ref()).await;
    let (head, status) = (repo.head(), repo.status());
    fs::write(repo.root.join(".git/index"), index).unwrap();
    assert_ne!(repo.status(), status);
    assert_eq!(repo.commit_work(before.as_ref()).await, Step::Skipped("nothing to commit".into()));
    assert_eq!((repo.head(), repo.status()), (head, "M  b".to_owned()));
}

#[test]
fn content_is_told_apart_by_hash_or_by_size_and_time() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("a");
    let content = |name: &str, longest| super::content(DISK, &place.path().join(name), longest);
    assert_eq!(content("a", HASHED), "absent");
    for (length, is_sized) in [(9, false), (10, true)] {
        fs::write(&path, vec![b'x'; length]).unwrap();
        let first = content("a", 9);
        assert_eq!((first.contains(SIZED), content("a", 9)), (is_sized, first.clone()));
        fs::File::options().append(true).open(&path).unwrap().set_len(11).unwrap();
        assert_ne!(content("a", 9), first);
    }
    symlink("a", place.path().join("l")).unwrap();
    assert!(content("l", 0).starts_with("link "));
}

#[tokio::test]
async fn only_so_much_of_what_is_dirty_is_hashed() {
    let repo = TestRepo::new();
    for name in ["large", "larger"] {
        fs::File::create(repo.root.join(name)).unwrap().set_len(HASHED / 2 + 1).unwrap();
    }
    repo.write("small", "x");
    let sized = repo.snapshot().await.unwrap().dirty.into_iter().map(|was| was.content.contains(SIZED));
    assert_eq!(sized.collect::<Vec<bool>>(), [false, true, false]);
}

/// A program in place of openspec.
fn openspec(directory: &Path, script: &str) -> PathBuf {
    let path = directory.join("openspec-double");
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

#[tokio::test]
async fn exactly_one_change_is_archived() {
    let place = tempfile::tempdir().unwrap();
    let project = place.path().join("project");
    fs::create_dir(&project).unwrap();
    let good = openspec(place.path(), "echo \"$@ in $(basename \"$PWD\")\" > called");
    let archive = async || archive_with(good.as_os_str(), &project, &Environment::default()).await;
    let changes = project.join("openspec/changes");
    assert_eq!(archive().await, Step::Skipped(format!("there is no {}", changes.display())));
    fs::create_dir_all(changes.join("archive/old")).unwrap();
    fs::write(changes.join("notes.md"), "no directory").unwrap();
    assert_eq!(archive().await, Step::Skipped(format!("no change in {}", changes.display())));
    fs::create_dir(changes.join("add-it")).unwrap();
    assert_eq!(archive().await, Step::Done("archived the OpenSpec change add-it".into()));
    assert_eq!(fs::read_to_string(project.join("called")).unwrap(), "archive add-it --yes in project\n");
    fs::create_dir(changes.join("another")).unwrap();
    assert!(matches!(archive().await, Step::Skipped(why) if why.contains("has 2 changes")));
    fs::remove_dir(changes.join("another")).unwrap();

    let missing = archive_with(OsStr::new("posse-no-such-program"), &project, &Environment::default()).await;
    assert!(matches!(missing, Step::Failed(why) if why.contains("there is no program") && why.contains("npm install")));
    let bad = openspec(place.path(), "echo 'tasks are open' >&2; exit 1");
    let failed = archive_with(bad.as_os_str(), &project, &Environment::default()).await;
    assert_eq!(failed, Step::Failed("openspec archive add-it: tasks are open".into()));
    fs::rename(changes.join("add-it"), changes.join("--force")).unwrap();
    assert!(matches!(archive().await, Step::Skipped(why) if why.contains("looks like an option")));
}

#[tokio::test]
async fn s_189_after_a_failed_archive_step_nothing_is_committed() {
    let repo = TestRepo::new();
    repo.write("openspec/changes/add-it/tasks.md", "x\n");
    repo.git(&["add", "."]);
    repo.git(&["commit", "--quiet", "-m", "a change"]);
    let before = repo.snapshot().await;
    repo.write("a", "by the run\n");
    let (head, status) = (repo.head(), repo.status());
    let archive = async |program: &Path| archive_with(program.as_os_str(), &repo.root, &Environment::default()).await;
    let bad = openspec(repo.place.path(), "exit 1");
    assert!(matches!(archive(&bad).await, Step::Failed(_)));
    assert_eq!((repo.head(), repo.status()), (head, status));

    let good = openspec(
        repo.place.path(),
        "mkdir -p openspec/changes/archive; mv openspec/changes/$2 openspec/changes/archive/",
    );
    assert!(matches!(archive(&good).await, Step::Done(_)));
    let commit = git_commit(&repo.root, "m", &repo.quarantine(), before.as_ref(), &Environment::default()).await;
    repo.check_commit(
        &commit,
        &["M a", "D openspec/changes/add-it/tasks.md", "A openspec/changes/archive/add-it/tasks.md"],
    );
}
