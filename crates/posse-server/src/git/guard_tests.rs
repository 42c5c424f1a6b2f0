//! Attacks with the real git: a session writes something into the repository, then posse looks, commits and merges. The
//! program that was entered must not have been started.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use posse_core::finalize::Step;

use super::guard;
use crate::disk::DISK;
use crate::environment::Environment;
use crate::finalize;
use crate::git::test_repo::{TestRepo, git_in, write};
use crate::plans::worktrees::tests::{begin, merge, words};

/// What posse itself does not ask git for, and for what git starts a program that nothing else starts.
const NICKNAME: &[&str] = &["nickname"];
const DIFF: &[&str] = &["diff", "HEAD^"];
const AMEND: &[&str] = &["commit", "--amend", "--allow-empty"];

/// A repository in which a run has begun, and a program that leaves a trace.
struct Attacked {
    repo: TestRepo,
    payload: String,
}

impl Attacked {
    fn new() -> Self {
        let repo = TestRepo::new();
        // A branch whose merge is one of the content of a file.
        repo.git(&["checkout", "-q", "-b", "side"]);
        repo.commit("a", "1\n2\n3\n4\n5\nside\n");
        repo.git(&["checkout", "-q", "main"]);
        let payload = repo.root.parent().unwrap().join("payload");
        let marker = repo.root.parent().unwrap().join("RAN");
        // A filter, a hook, an fsmonitor: as each it does its work, so that nothing else tells of it.
        let script = format!("#!/bin/sh\necho \"$0 $*\" >> {}\nif [ -p /dev/stdin ]; then cat; fi\n", marker.display());
        fs::write(&payload, script).unwrap();
        fs::set_permissions(&payload, fs::Permissions::from_mode(0o755)).unwrap();
        guard::begin(DISK, &Environment::default(), &repo.root).unwrap();
        Self { payload: payload.to_str().unwrap().to_owned(), repo }
    }

    fn ran(&self) -> Option<String> {
        fs::read_to_string(self.repo.root.parent().unwrap().join("RAN")).ok()
    }

    fn script(&self, path: &str) {
        let path = self.repo.root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let _ = fs::remove_file(&path);
        fs::copy(&self.payload, path).unwrap();
    }

    /// What a git would do that trusts the repository: whether the attack is one at all.
    fn plain_git_works(&self) {
        write(&self.repo.root, "c", "changed by hand\n");
        for arguments in [
            &["status"][..],
            &["add", "c"],
            &["diff", "--cached"],
            &["commit", "-q", "-m", "by hand"],
            NICKNAME,
            AMEND,
            &["merge", "-q", "-m", "both", "side"],
        ] {
            let mut git = std::process::Command::new("git");
            git.args(arguments).current_dir(&self.repo.root).stdin(std::process::Stdio::null());
            // An editor of the machine's must not wait for somebody.
            let _ = git.env_remove("GIT_EDITOR").env("VISUAL", "true").output().unwrap();
        }
    }

    /// What posse does after a session in the user's checkout, and in a work tree.
    async fn posse_works(&self) -> Vec<String> {
        let told = guard::check(DISK, &self.repo.root).unwrap();
        let before = finalize::snapshot(&self.repo.root, &Environment::default()).await.unwrap();
        write(&self.repo.root, "new.txt", "work of the run\n");
        write(&self.repo.root, "a", "changed by the run\n");
        let quarantine = self.repo.root.parent().unwrap().join("quarantine");
        let step =
            finalize::git_commit(&self.repo.root, "work", &quarantine, before.as_ref(), &Environment::default()).await;
        assert!(matches!(step, Step::Done(_)), "{step:?}");
        let worktrees = self.repo.worktrees().await;
        // Both change the same file, so the second one needs a merge of its content.
        let both = [("1.1", "b of area\n2\n3\n4\n5\n"), ("1.2", "1\n2\n3\n4\nb of area\n")];
        let (one, other) = (begin(&worktrees, both[0].0).await, begin(&worktrees, both[1].0).await);
        for (worktree, (task, content)) in [&one, &other].into_iter().zip(both) {
            write(&worktree.directory, &format!("of-area-{task}.txt"), "work\n");
            write(&worktree.directory, "b", content);
            assert!(worktrees.has_work(worktree).await.unwrap());
            worktrees.stat(worktree).await.unwrap();
            worktrees.commit_leftovers(worktree, &words(worktree)).await.unwrap();
            let merged = merge(&worktrees, worktree).await;
            assert!(matches!(merged, posse_core::plan::machine::MergeResult::Merged { .. }), "{merged:?}");
            worktrees.done_with(std::slice::from_ref(&worktree.run)).await.unwrap();
        }
        assert_eq!(self.repo.read("b").unwrap(), "b of area\n2\n3\n4\nb of area\n");
        let tree = super::WorkTree::at(&self.repo.root).await.unwrap();
        let top = tree.ask(&["rev-parse", "--show-toplevel"]).await.unwrap();
        assert_eq!(top, self.repo.root.to_str().unwrap());
        tree.hear(NICKNAME).await.unwrap_err();
        for arguments in [DIFF, AMEND] {
            let _ = tree.hear(arguments).await;
        }
        told
    }
}

