//! What keeper and daemon take of one processor core, with idle terminals (nothing, and nothing wakes them) and
//! with busy ones, each of which repaints its spinner ten times a second.

use std::time::{Duration, Instant};

use posse_core::ids::TerminalId;

use super::report::BenchRow;
use super::subject::Subject;
use super::{Bench, BenchError, FRAME_LENGTH};

/// Clock ticks in a second, on every Linux we run on.
const TICKS: f64 = 100.0;
/// How many terminals, and the limits in percent of one core when they are busy.
const STEPS: [(usize, f64); 2] = [(20, 5.0), (200, 40.0)];

/// The runtime lets its spare threads go when they had nothing to do for 10 s. That is no wake-up of a terminal's.
const SPARE_THREADS: Duration = Duration::from_secs(11);
/// How long programs that were just started take to get into step.
const WARM_UP: Duration = Duration::from_secs(3);
/// A wake-up now and then is none per terminal.
const WAKE_UPS: f64 = 0.5;
/// How many of the terminals are asked whether the load was what it is said to be.
const ASKED: usize = 5;
/// What a scripted agent plays: Claude Code, thinking.
const THINKING: &str = r#"
look = "claude"
auto_prompt = "Find out why the parser is slow."
[[turn]]
steps = [{ think = "forever" }]
"#;

struct Spent {
    /// Percent of one core, of keeper and daemon.
    both: [f64; 2],
    wake_ups: f64,
}

pub(super) fn measure(bench: &Bench) -> Result<Vec<BenchRow>, BenchError> {
    let mut rows = idle(bench)?;
    for (count, limit) in STEPS {
        let subject = Subject::start(bench)?;
        subject.env.script_agent("claude_code", THINKING);
        let (spent, bytes) = busy(bench, &subject, count, &[])?;
        let note = format!("screens read; {bytes:.0} bytes per second each");
        let name = format!("processor, {count} scripted agents at work");
        rows.push(BenchRow::of_both(name, "%", spent.both, Some(limit)).note(note));
    }
    for (count, limit) in STEPS {
        let subject = Subject::start(bench)?;
        let (spent, bytes) = busy(bench, &subject, count, &bench.probe_command(&["spin"]))?;
        let note = format!("{:.1} frames of {FRAME_LENGTH} bytes per second each", bytes / FRAME_LENGTH as f64);
        rows.push(BenchRow::of_both(format!("processor, {count} spinners"), "%", spent.both, Some(limit)).note(note));
    }
    Ok(rows)
}

fn idle(bench: &Bench) -> Result<Vec<BenchRow>, BenchError> {
    let mut rows = Vec::new();
    let subject = Subject::start(bench)?;
    let mut started = 0;
    for (count, _) in STEPS {
        subject.launch_many(count - started, &bench.probe_command(&["idle"]))?;
        started = count;
        subject.rest()?;
        bench.pause(bench.choose(Duration::ZERO, SPARE_THREADS))?;
        let spent = watch(bench, &subject)?;
        rows.push(BenchRow::of_both(format!("processor, {count} idle terminals"), "%", spent.both, None));
        let wake_ups = BenchRow::new(format!("wake-ups, {count} idle terminals"), "per s");
        rows.push(wake_ups.figure_within("", spent.wake_ups, WAKE_UPS));
    }
    Ok(rows)
}

/// What `count` terminals cost that run `command`, and how many bytes per second each of them printed: the load
/// as seen where it arrives, not as it was meant.
fn busy(bench: &Bench, subject: &Subject<'_>, count: usize, command: &[&str]) -> Result<(Spent, f64), BenchError> {
    let ids = subject.launch_many(count, command)?;
    bench.pause(WARM_UP)?;
    let asked = &ids[..ASKED];
    let (before, since) = (printed(subject, asked)?, Instant::now());
    let spent = watch(bench, subject)?;
    let bytes = printed(subject, asked)? - before;
    Ok((spent, bytes as f64 / ASKED as f64 / since.elapsed().as_secs_f64()))
}

fn printed(subject: &Subject<'_>, ids: &[TerminalId]) -> Result<u64, BenchError> {
    ids.iter().map(|id| Ok(subject.follow(*id)?.offset)).sum()
}

fn watch(bench: &Bench, subject: &Subject<'_>) -> Result<Spent, BenchError> {
    let time = bench.choose(Duration::from_secs(3), Duration::from_secs(20));
    let (before, since) = (subject.effort()?, Instant::now());
    bench.pause(time)?;
    let after = subject.effort()?;
    let seconds = since.elapsed().as_secs_f64();
    let percent = |ticks: u64| ticks as f64 / TICKS / seconds * 100.0;
    Ok(Spent {
        both: [percent(after.keeper_ticks - before.keeper_ticks), percent(after.daemon_ticks - before.daemon_ticks)],
        // A thread that ended takes its count with it.
        wake_ups: after.switches.saturating_sub(before.switches) as f64 / seconds,
    })
}
