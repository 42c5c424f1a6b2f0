//! Scenarios of plans whose point is processes, files or exit codes; docs/reference/plan-scenarios.md has them all.

use std::fs;

use posse_api::PlanView;
use posse_testkit::files::when;
use posse_testkit::{env, process};
use serde_json::json;

use crate::plan_run::{ONE, Scene, TWO, one};
use crate::project::ended_with;
use crate::steps::{DONE, commit, end, limited, reports, reports_fields, say, sh, wait_for};

fn tasks(meta: &str, tasks: &str) -> String {
    format!("meta: {{name: P, backoff_base: 1{meta}}}\nsections:\n  - id: s\n    tasks:\n{tasks}")
}

/// T15, T16, T17, T19, T20, T22, T51: what is wrong with a plan is found before anything is started.
#[test]
fn a_plan_that_is_not_valid() {
    let scene = Scene::new(ONE);
    let task = |fields: &str| format!("      - {{{fields}}}\n");
    let two = |a: &str, b: &str| tasks("", &(task(a) + &task(b)));
    for (plan, says) in [
        (two("id: a, name: A", "id: a, name: B"), vec!["two tasks a", "6:14", " 5 │", "the first"]),
        (two("id: a, name: A", "id: b, name: B, depends_on: [nobody]"), vec!["nobody, which does not exist"]),
        (two("id: a, name: A, depends_on: [b]", "id: b, name: B, depends_on: [a]"), vec!["a -> b -> a"]),
        (two("id: a, name: A", "id: b, name: B, depend_on: [a]"), vec!["did you mean `depends_on`"]),
        (two("id: a, name: A", "id: 1.10, name: B"), vec!["quote the id"]),
        // Cut off in the middle.
        (TWO[..TWO.len() - 30].to_owned() + "        depends_on: ['1.", vec!["error"]),
        (String::new(), vec!["error"]),
    ] {
        fs::write(&scene.plan, &plan).unwrap();
        for command in ["check", "run"] {
            let (code, text) = scene.plan(command, &[]);
            assert_eq!(code, 5, "{command} of {plan}: {text}");
            assert!(says.iter().all(|words| text.contains(words)), "{command}: {says:?} in {text}");
        }
        assert_eq!(fs::read_to_string(&scene.plan).unwrap(), plan, "untouched");
    }
    assert_eq!(scene.claude.sessions(), 0);
    fs::write(&scene.plan, ONE.replace("backoff_base: 1", "gates: [{cmd: 'pytest || echo ok'}]")).unwrap();
    scene.plan_says(0, "check", &[], &["warning", "pytest || echo ok"]);
}

/// T11: an agent that may not write reports in its last message. T76: an unreported cost is not zero.
#[test]
fn a_reviewer_reports_in_its_last_message() {
    let scene = Scene::new(&ONE.replace("name: Write a", "name: Review\n        agent: code-reviewer"));
    let report = r#"Fine.
```json
{"task_id": "t", "nonce": "{nonce}", "status": "completed", "message": "all is fine"}
```"#;
    scene.claude.play("t", end(report) + "cost=null\n");
    scene.plan_says(0, "run", &[], &["1 sessions, unknown"]);
    let record = scene.record("t");
    assert_eq!((record.result_message.as_deref(), record.cost_usd), (Some("all is fine"), None));
    let called = scene.claude.called("t", 1).unwrap();
    assert!(!called.prompt.contains("result.json"), "no file is asked for: {}", called.prompt);
}

