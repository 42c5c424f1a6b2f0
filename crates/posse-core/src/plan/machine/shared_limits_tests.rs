//! Effects of other runs on a run.

use std::collections::BTreeMap;

use super::tests::{done, id};
use super::{Effect, Event, Others, Part, Run, RunId};
use crate::engine::hold::Hold;
use crate::engine::notice::{Notice, NoticeKind};
use crate::engine::{Machine, RunOutcome};
use crate::plan::budget::{Level, Of, Total, Usage};
use crate::plan::select::{Limits, Why, select};
use crate::plan::settings::Settings;
use crate::plan::{Plan, State, TaskStatus};
use crate::time::Wall;

const PLAN: &str = "meta: {name: p}\nsections:\n  - id: s\n    tasks:\n      - {id: a, name: A, exclusive_resources: [db]}\n      - {id: b, name: B, depends_on: [a]}\n";

fn run(levels: Vec<Level>) -> Run {
    let (plan, _) = Plan::read("p", PLAN).unwrap();
    let settings = Settings { levels, ..Settings::of(&plan) };
    Run::new("p", PLAN, State::recorded(&plan), settings, &BTreeMap::new()).unwrap()
}

fn taken(by: &str) -> Others {
    Others { taken: vec![("db".into(), by.into())], ..Others::default() }
}

fn areas(effects: &[Effect]) -> Vec<String> {
    let area = |effect: &Effect| match effect {
        Effect::MakeArea { run } => Some(run.to_string()),
        _ => None,
    };
    effects.iter().filter_map(area).collect()
}

#[test]
fn what_another_run_holds_is_waited_for() {
    let mut run = run(Vec::new());
    run.handle(Event::Others(taken("task 9 of other")), Wall(0));
    assert_eq!(areas(&run.handle(Event::Started, Wall(0))), [""; 0]);
    assert_eq!((run.outcome(), run.deadline()), (None, None), "it waits, and nothing wakes it but the others");
    // The reason names the holder.
    let (plan, none) = (run.plan().clone(), Default::default());
    let limits =
        Limits { workers: 1, only: None, from: None, resting: &none, validating: &none, taken: run.taken_by_others() };
    let why = Why::Resource { name: "db".into(), held_by: "task 9 of other".into() };
    assert_eq!(select(&plan, run.state(), &limits).blocked[0], (id("a"), why));
    assert_eq!(areas(&run.handle(Event::Others(Others::default()), Wall(1))), ["a-1"]);
}

#[test]
fn who_comes_too_late_begins_when_the_other_lets_go() {
    let mut run = run(Vec::new());
    let effects = run.handle(Event::Started, Wall(0));
    assert_eq!(areas(&effects), ["a-1"]);
    assert_eq!((run.under_way().count(), run.begun().count()), (1, 0));
    let first = RunId { task: id("a"), start: 1, part: Part::Work };
    let late = Event::Taken { run: first.clone(), name: "db".into(), held_by: "task 9 of other".into() };
    assert_eq!(areas(&run.handle(late, Wall(1))), [""; 0]);
    assert_eq!(run.outstanding(), [], "nobody is asked for it any more");
    let record = run.state().get(&id("a")).unwrap();
    assert_eq!((record.status, record.attempts), (TaskStatus::Pending, 0), "it costs no attempt");
    assert!(run.knows(&taken("task 9 of other")) && !run.knows(&Others::default()));
    // A late answer is ignored.
    assert_eq!(run.handle(Event::AreaReady { run: first }, Wall(2)), []);
    assert_eq!(areas(&run.handle(Event::Others(Others::default()), Wall(3))), ["a-2"]);
    run.handle(Event::AreaReady { run: RunId { task: id("a"), start: 2, part: Part::Work } }, Wall(4));
    assert_eq!(run.begun().collect::<Vec<_>>(), [&id("a")]);
}

#[test]
fn t72_a_hold_of_others_is_ours_too() {
    let mut run = run(Vec::new());
    let hold = |until| Hold { until: Wall(until), reason: "usage limit".into(), known: true };
    let others = |until| Others { hold: Some(hold(until)), ..Others::default() };
    assert!(run.knows(&others(i64::MIN)), "what is over is nothing");
    let effects = run.handle(Event::Others(others(60_000)), Wall(0));
    let text = "no session is started for now: usage limit".to_owned();
    assert_eq!(effects, [Effect::Notify(Notice::new(NoticeKind::HoldBegins, text))]);
    assert_eq!(areas(&run.handle(Event::Started, Wall(1))), [""; 0]);
    assert!(run.knows(&others(50_000)) && !run.knows(&others(70_000)), "only a longer one is new");
    assert_eq!(run.deadline(), Some(Wall(60_000)));
    assert_eq!(areas(&run.handle(Event::Time, Wall(60_000))), ["a-1"]);
}

#[test]
fn a_person_need_not_wait_for_the_quota() {
    let mut run = run(Vec::new());
    let hold = Hold { until: Wall(60_000), reason: "usage limit".into(), known: true };
    run.handle(Event::Others(Others { hold: Some(hold), ..Others::default() }), Wall(0));
    assert_eq!(areas(&run.handle(Event::Started, Wall(1))), [""; 0]);
    let effects = run.handle(Event::TryNow, Wall(2));
    assert_eq!((areas(&effects), run.hold()), (vec!["a-1".to_owned()], None));
    let is_end = |effect: &Effect| matches!(effect, Effect::Notify(notice) if notice.what == NoticeKind::HoldEnds);
    assert!(effects.iter().any(is_end));
    assert_eq!(run.handle(Event::TryNow, Wall(3)), [], "there is nothing to wait for");
}

#[test]
fn t77_what_others_spend_counts() {
    let name = "everything in the last 7d";
    let mut run = run(vec![Level { name: name.into(), limit_usd: Some(10.0), of: Of::Everything, ..Level::default() }]);
    let spent = |cost_usd| Total { cost_usd, sessions: 1, ..Total::default() };
    let others = |cost| Others { spent: vec![(name.into(), spent(cost))], ..Others::default() };
    run.handle(Event::Started, Wall(0));
    let first = RunId { task: id("a"), start: 1, part: Part::Work };
    run.handle(Event::AreaReady { run: first.clone() }, Wall(1));
    assert_eq!(run.money_left(), Some(10.0), "a session is told what it may spend");
    run.handle(Event::Others(others(9.5)), Wall(2));
    assert!(run.knows(&others(9.5)) && !run.knows(&others(9.0)));
    assert_eq!(run.money_left(), Some(0.5));
    let usage = Usage { cost_usd: Some(0.5), ..Usage::default() };
    run.handle(Event::SessionEnded { run: first.clone(), outcome: done(), usage }, Wall(3));
    // Finished work is merged; no new task starts.
    let result = super::MergeResult::Merged { commits: Vec::new() };
    run.handle(Event::MergeEnded { run: first, result }, Wall(4));
    let (outcome, reason) = run.outcome().unwrap();
    assert_eq!(outcome, RunOutcome::BudgetExhausted);
    assert!(reason.contains("everything in the last 7d: 10.00 USD"), "{reason}");
}
