//! Runs of plans.

use std::collections::BTreeMap;

use jiff::Timestamp;
use posse_agents::headless::{self, Sandbox};
use posse_core::ids::RunId;
use posse_core::plan::file::{BudgetMeta, Gate, Isolation};
use posse_core::plan::machine::{self, Left};
use posse_core::plan::settings::Settings;
use posse_core::plan::{LeftTask, Plan, Record, State, TaskId, TaskStatus};
use posse_core::prompts::PromptTemplates;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{RunEntry, RunSummary, SessionRules};

/// A request to start a run of a plan, or to continue the run that uses the file. The client resolves the configuration and
/// the environment.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PlanIn {
    /// The plan. Absolute.
    pub file: String,
    /// The project. Absolute.
    pub directory: String,
    #[serde(flatten)]
    pub sessions: SessionRules,
    /// With `isolation: in_place`: sessions may begin in a checkout with uncommitted changes. They may not commit these.
    #[serde(default)]
    pub allow_dirty: bool,
    /// Only this task.
    pub only: Option<String>,
    /// This task and those behind it.
    pub from: Option<String>,
    /// Only the task that is next.
    #[serde(default)]
    pub single: bool,
    /// Tasks to be done again from the beginning.
    #[serde(default)]
    pub reset: Vec<String>,
    /// Sessions at once; as the plan says unless given. 0: as many as configured.
    pub workers: Option<u32>,
    /// End instead of waiting for the quota to come back.
    #[serde(default)]
    pub no_wait: bool,
    /// Leave out checks with `when: after_plan`. The report says so.
    #[serde(default)]
    pub skip_after_plan: bool,
    /// Everything special about this run, as the operator has said it. Who joins the run can tell by this whether it does what they
    /// want.
    #[serde(default)]
    pub wishes: Vec<String>,
    /// Start sessions though the quota was found to be used up.
    #[serde(default)]
    pub try_now: bool,
    pub cap_usd: Option<f64>,
    /// Over what the plan says: `quota_ceiling_usd`, `max_quota_percent` and `reserved_budget_usd`.
    #[serde(default)]
    pub budget: BudgetMeta,
    /// The environment of its sessions. Never stored.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PlanView {
    #[serde(flatten)]
    pub run: RunSummary,
    pub file: String,
    pub name: String,
    /// The backlog item that the plan is for.
    pub item: Option<String>,
    /// In the order of the plan.
    pub tasks: Vec<TaskView>,
    pub sessions: Vec<SessionView>,
    /// Sessions failed one after the other; none is started before then.
    pub paused_until: Option<Timestamp>,
    /// Tasks that pause after a failure.
    pub resting: Vec<RestView>,
    /// Things that only one may have, that this plan needs, and that other runs hold.
    pub taken: Vec<TakenView>,
    pub sandbox: Sandbox,
    /// The options that make this run differ from a plain one, in the operator's words.
    pub wishes: Vec<String>,
    /// The report, when it is over.
    pub report: Option<String>,
}

/// A task, and what has become of it.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct TaskView {
    pub id: TaskId,
    pub name: String,
    pub section: String,
    pub status: TaskStatus,
    /// The status with which a run that is over left the plan file, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown: Option<TaskStatus>,
    pub record: Record,
}

/// A session that runs.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct SessionView {
    pub task: TaskId,
    /// Its name in this run.
    pub name: String,
    /// It looks at the work of another one.
    pub validates: bool,
    pub agent: String,
    pub model: Option<String>,
    pub attempt: u32,
    pub since: Timestamp,
    /// A short description of what the session does. Null until it has printed something.
    pub doing: Option<String>,
}

/// A task that pauses after a failure.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct RestView {
    pub task: TaskId,
    pub until: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TakenView {
    pub name: String,
    pub held_by: String,
}

impl PlanView {
    /// Returns the record of every task.
    pub fn state(&self) -> State {
        let mut state = State::default();
        for task in &self.tasks {
            *state.of(&task.id) = task.record.clone();
        }
        state
    }

    /// The state of a plan after this run, for the next one.
    pub fn state_between_runs(&self, plan: &Plan) -> State {
        State::between_runs(plan, |id| {
            let TaskView { name, record, shown, .. } = self.tasks.iter().find(|task| task.id == *id)?;
            Some(LeftTask { name, record, shown: *shown })
        })
    }
}