/// T23, T24, T25: what a session may make of the plan, and what is put back.
#[test]
fn what_a_session_writes_into_the_plan() {
    let scene = Scene::new(TWO);
    let edit = r#"copy=$(dirname "$POSSE_RESULT_FILE")/plan.yaml
sed -i 's/^        name: Write b$/&\n        status: verified\n        attempts: 1/; s/^  name: Two$/&\n  budget_limit_usd: 99/' "$copy"
printf '      - id: more\n        name: More\n        depends_on: ["1.2"]\n' >> "$copy""#;
    let report = reports_fields(&json!({ "status": "completed", "message": "done", "plan_modified": false }));
    scene.claude.play("1.1", sh(edit) + &commit("a", "alpha") + &report);
    scene.claude.play("1.2", commit("b", "beta") + DONE);
    scene.claude.play("more", commit("c", "gamma") + DONE);
    let text = scene.runs(0, 3, &[]);
    assert!(text.contains("task 1.2: its status cannot be set to verified while the plan runs"), "{text}");
    assert!(text.contains("budget_limit_usd cannot be changed while the plan runs"), "{text}");
    let plan = scene.text();
    assert!(!plan.contains("budget_limit_usd") && plan.contains("id: more"), "{plan}");
    // The next session gets the reasons of the rejection.
    assert_eq!((scene.file("b").as_deref(), scene.file("c").as_deref()), (Some("beta\n"), Some("gamma\n")));
}

/// T21, T23: a person and a session change the plan at the same time, beside what posse itself writes there.
#[test]
fn a_person_and_a_session_edit_the_plan_at_once() {
    let scene = Scene::new(TWO);
    scene.claude.gate("gate");
    let edit =
        "printf '      - {id: theirs, name: By the session}\\n' >> \"$(dirname \"$POSSE_RESULT_FILE\")/plan.yaml\"";
    scene.claude.play("1.1", wait_for("gate") + &sh(edit) + &commit("a", "alpha") + DONE);
    for (task, file) in [("1.2", "b"), ("theirs", "c"), ("mine", "d")] {
        scene.claude.play(task, commit(file, file) + DONE);
    }
    let run = scene.begin_until(&[], "1.1", 1);
    let edited =
        scene.text().replacen("      - id: '1.2'", "      - {id: mine, name: By hand}  # mine\n      - id: '1.2'", 1);
    fs::write(&scene.plan, edited).unwrap();
    scene.claude.open_gate("gate");
    let text = scene.finishes(run, 0, 4);
    let plan = scene.text();
    assert!(plan.contains("# mine") && plan.contains("id: theirs") && plan.starts_with("# Two tasks.\n"), "{plan}");
    assert!(["b", "c", "d"].iter().all(|file| scene.file(file).is_some()), "{text}");
}

/// T26.
#[test]
fn what_needs_a_failed_task_is_shown_with_its_chain() {
    let plan = tasks(
        "",
        "      - {id: a, name: A, max_attempts: 1}\n      - {id: b, name: B, depends_on: [a]}\n      - {id: c, name: C, depends_on: [b]}\n",
    );
    let scene = Scene::new(&plan);
    scene.claude.play("a", reports("failed", "no idea"));
    let text = scene.runs(5, 1, &[]);
    assert!(text.contains("c: it waits for b (pending), which waits for a (failed)"), "{text}");
}

/// T39.
#[test]
fn a_prompt_of_300_kib_goes_into_a_file() {
    let line = "x".repeat(1000);
    let description: String = (0..300).map(|_| format!("          {line}\n")).collect();
    let plan = ONE.replace("name: Write a\n", &format!("name: Write a\n        description: |\n{description}"));
    let scene = Scene::new(&plan);
    scene.claude.play("t", commit("a", "a") + DONE);
    scene.plan_ends(0, "run", &[]);
    let called = scene.claude.called("t", 1).unwrap();
    let length: usize = called.arguments.iter().map(String::len).sum();
    assert!(length < 16 << 10, "{length}");
    assert_eq!(called.prompt.matches(&line).count(), 300);
}

