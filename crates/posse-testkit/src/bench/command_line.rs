//! How long commands take that a person or a script waits for.

use std::time::Instant;

use super::report::Row;
use super::stats::Samples;
use super::subject::Subject;
use super::{Bench, BenchError};

/// How many terminals there are to list.
const TERMINALS: usize = 20;

pub(super) fn measure(bench: &Bench) -> Result<Vec<Row>, BenchError> {
    let subject = Subject::start(bench)?;
    subject.launch_many(TERMINALS, &bench.probe_command(&["idle"]))?;
    subject.rest()?;
    let mut rows = Vec::new();
    for (arguments, limit) in [(["--version"], None), (["ls"], Some(15.0))] {
        // Once before it counts: the first reads the program from the disk.
        subject.env.run(arguments).ok();
        let mut times = Vec::new();
        for _ in 0..bench.choose(10, 50) {
            bench.go_on()?;
            let start = Instant::now();
            let ran = subject.env.run(arguments);
            times.push(start.elapsed().as_secs_f64() * 1e3);
            ran.ok();
        }
        let Some(times) = Samples::new(times) else { continue };
        let row = Row::new(format!("posse {}", arguments[0]), "ms")
            .figure_within("p50", times.median(), limit)
            .figure_within("p99", times.percentile(99.0), limit);
        rows.push(if limit.is_some() { row.note(format!("{TERMINALS} terminals")) } else { row });
    }
    Ok(rows)
}
