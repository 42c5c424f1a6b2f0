//! Edits of plans by sessions, and the merged results.

use super::edit::PlanText;
use super::file_tests::id;
use super::merge::{Merged, merge};
use super::{Plan, State, TaskStatus};

const PLAN: &str = "meta:
  name: p
  budget_limit_usd: 5 # not more
  description: old
sections:
  - id: s
    tasks:
      - id: a
        name: A
        status: verified
        attempts: 1
      - id: b # next
        name: B
        agent: code-reviewer
        status: in_progress
        attempts: 1
      - id: c
        name: C
        max_attempts: 2
";

fn session(changes: &[(&str, &str)]) -> Merged {
    let mut theirs = PLAN.to_owned();
    for (from, to) in changes {
        assert!(theirs.contains(from), "{from}");
        theirs = theirs.replacen(from, to, 1);
    }
    let (plan, _) = Plan::read("p", PLAN).unwrap();
    merge(PLAN, &theirs, &State::recorded(&plan)).unwrap()
}

/// T23: the session's report of the edit is not an input.
#[test]
fn t23_new_tasks_stay() {
    let merged = session(&[(
        "      - id: c\n",
        "      # split off\n      - {id: 2.1a, name: New, agent: coder}\n      - id: c\n",
    )]);
    assert_eq!(merged.rejected, [""; 0]);
    assert_eq!(merged.plan.task("2.1a").unwrap().agent(), "coder");
    assert_eq!(merged.state.status(&id("2.1a")), TaskStatus::Pending);
    assert!(merged.text.contains("# split off"));
}

#[test]
fn t24_a_session_cannot_verify_a_task() {
    let merged = session(&[("        name: C\n", "        name: C\n        status: verified\n        attempts: 1\n")]);
    let rejected = [
        "task c: its status cannot be set to verified while the plan runs",
        "task c: `attempts` cannot be changed while the plan runs",
    ];
    assert_eq!(merged.rejected, rejected);
    assert_eq!(merged.state.status(&id("c")), TaskStatus::Pending);
    let own = session(&[("status: in_progress", "status: completed"), ("      - id: c", "      - id: c # soon")]);
    assert_eq!(own.rejected, ["task b: its status cannot be set to completed while the plan runs"]);
    assert_eq!(own.state.status(&id("b")), TaskStatus::InProgress);
    // The file is unchanged.
    let file = PlanText::parse(&own.text).unwrap().with_statuses(&own.state).unwrap();
    assert_eq!(file, PLAN.replace("- id: c", "- id: c # soon"));
    let counted = session(&[("attempts: 1\n      - id: b", "attempts: 0\n      - id: b")]);
    assert_eq!(counted.rejected, ["task a: `attempts` cannot be changed while the plan runs"]);
    assert_eq!(counted.text, PLAN);
}

#[test]
fn t25_a_session_cannot_raise_its_budget() {
    let merged = session(&[
        ("budget_limit_usd: 5 # not more", "budget_limit_usd: 500\n  gates: [{cmd: 'true'}]"),
        ("name: C", "name: Better"),
    ]);
    assert_eq!(merged.rejected, ["meta: budget_limit_usd, gates cannot be changed while the plan runs"]);
    assert_eq!(merged.text, PLAN.replace("name: C", "name: Better"));
    let harmless = session(&[("description: old", "description: new")]);
    assert!(harmless.rejected.is_empty() && harmless.text.contains("description: new"), "{harmless:?}");
}

#[test]
fn what_a_task_may_do_and_cost_is_not_for_sessions() {
    let merged = session(&[
        ("agent: code-reviewer", "agent: coder\n        model: opus"),
        ("max_attempts: 2", "max_attempts: 200\n        notes: harder than it looks"),
        ("      - id: c", "      - {id: d, name: D, permissions: full}\n      - id: c"),
    ]);
    assert_eq!(
        merged.rejected,
        [
            "task b: `agent` cannot be changed while the plan runs",
            "task b: `model` cannot be changed while the plan runs",
            "task d: `permissions` cannot be changed while the plan runs",
            "task c: `max_attempts` cannot be changed while the plan runs",
        ]
    );
    let task = |id| merged.plan.task(id).unwrap();
    assert_eq!((task("b").agent(), task("b").model.as_deref()), ("code-reviewer", None));
    assert_eq!(task("c").max_attempts, Some(2));
    assert!(merged.text.contains("harder than it looks"), "{}", merged.text);
    assert_eq!(task("d").permissions, None);
}

#[test]
fn a_task_not_begun_may_be_skipped_with_a_reason() {
    let skip = "        name: C\n        status: skipped\n        skip_reason: b did it\n";
    let merged = session(&[("        name: C\n", skip)]);
    assert_eq!(merged.rejected, [""; 0]);
    assert_eq!(merged.state.status(&id("c")), TaskStatus::Skipped);
    assert!(merged.text.contains(skip));
    let begun = session(&[("status: in_progress\n", "status: skipped\n        skip_reason: too hard\n")]);
    assert_eq!(begun.rejected, ["task b: its status cannot be set to skipped while the plan runs"]);
    assert_eq!(begun.state.status(&id("b")), TaskStatus::InProgress);
}

#[test]
fn what_breaks_the_plan_is_undone_as_a_whole() {
    for (changes, why) in [
        (vec![("sections:", "sections")], "no plan any more"),
        (vec![("max_attempts: 2", "depends_on: [zzz]")], "does not exist"),
        (
            vec![("      - id: a\n        name: A\n        status: verified\n        attempts: 1\n", "")],
            "task a was removed",
        ),
        (vec![("  description: old", "  description: new"), ("id: b # next", "id: bb")], "task b was removed"),
    ] {
        let merged = session(&changes);
        assert_eq!(merged.text, PLAN);
        assert_eq!(merged.rejected.len(), 1);
        assert!(merged.rejected[0].contains(why), "{:?}", merged.rejected);
    }
    // A task that never ran may be removed.
    let gone = session(&[("      - id: c\n        name: C\n        max_attempts: 2\n", "")]);
    assert_eq!(gone.rejected, [""; 0]);
    assert_eq!(gone.state.get(&id("c")), None);
    // Gates and budgets are in `meta`.
    let without = session(&[("meta:", "mata:")]);
    assert_eq!((without.text.as_str(), without.rejected.len()), (PLAN, 1));
}
