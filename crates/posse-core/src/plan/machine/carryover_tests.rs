//! Leftovers of a run, and their use in the next run.

use std::collections::BTreeMap;

use super::tests::{Table, done, failed, id};
use super::{Effect, Event, Left, MergeResult, Run, resume};
use crate::engine::{Machine, RunOutcome, StopHow};
use crate::plan::outcome::{FailedHow, Outcome};
use crate::plan::settings::Settings;
use crate::plan::verdict::Verdict;
use crate::plan::{Plan, Record, TaskStatus};
use crate::time::Wall;

const VALIDATED: &str = ", validation: {enabled: true}";

/// Returns the next run of a plan, after a person's action. `there`: the work of `a` exists.
fn next(last: &Table, person: Option<Event>, there: bool, only: Option<&str>) -> Table {
    let mut last = last.run.clone();
    let text = last.mirror().unwrap();
    if let Some(event) = person {
        assert_eq!(last.handle(event, Wall(1)), []);
    }
    let (plan, _) = Plan::read("p", &text).unwrap();
    let mut state = last.state_between_runs(&plan);
    let resumed = resume(&plan, &mut state, Some(&last), |_| Ok::<_, ()>(there)).unwrap();
    let settings = Settings { only: only.map(id), ..Settings::of(&plan) };
    let mut run = Run::new("p", &text, state, settings, &BTreeMap::from([(id("a"), 1)])).unwrap();
    run.take_over(&resumed.left);
    Table::of(run)
}

fn answer() -> Option<Event> {
    Some(Event::Answered { task: id("a"), answer: "done".into() })
}

fn unmerged() -> Table {
    let mut run = Table::new(", max_attempts_default: 1", "{id: a, name: A}", |_| {});
    run.session("a", done()).merge("a", MergeResult::NotNow { why: "commit x".into() });
    run.ended(RunOutcome::Suspended);
    run
}

#[test]
fn what_could_not_be_merged_is_merged_by_the_next_run() {
    let mut run = next(&unmerged(), answer(), true, None);
    assert_eq!((run.sessions().len(), run.record("a").attempts), (0, 1), "it is not done again");
    run.merged("a").ended(RunOutcome::Verified);
}

/// A person changes statuses in the file; all others stay as the run left them.
#[test]
fn a_status_that_a_person_changed_counts() {
    let mut run = Table::new("", "{id: a, name: A, max_attempts: 1},\n{id: b, name: B}", |_| {});
    run.session("a", Outcome::Failed(failed(FailedHow::Reported))).done("b").ended(RunOutcome::Failed);
    let text = run.run.mirror().unwrap();
    let read = |last: &Run, text: &str| last.state_between_runs(&Plan::read("p", text).unwrap().0);
    assert_eq!(read(&run.run, &text), *run.run.state());
    let retried = read(&run.run, &text.replace("status: failed", "status: pending"));
    assert_eq!(retried.get(&id("a")), Some(&Record::default()));
    assert_eq!(retried.get(&id("b")), run.run.state().get(&id("b")));
    // Statuses that the run wrote are not a person's edit, even if the run had newer ones.
    let mut last = run.run.clone();
    last.handle(Event::FileBehind { shown: BTreeMap::from([(id("b"), TaskStatus::InProgress)]) }, Wall(1));
    let behind = read(&last, &text.replace("status: verified", "status: in_progress"));
    assert_eq!(behind.get(&id("b")), run.run.state().get(&id("b")));
    // An answer or a retry after the end counts, whether or not the file shows it.
    last.handle(Event::Retry { task: id("a") }, Wall(1));
    assert_eq!(read(&last, &text.replace("status: failed", "status: pending")).get(&id("a")), Some(&Record::default()));
    assert_eq!(read(&last, &text).get(&id("a")), Some(&Record::default()));
}

/// An unanswered question is asked again by the next run. That run or a later one continues the task.
#[test]
fn a_question_outlives_runs() {
    let again = next(&unmerged(), None, true, None);
    again.ended(RunOutcome::Suspended);
    assert_eq!(again.run.left(), BTreeMap::from([(id("a"), Left::Unmerged)]));
    let mut run = next(&again, answer(), true, None);
    run.merged("a").ended(RunOutcome::Verified);
}

#[test]
fn who_wants_it_again_or_finds_it_gone_gets_it_again() {
    let retried = next(&unmerged(), Some(Event::Retry { task: id("a") }), true, None);
    assert_eq!((retried.sessions(), retried.run.left().len()), (vec!["a.2:-".to_owned()], 0));
    // Although its attempts are used up.
    let gone = next(&unmerged(), answer(), false, None);
    assert_eq!((gone.sessions(), gone.record("a").attempts), (vec!["a.2:-".to_owned()], 1));
}

/// A run of another task leaves it unchanged.
#[test]
fn what_was_not_asked_for_waits() {
    let mut last = Table::new("", "{id: a, name: A},\n{id: b, name: B}", |settings| settings.only = Some(id("a")));
    last.session("a", done()).merge("a", MergeResult::NotNow { why: "commit x".into() });
    let mut other = next(&last, answer(), true, Some("b"));
    assert_eq!(other.sessions(), ["b.1:-"]);
    other.done("b");
    assert_eq!(other.finished.as_ref().map(|(outcome, _)| *outcome), Some(RunOutcome::Verified));
    let mut run = next(&other, None, true, None);
    run.merged("a").ended(RunOutcome::Verified);
}

/// If validators did not run or gave up, only they run again, on a model no cheaper than the worker's.
#[test]
fn what_was_not_judged_is_judged_by_the_next_run() {
    let meta = ", validation: {enabled: true}, model_escalation: {enabled: true, validation_model: haiku}";
    let mut stopped = Table::new(meta, "{id: a, name: A, model: opus}", |_| {});
    stopped.tell(Event::Stop(StopHow::AfterTask)).session("a", done()).ended(RunOutcome::Stopped);
    let run = next(&stopped, None, true, None);
    assert_eq!(run.sessions(), ["a.1/validator"]);
    let Some(Effect::StartSession { launch, .. }) = run.wants.first() else { panic!("{:?}", run.wants) };
    assert_eq!(launch.model.as_deref(), Some("opus"));

    let mut mute = Table::new(VALIDATED, "{id: a, name: A}", |_| {});
    mute.session("a", done());
    for _ in 0..3 {
        mute.session("a", Outcome::Failed(failed(FailedHow::Tool)));
    }
    mute.ended(RunOutcome::Suspended);
    let mut run = next(&mute, answer(), true, None);
    assert_eq!(run.sessions(), ["a.1/validator"]);
    run.verdict("a", Verdict::Pass).merged("a").ended(RunOutcome::Verified);
    let gone = next(&mute, answer(), false, None);
    assert_eq!((gone.sessions(), gone.record("a").attempts), (vec!["a.2:-".to_owned()], 1));
}
