//! The configuration of plans and backlogs: the user's config.toml (`[plans]`), the project's file, the environment and
//! the command line, with defaults for the rest. A run keeps the configuration with which it began.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::breaker::BreakerSettings;
use super::budget::limit;
use super::file::{BudgetMeta, Gate, GateWhen, Isolation, Plan};
use super::limits::QuotaWaits;
use crate::backlog::BacklogDirs;
use crate::config::{
    ConfigKey, ConfigLayer, LayerSource, Setting, ValueOrigin, resolve, shown_duration, shown_value, tree_of,
};

/// The project's configuration file.
pub const FILE: &str = ".posse/config.toml";
/// The file of the original orchestrator. It is read if the project's file is missing.
pub const LEGACY_FILE: &str = ".claude/orchestrator-config.yaml";

/// The value of every key of plans. `config::keys` declares the keys and their meaning.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanConfig {
    pub state_dir: String,
    pub plans_dir: String,
    pub design_dir: String,
    pub agents_dir: String,
    pub build_command: Option<String>,
    pub test_command: Option<String>,
    pub lint_command: Option<String>,
    pub e2e_command: Option<String>,
    #[serde(default)]
    pub claude: ClaudeSettings,
    pub sandbox: SandboxSettings,
    pub env_strip: Vec<String>,
    pub task: SessionLimits,
    pub rate_limit: QuotaWaits,
    pub breaker: BreakerSettings,
    pub git: GitSettings,
    /// The budget of plans that set none themselves.
    #[serde(default)]
    pub budget: BudgetMeta,
    /// Limits on the money that is spent within a time.
    #[serde(default)]
    pub windows: Vec<BudgetWindow>,
    pub backlog: BacklogDirs,
    pub pipeline: PipelineSettings,
    pub limits: PipelineLimits,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ClaudeSettings {
    pub binary: Option<String>,
    /// The models that `haiku`, `sonnet` and `opus` stand for.
    pub models: BTreeMap<String, String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SandboxSettings {
    pub enabled: bool,
    pub strict: bool,
    /// Profiles besides the built-in ones, or instead of them.
    #[serde(default)]
    pub profiles: BTreeMap<String, SandboxProfile>,
    /// The profile of each agent.
    #[serde(default)]
    pub agents: BTreeMap<String, String>,
    pub deny: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SandboxProfile {
    pub tools: Vec<String>,
    pub bash: Bash,
}

/// The commands that a profile allows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bash {
    #[default]
    None,
    /// Commands that only read, as the agent itself recognizes them. No command is allowed by a rule: a rule such as
    /// `Bash(git log:*)` also allows `git log --output=FILE`.
    ReadOnly,
    Full,
    /// These rules and no others.
    #[serde(untagged)]
    Rules(Vec<String>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionLimits {
    pub timeout: Duration,
    pub idle_timeout: Duration,
    pub max_parallel: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GitSettings {
    pub isolation: Isolation,
    pub keep_failed: Duration,
}

/// A budget within a time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BudgetWindow {
    pub whose: WindowOwner,
    pub window: Duration,
    pub limit_usd: f64,
}

/// The sessions that count for a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WindowOwner {
    /// Those of all projects: the user set the window.
    User,
    /// Those of the project that set the window.
    Project,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PipelineSettings {
    pub max_parallel_items: u32,
    pub max_verification_cycles: u32,
    pub max_item_attempts: u32,
    pub safety_scan_seconds: Option<u32>,
    pub plan_timeout: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PipelineLimits {
    pub max_item_starts_per_hour: u32,
    pub items_per_hour: u32,
}

/// A configuration, and the origin of every value.
#[derive(Clone, Debug, PartialEq)]
pub struct ResolvedPlans {
    pub config: PlanConfig,
    pub settings: Vec<Setting>,
}

const WINDOW: &str = "plans.budget.window";
const BUDGET: [&str; 3] =
    ["plans.budget.quota_ceiling_usd", "plans.budget.max_quota_percent", "plans.budget.reserved_budget_usd"];

impl ResolvedPlans {
    /// Merges the user's file, the project's file, and the overrides.
    pub fn new(mut user: ConfigLayer, mut project: ConfigLayer, above: &[ConfigLayer]) -> Self {
        let windows = [(&mut user, WindowOwner::User), (&mut project, WindowOwner::Project)];
        let windows: Vec<(BudgetWindow, ValueOrigin)> =
            windows.into_iter().filter_map(|(layer, whose)| take_window(layer, whose)).collect();
        let layers: Vec<&ConfigLayer> = [&user, &project].into_iter().chain(above).collect();
        let mut settings = resolve(&layers, |key| key.plan_name().is_some());
        let whole = tree_of(&settings, ConfigKey::plan_name);
        // Every value was checked for its key; a test sets all keys.
        let config: PlanConfig = serde_json::from_value(whole).expect("the keys are those of the configuration");
        if let Some(setting) = settings.iter_mut().find(|setting| setting.key == WINDOW)
            && let Some((_, origin)) = windows.last()
        {
            setting.value = windows.iter().map(|(window, _)| window.to_string()).collect::<Vec<_>>().join(", ").into();
            setting.origin = if windows.len() > 1 { ValueOrigin::UserAndProject } else { origin.clone() };
        }
        Self {
            config: PlanConfig { windows: windows.into_iter().map(|(window, _)| window).collect(), ..config },
            settings,
        }
    }

    /// Returns the origin of a key, by its name in a project's file.
    pub fn origin(&self, name: &str) -> &ValueOrigin {
        let setting = self.settings.iter().find(|setting| setting.key.strip_prefix("plans.") == Some(name));
        setting.map_or(&ValueOrigin::Default, |setting| &setting.origin)
    }
}

/// Moves the budget of a layer into its window, if it sets one: it does not limit single plans then.
fn take_window(layer: &mut ConfigLayer, whose: WindowOwner) -> Option<(BudgetWindow, ValueOrigin)> {
    let (window, origin) = layer.take(WINDOW)?;
    let [ceiling_usd, percent, reserved_usd] = BUDGET.map(|path| layer.take(path)?.0.as_f64());
    let limit_usd = limit(&[BudgetMeta { ceiling_usd, percent, reserved_usd }])?;
    Some((BudgetWindow { whose, window: serde_json::from_value(window).ok()?, limit_usd }, origin))
}

impl std::fmt::Display for BudgetWindow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let whose = if self.whose == WindowOwner::User { "all projects" } else { "this project" };
        write!(f, "{:.2} USD in {} for {whose}", self.limit_usd, shown_duration(self.window))
    }
}

impl Default for PlanConfig {
    fn default() -> Self {
        ResolvedPlans::new(ConfigLayer::empty(LayerSource::User), ConfigLayer::empty(LayerSource::Project), &[]).config
    }
}

impl Default for PipelineSettings {
    fn default() -> Self {
        PlanConfig::default().pipeline
    }
}

impl Default for PipelineLimits {
    fn default() -> Self {
        PlanConfig::default().limits
    }
}

impl PlanConfig {
    /// Returns the project's own checks, in order.
    pub fn checks(&self) -> Vec<Gate> {
        let commands = [
            ("build", &self.build_command),
            ("lint", &self.lint_command),
            ("test", &self.test_command),
            ("e2e", &self.e2e_command),
        ];
        let gate = |(name, command): (&str, &Option<String>)| {
            let command = command.clone()?;
            Some(Gate { name: name.to_owned(), command, when: GateWhen::AfterTask })
        };
        commands.into_iter().filter_map(gate).collect()
    }

    /// Returns all checks of a plan: the project's, and the plan's own. A plan cannot drop the project's, because
    /// agents write plans too.
    pub fn gates(&self, plan: &Plan) -> Vec<Gate> {
        let mut gates = self.checks();
        for gate in &plan.meta.gates {
            if !gates.iter().any(|known| known.command == gate.command && known.when == gate.when) {
                gates.push(gate.clone());
            }
        }
        gates
    }

    /// Returns the isolation that the plan or the configuration sets. `None`: work trees, if possible.
    pub fn isolation(&self, plan: &Plan) -> Option<Isolation> {
        plan.meta.isolation.or(Some(self.git.isolation).filter(|isolation| *isolation == Isolation::InPlace))
    }

    /// Returns the model that a name stands for.
    pub fn model<'a>(&'a self, model: &'a str) -> &'a str {
        self.claude.models.get(model).map_or(model, String::as_str)
    }

    /// Returns the keys that differ between two configurations: name, old value, new value.
    pub fn differences(&self, other: &Self) -> Vec<(String, String, String)> {
        let [old, new] = [self, other].map(|config| {
            let mut values = BTreeMap::new();
            flatten("", &serde_json::to_value(config).unwrap_or_default(), &mut values);
            values
        });
        let names: std::collections::BTreeSet<&String> = old.keys().chain(new.keys()).collect();
        let value = |values: &BTreeMap<String, String>, name: &String| values.get(name).cloned().unwrap_or_default();
        let pairs = names.into_iter().map(|name| (name.clone(), value(&old, name), value(&new, name)));
        pairs.filter(|(_, old, new)| old != new).collect()
    }
}

fn flatten(path: &str, value: &Json, into: &mut BTreeMap<String, String>) {
    match value {
        Json::Object(fields) if !fields.contains_key("secs") => {
            for (name, value) in fields {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                flatten(&path, value, into);
            }
        }
        value => drop(into.insert(path.to_owned(), shown_value(value))),
    }
}
