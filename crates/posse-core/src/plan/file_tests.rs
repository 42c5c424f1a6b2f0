//! Examples of plans, and the messages about invalid ones. The names T15 … are those of the scenarios the plan format
//! was specified with.

use std::time::Duration;

use super::file::{Gate, GateWhen, Parallel, Permissions};
use super::{Plan, TaskId, TaskStatus, cannot_fail};
use crate::file_problem::{FileProblem, FileProblems};

/// A plan of the original orchestrator: comments, long descriptions, its own field names, statuses of an earlier run.
pub(super) const OLD: &str = r#"# Sample plan
meta:
  name: Sandbox fix   # shown in reports
  description: One flag is missing
  plan_doc: docs/plans/2026-02-24-sandbox-design.md
  created: 2026-02-24
  max_attempts_default: 3
  validation:
    enabled: true
    run_after:
      - coder
    validators: [validator]
    max_validation_attempts: 1

sections:
  - id: phase-1
    name: 'Phase 1: fix'
    status: completed
    tasks:
      - id: '1.1'
        name: Add the flag
        agent: coder
        status: completed
        attempts: 1
        last_attempt: '2026-02-24T10:00:00.123456'
        completed_at: '2026-02-24T10:05:00'
        result_message: Added
        description: |
          In both functions append the mode.

          Files: scripts/plan-orchestrator.py, scripts/auto-pipeline.py
      # reviewed by hand
      - id: '1.2'
        name: Tests
        description: >-
          Update the tests,
          and run them.
        depends_on: ['1.1']
        status: pending
        attempts: 0
  - id: phase-2
    tasks:
      - id: '2.1'
        name: Docs
        dependencies:
          - '1.2'
        parallel_group: docs
        exclusive_resource: database
        priority: low
      - {id: 3, name: Release notes, parallel_group: docs, files: [CHANGELOG.md], timeout: 1h, model: opus}
"#;

pub(super) fn id(id: &str) -> TaskId {
    id.parse().unwrap()
}

#[test]
fn old_plans_load() {
    let (plan, warnings) = Plan::read("plans/fix.yaml", OLD).unwrap();
    assert_eq!(plan.name, "Sandbox fix");
    assert!(plan.meta.validation.enabled);
    assert_eq!(plan.meta.validation.max_attempts, 1);
    let ids: Vec<&str> = plan.tasks().map(|task| task.id.as_str()).collect();
    assert_eq!(ids, ["1.1", "1.2", "2.1", "3"]);
    let first = plan.task("1.1").unwrap();
    assert_eq!((first.record.status, first.record.attempts), (TaskStatus::Completed, 1));
    assert!(first.description.ends_with("auto-pipeline.py\n"));
    assert_eq!(plan.task("1.2").unwrap().description, "Update the tests, and run them.");
    assert_eq!(plan.task("3").unwrap().timeout, Some(Duration::from_secs(3600)));
    assert_eq!(plan.sections[1].name, "phase-2");
    let warnings: Vec<String> = warnings.iter().map(ToString::to_string).collect();
    assert_eq!(warnings, ["49:9: a task has no `priority`; it has no effect"]);
}

/// T18, and the other alias.
#[test]
fn t18_other_names_are_honoured() {
    let (plan, _) = Plan::read("x", OLD).unwrap();
    let task = plan.task("2.1").unwrap();
    assert_eq!(task.depends_on, ["1.2".parse().unwrap()]);
    assert_eq!(task.exclusive_resources, ["database"]);
}

/// Returns a plan with these tasks, which begin in line 4.
fn with(tasks: &str) -> String {
    format!("meta: {{name: x}}\nsections:\n  - {{id: s, tasks: [\n{tasks}\n  ]}}\n")
}

fn problems(text: &str) -> FileProblems {
    match Plan::read("p.yaml", text) {
        Ok((plan, _)) => panic!("accepted: {plan:?}"),
        Err(problems) => problems,
    }
}

#[track_caller]
fn refused(text: &str, expected: &[&str]) {
    let shown = problems(text).to_string();
    let shown: Vec<&str> = shown.lines().collect();
    assert_eq!(shown, expected);
}

