//! How a run ends: after its verdict, or stopped on the way.

use super::ledger::{Leaving, Ledger, Place};
use super::machine::{Live, Run};
use super::mirror::mirror;
use super::{Effect, Entry, Step, StepOutcome, Stop};
use crate::rounds::Final;
use crate::turn::Notice;

impl Run {
    /// What comes after the verdict, one step at a time.
    pub(super) fn after(&mut self) {
        let Place::After(verdict) = self.ledger.place else { return };
        self.live = Live::Stepping;
        if let (Final::Pass, Some(step)) = (verdict, self.next_step()) {
            // It is done with the user's programs, name and keys, as they have them in their environment.
            if !self.can_start {
                let why =
                    "PASS; what comes after it is to be done, and only `posse loop --resume` knows its environment";
                return self.stop(Stop::Alone, why);
            }
            let before = self.ledger.snapshot.clone().flatten();
            return self.out.push(Effect::Step { step, before });
        }
        let leaves = self.ledger.spec.config.cleanup_on_exit;
        let terminals = self.ledger.terminals.values().copied().filter(|_| leaves).collect();
        (self.live, self.mirror_due) = (Live::Closing, false);
        let state = Some(mirror(&self.ledger, Some(verdict), self.wall));
        self.out.push(Effect::Close { terminals, state, over: true });
    }

    pub(super) fn next_step(&self) -> Option<Step> {
        let wishes = &self.ledger.spec.config.post_processing;
        let done = |step| self.ledger.steps.iter().find(|(done, _)| *done == step).map(|(_, outcome)| outcome);
        let archive = done(Step::OpenspecArchive);
        if wishes.openspec_archive && archive.is_none() {
            return Some(Step::OpenspecArchive);
        }
        // What could not be archived is not committed (LOOP-60).
        let archive_failed = matches!(archive, Some(StepOutcome::Failed(_)));
        (wishes.git_commit && !archive_failed && done(Step::GitCommit).is_none()).then_some(Step::GitCommit)
    }

    /// Stops. With agents that are to leave it does so when they have been asked: from then on they are no longer its own,
    /// or a run that is resumed at once would give a task to somebody who is on the way out.
    pub(super) fn stop(&mut self, stop: Stop, why: &str) {
        let clean = match stop {
            // Who comes with the environment finds everybody where they were.
            Stop::Alone => false,
            // Nothing was done yet: those that did start are of no use to anybody.
            Stop::Start if self.ledger.is_fresh() => true,
            _ => self.ledger.spec.config.cleanup_on_exit,
        };
        if clean && !self.ledger.terminals.is_empty() {
            self.record(Entry::Leaving { stop, why: why.to_owned() });
        } else {
            self.ledger.leaving = Some(Leaving { stop, why: why.to_owned(), terminals: Vec::new() });
        }
        self.close();
    }

    /// Requests the steps before a stop. If posse dies before they are done, the next daemon repeats them.
    pub(super) fn close(&mut self) {
        let Some(leaving) = &self.ledger.leaving else { return };
        let terminals = leaving.terminals.clone();
        // A run that never had its terminals leaves no state file behind (LOOP-14).
        let had_terminals = !self.ledger.is_fresh() || self.ledger.missing().is_empty();
        let state = had_terminals.then(|| mirror(&self.ledger, None, self.wall));
        (self.live, self.mirror_due) = (Live::Closing, false);
        self.out.push(Effect::Close { terminals, state, over: false });
    }

    pub(super) fn closed(&mut self) {
        self.live = Live::Resting;
        match (self.ledger.leaving.take(), &self.ledger.place) {
            (Some(Leaving { stop, why, .. }), _) => self.stopped(stop, &why),
            (None, Place::After(verdict)) => {
                let notice = verdict_notice(&self.ledger, *verdict);
                self.record(Entry::Finished);
                self.out.push(notice);
            }
            (None, _) => {}
        }
    }

    fn stopped(&mut self, stop: Stop, why: &str) {
        self.record(Entry::Stopped { stop, why: why.to_owned() });
        if stop != Stop::Asked {
            let id = self.ledger.spec.id;
            let over = self.ledger.status().is_over();
            // The rest may be of a screen, which is nothing to send around.
            let why = why.lines().next().unwrap_or_default();
            let text = if over { why.to_owned() } else { format!("{why}\nGo on with: posse loop --resume {id}") };
            let notice = Notice { priority: 4, title: format!("run {id} has stopped"), text };
            self.out.push(Effect::Notify { event: "stopped", notice });
        }
    }
}

fn verdict_notice(ledger: &Ledger, verdict: Final) -> Effect {
    let (id, rounds) = (ledger.spec.id, ledger.rounds.round());
    let (event, priority, word) = match verdict {
        Final::Pass => ("pass", 3, "PASS"),
        Final::Fail => ("fail", 4, "FAIL"),
    };
    let text = format!("{word} in round {rounds}, {}", ledger.spec.directory);
    Effect::Notify { event, notice: Notice { priority, title: format!("run {id}: {word}"), text } }
}
