//! The common part of all durable runs.
//!
//! A run is its journal of inputs. Replaying the inputs in order, each at its recorded time, gives the same run and the
//! same list of outstanding effects. Effects are idempotent: after a crash the driver starts every outstanding effect
//! again. A run of the loop has effects that are not idempotent. Its first input brings evidence of their results, and
//! none is outstanding.
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
    /// The driver is ready to execute effects. Sent once to a new run.
    Started,
    /// The deadline may have passed.
    Tick,
    Stop(StopHow),
}

/// A run as a value. The driver journals each input before passing it in, and executes the returned effects.
pub trait Machine {
    type Input: From<Control>;
    type Effect: Clone;

    /// Applies an input and returns the effects to carry out. After the outcome every further input is ignored, but a
    /// stopped run of the loop can be resumed.
    fn handle(&mut self, input: Self::Input, now: Wall) -> Vec<Self::Effect>;

    fn progress(&self) -> &Progress<Self::Effect>;

    /// Returns the time of the next timer, if one is set. The driver sends a tick then.
    fn deadline(&self) -> Option<Wall>;

    /// Returns the requested effects without an answer, which start again after a crash.
    fn outstanding(&self) -> &[Self::Effect] {
        self.progress().outstanding()
    }

    /// Returns the outcome of the run and the reason.
    fn outcome(&self) -> Option<(RunOutcome, &str)> {
        self.progress().outcome()
    }

    /// Returns the usage limit that sessions wait for.
    fn hold(&self) -> Option<&Hold> {
        None
    }

    /// Returns the budgets and their spending.
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
