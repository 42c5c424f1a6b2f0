//! Whole runs of the loop, while at random moments the daemon is killed, or the command that follows the run, or an agent;
//! then a person looks, and goes on. Whatever happens, the run comes to the end it would have come to: the same answers, no
//! task given twice to the same agent, no permission accepted that is not in the audit, nothing left behind.
//!
//! A part of it runs with the other tests. All of it, 200 kills and a few minutes:
//!
//! ```text
//! cargo test -p posse --test it loop_kills -- --ignored --nocapture
//! ```
//!
//! Every run prints its seed; `POSSE_KILLS_SEED=…` begins with that one. The moments are then the same as far as they depend
//! on us; what the machine makes of them may differ.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use posse_api::{AuditEntry, EntryView, JournalView, LoopView};
use posse_core::rounds::Key;
use posse_core::run::{Entry, RunStatus};
use posse_testkit::PATIENCE;
use posse_testkit::files::records;
use posse_testkit::{TestEnv, process};
use serde_json::Value;

use crate::env;
use crate::kills::{Follower, Random, first_seed, journal_line, kill_daemon, until_entry, until_killed};

/// Kills in one run. More of them and it is more often dead than alive.
const KILLS_PER_RUN: u32 = 25;

/// In the order they come in one round with two reviews each.
const ANSWERS: [(Key, &str); 9] = [
    (Key::Analyst, "ANALYST_SUMMARY:\n- Scope: src/a.rs\n- Draft: one\n"),
    (Key::AnalystReview, "REVIEW_RESULT: REVISE\nREVIEW_NOTES:\n- name the tests\n"),
    (Key::Analyst, "ANALYST_SUMMARY:\n- Scope: src/a.rs\n- Draft: two\n"),
    (Key::AnalystReview, APPROVED),
    (Key::Programmer, "PROGRAMMER_SUMMARY:\n- Files changed: src/a.rs\n- Draft: one\n"),
    (Key::ProgrammerReview, "REVIEW_RESULT: REVISE\nREVIEW_NOTES:\n- a test is missing in src/a.rs\n"),
    (Key::Programmer, "PROGRAMMER_SUMMARY:\n- Files changed: src/a.rs, tests/a.rs\n- Draft: two\n"),
    (Key::ProgrammerReview, APPROVED),
    (Key::Tester, "RESULT: PASS\nEVIDENCE:\n- hello was printed\n"),
];
const APPROVED: &str = "REVIEW_RESULT: APPROVED\nREVIEW_NOTES:\n- proposal verified, P1 traceability coverage complete, \
    downstream module src/a.rs, handoff lists 3 steps\n- implementation and diff read, test command run, regression risk \
    low, no defect left to fix\n";

/// What the agents do: think a little, ask for a permission here and there, and answer at once or in pieces.
fn scenario(look: &str) -> String {
    let mut turns = String::new();
    for (at, (key, text)) in ANSWERS.iter().enumerate() {
        let on = if ANSWERS[at + 1..].iter().any(|(later, _)| later == key) { "on = \"review cycle 1\"\n" } else { "" };
        let think = [180, 50, 300, 120, 250, 60, 90, 200, 150][at];
        let ask = match at {
            3 | 4 | 8 => "{ ask = { kind = \"permission\", command = \"make check\" } }, ",
            _ => "",
        };
        let pieces = match at {
            2 | 5 | 6 => ", pieces = 3, gap = \"40ms\"",
            _ => "",
        };
        turns.push_str(&format!(
            "[[turn]]\nkey = \"{key}\"\n{on}steps = [{{ think = \"{think}ms\" }}, {ask}{{ answer = {{ text = {text:?}{pieces} }} }}, {{ say = \"Written.\" }}]\n"
        ));
    }
    format!("look = \"{look}\"\nplay = \"loop\"\n{turns}")
}

