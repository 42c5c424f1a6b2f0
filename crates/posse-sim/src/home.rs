//! Homes for real agents: the files and variables with which an agent starts unattended, asks nothing on its own, and
//! talks to a scripted model. Measured on the versions that the manifests name. This module starts no process.

mod agents;
mod directory;

use std::io;
use std::path::Path;

pub use directory::{MARK, ScriptedHome};

use crate::model::ModelServer;

/// An agent that can have a scripted home.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Maker {
    Claude,
    Codex,
    Opencode,
    Qwen,
}

/// How an agent starts. By default it asks nothing until the model uses a tool.
#[derive(Clone, Debug)]
pub struct HomeOptions {
    /// If not set, the agent asks for trust in its directory.
    pub trusted: bool,
    /// How often a failed request is repeated; `None` keeps the agent's default.
    pub retries: Option<u32>,
}

impl Default for HomeOptions {
    fn default() -> Self {
        Self { trusted: true, retries: None }
    }
}

impl Maker {
    pub const ALL: [Maker; 4] = [Maker::Claude, Maker::Codex, Maker::Opencode, Maker::Qwen];

    /// The provider id in posse.
    pub fn provider(self) -> &'static str {
        match self {
            Maker::Claude => "claude_code",
            Maker::Codex => "codex",
            Maker::Opencode => "opencode",
            Maker::Qwen => "qwen",
        }
    }

    pub fn of_provider(provider: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|maker| maker.provider() == provider)
    }

    /// Creates a home in which this version of the program talks to the server.
    pub fn home(
        self,
        program: &Path,
        version: &str,
        server: &ModelServer,
        options: &HomeOptions,
    ) -> io::Result<ScriptedHome> {
        let mut home = ScriptedHome::new(program)?;
        let arguments = self.move_in(&mut home, version, server, options)?;
        home.command.extend(arguments);
        Ok(home)
    }

    /// Adds an agent to a home. Returns the arguments it needs.
    pub fn move_in(
        self,
        home: &mut ScriptedHome,
        version: &str,
        server: &ModelServer,
        options: &HomeOptions,
    ) -> io::Result<Vec<String>> {
        match self {
            Maker::Claude => agents::claude(home, server, options),
            Maker::Codex => agents::codex(home, version, server, options),
            Maker::Opencode => agents::opencode(home, server),
            Maker::Qwen => agents::qwen(home, server, options),
        }
    }
}
