//! A plan as a value.
//!
//! Absent fields stay `None` here: the configuration comes next, then the defaults in `plan::settings`.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::yaml::Node;
use super::{Record, TaskId, read};
use crate::file_problem::{FileProblem, FileProblems, ProblemList, TextSpan};
use crate::nearest::nearest;
use crate::words;

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Plan {
    /// The value of `meta.name`, or the name of the file without its extension.
    pub name: String,
    pub meta: Meta,
    pub sections: Vec<Section>,
    /// The names in the plan that must exist elsewhere.
    #[serde(skip)]
    pub(super) mentions: Vec<Mention>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Meta {
    /// The design document for every session.
    pub plan_doc: Option<String>,
    /// The backlog item of this plan.
    pub source_item: Option<String>,
    pub requirements_path: Option<String>,
    #[serde(rename(deserialize = "max_attempts_default"))]
    pub max_attempts: Option<u32>,
    #[serde(rename(deserialize = "timeout_default"))]
    pub timeout: Option<Duration>,
    #[serde(rename(deserialize = "circuit_breaker_threshold"))]
    pub breaker_threshold: Option<u32>,
    #[serde(rename(deserialize = "circuit_breaker_reset_timeout"))]
    pub breaker_reset: Option<Duration>,
    pub backoff_base: Option<Duration>,
    pub backoff_max: Option<Duration>,
    pub budget: BudgetMeta,
    pub validation: Validation,
    #[serde(rename(deserialize = "model_escalation"))]
    pub escalation: Escalation,
    /// Replaces the model of tasks that plan or judge.
    pub judge_model: Option<String>,
    /// Notifies of every success. Unset: only in long plans.
    pub step_notifications: Option<bool>,
    #[serde(skip_deserializing)]
    pub parallel: Option<Parallel>,
    pub isolation: Option<Isolation>,
    #[serde(skip_deserializing)]
    pub gates: Vec<Gate>,
}

/// Money, in US dollars. Absent and zero both mean no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct BudgetMeta {
    #[serde(rename = "quota_ceiling_usd")]
    pub ceiling_usd: Option<f64>,
    #[serde(rename = "max_quota_percent")]
    pub percent: Option<f64>,
    #[serde(rename = "reserved_budget_usd")]
    pub reserved_usd: Option<f64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Validation {
    pub enabled: bool,
    /// Tasks of these agents are validated.
    pub run_after: Vec<String>,
    /// Run in this order; the first FAIL ends it.
    pub validators: Vec<String>,
    #[serde(rename(deserialize = "max_validation_attempts"))]
    pub max_attempts: u32,
    #[serde(rename(deserialize = "warn_policy"))]
    pub on_warning: OnWarning,
}

impl Default for Validation {
    fn default() -> Self {
        Self {
            enabled: false,
            run_after: vec!["coder".into()],
            validators: vec![DEFAULT_VALIDATOR.into()],
            max_attempts: 2,
            on_warning: OnWarning::Accept,
        }
    }
}

words! {
    /// The meaning of a validator's WARN.
    pub enum OnWarning ("policy") {
        Accept = "accept",
        /// Retry once, then accept.
        Retry = "retry",
        Fail = "fail",
    }
}

/// The rule for escalating a task to a stronger model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Escalation {
    pub enabled: bool,
    /// The number of failures before the next tier.
    #[serde(rename(deserialize = "escalate_after"))]
    pub after: u32,
    pub max_model: String,
    pub validation_model: String,
    pub starting_model: String,
}

