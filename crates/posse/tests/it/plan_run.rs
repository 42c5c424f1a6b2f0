//! Plans, carried out by a scripted `claude`: the real daemon, real git, real work trees.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use posse_api::PlanView;
use posse_core::engine::RunOutcome;
use posse_core::plan::{FailureKind, Record};
use posse_sim::headless::ScriptedClaude;
use posse_testkit::TestEnv;
use posse_testkit::files::when;
use posse_testkit::git::{commit_all, git};

use crate::env;
use crate::steps::{DONE, ask, commit, end, reports, say, sh, wait_for};

/// A project with one commit, a plan outside of it, and who carries it out.
pub(crate) struct Scene {
    pub(crate) claude: ScriptedClaude,
    pub(crate) plan: PathBuf,
    /// Goes last: it ends all that runs.
    pub(crate) env: TestEnv,
}

impl Scene {
    pub(crate) fn new(plan: &str) -> Self {
        let env = env();
        let outside = env.work().parent().unwrap().join("outside");
        fs::create_dir(&outside).unwrap();
        let claude = ScriptedClaude::install(&outside, env.posse_path());
        let file = outside.join("plan.yaml");
        fs::write(&file, plan).unwrap();
        let scene = Self { claude, plan: file, env };
        fs::write(scene.env.work().join("README"), "one\n").unwrap();
        scene.commit_all();
        scene
    }

    /// What is there is the project, and has one commit.
    pub(crate) fn commit_all(&self) {
        commit_all(&self.env.work());
    }

    #[track_caller]
    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        git(&self.env.work(), arguments)
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        if let ["run", file, ..] = arguments
            && !arguments.contains(&"--dry-run")
        {
            // The user has confirmed what the project's files name. A plan that is not valid is told of by the command itself.
            let _ = self.env.command(["plan", "trust", file]).stdin(Stdio::null()).output().unwrap();
        }
        let noun = if matches!(arguments[0], "log" | "why" | "show") { "run" } else { "plan" };
        let mut command = self.env.command([noun]);
        command.args(arguments).env("PATH", self.claude.path()).env("CLAUDECODE", "1").stdin(Stdio::null());
        command
    }

    /// Runs a command of `posse plan` or `posse run` with the plan as its first argument: exit code, and what it said.
    #[track_caller]
    pub(crate) fn plan(&self, command: &str, more: &[&str]) -> (i32, String) {
        let mut arguments = vec![command, self.plan.to_str().unwrap()];
        arguments.extend(more);
        said(&self.command(&arguments).output().unwrap())
    }

    /// Runs a `posse plan` command that has to end with this code, and returns what it said.
    #[track_caller]
    pub(crate) fn plan_ends(&self, code: i32, command: &str, more: &[&str]) -> String {
        let (found, text) = self.plan(command, more);
        assert_eq!(found, code, "{text}");
        text
    }

    /// Begins to run it, and goes on.
    pub(crate) fn begin(&self, more: &[&str]) -> Child {
        let mut command = self.command(&["run", self.plan.to_str().unwrap()]);
        command.args(more).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Runs the plan to its end and kills the daemon again and again. The session that waits at `gate` goes on after the
    /// third kill. Returns what the command said.
    #[track_caller]
    pub(crate) fn run_and_kill_daemons(&self, more: &[&str]) -> String {
        let mut run = self.begin(more);
        let mut kills = 0;
        while run.try_wait().unwrap().is_none() {
            // The pauses differ, so that each daemon dies in another moment of the run.
            if self.env.http().get::<serde_json::Value>("/health").is_ok() {
                std::thread::sleep(std::time::Duration::from_millis(100 + 70 * kills));
                if run.try_wait().unwrap().is_none() && kills < 12 {
                    self.env.kill_daemon();
                    kills += 1;
                    if kills == 3 {
                        when("the session", || self.claude.waits("1.1", 1).then_some(()));
                        self.claude.open_gate("gate");
                    }
                }
            }
        }
        let (code, text) = ended(run);
        // The last daemon may have been killed after the end of the run, when nobody needs another one.
        self.env.run(["ls"]).ok();
        assert!(code == 0 && kills > 2, "after {kills} kills: {text}");
        assert_eq!(self.claude.sessions(), 2, "after {kills} kills: {text}");
        text
    }

    pub(crate) fn file(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.env.work().join(name)).ok()
    }

    pub(crate) fn text(&self) -> String {
        fs::read_to_string(&self.plan).unwrap()
    }

    /// The run of the plan that began last, as the API tells it.
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