#[test]
fn t15_two_tasks_with_one_id_are_both_named() {
    refused(
        &with("{id: a, name: A},\n{id: b, name: B},\n{id: a, name: C}"),
        &["p.yaml:6:6: there are two tasks a; the first at 4:6 (ids are unique in the whole plan)"],
    );
}

#[test]
fn t16_a_dependency_must_exist() {
    refused(
        &with("{id: '1.1', name: A},\n{id: '1.2', name: B, depends_on: [1-1, '9']}"),
        &[
            "p.yaml:5:35: task 1.2 depends on 1-1, which does not exist (did you mean 1.1?)",
            "p.yaml:5:40: task 1.2 depends on 9, which does not exist",
        ],
    );
    refused(&with("{id: a, name: A, depends_on: a}"), &["p.yaml:4:30: task a depends on itself"]);
}

#[test]
fn t17_a_cycle_is_printed() {
    refused(
        &with(
            "{id: '1.1', name: A, depends_on: ['1.2']},\n{id: '1.2', name: B, depends_on: ['1.1']},\n{id: c, name: C, depends_on: ['1.2']}",
        ),
        &["p.yaml:4:6: tasks wait for each other: 1.1 -> 1.2 -> 1.1; 1.2 at 5:6 (remove one of these dependencies)"],
    );
}

#[test]
fn t19_a_misspelt_key_is_an_error() {
    refused(
        &with("{id: a, name: A, depend_on: [b], needs: [b], retires: 3}"),
        &[
            "p.yaml:4:18: a task has no `depend_on` (did you mean `depends_on`?)",
            "p.yaml:4:34: a task has no `needs` (did you mean `depends_on`?)",
        ],
    );
}

#[test]
fn t20_ids_that_are_numbers_must_be_quoted() {
    for id in ["1.10", "1.1", "1e3", ".5", "007"] {
        let found = problems(&with(&format!("{{id: {id}, name: A}}")));
        assert_eq!(found.problems.len(), 1, "{found}");
        assert_eq!(found.problems[0].hint, Some(format!("quote the id: \"{id}\"")));
        assert_eq!((found.problems[0].at.line, found.problems[0].at.column), (4, 6));
    }
    for id in ["1", "'1.10'", "1.1a", "1.1.1", "e"] {
        assert!(Plan::read("p", &with(&format!("{{id: {id}, name: A}}"))).is_ok(), "{id}");
    }
    assert_eq!(problems(&with("{id: a, name: A, depends_on: [1.1]}")).problems.len(), 1);
}

/// T22: a truncated file is never a plan without work.
#[test]
fn t22_no_piece_of_a_plan_is_taken_for_a_finished_one() {
    let text = OLD.replace("status: pending", "status: verified").replace("attempts: 0", "attempts: 1");
    let all = Plan::read("p", &text).unwrap().0.tasks().count();
    for cut in (0..text.len()).filter(|cut| text.is_char_boundary(*cut)) {
        if let Ok((plan, _)) = Plan::read("p", &text[..cut]) {
            let tasks = plan.tasks().count();
            assert!(tasks < all || cut + 80 > text.len(), "{cut}");
        }
    }
    assert!(Plan::read("p", "").is_err());
    assert!(Plan::read("p", "meta: {name: x}\nsections: []\n").is_err());
}

