//! What a project says about how its plans are carried out: `.posse/config.toml`, the user's own configuration, defaults.
//!
//! A project's file can be written by the agents that work in the project. So it may narrow what sessions may do, and never
//! widen it: what loosens a guard is an error there, with the place where it belongs. A run takes the configuration as it
//! is when the run begins; what the file says later changes nothing.

mod guard;
mod keys;
mod layer;
#[cfg(test)]
mod tests;
mod tree;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use keys::Key;
pub use layer::{Format, Layer, Origin, Resolved, Whose, resolve, shown_duration};

use super::budget::Budget;
use super::file::{BudgetMeta, Gate, GateWhen, Isolation, Plan};
use super::keep::DEFAULT_KEEP;
use super::limits::Waits;
use super::select::DEFAULT_WORKERS;
use crate::file_problem::{FileProblem, TextSpan};

/// Where a project keeps its configuration.
pub const FILE: &str = ".posse/config.toml";
/// Where projects of the original orchestrator keep theirs. Read if there is no other.
pub const LEGACY_FILE: &str = ".claude/orchestrator-config.yaml";
/// Every key there is, with its default and what it does: what `posse plan init` writes.
pub const DEFAULT_FILE: &str = include_str!("config/default.toml");

/// Everything, with nothing left open.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Where the stop file is looked for. Below the project.
    pub state_dir: String,
    pub plans_dir: String,
    /// Where planners put design documents.
    pub design_dir: String,
    pub agents_dir: String,
    /// Commands that check the work of every task.
    pub build_command: Option<String>,
    pub test_command: Option<String>,
    pub lint_command: Option<String>,
    pub e2e_command: Option<String>,
    pub claude: Claude,
    pub sandbox: Sandbox,
    /// Variables that sessions do not get, besides those that their tool must not have.
    pub env_strip: Vec<String>,
    pub task: Task,
    pub rate_limit: Waits,
    pub breaker: super::breaker::Settings,
    pub git: Git,
    /// For plans that say nothing themselves.
    pub budget: BudgetMeta,
    /// Limits on what is spent in the last days.
    pub windows: Vec<Window>,
    pub backlog: Backlog,
    pub pipeline: Pipeline,
    pub limits: Limits,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Claude {
    /// The program; found in the PATH if nothing is said.
    pub binary: Option<String>,
    /// `haiku`, `sonnet`, `opus`: what is said instead of these words.
    pub models: BTreeMap<String, String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Sandbox {
    pub enabled: bool,
    pub strict: bool,
    /// More profiles, or other ones under our names.
    pub profiles: BTreeMap<String, Profile>,
    /// Agent, profile.
    pub agents: BTreeMap<String, String>,
    pub deny: Vec<String>,
}

/// What sessions may use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    pub tools: Vec<String>,
    pub bash: Bash,
}

/// Which commands: `none`, `read_only`, `full`, or a list of rules.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Bash {
    Policy(String),
    Rules(Vec<String>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Task {
    pub timeout: Duration,
    /// A session that says nothing for so long is ended.
    pub idle_timeout: Duration,
    /// Sessions at once, where a plan may run in parallel.
    pub max_parallel: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Git {
    pub isolation: Isolation,
    /// How long work that was not merged is kept.
    pub keep_failed: Duration,
}

/// What may be spent within the last so many days.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Window {
    /// Who says so. The user means all projects, a project means itself.
    pub whose: Whose,
    pub window: Duration,
    pub limit_usd: f64,
}

/// Where items are, and where they go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Backlog {
    pub defects: String,
    pub features: String,
    /// `defects` and `features` below it.
    pub completed: String,
    pub failed: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Pipeline {
    /// Items that are worked on at once.
    pub max_parallel_items: u32,
    pub max_verification_cycles: u32,
    pub max_item_attempts: u32,
    /// How often the backlog is looked at though nobody has told of a change. Nothing: only if nobody can tell.
    pub safety_scan_seconds: Option<u32>,
    pub plan_timeout: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    pub max_item_starts_per_hour: u32,
    pub items_per_hour: u32,
}

const MINUTE: u64 = 60;

impl Default for Config {
    fn default() -> Self {
        Self {
            state_dir: ".posse/state".into(),
            plans_dir: ".posse/plans".into(),
            design_dir: "docs/plans".into(),
            agents_dir: ".claude/agents".into(),
            build_command: None,
            test_command: None,
            lint_command: None,
            e2e_command: None,
            claude: Claude::default(),
            sandbox: Sandbox::default(),
            env_strip: Vec::new(),
            task: Task::default(),
            rate_limit: Waits::default(),
            breaker: super::breaker::Settings::default(),
            git: Git::default(),
            budget: BudgetMeta::default(),
            windows: Vec::new(),
            backlog: Backlog::default(),
            pipeline: Pipeline::default(),
            limits: Limits::default(),
        }
    }
}

impl Default for Sandbox {
    fn default() -> Self {
        Self { enabled: true, strict: true, profiles: BTreeMap::new(), agents: BTreeMap::new(), deny: Vec::new() }
    }
}

impl Default for Task {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(15 * MINUTE),
            idle_timeout: Duration::from_secs(10 * MINUTE),
            max_parallel: DEFAULT_WORKERS,
        }
    }
}