pub(crate) fn said(output: &Output) -> (i32, String) {
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    (output.status.code().unwrap_or(-1), String::from_utf8_lossy(&text).into_owned())
}

#[track_caller]
pub(crate) fn ended(child: Child) -> (i32, String) {
    said(&child.wait_with_output().unwrap())
}

/// Waits for the end, which has to have this code, and returns what it said.
#[track_caller]
pub(crate) fn ended_with(code: i32, child: Child) -> String {
    let (found, text) = ended(child);
    assert_eq!(found, code, "{text}");
    text
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

    let text = scene.plan_ends(0, "run", &[]);
    assert!(text.contains("verified: every task is done"), "{text}");
    assert_eq!((scene.file("a").as_deref(), scene.file("b").as_deref()), (Some("alpha\n"), Some("alpha\n")));
    assert_eq!(scene.git(&["status", "--porcelain=v2"]), before, "the user's changes");
    assert_eq!(scene.file("README").as_deref(), Some("one\nmine\n"));
    let log = scene.git(&["log", "--format=%s%n%(trailers)"]);
    assert!(log.contains("task 1.2: Write b") && log.contains("Task: 1.2"), "{log}");
    assert_eq!(scene.git(&["worktree", "list"]).lines().count(), 1, "nothing is left behind");
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
    let (code, text) = scene.plan("run", &[]);
    assert_eq!((code, scene.claude.sessions()), (0, 2), "{text}");

    // Who does not want to hear of every task need not.
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
    let (code, text) = scene.plan("run", &[]);
    assert_eq!((code, scene.claude.sessions()), (1, 2), "{text}");
    assert!(text.contains("there is no commit and no changed file"), "{text}");
    let second = scene.claude.called("t", 2).unwrap();
    assert!(second.prompt.contains("no_evidence"), "{}", second.prompt);
    let plan = scene.text();
    assert!(plan.contains("status: failed"), "{plan}");
    assert_eq!(scene.record("t").failure_kind, Some(FailureKind::AttemptsExhausted));

    // A person wants it to be tried again.
    scene.claude.play("t", commit("a", "alpha") + &reports("completed", "now really"));
    scene.plan_ends(0, "retry", &["t"]);
    let (code, text) = scene.plan("run", &[]);
    assert_eq!((code, scene.file("a").as_deref()), (0, Some("alpha\n")), "{text}");
}