#[test]
fn every_mistake_is_found_at_once_with_its_place() {
    refused(
        "meta:\n  max_attempts_default: 0\n  timeout_default: soon\n  parallel: many\n  status: fialed\n  name: a\n  name: b\n  budget: {quota_ceiling_usd: -1}\nsections:\n  - name: no id\n  - id: s\n    tasks:\n      - name: no id\n      - id: a b\n      - id: c\n        status: blocked\n        files: {x: y}\n",
        &[
            "p.yaml:2:25: `max_attempts_default` should be a whole number, 1 or more, this is 0",
            "p.yaml:3:20: `timeout_default` should be a duration such as \"90s\", \"15m\" or \"7d\", or a number of seconds, this is the text \"soon\"",
            "p.yaml:4:13: `parallel` should be a whole number, 1 or more, this is the text \"many\"",
            "p.yaml:7:3: `name` is given twice; first at 6:3 (keep one of them)",
            "p.yaml:8:31: `quota_ceiling_usd` should be a number, 0 or more, this is -1",
            "p.yaml:10:5: the section has no `id` (give it one that no other section has)",
            "p.yaml:13:9: the task has no `id` (give it one that no other task of the plan has)",
            "p.yaml:14:13: an id may not contain ' '; use letters, digits, '.', '-' and '_'",
            "p.yaml:15:13: task c has no `name`",
            "p.yaml:16:17: `status` should be one of pending, in_progress, completed, verified, failed, skipped, suspended, this is the text \"blocked\"",
            "p.yaml:17:16: `files` should be a list of words, this is a table",
        ],
    );
    refused("- a\n", &["p.yaml:1:1: a plan should be a map, this is a list"]);
    refused(
        "sections: {}\n",
        &[
            "p.yaml:1:1: the plan has no `meta` (begin with `meta:` and a `name:` in it)",
            "p.yaml:1:11: `sections` should be a list of at least one, this is a map (each section is `- id: …` with its `tasks:`)",
        ],
    );
}

#[test]
fn a_skipped_task_needs_a_reason() {
    refused(
        &with("{id: a, name: A, status: verified},\n{id: b, name: B, status: skipped}"),
        &["p.yaml:5:26: the task is skipped without a reason (add `skip_reason:`)"],
    );
}

#[test]
fn what_must_exist_elsewhere_is_asked_for() {
    let (plan, _) = Plan::read("p", OLD).unwrap();
    assert_eq!(plan.missing(|_| true, |_| true), (Vec::new(), Vec::new()));
    let (missing, warnings) = plan.missing(|agent| agent != "coder", |_| false);
    let lines = |problems: &[FileProblem]| -> Vec<(usize, String)> {
        problems.iter().map(|problem| (problem.at.line, problem.message.clone())).collect()
    };
    assert_eq!(
        lines(&missing),
        [
            (5, "docs/plans/2026-02-24-sandbox-design.md does not exist".into()),
            (22, "there is no agent `coder`".into())
        ]
    );
    assert_eq!(warnings, []);
    // The original orchestrator ignored unknown agents.
    let (plan, _) = Plan::read("p", &OLD.replace("- coder\n", "- coder\n      - frontend-dev\n")).unwrap();
    let (missing, warnings) = plan.missing(|agent| agent == "coder", |_| true);
    assert_eq!(missing, []);
    assert_eq!(
        lines(&warnings),
        [
            (12, "no task has the agent `frontend-dev`; nothing is validated after it".into()),
            (13, "there is no agent `validator`; `validator` validates in its place".into())
        ]
    );
    // A misspelling would merge work without the requested validation.
    let (plan, _) = Plan::read("p", &OLD.replace("- coder\n", "- codr\n")).unwrap();
    let (missing, _) = plan.missing(|agent| agent != "codr", |_| true);
    assert_eq!(missing[0].to_string(), "11:9: no task has the agent `codr` (did you mean `coder`?)");
}

/// Of 1,835 plans of the original orchestrator, 753 had only these warnings.
#[test]
fn keys_of_the_original_orchestrator_are_accepted_with_warnings() {
    let text = "meta:\n  title: Fix it\n  status: pending\n  descripton: x\nsections:\n  - id: s\n    title: S\n    tasks:\n      - {id: a, name: A, note: x, complete_at: x, priority: 1}\n";
    let (plan, warnings) = Plan::read("p", text).unwrap();
    assert_eq!(plan.name, "Fix it");
    let shown: Vec<String> = warnings.iter().map(ToString::to_string).collect();
    assert_eq!(
        shown,
        [
            "2:10: `title` is read as `name` (keep `name`)",
            "4:3: meta has no `descripton`; it has no effect (did you mean `description`?)",
            "7:5: a section has no `title`; it has no effect (did you mean `name`?)",
            "9:26: a task has no `note`; it has no effect (did you mean `notes`?)",
            "9:35: a task has no `complete_at`; it has no effect (did you mean `completed_at`?)",
            "9:51: a task has no `priority`; it has no effect",
        ]
    );
    let both = text.replace("title: Fix it", "title: Other\n  name: Fix it");
    let (plan, warnings) = Plan::read("p", &both).unwrap();
    assert_eq!(plan.name, "Fix it");
    assert!(warnings[0].message.contains("no effect beside `name`"), "{}", warnings[0]);
}

