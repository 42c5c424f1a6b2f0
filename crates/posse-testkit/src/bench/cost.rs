//! Memory and processor time of keeper and daemon, with idle and with busy terminals, each of which repaints its
//! spinner ten times a second.
//!
//! Idle terminals run the probe and not `posse actor`: pages of a program are shared among its processes and counted in
//! parts. Two hundred more processes of posse would make keeper and daemon look smaller.

use std::time::{Duration, Instant};

use posse_core::ids::TerminalId;

use super::report::BenchRow;
use super::subject::Subject;
use super::{Bench, BenchError, FRAME_LENGTH};

const COUNTS: [usize; 3] = [0, 20, 200];
/// Terminals with a history, and the output of each: several times what is stored of it anywhere.
const WORKED: usize = 20;
const PRINTED: &str = "4000000";

/// The keeper's default buffer size.
const RING: f64 = (1 << 20) as f64;

pub(super) fn memory(bench: &Bench) -> Result<Vec<BenchRow>, BenchError> {
    let subject = Subject::start(bench)?;
    let mut terminals = Vec::new();
    let mut totals = Vec::new();
    let mut rows = Vec::new();
    for count in COUNTS {
        terminals.extend(subject.launch_many(count - terminals.len(), &bench.probe_command(&["idle"]))?);
        subject.rest()?;
        let (keeper, daemon) = subject.memory()?;
        totals.push((count, keeper + daemon));
        let limit = (count == 0).then_some(25.0);
        let both = [keeper, daemon].map(|bytes| bytes as f64 / 1e6);
        rows.push(BenchRow::of_both(format!("memory, {count} idle terminals"), "MB", both, limit));
    }
    // Called only now, because reading a terminal takes memory too.
    let printed = terminals.first().map(|id| subject.follow(*id)).transpose()?.map_or(0, |stream| stream.offset);
    // The first terminals use memory that the daemon's start left free.
    let [.., (some, before), (many, after)] = totals[..] else { return Ok(rows) };
    let each = after.saturating_sub(before) as f64 / (many - some) as f64 - printed as f64;
    rows.push(
        BenchRow::new(format!("memory per idle terminal, from {some} to {many}"), "MB")
            .figure_within("", each / 1e6, 1.5)
            .note(format!("without the {printed} bytes each printed")),
    );
    rows.push(worked(bench)?);
    Ok(rows)
}

/// Measures an idle terminal with a history, which costs more than a new one.
fn worked(bench: &Bench) -> Result<BenchRow, BenchError> {
    let subject = Subject::start(bench)?;
    let worker = bench.probe_command(&["idle", "--after", PRINTED]);
    subject.launch_many(WORKED, &worker)?;
    subject.rest()?;
    let (keeper_before, daemon_before) = subject.memory()?;
    subject.launch_many(WORKED, &worker)?;
    subject.rest()?;
    let (keeper, daemon) = subject.memory()?;
    let each = |after: u64, before: u64| after.saturating_sub(before) as f64 / WORKED as f64;
    let both = [each(keeper, keeper_before) - RING, each(daemon, daemon_before)].map(|bytes| bytes / 1e6);
    let row = BenchRow::of_both("memory per idle terminal that has printed 4 MB", "MB", both, Some(1.5));
    Ok(row.note("without the last MiB of it, which the keeper holds"))
}

/// Clock ticks per second, on every supported Linux.
const TICKS: f64 = 100.0;
/// Numbers of terminals, each with the limit in percent of one core when they are busy.
const STEPS: [(usize, f64); 2] = [(20, 5.0), (200, 40.0)];

/// Idle time after which the runtime ends its spare threads (10 s), with a margin. That is no wake-up of a terminal.
const SPARE_THREADS: Duration = Duration::from_secs(11);
/// Time for newly started programs to reach a steady state.
const WARM_UP: Duration = Duration::from_secs(3);
/// Occasional wake-ups below this rate are not caused by terminals.
const WAKE_UPS: f64 = 0.5;
/// Number of terminals whose actual load is checked.
const ASKED: usize = 5;
/// The scenario of a scripted agent: Claude Code, thinking.
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

pub(super) fn processor(bench: &Bench) -> Result<Vec<BenchRow>, BenchError> {
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

/// Measures the cost of `count` terminals that run `command`, and the bytes per second received from each: the actual
/// load, not the intended one.
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
        // A thread's count is lost when the thread ends.
        wake_ups: after.switches.saturating_sub(before.switches) as f64 / seconds,
    })
}
