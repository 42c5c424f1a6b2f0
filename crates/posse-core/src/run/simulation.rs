//! Whole runs in simulated time, with posse killed at every journal position, before and after the entry is on disk.
//!
//! Agents, files and terminals continue while posse is dead; pending effects are lost or completed. Every run reaches
//! the same end. No prompt is typed twice, no answer is lost, and no permission is accepted that is not in the journal.

pub(super) mod world;

use super::*;
use crate::engine::simulation::Dies;
use crate::review_loop::Key;
use world::{Kill, Outcome, Outside, Script};

/// A round that fails, then a round that passes, with permissions in between.
fn script() -> Script {
    Script { failures: 1, permissions: 2, ..Script::default() }
}

fn play(script: &Script, kill: Option<Kill>, seed: u64) -> Outcome {
    Outside::play(script.clone(), kill, seed)
}

#[track_caller]
fn check(outcome: &Outcome, undisturbed: &Outcome, what: &str) {
    assert_eq!(outcome.status, RunStatus::Passed, "{what}: {:#?}", outcome.told);
    assert_eq!(outcome.answers, undisturbed.answers, "{what}: other answers");
    for (terminal, prompts) in &outcome.world.prompts {
        // The line with role, round and cycle identifies the task, even if a second prompt differs otherwise.
        let tasks: Vec<&str> = prompts.iter().filter_map(|prompt| prompt.lines().nth(1)).collect();
        for (at, task) in tasks.iter().enumerate() {
            assert!(!tasks[..at].contains(task), "{what}: {terminal} got a prompt twice: {task}");
        }
    }
    let written = outcome.told.iter().filter(|entry| matches!(entry, Entry::Accepting { .. })).count();
    assert!(outcome.world.accepts <= written, "{what}: more accepts than the {written} in the journal");
    assert!(matches!(outcome.told.last(), Some(Entry::Finished)), "{what}: it did not end");
}

#[test]
fn an_undisturbed_run_passes_in_the_second_round() {
    let outcome = play(&script(), None, 1);
    check(&outcome, &outcome, "undisturbed");
    let turns = outcome.told.iter().filter(|entry| matches!(entry, Entry::TurnBegun { .. })).count();
    assert_eq!(turns, 5 + 3, "two reviews, a test; then programmer, review and test again");
    assert_eq!((outcome.world.accepts, outcome.world.posse), (2 * turns, 0));
}

#[test]
fn killed_at_every_entry_it_comes_to_the_same_end() {
    let undisturbed = play(&script(), None, 1);
    let entries = undisturbed.entries;
    assert!(entries > 50, "only {entries}");
    for at in 1..=entries {
        for dies in Dies::ALL {
            for seed in 0..2 {
                let outcome = play(&script(), Some(Kill { at, dies, again: 0 }), seed);
                check(&outcome, &undisturbed, &format!("killed {dies:?} entry {at}, seed {seed}"));
                assert_eq!(outcome.world.posse, 1);
            }
        }
    }
}

/// S-159, S-160: sometimes the daemon is down for longer than a minute.
#[test]
fn killed_again_and_again_it_comes_to_the_same_end() {
    let undisturbed = play(&script(), None, 1);
    for seed in 0..60 {
        // A restart takes two or three entries; an earlier kill would prevent all progress.
        let kill = Kill { at: 1 + seed as usize % 7, dies: Dies::BeforeActing, again: 5 + seed as usize % 11 };
        let outcome = play(&script(), Some(kill), seed);
        check(&outcome, &undisturbed, &format!("{kill:?}, seed {seed}"));
        assert!(outcome.world.posse > 3, "killed only {} times", outcome.world.posse);
    }
}

/// All faults combined: agents die and are killed, the model fails, posse is killed, people answer, screens are
/// garbled, and the agents exit at every stop.
#[test]
fn whoever_is_killed_and_whoever_answers_it_comes_to_the_same_end() {
    let undisturbed = play(&script(), None, 1);
    let mut left = 0;
    for seed in 0..400 {
        let flag = |bit: u64| seed & bit != 0;
        let turn = Key::ALL[seed as usize % 5];
        let script = Script {
            murders: (seed % 4) as u32,
            person: flag(1),
            blurred: flag(2),
            cleanup: flag(4),
            fails_once: flag(16).then_some(turn),
            ..script()
        };
        let kill = flag(8).then(|| Kill {
            at: 1 + seed as usize % 23,
            dies: Dies::BeforeActing,
            again: 7 + seed as usize % 13,
        });
        let outcome = play(&script, kill, seed);
        check(&outcome, &undisturbed, &format!("{script:?}, {kill:?}, seed {seed}"));
        let alive = outcome.world.alive().len();
        if script.cleanup {
            assert_eq!(alive, 0, "{script:?}, {kill:?}, seed {seed}: {:#?}", outcome.told);
        }
        left += alive;
    }
    assert!(left > 0, "nobody was told to leave, and all left");
}

/// The model fails after the answer is written. The answer is not requested again, whenever posse is killed.
#[test]
fn an_answer_that_was_written_before_the_model_failed_is_used() {
    let undisturbed = play(&script(), None, 1);
    let check = |outcome: &Outcome, what: &str| {
        check(outcome, &undisturbed, what);
        let asked_again = outcome.world.prompts.values().flatten().any(|prompt| prompt.contains("broke off"));
        assert!(!asked_again, "{what}: {:#?}", outcome.told);
    };
    for key in Key::ALL {
        let failing = Script { fails_after: Some(key), ..script() };
        let outcome = play(&failing, None, 2);
        check(&outcome, &format!("{key}"));
        assert_eq!(outcome.world.notices, ["parked", "pass"], "{key}");
        for at in 1..=outcome.entries {
            let outcome = play(&failing, Some(Kill { at, dies: Dies::BeforeActing, again: 0 }), at as u64);
            check(&outcome, &format!("{key}, killed at {at}"));
        }
    }
}
