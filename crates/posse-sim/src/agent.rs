//! A scripted agent: a TUI that looks like Claude Code or Codex and plays a scenario.
//!
//! It imitates what posse's detection reads: rows, glyphs, columns, titles, escape sequences, and measured quirks of
//! the keyboard. It does not imitate colours, menus or wording, and it does not prove that posse works with the real
//! tools; the tests with the real binaries do.
//!
//! [`run`] plays a scenario on the terminal of this process. `player` goes through the turns and steps, `keyboard` handles
//! keys, `panel` draws what is below the transcript. They reach the terminal, files and the clock only through `AgentHost`.

mod draft;
mod keyboard;
mod keys;
mod look;
mod paint;
mod panel;
mod player;
mod record;
mod report;
mod review_loop;
mod rows;
mod run;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod theatre;

pub use run::{AgentRunError, run};
