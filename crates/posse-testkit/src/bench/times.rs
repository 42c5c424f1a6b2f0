//! Duration of commands and calls that a person or a script waits for.

use std::time::{Duration, Instant};

use super::report::BenchRow;
use super::subject::Subject;
use super::{Bench, BenchError, missing};
use crate::TestEnv;

/// Interval of polls during the start of the daemon. Short against the measured time, long enough to leave the
/// processor alone.
const ASK: Duration = Duration::from_micros(500);
/// The number of terminals to list, and of those that start and end together.
const LISTED: usize = 20;
const CROWD: usize = 200;

/// Measures a cold start, without keeper and database, to the first answer of the daemon.
pub(super) fn start(bench: &Bench) -> Result<Vec<BenchRow>, BenchError> {
    let once = |_| -> Result<f64, BenchError> {
        let env = TestEnv::new(&bench.posse);
        let http = env.http();
        let mut command = env.command(["serve"]);
        command.stdout(std::process::Stdio::null());
        let start = Instant::now();
        let mut child = command.spawn()?;
        let took = bench.until("the start of the daemon", Duration::from_secs(10), ASK, || {
            let answers = http.call("GET", "/health", "").is_ok_and(|answer| answer.status == 200);
            Ok(answers.then(|| start.elapsed()))
        })?;
        child.wait()?;
        Ok(took.as_secs_f64() * 1e3)
    };
    let times: Result<Vec<f64>, BenchError> = (0..bench.choose(5, 20)).map(once).collect();
    let figures = [("p50", None), ("max", Some(60.0))];
    Ok(vec![BenchRow::samples("daemon start to first answer", "ms", times?, &figures)])
}

pub(super) fn commands(bench: &Bench) -> Result<Vec<BenchRow>, BenchError> {
    let subject = Subject::start(bench)?;
    subject.launch_many(LISTED, &bench.probe_command(&["idle"]))?;
    subject.rest()?;
    let mut rows = Vec::new();
    for (arguments, limit, note) in
        [(["--version"], None, String::new()), (["ls"], Some(15.0), format!("{LISTED} terminals"))]
    {
        let times = bench.time(|| {
            subject.env.run(arguments).ok();
            Ok(())
        })?;
        let name = format!("posse {}", arguments[0]);
        rows.push(BenchRow::samples(name, "ms", times, &[("p50", limit), ("p99", limit)]).note(note));
    }
    Ok(rows)
}

/// Measures many terminals: started over the API by several callers, all running, and ended one by one and all
/// together.
pub(super) fn crowd(bench: &Bench) -> Result<Vec<BenchRow>, BenchError> {
    let subject = Subject::start(bench)?;
    let command = bench.probe_command(&["idle"]);
    let row = |what: &str, unit, factor, since: Instant| {
        BenchRow::new(format!("{what} {CROWD} terminals"), unit).figure("", since.elapsed().as_secs_f64() * factor)
    };
    let expect = |what, expected| {
        let found = subject.list()?.iter().filter(|terminal| terminal.exit.is_none()).count();
        if found == expected { Ok(()) } else { Err(missing(what, found, expected)) }
    };
    let start = Instant::now();
    let ids = subject.launch_many(CROWD, &command)?;
    let mut rows = vec![row("start", "s", 1.0, start)];
    expect("terminals running", CROWD)?;
    let start = Instant::now();
    subject.list()?;
    rows.push(row("list", "ms", 1e3, start));
    subject.rest()?;
    let start = Instant::now();
    subject.delete_many(&ids)?;
    rows.push(row("end one by one", "s", 1.0, start));
    expect("terminals left", 0)?;
    subject.launch_many(CROWD, &command)?;
    subject.rest()?;
    let start = Instant::now();
    subject.env.run(["stop", "--all"]).ok();
    rows.push(row("posse stop --all with", "s", 1.0, start));
    Ok(rows)
}
