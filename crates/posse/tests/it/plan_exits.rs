//! Exit codes of `posse plan run`, and every option that selects tasks.

use std::fs;

use posse_testkit::git::git;

use crate::has_in_order;
use crate::plan_run::{ONE, Scene, TWO, one};
use crate::project::{ended, ended_with, says};
use crate::steps::{DONE, FINE, ask, commit, end, limited, refused, reports, say, uses, wait_for};

/// One task that fails at once, and one that needs it.
const NEEDS: &str = "\
meta: {name: Needs, backoff_base: 1, max_attempts_default: 1}
sections:
  - id: s
    tasks:
      - {id: a, name: A}
      - {id: b, name: B, depends_on: [a]}
";

#[test]
fn every_end_has_its_code() {
    let done: &str = &(commit("a", "alpha") + DONE);
    let fails = |message| reports("failed", message);
    let warned = end("[WARN] a could be better\n**Verdict: WARN**");
    let validated = one("validation: {enabled: true}");
    let broken = one("max_attempts_default: 9, circuit_breaker_threshold: 1, circuit_breaker_reset_timeout: 1s");
    let once = one("max_attempts_default: 1");
    let pause = "paused: sessions failed one after the other; one more is tried in 1 min";
    for (name, plan, options, plays, code, word) in [
        ("verified", ONE, &[][..], &[("t", done)][..], 0, "verified: every task is done"),
        ("with warnings", &validated, &[], &[("t.1", done), ("t.2", warned.as_str())], 0, "completed with warnings"),
        ("a task failed", &once, &[], &[("t", fails("it is too hard").as_str())], 1, "it is too hard"),
        (
            "out of money",
            TWO,
            &["--budget-cap", "0.2"],
            &[("1.1", done)],
            2,
            "out of money: this run: 0.25 USD of 0.20 USD",
        ),
        ("nothing works", &broken, &[], &[("t", fails("no").as_str())], 4, pause),
        ("deadlocked", NEEDS, &[], &[("a", fails("no").as_str())], 5, "deadlocked: b: it waits for a (failed)"),
        ("a question", ONE, &[], &[("t", ask("Why?").as_str())], 7, "waits for an answer"),
        ("out of quota", ONE, &["--no-wait"], &[("t", limited(3600).as_str())], 75, "out of quota"),
        ("an unknown task", ONE, &["--only", "nobody"], &[], 64, "there is no task \"nobody\" in this plan"),
    ] {
        let scene = Scene::new(plan);
        plays.iter().for_each(|(of, play)| scene.claude.play(of, play));
        let (found, text) = scene.plan("run", options);
        assert_eq!(found, code, "{name}: {text}");
        assert!(text.contains(word), "{name}: {text}");
        if code == 64 {
            assert_eq!((scene.claude.sessions(), scene.text().as_str()), (0, plan), "{name}: {text}");
        }
    }
}

#[test]
fn where_no_plan_can_be_run() {
    let scene = Scene::new(ONE);
    let elsewhere = scene.env.work().parent().unwrap().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let refused = |words: &[&str]| {
        let mut command = scene.of_plan("run", &[]);
        command.current_dir(&elsewhere);
        says(1, command, words);
    };
    let git = |words: &[&str]| git(&elsewhere, words);
    refused(&["is not in a git repository", "git init"]);
    git(&["init", "-q"]);
    refused(&["has no commit yet"]);
    // There is no git identity for commits.
    git(&["config", "user.useConfigOnly", "true"]);
    git(&["-c", "user.name=U", "-c", "user.email=u@example.org", "commit", "-q", "--allow-empty", "-m", "first"]);
    refused(&["git does not know who you are", "user.name"]);
    assert_eq!((scene.claude.sessions(), scene.text().as_str()), (0, ONE));
}

#[test]
fn what_is_chosen_is_done_and_nothing_else() {
    let plays = |scene: &Scene| {
        scene.claude.play("1.1", commit("a", "alpha") + DONE);
        scene.claude.play("1.2", commit("b", "beta") + DONE);
    };
    let scene = Scene::new(TWO);
    plays(&scene);
    let text = scene.plan_says(0, "run", &["--dry-run", "--single-task"], &["1.1"]);
    assert!(!text.contains("1.2"), "{text}");
    // One task, and no more; the next time, the next one.
    for (sessions, status) in [(1, "pending"), (2, "verified")] {
        scene.runs(0, sessions, &["--single-task"]);
        scene.plan_says(0, "why", &["1.2"], &[&format!("status     {status}")]);
    }
    let text = scene.plan_says(0, "run", &["--single-task"], &["every task is done"]);
    assert!(scene.claude.sessions() == 2, "{text}");

    // Again, from the beginning: that one and no other.
    scene.claude.play("1.1", commit("a", "again") + DONE);
    let text = scene.plan_says(0, "run", &["--dry-run", "--reset", "1.1"], &["1.1"]);
    assert!(!text.contains("1.2"), "{text}");
    scene.runs(0, 3, &["--reset", "1.1"]);
    assert_eq!(scene.file("a").as_deref(), Some("again\n"));

    // From a task on, and what is before it stays as it is. The old name of the option means the same.
    let plan = TWO.replace("        depends_on: ['1.1']\n", "");
    for option in ["--from", "--resume-from", "--only"] {
        let scene = Scene::new(&plan);
        plays(&scene);
        let text = scene.plan_says(0, "run", &["--dry-run", option, "1.2"], &["1.2"]);
        assert!(!text.contains("1.1"), "{text}");
        let (code, text) = scene.plan("run", &[option, "1.2"]);
        assert_eq!((code, scene.claude.sessions()), (0, 1), "{option}: {text}");
        assert!(text.contains("what was asked for is done"), "{text}");
        assert_eq!((scene.file("a"), scene.file("b").as_deref()), (None, Some("beta\n")), "{option}");
    }
}

