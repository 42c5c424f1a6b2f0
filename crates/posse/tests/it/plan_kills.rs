//! Runs of a plan with random kills, with real git and real processes in a checkout full of the user's own uncommitted work: every
//! task is done once, every result is merged once, and nothing of the user's is changed in files, index or stash.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use posse_api::{EntryView, JournalView, PlanEntry, PlanView};
use posse_core::engine::RunOutcome;
use posse_core::plan::machine::{Event, MergeResult};
use posse_core::plan::outcome::Outcome;
use posse_testkit::{TestEnv, env, process};

use crate::kills::{Killable, Random, kill_daemon, until_killed};
use crate::plan_run::Scene;
use crate::steps::{DONE, ask, commit, either, end, say, sh};

const PLAN: &str = "\
# Kept by hand.
meta:
  name: Kills
  backoff_base: 1
  circuit_breaker_threshold: 99
  validation: {enabled: true, run_after: [frontend-coder]}
  gates: [{name: readable, cmd: 'test -r README'}]
sections:
  - id: s
    tasks:
      - {id: first, name: First}
      - {id: left, name: Left, parallel_group: g, depends_on: [first]}
      - {id: right, name: Right, parallel_group: g, depends_on: [first]}
      - {id: asks, name: Asks, parallel_group: g, depends_on: [first]}
      - {id: judged, name: Judged, agent: frontend-coder, depends_on: [left]}
";
/// The tasks' files: `late` is added by the person, `added` by a session.
const TASKS: [&str; 7] = ["first", "left", "right", "asks", "judged", "late", "added"];

fn plays(scene: &Scene) {
    let work = |task: &str| {
        // All of them change one file too, each at its own place.
        [
            say("working"),
            sh(&format!("sleep 0.6; sed -i 's/^{task}:.*/{task}: done/' shared")),
            commit(task, task),
            sh("git commit -q -am shared"),
            say("nearly"),
            sh("sleep 0.3"),
            DONE.to_owned(),
            sh(": > \"$session/finished\""),
        ]
        .concat()
    };
    for task in TASKS {
        scene.claude.play(task, work(task));
    }
    let adds = sh("printf '      - {id: added, name: Added}\\n' >> \"$(dirname \"$POSSE_RESULT_FILE\")/plan.yaml\"");
    scene.claude.play("first", adds + &work("first"));
    // Until it has its answer.
    let asks = sh("sleep 0.1") + &ask("Which colour?");
    scene.claude.play("asks", told("blue of course", &work("asks"), &asks));
    // A validator is told what was reported; who works is told to report.
    let judges = sh("sleep 0.1") + &end("[PASS] fine\n**Verdict: PASS**");
    scene.claude.play("judged", told("result.json", &work("judged"), &judges));
}

/// A session that does one thing if its prompt has these words, and otherwise another.
fn told(words: &str, then: &str, otherwise: &str) -> String {
    either(&format!("grep -qF '{words}' \"$session/prompt\""), then, otherwise)
}

/// Returns the user's uncommitted state, byte for byte: files, index, status and stash.
fn users(scene: &Scene) -> Vec<String> {
    let names = ["README", "staged", "both", "loose", "ignored.log", "gone"];
    let mut users: Vec<String> = names.map(|name| format!("{name}: {:?}", scene.file(name))).to_vec();
    let index = scene.git(&["ls-files", "--stage"]);
    let theirs = |line: &&str| names.iter().any(|name| line.ends_with(&format!("\t{name}")));
    users.extend(index.lines().filter(theirs).map(str::to_owned));
    users.push(scene.git(&["status", "--porcelain=v2", "--ignored"]));
    users.push(scene.git(&["stash", "show", "-p", "--include-untracked"]));
    users.push(scene.git(&["stash", "list", "--format=%H"]));
    users
}

