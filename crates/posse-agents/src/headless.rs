//! Agents without a terminal: `claude -p`, `codex exec`. What they may do, how they are called, and what their streams say.
//!
//! Two questions are answered before anything is started, and they are separate ones: which tools there are, and what
//! happens when the use of one needs an approval. Nobody can answer a prompt here, stdin is a file that ends, so a session
//! whose second question is open does nothing at all. Everything headless gets its flags from
//! [`build_permission_flags`]; [`check_flags`] looks at the finished command line once more before each start.
//!
//! Pure: nothing is started or read here. What a session is allowed by these flags is a guard rail and not a jail: a program
//! that may be run may do what it likes, unless the tool has a sandbox of its own (Codex) or is put into one.

pub mod agent_file;
pub mod check;
pub mod claude;
pub mod codex;
pub mod command;
pub mod event;
pub mod explain;
mod fields;
pub mod flags;
mod outside;
pub mod permission;
pub mod reader;
pub mod texts;

use serde::{Deserialize, Serialize};

pub use agent_file::AgentFile;
pub use check::{FailedCheck, check_flags};
pub use command::{Spawn, command_line};
pub use event::Event;
pub use explain::explain_flags;
pub use flags::{FlagError, Request, Scope, build_permission_flags};
pub use permission::{Granted, PermissionProfile, Policy};
pub use reader::Reader;
pub use texts::HeadlessRules;

/// Whose sessions carry out plans that nobody said anything about.
pub const DEFAULT_PROVIDER: &str = "claude_code";

/// In whose words permissions are said and streams are read. A manifest names one (`[headless] dialect`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dialect {
    /// `claude -p --output-format stream-json`
    Claude,
    /// `codex exec --json`
    Codex,
}

impl Dialect {
    /// Whether sessions say what they cost. What is not said cannot be limited.
    pub fn tells_costs(self) -> bool {
        self == Dialect::Claude
    }
}

/// Whether sessions are confined. The key `plans.sandbox.enabled` decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Sandbox {
    #[default]
    On,
    /// Sessions may do everything and are never asked. Commands that start such sessions print a warning.
    Off,
}
