//! A backlog, worked through by a scripted `claude`: the real daemon, real git, real work trees.

pub(crate) mod cli;
mod example;
mod kills;
mod log;
mod money;
mod together;

use std::collections::BTreeSet;
use std::fs;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use posse_testkit::files::when;
use serde_json::{Value, json};

use crate::env;
use crate::project::{Project, ended_with, said, says, spawned};
use crate::steps::{DONE, FINE, ask, commit, either, end, limited, reports, wait_for};

/// A planner that follows its instructions: one task, named after the item.
pub(crate) const PLANNER: &str = include_str!("scripts/planner.sh");
const VERIFIED: &str = "text='\"[PASS] S1: tried, gone\\n[PASS] AC1: tried, holds\\n**Verdict: PASS**\"'\n";
const WANTING: &str = "text='\"[FAIL] S1: it is still there\\n**Verdict: FAIL**\"'\n";

/// A project with one commit and a backlog.
pub(crate) struct Scene(Project);

impl Deref for Scene {
    type Target = Project;

    fn deref(&self) -> &Project {
        &self.0
    }
}

impl Scene {
    pub(crate) fn new(items: &[&str]) -> Self {
        let scene = Self::of(|work| {
            fs::write(work.join("README"), "one\n").unwrap();
            for directory in ["docs/defect-backlog", "docs/feature-backlog"] {
                fs::create_dir_all(work.join(directory)).unwrap();
            }
            items.iter().for_each(|item| add(work, item));
        });
        scene.claude.play("plan", PLANNER);
        scene.claude.play("verify", VERIFIED);
        scene
    }

    /// A project with one commit of what `fill` puts into it, and a daemon.
    fn of(fill: impl FnOnce(&Path)) -> Self {
        let scene = Self(Project::new(fill));
        scene.env.run(["ls"]).ok();
        scene
    }

    pub(crate) fn add(&self, item: &str) {
        add(&self.env.work(), item);
    }

    /// Scripts the sessions of this item: the work succeeds and passes validation.
    pub(crate) fn does(&self, item: &str) {
        self.claude.play(&format!("do-{item}.1"), commit(item, "done") + DONE);
        self.claude.play(&format!("do-{item}"), FINE);
    }

    /// The same, however often it is planned anew: each time with another result.
    fn does_again_and_again(&self, item: &str) {
        let work = commit(item, "{number}") + DONE;
        self.claude.play(&format!("do-{item}"), either("[ $((number % 2)) = 1 ]", &work, FINE));
    }

    fn environment(&self) -> Value {
        let home = self.env.work().parent().unwrap().to_str().unwrap().to_owned();
        json!({ "PATH": self.claude.path(), "HOME": home, "TZ": "UTC" })
    }

    /// Begins a pipeline and gives its id.
    #[track_caller]
    pub(crate) fn begin(&self, more: &Value) -> String {
        let mut body = json!({ "directory": self.env.work(), "mode": "drain", "environment": self.environment() });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let answer = self.env.http().post("/runs", &json!({ "backlog": body })).unwrap();
        assert_eq!(answer.status, 201, "{answer:?}");
        answer.json()["id"].as_str().unwrap().to_owned()
    }

    fn show(&self, id: &str) -> Option<Value> {
        self.env.http().get(&format!("/runs/{id}")).ok().filter(|view: &Value| view["id"] == id)
    }

    /// Waits until it is over: how it ended, and why.
    #[track_caller]
    pub(crate) fn ended(&self, id: &str) -> (String, String) {
        let view = when("the end of the run", || self.show(id).filter(is_over));
        let text = |name: &str| view[name].as_str().unwrap_or_default().to_owned();
        (text("outcome"), text("reason"))
    }

    #[track_caller]
    fn why(&self, item: &str) -> (String, String, Vec<String>) {
        let path = format!("/runs/why?of={}&part={item}", self.env.work().display());
        let why: Value = self.env.http().get(&path).unwrap();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let lines = why["history"].as_array().unwrap_or_else(|| panic!("{why}"));
        let history = lines.iter().map(|line| text(&line["text"])).collect();
        (text(&why["item"]["standing"]), text(&why["item"]["reason"]), history)
    }

    /// Details for failed tests.
    fn journal(&self, id: &str) -> Value {
        let log = fs::read_to_string(self.env.paths().log()).unwrap_or_default();
        let end: Vec<&str> = log.lines().rev().take(30).collect();
        let journal: Value = self.env.http().get(&format!("/runs/{id}/journal?after=1")).unwrap_or_default();
        json!({ "journal": journal, "log, newest first": end })
    }