/// Every way to name a program in a repository that git itself would start it from.
#[tokio::test]
async fn no_program_that_a_session_entered_is_started() {
    type Write = fn(&Attacked);
    let attacks: [(&str, Write); 15] = [
        ("core.fsmonitor", |at| drop(at.repo.git(&["config", "core.fsmonitor", &at.payload]))),
        ("core.hooksPath", |at| {
            for hook in ["pre-commit", "post-checkout", "post-merge", "reference-transaction", "post-index-change"] {
                at.script(&format!("../evil/{hook}"));
            }
            let evil = at.repo.root.parent().unwrap().join("evil");
            at.repo.git(&["config", "core.hooksPath", evil.to_str().unwrap()]);
        }),
        ("hooks", |at| {
            for hook in
                ["pre-commit", "commit-msg", "post-commit", "post-checkout", "post-merge", "reference-transaction"]
            {
                at.script(&format!(".git/hooks/{hook}"));
            }
        }),
        ("filter by .gitattributes", |at| {
            for variable in ["clean", "smudge", "process"] {
                at.repo.git(&["config", &format!("filter.evil.{variable}"), &at.payload]);
            }
            write(&at.repo.root, ".gitattributes", "* filter=evil\n");
            at.repo.git(&["-c", "filter.evil.clean=cat", "-c", "filter.evil.process=", "add", ".gitattributes"]);
            at.repo.git(&["-c", "filter.evil.clean=cat", "-c", "filter.evil.process=", "commit", "-qm", "attributes"]);
            let _ = fs::remove_file(at.repo.root.parent().unwrap().join("RAN"));
        }),
        ("filter by info/attributes", |at| {
            at.repo.git(&["config", "filter.evil.clean", &at.payload]);
            write(&at.repo.root, ".git/info/attributes", "* filter=evil\n");
        }),
        ("diff driver", |at| {
            at.repo.git(&["config", "diff.evil.textconv", &at.payload]);
            at.repo.git(&["config", "diff.evil.command", &at.payload]);
            at.repo.git(&["config", "diff.external", &at.payload]);
            write(&at.repo.root, ".git/info/attributes", "* diff=evil\n");
        }),
        ("merge driver", |at| {
            at.repo.git(&["config", "merge.evil.driver", &at.payload]);
            at.repo.git(&["config", "merge.default", "evil"]);
            write(&at.repo.root, ".git/info/attributes", "* merge=evil\n");
        }),
        ("gpg.program", |at| {
            at.repo.git(&["config", "gpg.program", &at.payload]);
            at.repo.git(&["config", "commit.gpgSign", "true"]);
        }),
        ("editor and pager", |at| {
            for key in ["core.editor", "core.pager", "core.askPass", "core.sshCommand", "sequence.editor"] {
                at.repo.git(&["config", key, &at.payload]);
            }
        }),
        ("alias", |at| {
            // Git ignores those that have the name of a command of its own.
            for command in ["status", "commit", "update-index", "diff-tree", "merge", NICKNAME[0]] {
                at.repo.git(&["config", &format!("alias.{command}"), &format!("!{}", at.payload)]);
            }
        }),
        ("include.path", |at| {
            write(&at.repo.root, "../more", &format!("[core]\nfsmonitor = {}\n", at.payload));
            at.repo.git(&["config", "include.path", at.repo.root.parent().unwrap().join("more").to_str().unwrap()]);
        }),
        ("extensions.worktreeConfig", |at| {
            at.repo.git(&["config", "extensions.worktreeConfig", "true"]);
            at.repo.git(&["config", "--worktree", "core.fsmonitor", &at.payload]);
        }),
        ("core.worktree", |at| {
            fs::create_dir_all(at.repo.root.parent().unwrap().join("other")).unwrap();
            at.repo.git(&["config", "core.worktree", at.repo.root.parent().unwrap().join("other").to_str().unwrap()]);
        }),
        ("a repository within", |at| {
            let inner = at.repo.root.join("inner");
            fs::create_dir_all(&inner).unwrap();
            for arguments in [
                &["init", "-q"][..],
                &["-c", "user.name=t", "-c", "user.email=t@e", "commit", "-qm", "x", "--allow-empty"],
            ] {
                git_in(&inner, arguments);
            }
            let head = git_in(&inner, &["rev-parse", "HEAD"]);
            at.repo.git(&["update-index", "--add", "--cacheinfo", &format!("160000,{head},inner")]);
            at.repo.git(&["commit", "-qm", "a submodule"]);
            git_in(&inner, &["config", "core.fsmonitor", &at.payload]);
            write(&inner, "dirty", "x\n");
            // Work trees are not made of it.
            at.repo.git(&["rm", "-q", "--cached", "inner"]);
            at.repo.git(&["commit", "-qm", "no submodule"]);
            at.repo.git(&["update-index", "--add", "--cacheinfo", &format!("160000,{head},inner")]);
        }),
        ("maintenance", |at| {
            // Two packs are too many.
            at.repo.git(&["repack", "-q", "-d"]);
            at.repo.git(&[
                "-c",
                "gc.auto=0",
                "-c",
                "maintenance.auto=false",
                "commit",
                "-q",
                "--allow-empty",
                "-m",
                "one more",
            ]);
            at.repo.git(&["repack", "-q", "-d"]);
            for (key, value) in [("gc.auto", "1"), ("gc.autoPackLimit", "1"), ("gc.autoDetach", "false")] {
                at.repo.git(&["config", key, value]);
            }
            at.script(".git/hooks/pre-auto-gc");
        }),
    ];
    for (name, attack) in attacks {
        let at = Attacked::new();
        attack(&at);
        assert_eq!(at.ran(), None, "{name}: the attack itself started it");
        let told = at.posse_works().await;
        assert_eq!(at.ran(), None, "{name}");
        let silent = ["a repository within"];
        assert!(!told.is_empty() || silent.contains(&name), "{name}: nothing was reported");
        // This one starts nothing: it makes git work on the files of another directory.
        if name == "core.worktree" {
            assert_ne!(at.repo.git(&["rev-parse", "--show-toplevel"]), at.repo.root.to_str().unwrap());
            continue;
        }
        at.plain_git_works();
        assert!(at.ran().is_some(), "{name}: is no attack");
    }
}