/// A second command follows the run; if its options differ, it is refused.
#[test]
fn a_run_that_goes_on_is_joined_or_left_alone() {
    let scene = Scene::new(ONE);
    scene.claude.gate("gate");
    scene.claude.play("t", wait_for("gate") + &commit("a", "alpha") + DONE);
    let first = scene.begin_until(&["--parallel=3"], "t", 1);
    for (options, without) in [
        (&["--no-sandbox", "--only", "t", "--parallel=2"][..], "--only t, --parallel 2, --no-sandbox"),
        (&["--allow-dirty", "--state", "x", "--provider", "codex"], "--allow-dirty, --provider codex, --state x"),
        (&["--budget-cap", "0", "--quota-ceiling", "1.5"], "--budget-cap 0, --quota-ceiling 1.5"),
        (&["--max-budget-pct", "50", "--reserved-budget", "2"], "--max-budget-pct 50, --reserved-budget 2"),
    ] {
        let text = scene.plan_ends(6, "run", options);
        let without = format!("goes on already, without {without}");
        assert!(text.contains(&without) && text.contains("posse run stop"), "{text}");
    }
    // The same command again, or one without wishes.
    let (second, third) = (scene.begin(&["--parallel=3"]), scene.begin(&[]));
    scene.claude.open_gate("gate");
    for (code, text) in [first, second, third].map(ended) {
        assert_eq!(code, 0, "{text}");
    }
    assert_eq!(scene.claude.sessions(), 1);
}

/// Sessions are shown on request; `--quiet` shows the end, and nothing else.
#[test]
fn as_much_is_shown_as_was_asked_for() {
    let tools = uses("Read", "src/a.py") + &refused("Write", "/etc/passwd");
    let play = say("I look around.") + &tools + &commit("a", "alpha") + DONE;
    let run = |options: &[&str]| {
        let scene = Scene::new(ONE);
        scene.claude.play("t", &play);
        let output = scene.command(&[&["run", scene.plan.to_str().unwrap()], options].concat()).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let quiet = run(&["--quiet"]);
    assert_eq!(quiet, "verified: every task is done\n");
    let usual = run(&[]);
    assert!(usual.contains("task t: coder (WRITE)") && usual.contains("task t is done"), "{usual}");
    assert!(usual.contains("task t: refused: Write /etc/passwd") && !usual.contains("I look around."), "{usual}");
    let verbose = run(&["--verbose"]);
    let parts = [
        "│ I look around.",
        "│ ⏵ Read src/a.py",
        "│ refused: Write /etc/passwd",
        "│ ended, 2 turns, 1s, 0.25 USD",
        "task t: says it is done",
        "task t: merged",
    ];
    has_in_order(&verbose, &parts);
    let json = run(&["--verbose", "--json"]);
    let events: Vec<serde_json::Value> = json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(events.iter().any(|event| event["event"]["said"] == "I look around." && event["task"] == "t"), "{json}");
    assert!(events.iter().any(|event| event["entry"] == "refused"), "{json}");
    assert_eq!(events.last().unwrap()["outcome"], "verified");
}

/// A run is stopped when the work is done and not validated yet. The next run has it validated, and does it again only if the work
/// is gone.
#[test]
fn work_is_not_done_again_after_a_stop() {
    for (held, how, is_gone, sessions) in
        [("t.1", &[][..], false, 2), ("t.2", &["now"][..], false, 3), ("t.1", &[][..], true, 3)]
    {
        let scene = Scene::new(&one("validation: {enabled: true}, max_attempts_default: 1"));
        scene.claude.gate("gate");
        let work = commit("a", "alpha") + DONE;
        scene.claude.play("t.1", if held == "t.1" { wait_for("gate") + &work } else { work.clone() });
        let again = if is_gone { commit("a", "beta") + DONE } else { FINE.to_owned() };
        scene.claude.play("t.2", if held == "t.2" { wait_for("gate") } else { again });
        scene.claude.play("t.3", FINE);
        let run = scene.begin_until(&[], "t", if held == "t.1" { 1 } else { 2 });
        scene.plan_says(1, "retry", &["t"], &["a session works on task t"]);
        scene.plan_ends(0, "stop", how);
        if how.is_empty() {
            scene.claude.open_gate("gate");
        }
        let text = ended_with(3, run);
        assert_eq!(scene.file("a"), None, "{text}");
        scene.plan_says(0, "why", &["t"], &["it counts when validators agree"]);
        if is_gone {
            for entry in fs::read_dir(scene.env.paths().plans()).unwrap() {
                fs::remove_file(entry.unwrap().path().join("records/t-1.json")).unwrap();
            }
        }
        // Work that is gone costs no attempt.
        let text = scene.runs(0, sessions, &[]);
        let expected = if is_gone { "beta\n" } else { "alpha\n" };
        assert_eq!(scene.file("a").as_deref(), Some(expected), "{text}");
        // Nobody knows of a work tree whose record is gone.
        assert!(is_gone || scene.worktrees() == 1, "{text}");
    }
}