/// Everything a run was begun with. Files that change later do not count: a session must not be able to change how it is
/// guarded.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PlanSpec {
    pub id: RunId,
    /// The plan. Absolute.
    pub file: String,
    /// As it was read.
    pub text: String,
    pub state: State,
    pub settings: Settings,
    /// The number of starts of each task in earlier runs.
    pub starts: BTreeMap<TaskId, u32>,
    /// Tasks whose work an earlier run has done, and what is left of them.
    pub left: BTreeMap<TaskId, Left>,
    /// The project. Absolute, without links.
    pub directory: String,
    #[serde(flatten)]
    pub sessions: SessionRules,
    /// The program. Absolute.
    pub program: String,
    /// The rules for git, as found when the run began.
    pub git: GitRules,
    /// The project's own agents, as they were written then: name, text.
    pub agents: BTreeMap<String, String>,
    /// The user's prompt templates when the run began.
    pub prompts: PromptTemplates,
    /// The backlog item that the plan is for.
    pub item: Option<String>,
    /// The options that make this run differ from a plain one, in the operator's words.
    pub wishes: Vec<String>,
    /// Remarks for people before the run begins.
    pub remarks: Vec<String>,
}

impl PlanSpec {
    /// Every command that checks work in this run.
    pub fn gates(&self, plan: &Plan) -> Vec<Gate> {
        match self.item {
            // Planned by a session: what it names is not run.
            Some(_) => self.config.checks(),
            None => self.config.gates(plan),
        }
    }
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct GitRules {
    pub isolation: Isolation,
    /// Sessions may begin in a checkout with uncommitted changes.
    pub allow_dirty: bool,
    /// The commit that the plan began with, in this run or an earlier one.
    pub base: Option<String>,
}

/// An entry of the journal of a run of a plan.
pub type PlanEntry = RunEntry<PlanSpec, machine::Event, machine::RunId>;

/// One line of a session's log: what the session did or said, and when.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SaidLine {
    pub at: Timestamp,
    pub event: headless::Event,
}

#[cfg(test)]
mod tests {
    use posse_core::plan::config::PlanConfig;

    use super::*;

    #[test]
    fn gates_of_a_plan_for_a_backlog_item_are_not_run() {
        let text =
            "meta: {name: p, gates: [{name: evil, cmd: touch x}]}\nsections: [{id: s, tasks: [{id: t, name: T}]}]\n";
        let (plan, _) = Plan::read("p", text).unwrap();
        let config = PlanConfig { test_command: Some("make test".into()), ..PlanConfig::default() };
        let mut spec = PlanSpec {
            id: RunId::from_random(1),
            file: "/p".into(),
            text: text.into(),
            state: State::default(),
            settings: Settings::of(&plan),
            starts: BTreeMap::new(),
            left: BTreeMap::new(),
            directory: "/".into(),
            sessions: SessionRules { config, ..SessionRules::default() },
            program: "/bin/true".into(),
            git: GitRules::default(),
            agents: BTreeMap::new(),
            prompts: PromptTemplates::default(),
            item: None,
            wishes: Vec::new(),
            remarks: Vec::new(),
        };
        let commands = |spec: &PlanSpec| spec.gates(&plan).into_iter().map(|gate| gate.command).collect::<Vec<_>>();
        assert_eq!(commands(&spec), ["make test", "touch x"], "a plan that a person runs");
        spec.item = Some("1-more".into());
        assert_eq!(commands(&spec), ["make test"], "a plan that a session may have written");
    }

    #[test]
    fn requests_have_defaults_and_refuse_unknown_fields() {
        let read = |more: &str| {
            let text = format!(r#"{{"file": "/p", "directory": "/"{more}}}"#);
            serde_json::from_str::<PlanIn>(&text)
        };
        let request = read(r#", "sandbox": "off", "config": {"test_command": "make"}"#).unwrap();
        assert_eq!((request.sessions.provider.as_str(), request.sessions.sandbox), ("claude_code", Sandbox::Off));
        assert_eq!(request.sessions.config.test_command.as_deref(), Some("make"));
        assert_eq!(request.sessions.config.task, PlanConfig::default().task, "what is not given has its default");
        assert!(read(r#", "no_such": 1"#).unwrap_err().to_string().contains("no_such"));
    }
}