/// What a session entered is reported although the file had another content a moment ago, and has it again a moment later.
#[test]
fn a_configuration_that_goes_back_and_forth_is_reported() {
    let repo = TestRepo::new();
    let config = repo.root.join(".git/config");
    let clean = fs::read_to_string(&config).unwrap();
    guard::begin(DISK, &Environment::default(), &repo.root).unwrap();
    let put = |text: &str| {
        fs::write(config.with_extension("next"), text).unwrap();
        fs::rename(config.with_extension("next"), &config).unwrap();
    };
    for round in 0..40 {
        let evil = format!("{clean}[evil]\n\tvalue = {round}\n");
        let over = AtomicBool::new(false);
        let mut told = thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    put(&evil);
                    put(&clean);
                }
            });
            let told = guard::check(DISK, &repo.root);
            over.store(true, Ordering::Relaxed);
            told.unwrap()
        });
        put(&evil);
        told.extend(guard::check(DISK, &repo.root).unwrap());
        let line = format!(".git/config: evil.value={round} is new");
        assert_eq!(told.iter().filter(|told| **told == line).count(), 1, "{round}: {told:?}");
    }
}

/// The control: the same programs in the user's own configuration and hooks from before the run are started.
#[tokio::test]
async fn the_users_own_hooks_work() {
    let at = Attacked::new();
    at.script(".git/hooks/pre-commit");
    guard::begin(DISK, &Environment::default(), &at.repo.root).unwrap();
    // A session replaces the hook: the user's own is run, and the other one is not.
    let hook = at.repo.root.join(".git/hooks/pre-commit");
    fs::write(&hook, "#!/bin/sh\ntouch ../EVIL\nexit 1\n").unwrap();
    let told = at.posse_works().await;
    assert!(at.ran().unwrap().contains("hooks/pre-commit"), "{:?}", at.ran());
    assert!(!at.repo.root.parent().unwrap().join("EVIL").exists());
    assert_eq!(told, ["the hook pre-commit was changed"]);
    // The next run does not take it for the user's either, until they say so.
    assert_eq!(guard::begin(DISK, &Environment::default(), &at.repo.root).unwrap(), ["the hook pre-commit"]);
    guard::confirm(DISK, &at.repo.root).unwrap();
    assert!(guard::begin(DISK, &Environment::default(), &at.repo.root).unwrap().is_empty());
}

#[tokio::test]
async fn hooks_in_the_work_tree_are_not_run() {
    let at = Attacked::new();
    at.script("hooks-of-project/pre-commit");
    at.repo.git(&["config", "core.hooksPath", "hooks-of-project"]);
    let told = guard::begin(DISK, &Environment::default(), &at.repo.root).unwrap();
    assert!(told[0].contains("hooks-of-project, because sessions can write there"), "{told:?}");
    at.posse_works().await;
    assert_eq!(at.ran(), None);
}

