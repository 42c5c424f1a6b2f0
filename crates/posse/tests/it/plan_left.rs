//! What a run of a plan leaves behind for the next one: work that is done is not done again.

use std::fs;

use crate::plan_run::{ONE, Scene, one};
use crate::project::{ended, ended_with};
use crate::steps::{DONE, FINE, commit, end, sh, wait_for};

/// Something of the user's was in the way, and the run ended before they put it elsewhere.
#[test]
fn what_could_not_be_merged_is_merged_by_the_next_run() {
    // One attempt is all it has.
    let scene = Scene::new(&one("max_attempts_default: 1"));
    scene.claude.play("t", commit("README", "two") + DONE);
    fs::write(scene.env.work().join("README"), "one\nmine\n").unwrap();
    let text = scene.runs(7, 1, &[]);
    assert!(text.contains("the work is done, but cannot be merged"), "{text}");
    // The next run does not know better, and asks again.
    scene.runs(7, 1, &[]);
    scene.git(&["checkout", "README"]);
    scene.plan_ends(0, "answer", &["t", "it is out of the way"]);
    let text = scene.runs(0, 1, &[]);
    assert_eq!(scene.file("README").as_deref(), Some("two\n"), "{text}");
    assert_eq!(scene.record("t").attempts, 1);
    assert_eq!(scene.worktrees(), 1, "nothing is left behind: {text}");
}

/// Validators that gave no verdict are asked again when a person has answered, and nobody else is.
#[test]
fn what_was_not_judged_is_judged_by_the_next_run() {
    let scene = Scene::new(&one("validation: {enabled: true}"));
    scene.claude.play("t.1", commit("a", "alpha") + DONE);
    for session in ["t.2", "t.3", "t.4"] {
        scene.claude.play(session, end("I do not know."));
    }
    scene.claude.play("t.5", FINE);
    scene.runs(7, 4, &[]);
    assert_eq!(scene.plan("answer", &["t", "look again"]).0, 0);
    let text = scene.runs(0, 5, &[]);
    assert_eq!(scene.file("a").as_deref(), Some("alpha\n"), "{text}");
}

/// The same in the user's checkout, where they have gone on working meanwhile: what is theirs stays theirs.
#[test]
fn what_was_done_in_the_checkout_is_judged_by_the_next_run() {
    let scene = Scene::new(&one("isolation: in_place, validation: {enabled: true}"));
    scene.claude.gate("gate");
    scene.claude.play("t.1", wait_for("gate") + &commit("a", "alpha") + &sh("echo left > left") + DONE);
    scene.claude.play("t.2", sh("echo x > by-validator") + FINE);
    let run = scene.begin_until(&[], "t", 1);
    assert_eq!(scene.plan("stop", &[]).0, 0);
    scene.claude.open_gate("gate");
    ended_with(3, run);
    fs::write(scene.env.work().join("mine"), "mine\n").unwrap();
    let (code, text) = scene.plan("run", &[]);
    assert!(code != 0 && text.contains("not committed: mine; commit them"), "{text}");
    let text = scene.runs(0, 2, &["--allow-dirty"]);
    let log = scene.git(&["log", "--format=%s", "--name-only"]);
    assert_eq!(log, "task t: Write a\n\nleft\nchange a\n\na\nfirst\n\nREADME\n", "{text}");
    assert_eq!(scene.git(&["ls-files", "--others"]), "by-validator\nmine\n");

    // A plan that runs there next may use what the validator left, and not what the user has begun.
    scene.claude.play("u", commit("b", "beta") + DONE);
    let plan = fs::read_to_string(&scene.plan).unwrap();
    fs::write(&scene.plan, format!("{plan}      - {{id: u, name: Write b}}\n")).unwrap();
    scene.claude.play("u.2", FINE);
    scene.plan_ends(0, "run", &["--allow-dirty"]);
    let prompt = scene.claude.called("u", 1).unwrap();
    let prompt = &prompt.prompt;
    assert!(prompt.contains("\nmine\n") && !prompt.contains("by-validator"), "{prompt}");
}

/// The file is for people. If it could not be written, the next run knows all the same what is done.
#[test]
fn a_plan_file_that_is_behind_is_not_believed() {
    let scene = Scene::new(ONE);
    let plan = scene.plan.display();
    // The file follows the run, in its own time.
    let spoil = format!(
        "until grep -q in_progress {plan}; do sleep 0.02; done\n\
         mv {plan} {plan}.old\nuntil mkdir {plan} 2> /dev/null; do rm -f {plan}; done"
    );
    scene.claude.play("t", sh(&spoil) + &commit("a", "alpha") + DONE);
    scene.plan_says(0, "run", &[], &["does not show how this run ended"]);
    fs::remove_dir(&scene.plan).unwrap();
    fs::rename(scene.plan.with_extension("yaml.old"), &scene.plan).unwrap();
    assert!(scene.text().contains("status: in_progress"), "{}", scene.text());
    scene.runs(0, 1, &[]);
    assert!(scene.text().contains("status: verified"), "{}", scene.text());
    // What people write into it counts.
    scene.plan_ends(0, "retry", &["t"]);
    scene.claude.play("t", commit("a", "beta") + DONE);
    let text = scene.runs(0, 2, &[]);
    assert_eq!(scene.file("a").as_deref(), Some("beta\n"), "{text}");
}

/// Whoever spoils its work area is told that, and not that it has done nothing.
#[test]
fn a_session_that_spoils_its_work_area() {
    let scene = Scene::new(&one("max_attempts_default: 2"));
    scene.claude.play("t.1", commit("a", "alpha") + &sh("rm .git") + DONE);
    scene.claude.play("t.2", commit("a", "beta") + DONE);
    let text = scene.runs(0, 2, &[]);
    assert_eq!(scene.file("a").as_deref(), Some("beta\n"), "{text}");
    let told = scene.claude.called("t", 2).unwrap();
    assert!(told.prompt.contains("is not a work area any more"), "{}", told.prompt);
}

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
