//! What keeper and daemon take in memory, with none, some and many idle terminals.
//!
//! The terminals run the probe and not `posse actor`: pages of the program itself are shared among all processes
//! that run it and counted in parts, so two hundred more of them would make keeper and daemon look smaller.

use super::report::BenchRow;
use super::subject::Subject;
use super::{Bench, BenchError};

const STEPS: [usize; 3] = [0, 20, 200];
/// Terminals that have worked, and how much each has printed: several times what is kept of it anywhere.
const WORKED: usize = 20;
const PRINTED: &str = "4000000";

/// How much of that the keeper holds by default.
const RING: f64 = (1 << 20) as f64;

pub(super) fn measure(bench: &Bench) -> Result<Vec<BenchRow>, BenchError> {
    let subject = Subject::start(bench)?;
    let mut terminals = Vec::new();
    let mut totals = Vec::new();
    let mut rows = Vec::new();
    for count in STEPS {
        terminals.extend(subject.launch_many(count - terminals.len(), &bench.probe_command(&["idle"]))?);
        subject.rest()?;
        let (keeper, daemon) = subject.memory()?;
        totals.push((count, keeper + daemon));
        let limit = (count == 0).then_some(25.0);
        let both = [keeper, daemon].map(|bytes| bytes as f64 / 1e6);
        rows.push(BenchRow::of_both(format!("memory, {count} idle terminals"), "MB", both, limit));
    }
    // Asked only now: a look at a terminal takes memory too.
    let printed = terminals.first().map(|id| subject.follow(*id)).transpose()?.map_or(0, |stream| stream.offset);
    // The first terminals fill what the start of the daemon left free.
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

/// An idle terminal that has a history costs more than one that never did anything.
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
