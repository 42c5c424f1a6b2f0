//! The real agents, in pinned versions from npm, each in its own home, with a scripted model.
//!
//! This module starts nothing: a test passes an [`AgentHome`] to posse, with [`AgentHome::launch_as`] or by its
//! command, environment and directory.

mod home;
mod install;

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

pub use home::AgentHome;
pub use install::{InstallError, or_skip};
use posse_sim::ModelServer;
pub use posse_sim::home::{HomeOptions, Maker};

/// The versions that the tests are written for.
pub const CLAUDE: [&str; 2] = ["2.1.197", "2.1.325"];
pub const CODEX: [&str; 2] = ["0.145.0", "0.166.0"];
pub const OPENCODE: &str = "1.18.33";
pub const QWEN: &str = "0.15.10";

#[derive(Clone, Debug)]
pub struct Agent {
    maker: Maker,
    version: String,
    program: PathBuf,
    _turn: Option<Arc<File>>,
}

impl Agent {
    pub fn installed(maker: Maker, version: &str) -> Result<Self, InstallError> {
        let (name, program) = match maker {
            Maker::Claude => ("@anthropic-ai/claude-code", "claude"),
            Maker::Codex => ("@openai/codex", "codex"),
            Maker::Opencode => ("opencode-ai", "opencode"),
            Maker::Qwen => ("@qwen-code/qwen-code", "qwen"),
        };
        let program = install::installed(name, version, program)?;
        Ok(Self { maker, version: version.to_owned(), program, _turn: None })
    }

    /// Waits until no other test on this machine uses a real agent, and blocks the others until this value and its
    /// clones are dropped. Each agent is a few hundred megabytes of program; two at once starve each other and
    /// everything else. A test may use several agents: those of one thread share the lock.
    #[must_use]
    pub fn alone(self) -> Self {
        Self { _turn: Some(install::lock()), ..self }
    }

    pub fn version(&self) -> &str {
        &self.version
    }

    pub fn program(&self) -> &std::path::Path {
        &self.program
    }

    #[track_caller]
    pub fn home(&self, server: &ModelServer, options: &HomeOptions) -> AgentHome {
        let home = self.maker.home(&self.program, &self.version, server, options);
        AgentHome::new(home.unwrap_or_else(|error| panic!("no home for an agent: {error}")), &self.program)
    }

    /// Creates one home for both, started by their providers with one environment.
    #[track_caller]
    pub fn home_with(&self, other: &Agent, server: &ModelServer, options: &HomeOptions) -> AgentHome {
        let mut home = self.home(server, options);
        let moved_in = other.maker.move_in(&mut home, &other.version, server, options);
        moved_in.unwrap_or_else(|error| panic!("no room for another agent: {error}"));
        home.add_program(&other.program);
        home
    }
}