/// A `.git` file that leads to a repository which does not know the work tree.
#[tokio::test]
async fn a_git_file_that_leads_elsewhere_is_refused() {
    let at = Attacked::new();
    let evil = at.repo.root.parent().unwrap().join("evil");
    git_in(at.repo.root.parent().unwrap(), &["init", "-q", evil.to_str().unwrap()]);
    git_in(&evil, &["config", "core.fsmonitor", &at.payload]);
    let worktrees = at.repo.worktrees().await;
    for pointer in [evil.join(".git"), at.repo.root.join(".git")] {
        let task = if pointer.starts_with(&evil) { "1.1" } else { "1.2" };
        let worktree = begin(&worktrees, task).await;
        write(&worktree.directory, "work.txt", "work\n");
        fs::write(worktree.directory.join(".git"), format!("gitdir: {}\n", pointer.display())).unwrap();
        worktrees.has_work(&worktree).await.unwrap_err();
        worktrees.commit_leftovers(&worktree, &words(&worktree)).await.unwrap_err();
    }
    // Another repository in its place that knows the directory.
    let worktree = begin(&worktrees, "1.3").await;
    fs::remove_file(worktree.directory.join(".git")).unwrap();
    git_in(
        &evil,
        &["-c", "core.fsmonitor=", "-c", "user.name=t", "-c", "user.email=t@e", "commit", "-qm", "x", "--allow-empty"],
    );
    let place = worktree.directory.to_str().unwrap();
    let aside = worktree.directory.with_extension("aside");
    fs::rename(&worktree.directory, &aside).unwrap();
    git_in(&evil, &["-c", "core.fsmonitor=", "worktree", "add", "-q", "-b", "x", place]);
    let _ = fs::remove_file(at.repo.root.parent().unwrap().join("RAN"));
    worktrees.has_work(&worktree).await.unwrap_err();
    worktrees.commit_leftovers(&worktree, &words(&worktree)).await.unwrap_err();
    // The repository itself says that its refs are elsewhere.
    write(&at.repo.root, ".git/commondir", evil.join(".git").to_str().unwrap());
    let error = worktrees.tip().await.unwrap_err().to_string();
    assert!(error.contains(".git/commondir leads to a repository that does not know this directory"), "{error}");
    assert_eq!(at.ran(), None);
}

/// A repository within the project that a session made does not take over its commits.
#[tokio::test]
async fn a_run_stays_with_the_repository_it_began_in() {
    let at = Attacked::new();
    let below = at.repo.root.join("below");
    fs::create_dir_all(&below).unwrap();
    let before = finalize::begin(&below, &Environment::default()).await.unwrap();
    git_in(&below, &["init", "-q"]);
    git_in(&below, &["config", "core.fsmonitor", &at.payload]);
    write(&at.repo.root, "new.txt", "work\n");
    let quarantine = at.repo.root.parent().unwrap().join("quarantine");
    let step = finalize::git_commit(&below, "work", &quarantine, before.as_ref(), &Environment::default()).await;
    assert!(matches!(&step, Step::Done(text) if text.starts_with("committed 1 file")), "{step:?}");
    assert_eq!(at.repo.git(&["show", "--name-only", "--format=", "HEAD"]), "new.txt");
    assert_eq!(at.ran(), None);
}

#[tokio::test]
async fn objects_from_elsewhere_and_replaced_commits_are_not_used() {
    let at = Attacked::new();
    let worktrees = at.repo.worktrees().await;
    let tip = worktrees.tip().await.unwrap();
    let tree = at.repo.git(&["write-tree"]);
    let other = at.repo.git(&["commit-tree", &tree, "-m", "another history"]);
    at.repo.git(&["replace", &tip, &other]);
    write(&at.repo.root, ".git/info/grafts", &format!("{tip}\n"));
    let worktree = begin(&worktrees, "1.1").await;
    write(&worktree.directory, "of-area.txt", "work\n");
    worktrees.commit_leftovers(&worktree, &words(&worktree)).await.unwrap();
    let merged = merge(&worktrees, &worktree).await;
    assert!(matches!(merged, posse_core::plan::machine::MergeResult::Merged { .. }), "{merged:?}");
    write(&at.repo.root, ".git/objects/info/alternates", "/tmp/elsewhere\n");
    let error = worktrees.tip().await.unwrap_err().to_string();
    assert!(error.contains("alternates is not as it was when the run began"), "{error}");
    assert!(!guard::check(DISK, &at.repo.root).unwrap().is_empty());
}
