//! Which tasks are started in which situation, and what is said about the others.

use std::collections::BTreeSet;

use super::file_tests::OLD;
use super::select::{Limits, Selection, Standing, Why, finished, select};
use super::{Plan, State, TaskId, TaskStatus};

/// What holds in a case, besides the plan.
#[derive(Default)]
struct Case {
    workers: usize,
    only: Option<&'static str>,
    from: Option<&'static str>,
    resting: &'static [&'static str],
    validating: &'static [&'static str],
    taken: Vec<(String, String)>,
}

fn id(id: &str) -> TaskId {
    id.parse().unwrap()
}

fn plan(tasks: &str) -> Plan {
    let text = format!(
        "meta: {{validation: {{enabled: true, run_after: [tester]}}}}\nsections:\n  - {{id: s, status: completed, tasks: [\n{tasks}\n]}}\n"
    );
    Plan::read("p", &text).unwrap_or_else(|problems| panic!("{problems}")).0
}

fn selection(plan: &Plan, case: &Case) -> Selection {
    let ids = |ids: &[&str]| -> BTreeSet<TaskId> { ids.iter().map(|i| id(i)).collect() };
    let (only, from) = (case.only.map(id), case.from.map(id));
    let limits = Limits {
        workers: case.workers.max(1),
        only: only.as_ref(),
        from: from.as_ref(),
        resting: &ids(case.resting),
        validating: &ids(case.validating),
        taken: &case.taken,
    };
    select(plan, &State::recorded(plan), &limits)
}

/// `start | validate | blocked: why | standing`, as one text.
fn shown(selection: &Selection) -> String {
    let ids = |ids: &[TaskId]| ids.iter().map(TaskId::as_str).collect::<Vec<_>>().join(" ");
    let blocked: Vec<String> = selection.blocked.iter().map(|(id, why)| format!("{id}: {why}")).collect();
    format!(
        "{} | {} | {} | {:?}",
        ids(&selection.start),
        ids(&selection.validate),
        blocked.join("; "),
        selection.standing
    )
}

#[track_caller]
fn check(tasks: &str, case: &Case, expected: &str) {
    assert_eq!(shown(&selection(&plan(tasks), case)), expected);
}

const FAILED: &str = "status: failed, attempts: 3";
const VERIFIED: &str = "status: verified, attempts: 1";

#[test]
fn t26_what_needs_a_failed_task_is_a_deadlock_and_the_chain_is_shown() {
    check(
        &format!(
            "{{id: a, name: A, {FAILED}}},\n{{id: b, name: B, depends_on: [a]}},\n{{id: c, name: C, depends_on: [b]}}"
        ),
        &Case::default(),
        " |  | b: it waits for a (failed); c: it waits for b (pending), which waits for a (failed) | Deadlocked",
    );
    // As long as something else can be done, it is.
    check(
        &format!("{{id: a, name: A, {FAILED}}},\n{{id: b, name: B, depends_on: [a]}},\n{{id: c, name: C}}"),
        &Case::default(),
        "c |  | b: it waits for a (failed) | Going",
    );
    // A task whose attempts are used up cannot move either, whatever the file calls it.
    check(
        "{id: a, name: A, attempts: 3},\n{id: b, name: B, depends_on: [a]}",
        &Case::default(),
        " |  | a: it was tried 3 times, and 3 are allowed; b: it waits for a (pending) | Deadlocked",
    );
}

#[test]
fn t27_a_skipped_task_satisfies() {
    check(
        "{id: a, name: A, status: skipped, skip_reason: x},\n{id: b, name: B, depends_on: [a]}",
        &Case::default(),
        "b |  |  | Going",
    );
}

#[test]
fn t28_a_failed_task_does_not_satisfy() {
    let plan = plan(&format!("{{id: a, name: A, {FAILED}}},\n{{id: b, name: B, depends_on: a}}"));
    let selection = selection(&plan, &Case::default());
    assert_eq!(selection.start, []);
    assert_eq!(selection.blocked[0].1, Why::Needs(vec![vec![(id("a"), TaskStatus::Failed)]]));
}

