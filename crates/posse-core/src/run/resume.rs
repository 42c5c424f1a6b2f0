//! Resumes after a stop or a crash. Pending work is decided from evidence.

use std::collections::{BTreeMap, BTreeSet};

use super::machine::{Failed, Live, Run};
use super::{Caller, Effect, Entry, Stop, TurnEffect, TurnRecord};
use crate::ids::TerminalId;
use crate::review_loop::Role;
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
        if stopped || !self.is_fresh() || !self.wanted.is_empty() {
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
        // The run was about to stop, and stops.
        if self.leaving.is_some() {
            return self.close();
        }
        let Some(record) = &self.record else {
            return if self.verdict().is_some() { self.after() } else { self.look_again() };
        };
        let (key, terminal) = (record.key, record.terminal);
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
                let message = format!("the terminal of the {} is gone", key.role());
                let begun = record.begun;
                self.break_off(TurnError::new(Cause::Gone, message));
                // The agent died while no daemon was running.
                self.failed.iter_mut().for_each(|failed| failed.lived_until = begun);
                self.look_again();
            }
            // No part of the turn was ever sent.
            false => {
                self.record = None;
                self.go_between();
            }
        }
    }

    fn resumed(&mut self) {
        // A person reviewed and resumed the run: the failed turn starts again, as if its prompt had been resent. A
        // crash or a missing client does not count as such a decision.
        self.progress.resume();
        if self.stopped.take().is_some_and(|stop| stop != Stop::Alone) {
            (self.outages, self.limits) = (0, 0);
            if let Some(failed) = &mut self.failed {
                (failed.record.accepts, failed.record.human_told) = (0, false);
            }
            // While the run was stopped, no time was counted and no questions were reported.
            let at = self.progress.now;
            if let Some(turn) = self.turn_mut() {
                (turn.sent, turn.human_told) = (turn.sent.map(|_| at), false);
            }
        }
        // The new caller cannot know what the agents remember.
        Role::ALL.into_iter().for_each(|role| self.rounds.forget(role));
        self.tell(Entry::Resumed);
    }

    /// Continues between two turns. After a failed turn the agent may still be working, or its answer may exist. A
    /// repeated prompt might do the work twice and lose that answer.
    pub(super) fn look_again(&mut self) {
        let asked = |Failed { record, cause, .. }: &&Failed| {
            let perhaps = matches!(cause, Cause::Uncertain | Cause::Gone) && record.dispatching.is_some();
            record.sent.is_some() || perhaps
        };
        let Some(Failed { record, .. }) = self.failed.as_ref().filter(asked) else {
            return self.go_between();
        };
        self.live = Live::Reconsidering;
        let (key, terminal) = (record.key, record.terminal);
        match self.terminals.get(&key.role()) == Some(&terminal) {
            true => self.watch(terminal),
            false => self.look_for_answer(),
        }
    }

    pub(super) fn go_between(&mut self) {
        // A person who resumes the run need not wait.
        if std::mem::take(&mut self.hurry) && self.hold.take().is_some() {
            self.say(Level::Info, "somebody asked for it: the model is tried again at once");
        }
        if let Some(hold) = &self.hold {
            self.live = Live::Parked { until: self.now + hold.until.since(self.progress.now) };
            return;
        }
        let commits = self.spec.config.post_processing.git_commit;
        // Without a client the run stops below, and checks when a client connects.
        if self.is_fresh() && commits && self.snapshot.is_none() && self.can_start {
            self.live = Live::Snapshotting;
            return self.progress.request(Effect::TakeSnapshot);
        }
        let missing = self.missing();
        if missing.is_empty() { self.advance() } else { self.start(missing) }
    }

    /// Reviews a failed turn whose agent is alive. A working or asking agent is awaited, and an existing answer is
    /// accepted. Otherwise the agent is asked to resume the task.
    pub(super) fn reconsider(&mut self) {
        let Some(Failed { record, .. }) = &self.failed else { return self.go_between() };
        let key = record.key;
        match self.seen.as_ref().and_then(|seen| seen.kind) {
            Some(StatusKind::Processing | StatusKind::WaitingUserAnswer) => {
                self.reopen(format!("the {} is still at it, and is waited for", key.role()));
                self.wait();
            }
            Some(_) => self.look_for_answer(),
            None => {}
        }
    }

    fn reopen(&mut self, why: String) {
        self.hold = None;
        if let Some(Failed { record, .. }) = self.failed.take() {
            // The turn's time starts again, because a person decided to resume it.
            self.record = Some(TurnRecord { sent: Some(self.progress.now), ..record });
        }
        self.say(Level::Info, why);
    }

    /// Handles an agent of a failed turn that exited between the check and the watch.
    pub(super) fn gone_again(&mut self, why: String) {
        let Some(Failed { record, lived_until, .. }) = &mut self.failed else { return self.go_between() };
        *lived_until = self.progress.now;
        let role = record.key.role();
        self.terminal_lost(role, why);
        self.look_for_answer();
    }

    /// Checks whether the failed turn left an answer.
    pub(super) fn look_for_answer(&mut self) {
        let Some(Failed { record, lived_until, .. }) = &self.failed else { return self.go_between() };
        // The terminal of an imported turn belongs to another program, and may be alive.
        let gone = self.terminals.get(&record.key.role()) != Some(&record.terminal) && !record.text.is_empty();
        let lived_until = gone.then_some(*lived_until);
        let look = Effect::Turn(Box::new(record.clone()), TurnEffect::LookAtFile { lived_until });
        self.progress.request(look);
    }

    /// Judges the response file of a failed turn. An existing answer counts.
    pub(super) fn looked(&mut self, look: Look) {
        let Some(Failed { record, .. }) = &self.failed else { return self.go_between() };
        let key = record.key;
        match look {
            Look::Ready(text) => {
                self.reopen(format!("the answer of the {} has come after all", key.role()));
                // Trimmed, as in a regular turn.
                self.answered(text.trim().to_owned(), AnswerFrom::File);
            }
            // A write may be in progress.
            Look::Unsettled => self.look_for_answer(),
            _ => self.go_between(),
        }
    }
}
