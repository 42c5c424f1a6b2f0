//! Selected tasks in each situation, and the reasons for the others.

use std::collections::BTreeSet;

use super::file_tests::{OLD, id};
use super::select::{Limits, Selection, Standing, Why, finished, select};
use super::{Plan, State, TaskId, TaskStatus};

/// The limits of a case, besides the plan.
#[derive(Clone, Copy)]
struct Case {
    workers: usize,
    only: Option<&'static str>,
    from: Option<&'static str>,
    resting: &'static [&'static str],
    validating: &'static [&'static str],
    taken: &'static [(&'static str, &'static str)],
}

const ALONE: Case = Case { workers: 1, only: None, from: None, resting: &[], validating: &[], taken: &[] };
const FOUR: Case = Case { workers: 4, ..ALONE };

/// Returns a plan of tasks with these ids and fields. Its section is marked as completed.
fn plan(tasks: &[(&str, &str)]) -> Plan {
    let tasks = tasks.iter().map(|(id, fields)| format!("{{id: {id}, name: T, {fields}}},\n"));
    let text = format!(
        "meta: {{validation: {{enabled: true, run_after: [tester]}}}}\nsections:\n  - {{id: s, status: completed, tasks: [\n{}]}}\n",
        tasks.collect::<String>()
    );
    Plan::read("p", &text).unwrap_or_else(|problems| panic!("{problems}")).0
}

fn selection(plan: &Plan, case: &Case) -> Selection {
    let ids = |ids: &[&str]| -> BTreeSet<TaskId> { ids.iter().map(|i| id(i)).collect() };
    let taken: Vec<(String, String)> = case.taken.iter().map(|(name, by)| ((*name).into(), (*by).into())).collect();
    let (only, from) = (case.only.map(id), case.from.map(id));
    let limits = Limits {
        workers: case.workers,
        only: only.as_ref(),
        from: from.as_ref(),
        resting: &ids(case.resting),
        validating: &ids(case.validating),
        taken: &taken,
    };
    select(plan, &State::recorded(plan), &limits)
}

/// Compares the selection, as `start | validate | blocked: why | standing`.
#[track_caller]
fn check(tasks: &[(&str, &str)], case: &Case, expected: &str) {
    let selection = selection(&plan(tasks), case);
    let ids = |ids: &[TaskId]| ids.iter().map(TaskId::as_str).collect::<Vec<_>>().join(" ");
    let blocked: Vec<String> = selection.blocked.iter().map(|(id, why)| format!("{id}: {why}")).collect();
    let (start, validate, blocked) = (ids(&selection.start), ids(&selection.validate), blocked.join("; "));
    assert_eq!(format!("{start} | {validate} | {blocked} | {:?}", selection.standing), expected);
}

const FAILED: &str = "status: failed, attempts: 3";
const VERIFIED: &str = "status: verified, attempts: 1";
const SKIPPED: &str = "status: skipped, skip_reason: x";
const GROUP: &str = "parallel_group: g";

#[test]
fn t26_what_needs_a_failed_task_is_a_deadlock_and_the_chain_is_shown() {
    check(
        &[("a", FAILED), ("b", "depends_on: [a]"), ("c", "depends_on: [b]")],
        &ALONE,
        " |  | b: it waits for a (failed); c: it waits for b (pending), which waits for a (failed) | Deadlocked",
    );
    // As long as another task can run, the plan continues.
    check(&[("a", FAILED), ("b", "depends_on: [a]"), ("c", "")], &ALONE, "c |  | b: it waits for a (failed) | Going");
    // A task without attempts left cannot start, whatever its status in the file.
    check(
        &[("a", "attempts: 3"), ("b", "depends_on: [a]")],
        &ALONE,
        " |  | a: it was tried 3 times, and 3 are allowed; b: it waits for a (pending) | Deadlocked",
    );
}

#[test]
fn t27_a_skipped_task_satisfies() {
    check(&[("a", SKIPPED), ("b", "depends_on: [a]")], &ALONE, "b |  |  | Going");
}

#[test]
fn t28_a_failed_task_does_not_satisfy() {
    check(&[("a", FAILED), ("b", "depends_on: a")], &ALONE, " |  | b: it waits for a (failed) | Deadlocked");
}

#[test]
fn t29_what_needs_an_answer_is_suspended() {
    check(
        &[("a", "status: suspended"), ("b", "depends_on: [a]")],
        &ALONE,
        " |  | a: it waits for your answer; b: it waits for a (suspended) | Suspended",
    );
    // If another task failed, an answer does not unblock everything.
    check(
        &[("a", "status: suspended"), ("f", FAILED), ("b", "depends_on: [a, f]")],
        &ALONE,
        " |  | a: it waits for your answer; b: it waits for a (suspended); and for f (failed) | Deadlocked",
    );
}

#[test]
fn t30_what_a_section_says_of_itself_is_not_believed() {
    check(&[("a", "")], &ALONE, "a |  |  | Going");
    let (old, _) = Plan::read("p", OLD).unwrap();
    // 1.1 is completed and its agent is validated, so its validation comes first.
    assert_eq!(selection(&old, &ALONE).validate, [id("1.1")]);
}

#[test]
fn t32_those_who_share_a_resource_run_in_turn() {
    let check = |a: &str, case: &Case, expected| {
        let shared = "parallel_group: g, exclusive_resource: database";
        check(&[("a", format!("{shared}, {a}").as_str()), ("b", shared), ("c", GROUP)], case, expected);
    };
    check("", &FOUR, "a c |  | b: database is held by task a | Going");
    check(VERIFIED, &FOUR, "b c |  |  | Going");
    check("status: in_progress", &FOUR, "c |  | a: it is running; b: database is held by task a | Going");
    let taken = Case { taken: &[("database", "another plan")], ..FOUR };
    check("", &taken, "c |  | a: database is held by another plan; b: database is held by another plan | Going");
}

