//! How late keys arrive while a plan runs and every file operation of the daemon takes 200 ms (20 ms if quick).

use std::process::Stdio;
use std::time::{Duration, Instant};

use super::report::BenchRow;
use super::subject::Subject;
use super::{Bench, BenchError, latency, missing, plan};
use crate::slow_disk::SlowDisk;

/// The daemon opens its database first, which takes more than a hundred operations.
const START: Duration = Duration::from_secs(120);
/// Milliseconds.
const LIMIT: f64 = 50.0;

pub(super) fn measure(bench: &Bench) -> Result<Vec<BenchRow>, BenchError> {
    let disk = SlowDisk::new()?;
    let stage = plan::PlanBench::open(bench, 1)?;
    let delay = Duration::from_millis(bench.choose(20, 200));
    let mut plan = stage.run_command();
    let mut daemon = stage.env.command(["serve", "--foreground"]);
    daemon.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut daemon = disk.slow(&mut daemon, delay).spawn()?;
    let give_up = Instant::now() + START;
    while stage.env.http().call("GET", "/health", "").is_err() {
        if Instant::now() > give_up {
            return Err("the start of the daemon did not happen in time".into());
        }
        bench.pause(delay)?;
    }
    let subject = Subject::around(bench, stage.env)?;
    let mut plan = plan.spawn()?;
    let (read, answered) = latency::keys(bench, &subject, |_| matches!(plan.try_wait(), Ok(None)))?;
    let ended = plan.wait()?;
    let _ = daemon.kill();
    let _ = daemon.wait();
    if !ended.success() {
        return Err(missing("plans that ended well", 0, 1));
    }
    let name = format!("every file operation takes {} ms and a plan runs: input call to", delay.as_millis());
    let rows = [("program", read), ("answer", answered)];
    let rows =
        rows.into_iter().filter_map(|(to, delays)| latency::row(format!("{name} {to}"), delays, None, Some(LIMIT)));
    Ok(rows.collect())
}
