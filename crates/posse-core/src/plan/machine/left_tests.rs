//! What a run leaves behind, and how the next one goes on with it.

use std::collections::BTreeMap;

use super::tests::{Table, done, failed, id};
use super::{Effect, Event, Left, MergeResult, Run, RunOutcome, StopHow, resume};
use crate::plan::edit::{Mark, write};
use crate::plan::outcome::{FailedHow, Outcome};
use crate::plan::settings::Settings;
use crate::plan::verdict::Verdict;
use crate::plan::{Plan, Record, State, TaskStatus};

const VALIDATED: &str = ", validation: {enabled: true}";

/// The next run of a plan, after somebody has changed what has become of `a`. `there`: the work is.
fn next(last: &Table, change: impl FnOnce(&mut Record), there: bool, only: Option<&str>) -> Table {
    let mut state = last.run.state().clone();
    change(state.of(&id("a")));
    let text = write(&last.run.mirror().unwrap(), &state, &Mark::default()).unwrap();
    let (plan, _) = Plan::read("p", &text).unwrap();
    let mut state = State::recorded(&plan);
    let resumed = resume(&plan, &mut state, Some(&last.run), |_| Ok::<_, ()>(there)).unwrap();
    let settings = Settings { only: only.map(id), ..Settings::of(&plan) };
    let mut run = Run::new("p", &text, state, settings, &BTreeMap::from([(id("a"), 1)])).unwrap();
    run.take_over(&resumed.left);
    let mut table = Table { run, now: 1000, wants: Vec::new(), told: Vec::new(), finished: None };
    table.tell(Event::Started);
    table
}

fn answer(record: &mut Record) {
    (record.status, record.answer) = (TaskStatus::Pending, Some("done".into()));
}

fn unmerged() -> Table {
    let mut run = Table::new(", max_attempts_default: 1", "{id: a, name: A}", |_| {});
    run.session("a", done());
    run.merge("a", MergeResult::NotNow { why: "commit x".into() });
    run.ended(RunOutcome::Suspended);
    run
}

#[test]
fn what_could_not_be_merged_is_merged_by_the_next_run() {
    let mut run = next(&unmerged(), answer, true, None);
    assert_eq!((run.sessions().len(), run.record("a").attempts), (0, 1), "it is not done again");
    run.merged("a");
    run.ended(RunOutcome::Verified);
}

/// In the plan's file long questions are cut.
#[test]
fn a_long_question_is_the_same_one() {
    let asks =
        |question: String| Record { status: TaskStatus::Suspended, question: Some(question), ..Record::default() };
    let (then, mut now) = (asks("x".repeat(3000)), asks(format!("{}…", "x".repeat(2000))));
    answer(&mut now);
    assert!(Left::Unmerged.resumed(&then, &now).is_some());
    assert_eq!(Left::Unmerged.resumed(&asks("another".into()), &now), None);
}

/// Who has not answered is asked again by the next run, and that one goes on with it, or the one after it.
#[test]
fn a_question_outlives_runs() {
    let again = next(&unmerged(), |_| (), true, None);
    again.ended(RunOutcome::Suspended);
    assert_eq!(again.run.left(), BTreeMap::from([(id("a"), Left::Unmerged)]));
    let mut run = next(&again, answer, true, None);
    run.merged("a");
    run.ended(RunOutcome::Verified);
}

#[test]
fn who_wants_it_again_or_finds_it_gone_gets_it_again() {
    let retried = next(&unmerged(), |record| *record = Record::default(), true, None);
    assert_eq!((retried.sessions(), retried.run.left().len()), (vec!["a.2:-".to_owned()], 0));
    // Though it was tried as often as it may be.
    let gone = next(&unmerged(), answer, false, None);
    assert_eq!((gone.sessions(), gone.record("a").attempts), (vec!["a.2:-".to_owned()], 1));
}

/// A run that is about another task leaves it as it is.
#[test]
fn what_was_not_asked_for_waits() {
    let mut last = Table::new("", "{id: a, name: A},\n{id: b, name: B}", |settings| settings.only = Some(id("a")));
    last.session("a", done());
    last.merge("a", MergeResult::NotNow { why: "commit x".into() });
    let mut other = next(&last, answer, true, Some("b"));
    assert_eq!(other.sessions(), ["b.1:-"]);
    other.session("b", done());
    other.merged("b");
    assert_eq!(other.finished.as_ref().map(|(outcome, _)| *outcome), Some(RunOutcome::Verified));
    let mut run = next(&other, |_| (), true, None);
    run.merged("a");
    run.ended(RunOutcome::Verified);
}

/// Stopped before the validators came, or given up by them: only they are asked again, of no cheaper model than the work had.
#[test]
fn what_was_not_judged_is_judged_by_the_next_run() {
    let meta = ", validation: {enabled: true}, model_escalation: {enabled: true, validation_model: haiku}";
    let mut stopped = Table::new(meta, "{id: a, name: A, model: opus}", |_| {});
    stopped.tell(Event::Stop(StopHow::AfterTask));
    stopped.session("a", done());
    stopped.ended(RunOutcome::Stopped);
    let run = next(&stopped, |_| (), true, None);
    assert_eq!(run.sessions(), ["a.1/validator"]);
    let Some(Effect::StartSession { launch, .. }) = run.wants.first() else { panic!("{:?}", run.wants) };
    assert_eq!(launch.model.as_deref(), Some("opus"));

    let mut mute = Table::new(VALIDATED, "{id: a, name: A}", |_| {});
    mute.session("a", done());
    for _ in 0..3 {
        mute.session("a", Outcome::Failed(failed(FailedHow::Tool)));
    }
    mute.ended(RunOutcome::Suspended);
    let mut run = next(&mute, answer, true, None);
    assert_eq!(run.sessions(), ["a.1/validator"]);
    run.verdict("a", Verdict::Pass);
    run.merged("a");
    run.ended(RunOutcome::Verified);
    let gone = next(&mute, |record| record.status = TaskStatus::Completed, false, None);
    assert_eq!((gone.sessions(), gone.record("a").attempts), (vec!["a.2:-".to_owned()], 1));
}
