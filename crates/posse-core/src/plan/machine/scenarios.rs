//! Scenarios of whole runs, named as in docs/plan-scenarios.md.

use std::collections::BTreeMap;

use super::tests::{Table, done, failed, id, limited};
use super::{Effect, Event, MergeResult, Run};
use crate::engine::{Machine, RunOutcome, StopHow};
use crate::plan::outcome::{FailedHow, Outcome};
use crate::plan::settings::Settings;
use crate::plan::verdict::Verdict;
use crate::plan::{Plan, State, TaskStatus};
use crate::time::Wall;

/// Refunded attempts are no failures: twice out of quota, and still the model it began with.
#[test]
fn t59_limits_do_not_escalate() {
    let meta = ", model_escalation: {enabled: true, escalate_after: 1}";
    let mut run = Table::new(meta, "{id: a, name: A}", |_| {});
    for start in 1..=2 {
        assert_eq!(run.sessions(), [format!("a.{start}:sonnet")]);
        let reset = run.now + 600;
        run.session("a", limited(reset));
        run.wait();
    }
    assert_eq!(run.sessions(), ["a.3:sonnet"]);
    // A failure does.
    run.session("a", Outcome::Failed(failed(FailedHow::Timeout)));
    run.wait();
    assert_eq!(run.sessions(), ["a.4:opus"]);
}

/// Whoever comes after a crash knows the hold from the journal, and waits as long as was said.
#[test]
fn t72_a_hold_outlives_the_process() {
    let text = "meta: {name: p}\nsections: [{id: s, tasks: [{id: a, name: A}]}]\n";
    let (plan, _) = Plan::read("p", text).unwrap();
    let fresh = || Run::new("p", text, State::recorded(&plan), Settings::of(&plan), &BTreeMap::new()).unwrap();
    let mut run = fresh();
    let mut journal = Vec::new();
    let mut tell = |run: &mut Run, event: Event, at: i64| {
        journal.push((event.clone(), at));
        run.handle(event, Wall(at * 1000))
    };
    let effects = tell(&mut run, Event::Started, 0);
    let area = effects.iter().find_map(|effect| match effect {
        Effect::MakeArea { run } => Some(run.clone()),
        _ => None,
    });
    let area = area.unwrap();
    tell(&mut run, Event::AreaReady { run: area.clone() }, 1);
    tell(&mut run, Event::SessionEnded { run: area, outcome: limited(500), usage: Default::default() }, 2);
    let mut again = fresh();
    for (event, at) in journal {
        again.handle(event, Wall(at * 1000));
    }
    assert_eq!((again.hold(), again.deadline()), (run.hold(), Some(Wall(500_000))));
    assert!(again.outstanding().is_empty(), "{:?}", again.outstanding());
    assert!(again.handle(Event::Time, Wall(499_000)).is_empty());
    let effects = again.handle(Event::Time, Wall(500_000));
    assert!(effects.iter().any(|effect| matches!(effect, Effect::MakeArea { run } if run.start == 2)), "{effects:?}");
}

/// What is done and waits for a person can be given up for another attempt.
#[test]
fn what_waits_for_a_person_can_be_tried_again_instead() {
    let mut run = Table::new("", "{id: a, name: A},\n{id: b, name: B}", |_| {});
    run.session("a", done());
    let Some(Effect::Merge { run: merge }) = run.wants.pop() else { panic!("no merge") };
    run.tell(Event::MergeEnded { run: merge, result: MergeResult::NotNow { why: "commit x".into() } });
    assert_eq!(run.record("a").status, TaskStatus::Suspended);
    run.tell(Event::Retry { task: id("a") });
    assert_eq!(run.record("a").status, TaskStatus::Pending);
    run.session("b", done());
    run.merged("b");
    assert_eq!(run.sessions(), ["a.2:-"]);
    // The same of one whose validators had no verdict.
    let mut run = Table::new(", validation: {enabled: true}", "{id: a, name: A},\n{id: b, name: B, agent: x}", |_| {});
    run.session("a", done());
    for _ in 0..3 {
        run.session("a", Outcome::Failed(failed(FailedHow::Tool)));
    }
    assert_eq!(run.record("a").status, TaskStatus::Suspended);
    run.tell(Event::Retry { task: id("a") });
    assert_eq!((run.record("a").status, run.record("a").attempts), (TaskStatus::Pending, 0));
}

/// T84, as far as a plan alone can show it: stopped while a validator is due, it is not asked, and nothing is merged.
#[test]
fn t84_a_stop_before_the_validator() {
    let mut run = Table::new(", validation: {enabled: true}", "{id: a, name: A}", |_| {});
    run.tell(Event::Stop(StopHow::AfterTask));
    run.session("a", done());
    run.ended(RunOutcome::Stopped);
    assert_eq!((run.record("a").status, run.sessions().len()), (TaskStatus::Completed, 0));
    // The next run begins with what is left.
    let text = run.run.mirror().unwrap();
    let (plan, _) = Plan::read("p", &text).unwrap();
    let starts = BTreeMap::from([(id("a"), 1)]);
    let state = run.run.state_between_runs(&plan);
    let next = Run::new("p", &text, state, Settings::of(&plan), &starts).unwrap();
    let mut next = Table { run: next, now: 100, ..Table::new("", "{id: z, name: Z}", |_| {}) };
    next.wants.clear();
    next.tell(Event::Started);
    assert_eq!(next.sessions(), ["a.1/validator"]);
    next.verdict("a", Verdict::Pass);
    next.merged("a");
    next.ended(RunOutcome::Verified);
}
