//! Going on after a stop or a crash. What was under way is decided from evidence.

use std::collections::{BTreeMap, BTreeSet};

use super::machine::{Failed, Live, Run};
use super::{Caller, Effect, Entry, Stop, TurnRecord};
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
        if self.status().is_over() {
            return;
        }
        let stopped = self.stopped.is_some();
        if !self.is_fresh() || !self.wanted.is_empty() {
            self.resumed();
        }
        if let Some(caller) = caller {
            self.heed(caller, stopped);
        }
        for (role, terminal) in adopted {
            self.terminal_ready(role, terminal);
        }
        let lost = self.terminals.iter().filter(|(_, terminal)| !alive.contains(terminal));
        for role in lost.map(|(role, _)| *role).collect::<Vec<_>>() {
            self.terminal_lost(role, "it was gone when the run went on");
        }
        // It was about to stop, and stops.
        if self.leaving.is_some() {
            return self.close();
        }
        let Some(record) = &self.record else {
            return if self.verdict().is_some() { self.after() } else { self.look_again() };
        };
        let (turn, key, terminal) = (record.turn, record.key, record.terminal);
        let (dispatching, sent) = (record.dispatching.is_some(), record.sent.is_some());
        match alive.contains(&terminal) {
            _ if record.answered => self.archive(),
            true if sent => self.wait(),
            true if dispatching => {
                self.watch(terminal);
                self.dispatch();
            }
            true => self.settle_at(terminal),
            false if dispatching => {
                self.live = Live::Salvaging;
                self.out.push(Effect::LookAtFile { turn, key });
            }
            // Nothing of it was ever sent.
            false => {
                self.record = None;
                self.go_between();
            }
        }
    }

    fn resumed(&mut self) {
        // A person has looked and said that it shall go on: the turn that failed begins anew, as if its prompt had been
        // sent again. (A crash is no such thing, and to be alone is put right by a program.)
        if self.stopped.take().is_some_and(|(stop, _)| stop != Stop::Alone) {
            (self.outages, self.limits) = (0, 0);
            if let Some(failed) = &mut self.failed {
                (failed.record.accepts, failed.record.human_told) = (0, false);
            }
            // While the run was stopped nobody waited for the answer, and nobody was told of questions.
            let at = self.wall;
            if let Some(turn) = self.turn_mut() {
                (turn.sent, turn.human_told) = (turn.sent.map(|_| at), false);
            }
        }
        // Whoever comes back cannot know what the agents still remember.
        Role::ALL.into_iter().for_each(|role| self.rounds.forget(role));
        self.tell(Entry::Resumed);
    }

    /// Goes on from between two turns. If the last one failed, its agent may be at it all the same, or its answer may be
    /// there: an agent that is asked a second time might do it twice, and what it wrote would be lost.
    pub(super) fn look_again(&mut self) {
        let asked = |failed: &&Failed| failed.record.sent.is_some() || failed.cause == Cause::Uncertain;
        let Some(Failed { record, .. }) = self.failed.as_ref().filter(asked) else {
            return self.go_between();
        };
        self.live = Live::Reconsidering;
        let (turn, key, terminal) = (record.turn, record.key, record.terminal);
        match self.terminals.get(&key.role()) == Some(&terminal) {
            true => self.watch(terminal),
            false => self.out.push(Effect::LookAtFile { turn, key }),
        }
    }

    pub(super) fn go_between(&mut self) {
        // Somebody who comes and says "go on" need not wait.
        if std::mem::take(&mut self.hurry) && self.hold.take().is_some() {
            self.say(Level::Info, "somebody asked for it: the model is tried again at once");
        }
        if let Some(hold) = &self.hold {
            self.live = Live::Parked { until: self.now + hold.until.since(self.wall) };
            return;
        }
        let commits = self.spec.config.post_processing.git_commit;
        // Without anybody there it stops below, and looks when somebody is.
        if self.is_fresh() && commits && self.snapshot.is_none() && self.can_start {
            self.live = Live::Snapshotting;
            return self.out.push(Effect::TakeSnapshot);
        }
        let missing = self.missing();
        if missing.is_empty() { self.advance() } else { self.start(missing) }
    }

    /// A turn failed, its agent lives. If it is at work or waits for an answer it is waited for; if the answer is there it is
    /// taken; otherwise the agent is asked to take the task up again.
    pub(super) fn reconsider(&mut self) {
        let Some(Failed { record, .. }) = &self.failed else { return self.go_between() };
        let (turn, key) = (record.turn, record.key);
        match self.seen.as_ref().and_then(|seen| seen.kind) {
            Some(StatusKind::Processing | StatusKind::WaitingUserAnswer) => {
                self.reopen(format!("the {} is still at it, and is waited for", key.role()));
                self.wait();
            }
            Some(_) => self.out.push(Effect::LookAtFile { turn, key }),
            None => {}
        }
    }

    fn reopen(&mut self, why: String) {
        self.hold = None;
        if let Some(Failed { record, .. }) = self.failed.take() {
            // Its time begins anew: somebody has decided that it is worth it.
            self.record = Some(TurnRecord { sent: Some(self.wall), ..record });
        }
        self.say(Level::Info, why);
    }

    /// Judges the response file of a turn that is not waited for: its terminal is gone, or it failed. If the answer is there
    /// all the same, it counts.
    pub(super) fn looked(&mut self, look: Look) {
        let salvaging = matches!(self.live, Live::Salvaging);
        let failed = self.failed.as_ref().map(|failed| &failed.record);
        let Some(record) = (if salvaging { self.turn() } else { failed }) else { return self.go_between() };
        let (turn, key, role) = (record.turn, record.key, record.key.role());
        match look {
            Look::Ready(text) => {
                if salvaging {
                    self.say(Level::Info, format!("the {role} is gone, but its answer is there and is used"));
                } else {
                    self.reopen(format!("the answer of the {role} has come after all"));
                }
                // As its turn would have: without what is around it.
                self.answered(text.trim().to_owned(), AnswerFrom::File);
            }
            // It may still be written.
            Look::Unsettled => self.out.push(Effect::LookAtFile { turn, key }),
            _ if salvaging => {
                let message = format!("the terminal of the {role} is gone");
                self.break_off(TurnError::new(Cause::Gone, message.clone()));
                if self.can_start { self.go_between() } else { self.stop(Stop::Turn, &message) }
            }
            _ => self.go_between(),
        }
    }
}
