//! A scripted agent TUI. It looks like Claude Code or Codex and does what a scenario file says: thinks,
//! streams, asks, writes files, crashes. The demo of posse and its tests run it instead of the real thing,
//! because it needs no account, takes no time and does the same every time.
//!
//! It imitates what our detection looks at: rows, glyphs, columns, titles, escape sequences, and the measured
//! quirks of the keyboard. It does not imitate colours, menus or the wording of the real tools, and it is no
//! proof that posse works with them; the tests with the real binaries are.
//!
//! [`Scenario::parse`] reads a file, [`run`] plays it on the terminal of this process. Between the two,
//! [`Stage`] is the whole actor as a value that is fed events and time, for tests without a process.

mod keys;
mod look;
mod paint;
mod record;
mod rounds;
mod rows;
mod run;
mod scenario;
mod stage;
#[cfg(test)]
mod theatre;
mod time;
mod transcript;

pub use look::Look;
pub use record::{By, Ignored, Outcome, Record, Witness, hash};
pub use rounds::{Count, Tally, TurnKey, tally_file};
pub use rows::Size;
pub use run::{RunError, run};
pub use scenario::{
    Answer, Ask, AskKind, BusyTitle, CtrlU, Failure, Flood, HowLong, LoopPlay, Oddity, PlayKind, Repeat, Scenario,
    ScenarioError, SelfReport, Step, Stream, Think, Times, Tool, Turn, Verdict, Write, WriteHow,
};
pub use stage::{Effect, Event, Stage};
pub use time::Mono;

/// Scenarios that come with the actor, as file text.
pub mod scenarios {
    /// Claude look: works forever, streams a little now and then.
    pub const BUSY: &str = include_str!("../scenarios/busy.toml");
    /// Claude look: works for a moment, then asks for a permission and waits; finishes when it gets it.
    pub const ASKING: &str = include_str!("../scenarios/asking.toml");
    /// Codex look, else like [`ASKING`].
    pub const CODEX_ASKING: &str = include_str!("../scenarios/codex-asking.toml");
}
