//! Plans that run at the same time, or are stopped by a file, or wait for the same quota.

use std::fs;

use posse_testkit::files::when;

use crate::plan_run::{ONE, Scene, TWO};
use crate::project::{ended, ended_with, said, says};
use crate::steps::{DONE, commit, limited, wait_for};

const EXCLUSIVE: &str = "\
meta: {name: First, backoff_base: 1}
sections:
  - id: s
    tasks:
      - {id: first, name: First, exclusive_resources: [database]}
";

/// A lock has one holder, the first to request it. Waiting runs are woken, and the holder is visible.
#[test]
fn what_only_one_may_have_is_held_across_plans() {
    let scene = Scene::new(EXCLUSIVE);
    let other =
        &scene.other_plan("other.yaml", &EXCLUSIVE.replace("First", "Second").replace("id: first", "id: second"));
    scene.claude.gate("gate");
    scene.claude.play("first", wait_for("gate") + &commit("a", "alpha") + DONE);
    scene.claude.play("second", commit("b", "beta") + DONE);
    let first = scene.begin_until(&[], "first", 1);
    let text = says(0, scene.command(&["run", "--detach", other]), &[]);
    let id = text.trim().to_owned();
    let status = || said(&scene.command(&["status", other]).output().unwrap()).1;
    when("it waits", || status().contains("database is held by task first of First (run").then_some(()));
    says(0, scene.command(&["why", other, "second"]), &["database is held by task first of First"]);
    // A daemon that comes later knows it too.
    scene.env.kill_daemon();
    when("it waits again", || status().contains("database is held by task first of First").then_some(()));
    assert_eq!(scene.claude.sessions(), 1);
    let mut second = scene.command(&["run", other]);
    let second = second.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    scene.claude.open_gate("gate");
    ended_with(0, first);
    let (code, text) = ended(second);
    assert_eq!((code, scene.claude.sessions()), (0, 2), "{id}: {text}");
    assert_eq!((scene.file("a").as_deref(), scene.file("b").as_deref()), (Some("alpha\n"), Some("beta\n")));
}

/// T84, as far as it is about plans: what runs may finish, nothing more is started, and the file is used up.
#[test]
fn t84_a_stop_file_stops_a_run() {
    let scene = Scene::new(TWO);
    let work = scene.env.work();
    // One that was there before is not meant for this run.
    fs::create_dir_all(work.join(".posse/state")).unwrap();
    let stop = work.join(".posse/state/stop");
    let old = fs::File::create(&stop).unwrap();
    old.set_modified(std::time::SystemTime::now() - std::time::Duration::from_secs(60)).unwrap();
    scene.claude.gate("gate");
    scene.claude.play("1.1", wait_for("gate") + &commit("a", "alpha") + DONE);
    scene.claude.play("1.2", wait_for("gate") + DONE);
    let run = scene.begin_until(&[], "1.1", 1);
    assert!(!stop.exists(), "it is cleared");
    fs::write(&stop, "").unwrap();
    when("it is used up", || (!stop.exists()).then_some(()));
    // It is written down: another daemon does not start anything either.
    scene.env.kill_daemon();
    scene.claude.open_gate("gate");
    let text = scene.finishes(run, 3, 1);
    assert!(text.contains("is older than this run, and does not stop it"), "{text}");
    assert_eq!(scene.file("a").as_deref(), Some("alpha\n"), "what ran has finished");

    // Where the original looks for it, and now.
    let run = scene.begin_until(&[], "1.2", 1);
    fs::create_dir_all(work.join(".claude/plans")).unwrap();
    fs::write(work.join(".claude/plans/.stop"), "now\n").unwrap();
    scene.finishes(run, 3, 2);
    assert!(!work.join(".claude/plans/.stop").exists());
    assert!(!scene.text().contains("in_progress"), "{}", scene.text());
}

/// T72: the quota is used up for every plan, and for who comes after a restart.
#[test]
fn t72_a_hold_is_everyones_and_outlives_the_daemon() {
    let scene = Scene::new(ONE);
    scene.claude.play("t", limited(3600));
    scene.claude.play("u", commit("a", "alpha") + DONE);
    scene.runs(75, 1, &["--no-wait"]);
    assert_eq!(scene.record("t").attempts, 0, "it costs no attempt");
    let other = &scene.other_plan("other.yaml", &ONE.replace("id: t", "id: u"));
    for restarted in [false, true] {
        if restarted {
            scene.env.kill_daemon();
        }
        let (code, text) = said(&scene.command(&["run", "--no-wait", other]).output().unwrap());
        assert_eq!((code, scene.claude.sessions()), (75, 1), "restarted: {restarted}: {text}");
        assert!(text.contains("usage limit (five_hour)"), "{text}");
    }
    // One that waits is still waiting after a restart, and can be stopped.
    says(0, scene.command(&["run", "--detach", other]), &[]);
    let status = || said(&scene.command(&["status", other]).output().unwrap()).1;
    when("it waits", || status().contains("no session before").then_some(()));
    scene.env.kill_daemon();
    when("it still waits", || status().contains("no session before").then_some(()));
    let text = says(0, scene.command(&["stop", other]), &[]);
    assert_eq!(scene.claude.sessions(), 1, "{text}");
    // A person may know better.
    when("it is over", || (!status().contains("no session before")).then_some(()));
    let text = says(0, scene.command(&["run", "--try-now", other]), &[]);
    assert_eq!(scene.claude.sessions(), 2, "{text}");
}

/// T72, of an active run: runs after a restart wait for the quota with it.
#[test]
fn t72_a_run_that_waits_for_its_quota_holds_the_others_after_a_restart() {
    let scene = Scene::new(ONE);
    scene.claude.play("t", limited(3600));
    scene.claude.play("u", commit("a", "alpha") + DONE);
    scene.plan_ends(0, "run", &["--detach"]);
    when("it waits", || scene.plan("status", &[]).1.contains("no session before").then_some(()));
    scene.env.kill_daemon();
    let other = scene.plan.with_file_name("other.yaml");
    fs::write(&other, ONE.replace("id: t", "id: u")).unwrap();
    let text = says(75, scene.command(&["run", "--no-wait", other.to_str().unwrap()]), &[]);
    assert_eq!(scene.claude.sessions(), 1, "{text}");
    assert!(text.contains("usage limit (five_hour)"), "{text}");
}
