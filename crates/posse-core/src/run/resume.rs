//! Going on after a stop or a crash. What was under way is decided from evidence.

use std::collections::{BTreeMap, BTreeSet};

use super::ledger::{Failed, Place, elapsed};
use super::machine::{Live, Run};
use super::{Caller, Effect, Entry, Stop};
use crate::ids::TerminalId;
use crate::rounds::Role;
use crate::status::StatusKind;
use crate::turn::{AnswerFrom, Cause, Level, Look, TurnError};

impl Run {
    /// Begins or resumes.
    pub(super) fn go(
        &mut self,
        alive: &BTreeSet<TerminalId>,
        adopted: BTreeMap<Role, TerminalId>,
        caller: Option<Caller>,
    ) {
        if self.ledger.status().is_over() {
            return;
        }
        let stopped = self.ledger.stopped.is_some();
        if !self.ledger.is_fresh() || !self.ledger.wanted.is_empty() {
            self.record(Entry::Resumed);
        }
        if let Some(caller) = caller {
            self.heed(caller, stopped);
        }
        for (role, terminal) in adopted {
            self.record(Entry::TerminalReady { role, terminal });
        }
        let lost: Vec<Role> = (self.ledger.terminals.iter())
            .filter(|(_, terminal)| !alive.contains(terminal))
            .map(|(role, _)| *role)
            .collect();
        for role in lost {
            self.record(Entry::TerminalLost { role, why: "it was gone when the run went on".into() });
        }
        // It was about to stop, and stops.
        if self.ledger.leaving.is_some() {
            return self.close();
        }
        match self.ledger.place.clone() {
            Place::Between => self.look_again(),
            Place::Turn(turn) if alive.contains(&turn.terminal) => match (turn.dispatching, turn.sent) {
                (None, _) => self.settle_at(turn.terminal),
                (Some(_), None) => {
                    self.watch(turn.terminal);
                    self.dispatch();
                }
                (Some(_), Some(_)) => self.wait(),
            },
            Place::Turn(turn) if turn.dispatching.is_some() => {
                self.live = Live::Salvaging;
                self.out.push(Effect::LookAtFile { turn: turn.turn, key: turn.key });
            }
            // Nothing of it was ever sent.
            Place::Turn(turn) => {
                let why = "its terminal was gone before the prompt was sent".to_owned();
                self.record(Entry::Unsent { turn: turn.turn, why });
                self.go_between();
            }
            Place::Unarchived { .. } => self.archive(),
            Place::After(_) => self.after(),
            Place::Over(_) => {}
        }
    }

    /// Goes on from between two turns. If the last one failed, its agent may be at it all the same, or its answer may be
    /// there: an agent that is asked a second time might do it twice, and what it wrote would be lost.
    pub(super) fn look_again(&mut self) {
        let asked = |failed: &&Failed| failed.record.sent.is_some() || failed.cause == Cause::Unreachable;
        let Some(Failed { record, .. }) = self.ledger.failed.as_ref().filter(asked) else {
            return self.go_between();
        };
        self.live = Live::Reconsidering;
        let (turn, key, terminal) = (record.turn, record.key, record.terminal);
        match self.ledger.terminals.get(&key.role()) == Some(&terminal) {
            true => self.watch(terminal),
            false => self.out.push(Effect::LookAtFile { turn, key }),
        }
    }

    pub(super) fn go_between(&mut self) {
        // Somebody who comes and says "go on" need not wait.
        if std::mem::take(&mut self.hurry) && self.ledger.parked.is_some() {
            self.say(Level::Info, "somebody asked for it: the model is tried again at once");
            self.record(Entry::Unparked);
        }
        if let Some(until) = self.ledger.parked {
            self.live = Live::Parked { until: self.now + elapsed(self.wall, until) };
            return;
        }
        let commits = self.ledger.spec.config.post_processing.git_commit;
        // Without anybody there it stops below, and looks when somebody is.
        if self.ledger.is_fresh() && commits && self.ledger.snapshot.is_none() && self.can_start {
            self.live = Live::Snapshotting;
            return self.out.push(Effect::TakeSnapshot);
        }
        let missing = self.ledger.missing();
        if missing.is_empty() { self.advance() } else { self.start(missing) }
    }

    /// A turn failed, its agent lives. If it is at work or waits for an answer it is waited for; if the answer is there it is
    /// taken; otherwise the agent is asked to take the task up again.
    pub(super) fn reconsider(&mut self) {
        let Some(failed) = &self.ledger.failed else { return self.go_between() };
        let (turn, key) = (failed.record.turn, failed.record.key);
        match self.seen.as_ref().and_then(|seen| seen.kind) {
            Some(StatusKind::Processing | StatusKind::WaitingUserAnswer) => {
                self.record(Entry::Reopened { turn });
                self.wait();
            }
            Some(_) => self.out.push(Effect::LookAtFile { turn, key }),
            None => {}
        }
    }

    /// Judges the response file of a turn that is not waited for: its terminal is gone, or it failed. If the answer is there
    /// all the same, it counts.
    pub(super) fn looked(&mut self, look: Look) {
        let salvaging = matches!(self.live, Live::Salvaging);
        let failed = || self.ledger.failed.as_ref().map(|failed| &failed.record);
        let Some(record) = (if salvaging { self.ledger.turn() } else { failed() }) else { return self.go_between() };
        let (turn, key, role) = (record.turn, record.key, record.key.role());
        match look {
            Look::Ready(text) => {
                if salvaging {
                    self.say(Level::Info, format!("the {role} is gone, but its answer is there and is used"));
                } else {
                    self.say(Level::Info, format!("the answer of the {role} has come after all"));
                    self.record(Entry::Reopened { turn });
                }
                // As its turn would have: without what is around it.
                self.record(Entry::Answered { turn, text: text.trim().to_owned(), from: AnswerFrom::File });
                self.archive();
            }
            // It may still be written.
            Look::Unsettled => self.out.push(Effect::LookAtFile { turn, key }),
            _ if salvaging => {
                let message = format!("the terminal of the {role} is gone");
                let TurnError { kind, cause, message } = TurnError::runtime(Cause::Gone, message);
                self.record(Entry::TurnFailed { turn, kind, cause, message: message.clone() });
                if self.can_start { self.go_between() } else { self.stop(Stop::Turn, &message) }
            }
            _ => self.go_between(),
        }
    }
}
