//! The scenarios of the spec: events and their effects. Scenarios of the seeds keep their names.

mod files;
mod permissions;
mod seeds;
mod times;