fn leave_work_about(scene: &Scene) {
    let put = |name: &str, text: &str| fs::write(scene.env.work().join(name), text).unwrap();
    let shared: String = TASKS.iter().map(|task| format!("{task}: open\n\n\n\n")).collect();
    let agent = ".claude/agents/frontend-coder.md";
    fs::create_dir_all(scene.env.work().join(".claude/agents")).unwrap();
    for (name, text) in [
        ("shared", shared.as_str()),
        ("both", "one\n"),
        ("gone", "one\n"),
        (".gitignore", "*.log\n"),
        (agent, "---\nname: frontend-coder\n---\nYou write pages.\n"),
    ] {
        put(name, text);
        scene.git(&["add", "--", name]);
    }
    scene.git(&["commit", "-q", "-m", "second"]);
    put("both", "stashed\n");
    put("loose", "stashed too\n");
    scene.git(&["stash", "-q", "--include-untracked"]);
    put("README", "one\nmine\n");
    put("staged", "staged\n");
    put("both", "two\n");
    scene.git(&["add", "staged", "both"]);
    put("both", "three\n");
    put("loose", "loose\n");
    put("ignored.log", "ignored\n");
    fs::remove_file(scene.env.work().join("gone")).unwrap();
}

struct PlanKills {
    scene: Scene,
    /// The user's state at the start.
    before: Vec<String>,
    keeper_kills: AtomicU32,
}

