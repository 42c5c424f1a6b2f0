//! Plans, carried out by a scripted `claude`: the real daemon, real git, real work trees.

use std::fs;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use posse_api::PlanView;
use posse_core::plan::{FailureKind, Record};
use posse_testkit::files::when;

use crate::project::{Project, ended_with, said, says, spawned};
use crate::steps::{DONE, FINE, ask, commit, end, reports, say, sh, wait_for};

/// A project with one commit, and a plan outside of it.
pub(crate) struct Scene {
    pub(crate) plan: PathBuf,
    project: Project,
}

impl Deref for Scene {
    type Target = Project;

    fn deref(&self) -> &Project {
        &self.project
    }
}

impl Scene {
    pub(crate) fn new(plan: &str) -> Self {
        let project = Project::new(|work| fs::write(work.join("README"), "one\n").unwrap());
        let scene = Self { plan: project.outside("plan.yaml"), project };
        fs::write(&scene.plan, plan).unwrap();
        scene
    }

    /// The project of the example, with its plan.
    pub(crate) fn example() -> Self {
        let project = Project::new(posse_testkit::git::copy_example);
        Self { plan: project.env.work().join("plan.yaml"), project }
    }

    /// A verb of `posse plan` or `posse run` with its arguments.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        if let ["run", file, ..] = arguments
            && !arguments.contains(&"--dry-run")
        {
            // The user has confirmed what the project's files name. A plan that is not valid is refused by the command itself.
            let _ = self.env.command(["plan", "trust", file]).stdin(Stdio::null()).output().unwrap();
        }
        let noun = if matches!(arguments[0], "log" | "why" | "show") { "run" } else { "plan" };
        self.posse(&[&[noun], arguments].concat())
    }

    /// The same, with the plan as the first argument.
    pub(crate) fn of_plan(&self, verb: &str, more: &[&str]) -> Command {
        self.command(&[&[verb, self.plan.to_str().unwrap()], more].concat())
    }

    /// Runs a verb with the plan as its first argument: exit code, and what it printed.
    #[track_caller]
    pub(crate) fn plan(&self, verb: &str, more: &[&str]) -> (i32, String) {
        said(&self.of_plan(verb, more).output().unwrap())
    }

    /// Runs a verb that has to end with this code. Returns what it printed.
    #[track_caller]
    pub(crate) fn plan_ends(&self, code: i32, verb: &str, more: &[&str]) -> String {
        says(code, self.of_plan(verb, more), &[])
    }

    /// Runs a verb that has to end with this code and print these words. Returns what it printed.
    #[track_caller]
    pub(crate) fn plan_says(&self, code: i32, verb: &str, more: &[&str], words: &[&str]) -> String {
        says(code, self.of_plan(verb, more), words)
    }

    /// Runs the plan. It has to exit with `code`, after this number of sessions. Returns its output.
    #[track_caller]
    pub(crate) fn runs(&self, code: i32, sessions: usize, options: &[&str]) -> String {
        let text = self.plan_ends(code, "run", options);
        assert_eq!(self.claude.sessions(), sessions, "{text}");
        text
    }

    /// Waits for the end of a run that was begun, as [`Self::runs`] does.
    #[track_caller]
    pub(crate) fn finishes(&self, run: Child, code: i32, sessions: usize) -> String {
        let text = ended_with(code, run);
        assert_eq!(self.claude.sessions(), sessions, "{text}");
        text
    }

    /// Begins to run the plan.
    pub(crate) fn begin(&self, options: &[&str]) -> Child {
        spawned(self.of_plan("run", options))
    }

    /// Begins to run the plan, and waits until this session of a task is at its gate.
    #[track_caller]
    pub(crate) fn begin_until(&self, options: &[&str], task: &str, number: u32) -> Child {
        let run = self.begin(options);
        self.until_waits(task, number);
        run
    }

    /// Another plan, in a file beside the first one.
    pub(crate) fn other_plan(&self, name: &str, text: &str) -> String {
        let file = self.plan.with_file_name(name);
        fs::write(&file, text).unwrap();
        file.to_str().unwrap().to_owned()
    }

    pub(crate) fn text(&self) -> String {
        fs::read_to_string(&self.plan).unwrap()
    }

    /// Returns the newest run of the plan, from the API.
    pub(crate) fn last_run(&self) -> PlanView {
        // The command starts a daemon if a test has just killed the last one.
        let runs = self.env.run(["run", "ls", "--kind", "plan", "-n", "100", "--json"]).json();
        let runs: Vec<PlanView> = serde_json::from_value(runs).unwrap();
        let file = self.plan.canonicalize().unwrap();
        runs.into_iter().find(|run| file == Path::new(&run.file)).unwrap()
    }

    /// The progress of a task in that run.
    #[track_caller]
    pub(crate) fn record(&self, task: &str) -> Record {
        let tasks = self.last_run().tasks;
        tasks.into_iter().find(|it| it.id.as_str() == task).unwrap().record
    }
}

