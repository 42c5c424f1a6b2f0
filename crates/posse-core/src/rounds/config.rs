//! The configuration of a loop run as a value: what the environment, the JSON file that the operator names, and the user's
//! config.toml set, and the defaults for the rest.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::LazyLock;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Role;
use crate::config::keys::{AGENT_KEYS, AUTO_ACCEPT};
use crate::config::{
    ConfigError, ConfigFormat, ConfigLayer, KEYS, LayerSource, Setting, ValueOrigin, resolve, tree_of,
};

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

/// How an answer is awaited. All times in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Handoff {
    pub strict_file_handoff: bool,
    pub idle_grace_seconds: u32,
    pub response_timeout: u32,
    pub max_file_reminders: u32,
    pub auto_accept_permissions: bool,
    /// The same without the environment, whose value holds only for the person who set it, not for one who resumes the run.
    pub auto_accept_configured: Option<bool>,
    pub waiting_timeout: u32,
}

impl Handoff {
    /// How long an agent may be quiet without an answer, and how long it may take to start.
    pub fn grace(&self) -> Duration {
        Duration::from_secs(self.idle_grace_seconds.into())
    }

    /// How long a turn may take in all.
    pub fn timeout(&self) -> Duration {
        Duration::from_secs(self.response_timeout.into())
    }

    /// How long a question may wait for a person. `None`: as long as the turn has time.
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

/// The JSON file that is named when a run is to be resumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamedFile {
    None,
    /// The one with which the run began, byte by byte: it sets nothing new.
    TheSame,
    Another,
}

/// A key whose value in a run is not the one that is set now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunDifference {
    pub path: &'static str,
    pub of_run: Value,
    pub wanted: Value,
}

impl fmt::Display for RunDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is {} there, and not {}", self.path, self.of_run, self.wanted)
    }
}

/// Keys that say where a run is or how it begins, or that have no effect. Prompts are compared as prompts.
const NOT_COMPARED: [&str; 8] =
    ["api", "wd", "prompt", "prompt_file", "start_agent", "resume", "state_file", "limits.poll_seconds"];

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
        // A role is like all of them, unless the file says otherwise.
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

    /// The differences between what is set now and what a run began with. Keys that nothing sets now do not differ.
    pub fn differences(&self, of_run: &LoopConfig, named: NamedFile) -> Vec<RunDifference> {
        let [of_run, wanted] = [of_run, &self.config].map(|config| serde_json::to_value(config).unwrap_or_default());
        let mut differences: Vec<RunDifference> = Vec::new();
        for setting in &self.settings {
            let Some(path) = KEYS.iter().find(|key| key.path == setting.key).and_then(|key| key.run) else {
                continue;
            };
            if !is_set_now(setting, named) || NOT_COMPARED.contains(&path) {
                continue;
            }
            // The environment's value never was the run's.
            let place = if setting.key == AUTO_ACCEPT { "handoff.auto_accept_configured" } else { path };
            let at = |tree: &Value| tree.pointer(&format!("/{}", place.replace('.', "/"))).cloned().unwrap_or_default();
            let difference = RunDifference { path, of_run: at(&of_run), wanted: at(&wanted) };
            // What differs for all roles is not repeated for each.
            let name = path.rsplit('.').next().unwrap_or_default();
            let repeated = differences.iter().any(|known| {
                known.path == name && known.of_run == difference.of_run && known.wanted == difference.wanted
            });
            if difference.of_run != difference.wanted && !repeated {
                differences.push(difference);
            }
        }
        differences
    }
}

fn is_set_now(setting: &Setting, named: NamedFile) -> bool {
    match setting.origin {
        // A person who resumes a run decides anew whether permissions are accepted.
        ValueOrigin::Variable(_) => setting.key != AUTO_ACCEPT,
        // A file that leaves a key out asks for the default.
        ValueOrigin::RunFile(_) | ValueOrigin::Default => named == NamedFile::Another,
        _ => false,
    }
}

/// The environment's decision on whether permissions are accepted, if there is one.
pub fn auto_accept_in(variable: &dyn Fn(&str) -> Option<String>) -> Option<bool> {
    ConfigLayer::environment(variable, None, |key| key.path == AUTO_ACCEPT).ok()?.get(AUTO_ACCEPT)?.as_bool()
}