    /// Waits until an item is in the archive.
    #[track_caller]
    fn until_archived(&self, item: &str) {
        when(&format!("{item} in the archive"), || self.is_archived(item).then_some(()));
    }

    fn is_archived(&self, item: &str) -> bool {
        let kind = if item.contains("bug") { "defects" } else { "features" };
        self.names(&format!("docs/completed-backlog/{kind}")).contains(&format!("{item}.md"))
    }

    /// Each was done and archived once, and nothing is left behind.
    #[track_caller]
    fn archived_once(&self, items: &[&str]) {
        for item in items {
            let commits = self.git(&["log", "--format=%h", "--", &format!("docs/completed-backlog/*/{item}.md")]);
            assert!(self.is_archived(item) && commits.lines().count() == 1, "{item}: {commits}");
            assert_eq!(self.file(item).as_deref(), Some("done\n"));
        }
        assert_eq!(self.git(&["status", "--porcelain"]), "?? .posse/\n");
        // Remains of plan runs are removed after the runs end.
        when("no work tree is left", || (self.worktrees() == 1).then_some(()));
    }

    /// Waits until the journal of a run has an event of this name.
    #[track_caller]
    pub(crate) fn until_journaled(&self, id: &str, event: &str) {
        when(event, || {
            let entries: Value = self.env.http().get(&format!("/runs/{id}/journal")).ok()?;
            entries.as_array()?.iter().any(|entry| entry["event"].get(event).is_some()).then_some(())
        });
    }

    /// The id of the newest run of the backlog.
    pub(crate) fn newest(&self) -> String {
        let runs: Value = self.env.http().get("/runs?kind=backlog").unwrap();
        runs[0]["id"].as_str().unwrap().to_owned()
    }

    /// Waits for the end of a run, which has to be this one for this reason.
    #[track_caller]
    fn ends(&self, id: &str, outcome: &str, reason: &str) {
        assert_eq!(self.ends_as(id, outcome), reason, "{:#}", self.journal(id));
    }

    /// Waits for the end of a run, which has to be this one, and returns the reason.
    #[track_caller]
    fn ends_as(&self, id: &str, outcome: &str) -> String {
        let (found, reason) = self.ended(id);
        assert_eq!(found, outcome, "{reason}: {:#}", self.journal(id));
        reason
    }

    /// `posse auto` with these arguments, or a verb of `posse run`.
    fn command(&self, arguments: &[&str]) -> Command {
        // The user has confirmed what the project's file names.
        let _ = self.env.command(["plan", "trust"]).stdin(Stdio::null()).output().unwrap();
        let verbs = ["show", "why", "log", "follow", "stop", "retry", "answer"];
        let noun = if verbs.contains(arguments.first().unwrap_or(&"")) { "run" } else { "auto" };
        self.posse(&[&[noun], arguments].concat())
    }

    /// Runs such a command: exit code, and what it printed.
    #[track_caller]
    fn auto(&self, arguments: &[&str]) -> (i32, String) {
        said(&self.command(arguments).output().unwrap())
    }

    /// Runs such a command, which has to end with this code. Returns what it printed.
    #[track_caller]
    fn auto_ends(&self, code: i32, arguments: &[&str]) -> String {
        says(code, self.command(arguments), &[])
    }

    /// Runs such a command, which has to end with this code and print these words. Returns what it printed.
    #[track_caller]
    fn auto_says(&self, code: i32, arguments: &[&str], words: &[&str]) -> String {
        says(code, self.command(arguments), words)
    }

    /// Kills the daemon, waits for the next one, and provides the environment again.
    #[track_caller]
    fn another_daemon(&self, id: &str) {
        self.env.kill_daemon();
        when("another daemon", || {
            let answer = self
                .env
                .http()
                .post(&format!("/runs/{id}/resume"), &json!({ "environment": self.environment() }))
                .ok()?;
            (answer.status == 200).then_some(())
        });
    }
}

/// Returns whether the run that is shown has ended.
fn is_over(view: &Value) -> bool {
    !matches!(view["status"].as_str(), Some("running" | "parked"))
}

/// An item; those with `bug` in their names are defects.
fn add(work: &Path, item: &str) {
    let kind = if item.contains("bug") { "defect" } else { "feature" };
    let text = format!(
        "# {item}\n\n## Actual Behavior\nThe file is empty, whatever one does.\n\n## Acceptance Criteria\n- {item} is there\n"
    );
    fs::write(work.join(format!("docs/{kind}-backlog/{item}.md")), text).unwrap();
}