const CONFIG: &str = r#"{
  "provider": "codex", "mode": "ask", "cleanup_on_exit": CLEANUP,
  "agents": { "analyst": { "provider": "claude_code" }, "peer_programmer": { "provider": "claude_code" } },
  "limits": { "max_review_cycles": 3, "min_review_cycles_before_approval": 2 }
}"#;
const PROMPT: &str = "*** ORIGINAL EXPLORE SUMMARY ***\nSay hello.\n\n*** SCENARIO TEST ***\nExpect hello.\n";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Victim {
    Daemon,
    /// As often as it comes back.
    DaemonThreeTimes,
    Follower,
    Agent,
    AgentAndDaemon,
}

/// When to kill: so long after this entry of the journal, or after nothing in particular.
#[derive(Clone, Copy, Debug)]
struct Moment {
    entry: Option<&'static str>,
    after: Duration,
    victim: Victim,
    /// A person looks at once; otherwise somebody else has to bring the daemon back.
    looked_after: bool,
}

/// The moments where something is between the journal and the world.
const ENTRIES: [&str; 12] = [
    "terminal_wanted",
    "terminal_ready",
    "turn_begun",
    "dispatching",
    "dispatching",
    "dispatching",
    "sent",
    "accepting",
    "answered",
    "archived",
    "decided",
    "finished",
];

impl Random {
    fn moment(&mut self) -> Moment {
        let entry = (self.below(3) > 0).then(|| self.one_of(&ENTRIES));
        let after = match entry {
            // A prompt takes some tens of milliseconds to be typed, a permission to be accepted.
            Some(_) => self.below(120) * self.below(2),
            None => self.below(900),
        };
        let victim = match self.below(20) {
            0..=11 => Victim::Daemon,
            12 | 13 => Victim::DaemonThreeTimes,
            14..=16 => Victim::Follower,
            17 | 18 => Victim::Agent,
            _ => Victim::AgentAndDaemon,
        };
        let looked_after = self.below(4) > 0;
        Moment { entry, after: Duration::from_millis(after), victim, looked_after }
    }
}

/// One run in a home of its own.
struct Scene {
    env: TestEnv,
    cleanup: bool,
    logs: [PathBuf; 2],
    follower: Follower,
}

impl Scene {
    /// `cleanup`: the agents are asked to leave whenever the run stops or is over.
    fn open(cleanup: bool) -> Scene {
        let env = env();
        let logs = [("claude_code", "claude"), ("codex", "codex")]
            .map(|(provider, look)| env.script_agent(provider, &scenario(look)));
        fs::write(env.work().join("loop.json"), CONFIG.replace("CLEANUP", &cleanup.to_string())).unwrap();
        fs::write(env.work().join("prompt.md"), PROMPT).unwrap();
        let follower = Follower::new(&env);
        Scene { env, cleanup, logs, follower }
    }

    fn runs(&self) -> Option<Vec<LoopView>> {
        let ran = self.env.run(["run", "ls", "--json"]);
        (ran.code == Some(0)).then(|| serde_json::from_str(&ran.stdout).unwrap())
    }

    /// What a person does who wants this done: begins it, looks when the command ends, and goes on, until it is over.
    fn see_it_through(&self) -> LoopView {
        let give_up = Instant::now() + PATIENCE;
        loop {
            assert!(Instant::now() < give_up, "it does not come to an end\n{}", self.told());
            let Some(runs) = self.runs() else { continue };
            assert!(runs.len() <= 1, "a second run was begun: {runs:#?}");
            let mut arguments = vec!["loop".to_owned()];
            match runs.into_iter().next() {
                Some(run) if run.status.is_over() => return run,
                Some(run) => arguments.extend(["--resume".into(), run.id.to_string()]),
                None => arguments.extend(["loop.json", "--prompt-file", "prompt.md", "--trust"].map(str::to_owned)),
            }
            let mut command = self.env.command(arguments);
            command.env("AUTO_ACCEPT_PERMISSIONS", "1").stdin(std::process::Stdio::null());
            assert!(self.follower.follow(&mut command, give_up), "it does not come to an end\n{}", self.told());
        }
    }