/// T40, T41, T42, T43, T44: sessions that report success without proof. Each has one attempt.
#[test]
fn reports_that_prove_nothing() {
    let plays = [
        ("t40", commit("t40", "x") + "POSSE_RUN_ID=of-an-older-run\n" + DONE, "no report"),
        ("t41", commit("t41", "x") + "POSSE_TASK_ID=t40\n" + DONE, "task t40, not t41"),
        ("t42", commit("t42", "x") + DONE + "turns=0\n", "took no turn"),
        ("t43", DONE.to_owned(), "no commit and no changed file"),
        ("t44", commit("t44", "x") + DONE + "code=1\n", "exited with 1"),
    ];
    let all: String = plays.iter().map(|(id, ..)| format!("      - {{id: {id}, name: T}}\n")).collect();
    let all = all + "      - {id: nothing, name: T}\n";
    let scene = Scene::new(&tasks(", max_attempts_default: 1, circuit_breaker_threshold: 99", &all));
    for (id, play, _) in &plays {
        scene.claude.play(id, play);
    }
    scene.claude.play("nothing", reports("no_change_needed", "it was there"));
    scene.runs(1, 6, &[]);
    let view = scene.last_run();
    for (id, _, says) in plays {
        let task = view.tasks.iter().find(|task| task.id.as_str() == id).unwrap();
        let error = task.record.last_error.clone().unwrap_or_default();
        assert!(task.status.as_str() == "failed" && error.contains(says), "{id}: {says:?} in {error:?}");
        assert_eq!(scene.file(id), None, "{id} was merged");
    }
    let nothing = view.tasks.last().unwrap();
    assert_eq!(nothing.status.as_str(), "verified", "{nothing:?}");
}

/// Makes every session ignore the signals that ask it to end.
fn ignore_signals(scene: &Scene) {
    let program = fs::read_to_string(scene.claude.program()).unwrap();
    fs::write(scene.claude.program(), program.replacen('\n', "\ntrap '' TERM HUP\n", 1)).unwrap();
}

/// T45, T75: a session that does not want to end, and what it used until then.
#[test]
fn a_session_that_takes_too_long_is_ended_with_all_it_started() {
    let scene =
        Scene::new(&ONE.replace("name: Write a", "name: Write a\n        timeout: 2s\n        max_attempts: 1"));
    scene.claude.gate("never");
    ignore_signals(&scene);
    let start = "echo $$ > \"$session/pid\"; sleep 600 > /dev/null & echo $! > \"$session/child\"";
    scene.claude.play("t", sh(start) + &say("working") + &wait_for("never"));
    let run = scene.begin_until(&[], "t", 1);
    let pid = |name: &str| -> u32 {
        fs::read_to_string(scene.claude.session("t", 1).join(name)).unwrap().trim().parse().unwrap()
    };
    let (session, child) = (pid("pid"), pid("child"));
    let text = ended_with(1, run);
    assert!(!process::exists(session) && !process::exists(child), "it is still there: {text}");
    assert!(text.contains("took too long"), "{text}");
    assert_eq!(scene.record("t").attempts, 1);
    let used = scene.last_run().run.used;
    assert_eq!((used.partial, used.input_tokens, used.cost_unknown), (1, 10, 1), "{used:?}");
}

/// T46.
#[test]
fn a_session_that_says_nothing_is_ended() {
    let scene = Scene::new(&ONE.replace("name: Write a", "name: Write a\n        max_attempts: 1"));
    scene.configure("[task]\nidle_timeout = \"2s\"\n");
    scene.claude.gate("never");
    scene.claude.play("t", say("working") + &wait_for("never"));
    scene.plan_says(1, "run", &[], &["said nothing for too long"]);
    assert_eq!(scene.record("t").attempts, 1);
}

/// T62: a limit in a model's text does not count. T63, T72: a limit reported by the tool does; it costs no attempt, and
/// a later daemon respects it.
#[test]
fn limits() {
    let scene = Scene::new(TWO);
    scene.claude.play("1.1", say("You've hit your limit · resets 3pm") + &commit("a", "alpha") + DONE);
    scene.claude.play("1.2.1", limited(90));
    let before = jiff::Timestamp::now();
    scene.runs(75, 2, &["--no-wait"]);
    assert_eq!(["1.1", "1.2"].map(|task| scene.record(task).attempts), [1, 0]);

    // Another run keeps to it too.
    scene.claude.play("1.2", commit("b", "beta") + DONE);
    assert_eq!(scene.plan("run", &["--detach"]).0, 0);
    let hold = when("the hold", || scene.last_run().run.hold);
    let after = jiff::Timestamp::now();
    assert!(hold.until >= before + jiff::SignedDuration::from_secs(119), "{hold:?}");
    assert!(hold.until <= after + jiff::SignedDuration::from_secs(121), "{hold:?}");
    scene.env.kill_daemon();
    let again = when("the run again", || {
        let runs: Vec<PlanView> = scene.env.http().get("/runs?kind=plan").ok()?;
        runs.into_iter().next()
    });
    assert_eq!(again.hold.as_ref().map(|hold| hold.until), Some(hold.until));
    // A daemon that has just come takes its runs up first.
    when("the stop", || (scene.plan("stop", &[]).0 == 0).then_some(()));
    when("the end", || scene.last_run().outcome);
    assert_eq!(scene.claude.sessions(), 2, "nothing was started during the hold");
}

