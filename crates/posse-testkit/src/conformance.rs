//! Is the status right? Real agents, real models' words, and a truth that does not come from our own rules.
//!
//! A case of `posse_sim::conformance` is played with one agent ([`run`]). TruthEvent really happened is known from the
//! model server's log, the keys we sent, the processes, and a plain text for each dialog ([`truth`]). TruthEvent posse told
//! meanwhile is compared with that, 20 times a second ([`score`]). See docs/conformance.md.

pub mod readme;
pub mod replay;
pub mod report;
pub mod run;
pub mod score;
pub mod subject;
pub mod truth;
mod witness;
