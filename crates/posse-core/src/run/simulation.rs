//! Whole runs in simulated time, with posse killed at every place of the journal, before and after the entry is on disk.
//!
//! Agents, files and terminals go on while posse is dead; what it had begun is lost on its way or arrives. Whatever
//! happens, the run comes to the same end, no prompt is typed twice, no answer is lost, and no permission is accepted
//! that is not in the journal.

pub(super) mod world;

use super::*;
use crate::rounds::Key;
use world::{Kill, Moment, Outcome, Script, World};

/// A round that fails, a round that passes, permissions on the way.
fn script() -> Script {
    Script { failures: 1, permissions: 2, ..Script::default() }
}

fn play(script: &Script, kill: Option<Kill>, seed: u64) -> Outcome {
    World::new(script.clone(), kill, seed).play()
}

/// What must be the same, however often posse was killed.
fn answers(outcome: &Outcome) -> Vec<(Key, String)> {
    outcome.answers.clone()
}

#[track_caller]
fn check(outcome: &Outcome, undisturbed: &Outcome, what: &str) {
    assert_eq!(outcome.status, RunStatus::Passed, "{what}: {:#?}", outcome.told);
    assert_eq!(answers(outcome), answers(undisturbed), "{what}: other answers");
    for (terminal, prompts) in &outcome.prompts {
        // The line that names role, round and cycle: whatever else a second prompt might say, it would be the same task.
        let tasks: Vec<&str> = prompts.iter().filter_map(|prompt| prompt.lines().nth(1)).collect();
        for (at, task) in tasks.iter().enumerate() {
            assert!(!tasks[..at].contains(task), "{what}: {terminal} got a prompt twice: {task}");
        }
    }
    let written = outcome.told.iter().filter(|entry| matches!(entry, Entry::Accepting { .. })).count();
    assert!(outcome.accepts <= written, "{what}: {} accepts, {written} in the journal", outcome.accepts);
    assert!(matches!(outcome.told.last(), Some(Entry::Finished)), "{what}: it did not end");
}

#[test]
fn an_undisturbed_run_passes_in_the_second_round() {
    let outcome = play(&script(), None, 1);
    check(&outcome, &outcome, "undisturbed");
    let turns = outcome.told.iter().filter(|entry| matches!(entry, Entry::TurnBegun { .. })).count();
    assert_eq!(turns, 5 + 3, "two reviews, a test; then programmer, review and test again");
    assert_eq!(outcome.accepts, 2 * turns);
    assert_eq!(outcome.kills, 0);
}

#[test]
fn killed_at_every_entry_it_comes_to_the_same_end() {
    let undisturbed = play(&script(), None, 1);
    let entries = undisturbed.entries;
    assert!(entries > 50, "only {entries}");
    for at in 1..=entries {
        for moment in [Moment::Before, Moment::After] {
            for seed in 0..4 {
                let outcome = play(&script(), Some(Kill { at, moment, again: 0 }), seed);
                check(&outcome, &undisturbed, &format!("killed {moment:?} entry {at}, seed {seed}"));
                assert_eq!(outcome.kills, 1);
            }
        }
    }
}

#[test]
fn killed_again_and_again_it_comes_to_the_same_end() {
    let undisturbed = play(&script(), None, 1);
    for seed in 0..60 {
        // Coming back takes two or three entries; killed sooner it would never get anywhere.
        let kill = Kill { at: 1 + seed as usize % 7, moment: Moment::After, again: 5 + seed as usize % 11 };
        let outcome = play(&script(), Some(kill), seed);
        check(&outcome, &undisturbed, &format!("{kill:?}, seed {seed}"));
        assert!(outcome.kills > 3, "killed only {} times", outcome.kills);
    }
}

#[test]
fn an_agent_that_dies_stops_the_run_and_is_replaced_when_it_goes_on() {
    for key in Key::ALL {
        let outcome = play(&Script { dies: Some(key), ..script() }, None, 3);
        assert_eq!(outcome.status, RunStatus::Passed, "{key}");
        let stops: Vec<_> = (outcome.told.iter())
            .filter_map(
                |entry| if let Entry::Stopped { stop, why } = entry { Some((*stop, why.as_str())) } else { None },
            )
            .collect();
        assert!(matches!(stops[..], [(Stop::Turn, why)] if why.contains("is gone")), "{key}: {stops:?}");
        let lost = outcome.told.iter().filter(|entry| matches!(entry, Entry::TerminalLost { .. })).count();
        assert_eq!(lost, 1, "{key}");
    }
}

