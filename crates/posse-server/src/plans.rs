//! Plans, carried out: where tasks are worked on, and how their work gets back. What is done next is decided in
//! `posse_core::plan`.

pub mod areas;
