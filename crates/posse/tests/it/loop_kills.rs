//! Runs of the loop with random kills: the same answers, no task given twice to the same agent, no permission accepted that
//! is not in the audit, nothing left behind.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use posse_api::{AuditEntry, EntryView, JournalView, LoopView};
use posse_core::review_loop::Key;
use posse_core::run::{Entry, RunStatus};
use posse_testkit::files::records;
use posse_testkit::{TestEnv, process};
use serde_json::Value;

use crate::env;
use crate::kills::{Killable, Random, until_killed};

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

/// Returns the agents' script: think a little, ask for permissions, and answer at once or in pieces.
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

/// One run in a home of its own.
struct LoopKills {
    env: TestEnv,
    /// The agents are asked to leave whenever the run stops or is over.
    cleanup: bool,
    logs: [PathBuf; 2],
}

impl Killable for LoopKills {
    const KIND: &'static str = "loop";
    const KILLS_PER_RUN: u32 = 25;
    const MOMENTS: &'static [&'static str] = &[
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

    fn open(seed: u64) -> Self {
        let (env, cleanup) = (env(), seed.is_multiple_of(2));
        let logs = [("claude_code", "claude"), ("codex", "codex")]
            .map(|(provider, look)| env.script_agent(provider, &scenario(look)));
        fs::write(env.work().join("loop.json"), CONFIG.replace("CLEANUP", &cleanup.to_string())).unwrap();
        fs::write(env.work().join("prompt.md"), PROMPT).unwrap();
        Self { env, cleanup, logs }
    }

    fn env(&self) -> &TestEnv {
        &self.env
    }

    fn next(&self) -> Option<Command> {
        let runs: Vec<LoopView> = self.runs();
        assert!(runs.len() <= 1, "a second run was begun: {runs:#?}");
        let mut command = match runs.first() {
            Some(run) if run.status.is_over() => return None,
            Some(run) => self.env.command(["loop", "--resume", run.id.as_str()]),
            None => self.env.command(["loop", "loop.json", "--prompt-file", "prompt.md", "--trust"]),
        };
        command.env("AUTO_ACCEPT_PERMISSIONS", "1").stdin(Stdio::null());
        Some(command)
    }

    /// Kills an agent.
    fn kill_special(&self, random: &mut Random) -> u32 {
        let agents = self.agents();
        if agents.is_empty() {
            return 0;
        }
        posse_testkit::env::kill(agents[random.below(agents.len() as u64) as usize]);
        1
    }

    fn check(&self, disturbed: bool) {
        let run: &LoopView = &self.runs()[0];
        assert_eq!(run.status, RunStatus::Passed);
        let journal = self.journals();
        let (mut key, mut answers) = (None, Vec::new());
        for JournalView { entry, .. } in &journal {
            match entry {
                EntryView::Loop(Entry::TurnBegun { key: of_turn, .. }) => key = Some(*of_turn),
                EntryView::Loop(Entry::Answered { text, .. }) => answers.push((key.unwrap(), text.as_str())),
                _ => {}
            }
        }
        assert_eq!(answers, ANSWERS.map(|(key, text)| (key, text.trim())));
        self.check_prompts(disturbed);
        self.check_audit(run, disturbed);
        // Every answer is kept where people look for it.
        let kept = fs::read_dir(&run.files).unwrap().flatten();
        let kept: Vec<String> = kept.filter_map(|file| fs::read_to_string(file.path()).ok()).collect();
        for (key, text) in ANSWERS {
            assert!(kept.iter().any(|kept| kept == text), "the answer of the {key} is not in the archive");
        }
        let agents = self.agents();
        if !self.cleanup {
            assert!(agents.len() <= 5, "{agents:?} instead of five");
            return;
        }
        // They were asked to leave, and that takes them a moment.
        for pid in agents {
            assert!(process::ends(pid), "agent {pid} was left running");
        }
    }
}

impl LoopKills {
    /// Returns the agents' records of this kind.
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

    /// Checks that no task is given twice to the same agent, under any number.
    fn check_prompts(&self, disturbed: bool) {
        let mut tasks = BTreeSet::new();
        for submitted in self.records("submitted") {
            let task = submitted["prompt"].as_str().unwrap().lines().nth(1).unwrap_or_default().to_owned();
            let task = (submitted["terminal"].to_string(), task);
            assert!(tasks.insert(task.clone()), "twice: {task:?}");
        }
        assert!(disturbed || tasks.len() == ANSWERS.len(), "{tasks:#?}");
        let mixed = self.records("queued");
        assert!(mixed.is_empty(), "typed into a turn: {mixed:?}");
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
            assert!(*count <= known, "{terminal} was given {count} permissions, {known} are in the audit");
        }
        for entry in begun {
            let ended = entries.iter().any(|it| it.outcome.as_ref().is_some_and(|outcome| outcome.of == entry.seq));
            assert!(ended, "nobody knows what became of {entry:?}");
        }
        assert!(disturbed || accepted.values().sum::<usize>() == 3, "{accepted:?}");
        self.env.run(["audit", "verify"]).ok();
    }
}

#[test]
fn kills_do_not_change_the_end_of_a_loop() {
    until_killed::<LoopKills>(6);
}

#[test]
#[ignore = "takes minutes: ./test --full"]
fn two_hundred_kills_do_not_change_the_end_of_a_loop() {
    until_killed::<LoopKills>(200);
}
