//! Measures whether posse's statuses are right, with real agents, realistic model output, and a truth independent of
//! posse's rules.
//!
//! A case of `posse_sim::conformance` is played with one agent ([`run`]). The truth comes from the model server's log,
//! the keys sent, the processes, and a plain text for each dialog ([`truth`]). The statuses that posse reports are
//! compared with it 20 times a second ([`score`]). See docs/conformance.md.

pub mod readme;
pub mod replay;
pub mod report;
pub mod run;
pub mod score;
pub mod subject;
pub mod truth;
mod witness;
