//! How long the loop takes beyond its agents: one round of nine turns with agents that answer at once. Beside it a client that
//! drives the same turns over the REST routes and polls, as the loop this one descends from does.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use posse_core::prompts::PromptTemplates;
use posse_core::rounds::Key;
use posse_core::turn::files;
use serde_json::{Value, json};

use super::report::Row;
use super::stamp;
use super::stats::{Samples, ms};
use super::{Bench, BenchError, missing, refused};
use crate::TestEnv;
use crate::http::Events;

/// What agents that answer at once play, in whatever role.
const AGENT: &str = "look = \"codex\"\nplay = \"loop\"\n";
const CONFIG: &str = r#"{ "provider": "codex", "mode": "ask", "cleanup_on_exit": true,
  "limits": { "min_review_cycles_before_approval": 2 } }"#;
const PROMPT: &str = "*** ORIGINAL EXPLORE SUMMARY ***\nSay hello.\n\n*** SCENARIO TEST ***\nExpect hello.\n";
/// One round, with two reviews each.
const TURNS: [Key; 9] = [
    Key::Analyst,
    Key::AnalystReview,
    Key::Analyst,
    Key::AnalystReview,
    Key::Programmer,
    Key::ProgrammerReview,
    Key::Programmer,
    Key::ProgrammerReview,
    Key::Tester,
];
/// What the polling client waits between two looks, and between the two that find a terminal quiet before its first prompt.
const POLL: Duration = Duration::from_secs(2);
const SETTLE: Duration = Duration::from_secs(1);

pub(super) fn measure(bench: &Bench) -> Result<Vec<Row>, BenchError> {
    let mut posse = Times::default();
    for _ in 0..bench.choose(3, 20) {
        bench.go_on()?;
        posse.add(one_loop(bench)?);
    }
    let mut polling = Times::default();
    for _ in 0..bench.choose(1, 3) {
        polling.add(one_polled(bench)?);
    }
    let mut rows = posse.rows("the loop", [Some(3.0), Some(200.0), Some(100.0)]);
    rows.extend(polling.rows("a polling client", [None, None, None]));
    Ok(rows)
}

/// Seconds of whole loops; milliseconds of turns.
#[derive(Default)]
struct Times {
    whole: Vec<f64>,
    overhead: Vec<f64>,
    taken: Vec<f64>,
}

impl Times {
    fn add(&mut self, other: Times) {
        self.whole.extend(other.whole);
        self.overhead.extend(other.overhead);
        self.taken.extend(other.taken);
    }

    fn rows(self, who: &str, limits: [Option<f64>; 3]) -> Vec<Row> {
        let rows = [
            ("nine turns from the command to its end", "s", self.whole),
            ("from the end of a turn to the next agent having its prompt", "ms", self.overhead),
            ("from the answer there and the agent quiet to taken", "ms", self.taken),
        ];
        let rows = rows.into_iter().zip(limits).filter_map(|((what, unit, times), limit)| {
            let count = times.len();
            let times = Samples::new(times)?;
            let row = Row::new(format!("{who}: {what}"), unit)
                .figure_within("p50", times.median(), limit)
                .figure_within("p99", times.percentile(99.0), limit);
            Some(row.figure("max", times.max()).note(format!("of {count}")))
        });
        rows.collect()
    }
}

struct Stage {
    env: TestEnv,
    log: PathBuf,
}

impl Stage {
    fn open(bench: &Bench) -> Result<Self, BenchError> {
        let env = TestEnv::new(&bench.posse);
        let directory = env.paths().providers();
        let (scenario, log) = (directory.join("codex.scenario"), directory.join("codex.jsonl"));
        let manifest = format!(
            "[launch]\nprogram = {:?}\nalways = {{ arguments = [\"actor\", {scenario:?}] }}\n\
             modes = {{ ask = {{ arguments = [] }} }}\nhooks = {{ events = [], arguments = [] }}\n\
             trusted = {{ arguments = [] }}\n",
            env.posse_path()
        );
        let write = |path: &Path, text: &str| std::fs::write(path, text);
        std::fs::create_dir_all(&directory)
            .and_then(|()| write(&scenario, &format!("log = {log:?}\n{AGENT}")))
            .and_then(|()| write(&directory.join("codex.toml"), &manifest))
            .and_then(|()| write(&env.work().join("loop.json"), CONFIG))
            .and_then(|()| write(&env.work().join("prompt.md"), PROMPT))?;
        env.run(["serve"]).ok();
        Ok(Self { env, log })
    }

