//! What every durable run has in common, whatever it works on.
//!
//! A run is its journal of inputs. Replaying the inputs in order, each at its recorded time, gives the same run and the same
//! list of outstanding effects. Effects are idempotent: after a crash the driver starts every outstanding effect again. Where
//! they cannot be, as in a run of the loop, the first input brings evidence of what became of them, and none is outstanding.
//!
//! This module does no IO and has no clock.

pub mod hold;
pub mod notice;
pub mod progress;
pub mod retry;
#[cfg(test)]
pub(crate) mod simulation;
mod stop;

pub use stop::{RunOutcome, StopHow};

use self::hold::Hold;
use self::progress::Progress;
use crate::auto::messages as auto;
use crate::plan::budget::Level;
use crate::plan::machine as plan;
use crate::time::Wall;

/// An input that every run understands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// The driver is ready to carry out effects. Given once to a new run.
    Started,
    /// The deadline has passed, or may have.
    Tick,
    Stop(StopHow),
}

/// A run as a value. The driver journals each input before it hands it over, and carries out the effects that come back.
pub trait Machine {
    type Input: From<Control>;
    type Effect: Clone;

    /// Takes in what happened and returns what is to be done. A machine that has an outcome ignores every further input, but a
    /// stopped run of the loop can be resumed.
    fn handle(&mut self, input: Self::Input, now: Wall) -> Vec<Self::Effect>;

    fn progress(&self) -> &Progress<Self::Effect>;

    /// The time of the next timer, if one is set. The driver hands over a tick then.
    fn deadline(&self) -> Option<Wall>;

    /// The effects that were requested, have not been answered yet, and are to be started again after a crash.
    fn outstanding(&self) -> &[Self::Effect] {
        self.progress().outstanding()
    }

    /// How the run ended, and why.
    fn outcome(&self) -> Option<(RunOutcome, &str)> {
        self.progress().outcome()
    }

    /// The usage limit that sessions wait for.
    fn hold(&self) -> Option<&Hold> {
        None
    }

    /// The limits on money, and what is spent of them.
    fn levels(&self) -> &[Level] {
        &[]
    }
}

impl From<Control> for plan::Event {
    fn from(control: Control) -> Self {
        match control {
            Control::Started => Self::Started,
            Control::Tick => Self::Time,
            Control::Stop(how) => Self::Stop(how),
        }
    }
}

impl From<Control> for auto::Event {
    fn from(control: Control) -> Self {
        match control {
            Control::Started => Self::Started,
            Control::Tick => Self::Time,
            Control::Stop(how) => Self::Stop(how),
        }
    }
}
