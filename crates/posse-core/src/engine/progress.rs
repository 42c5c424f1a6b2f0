//! The clock, the effects and the end of a run.

use super::{RunOutcome, StopHow};
use crate::time::Wall;

/// The state that every run keeps beside its jobs.
#[derive(Clone, Debug)]
pub struct Progress<E> {
    /// The time of the last input.
    pub now: Wall,
    pub stop: Option<StopHow>,
    outcome: Option<(RunOutcome, String)>,
    outstanding: Vec<E>,
    effects: Vec<E>,
}

impl<E> Default for Progress<E> {
    fn default() -> Self {
        Self { now: Wall(i64::MIN), stop: None, outcome: None, outstanding: Vec::new(), effects: Vec::new() }
    }
}

impl<E: Clone> Progress<E> {
    pub fn outcome(&self) -> Option<(RunOutcome, &str)> {
        self.outcome.as_ref().map(|(outcome, reason)| (*outcome, reason.as_str()))
    }

    pub fn is_over(&self) -> bool {
        self.outcome.is_some()
    }

    /// Ends the run and requests `effect`, which reports the end.
    pub fn finish(&mut self, outcome: RunOutcome, reason: String, effect: E) {
        self.end(outcome, reason);
        self.effects.push(effect);
    }

    /// Ends the run.
    pub fn end(&mut self, outcome: RunOutcome, reason: String) {
        self.outcome = Some((outcome, reason));
    }

    /// Continues a run that had stopped.
    pub fn resume(&mut self) {
        self.outcome = None;
    }

    /// Requests a stop. A milder request does not replace a stricter one.
    pub fn request_stop(&mut self, how: StopHow) {
        self.stop = self.stop.max(Some(how));
    }

    /// Returns the next of these times. Times in the past were handled already.
    pub fn next_timer(&self, timers: impl Iterator<Item = Wall>) -> Option<Wall> {
        timers.filter(|at| *at > self.now && !self.is_over()).min()
    }

    /// Returns the requested effects without an answer.
    pub fn outstanding(&self) -> &[E] {
        &self.outstanding
    }

    pub fn request(&mut self, effect: E) {
        self.effects.push(effect);
    }

    /// Drops the outstanding effects that an input answers. Returns false if there is none: the answer is late or
    /// repeated.
    pub fn settle(&mut self, is_answered: impl Fn(&E) -> bool) -> bool {
        let before = self.outstanding.len();
        self.outstanding.retain(|effect| !is_answered(effect));
        self.outstanding.len() < before
    }

    /// Returns the effects requested since the last input. Effects that expect an answer become outstanding.
    pub fn take_effects(&mut self, has_answer: impl Fn(&E) -> bool) -> Vec<E> {
        let effects = std::mem::take(&mut self.effects);
        self.outstanding.extend(effects.iter().filter(|effect| has_answer(effect)).cloned());
        effects
    }
}
