//! What keeper and daemon take of one processor core, with idle terminals (nothing, and nothing wakes them) and
//! with busy ones, each of which repaints its spinner ten times a second.

use std::time::Duration;

use super::report::Row;
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

struct Spent {
    keeper: f64,
    daemon: f64,
    wake_ups: f64,
}

pub(super) fn measure(bench: &Bench) -> Result<Vec<Row>, BenchError> {
    let mut rows = Vec::new();
    let subject = Subject::start(bench)?;
    let mut started = 0;
    for (count, _) in STEPS {
        subject.launch_many(count - started, &bench.probe_command(&["idle"]))?;
        started = count;
        subject.rest()?;
        bench.pause(bench.choose(Duration::ZERO, SPARE_THREADS))?;
        let spent = watch(bench, &subject)?;
        rows.push(row(format!("processor, {count} idle terminals"), &spent, None));
        rows.push(Row::new(format!("wake-ups, {count} idle terminals"), "per s").figure_within(
            "",
            spent.wake_ups,
            WAKE_UPS,
        ));
    }
    drop(subject);
    for (count, limit) in STEPS {
        let subject = Subject::start(bench)?;
        let ids = subject.launch_many(count, &bench.probe_command(&["spin", "--fps", "10"]))?;
        bench.pause(WARM_UP)?;
        // Whether the load was what it is said to be, as seen where it arrives. Outside of what is measured.
        let sample = &ids[..5];
        let offsets =
            || sample.iter().map(|id| Ok(subject.follow(*id)?.offset)).collect::<Result<Vec<u64>, BenchError>>();
        let (before, since) = (offsets()?, std::time::Instant::now());
        let spent = watch(bench, &subject)?;
        let (after, seconds) = (offsets()?, since.elapsed().as_secs_f64());
        let bytes: u64 = after.iter().zip(&before).map(|(after, before)| after - before).sum();
        let fps = bytes as f64 / FRAME_LENGTH as f64 / sample.len() as f64 / seconds;
        let note = format!("{fps:.1} frames of {FRAME_LENGTH} bytes per second each");
        rows.push(row(format!("processor, {count} busy terminals"), &spent, Some(limit)).note(note));
    }
    Ok(rows)
}

fn row(name: String, spent: &Spent, limit: Option<f64>) -> Row {
    Row::new(name, "%")
        .figure_within("both", spent.keeper + spent.daemon, limit)
        .figure("keeper", spent.keeper)
        .figure("daemon", spent.daemon)
}

fn watch(bench: &Bench, subject: &Subject<'_>) -> Result<Spent, BenchError> {
    let time = bench.choose(Duration::from_secs(3), Duration::from_secs(20));
    let before = subject.effort()?;
    bench.pause(time)?;
    let after = subject.effort()?;
    let seconds = time.as_secs_f64();
    let percent = |ticks: u64| ticks as f64 / TICKS / seconds * 100.0;
    Ok(Spent {
        keeper: percent(after.keeper_ticks - before.keeper_ticks),
        daemon: percent(after.daemon_ticks - before.daemon_ticks),
        // A thread that ended takes its count with it.
        wake_ups: after.switches.saturating_sub(before.switches) as f64 / seconds,
    })
}