impl Default for Git {
    fn default() -> Self {
        Self { isolation: Isolation::Worktree, keep_failed: DEFAULT_KEEP }
    }
}

impl Default for Backlog {
    fn default() -> Self {
        Self {
            defects: "docs/defect-backlog".into(),
            features: "docs/feature-backlog".into(),
            completed: "docs/completed-backlog".into(),
            failed: "docs/failed-backlog".into(),
        }
    }
}

impl Default for Pipeline {
    fn default() -> Self {
        Self {
            max_parallel_items: 1,
            max_verification_cycles: 3,
            max_item_attempts: 2,
            safety_scan_seconds: None,
            plan_timeout: Duration::from_secs(10 * MINUTE),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_item_starts_per_hour: 6, items_per_hour: 30 }
    }
}

impl Config {
    /// The project's own checks, in the order in which they are run.
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

    /// All checks of a plan: the project's, and what the plan has besides. A plan cannot do without the project's: agents
    /// write plans too.
    pub fn gates(&self, plan: &Plan) -> Vec<Gate> {
        let mut gates = self.checks();
        for gate in &plan.meta.gates {
            if !gates.iter().any(|known| known.command == gate.command && known.when == gate.when) {
                gates.push(gate.clone());
            }
        }
        gates
    }

    /// What somebody has said, the plan before the configuration. Work trees are what there is if nobody says anything.
    pub fn isolation(&self, plan: &Plan) -> Option<Isolation> {
        plan.meta.isolation.or(Some(self.git.isolation).filter(|isolation| *isolation == Isolation::InPlace))
    }

    /// What is said to the tool for a model.
    pub fn model<'a>(&'a self, model: &'a str) -> &'a str {
        self.claude.models.get(model).map_or(model, String::as_str)
    }

    /// In which keys two configurations differ: name, what it was, what it is.
    pub fn differences(&self, other: &Self) -> Vec<(String, String, String)> {
        let (mut was, mut is) = (BTreeMap::new(), BTreeMap::new());
        for (config, into) in [(self, &mut was), (other, &mut is)] {
            flatten("", &serde_json::to_value(config).unwrap_or_default(), into);
        }
        let names: std::collections::BTreeSet<&String> = was.keys().chain(is.keys()).collect();
        let told = |texts: &BTreeMap<String, String>, name: &String| texts.get(name).cloned().unwrap_or_default();
        let pairs = names.into_iter().map(|name| (name.clone(), told(&was, name), told(&is, name)));
        pairs.filter(|(_, was, is)| was != is).collect()
    }
}

fn flatten(path: &str, value: &serde_json::Value, into: &mut BTreeMap<String, String>) {
    match value {
        serde_json::Value::Object(fields) if !fields.contains_key("secs") => {
            for (name, value) in fields {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                flatten(&path, value, into);
            }
        }
        serde_json::Value::Object(duration) => {
            let seconds = duration["secs"].as_u64().unwrap_or_default();
            into.insert(path.to_owned(), layer::shown_duration(Duration::from_secs(seconds)));
        }
        serde_json::Value::Null => drop(into.insert(path.to_owned(), "unset".into())),
        other => drop(into.insert(path.to_owned(), other.to_string())),
    }
}

/// A state directory that somebody names on the command line.
pub fn state_dir(text: &str) -> Result<String, FileProblem> {
    let node = tree::Node { at: TextSpan::default(), value: tree::Value::Text(text.to_owned()) };
    let value = keys::Kind::State.check(&node, "state_dir", &mut Vec::new())?;
    Ok(value.as_str().unwrap_or_default().to_owned())
}

/// A limit within a window, if these amounts make one.
fn window_limit(budget: BudgetMeta) -> Option<f64> {
    Budget::new(&[budget]).limit()
}