#[test]
fn t29_what_needs_an_answer_is_suspended() {
    check(
        "{id: a, name: A, status: suspended},\n{id: b, name: B, depends_on: [a]}",
        &Case::default(),
        " |  | a: it waits for your answer; b: it waits for a (suspended) | Suspended",
    );
    // If something failed as well, an answer does not help all of it.
    check(
        &format!(
            "{{id: a, name: A, status: suspended}},\n{{id: f, name: F, {FAILED}}},\n{{id: b, name: B, depends_on: [a, f]}}"
        ),
        &Case::default(),
        " |  | a: it waits for your answer; b: it waits for a (suspended); and for f (failed) | Deadlocked",
    );
}

#[test]
fn t30_what_a_section_says_of_itself_is_not_believed() {
    // The section of `plan` says that it is completed.
    check("{id: a, name: A}", &Case::default(), "a |  |  | Going");
    let (old, _) = Plan::read("p", OLD).unwrap();
    // 1.1 is completed and its agent is validated: that comes first.
    assert_eq!(selection(&old, &Case::default()).validate, [id("1.1")]);
}

#[test]
fn t32_those_who_share_a_resource_run_in_turn() {
    let group = |a: &str, b: &str| {
        format!(
            "{{id: a, name: A, parallel_group: g, exclusive_resources: [database]{a}}},\n{{id: b, name: B, parallel_group: g, exclusive_resource: database{b}}},\n{{id: c, name: C, parallel_group: g}}"
        )
    };
    let four = Case { workers: 4, ..Case::default() };
    check(&group("", ""), &four, "a c |  | b: database is held by task a | Going");
    check(&group(&format!(", {VERIFIED}"), ""), &four, "b c |  |  | Going");
    check(&group(", status: in_progress", ""), &four, "c |  | a: it is running; b: database is held by task a | Going");
    let taken = Case { taken: vec![("database".into(), "another plan".into())], ..four };
    check(
        &group("", ""),
        &taken,
        "c |  | a: database is held by another plan; b: database is held by another plan | Going",
    );
}

#[test]
fn t33_those_who_write_one_file_run_in_turn() {
    let four = Case { workers: 4, ..Case::default() };
    check(
        "{id: a, name: A, parallel_group: g, description: \"x\\nFiles: src/x.rs, src/y.rs\"},\n{id: b, name: B, parallel_group: g, files: ['src/*.rs']},\n{id: c, name: C, parallel_group: g, files: [docs/]}",
        &four,
        "a c |  | b: task a writes src/*.rs too | Going",
    );
}

#[test]
fn t34_attempts_count_in_groups_too() {
    check(
        "{id: a, name: A, parallel_group: g, attempts: 3},\n{id: b, name: B, parallel_group: g},\n{id: c, name: C, parallel_group: g}",
        &Case { workers: 4, ..Case::default() },
        "b c |  | a: it was tried 3 times, and 3 are allowed | Going",
    );
}

#[test]
fn t35_validation_comes_before_anything_new() {
    let tasks = "{id: a, name: A, agent: tester, status: completed, attempts: 1, parallel_group: g},\n{id: b, name: B, parallel_group: g},\n{id: c, name: C, depends_on: [a]}";
    check(
        tasks,
        &Case { workers: 4, ..Case::default() },
        " | a | b: it is ready, but not yet its turn; c: it waits for a (completed) | Going",
    );
    check(
        tasks,
        &Case { workers: 1, validating: &["a"], ..Case::default() },
        " |  | a: it is being validated; b: it is ready, but not yet its turn; c: it waits for a (completed) | Going",
    );
    // Nobody validates a coder here, so it is at its end.
    check(
        "{id: a, name: A, status: completed, attempts: 1},\n{id: c, name: C, depends_on: [a]}",
        &Case::default(),
        "c |  |  | Going",
    );
}

#[test]
fn t36_never_more_sessions_than_allowed() {
    let member = |i: usize, more: &str| format!("{{id: t{i}, name: T, parallel_group: g{more}}},\n");
    let all: String = (0..6).map(|i| member(i, "")).collect();
    let four = Case { workers: 4, ..Case::default() };
    assert_eq!(selection(&plan(&all), &four).start.len(), 4);
    let three: String = (0..6).map(|i| member(i, if i < 3 { ", status: in_progress" } else { "" })).collect();
    assert_eq!(selection(&plan(&three), &four).start, [id("t3")]);
    let full: String = (0..6).map(|i| member(i, if i < 4 { ", status: in_progress" } else { "" })).collect();
    assert_eq!(selection(&plan(&full), &four).start, []);
}

