//! Plans: tasks, each carried out by a headless session of its own. What is decided is decided in `posse_core::plan`; here
//! it is done.

pub mod facts;
mod session;