#[test]
fn t95_a_planner_without_a_plan_has_failed() {
    let scene = Scene::new(&["1-more"]);
    scene.claude.play("plan", reports("completed", "the plan is in my head"));
    let id = scene.begin(&json!({}));
    scene.ends(&id, "failed", "failed: 1-more");
    assert!(scene.names("docs/failed-backlog").contains(&"1-more.md".to_owned()));
    assert_eq!(scene.claude.sessions(), 2, "two attempts, and no task");
    let second = scene.claude.called("plan", 2).unwrap();
    assert!(second.prompt.contains("the planner wrote no plan"), "{}", second.prompt);
}

#[test]
fn t96_three_verifications_in_vain_and_daemons_that_die_in_between() {
    let scene = Scene::new(&["1-bug"]);
    scene.claude.gate("gate");
    scene.does_again_and_again("1-bug");
    scene.claude.play("verify", wait_for("gate") + WANTING);
    let id = scene.begin(&json!({}));
    for number in 1..=3 {
        scene.until_waits("verify", number);
        if number < 3 {
            // The session runs on without the daemon, and is not restarted.
            scene.another_daemon(&id);
        }
        scene.claude.open_gate("gate");
    }
    scene.ends(&id, "failed", "failed: 1-bug");
    let item = scene.file("docs/failed-backlog/1-bug.md").unwrap();
    assert_eq!(item.matches("**Verdict: FAIL**").count(), 3, "{item}");
    assert!(item.to_lowercase().contains("exhausted"), "{item}");
    assert!(scene.claude.called("verify", 4).is_none());
    assert_eq!(scene.names(".posse/plans/old").len(), 2, "old plans are kept");
}

#[test]
fn t97_a_verifier_that_never_answers_costs_no_verification() {
    let scene = Scene::new(&["1-bug"]);
    scene.does_again_and_again("1-bug");
    scene.claude.gate("never");
    scene.claude.play("verify", wait_for("never"));
    // The plan has a time of its own, so only the verifier has to hurry.
    let backoff = "  backoff_base: 1\n";
    scene.claude.play("plan", PLANNER.replace(backoff, &format!("{backoff}  timeout_default: 600\n")));
    let id = scene.begin(&json!({ "config": { "task": { "timeout": { "secs": 1, "nanos": 0 } } } }));
    scene.ends(&id, "suspended", "waiting for a person: 1-bug");
    let (standing, reason, _) = scene.why("1-bug");
    assert_eq!(standing, "parked");
    assert!(reason.starts_with("needs_attention: no verdict in 3 tries"), "{reason}");
    assert!(scene.claude.called("verify", 3).is_some() && scene.claude.called("verify", 4).is_none());
    let item = scene.file("docs/defect-backlog/1-bug.md").unwrap();
    assert!(!item.contains("Verification #"), "{item}");
    // Somebody has looked.
    scene.claude.play("verify", VERIFIED);
    let id = scene.begin(&json!({ "retry": ["1-bug"] }));
    scene.ends_as(&id, "verified");
}

#[test]
fn t84_a_stop_file_keeps_what_was_done() {
    let scene = Scene::new(&["1-more"]);
    scene.claude.gate("gate");
    scene.claude.play("do-1-more.1", commit("1-more", "done") + DONE);
    scene.claude.play("do-1-more", wait_for("gate") + FINE);
    let id = scene.begin(&json!({}));
    scene.until_waits("do-1-more", 2);
    let stop = scene.env.work().join(".posse/state/stop");
    fs::write(&stop, "").unwrap();
    when("it is taken", || (!stop.exists()).then_some(()));
    scene.claude.open_gate("gate");
    scene.ends_as(&id, "stopped");
    assert_eq!(scene.names("docs/feature-backlog"), ["1-more.md"], "not archived");
    assert_eq!(scene.file("1-more").as_deref(), Some("done\n"), "its result is kept");
    assert_eq!(scene.claude.sessions(), 3, "no new session");

    // The next pipeline continues from there: nothing is planned, done or validated again.
    let id = scene.begin(&json!({}));
    scene.ends_as(&id, "verified");
    assert_eq!(scene.claude.sessions(), 3);
    assert!(scene.is_archived("1-more"));
}

#[test]
fn there_is_one_in_a_project_and_it_finds_what_is_new() {
    let scene = Scene::new(&[]);
    let id = scene.begin(&json!({ "mode": "watch" }));
    let body = json!({ "directory": scene.env.work(), "environment": scene.environment() });
    // Nor does a posse with another home work there.
    let other = env();
    other.run(["ls"]).ok();
    for (env, words) in [(&scene.env, id.as_str()), (&other, "")] {
        let second = env.http().post("/runs", &json!({ "backlog": body })).unwrap();
        assert_eq!((second.status, second.json()["kind"].as_str()), (409, Some("in_use")), "{second:?}");
        assert!(second.body.contains(words), "{second:?}");
    }
    scene.does("7-more");
    scene.add("7-more");
    let archived = || scene.is_archived("7-more").then_some(());
    when("it is archived", archived);
}

