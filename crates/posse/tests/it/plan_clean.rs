//! Remains of runs of plans: removed automatically, removed on request, always kept, or unreadable.

use std::fs;
use std::path::PathBuf;

use crate::from_inside::inside;
use crate::plan_run::{ONE, Scene};
use crate::project::{ended, ended_with, says};
use crate::steps::{DONE, ask, commit, reports, sh, wait_for};

fn runs(scene: &Scene) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> =
        fs::read_dir(scene.env.paths().plans()).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.sort();
    found
}

#[test]
fn runs_are_removed_when_asked_but_never_one_that_is_active_or_holds_work() {
    let scene = Scene::new(&ONE.replace("backoff_base: 1", "backoff_base: 1, max_attempts_default: 1"));
    let drop_run = |code: i32, words: &[&str]| {
        says(code, scene.posse(&["run", "drop", scene.plan.to_str().unwrap()]), words);
    };
    scene.claude.gate("gate");
    scene.claude.play("t.1", wait_for("gate") + &commit("a", "alpha") + &reports("failed", "I give up"));
    scene.claude.play("t.2", commit("a", "beta") + DONE);
    let run = scene.begin_until(&[], "t", 1);
    drop_run(1, &["is active", "posse run stop"]);
    scene.claude.open_gate("gate");
    ended_with(1, run);
    drop_run(1, &["is not merged", "posse plan clean"]);
    scene.plan_says(0, "clean", &[], &["its work is not merged", "there is nothing to remove"]);
    assert_eq!(runs(&scene).len(), 1, "nothing was removed");

    scene.plan_ends(0, "retry", &["t"]);
    scene.plan_ends(0, "run", &[]);
    scene.plan_says(0, "clean", &[], &["may go", "posse plan clean --yes"]);
    assert_eq!(runs(&scene).len(), 2, "it shows first");
    scene.plan_says(0, "clean", &["--yes"], &["removed", "its work is not merged"]);
    assert_eq!(runs(&scene).len(), 1, "the run whose work is nowhere else stays");

    // Merged by hand, or given up by hand: then it goes, and its branch too.
    let branch = scene.git(&["branch", "--list", "plan/*", "--format=%(refname:short)"]);
    scene.git(&["merge", "-q", "-s", "ours", "-m", "not needed", branch.trim()]);
    let text = scene.plan_ends(0, "clean", &["--yes"]);
    assert!(runs(&scene).is_empty() && scene.git(&["branch", "--list", "plan/*"]).is_empty(), "{text}");
    assert_eq!(scene.worktrees(), 1);
    scene.plan_says(0, "log", &["t"], &["its files are gone"]);

    let (said, code) = inside(&scene.env, &format!("posse run drop {}", scene.plan.display()));
    assert!(code == "1" && said.contains("may not drop a run"), "an agent cannot forget its own failures: {said}");
    drop_run(0, &["dropped run"]);
}

/// Old runs go when the daemon starts: those of a plan that is done, and no others.
#[test]
fn what_is_old_goes_by_itself() {
    let scene = Scene::new(ONE);
    scene.claude.play("t", commit("a", "alpha") + DONE);
    assert_eq!(scene.plan("run", &[]).0, 0);
    let unfinished = scene.plan.with_file_name("unfinished.yaml");
    fs::write(&unfinished, ONE.replace("id: t", "id: u")).unwrap();
    scene.claude.play("u", ask("Why?"));
    assert_eq!(scene.command(&["run", unfinished.to_str().unwrap()]).status().unwrap().code(), Some(7));
    let before = runs(&scene);
    assert_eq!(before.len(), 2);
    scene.env.run(["stop"]).ok();
    // As if it had been two months ago.
    let database = rusqlite::Connection::open(scene.env.paths().database()).unwrap();
    let past = (jiff::Timestamp::now() - jiff::SignedDuration::from_hours(24 * 60)).to_string();
    let aged =
        database.execute("UPDATE runs SET view = json_set(view, '$.changed', ?1) WHERE kind = 'plan'", [past]).unwrap();
    assert_eq!(aged, 2);
    drop(database);
    scene.env.run(["ls"]).ok();
    posse_testkit::files::when("the old run has gone", || (runs(&scene).len() == 1).then_some(()));
    scene.plan_says(0, "log", &[], &["task t is done"]);
    scene.plan_says(1, "log", &["nobody"], &["there is no task \"nobody\""]);
    let asked = scene.command(&["log", unfinished.to_str().unwrap(), "u"]).output().unwrap();
    assert!(String::from_utf8_lossy(&asked.stdout).contains("asked:"), "{asked:?}");
}

/// An edit of the file while the plan runs is not lost, even if it is not text.
#[test]
fn a_plan_file_that_is_no_text() {
    let scene = Scene::new(ONE);
    let plan = scene.plan.display();
    let spoil = format!("until grep -q in_progress {plan}; do sleep 0.02; done\nprintf 'mine \\377\\n' > {plan}");
    scene.claude.play("t", sh(&spoil) + &commit("a", "alpha") + DONE);
    let text = scene.runs(0, 1, &[]);
    let kept =
        text.split_once("is not UTF-8, and is not taken over; it is kept in ").unwrap_or_else(|| panic!("{text}"));
    let kept = kept.1.lines().next().unwrap();
    assert_eq!(fs::read(kept).unwrap(), b"mine \xff\n");
    assert!(scene.text().contains("status: verified"), "{}", scene.text());
}

/// A run with an unreadable journal cannot continue. The error names that and the alternatives.
#[test]
fn a_run_whose_journal_cannot_be_read() {
    let scene = Scene::new(ONE);
    scene.claude.gate("gate");
    scene.claude.play("t", wait_for("gate") + &commit("a", "alpha") + DONE);
    let run = scene.begin_until(&[], "t", 1);
    scene.env.kill_daemon();
    let database = rusqlite::Connection::open(scene.env.paths().database()).unwrap();
    let spoilt = database.execute("UPDATE journal SET entry = '{}' WHERE seq = 2", []).unwrap();
    assert_eq!(spoilt, 1);
    drop(database);
    ended(run);
    scene.plan_says(1, "run", &[], &["what it did cannot be read", "copy the plan to a file"]);
    let copy = scene.plan.with_file_name("copy.yaml");
    fs::copy(&scene.plan, &copy).unwrap();
    scene.claude.play("t", commit("a", "alpha") + DONE);
    assert_eq!(scene.command(&["run", copy.to_str().unwrap()]).status().unwrap().code(), Some(0));
}