    fn journal(&self) -> Vec<JournalView> {
        let run = self.runs().and_then(|runs| runs.into_iter().next());
        let path = run.map(|run| format!("/runs/{}/journal", run.id));
        path.and_then(|path| self.env.http().get(&path).ok()).unwrap_or_default()
    }

    /// Everything that helps to understand what went wrong.
    fn told(&self) -> String {
        let journal = self.journal();
        let journal: String =
            journal.iter().map(|it| journal_line(it.seq, it.at, serde_json::to_string(&it.entry).unwrap())).collect();
        format!("journal:\n{journal}\n{}", self.follower.told(&self.env))
    }

    /// What the agents wrote down of this kind.
    fn records(&self, event: &str) -> Vec<Value> {
        self.logs.iter().flat_map(|log| records(log, event)).collect()
    }

    fn agents(&self) -> Vec<u32> {
        let actors = self.env.processes().into_iter().filter(|process| {
            process.command.get(1).is_some_and(|word| word == "actor")
                && process.variable("POSSE_TERMINAL_ID").is_some()
        });
        actors.map(|process| process.pid).collect()
    }

    // ---- the killer ----

    fn kill_daemon(&self, looked_after: bool) -> u32 {
        let kills = kill_daemon(&self.env);
        if looked_after {
            let _ = self.runs();
        }
        kills
    }

    fn kill_an_agent(&self, random: &mut Random) -> u32 {
        let agents = self.agents();
        if agents.is_empty() {
            return 0;
        }
        posse_testkit::env::kill(agents[random.below(agents.len() as u64) as usize]);
        1
    }

    fn kill(&self, moment: Moment, random: &mut Random) -> u32 {
        match moment.victim {
            Victim::Daemon => self.kill_daemon(moment.looked_after),
            Victim::DaemonThreeTimes => (0..3).map(|_| self.kill_daemon(true)).sum(),
            Victim::Follower => self.follower.kill(),
            Victim::Agent => self.kill_an_agent(random),
            Victim::AgentAndDaemon => self.kill_an_agent(random) + self.kill_daemon(moment.looked_after),
        }
    }

    /// Kills so often, or until the run is over. Gives the kills there were.
    fn disturb(&self, kills: u32, random: &mut Random, entries: &Receiver<String>) -> u32 {
        let mut done = 0;
        while done < kills && !self.follower.is_over() {
            let moment = random.moment();
            if let Some(wanted) = moment.entry {
                until_entry(entries, wanted, Duration::from_millis(1500));
            }
            std::thread::sleep(moment.after);
            done += self.kill(moment, random);
            // Old news.
            while entries.try_recv().is_ok() {}
        }
        done
    }

    // ---- what must hold ----

    fn check(&self, run: &LoopView, disturbed: bool) {
        let told = || self.told();
        assert_eq!(run.status, RunStatus::Passed, "{}", told());
        let journal = self.journal();
        let (mut key, mut answers) = (None, Vec::new());
        for JournalView { entry, .. } in &journal {
            match entry {
                EntryView::Loop(Entry::TurnBegun { key: of_turn, .. }) => key = Some(*of_turn),
                EntryView::Loop(Entry::Answered { text, .. }) => answers.push((key.unwrap(), text.as_str())),
                _ => {}
            }
        }
        assert_eq!(answers, ANSWERS.map(|(key, text)| (key, text.trim())), "{}", told());
        self.check_prompts(disturbed);
        self.check_audit(run, disturbed);
        // Every answer is kept where people look for it.
        let kept = fs::read_dir(&run.files).unwrap().flatten();
        let kept: Vec<String> = kept.filter_map(|file| fs::read_to_string(file.path()).ok()).collect();
        for (key, text) in ANSWERS {
            assert!(kept.iter().any(|kept| kept == text), "the answer of the {key} is not in the archive\n{}", told());
        }
        let agents = self.agents();
        if !self.cleanup {
            assert!(agents.len() <= 5, "{agents:?} instead of five\n{}", told());
            return;
        }
        // They were asked to leave, and that takes them a moment.
        for pid in agents {
            assert!(process::ends(pid), "agent {pid} was left running\n{}", told());
        }
    }

