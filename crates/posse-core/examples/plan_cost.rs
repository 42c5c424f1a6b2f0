//! What a plan of 1,000 tasks costs: to read and check, to write a status into, and the scheduling of one task from
//! beginning to end. `cargo run --release -p posse-core --example plan_cost`
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;
use std::hint::black_box;
use std::time::{Duration, Instant};

use posse_core::engine::Machine;
use posse_core::plan::budget::Usage;
use posse_core::plan::edit::PlanText;
use posse_core::plan::machine::{Effect, Event, MergeResult, Run};
use posse_core::plan::outcome::Outcome;
use posse_core::plan::settings::Settings;
use posse_core::plan::{Plan, State, TaskStatus};
use posse_core::time::Wall;

const TASKS: usize = 1000;

fn main() {
    let text = plan(TASKS);
    println!("{TASKS} tasks, {} KiB", text.len() / 1024);
    let (plan, _) = Plan::read("big.yaml", &text).unwrap();
    let mut state = State::recorded(&plan);
    told("read and check", (0..50).map(|_| timed(|| black_box(Plan::read("big.yaml", black_box(&text)).unwrap()))));
    state.of(&"t500".parse().unwrap()).status = TaskStatus::InProgress;
    let parsed = PlanText::parse(&text).unwrap();
    told("write a status", (0..50).map(|_| timed(|| black_box(parsed.with_statuses(&state).unwrap()))));
    told("schedule one task", schedule(&text, &plan).into_iter());
}

/// A whole run in which everything goes well; how long the decisions for each task took.
fn schedule(text: &str, plan: &Plan) -> Vec<Duration> {
    let mut run = Run::new("big.yaml", text, State::recorded(plan), Settings::of(plan), &BTreeMap::new()).unwrap();
    let mut queue = VecDeque::from([Event::Started]);
    let (mut took, mut times, mut now) = (Duration::ZERO, Vec::new(), 0);
    let report = r#"{"task_id":"x","status":"completed","message":"done"}"#;
    while let Some(event) = queue.pop_front() {
        let merged = matches!(event, Event::MergeEnded { .. });
        now += 1;
        let began = Instant::now();
        let effects = run.handle(event, Wall(now));
        took += began.elapsed();
        if merged {
            times.push(std::mem::take(&mut took));
        }
        queue.extend(effects.into_iter().filter_map(|effect| match effect {
            Effect::MakeArea { run } => Some(Event::AreaReady { run }),
            Effect::StartSession { run, .. } => {
                let outcome = Outcome::Done(serde_json::from_str(report).unwrap());
                Some(Event::SessionEnded { run, outcome, usage: Usage::default() })
            }
            Effect::Merge { run } => {
                Some(Event::MergeEnded { run, result: MergeResult::Merged { commits: vec!["c".into()] } })
            }
            _ => None,
        }));
    }
    assert_eq!(times.len(), TASKS);
    times
}

fn timed<T>(work: impl FnOnce() -> T) -> Duration {
    let began = Instant::now();
    black_box(work());
    began.elapsed()
}

fn told(what: &str, times: impl Iterator<Item = Duration>) {
    let mut times: Vec<Duration> = times.collect();
    times.sort_unstable();
    println!("{what:<18} median {:>9.3?}   slowest {:>9.3?}", times[times.len() / 2], times[times.len() - 1]);
}

/// Fifty sections, every task with a description of some length and up to three dependencies.
fn plan(tasks: usize) -> String {
    let mut text = String::from("meta:\n  name: big\nsections:\n");
    for i in 0..tasks {
        if i % 20 == 0 {
            writeln!(text, "  - id: s{}\n    tasks:", i / 20).unwrap();
        }
        writeln!(text, "      - id: t{i}\n        name: Task number {i}  # a comment").unwrap();
        writeln!(text, "        description: |").unwrap();
        for line in 0..8 {
            writeln!(text, "          Line {line} of what has to be done in crates/a{i}/src/lib.rs, at some length.")
                .unwrap();
        }
        let needs: Vec<String> = [1, 7, 31].iter().filter(|n| **n <= i).map(|n| format!("t{}", i - n)).collect();
        writeln!(text, "        depends_on: [{}]\n        agent: coder\n        status: pending", needs.join(", "))
            .unwrap();
    }
    text
}