#[test]
fn groups_and_single_tasks() {
    let four = || Case { workers: 4, ..Case::default() };
    let tasks = "{id: a, name: A},\n{id: b, name: B, parallel_group: g},\n{id: c, name: C, parallel_group: g},\n{id: d, name: D, parallel_group: h},\n{id: e, name: E, parallel_group: h}";
    let turn = "it is ready, but not yet its turn";
    check(tasks, &four(), &format!("b c |  | a: {turn}; d: {turn}; e: {turn} | Going"));
    check(tasks, &Case::default(), &format!("a |  | b: {turn}; c: {turn}; d: {turn}; e: {turn} | Going"));
    // A task without a group runs alone.
    check(
        "{id: a, name: A, status: in_progress},\n{id: b, name: B, parallel_group: g},\n{id: c, name: C, parallel_group: g}",
        &four(),
        &format!(" |  | a: it is running; b: {turn}; c: {turn} | Going"),
    );
}

#[test]
fn a_pause_is_no_deadlock() {
    check(
        "{id: a, name: A, attempts: 1},\n{id: b, name: B, depends_on: [a]}",
        &Case { resting: &["a"], ..Case::default() },
        " |  | a: it pauses after a failure; b: it waits for a (pending) | Going",
    );
    // Others are done meanwhile.
    check(
        "{id: a, name: A, attempts: 1},\n{id: b, name: B}",
        &Case { resting: &["a"], ..Case::default() },
        "b |  | a: it pauses after a failure | Going",
    );
}

#[test]
fn one_task_or_a_part_of_the_plan() {
    let tasks = format!(
        "{{id: a, name: A}},\n{{id: b, name: B, {VERIFIED}}},\n{{id: c, name: C}},\n{{id: d, name: D, depends_on: [a]}}"
    );
    check(
        &tasks,
        &Case { only: Some("c"), ..Case::default() },
        "c |  | a: it is not among the tasks that were asked for; d: it waits for a (pending) | Going",
    );
    check(
        &tasks,
        &Case { only: Some("b"), ..Case::default() },
        " |  | a: it is not among the tasks that were asked for; c: it is not among the tasks that were asked for; d: it waits for a (pending) | Partial",
    );
    check(
        &tasks,
        &Case { from: Some("d"), ..Case::default() },
        " |  | a: it is not among the tasks that were asked for; c: it is not among the tasks that were asked for; d: it waits for a (pending) | Partial",
    );
}

/// T31: completed and skipped tasks are complete.
#[test]
fn t31_the_end_of_a_plan() {
    let done = |tasks: &str| {
        let plan = plan(tasks);
        finished(&plan, &State::recorded(&plan))
    };
    assert_eq!(
        done(&format!("{{id: a, name: A, {VERIFIED}}},\n{{id: b, name: B, status: skipped, skip_reason: x}}")),
        Some(Standing::Complete)
    );
    assert_eq!(
        done("{id: a, name: A, status: completed},\n{id: b, name: B, status: skipped, skip_reason: x}"),
        Some(Standing::Complete)
    );
    assert_eq!(done(&format!("{{id: a, name: A, {VERIFIED}}},\n{{id: b, name: B, {FAILED}}}")), Some(Standing::Failed));
    assert_eq!(done("{id: a, name: A, status: suspended}"), None);
    assert_eq!(done("{id: a, name: A, agent: tester, status: completed, attempts: 1}"), None);
}

/// Many tasks in one chain behind a failed one: every reason is a chain, and it must not take for ever.
#[test]
fn long_chains() {
    let tasks: String = (0..300)
        .map(|i| match i {
            0 => format!("{{id: t0, name: T, {FAILED}}},\n"),
            i => format!("{{id: t{i}, name: T, depends_on: [t{}, t{}]}},\n", i - 1, i / 2),
        })
        .collect();
    let selection = selection(&plan(&tasks), &Case::default());
    assert_eq!(selection.standing, Standing::Deadlocked);
    assert!(selection.blocked.iter().all(|(_, why)| matches!(why, Why::Needs(chains) if chains.iter().all(|chain| chain.last() == Some(&(id("t0"), TaskStatus::Failed))))));
}