    /// No task is given twice to the same agent, under whatever number.
    fn check_prompts(&self, disturbed: bool) {
        let mut tasks = BTreeSet::new();
        for submitted in self.records("submitted") {
            let task = submitted["prompt"].as_str().unwrap().lines().nth(1).unwrap_or_default().to_owned();
            let task = (submitted["terminal"].to_string(), task);
            assert!(tasks.insert(task.clone()), "twice: {task:?}\n{}", self.told());
        }
        assert!(disturbed || tasks.len() == ANSWERS.len(), "{tasks:#?}");
        let mixed = self.records("queued");
        assert!(mixed.is_empty(), "typed into a turn: {mixed:?}\n{}", self.told());
    }

    fn check_audit(&self, run: &LoopView, disturbed: bool) {
        let by_terminal = |terminals: Vec<String>| {
            let mut counts = BTreeMap::<String, usize>::new();
            terminals.into_iter().for_each(|terminal| *counts.entry(terminal).or_default() += 1);
            counts
        };
        let closed = self.records("dialog_closed").into_iter().filter(|closed| closed["accepted"] == true);
        let accepted = by_terminal(closed.map(|closed| closed["terminal"].as_str().unwrap().to_owned()).collect());
        let shown = self.env.run(["audit", "show", "--run", run.id.as_str(), "--json"]).json();
        let entries: Vec<AuditEntry> = serde_json::from_value(shown).unwrap();
        let begun: Vec<&AuditEntry> = entries.iter().filter(|entry| entry.answering.is_some()).collect();
        let audited = by_terminal(begun.iter().map(|entry| entry.terminal.to_string()).collect());
        for (terminal, count) in &accepted {
            let known = audited.get(terminal).copied().unwrap_or(0);
            assert!(
                *count <= known,
                "{terminal} was given {count} permissions, {known} are in the audit\n{}",
                self.told()
            );
        }
        for entry in begun {
            let ended = entries.iter().any(|it| it.outcome.as_ref().is_some_and(|outcome| outcome.of == entry.seq));
            assert!(ended, "nobody knows what became of {entry:?}\n{}", self.told());
        }
        assert!(disturbed || accepted.values().sum::<usize>() == 3, "{accepted:?}");
        self.env.run(["audit", "verify"]).ok();
    }
}

/// The name of the entry that an event is about.
fn entry(event: &Value) -> Option<String> {
    let entry = event["data"]["entry"].as_str()?;
    (event["kind"] == "run_entry").then(|| entry.to_owned())
}

/// A run with so many kills at most. Gives those there were.
fn play(seed: u64, kills: u32) -> u32 {
    println!("seed {seed}: up to {kills} kills");
    let begun = Instant::now();
    let scene = Scene::open(seed.is_multiple_of(2));
    let mut random = Random::new(seed);
    let check = |run: &LoopView, done| {
        println!("seed {seed}: {done} kills, {} turns, {:.1} s", run.turns, begun.elapsed().as_secs_f64());
        scene.check(run, kills > 0);
    };
    let disturb = |entries: &_| scene.disturb(kills, &mut random, entries);
    scene.follower.play(&scene.env, entry, || scene.see_it_through(), disturb, check)
}

#[test]
fn an_undisturbed_run_gives_the_answers_the_others_are_compared_with() {
    assert_eq!(play(first_seed(), 0), 0);
}

#[test]
fn whoever_is_killed_the_run_comes_to_the_same_end() {
    until_killed(6, |seed| play(seed, KILLS_PER_RUN));
}

#[test]
#[ignore = "takes minutes: ./test --full"]
fn two_hundred_kills_and_every_run_comes_to_the_same_end() {
    until_killed(200, |seed| play(seed, KILLS_PER_RUN));
}
