//! A run of a plan as the world sees it.

use std::collections::BTreeMap;
use std::sync::Arc;

use posse_agents::headless::Sandbox;
use posse_core::ids::RunId;
use posse_core::plan::budget::Total;
use posse_core::plan::file::{Section, Task};
use posse_core::plan::machine::{self, Event, Part, Run, RunOutcome};
use posse_core::plan::{Plan, Record, State, TaskId, TaskStatus};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::entry::Entry;
use super::ledger::Ledger;

/// A run of a plan.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PlanView {
    #[schema(value_type = String)]
    pub id: RunId,
    /// `running` or `over`.
    #[schema(value_type = String)]
    pub status: PlanRunStatus,
    /// The plan's file.
    pub file: String,
    pub name: String,
    /// The project.
    pub directory: String,
    /// How it ended: `verified`, `completed_with_warnings`, `failed`, `deadlocked`, `suspended`, `stopped`,
    /// `budget_exhausted`, `circuit_open`, `rate_limited`, `invalid_plan` or `internal_error`.
    #[schema(value_type = Option<String>)]
    pub outcome: Option<RunOutcome>,
    pub reason: Option<String>,
    /// In the order of the plan.
    pub tasks: Vec<TaskView>,
    /// What runs now.
    pub sessions: Vec<SessionView>,
    /// No session is started before then: the quota is used up.
    pub hold: Option<HoldView>,
    /// Sessions failed one after the other; none is started before then.
    #[serde(default)]
    pub paused_until: Option<jiff::Timestamp>,
    /// Tasks that pause after a failure.
    #[serde(default)]
    pub resting: Vec<RestView>,
    /// It must start something and nobody is there who knows the environment: `posse plan run` again.
    pub waits: bool,
    /// What its sessions have used.
    #[schema(value_type = Object)]
    pub used: Total,
    /// Limits on money, and what is spent of them, by this run and by all others that count.
    #[serde(default)]
    pub limits: Vec<LimitView>,
    /// Things that only one may have, that this plan needs, and that other runs hold.
    #[serde(default)]
    pub taken: Vec<TakenView>,
    /// Whose sessions carry it out.
    #[serde(default)]
    pub provider: String,
    /// Whether sessions are confined: `on` or `off`.
    #[schema(value_type = String)]
    pub sandbox: Sandbox,
    /// What is special about it, in the operator's words.
    #[serde(default)]
    pub wishes: Vec<String>,
    pub created: jiff::Timestamp,
    pub changed: jiff::Timestamp,
    /// Where prompts, streams and work areas are kept.
    pub files: String,
    /// The report, when it is over.
    pub report: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanRunStatus {
    Running,
    Over,
}

impl PlanRunStatus {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Over => "over",
        }
    }
}

/// A task, and what has become of it.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct TaskView {
    #[schema(value_type = String)]
    pub id: TaskId,
    pub name: String,
    pub section: String,
    #[schema(value_type = String)]
    pub status: TaskStatus,
    /// As in the plan's file.
    #[schema(value_type = Object)]
    pub record: Record,
}

/// A session that runs.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct SessionView {
    #[schema(value_type = String)]
    pub task: TaskId,
    /// Its name in this run.
    pub name: String,
    /// It looks at the work of another one.
    pub validates: bool,
    pub agent: String,
    pub model: Option<String>,
    pub attempt: u32,
    pub since: jiff::Timestamp,
    /// In a few words. Nothing if nobody has heard of it yet.
    pub doing: Option<String>,
}

/// A task that pauses after a failure.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct RestView {
    #[schema(value_type = String)]
    pub task: TaskId,
    pub until: jiff::Timestamp,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LimitView {
    /// On what.
    pub name: String,
    pub limit_usd: f64,
    #[schema(value_type = Object)]
    pub spent: Total,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TakenView {
    pub name: String,
    pub held_by: String,
}

#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct HoldView {
    pub until: jiff::Timestamp,
    pub reason: String,
}

impl PlanView {
    pub(super) fn new(ledger: &Ledger, files: &str) -> Self {
        Self { tasks: Tasks::of(&ledger.run).views(), ..Self::without_tasks(ledger, files) }
    }