/// Everything at once: agents are killed, posse is killed, people answer, screens are blurred, and the agents leave at every
/// stop.
#[test]
fn whoever_is_killed_and_whoever_answers_it_comes_to_the_same_end() {
    let undisturbed = play(&script(), None, 1);
    let mut left = 0;
    for seed in 0..400 {
        let flag = |bit: u64| seed & bit != 0;
        let script =
            Script { murders: (seed % 4) as u32, person: flag(1), blurred: flag(2), cleanup: flag(4), ..script() };
        let kill =
            flag(8).then(|| Kill { at: 1 + seed as usize % 23, moment: Moment::After, again: 7 + seed as usize % 13 });
        let outcome = play(&script, kill, seed);
        check(&outcome, &undisturbed, &format!("{script:?}, {kill:?}, seed {seed}"));
        if script.cleanup {
            assert_eq!(outcome.left, 0, "{script:?}, {kill:?}, seed {seed}: {:#?}", outcome.told);
        }
        left += outcome.left;
    }
    assert!(left > 0, "nobody was told to leave, and all left");
}

#[test]
fn agents_on_their_way_out_are_given_nothing_to_do() {
    let outcome = play(&Script { dies: Some(Key::Programmer), cleanup: true, ..script() }, None, 3);
    assert_eq!((outcome.status, outcome.left), (RunStatus::Passed, 0));
    let leaving = outcome.told.iter().position(|entry| matches!(entry, Entry::Leaving { stop: Stop::Turn, .. }));
    let (before, after) = outcome.told.split_at(leaving.unwrap());
    let ready = |told: &[Entry]| -> Vec<_> {
        let ready =
            |entry: &Entry| if let Entry::TerminalReady { terminal, .. } = entry { Some(*terminal) } else { None };
        told.iter().filter_map(ready).collect()
    };
    let (old, new) = (ready(before), ready(after));
    assert_eq!((old.len(), new.len()), (5, 5), "all five are replaced");
    let given = after.iter().filter_map(|entry| match entry {
        Entry::TurnBegun { terminal, .. } => Some(*terminal),
        _ => None,
    });
    given.for_each(|terminal| assert!(new.contains(&terminal), "{terminal} was asked to leave"));
}

#[test]
fn a_failing_server_parks_the_run_and_the_turn_is_taken_up_again() {
    let outcome = play(&Script { fails_once: Some(Key::Programmer), ..script() }, None, 3);
    assert_eq!(outcome.status, RunStatus::Passed);
    let parked = outcome.told.iter().filter(|entry| matches!(entry, Entry::Parked { times: 1, .. })).count();
    assert_eq!(parked, 1);
    assert!(outcome.notices.contains(&"parked"), "{:?}", outcome.notices);
    let again = outcome.told.iter().find_map(|entry| match entry {
        Entry::TurnBegun { attempt: 2, text, .. } => Some(text.clone()),
        _ => None,
    });
    assert!(again.unwrap().contains("broke off"));
}

/// The model fails when the answer is written. Nobody is asked for it again, whenever posse is killed.
#[test]
fn an_answer_that_was_written_before_the_model_failed_is_used() {
    let undisturbed = play(&script(), None, 1);
    let check = |outcome: &Outcome, what: &str| {
        check(outcome, &undisturbed, what);
        let asked_again = outcome.prompts.values().flatten().any(|prompt| prompt.contains("broke off"));
        assert!(!asked_again, "{what}: {:#?}", outcome.told);
    };
    for key in Key::ALL {
        let failing = Script { fails_after: Some(key), ..script() };
        let outcome = play(&failing, None, 2);
        check(&outcome, &format!("{key}"));
        let parked = outcome.told.iter().filter(|entry| matches!(entry, Entry::Parked { .. })).count();
        assert_eq!(parked, 1, "{key}");
        for at in 1..=outcome.entries {
            let outcome = play(&failing, Some(Kill { at, moment: Moment::After, again: 0 }), at as u64);
            check(&outcome, &format!("{key}, killed at {at}"));
        }
    }
}