/// Ignoring these would run or merge something unwanted.
#[test]
fn misspelt_keys_that_hold_something_back_are_errors() {
    for (meta, meant) in [
        ("isolaton: in_place", "isolation"),
        ("gate: [make]", "gates"),
        ("validaton: {enabled: true}", "validation"),
        ("budget_limit: 3", "budget_limit_usd"),
        ("max_attempts: 1", "max_attempts_default"),
        ("paralel: 1", "parallel"),
        ("validation: {enable: true}", "enabled"),
        ("validation: {validator: [x]}", "validators"),
        ("budget: {quota_ceiling: 3}", "quota_ceiling_usd"),
        ("gates: [{cmd: make, whe: after_plan}]", "when"),
    ] {
        let found = problems(&format!("meta: {{name: x, {meta}}}\nsections: [{{id: s}}]\n"));
        assert_eq!(found.problems.len(), 1, "{meta}: {found}");
        assert_eq!(found.problems[0].hint, Some(format!("did you mean `{meant}`?")), "{meta}");
    }
    for (task, meant) in [
        ("needs: [b]", "depends_on"),
        ("agnet: code-reviewer", "agent"),
        ("permission: READ_ONLY", "permissions"),
        ("file: [a]", "files"),
        ("exclusive_resourses: [db]", "exclusive_resources"),
        ("max_attempt: 1", "max_attempts"),
        ("timeouts: 5m", "timeout"),
        ("statuss: skipped", "status"),
        ("descripton: x", "description"),
    ] {
        let found = problems(&with(&format!("{{id: a, name: A, {task}}}")));
        assert_eq!(found.problems.len(), 1, "{task}: {found}");
        assert_eq!(found.problems[0].hint, Some(format!("did you mean `{meant}`?")), "{task}");
    }
}

#[test]
fn members_of_a_group_that_need_each_other_are_warned_of() {
    let text = with("{id: a, name: A, parallel_group: g},\n{id: b, name: B, parallel_group: g, depends_on: a}");
    let (_, warnings) = Plan::read("p", &text).unwrap();
    assert_eq!(warnings.len(), 1);
    assert!(warnings[0].message.contains("they run in turn"));
}

#[test]
fn t51_a_gate_that_cannot_fail_is_warned_of() {
    for (command, hollow) in [
        ("pytest || echo ok", true),
        ("make test || true", true),
        ("make test||:", true),
        ("make || exit 0", true),
        ("true", true),
        ("  ", true),
        ("make || exit 1", false),
        ("make test", false),
        ("a || b", false),
        ("echo start && make", false),
    ] {
        assert_eq!(cannot_fail(command).is_some(), hollow, "{command}");
    }
    let text = "meta:\n  parallel: 6\n  gates:\n    - {name: tests, cmd: pytest || echo ok}\n    - cmd: make\n      when: after_plan\nsections: [{id: s}]\n";
    let (plan, warnings) = Plan::read("p", text).unwrap();
    assert_eq!(warnings.len(), 1);
    assert_eq!(plan.meta.parallel, Some(Parallel::Workers(6)));
    assert_eq!(plan.meta.gates[1], Gate { name: "make".into(), command: "make".into(), when: GateWhen::AfterPlan });
}

/// The example in the documentation is a valid plan.
#[test]
fn what_the_documentation_shows_can_be_read() {
    let text = include_str!("../../../../docs/reference/plan-file.md");
    let example = text.split("```yaml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let (plan, warnings) = Plan::read("docs", example).unwrap_or_else(|problems| panic!("{problems}"));
    assert_eq!((plan.tasks().count(), warnings), (4, Vec::new()));
}

#[test]
fn permissions_may_name_a_profile_and_tools() {
    let text = with("{id: a, name: A, permissions: {profile: DOCS, tools: [Read]}}");
    let (plan, warnings) = Plan::read("p", &text).unwrap();
    assert_eq!(warnings, []);
    assert_eq!(plan.task("a").unwrap().permissions, Some(Permissions::Tools(vec!["Read".into()])));
}
