//! Many terminals at once: started over the API by several callers, all there, and all ended again, one by one
//! and all together.

use std::time::Instant;

use super::report::BenchRow;
use super::subject::Subject;
use super::{Bench, BenchError, missing};

const TERMINALS: usize = 200;

pub(super) fn measure(bench: &Bench) -> Result<Vec<BenchRow>, BenchError> {
    let subject = Subject::start(bench)?;
    let command = bench.probe_command(&["idle"]);
    let row = |what: &str, since: Instant| {
        BenchRow::new(format!("{what} {TERMINALS} terminals"), "s").figure("", since.elapsed().as_secs_f64())
    };
    let mut rows = Vec::new();

    let start = Instant::now();
    let ids = subject.launch_many(TERMINALS, &command)?;
    rows.push(row("start", start));
    expect("terminals running", &subject, TERMINALS)?;

    let start = Instant::now();
    subject.list()?;
    rows.push(
        BenchRow::new(format!("list {TERMINALS} terminals"), "ms").figure("", start.elapsed().as_secs_f64() * 1e3),
    );

    subject.rest()?;
    let start = Instant::now();
    subject.delete_many(&ids)?;
    rows.push(row("end one by one", start));
    expect("terminals left", &subject, 0)?;

    subject.launch_many(TERMINALS, &command)?;
    subject.rest()?;
    let start = Instant::now();
    subject.env.run(["stop", "--all"]).ok();
    rows.push(row("posse stop --all with", start));
    Ok(rows)
}

fn expect(what: &'static str, subject: &Subject<'_>, expected: usize) -> Result<(), BenchError> {
    let found = subject.list()?.iter().filter(|terminal| terminal.exit.is_none()).count();
    if found == expected { Ok(()) } else { Err(missing(what, found, expected)) }
}
