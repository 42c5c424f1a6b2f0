//! The checks of the plan as a whole.

use std::collections::BTreeMap;

use super::tests::{Table, done};
use super::{Effect, Event, GateFailure, PlanCheck, Run};
use crate::engine::{Machine, RunOutcome, StopHow};
use crate::plan::Plan;
use crate::plan::gates::GateVerdict;
use crate::plan::settings::Settings;

const GATES: &str = ", gates: [{name: e2e, cmd: make e2e, when: after_plan}]";

/// Merges a task. No command checks tasks, but the work is inspected in any case.
fn merged(table: &mut Table, task: &str) {
    if let Some(Effect::RunGates { run }) = table.wants.pop() {
        table.tell(Event::GatesEnded { run, failed: None });
    }
    table.merged(task);
}

fn table() -> Table {
    let mut table = Table::new(GATES, "{id: a, name: A}", |_| ());
    table.tell(said(GateVerdict::Green));
    assert!(!table.wants.contains(&Effect::CheckPlan) && table.finished.is_none(), "nothing is done yet");
    table.session("a", done());
    merged(&mut table, "a");
    table.tell(Event::Time);
    assert_eq!((&table.wants[..], &table.finished), (&[Effect::CheckPlan][..], &None), "asked once");
    assert_eq!(table.run.outstanding(), [Effect::CheckPlan], "and again after a crash");
    table
}

fn said(verdict: GateVerdict) -> Event {
    Event::PlanChecked { checks: vec![PlanCheck { gate: "e2e".into(), verdict }] }
}

fn red() -> GateVerdict {
    GateVerdict::Red(GateFailure { gate: "e2e".into(), message: "exited with 1".into(), output: "boom".into() })
}

#[test]
fn the_plan_is_verified_only_by_their_word() {
    for (verdict, outcome, reason, completed) in [
        (GateVerdict::Green, RunOutcome::Verified, "every task is done", true),
        (GateVerdict::KnownRed(vec!["x".into()]), RunOutcome::Verified, "every task is done", true),
        (red(), RunOutcome::Failed, "the plan as a whole does not hold: e2e: failed: exited with 1", false),
        (
            GateVerdict::NotRun("no server".into()),
            RunOutcome::CompletedWithWarnings,
            "every task is done; e2e: not run: no server",
            false,
        ),
    ] {
        let mut table = table();
        table.tell(said(verdict.clone())).ended(outcome);
        assert!(table.finished.as_ref().unwrap().1.contains(reason), "{:?}", table.finished);
        assert_eq!(table.run.outstanding(), [], "{verdict:?}");
        assert_eq!(table.run.has_completed_plan(), completed, "{verdict:?}");
    }
}

#[test]
fn a_task_that_is_added_meanwhile_waits_and_has_them_run_again() {
    let mut table = table();
    let ours = table.run.mirror().unwrap().to_string();
    let theirs = ours.replace("\n]}", ",\n{id: b, name: B}\n]}");
    assert_ne!(ours, theirs);
    table.tell(Event::PlanEdited { ours, theirs });
    assert_eq!(table.sessions(), [] as [&str; 0], "they look at the files that a session would change");
    table.wants.clear();
    table.tell(said(GateVerdict::Green));
    assert_eq!(table.sessions(), ["b.1:-"]);
    table.session("b", done());
    merged(&mut table, "b");
    assert_eq!(table.wants, [Effect::CheckPlan]);
    table.tell(said(red())).ended(RunOutcome::Failed);
}

#[test]
fn a_stop_comes_before_them() {
    let mut table = Table::new(GATES, "{id: a, name: A}", |_| ());
    table.tell(Event::Stop(StopHow::AfterTask)).session("a", done());
    merged(&mut table, "a");
    table.ended(RunOutcome::Stopped);
}

#[test]
fn stop_now_ends_them() {
    let mut table = table();
    table.tell(Event::Stop(StopHow::Now));
    assert_eq!(table.wants, [Effect::CheckPlan, Effect::EndChecks]);
    table.tell(Event::PlanCheckStopped).ended(RunOutcome::Stopped);
    assert!(table.finished.unwrap().1.ends_with("the checks of the whole plan are not"));
}

#[test]
fn what_they_said_before_holds_until_something_is_done() {
    let begun = |was_complete: bool| {
        Table::new(GATES, "{id: a, name: A, status: verified, attempts: 1}", |settings| {
            settings.was_complete = was_complete;
        })
    };
    begun(true).ended(RunOutcome::Verified);
    assert_eq!(begun(false).wants, [Effect::CheckPlan]);
}

/// If the checks of the whole plan are skipped, the plan is not completed, and the next run runs them.
#[test]
fn checks_that_are_left_out_are_no_success_of_theirs() {
    let mut table = Table::new(GATES, "{id: a, name: A}", |settings| settings.skip_after_plan = true);
    table.session("a", done());
    merged(&mut table, "a");
    table.ended(RunOutcome::CompletedWithWarnings);
    let reason = &table.finished.as_ref().unwrap().1;
    assert!(reason.contains("not run: left out; run it again without --skip-smoke"), "{reason}");
    let text = table.run.mirror().unwrap();
    let (plan, _) = Plan::read("p", &text).unwrap();
    let settings = Settings { was_complete: table.run.has_completed_plan(), ..Settings::of(&plan) };
    let next = Run::new("p", &text, table.run.state_between_runs(&plan), settings, &BTreeMap::new()).unwrap();
    assert_eq!(Table::of(next).wants, [Effect::CheckPlan]);
    // Without such checks the option has no effect.
    let mut table = Table::new("", "{id: a, name: A}", |settings| settings.skip_after_plan = true);
    table.done("a").ended(RunOutcome::Verified);
}
