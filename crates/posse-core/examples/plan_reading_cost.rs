//! What it costs to read and check a plan of 1,000 tasks. `cargo run --release -p posse-core --example plan_reading_cost`
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::fmt::Write as _;
use std::hint::black_box;
use std::time::{Duration, Instant};

use posse_core::plan::Plan;

const ROUNDS: usize = 50;

fn main() {
    let text = plan(1000);
    let mut times: Vec<Duration> = (0..ROUNDS)
        .map(|_| {
            let began = Instant::now();
            black_box(Plan::read("big.yaml", black_box(&text)).unwrap());
            began.elapsed()
        })
        .collect();
    times.sort_unstable();
    println!("1,000 tasks, {} KiB: median {:?}, slowest {:?}", text.len() / 1024, times[ROUNDS / 2], times[ROUNDS - 1]);
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