#[test]
fn an_idle_pipeline_wakes_nobody() {
    let scene = Scene::new(&[]);
    let id = scene.begin(&json!({ "mode": "watch" }));
    scene.until_journaled(&id, "scanned");
    let tasks = PathBuf::from(format!("/proc/{}/task", scene.env.daemon_pid()));
    // Wakeups of each thread, and the size of the log. Threads for slow work come and go.
    let seen = || {
        let statuses =
            fs::read_dir(&tasks).unwrap().map(|task| fs::read_to_string(task.unwrap().path().join("status")));
        let lasting = statuses.flatten().filter(|status| !status.starts_with("Name:\ttokio"));
        let counted = |line: &&str| line.starts_with("Pid:") || line.starts_with("voluntary_ctxt_switches:");
        let woken: BTreeSet<String> = lasting.map(|status| status.lines().filter(counted).collect()).collect();
        (woken, fs::metadata(scene.env.paths().log()).map_or(0, |log| log.len()))
    };
    let unchanged = |seconds| {
        let before = seen();
        std::thread::sleep(Duration::from_secs(seconds));
        (before == seen()).then_some(())
    };
    // The last messages of earlier work take a moment; then nothing changes.
    when("a quiet second", || unchanged(1));
    assert!(unchanged(3).is_some(), "a thread was woken, or something was logged");
}

#[test]
fn t98_when_nothing_works_it_stops_and_nothing_is_touched() {
    let items = ["1-more", "2-more", "3-more", "4-more", "5-more"];
    let scene = Scene::new(&items);
    scene.claude.play("plan", "error=true code=1 text='\"\"' cost=0\n");
    let id = scene.begin(&json!({}));
    let reason = scene.ends_as(&id, "circuit_open");
    assert!(reason.contains("1-more, 2-more, 3-more"), "{reason}");
    assert_eq!(scene.claude.sessions(), 3);
    assert_eq!(scene.names("docs/feature-backlog"), items.map(|item| format!("{item}.md")));
    assert_eq!(scene.git(&["status", "--porcelain"]), "");
}

#[test]
fn t71_a_limit_while_planning_holds_everybody() {
    let scene = Scene::new(&["1-more"]);
    scene.claude.play("plan", limited(3600));
    let id = scene.begin(&json!({ "no_wait": true }));
    scene.ends_as(&id, "rate_limited");
    let (standing, _, history) = scene.why("1-more");
    assert_eq!(standing, "waiting", "{history:?}");
    assert_eq!(scene.show(&id).unwrap()["items"][0]["attempts"], 0, "it costs nothing");
    // The result is remembered: by the next pipeline, by a plan, and after a restart of the daemon.
    scene.env.kill_daemon();
    when("another daemon", || scene.env.http().get::<Value>("/health").ok());
    let id = scene.begin(&json!({ "no_wait": true }));
    scene.ends_as(&id, "rate_limited");
    let plan = scene.env.work().parent().unwrap().join("outside/plan.yaml");
    fs::write(&plan, "meta: {name: One}\nsections:\n  - id: s\n    tasks:\n      - {id: t, name: T}\n").unwrap();
    let mut command = scene.env.command(["plan", "run", "--no-wait", plan.to_str().unwrap()]);
    let output = command.env("PATH", scene.claude.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(75), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(scene.claude.sessions(), 1);
}

#[test]
fn an_item_whose_plan_asks_waits_for_the_answer_and_others_go_on() {
    let scene = Scene::new(&["1-more", "2-more"]);
    scene.does("2-more");
    scene.claude.play("do-1-more.1", ask("Which colour?"));
    scene.claude.play("do-1-more.2", commit("1-more", "blue") + DONE);
    scene.claude.play("do-1-more", FINE);
    scene.begin(&json!({ "mode": "watch" }));
    let archived =
        |item: &str| scene.names("docs/completed-backlog/features").contains(&format!("{item}.md")).then_some(());
    when("the other one", || archived("2-more"));
    let (standing, reason, _) = scene.why("1-more");
    assert_eq!(standing, "parked", "{reason}");
    assert!(reason.starts_with("suspended"), "{reason}");
    assert!(archived("1-more").is_none());
    let mut answer = scene.env.command(["plan", "answer", ".posse/plans/1-more.yaml", "do-1-more", "blue"]);
    assert!(answer.status().unwrap().success());
    when("it is archived", || archived("1-more"));
    assert!(scene.claude.called("do-1-more", 2).unwrap().prompt.contains("Which colour?"));
}
