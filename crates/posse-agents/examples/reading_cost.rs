//! What one reading of a 120×40 screen costs: fresh, with one changed row, unchanged. `cargo run --release -p posse-agents
//! --example reading_cost`
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::cast_precision_loss)]

use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

use posse_agents::manifest::built_in;
use posse_core::detect::{Detector, Look, Memo};

const ROUNDS: usize = 2000;

/// An agent and a full screen of it.
const SCREENS: [(&str, &str); 6] = [
    ("claude_code", "claude_code/2.1.325/proc_stream_classic.txt"),
    ("codex", "codex/0.166.0/completed_after_drop.txt"),
    ("opencode", "opencode/1.18.33/completed_after_queue.txt"),
    ("qwen", "qwen/0.15.10/proc_streaming.txt"),
    ("q_cli", "qwen/0.15.10/proc_streaming.txt"),
    ("kiro_cli", "codex/0.166.0/completed_after_drop.txt"),
];

fn main() {
    println!(
        "{:<12} {:>6} {:>10} {:>10} {:>10}   median, 95 % in brackets",
        "agent", "rows", "fresh", "one row", "same"
    );
    for (agent, screen) in SCREENS {
        let provider = built_in(agent).unwrap().unwrap();
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(screen);
        let rows: Vec<String> =
            std::fs::read_to_string(path).unwrap().lines().map(|row| row.trim_end().to_owned()).collect();
        let detector = &provider.detector;
        let read = |rows: &[String]| {
            let mut memo = Memo::default();
            detector.read(Look { rows, ..Look::default() }, &mut memo);
            memo
        };
        let fresh = measure(detector, |_| (rows.clone(), Memo::default()));
        let changed = measure(detector, |round| {
            let mut changed = rows.clone();
            changed[rows.len() / 2] = format!("  some new words of an answer, number {round}");
            (changed, read(&rows))
        });
        let same = measure(detector, |_| (rows.clone(), read(&rows)));
        println!("{agent:<12} {:>6} {} {} {}", rows.len(), show(&fresh), show(&changed), show(&same));
    }
}

fn measure(detector: &Detector, prepare: impl Fn(usize) -> (Vec<String>, Memo)) -> Vec<Duration> {
    let mut times: Vec<Duration> = (0..ROUNDS)
        .map(|round| {
            let (rows, mut memo) = prepare(round);
            let start = Instant::now();
            black_box(detector.read(black_box(Look { rows: &rows, ..Look::default() }), &mut memo));
            start.elapsed()
        })
        .collect();
    times.sort();
    times
}

fn show(times: &[Duration]) -> String {
    let at = |share: f64| times[(times.len() as f64 * share) as usize].as_nanos() as f64 / 1000.0;
    format!("{:>5.1} ({:.1})", at(0.5), at(0.95))
}
