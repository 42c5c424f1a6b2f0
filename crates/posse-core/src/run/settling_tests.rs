//! What an agent may be when its prompt is due.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::simulation::world::spec;
use super::*;
use crate::ids::TerminalId;
use crate::rounds::Role;
use crate::status::StatusKind::{self, Completed, Error, Idle, Processing, WaitingUserAnswer};
use crate::time::{Mono, Wall};
use crate::turn::Seen;

/// What becomes of the prompt.
fn news(run: &mut Run, event: RunEvent, now: Mono) -> Vec<String> {
    let effects = run.take(event, now, Wall(0));
    let said = run.told().filter_map(|(_, entry)| match entry {
        Entry::TurnFailed { message: text, .. } | Entry::Said { text, .. } => Some(text.clone()),
        _ => None,
    });
    let sent = effects.iter().filter(|effect| matches!(effect, Effect::ClearStale { .. })).map(|_| "sent".to_owned());
    said.chain(sent).collect()
}

/// The terminal of the first turn, as it is at these seconds after the prompt was due. In the end: what became of it.
#[track_caller]
fn check(seen: &[(u64, StatusKind)], expected: &str) {
    let mut run = Run::new(spec(false), Wall(0));
    let terminal = TerminalId::from_random(7);
    let go = RunEvent::Go { alive: BTreeSet::new(), adopted: BTreeMap::new(), caller: HURRIED };
    run.take(go, Mono(Duration::ZERO), Wall(0));
    for role in Role::ALL {
        run.take(RunEvent::TerminalStarted { role, terminal }, Mono(Duration::ZERO), Wall(0));
    }
    let mut happened = Vec::new();
    for (second, kind) in seen {
        let now = Mono(Duration::from_secs(*second));
        while let Some(due) = run.due().filter(|due| *due <= now) {
            happened.extend(news(&mut run, RunEvent::Time, due));
        }
        let seen = Seen {
            shown: Vec::new(),
            kind: Some(*kind),
            waiting: None,
            question: None,
            plain_yes: false,
            epoch: *second,
            reason: "rule x".into(),
            words: None,
            unproven: false,
        };
        happened.extend(news(&mut run, RunEvent::Status { terminal, seen }, now));
    }
    let outcome = happened.pop().unwrap_or_else(|| "it waits".into());
    assert!(outcome.contains(expected), "{seen:?}: {outcome}");
}

#[test]
fn a_prompt_waits_for_a_quiet_terminal() {
    check(&[(0, Idle)], "sent");
    check(&[(0, Processing), (3, Completed)], "sent");
    check(&[(0, Processing), (9, Processing)], "it waits");
    check(&[(0, Processing), (10, Processing)], "still busy");
    // A screen that is being drawn anew looks like an error for a moment.
    check(&[(0, Error)], "it waits");
    check(&[(0, Error), (4, Idle)], "sent");
    check(&[(0, Error), (10, Error)], "ERROR state: rule x");
    check(&[(0, WaitingUserAnswer), (9, Idle)], "sent");
    check(&[(0, WaitingUserAnswer), (10, WaitingUserAnswer)], "a prompt is not typed into a question");
    // Each question has its time, however long the agent was busy before.
    check(&[(0, Processing), (60, WaitingUserAnswer), (65, Idle)], "sent");
    check(
        &[(0, Processing), (60, WaitingUserAnswer), (71, WaitingUserAnswer)],
        "a prompt is not typed into a question",
    );
}

/// Its answer was taken after all, and the model's failure is still on its screen.
#[test]
fn an_agent_that_stands_at_its_prompt_after_a_failure_of_the_model_is_given_its_next_task() {
    let mut run = Run::new(spec(false), Wall(0));
    let go = RunEvent::Go { alive: BTreeSet::new(), adopted: BTreeMap::new(), caller: HURRIED };
    run.take(go, Mono::default(), Wall(0));
    for (nth, role) in Role::ALL.into_iter().enumerate() {
        let terminal = TerminalId::from_random(nth as u32);
        run.take(RunEvent::TerminalStarted { role, terminal }, Mono::default(), Wall(0));
    }
    let terminal = run.ledger().turn().unwrap().terminal;
    let words = Some("● API Error: 529 Overloaded\n".to_owned());
    let seen = Seen { kind: Some(Error), words, ..Seen::default() };
    let next = run.take(RunEvent::Status { terminal, seen }, Mono::default(), Wall(0));
    assert!(matches!(next[..], [Effect::ClearStale { .. }]), "{next:?}");
}