#[test]
fn t33_those_who_write_one_file_run_in_turn() {
    let tasks = [
        ("a", "parallel_group: g, description: \"x\\nFiles: src/x.rs, src/y.rs\""),
        ("b", "parallel_group: g, files: ['src/*.rs']"),
        ("c", "parallel_group: g, files: [docs/]"),
    ];
    check(&tasks, &FOUR, "a c |  | b: task a writes src/*.rs too | Going");
}

#[test]
fn t34_attempts_count_in_groups_too() {
    check(
        &[("a", "parallel_group: g, attempts: 3"), ("b", GROUP), ("c", GROUP)],
        &FOUR,
        "b c |  | a: it was tried 3 times, and 3 are allowed | Going",
    );
}

#[test]
fn t35_validation_comes_before_anything_new() {
    let completed = "agent: tester, status: completed, attempts: 1, parallel_group: g";
    let tasks = [("a", completed), ("b", GROUP), ("c", "depends_on: [a]")];
    let others = "b: it is ready, but not yet its turn; c: it waits for a (completed) | Going";
    check(&tasks, &FOUR, &format!(" | a | {others}"));
    let validating = Case { validating: &["a"], ..ALONE };
    check(&tasks, &validating, &format!(" |  | a: it is being validated; {others}"));
    // Coders are not validated here, so the task is finished.
    check(&[("a", "status: completed, attempts: 1"), ("c", "depends_on: [a]")], &ALONE, "c |  |  | Going");
}

#[test]
fn t36_never_more_sessions_than_allowed() {
    for (running, started) in [(0, 4), (3, 1), (4, 0)] {
        let fields = |i| if i < running { "parallel_group: g, status: in_progress" } else { GROUP };
        let tasks: Vec<(&str, &str)> = ["a", "b", "c", "d", "e", "f"].into_iter().zip((0..6).map(fields)).collect();
        assert_eq!(selection(&plan(&tasks), &FOUR).start.len(), started, "beside {running}");
    }
}

#[test]
fn groups_and_single_tasks() {
    let tasks = [("a", ""), ("b", GROUP), ("c", GROUP), ("d", "parallel_group: h"), ("e", "parallel_group: h")];
    let turn = "it is ready, but not yet its turn";
    check(&tasks, &FOUR, &format!("b c |  | a: {turn}; d: {turn}; e: {turn} | Going"));
    check(&tasks, &ALONE, &format!("a |  | b: {turn}; c: {turn}; d: {turn}; e: {turn} | Going"));
    // A task without a group runs alone.
    let tasks = [("a", "status: in_progress"), ("b", GROUP), ("c", GROUP)];
    check(&tasks, &FOUR, &format!(" |  | a: it is running; b: {turn}; c: {turn} | Going"));
}

#[test]
fn a_pause_is_no_deadlock() {
    let resting = Case { resting: &["a"], ..ALONE };
    check(
        &[("a", "attempts: 1"), ("b", "depends_on: [a]")],
        &resting,
        " |  | a: it pauses after a failure; b: it waits for a (pending) | Going",
    );
    // Other tasks run meanwhile.
    check(&[("a", "attempts: 1"), ("b", "")], &resting, "b |  | a: it pauses after a failure | Going");
}

#[test]
fn one_task_or_a_part_of_the_plan() {
    let tasks = [("a", ""), ("b", VERIFIED), ("c", ""), ("d", "depends_on: [a]")];
    let not_asked = "it is not among the tasks that were asked for";
    let rest = format!("a: {not_asked}; c: {not_asked}; d: it waits for a (pending)");
    let only = |only| Case { only: Some(only), ..ALONE };
    check(&tasks, &only("c"), &format!("c |  | a: {not_asked}; d: it waits for a (pending) | Going"));
    check(&tasks, &only("b"), &format!(" |  | {rest} | Partial"));
    check(&tasks, &Case { from: Some("d"), ..ALONE }, &format!(" |  | {rest} | Partial"));
}

/// T31: completed and skipped tasks are complete.
#[test]
fn t31_the_end_of_a_plan() {
    for (a, b, end) in [
        (VERIFIED, SKIPPED, Some(Standing::Complete)),
        ("status: completed", SKIPPED, Some(Standing::Complete)),
        (VERIFIED, FAILED, Some(Standing::Failed)),
        (VERIFIED, "status: suspended", None),
        (VERIFIED, "agent: tester, status: completed, attempts: 1", None),
    ] {
        let plan = plan(&[("a", a), ("b", b)]);
        assert_eq!(finished(&plan, &State::recorded(&plan)), end, "{a}, {b}");
    }
}

/// Many tasks in one chain behind a failed one: every reason is a chain, and the selection must stay fast.
#[test]
fn long_chains() {
    let tasks: Vec<(String, String)> = (1..300)
        .rev()
        .map(|i| (format!("t{i}"), format!("depends_on: [t{}, t{}]", i - 1, i / 2)))
        .chain([("t0".to_owned(), FAILED.to_owned())])
        .collect();
    let tasks: Vec<(&str, &str)> = tasks.iter().map(|(id, fields)| (id.as_str(), fields.as_str())).collect();
    let selection = selection(&plan(&tasks), &ALONE);
    assert_eq!(selection.standing, Standing::Deadlocked);
    let end = Some(&(id("t0"), TaskStatus::Failed));
    let ends_there = |why: &Why| matches!(why, Why::Needs(chains) if chains.iter().all(|chain| chain.last() == end));
    assert!(selection.blocked.iter().all(|(_, why)| ends_there(why)));
}
