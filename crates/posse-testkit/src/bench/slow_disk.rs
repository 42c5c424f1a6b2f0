//! How late keys arrive while a plan runs and every file operation of the daemon takes 200 ms (20 ms if quick).

use std::process::Stdio;
use std::time::Duration;

use super::report::{BenchRow, Samples, ms};
use super::subject::Subject;
use super::{Bench, BenchError, latency, missing, plan};
use crate::slow_disk::SlowDisk;

/// The daemon opens its database first, which takes more than a hundred operations.
const START: Duration = Duration::from_secs(120);
/// Milliseconds.
const LIMIT: f64 = 50.0;

pub(super) fn measure(bench: &Bench) -> Result<Vec<BenchRow>, BenchError> {
    let delay = Duration::from_millis(bench.choose(20, 200));
    let (_, plain) = keys_while_a_plan_runs(bench, Duration::ZERO)?;
    let (read, answered) = keys_while_a_plan_runs(bench, delay)?;
    let name = format!("every file operation takes {} ms and a plan runs: input call to", delay.as_millis());
    let mut rows = ratio(format!("{name} answer, times as long as with a fast disk"), &answered, &plain);
    for (to, delays) in [("program", read), ("answer", answered)] {
        rows.extend(latency::row(format!("{name} {to}"), delays, None, Some(LIMIT)));
    }
    Ok(rows)
}

/// Delays of keys from the call to the program, and to the answer.
fn keys_while_a_plan_runs(bench: &Bench, delay: Duration) -> Result<(Vec<u64>, Vec<u64>), BenchError> {
    let disk = SlowDisk::new()?;
    let stage = plan::PlanBench::open(bench, 1)?;
    let mut plan = stage.run_command();
    let mut daemon = stage.env.command(["serve", "--foreground"]);
    daemon.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut daemon = disk.slow(&mut daemon, delay).spawn()?;
    bench.until("the start of the daemon", START, Duration::from_millis(20), || {
        Ok(stage.env.http().call("GET", "/health", "").ok())
    })?;
    let subject = Subject::around(bench, stage.env)?;
    let mut plan = plan.spawn()?;
    let keys = latency::keys(bench, &subject, |_| matches!(plan.try_wait(), Ok(None)))?;
    let ended = plan.wait()?;
    let _ = daemon.kill();
    let _ = daemon.wait();
    if ended.success() { Ok(keys) } else { Err(missing("plans that ended well", 0, 1)) }
}

fn ratio(name: String, slow: &[u64], fast: &[u64]) -> Vec<BenchRow> {
    let samples = |delays: &[u64]| Samples::new(delays.iter().copied().map(ms).collect());
    let Some((slow, fast)) = samples(slow).zip(samples(fast)) else { return Vec::new() };
    let row = BenchRow::new(name, "")
        .figure("p50", slow.median() / fast.median())
        .figure("p99", slow.percentile(99.0) / fast.percentile(99.0));
    vec![row]
}
