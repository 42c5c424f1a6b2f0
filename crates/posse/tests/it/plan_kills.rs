//! Whole runs of a plan, with real git and real processes in a checkout full of somebody's own uncommitted work, while at random
//! moments the daemon is killed, or the command that follows the run, or once the keeper with all sessions. A person answers,
//! edits the plan, and goes on. Whatever happens, it comes to the same end: every task done once, every result merged once, and
//! nothing of the user's changed in files, index or stash.
//!
//! A part of it runs with the other tests. All of it, 200 kills and some minutes:
//!
//! ```text
//! cargo test -p posse --test it plan_kills -- --ignored --nocapture
//! ```
//!
//! Every run prints its seed; `POSSE_KILLS_SEED=…` begins with that one.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::Child;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use posse_api::{Health, PlanEntry, PlanJournalView, PlanRunStatus, PlanView};
use posse_core::plan::machine::{Event, MergeResult, RunOutcome};
use posse_testkit::PATIENCE;
use posse_testkit::{env, process};

use crate::loop_kills::{Random, first_seed, until_killed};
use crate::plan_run::Scene;

/// Kills in one run. More of them and it is more often dead than alive.
const KILLS_PER_RUN: u32 = 15;

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
/// What the tasks leave behind: `late` is added by the person, `added` by a session.
const TASKS: [&str; 7] = ["first", "left", "right", "asks", "judged", "late", "added"];

fn plays(scene: &Scene) {
    let work = |task: &str| {
        // All of them change one file too, each at its own place.
        format!(
            "say working\nsleep 0.6\nsed -i 's/^{task}:.*/{task}: done/' shared\ncommit {task} {task}\ngit commit -q -am shared\nsay nearly\nsleep 0.3\nreport completed done\n: > \"$me/finished\"\n"
        )
    };
    for task in TASKS {
        scene.claude.play(task, &work(task));
    }
    let adds = "printf '      - {id: added, name: Added}\\n' >> \"$(dirname \"$POSSE_RESULT_FILE\")/plan.yaml\"\n";
    scene.claude.play("first", &format!("{adds}{}", work("first")));
    // Until it has its answer.
    let asks = format!(
        "case \"$*\" in *'blue of course'*)\n{}\n;;\n*) sleep 0.1; report suspended wondering '\"question\": \"Which colour?\"' ;;\nesac",
        work("asks")
    );
    scene.claude.play("asks", &asks);
    // A validator is told what was reported; who works is told to report.
    let judged = format!(
        "case \"$*\" in *result.json*)\n{}\n;;\n*) sleep 0.1; words='[PASS] fine\\n**Verdict: PASS**' ;;\nesac",
        work("judged")
    );
    scene.claude.play("judged", &judged);
}

