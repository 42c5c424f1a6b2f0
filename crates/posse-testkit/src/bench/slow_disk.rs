//! Delay of keys while a plan runs and every file operation of the daemon takes 200 ms (20 ms if quick).

use std::process::Stdio;
use std::time::Duration;

use super::report::{BenchRow, Samples};
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
    let (slow, fast) = (Samples::new(answered.clone()), Samples::new(plain));
    let times = |percent| slow.percentile(percent) / fast.percentile(percent);
    Ok(vec![
        BenchRow::new(format!("{name} answer, times as long as with a fast disk"), "")
            .figure("p50", times(50.0))
            .figure("p99", times(99.0)),
        latency::row(format!("{name} program"), read, None, Some(LIMIT)),
        latency::row(format!("{name} answer"), answered, None, Some(LIMIT)),
    ])
}

/// Returns the delays of keys from the call to the program, and to the answer.
fn keys_while_a_plan_runs(bench: &Bench, delay: Duration) -> Result<(Vec<f64>, Vec<f64>), BenchError> {
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