pub(crate) const TWO: &str = "\
# Two tasks.
meta:
  name: Two
  backoff_base: 1
sections:
  - id: s
    name: Section
    tasks:
      - id: '1.1'
        name: Write a
        description: Write the file a.
      - id: '1.2'
        name: Write b
        depends_on: ['1.1']
";

pub(crate) const ONE: &str = "\
meta: {name: One, backoff_base: 1}
sections:
  - id: s
    tasks:
      - id: t
        name: Write a
";

/// [`ONE`] with more in its `meta`.
pub(crate) fn one(meta: &str) -> String {
    ONE.replace("backoff_base: 1", &format!("backoff_base: 1, {meta}"))
}

/// T07, T10, T37, T47: and nothing of it is in the way of what the user has not committed.
#[test]
fn a_plan_is_carried_out_and_merged() {
    let scene = Scene::new(TWO);
    // What is the user's own stays as it is, to the byte.
    fs::write(scene.env.work().join("README"), "one\nmine\n").unwrap();
    fs::write(scene.env.work().join("staged"), "staged\n").unwrap();
    scene.git(&["add", "staged"]);
    fs::write(scene.env.work().join("loose"), "loose\n").unwrap();
    let before = scene.git(&["status", "--porcelain=v2"]);
    scene.claude.play("1.1", say("working") + &commit("a", "alpha") + &reports("completed", "a is there"));
    // Left uncommitted: posse commits it.
    scene.claude.play("1.2", sh("cat a > b") + &reports("completed", "b is there"));

    scene.plan_says(0, "run", &[], &["verified: every task is done"]);
    assert_eq!((scene.file("a").as_deref(), scene.file("b").as_deref()), (Some("alpha\n"), Some("alpha\n")));
    assert_eq!(scene.git(&["status", "--porcelain=v2"]), before, "the user's changes");
    assert_eq!(scene.file("README").as_deref(), Some("one\nmine\n"));
    let log = scene.git(&["log", "--format=%s%n%(trailers)"]);
    assert!(log.contains("task 1.2: Write b") && log.contains("Task: 1.2"), "{log}");
    assert_eq!(scene.worktrees(), 1, "nothing is left behind");
    let plan = scene.text();
    assert!(plan.starts_with("# Two tasks.\n") && plan.matches("status: verified").count() == 2, "{plan}");
    assert_eq!(scene.record("1.1").cost_usd, Some(0.25));
    let statuses = plan.replace("        status: verified\n", "");
    assert_eq!(statuses, TWO, "nothing else is written into the file");

    let first = scene.claude.called("1.1", 1).unwrap();
    assert!(first.stdin.ends_with("/prompt.md"), "{}", first.stdin);
    assert!(!first.arguments.iter().any(|word| word.contains(&first.prompt)), "{:?}", first.arguments);
    assert_eq!(first.variable("CLAUDECODE"), None);
    assert_eq!(first.flag("--permission-mode"), Some("acceptEdits"));
    assert_eq!(first.arguments.last().unwrap(), "--print", "no list is open at the end: {first:?}");
    assert_ne!(first.directory, scene.env.work().to_str().unwrap(), "a work tree of its own");
    assert!(!first.arguments.contains(&scene.env.work().to_str().unwrap().to_owned()), "{first:?}");
    assert!(first.prompt.contains("Write the file a.") && first.prompt.contains("fresh start"), "{first:?}");

    // Nothing is left to do, and nothing is done.
    scene.runs(0, 2, &[]);

    // Notifications for each task are optional.
    let runs: Vec<PlanView> = scene.env.http().get("/runs?kind=plan").unwrap();
    let show = |query: &str| -> PlanView { scene.env.http().get(&format!("/runs/{}{query}", runs[0].id)).unwrap() };
    assert_eq!((show("").tasks.len(), show("?tasks=false").tasks.len()), (2, 0));
    assert_eq!(show("").outcome, show("?tasks=false").outcome);
}

