//! Checks that are ended because a run stops.

use super::tests::{Table, done};
use super::{Effect, Event, MergeResult};
use crate::engine::{Machine, RunOutcome, StopHow};
use crate::plan::TaskStatus;
use crate::plan::verdict::Verdict;

#[test]
fn t85_stop_now_ends_a_check_and_costs_nothing() {
    let mut run = Table::new("", "{id: a, name: A}", |s| s.has_gates = true);
    run.session("a", done()).tell(Event::Stop(StopHow::Now)).tell(Event::Stop(StopHow::Now));
    let [Effect::RunGates { run: gates }, Effect::EndChecks] = &run.wants[..] else { panic!("{:?}", run.wants) };
    let gates = gates.clone();
    // After a crash the check starts again, and is ended again.
    assert_eq!(run.run.outstanding(), [Effect::RunGates { run: gates.clone() }, Effect::EndChecks]);
    run.tell(Event::GatesStopped { run: gates }).ended(RunOutcome::Stopped);
    let record = run.record("a");
    assert_eq!((record.status, record.attempts, record.last_error), (TaskStatus::Pending, 0, None));
    assert_eq!(record.cost_usd, Some(1.0), "what it cost it has cost");
}

#[test]
fn stop_now_while_the_result_is_checked() {
    let mut run = Table::new("", "{id: a, name: A}", |_| {});
    run.session("a", done()).tell(Event::Stop(StopHow::Now)).merge("a", MergeResult::Stopped);
    run.ended(RunOutcome::Stopped);
    assert_eq!((run.record("a").status, run.record("a").attempts), (TaskStatus::Pending, 0));

    // Work that needs no check is merged.
    let mut run = Table::new("", "{id: a, name: A},\n{id: b, name: B}", |_| {});
    run.session("a", done()).tell(Event::Stop(StopHow::Now)).merged("a").ended(RunOutcome::Stopped);
    assert_eq!(run.record("a").status, TaskStatus::Verified);

    // Work that validators have passed is not repeated.
    let mut run = Table::new(", validation: {enabled: true}", "{id: a, name: A}", |_| {});
    run.session("a", done()).verdict("a", Verdict::Pass).tell(Event::Stop(StopHow::Now));
    run.merge("a", MergeResult::Stopped).ended(RunOutcome::Stopped);
    assert_eq!((run.record("a").status, run.record("a").attempts), (TaskStatus::Completed, 1));
}