/// T49.
#[test]
fn what_a_check_finds_is_told_to_the_next_attempt() {
    let gates = "meta: {name: One, backoff_base: 1, gates: [{name: good, cmd: 'grep -q good a || { echo it is not good; exit 1; }'}]}";
    let scene = Scene::new(&ONE.replace("meta: {name: One, backoff_base: 1}", gates));
    scene.claude.play("t.1", commit("a", "bad") + DONE);
    scene.claude.play("t.2", commit("a", "good") + DONE);
    let (code, text) = scene.plan("run", &[]);
    assert_eq!((code, scene.claude.sessions()), (0, 2), "{text}");
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
    let text = scene.plan_ends(7, "run", &[]);
    assert!(text.contains("Which colour?"), "{text}");
    scene.plan_ends(0, "answer", &["t", "blue", "of", "course"]);
    let (code, text) = scene.plan("answer", &["t", "green"]);
    assert_eq!(code, 1, "it asks only once: {text}");
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
    let run = scene.begin(&[]);
    when("the first session", || scene.claude.waits("1.1", 1).then_some(()));
    let (code, text) = scene.plan("status", &[]);
    assert!(code == 0 && text.contains("▸ 1.1") && text.contains("  coder"), "{text}");
    assert_eq!(scene.plan("stop", &[]).0, 0);
    scene.claude.open_gate("gate");
    let text = ended_with(3, run);
    assert_eq!((scene.file("a").as_deref(), scene.claude.sessions()), (Some("alpha\n"), 1), "{text}");

    let run = scene.begin(&[]);
    when("the second session", || scene.claude.waits("1.2", 1).then_some(()));
    assert_eq!(scene.plan("stop", &["now"]).0, 0);
    ended_with(3, run);
    // Ended on request, it costs no attempt.
    let plan = scene.text();
    assert!(!plan.contains("in_progress"), "{plan}");
    assert_eq!(["1.1", "1.2"].map(|task| scene.record(task).attempts), [1, 0]);
}

#[test]
fn a_session_goes_on_when_the_daemon_dies() {
    let scene = Scene::new(TWO);
    scene.claude.gate("gate");
    scene.claude.play("1.1", say("before") + &wait_for("gate") + &commit("a", "alpha") + DONE);
    scene.claude.play("1.2", commit("b", "beta") + DONE);
    let run = scene.begin(&[]);
    when("the first session", || scene.claude.waits("1.1", 1).then_some(()));
    scene.env.kill_daemon();
    scene.claude.open_gate("gate");
    let text = ended_with(0, run);
    assert_eq!(scene.claude.sessions(), 2, "no session was started twice: {text}");
    assert_eq!(["1.1", "1.2"].map(|task| scene.record(task).attempts), [1, 1]);
    assert_eq!(scene.file("b").as_deref(), Some("beta\n"));
}

#[test]
fn a_run_that_nobody_follows_waits_for_its_environment() {
    let scene = Scene::new(TWO);
    scene.claude.gate("gate");
    scene.claude.play("1.1", wait_for("gate") + &commit("a", "alpha") + DONE);
    scene.claude.play("1.2", commit("b", "beta") + DONE);
    scene.plan_ends(0, "run", &["--detach"]);
    when("the first session", || scene.claude.waits("1.1", 1).then_some(()));
    scene.env.kill_daemon();
    scene.claude.open_gate("gate");
    // The session went on; the next one needs somebody who knows the environment.
    when("the run waits", || scene.plan("status", &[]).1.contains("waits: `posse plan run").then_some(()));
    assert_eq!(scene.claude.sessions(), 1);
    let (code, text) = scene.plan("run", &[]);
    assert_eq!((code, scene.claude.sessions()), (0, 2), "{text}");
}

/// T23.
#[test]
fn a_session_may_add_tasks_but_not_vouch_for_others() {
    let scene = Scene::new(ONE);
    let add =
        "cat >> \"$(dirname \"$POSSE_RESULT_FILE\")/plan.yaml\" <<'EOF'\n      - id: more\n        name: More\nEOF\n";
    scene.claude.play("t", commit("a", "alpha") + &sh(add) + DONE);
    scene.claude.play("more", commit("b", "beta") + DONE);
    let (code, text) = scene.plan("run", &[]);
    assert_eq!((code, scene.claude.sessions()), (0, 2), "{text}");
    assert!(scene.text().contains("id: more"), "{}", scene.text());
}