/// T43.
#[test]
fn who_says_done_and_did_nothing_has_failed() {
    let scene = Scene::new(&ONE.replace("name: Write a", "name: Write a\n        max_attempts: 2"));
    scene.claude.play("t", reports("completed", "all done"));
    let text = scene.runs(1, 2, &[]);
    assert!(text.contains("there is no commit and no changed file"), "{text}");
    let second = scene.claude.called("t", 2).unwrap();
    assert!(second.prompt.contains("no_evidence"), "{}", second.prompt);
    let plan = scene.text();
    assert!(plan.contains("status: failed"), "{plan}");
    assert_eq!(scene.record("t").failure_kind, Some(FailureKind::AttemptsExhausted));

    // A person wants it to be tried again.
    scene.claude.play("t", commit("a", "alpha") + &reports("completed", "now really"));
    scene.plan_ends(0, "retry", &["t"]);
    let text = scene.plan_ends(0, "run", &[]);
    assert_eq!(scene.file("a").as_deref(), Some("alpha\n"), "{text}");
}

/// T49.
#[test]
fn what_a_check_finds_is_told_to_the_next_attempt() {
    let gates = "meta: {name: One, backoff_base: 1, gates: [{name: good, cmd: 'grep -q good a || { echo it is not good; exit 1; }'}]}";
    let scene = Scene::new(&ONE.replace("meta: {name: One, backoff_base: 1}", gates));
    scene.claude.play("t.1", commit("a", "bad") + DONE);
    scene.claude.play("t.2", commit("a", "good") + DONE);
    let text = scene.runs(0, 2, &[]);
    let second = scene.claude.called("t", 2).unwrap();
    assert!(second.prompt.contains("it is not good") && second.prompt.contains("Attempt 2"), "{}", second.prompt);
    assert_eq!(scene.file("a").as_deref(), Some("good\n"), "{text}");
    assert!(!scene.git(&["log", "--format=%H", "main", "--", "a"]).is_empty());
    assert_eq!(scene.record("t").attempts, 2);
}

/// T29, T90.
#[test]
fn a_question_waits_for_its_answer() {
    let scene = Scene::new(ONE);
    scene.claude.play("t.1", ask("Which colour?"));
    scene.claude.play("t.2", commit("a", "blue") + DONE);
    scene.plan_says(7, "run", &[], &["Which colour?"]);
    scene.plan_ends(0, "answer", &["t", "blue", "of", "course"]);
    scene.plan_ends(1, "answer", &["t", "green"]); // It asks only once.
    scene.plan_ends(0, "run", &[]);
    let second = scene.claude.called("t", 2).unwrap();
    assert!(second.prompt.contains("Which colour?") && second.prompt.contains("blue of course"), "{second:?}");
}

