//! What a run of a plan leaves behind for the next one: work that is done is not done again.

use std::fs;

use crate::plan_run::{ONE, Scene};
use crate::project::ended;
use crate::steps::{DONE, commit, sh, wait_for};

/// What somebody makes of the file while the plan runs is not lost, even if it is no text any more.
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

/// A run that cannot be read cannot go on. It says so, and what else can be done.
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
