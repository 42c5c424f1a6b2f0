use std::collections::BTreeSet;

use super::super::simulation::world;
use super::super::{Effect, HURRIED, Imported, Run, RunEvent};
use super::*;
use crate::status::StatusKind;
use crate::time::Mono;
use crate::turn::{AnswerFrom, Event, Look, Seen};

const TERMINAL: u32 = 0xa;

/// A run that is known by its state file only, in which the analyst had its prompt.
fn imported() -> Run {
    let mut spec = world::spec(false);
    let rules = Rules::new(&spec.config, false, Default::default());
    let rounds = Rounds::begin(rules, spec.prompt.clone(), Role::Analyst);
    let terminals = Role::ALL.into_iter().zip(TERMINAL..).map(|(role, n)| (role, TerminalId::from_random(n)));
    let in_flight = Some((Key::Analyst, TerminalId::from_random(TERMINAL)));
    spec.imported = Some(Imported { rounds, terminals: terminals.collect(), in_flight });
    Run::new(spec, Wall(0))
}

struct Driven {
    run: Run,
    done: Vec<Effect>,
    told: Vec<Entry>,
}

impl Driven {
    fn go(alive: &[u32]) -> Self {
        let alive: BTreeSet<TerminalId> = alive.iter().map(|n| TerminalId::from_random(*n)).collect();
        let mut driven = Self { run: imported(), done: Vec::new(), told: Vec::new() };
        driven.happens(RunEvent::Go { alive, adopted: BTreeMap::new(), caller: HURRIED });
        driven
    }

    fn happens(&mut self, happened: RunEvent) {
        self.done.extend(self.run.take(happened, Mono(Duration::from_secs(1)), Wall(1000)));
        self.told.extend(self.run.told().map(|(_, entry)| entry.clone()));
    }

    fn status(&mut self, kind: StatusKind) {
        let seen = Seen { kind: Some(kind), ..Seen::default() };
        self.happens(RunEvent::Status { terminal: TerminalId::from_random(TERMINAL), seen });
    }

    fn looks(&mut self, look: Look) {
        assert!(
            self.did(|effect| matches!(effect, Effect::LookAtFile { turn: 1, key: Key::Analyst })),
            "{:#?}",
            self.done
        );
        self.happens(RunEvent::Turn { turn: 1, event: Event::File(look) });
    }

    fn did(&self, what: impl Fn(&Effect) -> bool) -> bool {
        self.done.iter().any(what)
    }

    /// Nothing was typed, and no file put away.
    fn left_alone(&self) -> bool {
        !self.did(|effect| matches!(effect, Effect::Send { .. } | Effect::ClearStale { .. }))
    }

    fn answered(&self) -> bool {
        let answer = Entry::Answered { turn: 1, text: "done".into(), from: AnswerFrom::File };
        self.told.contains(&answer)
    }
}

/// LOOP-53: who is at it is waited for, not asked again.
#[test]
fn s_199_an_agent_that_is_still_busy_is_waited_for() {
    let mut driven = Driven::go(&[TERMINAL, TERMINAL + 1, TERMINAL + 2, TERMINAL + 3, TERMINAL + 4]);
    driven.status(StatusKind::Processing);
    assert!(driven.left_alone() && !driven.answered(), "{:#?}", driven.done);
    driven.status(StatusKind::Completed);
    driven.looks(Look::Ready("done".into()));
    assert!(driven.left_alone() && driven.answered(), "{:#?}", driven.done);
}

/// Its terminal may be another program's, or gone.
#[test]
fn s_200_an_answer_that_is_there_is_used() {
    let mut driven = Driven::go(&[]);
    driven.looks(Look::Ready("done\n".into()));
    assert!(driven.left_alone() && driven.answered(), "{:#?}", driven.done);
}

#[test]
fn without_agent_and_answer_another_one_is_asked() {
    let mut driven = Driven::go(&[]);
    driven.looks(Look::Absent);
    assert!(
        driven.did(|effect| matches!(effect, Effect::StartTerminal { role: Role::Analyst, .. })),
        "{:#?}",
        driven.done
    );
    assert!(!driven.answered());
}