/// T84 without a pipeline, and T85.
#[test]
fn stop_lets_what_runs_finish_or_ends_it() {
    let scene = Scene::new(TWO);
    scene.claude.gate("gate");
    scene.claude.play("1.1", wait_for("gate") + &commit("a", "alpha") + DONE);
    scene.claude.play("1.2", wait_for("gate") + DONE);
    let run = scene.begin_until(&[], "1.1", 1);
    scene.plan_says(0, "status", &[], &["▸ 1.1", "  coder"]);
    assert_eq!(scene.plan("stop", &[]).0, 0);
    scene.claude.open_gate("gate");
    let text = ended_with(3, run);
    assert_eq!((scene.file("a").as_deref(), scene.claude.sessions()), (Some("alpha\n"), 1), "{text}");

    let run = scene.begin_until(&[], "1.2", 1);
    assert_eq!(scene.plan("stop", &["now"]).0, 0);
    ended_with(3, run);
    // Ended on request, it costs no attempt.
    let plan = scene.text();
    assert!(!plan.contains("in_progress"), "{plan}");
    assert_eq!(["1.1", "1.2"].map(|task| scene.record(task).attempts), [1, 0]);
}

#[test]
fn a_run_that_nobody_follows_waits_for_its_environment() {
    let scene = Scene::new(TWO);
    scene.claude.gate("gate");
    scene.claude.play("1.1", wait_for("gate") + &commit("a", "alpha") + DONE);
    scene.claude.play("1.2", commit("b", "beta") + DONE);
    scene.plan_ends(0, "run", &["--detach"]);
    scene.until_waits("1.1", 1);
    scene.env.kill_daemon();
    scene.claude.open_gate("gate");
    // The session kept running; the next one needs a client with the environment.
    when("the run waits", || scene.plan("status", &[]).1.contains("next             `posse plan run").then_some(()));
    assert_eq!(scene.claude.sessions(), 1);
    // It can be stopped all the same.
    scene.plan_ends(0, "stop", &[]);
    when("it has stopped and waits for nobody", || Some(scene.last_run()).filter(|run| !run.is_active() && !run.waits));
    scene.runs(0, 2, &[]);
}

/// T23.
#[test]
fn a_session_may_add_tasks_but_not_vouch_for_others() {
    let scene = Scene::new(ONE);
    let add =
        "cat >> \"$(dirname \"$POSSE_RESULT_FILE\")/plan.yaml\" <<'EOF'\n      - id: more\n        name: More\nEOF\n";
    scene.claude.play("t", commit("a", "alpha") + &sh(add) + DONE);
    scene.claude.play("more", commit("b", "beta") + DONE);
    scene.runs(0, 2, &[]);
    assert!(scene.text().contains("id: more"), "{}", scene.text());
}

/// T16, T48.
#[test]
fn what_cannot_be_run_says_so_before_anything_is_touched() {
    let scene = Scene::new(ONE);
    let plan = scene.text();
    let mut command = scene.command(&["run", scene.plan.to_str().unwrap()]);
    let (code, text) = said(&command.env("PATH", "/usr/bin:/bin").output().unwrap());
    assert!(code == 69 && text.contains("claude is not installed") && text.contains("hint:"), "{code} {text}");
    assert_eq!(scene.text(), plan);
    scene.plan_says(0, "run", &["--dry-run"], &["--permission-mode acceptEdits"]);
    assert_eq!((scene.text(), scene.claude.sessions()), (plan, 0));
    fs::write(&scene.plan, ONE.replace("id: t", "id: t\n        depends_on: [nobody]")).unwrap();
    scene.runs(5, 0, &[]);
}

