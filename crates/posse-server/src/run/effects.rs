//! Executors of effects that several kinds of runs have.

pub(crate) mod facts;
pub(crate) mod session;
pub(crate) mod transcript;
