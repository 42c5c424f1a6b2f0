//! How long the daemon takes to start: from nothing at all, no keeper, no database, to its first answer.

use std::time::{Duration, Instant};

use super::report::BenchRow;
use super::stats::Samples;
use super::{Bench, BenchError};
use crate::TestEnv;

/// How often it is asked. Short against what is measured, long enough to leave the processor alone.
const ASK: Duration = Duration::from_micros(500);
const PATIENCE: Duration = Duration::from_secs(10);

pub(super) fn measure(bench: &Bench) -> Result<Vec<BenchRow>, BenchError> {
    let times: Result<Vec<f64>, BenchError> = (0..bench.choose(5, 20)).map(|_| once(bench)).collect();
    let Some(times) = Samples::new(times?) else { return Ok(vec![]) };
    let row = BenchRow::new("daemon start to first answer", "ms");
    Ok(vec![row.figure("p50", times.median()).figure_within("max", times.max(), 60.0)])
}

fn once(bench: &Bench) -> Result<f64, BenchError> {
    bench.go_on()?;
    let env = TestEnv::new(&bench.posse);
    let http = env.http();
    let mut command = env.command(["serve"]);
    command.stdout(std::process::Stdio::null());
    let start = Instant::now();
    let mut child = command.spawn()?;
    let took = loop {
        if http.call("GET", "/health", "").is_ok_and(|answer| answer.status == 200) {
            break start.elapsed();
        }
        if start.elapsed() > PATIENCE {
            return Err("the start of the daemon did not happen in time".into());
        }
        std::thread::sleep(ASK);
    };
    child.wait()?;
    Ok(took.as_secs_f64() * 1e3)
}
