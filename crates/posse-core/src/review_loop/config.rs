//! The configuration of a loop run, merged from the environment, the operator's JSON file, the user's config.toml and
//! the defaults.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Role;
use crate::config::keys::{AGENT_KEYS, AUTO_ACCEPT};
use crate::config::{ConfigError, ConfigFormat, ConfigLayer, LayerSource, Setting, ValueOrigin, resolve, tree_of};

/// The value of every key of a run. The keys and their meaning are declared in `config::keys`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoopConfig {
    pub api: String,
    pub provider: String,
    pub mode: Option<String>,
    pub model: Option<String>,
    pub wd: Option<String>,
    pub prompt: String,
    pub prompt_file: Option<String>,
    pub project_test_cmd: String,
    pub start_agent: Role,
    pub cleanup_on_exit: bool,
    pub resume: bool,
    pub state_file: Option<String>,
    /// Contains every role.
    pub agents: BTreeMap<Role, AgentChoice>,
    pub limits: LoopLimits,
    pub condensation: Condensation,
    pub handoff: Handoff,
    pub notifications: Notifications,
    pub post_processing: PostProcessing,
}

/// The agent that plays a role.
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
pub struct LoopLimits {
    pub max_rounds: u32,
    pub max_review_cycles: u32,
    pub min_review_cycles_before_approval: u32,
    pub poll_seconds: u32,
    pub require_review_evidence: bool,
    pub review_evidence_min_match: u32,
}

/// The parts of an answer that are shortened when passed on, and their length in lines.
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

/// The settings for awaiting an answer. All times are in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Handoff {
    pub strict_file_handoff: bool,
    pub idle_grace_seconds: u32,
    pub response_timeout: u32,
    pub max_file_reminders: u32,
    pub auto_accept_permissions: bool,
    /// The setting without the environment, whose value applies only to the person who set it, not to one who resumes
    /// the run.
    pub auto_accept_configured: Option<bool>,
    pub waiting_timeout: u32,
}

impl Handoff {
    /// Returns the maximum time an agent may be quiet without an answer, and may take to start.
    pub fn grace(&self) -> Duration {
        Duration::from_secs(self.idle_grace_seconds.into())
    }

    /// Returns the maximum duration of a turn.
    pub fn timeout(&self) -> Duration {
        Duration::from_secs(self.response_timeout.into())
    }

    /// Returns the maximum time a question may wait for a person. `None`: as long as the turn lasts.
    pub fn patience(&self) -> Option<Duration> {
        (self.waiting_timeout > 0).then(|| Duration::from_secs(self.waiting_timeout.into()))
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Notifications {
    pub ntfy_topic: String,
    pub ntfy_url: String,
    pub webhook: String,
    pub command: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PostProcessing {
    pub openspec_archive: bool,
    pub git_commit: bool,
    pub git_commit_comment: String,
}

static DEFAULT: LazyLock<LoopConfig> = LazyLock::new(|| ResolvedRun::of_layers(&[]).config);

impl Default for LoopConfig {
    fn default() -> Self {
        DEFAULT.clone()
    }
}

#[cfg(test)]
impl Default for LoopLimits {
    fn default() -> Self {
        DEFAULT.limits
    }
}

#[cfg(test)]
impl Default for Condensation {
    fn default() -> Self {
        DEFAULT.condensation
    }
}

#[cfg(test)]
impl Default for Handoff {
    fn default() -> Self {
        DEFAULT.handoff
    }
}

impl Default for Notifications {
    fn default() -> Self {
        DEFAULT.notifications.clone()
    }
}

/// A configuration, the origin of every value, and warnings for the operator.
#[derive(Clone, Debug, PartialEq)]
pub struct ResolvedRun {
    pub config: LoopConfig,
    pub settings: Vec<Setting>,
    pub warnings: Vec<String>,
}

impl ResolvedRun {
    /// Merges the environment over the JSON file (name, text) over the user's layer. `providers` are the known agents.
    pub fn new(
        json: Option<(&str, &str)>,
        variable: &dyn Fn(&str) -> Option<String>,
        user: &ConfigLayer,
        providers: &[&str],
    ) -> Result<Self, ConfigError> {
        let file = match json {
            None => ConfigLayer::empty(LayerSource::RunFile),
            Some((name, text)) => {
                let read = ConfigLayer::read(LayerSource::RunFile, ConfigFormat::Json, name, text, Some(providers));
                read.map_err(|problems| ConfigError::File { problems, text: text.to_owned() })?.0
            }
        };
        let environment = ConfigLayer::environment(variable, Some(providers), |key| key.run.is_some())?;
        let mut resolved = Self::of_layers(&[user, &file, &environment]);
        let of_files = resolve(&[user, &file], |key| key.path == AUTO_ACCEPT);
        resolved.config.handoff.auto_accept_configured = of_files.first().and_then(|setting| setting.value.as_bool());
        resolved.warnings = environment.warnings;
        let limits = &resolved.config.limits;
        if limits.min_review_cycles_before_approval > limits.max_review_cycles {
            resolved.warnings.push(format!(
                "no review can be approved: `limits.min_review_cycles_before_approval` is {}, and `limits.max_review_cycles` is {}",
                limits.min_review_cycles_before_approval, limits.max_review_cycles
            ));
        }
        Ok(resolved)
    }

    fn of_layers(layers: &[&ConfigLayer]) -> Self {
        let mut settings = resolve(layers, |key| key.run.is_some());
        // A role uses the settings for all roles, unless the file overrides them.
        for role in Role::ALL {
            for (name, ..) in AGENT_KEYS {
                let of_all = settings.iter().find(|setting| setting.key.strip_prefix("loop.") == Some(name)).cloned();
                let path = format!("loop.agents.{role}.{name}");
                let setting =
                    settings.iter_mut().find(|setting| setting.key == path && setting.origin == ValueOrigin::Default);
                match (setting, of_all) {
                    (Some(setting), Some(of_all)) => *setting = Setting { key: setting.key, ..of_all },
                    (Some(setting), None) => setting.value = role.profile().into(),
                    (None, _) => {}
                }
            }
        }
        let whole = tree_of(&settings, |key| key.run);
        // Every value was checked for its key; a test sets all of them.
        let config = serde_json::from_value(whole).expect("the keys are those of the configuration");
        Self { config, settings, warnings: Vec::new() }
    }
}

/// Returns the environment's setting for accepting permissions, if any.
pub fn auto_accept_in(variable: &dyn Fn(&str) -> Option<String>) -> Option<bool> {
    ConfigLayer::environment(variable, None, |key| key.path == AUTO_ACCEPT).ok()?.get(AUTO_ACCEPT)?.as_bool()
}