impl Default for Escalation {
    fn default() -> Self {
        Self {
            enabled: false,
            after: 2,
            max_model: "opus".into(),
            validation_model: "sonnet".into(),
            starting_model: "sonnet".into(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Parallel {
    Off,
    /// As many sessions as the configuration allows.
    On,
    Workers(u32),
}

words! {
    /// The place where tasks run.
    #[derive(Default)]
    pub enum Isolation ("isolation") {
        /// Each in a work tree of its own.
        #[default]
        Worktree = "worktree",
        /// In the user's checkout, one after the other.
        InPlace = "in_place",
    }
}

/// A command that posse runs to check the work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Gate {
    pub name: String,
    pub command: String,
    pub when: GateWhen,
}

words! {
    pub enum GateWhen ("time") {
        AfterTask = "after_task",
        AfterPlan = "after_plan",
    }
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Section {
    pub id: String,
    pub name: String,
    pub tasks: Vec<Task>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Task {
    pub id: TaskId,
    #[serde(default)]
    pub name: String,
    #[serde(default)]
    pub description: String,
    pub depends_on: Vec<TaskId>,
    pub parallel_group: Option<String>,
    #[serde(default)]
    pub exclusive_resources: Vec<String>,
    /// The files it will write, as globs.
    #[serde(default)]
    pub files: Vec<String>,
    pub agent: Option<String>,
    pub model: Option<String>,
    pub max_attempts: Option<u32>,
    pub timeout: Option<Duration>,
    /// Ids of the acceptance criteria it covers.
    #[serde(default)]
    pub target_acs: Vec<String>,
    #[serde(skip_deserializing)]
    pub permissions: Option<Permissions>,
    /// The progress recorded in the file.
    #[serde(skip_deserializing)]
    pub record: Record,
    #[serde(skip)]
    pub(super) at: TaskPlaces,
}

/// The permissions of the task's session, if narrower than its agent's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Permissions {
    Profile(String),
    Tools(Vec<String>),
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct TaskPlaces {
    pub(super) id: TextSpan,
    pub(super) depends_on: Vec<TextSpan>,
}

/// A name in a plan that must exist.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Mention {
    pub(super) what: Mentioned,
    pub(super) name: String,
    pub(super) at: TextSpan,
}

impl Mention {
    pub(super) fn new(what: Mentioned, node: &Node) -> Self {
        Self { what, name: node.as_scalar().unwrap_or_default().to_owned(), at: node.at }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mentioned {
    /// The agent of a task.
    Agent,
    /// An agent whose tasks are validated.
    RunAfter,
    Validator,
    File,
}

/// The default agent of a task.
pub const DEFAULT_AGENT: &str = "coder";
/// The default validator of a plan, also if its validator does not exist.
pub const DEFAULT_VALIDATOR: &str = "validator";

impl Plan {
    /// Parses a plan. `file` is its name for messages, and the default name of the plan. All problems are reported at
    /// once where possible.
    pub fn read(file: &str, text: &str) -> Result<(Plan, Vec<FileProblem>), FileProblems> {
        read::read(file, text)
    }

    pub fn tasks(&self) -> impl Iterator<Item = &Task> {
        self.sections.iter().flat_map(|section| &section.tasks)
    }

    pub fn task(&self, id: &str) -> Option<&Task> {
        self.tasks().find(|task| task.id.as_str() == id)
    }

    pub fn section_of(&self, id: &TaskId) -> Option<&Section> {
        self.sections.iter().find(|section| section.tasks.iter().any(|task| task.id == *id))
    }

    /// Returns problems and warnings about missing names. The caller knows the agents and files.
    pub fn missing(
        &self,
        agent_exists: impl Fn(&str) -> bool,
        file_exists: impl Fn(&str) -> bool,
    ) -> (Vec<FileProblem>, Vec<FileProblem>) {
        let mut found = ProblemList::default();
        // A wrong agent is reported at its task.
        let is_of_a_task = |name: &str| self.tasks().any(|task| task.agent() == name);
        for Mention { what, name, at } in &self.mentions {
            let exists = match what {
                Mentioned::Agent => agent_exists(name),
                Mentioned::RunAfter | Mentioned::Validator => agent_exists(name) || is_of_a_task(name),
                Mentioned::File => file_exists(name),
            };
            if exists {
                continue;
            }
            let write_one = format!("write {name}.md into the agents directory, or name another agent");
            match (what, self.not_validated_like(name)) {
                (Mentioned::Agent, _) => found
                    .error(*at, format!("there is no agent `{name}`"))
                    .add_hint(format!("{write_one}; a task without a role is not run")),
                // That agent's work would be merged without the requested validation.
                (Mentioned::RunAfter, Some(meant)) => found
                    .error(*at, format!("no task has the agent `{name}`"))
                    .add_hint(format!("did you mean `{meant}`?")),
                (Mentioned::RunAfter, None) => {
                    found.warning(*at, format!("no task has the agent `{name}`; nothing is validated after it"))
                }
                (Mentioned::Validator, _) => found
                    .warning(*at, format!("there is no agent `{name}`; `{DEFAULT_VALIDATOR}` validates in its place"))
                    .add_hint(write_one),
                (Mentioned::File, _) => found
                    .error(*at, format!("{name} does not exist"))
                    .add_hint("paths are relative to the project; create the file or remove the line"),
            };
        }
        (found.errors, found.warnings)
    }

    /// Returns the agent of a task that this name misspells, if the plan validates and that agent's work is not
    /// validated.
    fn not_validated_like(&self, name: &str) -> Option<&str> {
        let validation = &self.meta.validation;
        let agents =
            self.tasks().map(Task::agent).filter(|agent| !validation.run_after.iter().any(|known| known == agent));
        nearest(name, agents).filter(|_| validation.enabled)
    }

    /// Returns whether tasks of this agent are validated.
    pub fn validates(&self, task: &Task) -> bool {
        let validation = &self.meta.validation;
        validation.enabled && validation.run_after.iter().any(|agent| agent == task.agent())
    }
}

impl Task {
    pub fn agent(&self) -> &str {
        self.agent.as_deref().unwrap_or(DEFAULT_AGENT)
    }
}
