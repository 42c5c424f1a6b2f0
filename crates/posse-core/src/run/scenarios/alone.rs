//! What waits for a client that provides the environment.

use super::*;

const CONFIG: &str = r#"{"limits": {"min_review_cycles_before_approval": 1, "max_rounds": 1},
    "post_processing": {"openspec_archive": true, "git_commit": true}}"#;

fn stops_alone(bench: &Bench) -> bool {
    bench.told.iter().any(|entry| matches!(entry, Entry::Stopped { stop: Stop::Alone, .. }))
}

/// The steps after PASS run in the environment of the client that began the run, and in no other.
#[test]
fn with_nobody_there_what_comes_after_pass_waits() {
    let mut bench = Bench::to_the_test(CONFIG);
    bench.answer(PASSED);
    for next in ["OpenspecArchive", "GitCommit"] {
        bench.dies();
        bench.told.clear();
        let done = bench.go_with(&all(), None);
        assert!(stops_alone(&bench) && !done.iter().any(|done| done == next || done == "archive state"), "{done:?}");
        assert_eq!(bench.run.status(), RunStatus::Stopped, "it can be resumed");
        assert_eq!(bench.go(&all()).last().map(String::as_str), Some(next));
        let outcome = StepOutcome::Skipped("none".into());
        bench.happens(RunEvent::StepDone { step: Step::OpenspecArchive, outcome });
    }
}

/// What is the user's own is looked at in their environment too: it says what git ignores.
#[test]
fn with_nobody_there_nobody_looks_at_the_project() {
    let mut bench = Bench::new(CONFIG);
    let done = bench.go_with(&[], None);
    assert!(stops_alone(&bench), "{done:?}");
    assert_eq!(bench.run.snapshot, None);
    assert_eq!(bench.go(&[]).last().map(String::as_str), Some("take snapshot"));
}
