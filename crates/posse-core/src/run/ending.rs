//! How a run ends: after its verdict, or stopped on the way.

use super::ledger::{Leaving, Ledger, Place};
use super::machine::{Live, Run};
use super::{Effect, Entry, Step, StepOutcome, Stop};
use crate::ids::TerminalId;
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
        let terminals: Vec<TerminalId> = self.ledger.terminals.values().copied().collect();
        if self.ledger.spec.config.cleanup_on_exit && !terminals.is_empty() {
            return self.leave(terminals);
        }
        self.finish(verdict);
    }

    /// Everything that comes after the verdict is done.
    pub(super) fn finish(&mut self, verdict: Final) {
        self.out.push(super::mirror::mirror(&self.ledger, Some(verdict), self.wall));
        self.out.push(Effect::ArchiveState);
        self.record(Entry::Finished);
        self.out.push(verdict_notice(&self.ledger, verdict));
        self.live = Live::Resting;
        self.out.push(Effect::Rest);
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

    /// Asks these to leave. What follows waits until they have been asked: posse may die on the way, and nobody would ever
    /// come back to them.
    pub(super) fn leave(&mut self, terminals: Vec<TerminalId>) {
        self.live = Live::Leaving;
        self.out.push(Effect::EndTerminals(terminals));
    }

    pub(super) fn terminals_asked(&mut self) {
        match (self.ledger.leaving.clone(), &self.ledger.place) {
            (Some(Leaving { stop, why, .. }), _) => self.stop_now(stop, &why),
            (None, Place::After(verdict)) => self.finish(*verdict),
            (None, _) => {}
        }
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
            let terminals = self.ledger.leaving.iter().flat_map(|leaving| leaving.terminals.clone()).collect();
            return self.leave(terminals);
        }
        self.stop_now(stop, why);
    }

    pub(super) fn stop_now(&mut self, stop: Stop, why: &str) {
        // A run that never had its terminals leaves no state file behind (LOOP-14). Otherwise it is written before anybody
        // hears of the stop: who waits for that finds it as it is to be.
        if !self.ledger.is_fresh() || self.ledger.missing().is_empty() {
            self.mirror();
        }
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
        self.live = Live::Resting;
        self.out.push(Effect::Rest);
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

#[cfg(test)]
mod tests;
