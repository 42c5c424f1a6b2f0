//! Scripted agents and scripted models for the demo, the checks and the tests of posse: no account, no tokens, and the
//! same behaviour every time.
//!
//! - [`scenario`]: the language that says what happens in each turn.
//! - [`agent`]: a scripted agent that plays a scenario on a screen.
//! - [`model`]: a model server on loopback that plays a scenario over HTTP to a real agent.
//! - [`home`]: homes in which real agents start unattended and talk to that server.
//! - [`watched`]: a value that threads wait for.
//!
//! Behind the feature `testing`:
//! - `conformance`: scenarios with the user's actions, by which posse's statuses are measured.

pub mod agent;
#[cfg(feature = "testing")]
pub mod conformance;
pub mod home;
pub mod model;
pub mod scenario;
pub mod watched;

pub use model::ModelServer;
pub use scenario::{Scenario, ScenarioError, ScriptStep, ScriptTurn};
