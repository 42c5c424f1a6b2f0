//! The real agents in posse's terminals, talking to scripted models.
// In a test an unwrap is an assertion.
#![allow(clippy::unwrap_used)]

mod asking;
mod auto_run;
mod live;
mod loop_run;
mod plan_run;
mod providers;

use posse_testkit::agents::AgentHome;
use posse_testkit::{PATIENCE, TestEnv};

fn env() -> TestEnv {
    TestEnv::new(env!("CARGO_BIN_EXE_posse"))
}

/// Runs a command of posse in the agent's project. Returns its exit code and output.
fn posse(home: &AgentHome, env: &TestEnv, words: &[&str]) -> (Option<i32>, String) {
    let output = home.posse(env, words).output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
}
