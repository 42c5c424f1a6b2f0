//! The progress of tasks. The journal owns it; the plan file shows the status.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use serde::{Deserialize, Serialize};

use super::{Plan, TaskId};
use crate::words;

words! {
    #[derive(Default, Hash, utoipa::ToSchema)]
    pub enum TaskStatus ("status") {
        /// Not started, or waiting for another attempt.
        #[default]
        Pending = "pending",
        /// A living session owns it.
        InProgress = "in_progress",
        /// Its session reported success; validation is still due. In old plans also the end.
        Completed = "completed",
        /// Done, and proven as far as the plan asks for.
        Verified = "verified",
        Failed = "failed",
        Skipped = "skipped",
        /// Waits for a person's answer.
        Suspended = "suspended",
    }
}

words! {
    /// Why a task has failed for good.
    #[derive(Hash, utoipa::ToSchema)]
    pub enum FailureKind ("kind of failure") {
        AttemptsExhausted = "attempts_exhausted",
        ValidationExhausted = "validation_exhausted",
        MergeConflict = "merge_conflict",
        /// Trying again cannot help: something outside of the task is wrong.
        Config = "config",
        /// The agent was not allowed to do what the task needs, twice in the same way.
        Denied = "denied",
    }
}

/// The progress of one task. A plan file of the original orchestrator may have these fields; they count only for a task that no
/// journal knows. Times are RFC 3339 with an offset.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = TaskRecord)]
pub struct Record {
    pub status: TaskStatus,
    pub attempts: u32,
    pub last_attempt: Option<String>,
    pub model_used: Option<String>,
    pub completed_at: Option<String>,
    pub result_message: Option<String>,
    pub last_error: Option<String>,
    pub failure_kind: Option<FailureKind>,
    pub validation_attempts: u32,
    pub validation_findings: Vec<String>,
    pub suspended_at: Option<String>,
    pub question: Option<String>,
    pub answer: Option<String>,
    pub skip_reason: Option<String>,
    /// Absent is unknown, which is not nothing.
    pub cost_usd: Option<f64>,
    pub commits: Vec<String>,
}

/// The progress of every task. Cheap to copy: of a thousand tasks only few change at a time.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct State(BTreeMap<TaskId, Arc<Record>>);

/// A task in the state after its last run.
pub struct LeftTask<'a> {
    pub name: &'a str,
    pub record: &'a Record,
    /// The status that the run left in the file, if known.
    pub shown: Option<TaskStatus>,
}

impl PartialEq for State {
    fn eq(&self, other: &Self) -> bool {
        let same = |(a, b): (_, _)| Arc::ptr_eq(a, b) || a == b;
        self.0.keys().eq(other.0.keys()) && self.0.values().zip(other.0.values()).all(same)
    }
}

impl State {
    /// Returns the state recorded in a plan file.
    pub fn recorded(plan: &Plan) -> Self {
        Self(plan.tasks().map(|task| (task.id.clone(), Arc::new(task.record.clone()))).collect())
    }

    /// Returns the state of a plan between two runs: each task's state after its last run, unless a person has changed
    /// its status in the file since.
    pub fn between_runs<'a>(plan: &Plan, last: impl Fn(&TaskId) -> Option<LeftTask<'a>>) -> Self {
        let mut state = Self::recorded(plan);
        for task in plan.tasks() {
            let Some(LeftTask { name, record, shown }) = last(&task.id) else { continue };
            let status = task.record.status;
            let is_untouched = status == record.status || shown.is_none_or(|shown| shown == status);
            // A new plan in the same file may use the ids of an old one.
            let is_another_task = status == TaskStatus::Pending && name != task.name;
            if is_untouched && !is_another_task {
                state.of(&task.id).clone_from(record);
            }
        }
        state
    }

    pub fn get(&self, id: &TaskId) -> Option<&Record> {
        self.0.get(id).map(|record| &**record)
    }

    pub(super) fn known_status(&self, id: &str) -> Option<TaskStatus> {
        self.0.get(id).map(|record| record.status)
    }

    pub(super) fn statuses(&self) -> impl Iterator<Item = (&TaskId, TaskStatus)> {
        self.0.iter().map(|(id, record)| (id, record.status))
    }

    /// Returns the status of a task. An unknown task is pending.
    pub fn status(&self, id: &TaskId) -> TaskStatus {
        self.get(id).map(|record| record.status).unwrap_or_default()
    }

    /// Returns the record of a task for changes.
    pub fn of(&mut self, id: &TaskId) -> &mut Record {
        Arc::make_mut(self.0.entry(id.clone()).or_default())
    }

    pub fn forget(&mut self, id: &TaskId) {
        self.0.remove(id);
    }

    pub fn iter(&self) -> impl Iterator<Item = (&TaskId, &Record)> {
        self.0.iter().map(|(id, record)| (id, &**record))
    }
}

/// The field names of a record in a plan file.
pub(super) static RECORD_KEYS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let fields = serde_json::to_value(Record::default()).ok().and_then(|record| record.as_object().cloned());
    fields.expect("a record is a map of plain values").into_iter().map(|(name, _)| name).collect()
});
