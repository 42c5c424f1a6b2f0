//! Overhead of the loop beyond its agents: one round of nine turns with agents that answer at once.

use std::path::PathBuf;
use std::time::Instant;

use super::report::{BenchRow, ms_between};
use super::stamp;
use super::{Bench, BenchError, missing};
use crate::TestEnv;
use crate::files::records;
use crate::http::Events;

/// The scenario of an agent that answers at once, in any role.
const AGENT: &str = "look = \"codex\"\nplay = \"loop\"\n";
const CONFIG: &str = r#"{ "provider": "codex", "mode": "ask", "cleanup_on_exit": true,
  "limits": { "min_review_cycles_before_approval": 2 } }"#;
const PROMPT: &str = "*** ORIGINAL EXPLORE SUMMARY ***\nSay hello.\n\n*** SCENARIO TEST ***\nExpect hello.\n";
/// One round, with two reviews each.
const TURNS: usize = 9;

pub(super) fn measure(bench: &Bench) -> Result<Vec<BenchRow>, BenchError> {
    let mut times = Times::default();
    for _ in 0..bench.choose(3, 20) {
        bench.go_on()?;
        one_loop(bench, &mut times)?;
    }
    Ok(times.rows())
}

/// Seconds of whole loops; milliseconds of turns.
#[derive(Default)]
struct Times {
    whole: Vec<f64>,
    overhead: Vec<f64>,
    taken: Vec<f64>,
}

impl Times {
    fn rows(self) -> Vec<BenchRow> {
        let rows = [
            ("nine turns from the command to its end", "s", self.whole, 3.0),
            ("from the end of a turn to the next agent having its prompt", "ms", self.overhead, 200.0),
            ("from the answer there and the agent quiet to taken", "ms", self.taken, 100.0),
        ];
        let rows = rows.into_iter().map(|(what, unit, times, limit)| {
            let note = format!("of {}", times.len());
            let figures = [("p50", Some(limit)), ("p99", Some(limit)), ("max", None)];
            BenchRow::samples(format!("the loop: {what}"), unit, times, &figures).note(note)
        });
        rows.collect()
    }
}

struct LoopBench {
    env: TestEnv,
    log: PathBuf,
}

impl LoopBench {
    fn open(bench: &Bench) -> Result<Self, BenchError> {
        let env = TestEnv::new(&bench.posse);
        let log = env.script_agent("codex", AGENT);
        std::fs::write(env.work().join("loop.json"), CONFIG)?;
        std::fs::write(env.work().join("prompt.md"), PROMPT)?;
        env.run(["serve"]).ok();
        Ok(Self { env, log })
    }

    /// Returns the times of these events, as recorded by the agents.
    fn moments(&self, event: &str) -> Vec<u64> {
        let mut moments: Vec<u64> =
            records(&self.log, event).iter().filter_map(|record| record["ns"].as_u64()).collect();
        moments.sort_unstable();
        moments
    }

    /// Adds the cost of the turns, given the time at which each answer was accepted.
    fn add_times(&self, times: &mut Times, taken: &[u64]) -> Result<(), BenchError> {
        let submitted = self.moments("submitted");
        let ended = self.moments("turn_ended");
        let wrote = self.moments("wrote");
        let found = [submitted.len(), ended.len(), wrote.len(), taken.len()];
        if let Some(found) = found.into_iter().find(|found| *found < TURNS) {
            return Err(missing("turns of a loop", found, TURNS));
        }
        // An answer can be accepted when it exists and its agent is quiet. The agent records its end after showing it,
        // so a quick reader may precede the record.
        let there = wrote.iter().zip(&ended).map(|(wrote, ended)| *wrote.max(ended));
        let between = ended.iter().zip(&submitted[1..]);
        times.overhead.extend(between.map(|(ended, next)| ms_between(*ended, *next)).take(TURNS - 1));
        times.taken.extend(there.zip(taken).map(|(there, taken)| ms_between(there, *taken)).take(TURNS));
        Ok(())
    }
}

fn one_loop(bench: &Bench, times: &mut Times) -> Result<(), BenchError> {
    let stage = LoopBench::open(bench)?;
    let mut events = stage.env.http().events(None)?;
    let listener = std::thread::spawn(move || answers(&mut events));
    let start = Instant::now();
    stage.env.run(["loop", "loop.json", "--prompt-file", "prompt.md", "--trust"]).ok();
    times.whole.push(start.elapsed().as_secs_f64());
    stage.add_times(times, &listener.join().unwrap_or_default())
}

/// Returns the times at which the answers of a run were accepted, as its subscribers see them.
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