/// T07 and T38.
#[test]
fn a_validator_looks_at_the_work_before_it_is_merged() {
    let scene = Scene::new(&one("validation: {enabled: true}"));
    // In fields, and in words.
    let fail = r#"{"task_id": "t", "nonce": "{nonce}", "status": "completed", "message": "m", "verdict": "FAIL", "findings": ["[FAIL] a is bad"], "evidence": "seen"}"#;
    scene.claude.play("t.1", commit("a", "bad") + DONE);
    scene.claude.play("t.2", end(&format!("```json\n{fail}\n```")));
    scene.claude.play("t.3", commit("a", "good") + DONE);
    scene.claude.play("t.4", FINE);
    let text = scene.runs(0, 4, &[]);
    let validator = scene.claude.called("t", 2).unwrap();
    assert!(validator.arguments.contains(&"Write".to_owned()), "may not write: {:?}", validator.arguments);
    assert!(
        validator.stdin.ends_with("/prompt.md") && validator.variable("CLAUDECODE").is_none(),
        "{}",
        validator.stdin
    );
    assert_eq!(validator.arguments.last().unwrap(), "--print", "{:?}", validator.arguments);
    assert!(scene.claude.called("t", 3).unwrap().prompt.contains("[FAIL] a is bad"), "{text}");
    assert_eq!(scene.file("a").as_deref(), Some("good\n"), "{text}");
}

/// Oddities that the original orchestrator tolerated. An undefined validator is replaced, not left out.
#[test]
fn plan_of_the_original_orchestrator_runs_with_warnings() {
    let meta = "meta: {title: One, status: pending, backoff_base: 1, validation: {enabled: true, \
                run_after: [coder, frontend-dev], validators: [issue-verifier]}}";
    let plan = ONE.replace("meta: {name: One, backoff_base: 1}", meta);
    assert_ne!(plan, ONE);
    let scene = Scene::new(&plan);
    let warnings = [
        "`title` is read as `name`",
        "no task has the agent `frontend-dev`; nothing is validated after it",
        "there is no agent `issue-verifier`; `validator` validates in its place",
    ];
    let (code, text) = scene.plan("check", &[]);
    // Messages are wrapped.
    let flat = text.replace('│', " ").split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(code == 0 && warnings.iter().all(|warning| flat.contains(warning)), "{text}");
    let (code, text) = scene.plan("check", &["--json"]);
    let checked: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!((code, checked["warnings"].as_array().unwrap().len()), (0, warnings.len()), "{text}");
    for command in ["check", "run"] {
        let (code, text) = scene.plan(command, &["--strict"]);
        assert_eq!((code, scene.claude.sessions()), (5, 0), "{command}: {text}");
    }
    scene.claude.play("t.1", commit("a", "good") + DONE);
    scene.claude.play("t.2", FINE);
    let text = scene.runs(0, 2, &[]);
    assert!(warnings.iter().all(|warning| text.contains(warning)), "{text}");
    let validator = scene.claude.called("t", 2).unwrap();
    assert!(validator.prompt.contains("alidat"), "{}", validator.prompt);
    assert_eq!(scene.file("a").as_deref(), Some("good\n"), "{text}");
}

#[test]
fn members_of_a_group_run_at_the_same_time() {
    let plan = "\
meta: {name: Group}
sections:
  - id: s
    tasks:
      - {id: a, name: A, parallel_group: g}
      - {id: b, name: B, parallel_group: g}
";
    let scene = Scene::new(plan);
    for task in ["a", "b"] {
        scene.claude.gate(&format!("gate-{task}"));
        scene.claude.play(task, wait_for(&format!("gate-{task}")) + &commit(task, task) + DONE);
    }
    let run = scene.begin(&["--parallel"]);
    when("both", || (scene.claude.waits("a", 1) && scene.claude.waits("b", 1)).then_some(()));
    // The later one is merged first, and the other into what is there then.
    scene.claude.open_gate("gate-b");
    when("the first result", || scene.file("b"));
    scene.claude.open_gate("gate-a");
    let text = ended_with(0, run);
    assert_eq!((scene.file("a").as_deref(), scene.file("b").as_deref()), (Some("a\n"), Some("b\n")), "{text}");
}
