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
        if place.is_empty() {
            // A check that is left out is still to be made.
            let left_out = "completed with warnings: every task is done; checks of the whole plan: not run: left out";
            let text = scene.plan_says(0, "run", &["--skip-smoke"], &[left_out, "run it again without --skip-smoke"]);
            assert!(report(&text).contains("- Check `e2e` (after_plan): not run"), "{text}");
        }
        let text = scene.runs(1, 1, &[]); // The task itself is done.
        assert!(text.contains("the plan as a whole does not hold: e2e: failed: exited with 1"), "{text}");
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
fn check_that_cannot_be_run_is_a_warning() {
    let scene = Scene::new(&checked("echo no server; exit 77", ""));
    scene.claude.play("t", commit("a", "alpha") + DONE);
    let text = scene.plan_says(0, "run", &[], &["completed with warnings: every task is done; e2e: not run"]);
    assert!(report(&text).contains("(after_plan): not run: it says that it cannot"), "{text}");
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

/// A plan with a check that hangs where `where_` is true, and until the file `ok` exists. It reports its processes
/// through a pipe.
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
        // In the user's checkout the checks are run before the first session too.
        ("true", "", "", 1),
    ] {
        let scene = with_a_slow_check(where_, more);
        if where_ == "true" {
            fs::write(&scene.plan, scene.text().replace("backoff_base", "isolation: in_place, backoff_base")).unwrap();
        }
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
        let (plan, done) = (scene.text(), more.contains("after_plan"));
        assert!(!plan.contains("in_progress"), "{plan}");
        assert_eq!((plan.contains("verified"), scene.record("t").attempts), (done, u32::from(done)), "{plan}");
        assert_eq!(scene.file("a").is_some(), done);

        fs::write(scene.plan.with_file_name("ok"), "").unwrap();
        scene.runs(0, sessions, &[]);
        assert_eq!(scene.record("t").attempts, 1);
    }
}