    /// When each of these happened, as the agents saw it.
    fn moments(&self, event: &str) -> Vec<u64> {
        let log = std::fs::read_to_string(&self.log).unwrap_or_default();
        let records = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let mut moments: Vec<u64> =
            records.filter(|record| record["event"] == event).filter_map(|record| record["ns"].as_u64()).collect();
        moments.sort_unstable();
        moments
    }

    /// What the turns cost, given when each answer was taken.
    fn times(&self, whole: Duration, taken: &[u64]) -> Result<Times, BenchError> {
        let (submitted, ended, wrote) = (self.moments("submitted"), self.moments("turn_ended"), self.moments("wrote"));
        let found = [submitted.len(), ended.len(), wrote.len(), taken.len()];
        if let Some(found) = found.into_iter().find(|found| *found < TURNS.len()) {
            return Err(missing("turns of a loop", found, TURNS.len()));
        }
        // An answer is taken when it is there and its agent quiet. The agent notes its own end after it has shown it, so
        // somebody quick may be ahead of it.
        let there = wrote.iter().zip(&ended).map(|(wrote, ended)| *wrote.max(ended));
        let overhead = ended.iter().zip(&submitted[1..]);
        Ok(Times {
            whole: vec![whole.as_secs_f64()],
            overhead: overhead.map(|(ended, next)| ms(next.saturating_sub(*ended))).take(TURNS.len() - 1).collect(),
            taken: there.zip(taken).map(|(there, taken)| ms(taken.saturating_sub(there))).take(TURNS.len()).collect(),
        })
    }
}

fn one_loop(bench: &Bench) -> Result<Times, BenchError> {
    let stage = Stage::open(bench)?;
    let mut events = stage.env.http().events(None)?;
    let listener = std::thread::spawn(move || answers(&mut events));
    let start = Instant::now();
    stage.env.run(["loop", "loop.json", "--prompt-file", "prompt.md", "--trust"]).ok();
    let whole = start.elapsed();
    let taken = listener.join().unwrap_or_default();
    stage.times(whole, &taken)
}

/// When the answers of a run were taken, as its followers hear of it.
fn answers(events: &mut Events) -> Vec<u64> {
    let mut taken = Vec::new();
    while let Ok(Some(event)) = events.next_event() {
        match event["data"]["entry"].as_str() {
            Some("answered") => taken.push(stamp::now()),
            Some("finished" | "stopped") => break,
            _ => {}
        }
    }
    taken
}

/// The same turns, driven from outside: settle, send, look at status and file every two seconds.
fn one_polled(bench: &Bench) -> Result<Times, BenchError> {
    let stage = Stage::open(bench)?;
    let http = stage.env.http();
    let responses = stage.env.work().join(".tmp/agent-responses");
    std::fs::create_dir_all(&responses)?;
    let start = Instant::now();
    let mut terminals: Vec<(posse_core::rounds::Role, String)> = Vec::new();
    let mut taken = Vec::new();
    for (number, key) in TURNS.into_iter().enumerate() {
        bench.go_on()?;
        let role = key.role();
        let known = terminals.iter().find(|(of, _)| *of == role).map(|(_, id)| id.clone());
        let id = match known {
            Some(id) => id,
            None => {
                let id = stage.env.run(["launch", "codex", "--trust", "--json"]).json();
                let id = id["id"].as_str().unwrap_or_default().to_owned();
                terminals.push((role, id.clone()));
                settle(bench, &stage.env, &id)?;
                id
            }
        };
        let file = responses.join(key.file_name());
        let instruction = files::instruction(
            &PromptTemplates::default(),
            &file.to_string_lossy(),
            &files::heredoc_word(number as u64),
        );
        let message = json!({ "message": format!("You are the {role}. Turn {number}.\n\n{instruction}") });
        let what = "type into a terminal";
        let sent = http.post(&format!("/terminals/{id}/input"), &message)?;
        if sent.status != 200 {
            return Err(refused(what, &sent));
        }
        while !(is_quiet(&stage.env, &id)? && file.exists()) {
            bench.pause(POLL)?;
        }
        taken.push(stamp::now());
        std::fs::remove_file(&file)?;
    }
    let whole = start.elapsed();
    stage.times(whole, &taken)
}

/// Quiet twice, a second apart.
fn settle(bench: &Bench, env: &TestEnv, id: &str) -> Result<(), BenchError> {
    let mut quiet = 0;
    loop {
        quiet = if is_quiet(env, id)? { quiet + 1 } else { 0 };
        if quiet == 2 {
            return Ok(());
        }
        bench.pause(SETTLE)?;
    }
}

fn is_quiet(env: &TestEnv, id: &str) -> Result<bool, BenchError> {
    let shown: Value = env.http().get(&format!("/terminals/{id}"))?;
    Ok(matches!(shown["status"].as_str(), Some("idle" | "completed")))
}
