use std::time::Duration;

use super::super::simulation::world;
use super::super::{Effect, Entry, HURRIED, Run, RunEvent, RunStatus, Spec, Step, StepOutcome, Stop};
use crate::rounds::Final;
use crate::time::{Mono, Wall};

/// A run that is to be committed, after these entries.
fn read_back(entries: impl IntoIterator<Item = Entry>) -> Run {
    let mut spec: Spec = world::spec(false);
    (spec.config.post_processing.openspec_archive, spec.config.post_processing.git_commit) = (true, true);
    let mut run = Run::new(spec, Wall(0));
    for entry in entries {
        run.ledger.apply(&entry, Wall(0));
    }
    run
}

/// What is done, up to the end of it.
fn go(run: &mut Run, can_start: bool) -> Vec<Effect> {
    let go =
        RunEvent::Go { alive: Default::default(), adopted: Default::default(), caller: HURRIED.filter(|_| can_start) };
    let mut effects = run.take(go, Mono(Duration::ZERO), Wall(1));
    if effects.iter().any(|effect| matches!(effect, Effect::Close { .. })) {
        effects.extend(run.take(RunEvent::Closed, Mono(Duration::ZERO), Wall(1)));
    }
    effects
}

fn stops_alone(run: &Run) -> bool {
    run.told().any(|(_, entry)| matches!(entry, Entry::Stopped { stop: Stop::Alone, .. }))
}

/// What comes after PASS is done in the environment of whoever began the run, and in no other.
#[test]
fn with_nobody_there_what_comes_after_pass_waits() {
    let decided = Entry::Decided { verdict: Final::Pass };
    let archived = Entry::StepDone { step: Step::OpenspecArchive, outcome: StepOutcome::Skipped("none".into()) };
    for (entries, next) in [(vec![decided.clone()], Step::OpenspecArchive), (vec![decided, archived], Step::GitCommit)]
    {
        let mut run = read_back(entries);
        let effects = go(&mut run, false);
        assert!(stops_alone(&run), "{effects:#?}");
        let goes_on = |effect: &Effect| matches!(effect, Effect::Step { .. } | Effect::Close { over: true, .. });
        assert!(!effects.iter().any(goes_on));
        assert_eq!(run.ledger().status(), RunStatus::Stopped, "it can be resumed");
        let effects = go(&mut run, true);
        assert!(
            effects.iter().any(|effect| matches!(effect, Effect::Step { step, .. } if *step == next)),
            "{effects:#?}"
        );
    }
    // After a FAIL there is nothing to do.
    let mut run = read_back([Entry::Decided { verdict: Final::Fail }]);
    go(&mut run, false);
    assert!(!stops_alone(&run));
    assert_eq!(run.ledger().status(), RunStatus::Failed);
}

/// What is the user's own is looked at in their environment too: it says what git ignores.
#[test]
fn with_nobody_there_nobody_looks_at_the_project() {
    let mut run = read_back([]);
    let effects = go(&mut run, false);
    assert!(stops_alone(&run), "{effects:#?}");
    assert_eq!(run.ledger().snapshot, None);
    let effects = go(&mut run, true);
    assert!(effects.iter().any(|effect| matches!(effect, Effect::TakeSnapshot)), "{effects:#?}");
}
