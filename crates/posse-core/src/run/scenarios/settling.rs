//! The states of an agent when its prompt is due.

use super::*;
use StatusKind::{Completed, Error, Idle, Processing, WaitingUserAnswer};

/// Sets the first turn's terminal to each status at its second after the prompt was due, and checks the result.
#[track_caller]
fn check(seen: &[(u64, StatusKind)], expected: &str) {
    let mut bench = play("{}", "started");
    bench.told.clear();
    let (due, mut is_sent) = (bench.now, false);
    for (second, kind) in seen {
        let now = due + Duration::from_secs(*second);
        while let Some(timer) = bench.run.due().filter(|timer| timer.0 <= now) {
            bench.now = timer.0;
            bench.happens(RunEvent::Time);
        }
        bench.now = now;
        let seen = Seen { kind: Some(*kind), epoch: *second, reason: "rule x".into(), ..Seen::default() };
        is_sent |= bench.happens(RunEvent::Status { terminal: terminal(0), seen }).contains(&"clear stale".into());
    }
    let told = bench.told.iter().rev().find_map(|entry| match entry {
        Entry::TurnFailed { message: text, .. } | Entry::Said { text, .. } => Some(text.as_str()),
        _ => None,
    });
    let outcome = if is_sent { "sent" } else { told.unwrap_or("it waits") };
    assert!(outcome.contains(expected), "{seen:?}: {outcome}");
}

#[test]
fn a_prompt_waits_for_a_quiet_terminal() {
    check(&[(0, Idle)], "sent");
    check(&[(0, Processing), (3, Completed)], "sent");
    check(&[(0, Processing), (9, Processing)], "it waits");
    check(&[(0, Processing), (10, Processing)], "still busy");
    // A redraw looks like an error for a moment.
    check(&[(0, Error)], "it waits");
    check(&[(0, Error), (4, Idle)], "sent");
    check(&[(0, Error), (10, Error)], "ERROR state: rule x");
    check(&[(0, WaitingUserAnswer), (9, Idle)], "sent");
    let question = "a prompt is not typed into a question";
    check(&[(0, WaitingUserAnswer), (10, WaitingUserAnswer)], question);
    // Each question has its own time limit, however long the agent was busy before.
    check(&[(0, Processing), (60, WaitingUserAnswer), (65, Idle)], "sent");
    check(&[(0, Processing), (60, WaitingUserAnswer), (71, WaitingUserAnswer)], question);
}

/// Its answer was accepted, but the model's failure is still on its screen.
#[test]
fn an_agent_that_stands_at_its_prompt_after_a_failure_of_the_model_is_given_its_next_task() {
    play("{}", "started\nerror ● API Error: 529 Overloaded -> clear stale");
}
