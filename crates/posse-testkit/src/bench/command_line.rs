//! How long commands take that a person or a script waits for.

use super::report::BenchRow;
use super::subject::Subject;
use super::{Bench, BenchError};

/// How many terminals there are to list.
const TERMINALS: usize = 20;

pub(super) fn measure(bench: &Bench) -> Result<Vec<BenchRow>, BenchError> {
    let subject = Subject::start(bench)?;
    subject.launch_many(TERMINALS, &bench.probe_command(&["idle"]))?;
    subject.rest()?;
    let mut rows = Vec::new();
    for (arguments, limit) in [(["--version"], None), (["ls"], Some(15.0))] {
        let times = bench.time(|| {
            subject.env.run(arguments).ok();
            Ok(())
        })?;
        let row = BenchRow::percentiles(format!("posse {}", arguments[0]), "ms", times, limit);
        rows.extend(row.map(|row| if limit.is_some() { row.note(format!("{TERMINALS} terminals")) } else { row }));
    }
    Ok(rows)
}
