//! Homes for real agents: what each of them must find so that it starts without a person, asks nothing on its own, and
//! talks to a scripted model instead of its vendor's. Measured on the versions that the manifests name.
//!
//! Nothing is started here: whoever has a [`Home`] hands it to posse.

mod claude;
mod codex;
mod home;
mod others;

use std::io;
use std::path::Path;

pub use home::{Home, MARK};

use crate::ModelServer;

/// The agents that we can make a home for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Maker {
    Claude,
    Codex,
    Opencode,
    Qwen,
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

impl Maker {
    pub const ALL: [Maker; 4] = [Maker::Claude, Maker::Codex, Maker::Opencode, Maker::Qwen];

    /// The provider by which posse starts it.
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

    /// A new home, in which this program of this version talks to this server.
    pub fn home(self, program: &Path, version: &str, server: &ModelServer, options: &Options) -> io::Result<Home> {
        let mut home = Home::new(program)?;
        self.settle(&mut home, version, server, options)?;
        home.add(options.arguments.iter().cloned());
        Ok(home)
    }

    /// Makes room for one more agent in a home. It is started by its provider, in the same environment and directory; the
    /// home's command stays that of the first.
    pub fn move_in(self, home: &mut Home, version: &str, server: &ModelServer, options: &Options) -> io::Result<()> {
        let command = home.command.clone();
        self.settle(home, version, server, options)?;
        home.command = command;
        Ok(())
    }

    fn settle(self, home: &mut Home, version: &str, server: &ModelServer, options: &Options) -> io::Result<()> {
        match self {
            Maker::Claude => claude::settle(home, server, options),
            Maker::Codex => codex::settle(home, version, server, options),
            Maker::Opencode => others::opencode(home, server, options),
            Maker::Qwen => others::qwen(home, server, options),
        }
    }
}
