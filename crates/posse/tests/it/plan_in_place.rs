//! Plans whose sessions work in the user's own checkout.

use std::fs;

use crate::plan_run::{ONE, Scene, one};
use crate::project::{ended_with, said};
use crate::steps::{DONE, commit, sh, wait_for};

/// Returns the user's state: staged changes, unstaged changes, untracked files.
fn users(scene: &Scene) -> [String; 3] {
    [&["diff", "--cached"][..], &["diff"], &["ls-files", "--others"]].map(|arguments| scene.git(arguments))
}

#[test]
fn t47_uncommitted_changes_are_refused_or_left_alone() {
    let scene = Scene::new(&one("isolation: in_place"));
    fs::write(scene.env.work().join("README"), "one\nmine\n").unwrap();
    fs::write(scene.env.work().join("staged"), "staged\n").unwrap();
    scene.git(&["add", "staged"]);
    fs::write(scene.env.work().join("loose"), "loose\n").unwrap();
    let before = users(&scene);
    let plan = scene.text();
    let (code, text) = scene.plan("run", &[]);
    assert!(code != 0 && text.contains("not committed: README, loose, staged; commit them"), "{code}: {text}");
    let (code, text) = scene.plan("run", &["--parallel", "--allow-dirty"]);
    assert!(code != 0 && text.contains("only one can run; leave out `parallel`"), "{code}: {text}");
    assert_eq!((scene.claude.sessions(), scene.text()), (0, plan), "nothing was begun");

    scene.claude.play("t", commit("a", "alpha") + &sh("echo beta > b") + DONE);
    let text = scene.plan_ends(0, "run", &["--allow-dirty"]);
    assert_eq!(users(&scene), before);
    assert_eq!(scene.git(&["log", "--format=", "--name-only", "-2"]), "b\na\n");
    assert!(scene.claude.called("t", 1).unwrap().prompt.contains("README\nloose\nstaged\n"), "{text}");
}

/// The leftovers of a stopped session block nothing, and the next one continues with them.
#[test]
fn t85_stop_and_go_on() {
    let scene = Scene::new(&one("isolation: in_place"));
    scene.claude.gate("gate");
    scene.claude.play("t.1", sh("echo half > a") + &wait_for("gate"));
    scene.claude.play("t.2", sh("echo whole >> a") + DONE);
    let run = scene.begin_until(&[], "t", 1);
    assert_eq!(scene.plan("stop", &["now"]).0, 0);
    let text = ended_with(3, run);
    assert_eq!(scene.file("a").as_deref(), Some("half\n"), "{text}");
    assert_eq!(scene.record("t").attempts, 0, "it costs no attempt");
    let text = scene.plan_ends(0, "run", &[]);
    assert_eq!(scene.file("a").as_deref(), Some("half\nwhole\n"), "{text}");
    assert_eq!(scene.git(&["status", "--porcelain"]), "", "{text}");
}

/// T86 and T87: the session continues without a daemon, and its work counts.
#[test]
fn t87_a_session_that_ends_while_the_daemon_is_dead() {
    let scene = Scene::new(&one("isolation: in_place"));
    scene.claude.gate("gate");
    scene.claude.play("t", wait_for("gate") + &sh("echo alpha > a") + DONE);
    let run = scene.begin_until(&[], "t", 1);
    // Another plan cannot run in the same checkout.
    let other = scene.other_plan("other.yaml", &one("isolation: in_place"));
    let (code, text) = said(&scene.command(&["run", &other]).output().unwrap());
    assert!(code != 0 && text.contains("of another plan works in"), "{code}: {text}");
    scene.env.kill_daemon();
    scene.claude.open_gate("gate");
    scene.finishes(run, 0, 1);
    assert_eq!(scene.git(&["show", "--format=%s", "--name-only"]), "task t: Write a\n\na\n");
}

/// With Git LFS in the user's own configuration, which is where `git lfs install` puts it.
#[test]
fn file_in_git_lfs_is_committed_as_its_pointer() {
    let scene = Scene::new(ONE);
    let shell = |line: &str| {
        let output = scene.env.shell(line).output().unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    if !shell("git lfs version").0 {
        return eprintln!("skipped: there is no git-lfs");
    }
    let prepared = shell(
        "git lfs install --skip-repo && git lfs track '*.bin' && echo old > old.bin && git add -A && git commit -qm lfs",
    );
    assert!(prepared.0, "{}", prepared.1);
    assert!(shell("git show HEAD:old.bin").1.starts_with("version https://git-lfs"), "the control");
    // What a session enters in the repository is not used: extensions of Git LFS are programs.
    let outside = scene.env.work().parent().unwrap().join("outside");
    let payload = outside.join("payload");
    let ran = || outside.join("RAN").exists();
    fs::write(&payload, format!("#!/bin/sh\ntouch {}/RAN\ncat\n", outside.display())).unwrap();
    fs::set_permissions(&payload, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let extension = format!("git config lfs.extension.evil.clean '{} %f'", payload.display());
    let attack = format!("{extension}; git config lfs.extension.evil.priority 0");
    scene.claude.play("t", sh(&format!("{attack}\necho new > new.bin\necho changed > old.bin")) + DONE);
    scene.plan_ends(0, "run", &[]);
    assert_eq!(scene.git(&["log", "--format=%s", "-1"]), "task t: Write a\n");
    for (name, content) in [("new.bin", "new\n"), ("old.bin", "changed\n")] {
        let (_, committed) = shell(&format!("git show HEAD:{name}"));
        assert!(committed.starts_with("version https://git-lfs.github.com/spec/v1\n"), "{name}: {committed}");
        assert!(committed.ends_with(&format!("size {}\n", content.len())), "{name}: {committed}");
        assert_eq!(scene.file(name).as_deref(), Some(content), "the file itself stays");
        assert_eq!(shell(&format!("git cat-file -p HEAD:{name} | git lfs smudge")).1, content, "its content is kept");
    }
    assert!(!ran(), "a program of the session was started");
    assert!(shell("echo mine > mine.bin && git add mine.bin").0 && ran(), "is no attack");
}
