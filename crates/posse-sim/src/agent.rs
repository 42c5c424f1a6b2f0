//! A scripted agent: a TUI that looks like Claude Code or Codex and plays a scenario.
//!
//! It imitates what posse's detection reads: rows, glyphs, columns, titles, escape sequences, and measured quirks of
//! the keyboard. It does not imitate colours, menus or wording, and it does not prove that posse works with the real
//! tools; the tests with the real binaries do.
//!
//! [`run`] plays a scenario on the terminal of this process. `ScriptedAgent` is the agent as a value that takes input
//! and time.

mod keys;
mod look;
mod machine;
mod paint;
mod record;
mod review_loop;
mod rows;
mod run;
#[cfg(test)]
mod theatre;
mod transcript;

pub use run::{AgentRunError, run};