/// What the user has that is not committed, to the byte.
#[derive(Debug, PartialEq)]
struct Users {
    files: Vec<(&'static str, Option<Vec<u8>>)>,
    index: Vec<String>,
    status: String,
    stash: String,
}

fn users(scene: &Scene) -> Users {
    let names = ["README", "staged", "both", "loose", "ignored.log", "gone"];
    let index = scene.git(&["ls-files", "--stage"]);
    let theirs = |line: &&str| names.iter().any(|name| line.ends_with(&format!("\t{name}")));
    let dirty = scene.git(&["status", "--porcelain=v2", "--ignored"]);
    let stash = scene.git(&["stash", "list", "--format=%H"]);
    Users {
        files: names.iter().map(|name| (*name, fs::read(scene.env.work().join(name)).ok())).collect(),
        index: index.lines().filter(theirs).map(str::to_owned).collect(),
        status: dirty,
        stash: scene.git(&["stash", "show", "-p", "--include-untracked"]) + &stash,
    }
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Victim {
    Daemon,
    /// As often as it comes back.
    DaemonThreeTimes,
    Follower,
    /// With the daemon: as when the machine goes down.
    Keeper,
}

/// The moments where something is between the journal and the world.
const MOMENTS: [&str; 10] = [
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

struct Disturbed {
    scene: Scene,
    followed: PathBuf,
    /// The command that follows the run now.
    follower: Mutex<Option<Child>>,
    over: AtomicBool,
    keeper_kills: AtomicU32,
}

impl Disturbed {
    fn open() -> Arc<Self> {
        let scene = Scene::new(PLAN);
        plays(&scene);
        leave_work_about(&scene);
        let followed = scene.env.paths().home.join("followed");
        let (follower, over, keeper_kills) = Default::default();
        Arc::new(Self { scene, followed, follower, over, keeper_kills })
    }

    /// Newest first.
    fn runs(&self) -> Option<Vec<PlanView>> {
        self.scene.env.run(["serve"]);
        self.scene.env.http().get("/plans").ok()
    }

    /// What a person does who wants this done: begins it, answers what is asked, and goes on until it is over.
    fn see_it_through(&self) -> Vec<PlanView> {
        let give_up = Instant::now() + PATIENCE;
        loop {
            assert!(Instant::now() < give_up, "it does not come to an end\n{}", self.told());
            let Some(runs) = self.runs() else { continue };
            match runs.first().and_then(|run| run.outcome.filter(|_| run.status == PlanRunStatus::Over)) {
                Some(outcome) if outcome.is_success() => return runs,
                // Whether it was taken is seen by whether it asks again.
                Some(RunOutcome::Suspended) => drop(self.scene.plan("answer", &["asks", "blue", "of", "course"])),
                Some(outcome) => panic!("{outcome:?}\n{}", self.told()),
                None => {}
            }
            self.follow(give_up);
        }
    }

    /// Another person adds a task while the first one is worked on. As an editor does it: whole, or not at all; and again if
    /// posse wrote in between.
    fn add_a_task(&self) {
        while !self.scene.claude.session("first", 1).exists() {
            if self.over.load(Ordering::Relaxed) {
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

    fn follow(&self, give_up: Instant) {
        let output = File::options().create(true).append(true).open(&self.followed).unwrap();
        let mut command = self.scene.command(&["run", self.scene.plan.to_str().unwrap(), "--parallel=3"]);
        let child = command.stdout(output.try_clone().unwrap()).stderr(output).spawn().unwrap();
        let pid = child.id();
        *self.follower.lock().unwrap() = Some(child);
        let ended = process::ends_within(pid, give_up.saturating_duration_since(Instant::now()));
        let child = self.follower.lock().unwrap().take();
        if let Some(mut child) = child {
            let _ = child.kill().and_then(|()| child.wait());
        }
        assert!(ended, "it does not come to an end\n{}", self.told());
    }

    fn journals(&self) -> Vec<PlanJournalView> {
        let runs = self.runs().unwrap_or_default();
        let journal = |run: &PlanView| -> Vec<PlanJournalView> {
            self.scene.env.http().get(&format!("/plans/{}/journal", run.id)).unwrap_or_default()
        };
        runs.iter().rev().flat_map(journal).collect()
    }

    /// Everything that helps to understand what went wrong.
    fn told(&self) -> String {
        let journal = self.journals();
        let journal = journal.iter().map(|it| {
            let mut entry = serde_json::to_string(&it.entry).unwrap();
            entry.truncate((0..=300).rev().find(|at| entry.is_char_boundary(*at)).unwrap_or(0));
            format!("{} {} {entry}\n", it.seq, it.at)
        });
        let tail = |path: &PathBuf| {
            let text = fs::read_to_string(path).unwrap_or_default();
            let lines: Vec<&str> = text.lines().collect();
            lines[lines.len().saturating_sub(60)..].join("\n")
        };
        let (journal, log) = (journal.collect::<String>(), tail(&self.scene.env.paths().log()));
        format!(
            "journal:\n{journal}\nfollowed:\n{}\nplan:\n{}\ndaemon:\n{log}",
            tail(&self.followed),
            self.scene.text()
        )
    }

    // ---- the killer ----

    fn kill_daemon(&self) -> u32 {
        let Ok(Health { pid, .. }) = self.scene.env.http().get::<Health>("/health") else { return 0 };
        env::kill(pid);
        let _ = process::ends(pid);
        1
    }

    fn kill(&self, victim: Victim) -> u32 {
        match victim {
            Victim::Daemon => self.kill_daemon(),
            Victim::DaemonThreeTimes => (0..3)
                .map(|_| {
                    self.scene.env.run(["serve"]);
                    self.kill_daemon()
                })
                .sum(),
            Victim::Follower => match &mut *self.follower.lock().unwrap() {
                Some(follower) => u32::from(follower.kill().is_ok()),
                None => 0,
            },
            // Once in a run: a task whose session is lost again and again is given up, and should be.
            Victim::Keeper if self.keeper_kills.load(Ordering::Relaxed) > 0 => self.kill_daemon(),
            Victim::Keeper => {
                let Some(keeper) = self.scene.env.keeper_pid() else { return 0 };
                self.keeper_kills.fetch_add(1, Ordering::Relaxed);
                env::kill(keeper);
                let _ = process::ends(keeper);
                1 + self.kill_daemon()
            }
        }
    }

    /// Kills so often, or until the run is over. Gives the kills there were.
    fn disturb(&self, kills: u32, random: &mut Random, entries: &Receiver<String>) -> u32 {
        let mut done = 0;
        while done < kills && !self.over.load(Ordering::Relaxed) {
            let wanted = (random.below(3) > 0).then(|| MOMENTS[random.below(MOMENTS.len() as u64) as usize]);
            let after = match wanted {
                // While the session works, for the most part.
                Some("launched") => random.below(900),
                Some(_) => random.below(60) * random.below(2),
                None => random.below(500),
            };
            let victim = match random.below(20) {
                0..=12 => Victim::Daemon,
                13 | 14 => Victim::DaemonThreeTimes,
                15..=18 => Victim::Follower,
                _ => Victim::Keeper,
            };
            if let Some(wanted) = wanted {
                let until = Instant::now() + Duration::from_millis(1000);
                while let Ok(entry) = entries.recv_timeout(until.saturating_duration_since(Instant::now())) {
                    if entry == wanted {
                        break;
                    }
                }
            }
            std::thread::sleep(Duration::from_millis(after));
            done += self.kill(victim);
            while entries.try_recv().is_ok() {}
        }
        done
    }

    // ---- what must hold ----

    fn check(&self, before: &Users) {
        let (scene, told) = (&self.scene, || self.told());
        let plan = scene.text();
        assert!(plan.starts_with("# Kept by hand.\n") && plan.contains("# by hand"), "{}", told());
        assert_eq!(plan.matches("status: verified").count(), TASKS.len(), "{}", told());
        assert_eq!(
            plan.matches("attempts: 1,").count() + plan.matches("attempts: 1}").count(),
            TASKS.len(),
            "{}",
            told()
        );
        for task in TASKS {
            assert_eq!(scene.file(task), Some(format!("{task}\n")), "{}", told());
            assert_eq!(scene.git(&["log", "--format=%H", "main", "--", task]).lines().count(), 1, "{task} came twice");
        }
        let shared = scene.file("shared").unwrap();
        assert_eq!(shared.matches(": done").count(), TASKS.len(), "{shared}\n{}", told());
        assert_eq!(users(scene), *before, "{}", told());
        scene.git(&["fsck", "--no-dangling"]);
        let worktrees = scene.git(&["worktree", "list"]);
        assert_eq!(worktrees.lines().count(), 1, "{worktrees}\n{}", told());
        assert_eq!(scene.git(&["branch", "--list", "plan/*"]), "", "{}", told());
        self.check_sessions();
    }

    /// Nothing is done again of which the result was written down.
    fn check_sessions(&self) {
        let (mut ended, mut merged) = (BTreeMap::new(), BTreeMap::new());
        for PlanJournalView { seq, entry, .. } in self.journals() {
            match entry {
                PlanEntry::Launched { run, .. } => {
                    assert!(!ended.contains_key(&run), "{seq}: {run} began after its end\n{}", self.told());
                    assert!(!merged.contains_key(&run.task), "{seq}: {run} began, and it is merged\n{}", self.told());
                }
                PlanEntry::Happened { event } => match *event {
                    Event::SessionEnded { run, .. } | Event::ValidatorEnded { run, .. } => {
                        assert_eq!(ended.insert(run.clone(), seq), None, "{run} ended twice\n{}", self.told());
                    }
                    Event::MergeEnded { run, result: MergeResult::Merged { .. } } => {
                        let twice = merged.insert(run.task.clone(), seq);
                        assert_eq!(twice, None, "{} was merged twice\n{}", run.task, self.told());
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
            assert!(finished == 1 || (lost && finished == 0), "{task} was finished {finished} times\n{}", self.told());
            assert!(sessions(task).count() == expected || lost, "{task}: {}\n{}", sessions(task).count(), self.told());
        }
    }
}

/// Tells the entries of the journal as they come, as well as one can who loses the connection all the time.
fn listen(disturbed: &Disturbed, entries: &Sender<String>) {
    let client = disturbed.scene.env.http();
    while !disturbed.over.load(Ordering::Relaxed) {
        let Ok(mut events) = client.events(None) else {
            // Nobody listens for a few milliseconds, and there is nothing to wait on for that.
            std::thread::sleep(Duration::from_millis(1));
            continue;
        };
        while let Ok(Some(event)) = events.next_event() {
            let data = &event["data"];
            let happened = data["event"].as_object().and_then(|event| event.keys().next().cloned());
            let name = happened.or_else(|| data["event"].as_str().map(str::to_owned));
            let name = name.or_else(|| data["entry"].as_str().map(str::to_owned));
            if let (true, Some(name)) = (event["kind"] == "plan_entry", name) {
                let _ = entries.send(name);
            }
            if disturbed.over.load(Ordering::Relaxed) {
                return;
            }
        }
    }
}

/// A run with so many kills at most. Gives those there were.
fn play(seed: u64, kills: u32) -> u32 {
    println!("seed {seed}: up to {kills} kills");
    let begun = Instant::now();
    let disturbed = Disturbed::open();
    let before = users(&disturbed.scene);
    let mut random = Random::new(seed);
    let (tell, entries) = channel();
    let listener = {
        let disturbed = disturbed.clone();
        std::thread::spawn(move || listen(&disturbed, &tell))
    };
    let person = {
        let disturbed = disturbed.clone();
        std::thread::spawn(move || {
            let runs = disturbed.see_it_through();
            disturbed.over.store(true, Ordering::Relaxed);
            runs
        })
    };
    let editor = {
        let disturbed = disturbed.clone();
        std::thread::spawn(move || disturbed.add_a_task())
    };
    let done = disturbed.disturb(kills, &mut random, &entries);
    let runs = person.join();
    disturbed.over.store(true, Ordering::Relaxed);
    editor.join().unwrap();
    let runs = runs.unwrap_or_else(|_| panic!("seed {seed}, {done} kills: see above"));
    println!(
        "seed {seed}: {done} kills ({} of the keeper), {} runs, {} sessions, {:.1} s",
        disturbed.keeper_kills.load(Ordering::Relaxed),
        runs.len(),
        disturbed.scene.claude.sessions(),
        begun.elapsed().as_secs_f64()
    );
    disturbed.check(&before);
    // Whoever listens hears the end of the daemon.
    disturbed.scene.env.run(["stop", "--all"]);
    let _ = listener.join();
    done
}

#[test]
fn an_undisturbed_plan_gives_what_the_others_are_compared_with() {
    assert_eq!(play(first_seed(), 0), 0);
}

/// T86, T87, at moments that nobody chose.
#[test]
fn whoever_is_killed_the_plan_comes_to_the_same_end() {
    until_killed(4, |seed| play(seed, KILLS_PER_RUN));
}

#[test]
#[ignore = "takes minutes: ./test --full"]
fn two_hundred_kills_and_every_plan_comes_to_the_same_end() {
    until_killed(200, |seed| play(seed, KILLS_PER_RUN));
}
