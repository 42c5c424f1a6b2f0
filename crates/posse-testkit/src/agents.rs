//! The real agents, in pinned versions from npm, each in a home of its own, talking to a scripted model.
//!
//! Nothing is started here: a test hands an [`AgentHome`] to posse, with [`AgentHome::launch`] or by its command,
//! environment and directory.

mod claude;
mod codex;
mod home;
mod install;
mod others;

use std::path::PathBuf;

pub use home::AgentHome;
pub use install::{InstallError, or_skip};

use crate::models::ModelServer;
use install::Package;

/// The versions that the tests are written for.
pub const CLAUDE: [&str; 2] = ["2.1.197", "2.1.325"];
pub const CODEX: [&str; 2] = ["0.145.0", "0.166.0"];
pub const OPENCODE: &str = "1.18.33";
pub const QWEN: &str = "0.15.10";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Maker {
    Claude,
    Codex,
    Opencode,
    Qwen,
}

/// An agent that is installed.
#[derive(Clone, Debug)]
pub struct Agent {
    maker: Maker,
    version: String,
    program: PathBuf,
}

/// How an agent is to start. By default nothing asks anything until the model wants to use a tool.
#[derive(Clone, Debug)]
pub struct Options {
    /// Otherwise it asks first whether it may work in its directory.
    pub trusted: bool,
    /// Claude Code: ask whether the key in the environment is meant.
    pub api_key_dialog: bool,
    /// Claude Code: ask whether permissions are really to be bypassed.
    pub bypass_dialog: bool,
    pub permissions: Permissions,
    /// How often a failed request is repeated; as often as the agent likes unless given. It waits in between.
    pub retries: Option<u32>,
    /// More arguments for the agent.
    pub arguments: Vec<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Permissions {
    /// Called manual, default or on-request.
    #[default]
    Ask,
    AcceptEdits,
    Auto,
    Plan,
    Bypass,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            trusted: true,
            api_key_dialog: false,
            bypass_dialog: false,
            permissions: Permissions::Ask,
            retries: None,
            arguments: Vec::new(),
        }
    }
}

impl Agent {
    pub fn claude(version: &str) -> Result<Self, InstallError> {
        Self::installed(Maker::Claude, "@anthropic-ai/claude-code", version, "claude")
    }

    pub fn codex(version: &str) -> Result<Self, InstallError> {
        Self::installed(Maker::Codex, "@openai/codex", version, "codex")
    }

    pub fn opencode(version: &str) -> Result<Self, InstallError> {
        Self::installed(Maker::Opencode, "opencode-ai", version, "opencode")
    }

    pub fn qwen(version: &str) -> Result<Self, InstallError> {
        Self::installed(Maker::Qwen, "@qwen-code/qwen-code", version, "qwen")
    }

    fn installed(maker: Maker, package: &str, version: &str, program: &str) -> Result<Self, InstallError> {
        let program = Package { name: package, version, program }.installed()?;
        Ok(Self { maker, version: version.to_owned(), program })
    }

    pub fn version(&self) -> &str {
        &self.version
    }

    /// A new home, in which the agent talks to this server.
    pub fn home(&self, server: &ModelServer, options: &Options) -> AgentHome {
        let mut home = AgentHome::new(&self.program);
        match self.maker {
            Maker::Claude => claude::settle(&mut home, server, options),
            Maker::Codex => codex::settle(&mut home, &self.version, server, options),
            Maker::Opencode => others::opencode(&mut home, server, options),
            Maker::Qwen => others::qwen(&mut home, server, options),
        }
        home.add(options.arguments.iter().cloned());
        home
    }
}
