//! Statuses in the file: the written text, and everything that must stay.

use super::edit::{NotWritten, PlanText};
use super::file_tests::{OLD, id};
use super::{Plan, State, TaskStatus};

fn edited(text: &str, change: impl FnOnce(&mut State)) -> Result<String, NotWritten> {
    let (plan, _) = Plan::read("p", text).unwrap();
    let mut state = State::recorded(&plan);
    change(&mut state);
    PlanText::parse(text).unwrap().with_statuses(&state)
}

#[test]
fn nothing_to_write_leaves_every_byte() {
    assert_eq!(edited(OLD, |_| {}).unwrap(), OLD);
    assert_eq!(PlanText::parse(OLD).unwrap().with_statuses(&State::default()).unwrap(), OLD, "unknown tasks");
}

#[test]
fn t21_comments_order_and_unknown_keys_stay() {
    let after = edited(OLD, |state| {
        let record = state.of(&id("1.2"));
        (record.status, record.attempts) = (TaskStatus::Verified, 2);
        record.last_error = Some("what else is known of the task is not written".into());
        state.of(&id("2.1")).status = TaskStatus::InProgress;
        state.of(&id("3")).status = TaskStatus::Failed;
    })
    .unwrap();
    let expected = OLD
        .replacen("status: pending", "status: verified", 1)
        .replacen("        name: Docs\n", "        name: Docs\n        status: in_progress\n", 1)
        .replacen("name: Release notes,", "name: Release notes, status: failed,", 1);
    assert_eq!(after, expected);
}

#[test]
fn edits_by_authors_are_told_from_statuses() {
    let old = PlanText::parse(OLD).unwrap();
    let ours = edited(OLD, |state| state.of(&id("1.2")).status = TaskStatus::Verified).unwrap();
    assert!(ours != OLD && old.is_same_plan(&ours) && PlanText::parse(&ours).unwrap().is_same_plan(OLD));
    for theirs in [
        ours.replace("# reviewed by hand", "# reviewed twice"),
        ours.replace("name: Tests", "name: More tests"),
        ours.replace("attempts: 0", "attempts: 1"),
        format!("{ours}      - {{id: new, name: New}}\n"),
        "no: plan".to_owned(),
        "{".to_owned(),
    ] {
        assert!(!old.is_same_plan(&theirs), "{theirs}");
    }
}

#[test]
fn every_way_to_write_a_task_can_take_a_status() {
    for task in [
        "      - {id: a, name: A}",
        "      - {id: a, name: A, status: pending}",
        "      - {id: a,\n         name: A,\n         files: [x]}",
        "      - id: a\n        name: A # why\n        description: |\n          x\n\n\n",
        "      - name: >\n          long\n          name\n        id: a\n",
        "      - status: pending  # first\n        id: a\n        name: A",
        "      - id: a\n        name: A\n        status:\n        attempts: 3",
        "      - id: a\n        name: A\n        status: # to come\n        attempts: 3",
        "      - id: a\r\n        name: A\r\n        attempts: 3\r\n",
        "      -\n        id: a\n        name: A\n        last_error: |\n          old\n          error\n\n        files: [x]\n",
        "      - \"id\": a\n        'name': \"A\"\n        \"status\" : 'pending'",
        "      - id: a\n        name: &n A\n        description: *n",
    ] {
        let text = format!("# top\nmeta: {{name: p}}\nsections:\n  - id: s\n    tasks:\n{task}\n# end");
        let after = edited(&text, |state| state.of(&id("a")).status = TaskStatus::Failed)
            .unwrap_or_else(|error| panic!("{text}\n{error}"));
        let (plan, _) = Plan::read("p", &after).unwrap();
        assert_eq!(plan.task("a").unwrap().record.status, TaskStatus::Failed, "{after}");
        assert!(after.starts_with("# top\n") && after.ends_with("# end"));
        assert_eq!(after.contains("\r\n"), text.contains("\r\n"));
    }
}

#[test]
fn what_cannot_be_proven_is_not_written() {
    let tasks = |tasks: &str| format!("meta: {{name: p}}\nsections:\n  - id: s\n    tasks:\n{tasks}");
    for (tasks, refused) in [
        // A comment between the key and its value.
        (
            tasks("      - id: a\n        name: A\n        status:\n          # seen twice\n          pending\n"),
            NotWritten::WouldChangeMore,
        ),
        // Two tasks share a status through an alias.
        (
            tasks("      - {id: a, name: A, status: &s pending}\n      - {id: b, name: B, status: *s}\n"),
            NotWritten::WouldChangeMore,
        ),
        (tasks("      - id: >-\n          a\n        name: >-\n          A\n"), NotWritten::NoPlace("a".into())),
    ] {
        let written = edited(&tasks, |state| state.of(&id("a")).status = TaskStatus::Verified);
        assert_eq!(written, Err(refused), "{tasks}");
    }
}