impl Killable for PlanKills {
    const KIND: &'static str = "plan";
    const KILLS_PER_RUN: u32 = 15;
    const MOMENTS: &'static [&'static str] = &[
        "started",
        "area_ready",
        "launched",
        "launched",
        "launched",
        "session_ended",
        "validator_ended",
        "gates_ended",
        "merge_ended",
        "plan_edited",
    ];

    fn open(_: u64) -> Self {
        let scene = Scene::new(PLAN);
        plays(&scene);
        leave_work_about(&scene);
        let before = users(&scene);
        Self { scene, before, keeper_kills: AtomicU32::new(0) }
    }

    fn env(&self) -> &TestEnv {
        &self.scene.env
    }

    fn next(&self) -> Option<Command> {
        let runs: Vec<PlanView> = self.runs();
        match runs.first().and_then(|run| run.outcome.filter(|_| !run.is_active())) {
            Some(outcome) if outcome.is_success() => return None,
            // If the answer was not taken, the plan asks again.
            Some(RunOutcome::Suspended) => drop(self.scene.plan("answer", &["asks", "blue", "of", "course"])),
            Some(outcome) => panic!("{outcome:?}"),
            None => {}
        }
        Some(self.scene.command(&["run", self.scene.plan.to_str().unwrap(), "--parallel=3"]))
    }

    /// Kills keeper and daemon, as when the machine goes down. Once in a run: a task whose session is lost again and again is
    /// given up, and should be.
    fn kill_special(&self, random: &mut Random) -> u32 {
        let keeper = self.scene.env.keeper_pid().filter(|_| self.keeper_kills.load(Ordering::Relaxed) == 0);
        let Some(keeper) = keeper.filter(|_| random.below(3) == 0) else { return kill_daemon(&self.scene.env) };
        self.keeper_kills.fetch_add(1, Ordering::Relaxed);
        env::kill(keeper);
        let _ = process::ends(keeper);
        1 + kill_daemon(&self.scene.env)
    }

    fn pause(entry: Option<&str>, random: &mut Random) -> u64 {
        match entry {
            // While the session works, for the most part.
            Some("launched") => random.below(900),
            Some(_) => random.below(60) * random.below(2),
            None => random.below(500),
        }
    }

    /// Another person adds a task while the first one is worked on. As an editor does it: whole, or not at all; and again if
    /// posse wrote in between.
    fn meanwhile(&self, is_over: &AtomicBool) {
        while !self.scene.claude.session("first", 1).exists() {
            if is_over.load(Ordering::Relaxed) {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let beside = self.scene.plan.with_extension("swp");
        loop {
            let before = self.scene.text();
            let edited = before.replacen(
                "      - {id: left,",
                "      - {id: late, name: Late}  # by hand\n      - {id: left,",
                1,
            );
            assert_ne!(before, edited);
            fs::write(&beside, edited).unwrap();
            if self.scene.text() == before {
                return fs::rename(&beside, &self.scene.plan).unwrap();
            }
        }
    }

    fn details(&self) -> String {
        format!("plan:\n{}\nreports:\n{}", self.scene.text(), self.reports())
    }

    fn check(&self, _: bool) {
        let scene = &self.scene;
        let plan = scene.text();
        assert!(plan.starts_with("# Kept by hand.\n") && plan.contains("# by hand"));
        assert_eq!(plan.matches("status: verified").count(), TASKS.len());
        for task in TASKS {
            assert_eq!(scene.record(task).attempts, 1, "{task}");
            assert_eq!(scene.file(task), Some(format!("{task}\n")));
            assert_eq!(scene.git(&["log", "--format=%H", "main", "--", task]).lines().count(), 1, "{task} came twice");
        }
        let shared = scene.file("shared").unwrap();
        assert_eq!(shared.matches(": done").count(), TASKS.len(), "{shared}");
        assert_eq!(users(scene), self.before);
        scene.git(&["fsck", "--no-dangling"]);
        let branches = scene.git(&["branch", "--list", "plan/*", "--format=%(refname:short)"]);
        // A git that died with its session may have left a lock in the user's repository. Only the user can know that
        // it is stale, so posse leaves it, keeps what it cannot remove, and reports both.
        let locked = scene.env.work().join(".git/packed-refs.lock").exists();
        let reports = self.reports();
        for branch in branches.lines().filter(|branch| !(locked && reports.contains(&format!("branch {branch})")))) {
            // A session that was lost with its keeper may have written something. That is kept for a person.
            let name = branch.rsplitn(3, '/').take(2).collect::<Vec<_>>();
            assert!(self.lost_sessions().contains(&format!("{}-{}", name[1], name[0])), "{branch}");
            let is_uncommitted = reports.contains(&format!("(branch {branch}): it has changes that are not committed"));
            let commits = scene.git(&["log", "--oneline", &format!("main..{branch}")]);
            assert!(is_uncommitted || !commits.is_empty(), "{branch}");
        }
        let worktrees = scene.git(&["worktree", "list"]);
        assert!(worktrees.lines().count() <= 1 + branches.lines().count(), "{worktrees}");
        self.check_sessions();
    }
}

impl PlanKills {
    /// The reports of all runs.
    fn reports(&self) -> String {
        let plans = fs::read_dir(self.scene.env.paths().home.join("plans")).into_iter().flatten();
        plans.map(|plan| fs::read_to_string(plan.unwrap().path().join("report.md")).unwrap_or_default()).collect()
    }

    /// The sessions that ended without a report because the keeper was killed.
    fn lost_sessions(&self) -> BTreeSet<String> {
        let is_lost = |entry: &EntryView| match entry {
            EntryView::Plan(PlanEntry::Happened { event }) => match &**event {
                Event::SessionEnded { run, outcome: Outcome::Infra(_), .. } => Some(run.to_string()),
                _ => None,
            },
            _ => None,
        };
        self.journals().iter().filter_map(|view| is_lost(&view.entry)).collect()
    }

    /// Nothing is done again of which the result was written down.
    fn check_sessions(&self) {
        let (mut ended, mut merged) = (BTreeMap::new(), BTreeMap::new());
        for JournalView { seq, entry, .. } in self.journals() {
            match entry {
                EntryView::Plan(PlanEntry::Launched { id: run, .. }) => {
                    assert!(!ended.contains_key(&run), "{seq}: {run} began after its end");
                    assert!(!merged.contains_key(&run.task), "{seq}: {run} began, and it is merged");
                }
                EntryView::Plan(PlanEntry::Happened { event }) => match *event {
                    Event::SessionEnded { run, .. } | Event::ValidatorEnded { run, .. } => {
                        assert_eq!(ended.insert(run.clone(), seq), None, "{run} ended twice");
                    }
                    Event::MergeEnded { run, result: MergeResult::Merged { .. } } => {
                        let twice = merged.insert(run.task.clone(), seq);
                        assert_eq!(twice, None, "{} was merged twice", run.task);
                    }
                    _ => {}
                },
                _ => {}
            }
        }
        let sessions = |task: &'static str| {
            let paths = (1..99).map(move |number| self.scene.claude.session(task, number));
            paths.take_while(|path| path.exists())
        };
        for task in TASKS {
            let finished = sessions(task).filter(|session| session.join("finished").exists()).count();
            let expected = match task {
                "asks" | "judged" => 2,
                _ => 1,
            };
            let lost = self.keeper_kills.load(Ordering::Relaxed) > 0;
            assert!(finished == 1 || (lost && finished == 0), "{task} was finished {finished} times");
            assert!(sessions(task).count() == expected || lost, "{task}: {}", sessions(task).count());
        }
    }
}

/// T86, T87, at random moments.
#[test]
fn whoever_is_killed_the_plan_comes_to_the_same_end() {
    until_killed::<PlanKills>(4);
}

#[test]
#[ignore = "takes minutes: ./test --full"]
fn two_hundred_kills_and_every_plan_comes_to_the_same_end() {
    until_killed::<PlanKills>(200);
}
