//! Steps that wait for a client with the environment.

use super::*;

const CONFIG: &str = r#"{"limits": {"min_review_cycles_before_approval": 1, "max_rounds": 1},
    "post_processing": {"openspec_archive": true, "git_commit": true}}"#;

/// The steps after PASS run only in the environment of the client that began the run.
#[test]
fn with_nobody_there_what_comes_after_pass_waits() {
    let mut bench = play(CONFIG, "testing\nanswer RESULT: PASS");
    for next in ["OpenspecArchive", "GitCommit"] {
        bench.play("dies");
        let done = bench.step("go alone");
        assert!(!done.iter().any(|done| done == next || done == "archive state"), "{done:?}");
        assert_eq!(bench.run.stopped, Some(Stop::Alone));
        // It can be resumed.
        bench.play(&format!("is stopped\ngo -> ..., {next}"));
        let outcome = StepOutcome::Skipped("none".into());
        bench.happens(RunEvent::StepDone { step: Step::OpenspecArchive, outcome });
    }
}

/// The user's uncommitted changes are read in the user's environment too, because it determines what git ignores.
#[test]
fn with_nobody_there_nobody_looks_at_the_project() {
    let mut bench = play(CONFIG, "go none alone");
    assert_eq!((bench.run.stopped, &bench.run.snapshot), (Some(Stop::Alone), &None));
    bench.play("go none -> resumed, take snapshot\nis running");
}
