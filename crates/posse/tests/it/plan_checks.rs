//! Checks of a plan as a whole, and what becomes of work that failed.

use std::fs;

use posse_testkit::files::when;
use posse_testkit::process;

use crate::plan_run::{ONE, Scene};
use crate::project::ended_with;
use crate::steps::{DONE, commit, wait_for};

/// ONE, with a check of the whole plan.
fn checked(command: &str, more: &str) -> String {
    let gates = format!("backoff_base: 1, gates: [{{name: e2e, cmd: '{command}', when: after_plan}}]{more}");
    ONE.replace("backoff_base: 1", &gates)
}

fn report(text: &str) -> String {
    let path = text.lines().find_map(|line| line.strip_prefix("report: ")).unwrap_or_else(|| panic!("{text}"));
    fs::read_to_string(path.trim()).unwrap()
}

#[test]
fn a_plan_that_does_not_hold_as_a_whole_is_not_verified() {
    for place in ["", ", isolation: in_place"] {
        let scene = Scene::new(&checked("grep -q good a || { echo it is not good; exit 1; }", place));
        scene.claude.play("t", commit("a", "bad") + DONE);
        let text = scene.runs(1, 1, &[]); // The task itself is done.
        assert!(text.contains("the plan as a whole does not hold: e2e: exited with 1"), "{text}");
        assert!(scene.text().contains("status: verified"), "{}", scene.text());
        let report = report(&text);
        assert!(report.contains("- Check `e2e` (after_plan): failed: exited with 1"), "{report}");

        // A person mends it; no session is needed.
        fs::write(scene.env.work().join("a"), "good\n").unwrap();
        scene.git(&["commit", "-qam", "good"]);
        scene.runs(0, 1, &[]);
        // It has said what it had to say.
        fs::write(scene.env.work().join("a"), "bad\n").unwrap();
        scene.git(&["commit", "-qam", "bad"]);
        assert_eq!(scene.plan("run", &[]).0, 0);
    }
}

#[test]
fn what_was_red_before_and_what_cannot_be_run() {
    let scene = Scene::new(&checked("echo \"test old ... FAILED\"; exit 1", ""));
    scene.claude.play("t", commit("a", "alpha") + DONE);
    let text = scene.plan_ends(0, "run", &[]);
    assert!(report(&text).contains("(after_plan): red, as it was before: old"), "{text}");

    let scene = Scene::new(&checked("echo no server; exit 77", ""));
    scene.claude.play("t", commit("a", "alpha") + DONE);
    let text = scene.plan_says(0, "run", &[], &["completed with warnings: every task is done; e2e: not run"]);
    assert!(report(&text).contains("(after_plan): not run: it says that it cannot"), "{text}");
}

/// Who leaves a check out is not told that all is well, and it is made another time.
#[test]
fn a_check_that_was_left_out_is_still_to_be_made() {
    let scene = Scene::new(&checked("grep -q good a", ""));
    scene.claude.play("t", commit("a", "bad") + DONE);
    let text = scene.plan_says(
        0,
        "run",
        &["--skip-smoke"],
        &["completed with warnings: every task is done; the checks of the whole plan were left out"],
    );
    assert!(text.contains("run it again without --skip-smoke"), "{text}");
    assert!(report(&text).contains("- Check `e2e` (after_plan): not run"), "{text}");
    let text = scene.runs(1, 1, &[]);
    assert!(text.contains("the plan as a whole does not hold: e2e"), "{text}");
}

/// It is journaled like everything else: asked for again after a crash, and answered once.
#[test]
fn the_daemon_dies_while_the_plan_is_checked() {
    let scene = Scene::new(ONE);
    let (started, gate) = (scene.plan.with_file_name("started"), scene.plan.with_file_name("gate"));
    scene.claude.gate("gate");
    let command = format!("echo x >> {}; read -r x < {}", started.display(), gate.display());
    fs::write(&scene.plan, checked(&command, "")).unwrap();
    scene.claude.play("t", commit("a", "alpha") + DONE);
    let run = scene.begin(&[]);
    let starts = || fs::read_to_string(&started).map_or(0, |text| text.lines().count());
    when("the check", || (starts() == 1).then_some(()));
    scene.env.kill_daemon();
    when("it is run again", || (starts() == 2).then_some(()));
    scene.claude.open_gate("gate");
    let text = scene.finishes(run, 0, 1);
    assert_eq!(starts(), 2, "{text}");
    assert!(text.contains("verified: every task is done"), "{text}");
}

/// A plan with a check that goes on for ever where `where_` is so, and until the file `ok` is there. It says through a pipe
/// which processes it has.
fn with_a_slow_check(where_: &str, more: &str) -> Scene {
    let scene = Scene::new(ONE);
    scene.claude.gate("pids");
    let (ok, pids) = (scene.plan.with_file_name("ok"), scene.plan.with_file_name("pids"));
    let command =
        format!("! {where_} || test -e {} || {{ sleep 600 & echo $$ $! > {}; wait; }}", ok.display(), pids.display());
    let gates = format!("backoff_base: 1, gates: [{{name: slow, cmd: '{command}'{more}}}]");
    fs::write(&scene.plan, ONE.replace("backoff_base: 1", &gates)).unwrap();
    scene.claude.play("t", commit("a", "alpha") + DONE);
    scene
}

