//! What waits for a client that provides the environment.

use super::*;
use crate::rounds::Final;

/// A run that is to be committed, after these entries.
fn after(entries: impl IntoIterator<Item = Entry>) -> Bench {
    let mut bench = Bench::new(r#"{"post_processing": {"openspec_archive": true, "git_commit": true}}"#);
    entries.into_iter().for_each(|entry| drop(bench.run.ledger.apply(&entry, Wall(0))));
    bench
}

fn stops_alone(bench: &Bench) -> bool {
    bench.told.iter().any(|entry| matches!(entry, Entry::Stopped { stop: Stop::Alone, .. }))
}

/// The steps after PASS run in the environment of the client that began the run, and in no other.
#[test]
fn with_nobody_there_what_comes_after_pass_waits() {
    let decided = Entry::Decided { verdict: Final::Pass };
    let archived = Entry::StepDone { step: Step::OpenspecArchive, outcome: StepOutcome::Skipped("none".into()) };
    for (entries, next) in [(vec![decided.clone()], "OpenspecArchive"), (vec![decided, archived], "GitCommit")] {
        let mut bench = after(entries);
        let done = bench.go_with(&[], None);
        assert!(stops_alone(&bench) && !done.iter().any(|done| done == next || done == "archive state"), "{done:?}");
        assert_eq!(bench.run.ledger().status(), RunStatus::Stopped, "it can be resumed");
        assert_eq!(bench.go(&[]).last().map(String::as_str), Some(next));
    }
    // After a FAIL there is nothing to do.
    let mut bench = after([Entry::Decided { verdict: Final::Fail }]);
    bench.go_with(&[], None);
    assert!(!stops_alone(&bench));
    assert_eq!(bench.run.ledger().status(), RunStatus::Failed);
}

/// What is the user's own is looked at in their environment too: it says what git ignores.
#[test]
fn with_nobody_there_nobody_looks_at_the_project() {
    let mut bench = after([]);
    let done = bench.go_with(&[], None);
    assert!(stops_alone(&bench), "{done:?}");
    assert_eq!(bench.run.ledger().snapshot, None);
    assert_eq!(bench.go(&[]).last().map(String::as_str), Some("take snapshot"));
}