    pub(super) fn without_tasks(ledger: &Ledger, files: &str) -> Self {
        Self {
            id: ledger.spec.id,
            status: if ledger.closed { PlanRunStatus::Over } else { PlanRunStatus::Running },
            file: ledger.spec.file.clone(),
            name: ledger.run.plan().name.clone(),
            directory: ledger.spec.directory.clone(),
            outcome: ledger.ended.as_ref().map(|(outcome, _)| *outcome),
            reason: ledger.ended.as_ref().map(|(_, reason)| reason.clone()),
            tasks: Vec::new(),
            sessions: ledger
                .launched
                .iter()
                .map(|(run, launched)| SessionView {
                    task: run.task.clone(),
                    name: run.to_string(),
                    validates: run.part != Part::Work,
                    agent: launched.agent.clone(),
                    model: launched.model.clone(),
                    attempt: launched.attempt,
                    since: crate::timestamp(launched.at),
                    doing: None,
                })
                .collect(),
            hold: ledger
                .run
                .hold()
                .map(|hold| HoldView { until: crate::timestamp(hold.until), reason: hold.reason.clone() }),
            paused_until: ledger.run.paused().map(crate::timestamp),
            resting: ledger
                .run
                .resting()
                .iter()
                .map(|(task, until)| RestView { task: task.clone(), until: crate::timestamp(*until) })
                .collect(),
            waits: ledger.waits,
            used: ledger.total.clone(),
            limits: ledger
                .run
                .levels()
                .iter()
                .filter_map(|level| {
                    let (name, spent) = (level.name.clone(), level.spent.clone());
                    Some(LimitView { name, limit_usd: level.limit_usd?, spent })
                })
                .collect(),
            taken: ledger
                .run
                .taken_by_others()
                .iter()
                .map(|(name, held_by)| TakenView { name: name.clone(), held_by: held_by.clone() })
                .collect(),
            provider: ledger.spec.provider.clone(),
            sandbox: ledger.spec.sandbox,
            wishes: ledger.spec.wishes.clone(),
            created: crate::timestamp(ledger.begun),
            changed: crate::timestamp(ledger.changed),
            files: files.to_owned(),
            report: ledger.report.clone(),
        }
    }

    /// What has become of every task.
    pub fn state(&self) -> State {
        let mut state = State::default();
        for task in &self.tasks {
            *state.of(&task.id) = task.record.clone();
        }
        state
    }

    /// With what the sessions are heard to do.
    pub(super) fn doing(mut self, heard: &BTreeMap<String, String>) -> Self {
        for session in &mut self.sessions {
            session.doing = heard.get(&session.name).cloned();
        }
        self
    }
}

/// The tasks of a run as they were at a time. Cheap to take; to be seen they are written out.
#[derive(Clone)]
pub(super) struct Tasks {
    plan: Arc<Plan>,
    state: State,
}

impl Tasks {
    pub(super) fn of(run: &Run) -> Self {
        Self { plan: run.shared_plan(), state: run.state().clone() }
    }

    pub(super) fn views(&self) -> Vec<TaskView> {
        let of_section = |section: &Section| {
            let view = |task: &Task| TaskView {
                id: task.id.clone(),
                name: task.name.clone(),
                section: section.name.clone(),
                status: self.state.status(&task.id),
                record: self.state.get(&task.id).cloned().unwrap_or_default(),
            };
            section.tasks.iter().map(view).collect::<Vec<_>>()
        };
        self.plan.sections.iter().flat_map(of_section).collect()
    }
}

/// What everyone is told of an entry. Texts of plans and environments of gates stay in the journal.
pub(super) fn told(run: RunId, seq: i64, entry: &Entry) -> serde_json::Value {
    let mut told = match entry {
        Entry::Created { spec } => serde_json::json!({ "entry": "created", "file": spec.file }),
        Entry::Happened { event } if matches!(**event, Event::PlanEdited { .. }) => {
            serde_json::json!({ "entry": "happened", "event": { "plan_edited": {} } })
        }
        entry => serde_json::to_value(entry).unwrap_or_default(),
    };
    if let Some(told) = told.as_object_mut() {
        told.insert("plan_run".into(), run.as_str().into());
        told.insert("run_seq".into(), seq.into());
    }
    told
}

/// What everyone is told when a session has said something: that it has, not what.
pub(super) fn said(plan: RunId, run: &machine::RunId) -> serde_json::Value {
    serde_json::json!({ "plan_run": plan.as_str(), "session": run.to_string(), "task": run.task })
}

/// The name of a session's terminal.
pub(super) fn terminal_name(plan: RunId, run: &machine::RunId) -> String {
    fitting(&format!("plan-{plan}-{run}"))
}

/// As a name for a terminal. Dots, which ids have and names of terminals may not, become `_`.
pub(crate) fn fitting(name: &str) -> String {
    let name: String = name.chars().map(|c| if c == '.' { '_' } else { c }).collect();
    if name.chars().count() <= posse_core::ids::NAME_MAX {
        return name;
    }
    // Long ids differ somewhere: their fingerprint does too.
    let mark = name
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    let head: String = name.chars().take(posse_core::ids::NAME_MAX - 17).collect();
    format!("{head}-{mark:016x}")
}