/// T73: the run stops when the money is spent, and continues when there is more.
#[test]
fn a_plan_out_of_money_pauses() {
    let scene = Scene::new(TWO);
    scene.claude.play("1.1", commit("a", "alpha") + DONE + "cost=7\n");
    scene.claude.play("1.2", commit("b", "beta") + DONE);
    let budget = ["--quota-ceiling", "10", "--max-budget-pct", "80", "--reserved-budget", "3"];
    let text = scene.runs(2, 1, &budget);
    assert!(text.contains("7.00 USD of 7.00 USD"), "{text}");
    // What an earlier run spent counts.
    assert_eq!(scene.plan("run", &budget).0, 2);
    scene.runs(0, 2, &["--quota-ceiling", "20"]);
}

/// T74: every session counts, whatever its outcome.
#[test]
fn what_all_sessions_of_a_task_cost() {
    let scene = Scene::new(&one("validation: {enabled: true}"));
    scene.claude.play("t.1", reports("failed", "no idea") + "cost=0.5\n");
    scene.claude.play("t.2", commit("a", "bad") + DONE + "code=1 cost=0.25\n");
    scene.claude.play("t.3", commit("a", "good") + DONE + "cost=1\n");
    scene.claude.play("t.4", end("[PASS] a is good\n**Verdict: PASS**") + "cost=0.25\n");
    scene.plan_says(0, "run", &[], &["4 sessions, 2.00 USD"]);
    assert_eq!(scene.record("t").cost_usd, Some(2.0));
}

/// Ends the keeper and the daemon at once, as when the machine goes down, but for the sessions that do not care.
fn kill_both(scene: &Scene) {
    let (keeper, daemon) = (scene.env.keeper_pid().unwrap(), scene.env.daemon_pid());
    env::kill(daemon);
    env::kill(keeper);
    assert!(process::ends(keeper) && process::ends(daemon));
}

/// T86: a session without a keeper is ended, costs no attempt, and is repeated once.
#[test]
fn a_session_that_lost_its_keeper_is_ended_and_done_again() {
    let scene = Scene::new(ONE);
    scene.claude.gate("never");
    ignore_signals(&scene);
    scene.claude.play("t.1", sh("echo $$ > \"$session/pid\"") + &wait_for("never"));
    scene.claude.play("t.2", commit("a", "alpha") + DONE);
    assert_eq!(scene.plan("run", &["--detach"]).0, 0);
    scene.until_waits("t", 1);
    let pid = fs::read_to_string(scene.claude.session("t", 1).join("pid")).unwrap().trim().parse().unwrap();
    kill_both(&scene);
    scene.runs(0, 2, &[]);
    assert!(!process::exists(pid), "the lost session still runs");
    assert_eq!(scene.record("t").attempts, 1);
    assert_eq!(scene.file("a").as_deref(), Some("alpha\n"));
}

/// T87: what a session had reported before it was lost counts, and its work is not done again.
#[test]
fn a_session_that_had_reported_is_not_done_again() {
    let scene = Scene::new(ONE);
    scene.claude.gate("never");
    scene.claude.play("t", commit("a", "alpha") + DONE + &wait_for("never"));
    assert_eq!(scene.plan("run", &["--detach"]).0, 0);
    scene.until_waits("t", 1);
    kill_both(&scene);
    let text = scene.runs(0, 1, &[]);
    assert_eq!(scene.file("a").as_deref(), Some("alpha\n"), "{text}");
}
