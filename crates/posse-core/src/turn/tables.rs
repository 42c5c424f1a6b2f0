//! The scenarios of the spec: what happens, and what is told of it. The seeds' own are under their own names.

mod files;
mod permissions;
mod seeds;
mod times;
