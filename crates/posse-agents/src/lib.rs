//! Everything specific to third-party agents. An agent is a manifest, a data file; code is here only for decisions that
//! rules cannot express.

pub mod account;
pub mod classify;
pub mod front_matter;
pub mod headless;
pub mod launch;
pub mod manifest;
pub mod merge;
pub mod profile;
pub mod start;
pub mod version;

pub use manifest::{BadManifest, Manifest, Provider};
