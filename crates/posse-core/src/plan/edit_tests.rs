//! Statuses in the file: what is written, and that nothing else is touched.

use super::edit::{Mark, NotWritten, same_but_for_statuses, write};
use super::file::PlanStatus;
use super::file_tests::OLD;
use super::{FailureKind, Plan, State, TaskId, TaskStatus};

fn id(id: &str) -> TaskId {
    id.parse().unwrap()
}

/// Lines that went and lines that came.
fn changes(before: &str, after: &str) -> (Vec<String>, Vec<String>) {
    let only_in = |a: &str, b: &str| -> Vec<String> {
        let mut others: Vec<&str> = b.lines().collect();
        let mut only = Vec::new();
        for line in a.lines() {
            match others.iter().position(|other| *other == line) {
                Some(at) => drop(others.remove(at)),
                None => only.push(line.trim().to_owned()),
            }
        }
        only
    };
    (only_in(before, after), only_in(after, before))
}

fn edited(text: &str, change: impl FnOnce(&mut State, &mut Mark)) -> Result<String, NotWritten> {
    let (plan, _) = Plan::read("p", text).unwrap();
    let (mut state, mut mark) = (State::recorded(&plan), Mark::of(&plan));
    change(&mut state, &mut mark);
    write(text, &state, &mark)
}

#[test]
fn nothing_to_write_leaves_every_byte() {
    // But for a section that says of itself what its tasks do not.
    let after = edited(OLD, |_, _| {}).unwrap();
    assert_eq!(after, OLD.replacen("    status: completed\n    tasks", "    status: in_progress\n    tasks", 1));
    assert_eq!(edited(&after, |_, _| {}).unwrap(), after);
}

#[test]
fn t21_comments_order_and_unknown_keys_stay() {
    let after = edited(OLD, |state, mark| {
        let record = state.of(&id("1.2"));
        record.status = TaskStatus::Verified;
        record.attempts = 2;
        record.last_attempt = Some("2026-11-16T04:00:00+01:00".into());
        record.cost_usd = Some(0.25);
        record.commits = vec!["abc".into(), "def".into()];
        mark.status = Some(PlanStatus::PausedQuota);
        mark.pause_reason = Some("ceiling: 10 USD \"reached\"\nat noon".into());
    })
    .unwrap();
    let (gone, come) = changes(OLD, &after);
    // A section that says what it is follows its tasks: both are done now, and `completed` is what it said already.
    assert_eq!(gone, ["status: pending", "attempts: 0"]);
    assert_eq!(
        come,
        [
            "status: paused_quota",
            "pause_reason: \"ceiling: 10 USD \\\"reached\\\"\\nat noon\"",
            "status: verified",
            "attempts: 2",
            "last_attempt: \"2026-11-16T04:00:00+01:00\"",
            "cost_usd: 0.25",
            "commits: [\"abc\", \"def\"]",
        ]
    );
    assert!(after.contains("name: Sandbox fix   # shown in reports\n  status: paused_quota\n"));
    // And back again: what was written once is cleared, not left to lie.
    let back = edited(&after, |state, mark| {
        let record = state.of(&id("1.2"));
        *record = super::Record::default();
        *mark = Mark::default();
    })
    .unwrap();
    let (plan, _) = Plan::read("p", &back).unwrap();
    assert_eq!(plan.task("1.2").unwrap().record, super::Record::default());
    assert_eq!(plan.meta.status, None);
}

#[test]
fn what_authors_wrote_is_told_from_what_we_did() {
    let ours = edited(OLD, |state, mark| {
        state.of(&id("1.2")).status = TaskStatus::Verified;
        state.of(&id("1.2")).attempts = 2;
        mark.status = Some(PlanStatus::Stopped);
    })
    .unwrap();
    assert!(same_but_for_statuses(OLD, &ours) && same_but_for_statuses(&ours, OLD));
    for theirs in [
        ours.replace("# reviewed by hand", "# reviewed twice"),
        ours.replace("name: Tests", "name: More tests"),
        format!("{ours}      - {{id: new, name: New}}\n"),
        "no: plan".to_owned(),
        "{".to_owned(),
    ] {
        assert!(!same_but_for_statuses(&ours, &theirs), "{theirs}");
    }
}

#[test]
fn every_way_to_write_a_task_can_take_a_status() {
    for task in [
        "      - {id: a, name: A}",
        "      - {id: a, name: A, status: pending}",
        "      - id: a\n        name: A # why\n        description: |\n          x\n\n\n",
        "      - name: >\n          long\n          name\n        id: a\n",
        "      - status: pending  # first\n        id: a\n        name: A",
        "      - id: a\n        name: A\n        status:\n        attempts: 3",
        "      - id: a\n        name: A\n        status: # to come\n        attempts: 3",
        "      - id: a\r\n        name: A\r\n        attempts: 3\r\n",
        "      -\n        id: a\n        name: A\n        last_error: |\n          old\n          error\n\n        files: [x]\n",
        "      - id: a\n        name: A\n        validation_findings:\n          - one\n          - two\n        # a comment\n        files: [x]",
        "      - \"id\": a\n        'name': \"A\"\n        \"status\" : 'pending'",
    ] {
        let text = format!("# top\nmeta: {{name: p}}\nsections:\n  - id: s\n    tasks:\n{task}\n# end");
        let after = edited(&text, |state, _| {
            let record = state.of(&id("a"));
            record.status = TaskStatus::Failed;
            record.attempts = 3;
            record.failure_kind = Some(FailureKind::Denied);
            record.last_error = Some("it's: #1 \"x\"\t\u{7}\\".into());
            record.validation_findings = vec!["[FAIL] a, b".into(), "- c".into()];
        })
        .unwrap_or_else(|error| panic!("{text}\n{error}"));
        let (plan, _) = Plan::read("p", &after).unwrap();
        let record = &plan.task("a").unwrap().record;
        assert_eq!((record.status, record.attempts), (TaskStatus::Failed, 3), "{after}");
        assert_eq!(record.last_error.as_deref(), Some("it's: #1 \"x\"\t\u{7}\\"));
        assert_eq!(record.validation_findings, ["[FAIL] a, b", "- c"]);
        assert!(after.starts_with("# top\n") && after.ends_with("# end"));
        assert_eq!(after.contains("\r\n"), text.contains("\r\n"));
    }
}

#[test]
fn what_cannot_be_proven_is_not_written() {
    // The comment stands between the key and its value: to write the value would lose it.
    let text = "meta: {name: p}\nsections:\n  - id: s\n    tasks:\n      - id: a\n        name: A\n        last_error:\n          # seen twice\n          - x\n";
    let plan = Plan::read("p", text);
    assert!(plan.is_err(), "a list is no error text");
    let text = text.replace("last_error", "validation_findings");
    let refused = edited(&text, |state, _| state.of(&id("a")).validation_findings = vec!["y".into()]);
    assert_eq!(refused, Err(NotWritten::WouldChangeMore));
    // One list for two tasks: the statuses of one must not become those of the other.
    let text = "meta: {name: p}\nsections:\n  - id: s\n    tasks:\n      - {id: a, name: A, commits: &c [x]}\n      - {id: b, name: B, commits: *c}\n";
    let refused = edited(text, |state, _| state.of(&id("a")).commits = vec!["y".into()]);
    assert_eq!(refused, Err(NotWritten::WouldChangeMore));
}

#[test]
fn long_errors_are_cut_in_the_file() {
    let after = edited(OLD, |state, _| state.of(&id("2.1")).last_error = Some("é".repeat(100_000))).unwrap();
    assert!(after.len() < OLD.len() + 5000);
}
