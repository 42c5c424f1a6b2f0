//! What posse knows about agents, tried on texts, recorded screens and recorded sessions.
// In a test an unwrap is an assertion.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod common;
mod derived;
mod documented;
mod events;
mod failures;
mod flags_in_one_place;
mod headless;
mod properties;
mod reference;
mod screens;
mod seeds;