/// T16, T48.
#[test]
fn what_cannot_be_run_says_so_before_anything_is_touched() {
    let scene = Scene::new(ONE);
    let plan = scene.text();
    let mut command = scene.command(&["run", scene.plan.to_str().unwrap()]);
    let (code, text) = said(&command.env("PATH", "/usr/bin:/bin").output().unwrap());
    assert_eq!(code, 69, "{text}");
    assert_eq!(scene.text(), plan);
    let (code, text) = scene.plan("run", &["--dry-run"]);
    assert!(code == 0 && text.contains("--permission-mode acceptEdits"), "{text}");
    assert_eq!((scene.text(), scene.claude.sessions()), (plan, 0));
    fs::write(&scene.plan, ONE.replace("id: t", "id: t\n        depends_on: [nobody]")).unwrap();
    let (code, text) = scene.plan("run", &[]);
    assert_eq!((code, scene.claude.sessions()), (5, 0), "{text}");
}

/// T07 and T38.
#[test]
fn a_validator_looks_at_the_work_before_it_is_merged() {
    let meta = "meta: {name: One, backoff_base: 1, validation: {enabled: true}}";
    let scene = Scene::new(&ONE.replace("meta: {name: One, backoff_base: 1}", meta));
    // In fields, and in words.
    let fail = r#"{"task_id": "t", "nonce": "{nonce}", "status": "completed", "message": "m", "verdict": "FAIL", "findings": ["[FAIL] a is bad"], "evidence": "seen"}"#;
    let pass = r#"{ result = { text = "[PASS] a is good\n**Verdict: PASS**" } },"#;
    scene.claude.play("t.1", commit("a", "bad") + DONE);
    scene.claude.play("t.2", end(&format!("```json\n{fail}\n```")));
    scene.claude.play("t.3", commit("a", "good") + DONE);
    scene.claude.play("t.4", pass);
    let (code, text) = scene.plan("run", &[]);
    assert_eq!((code, scene.claude.sessions()), (0, 4), "{text}");
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

/// What the original orchestrator tolerated. A validator that nobody defines is replaced, not left out.
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
    scene.claude.play("t.2", end("[PASS] a is good\n**Verdict: PASS**"));
    let (code, text) = scene.plan("run", &[]);
    assert_eq!((code, scene.claude.sessions()), (0, 2), "{text}");
    assert!(warnings.iter().all(|warning| text.contains(warning)), "{text}");
    let validator = scene.claude.called("t", 2).unwrap();
    assert!(validator.prompt.contains("alidat"), "{}", validator.prompt);
    assert_eq!(scene.file("a").as_deref(), Some("good\n"), "{text}");
}

/// Everything that can be interrupted is, again and again. Nothing is done twice, nothing is lost.
#[test]
fn the_daemon_may_die_at_any_time() {
    let scene = Scene::new(TWO);
    // The first session goes on for at least three daemons, however fast the machine is.
    scene.claude.gate("gate");
    scene.claude.play("1.1", say("working") + &wait_for("gate") + &commit("a", "alpha") + DONE);
    scene.claude.play("1.2", sh("cat a > b") + DONE);
    scene.run_and_kill_daemons(&[]);
    assert_eq!(scene.file("b").as_deref(), Some("alpha\n"));
    assert_eq!(["1.1", "1.2"].map(|task| scene.record(task).attempts), [1, 1]);
}

#[test]
fn ctrl_c_twice_ends_what_runs() {
    let scene = Scene::new(ONE);
    scene.claude.gate("gate");
    scene.claude.play("t", wait_for("gate"));
    let mut run = scene.begin(&[]);
    when("the session", || scene.claude.waits("t", 1).then_some(()));
    let pid = rustix::process::Pid::from_child(&run);
    let interrupt = || rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    interrupt();
    // It says what a second one does when it is ready for it.
    let mut said = std::io::BufReader::new(run.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("Ctrl-C again") {
        line.clear();
        assert_ne!(std::io::BufRead::read_line(&mut said, &mut line).unwrap(), 0);
    }
    when("it was told to stop", || scene.text().contains("in_progress").then_some(()));
    interrupt();
    ended_with(130, run);
    assert_eq!(scene.text(), ONE, "as if it had not been tried");
    assert_eq!((scene.last_run().outcome, scene.record("t").attempts), (Some(RunOutcome::Stopped), 0));
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
