//! What a run of the loop is told before it begins. A value comes from the environment, else from the JSON file the
//! operator named, else from the user's own configuration, else from here.

mod differences;
mod error;
mod keys;
mod layers;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use differences::{Difference, Named};
pub use error::{ConfigError, Place, Wrong};
pub use keys::variable_of;
pub use layers::{Origin, Resolved, auto_accept_in};

use super::Role;

/// Everything a run needs to know. Every role is in `agents`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Where the server of the original API was. Nothing is asked there; it is kept for the state file.
    pub api: String,
    pub provider: String,
    /// How agents are started: `ask`, `edits` or `bypass`.
    pub mode: Option<String>,
    pub model: Option<String>,
    /// The project; the current directory if nothing is said.
    pub wd: Option<String>,
    pub prompt: String,
    pub prompt_file: Option<String>,
    pub project_test_cmd: String,
    pub start_agent: Role,
    pub cleanup_on_exit: bool,
    pub resume: bool,
    pub state_file: Option<String>,
    pub agents: BTreeMap<Role, AgentChoice>,
    pub limits: Limits,
    pub condensation: Condensation,
    pub handoff: Handoff,
    pub notifications: Notifications,
    pub post_processing: PostProcessing,
}

/// Which agent plays a role.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentChoice {
    pub provider: String,
    pub profile: String,
    /// `ask`, `edits` or `bypass`.
    pub mode: Option<String>,
    pub model: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    pub max_rounds: u32,
    /// How often primary and reviewer go back and forth before the next phase begins regardless.
    pub max_review_cycles: u32,
    /// An approval before this cycle does not count.
    pub min_review_cycles_before_approval: u32,
    pub poll_seconds: u32,
    pub require_review_evidence: bool,
    /// Of the four kinds of evidence, how many an approval must show.
    pub review_evidence_min_match: u32,
}

/// What is shortened when an answer is handed on, and to how many lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Condensation {
    pub condense_cross_phase: bool,
    pub max_cross_phase_lines: u32,
    pub condense_upstream_on_repeat: bool,
    pub condense_explore_on_repeat: bool,
    pub condense_review_feedback: bool,
    pub max_feedback_lines: u32,
    pub max_test_evidence_lines: u32,
}

/// How an answer is waited for. All times in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Handoff {
    /// An answer that is not in its file is none.
    pub strict_file_handoff: bool,
    pub idle_grace_seconds: u32,
    pub response_timeout: u32,
    pub max_file_reminders: u32,
    pub auto_accept_permissions: bool,
    /// The same without what the environment says: that holds only for who set it, not for who goes on with the run later.
    #[serde(default)]
    pub auto_accept_configured: Option<bool>,
    /// How long a question nobody answers may hold up a turn; 0 means until the response timeout.
    pub waiting_timeout: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Notifications {
    /// No topic, no message.
    pub ntfy_topic: String,
    pub ntfy_url: String,
    /// Where a JSON object is posted for each event.
    pub webhook: String,
    /// A program and its arguments, run for each event.
    pub command: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PostProcessing {
    pub openspec_archive: bool,
    pub git_commit: bool,
    pub git_commit_comment: String,
}

/// What the user has written down for all runs, in a file of their own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserDefaults {
    pub auto_accept_permissions: Option<bool>,
    pub notifications: Option<Notifications>,
    pub mode: Option<String>,
    pub provider: Option<String>,
}

/// How agents are started unless something else is said: edits are free, commands ask.
const DEFAULT_MODE: &str = "edits";

impl Default for Config {
    fn default() -> Self {
        Self {
            api: "http://localhost:9889".into(),
            provider: "codex".into(),
            mode: Some(DEFAULT_MODE.into()),
            model: None,
            wd: None,
            prompt: String::new(),
            prompt_file: None,
            project_test_cmd: String::new(),
            start_agent: Role::Analyst,
            cleanup_on_exit: false,
            resume: false,
            state_file: None,
            agents: BTreeMap::new(),
            limits: Limits::default(),
            condensation: Condensation::default(),
            handoff: Handoff::default(),
            notifications: Notifications::default(),
            post_processing: PostProcessing {
                openspec_archive: false,
                git_commit: false,
                git_commit_comment: String::new(),
            },
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_rounds: 8,
            max_review_cycles: 3,
            min_review_cycles_before_approval: 2,
            poll_seconds: 2,
            require_review_evidence: true,
            review_evidence_min_match: 3,
        }
    }
}

impl Default for Condensation {
    fn default() -> Self {
        Self {
            condense_cross_phase: true,
            max_cross_phase_lines: 40,
            condense_upstream_on_repeat: true,
            condense_explore_on_repeat: true,
            condense_review_feedback: true,
            max_feedback_lines: 30,
            max_test_evidence_lines: 120,
        }
    }
}

impl Default for Handoff {
    fn default() -> Self {
        Self {
            strict_file_handoff: true,
            idle_grace_seconds: 30,
            response_timeout: 1800,
            max_file_reminders: 0,
            auto_accept_permissions: false,
            auto_accept_configured: None,
            waiting_timeout: 600,
        }
    }
}

impl Default for Notifications {
    fn default() -> Self {
        Self {
            ntfy_topic: String::new(),
            ntfy_url: "https://ntfy.sh".into(),
            webhook: String::new(),
            command: Vec::new(),
        }
    }
}

impl Config {
    /// What is to be done, and what the operator should be warned of. `providers` are the names there are.
    pub fn resolve(
        json: Option<&str>,
        env: &dyn Fn(&str) -> Option<String>,
        user: &UserDefaults,
        providers: &[&str],
    ) -> Result<(Config, Vec<String>), ConfigError> {
        let resolved = Resolved::new(json, env, user, providers)?;
        Ok((resolved.config, resolved.warnings))
    }
}
