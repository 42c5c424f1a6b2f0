//! Going on after a stop or a crash. What was under way is decided from evidence.

use std::collections::{BTreeMap, BTreeSet};

use super::ledger::{Place, elapsed};
use super::machine::{Effect, Live, Run, runtime};
use super::{Entry, Stop};
use crate::ids::TerminalId;
use crate::rounds::Role;
use crate::time::{Mono, Wall};
use crate::turn::{AnswerFrom, Cause, Level, Look, TurnError};

impl Run {
    /// Begins, or goes on.
    pub(super) fn go(
        &mut self,
        alive: &BTreeSet<TerminalId>,
        adopted: BTreeMap<Role, TerminalId>,
        now: Mono,
        wall: Wall,
    ) {
        if !matches!(self.live, Live::Resting) || self.ledger.status().is_over() {
            return;
        }
        if !self.ledger.is_fresh() || !self.ledger.wanted.is_empty() {
            self.record(Entry::Resumed, wall);
        }
        for (role, terminal) in adopted {
            self.record(Entry::TerminalReady { role, terminal }, wall);
        }
        let lost: Vec<Role> = (self.ledger.terminals.iter())
            .filter(|(_, terminal)| !alive.contains(terminal))
            .map(|(role, _)| *role)
            .collect();
        for role in lost {
            self.record(Entry::TerminalLost { role, why: "it was gone when the run went on".into() }, wall);
        }
        match self.ledger.place.clone() {
            Place::Between => self.go_between(now, wall),
            Place::Turn(turn) if alive.contains(&turn.terminal) => {
                self.seen = None;
                match (turn.dispatching, turn.sent) {
                    (None, _) => {
                        self.live = Live::Settling { since: now, told: false };
                        self.out.push(Effect::Watch(turn.terminal));
                    }
                    (Some(_), None) => {
                        self.out.push(Effect::Watch(turn.terminal));
                        self.dispatch();
                    }
                    (Some(_), Some(_)) => self.wait(now, wall),
                }
            }
            Place::Turn(turn) if turn.dispatching.is_some() => {
                self.live = Live::Salvaging;
                self.out.push(Effect::LookAtFile { turn: turn.turn, key: turn.key });
            }
            // Nothing of it was ever sent.
            Place::Turn(turn) => {
                let why = "its terminal was gone before the prompt was sent".to_owned();
                self.record(Entry::Unsent { turn: turn.turn, why }, wall);
                self.go_between(now, wall);
            }
            Place::Unarchived { .. } => self.archive(wall),
            Place::After(_) => self.after(wall),
            Place::Over(_) => {}
        }
    }

    fn go_between(&mut self, now: Mono, wall: Wall) {
        // Somebody who comes and says "go on" need not wait.
        if self.can_start && self.ledger.parked.is_some() {
            self.record(Entry::Unparked, wall);
        }
        if let Some(until) = self.ledger.parked {
            self.live = Live::Parked { until: now + elapsed(wall, until) };
            return;
        }
        let missing = self.ledger.missing();
        if missing.is_empty() { self.advance(now, wall) } else { self.start(missing, wall) }
    }

    /// The terminal of the turn is gone. If the answer is there all the same, it counts.
    pub(super) fn salvaged(&mut self, look: Look, now: Mono, wall: Wall) {
        let Some(record) = self.ledger.turn() else { return };
        let (turn, role) = (record.turn, record.key.role());
        match look {
            Look::Ready(text) => {
                self.say(Level::Info, format!("the {role} is gone, but its answer is there and is used"), wall);
                self.record(Entry::Answered { turn, text, from: AnswerFrom::File }, wall);
                self.archive(wall);
            }
            // Somebody may still be writing it.
            Look::Unsettled => {
                let key = record.key;
                self.out.push(Effect::LookAtFile { turn, key });
            }
            _ => {
                let message = format!("the terminal of the {role} is gone");
                let TurnError { kind, cause, message } = runtime(Cause::Gone, message);
                self.record(Entry::TurnFailed { turn, kind, cause, message: message.clone() }, wall);
                if self.can_start { self.go_between(now, wall) } else { self.stop(Stop::Turn, &message, wall) }
            }
        }
    }
}