/// T85, for a check: it is ended with all it started, and costs nothing. The next run does what is left.
#[test]
fn t85_stop_now_ends_a_check_that_runs() {
    for (where_, more, says, sessions) in [
        // Of the task; and of what it gives together with what was committed meanwhile, which only the bench has.
        ("test -e a", "", "task t: its checks were ended", 2),
        ("test -e a -a -e b", "", "task t: the checks of the merged result were ended", 2),
        // Of the plan as a whole: its tasks are done.
        ("test -e a", ", when: after_plan", "the checks of the whole plan were ended", 1),
    ] {
        let scene = with_a_slow_check(where_, more);
        if where_.contains(" b") {
            scene.claude.gate("gate");
            scene.claude.play("t.1", wait_for("gate") + &commit("a", "alpha") + DONE);
        }
        let run = scene.begin(&[]);
        if where_.contains(" b") {
            scene.until_waits("t", 1);
            fs::write(scene.env.work().join("b"), "b\n").unwrap();
            scene.git(&["add", "b"]);
            scene.git(&["commit", "-qm", "by hand"]);
            scene.claude.open_gate("gate");
        }
        let pids = fs::read_to_string(scene.plan.with_file_name("pids")).unwrap();
        scene.plan_ends(0, "stop", &["now"]);
        let text = ended_with(3, run);
        assert!(text.contains(says), "{text}");
        for pid in pids.split_whitespace() {
            assert!(process::ends(pid.parse().unwrap()), "{pid} lives on: {text}");
        }
        let (plan, done) = (scene.text(), sessions == 1);
        assert!(!plan.contains("in_progress"), "{plan}");
        assert_eq!((plan.contains("verified"), scene.record("t").attempts), (done, u32::from(done)), "{plan}");
        assert_eq!(scene.file("a").is_some(), done);

        fs::write(scene.plan.with_file_name("ok"), "").unwrap();
        scene.runs(0, sessions, &[]);
        assert_eq!(scene.record("t").attempts, 1);
    }
}

/// In the user's checkout the checks are run before the first session too.
#[test]
fn stop_now_ends_a_check_before_the_first_session() {
    let scene = with_a_slow_check("true", "");
    fs::write(&scene.plan, scene.text().replace("backoff_base", "isolation: in_place, backoff_base")).unwrap();
    let run = scene.begin(&[]);
    let pids = fs::read_to_string(scene.plan.with_file_name("pids")).unwrap();
    assert_eq!(scene.plan("stop", &["now"]).0, 0);
    let text = scene.finishes(run, 3, 0);
    for pid in pids.split_whitespace() {
        assert!(process::ends(pid.parse().unwrap()), "{pid} lives on: {text}");
    }
    fs::write(scene.plan.with_file_name("ok"), "").unwrap();
    let text = scene.plan_ends(0, "run", &[]);
    assert_eq!(scene.file("a").as_deref(), Some("alpha\n"), "{text}");
}

/// The daemon dies between the stop and the end of the check: the next one does not begin it again.
#[test]
fn a_check_that_was_stopped_is_not_begun_again_after_a_crash() {
    let scene = with_a_slow_check("test -e a", "");
    // It does not listen, and is killed only after a while.
    let before = scene.text().replace("sleep 600 &", "trap \"\" TERM; sleep 600 &");
    fs::write(&scene.plan, &before).unwrap();
    let run = scene.begin(&[]);
    let pids = fs::read_to_string(scene.plan.with_file_name("pids")).unwrap();
    assert_eq!(scene.plan("stop", &["now"]).0, 0);
    scene.env.kill_daemon();
    let text = ended_with(3, run);
    for pid in pids.split_whitespace() {
        assert!(process::ends(pid.parse().unwrap()), "{pid} lives on: {text}");
    }
    // The daemon that comes next writes the file.
    when("the status in the file", || (scene.text() == before).then_some(()));
    assert_eq!(scene.record("t").attempts, 0);
}

/// The branch of an attempt that failed is kept, also when the next one was merged, and when the daemon starts anew.
#[test]
fn work_that_failed_is_kept_for_a_while() {
    let gates = "backoff_base: 1, gates: [{name: good, cmd: 'grep -q good a'}]";
    let scene = Scene::new(&ONE.replace("backoff_base: 1", gates));
    scene.claude.play("t.1", commit("a", "bad") + DONE);
    scene.claude.play("t.2", commit("a", "good") + DONE);
    let text = scene.plan_ends(0, "run", &[]);
    let branches = || scene.git(&["branch", "--list", "--format=%(refname:short)", "plan/*"]);
    let kept = branches();
    assert!(kept.lines().count() == 1 && kept.trim().ends_with("/t/1"), "{kept}");
    assert!(report(&text).contains(&format!("(branch {}): its work is not merged", kept.trim())), "{text}");
    scene.env.kill_daemon();
    when("another daemon", || (scene.plan("status", &[]).0 == 0).then_some(()));
    assert_eq!(branches(), kept);
}
