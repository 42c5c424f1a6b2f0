//! Work that a run leaves unvalidated or unmerged. The next run of the plan continues with it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Event, Run, Stage};
use crate::plan::{LeftTask, Plan, Record, State, TaskId, TaskStatus};

/// The missing step of a task whose work is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Left {
    /// Its validation.
    Unjudged,
    /// Its merge into the user's branch.
    Unmerged,
}

impl Left {
    /// Returns the task's record for the next run, or `None` if the task starts again. `then` is the record of the last run,
    /// `now` the present one; a person may have answered or reset the task meanwhile.
    fn resumed(self, then: &Record, now: &Record) -> Option<Record> {
        let same = now.question == then.question;
        let answered = now.status == TaskStatus::Pending && now.answer.is_some() && same;
        let asks = now.status == TaskStatus::Suspended && then.status == TaskStatus::Suspended && same;
        let status = match self {
            Left::Unjudged if now.status == TaskStatus::Completed || answered => TaskStatus::Completed,
            // The run finds the answer when it starts.
            Left::Unmerged if answered => TaskStatus::Suspended,
            _ if asks => TaskStatus::Suspended,
            _ => return None,
        };
        Some(Record { status, ..now.clone() })
    }
}

impl Run {
    /// Returns the tasks whose work is done but not merged.
    pub fn left(&self) -> BTreeMap<TaskId, Left> {
        let left = self.stages.iter().filter_map(|(task, stage)| match stage {
            Stage::Validation { .. } => Some((task.clone(), Left::Unjudged)),
            Stage::Merge | Stage::Unmerged => Some((task.clone(), Left::Unmerged)),
            Stage::Area | Stage::Session | Stage::Gates => None,
        });
        left.collect()
    }

    /// Returns the number of starts of each task, including earlier runs.
    pub fn starts(&self) -> BTreeMap<TaskId, u32> {
        self.memory
            .iter()
            .filter(|(_, memory)| memory.starts > 0)
            .map(|(task, memory)| (task.clone(), memory.starts))
            .collect()
    }

    /// Applies a person's action after the run, for the next run.
    pub(super) fn after_the_end(&mut self, event: Event) {
        match event {
            Event::FileBehind { shown } => self.left_in_file = shown,
            Event::Answered { task, answer } if self.state.status(&task) == TaskStatus::Suspended => {
                let record = self.state.of(&task);
                (record.answer, record.status) = (Some(answer), TaskStatus::Pending);
            }
            Event::Retry { task } => {
                self.stages.remove(&task);
                self.retry(&task);
            }
            _ => {}
        }
    }

    /// Returns the state of a plan after this run, for the next one.
    pub fn state_between_runs(&self, plan: &Plan) -> State {
        State::between_runs(plan, |id| {
            let name = &self.plan.task(id.as_str())?.name;
            Some(LeftTask { name, record: self.state.get(id)?, shown: self.status_left_in_file(id) })
        })
    }

    /// Returns the status of a task that the run left in the plan file. Unknown while the run continues.
    pub fn status_left_in_file(&self, task: &TaskId) -> Option<TaskStatus> {
        self.left_in_file.get(task).copied()
    }

    /// Takes over the work of an earlier run. Called before the run starts.
    pub fn take_over(&mut self, left: &BTreeMap<TaskId, Left>) {
        for (task, left) in left {
            let stage = match left {
                Left::Unjudged => Stage::UNJUDGED,
                Left::Unmerged => Stage::Unmerged,
            };
            self.stages.insert(task.clone(), stage);
        }
    }

    /// Applies answers given before the run started, to tasks that the run was asked to do.
    pub(super) fn hear_earlier_answers(&mut self) {
        let asked = self.asked();
        let unmerged = self.stages.iter().filter(|(_, stage)| **stage == Stage::Unmerged);
        let tasks: Vec<TaskId> = unmerged.map(|(task, _)| task.clone()).filter(|task| asked.contains(task)).collect();
        for task in tasks {
            if let Some(answer) = self.state.get(&task).and_then(|record| record.answer.clone()) {
                self.answered(&task, answer);
            }
        }
    }
}

/// The starting point of a run that follows another.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Resumed {
    /// The work to take over.
    pub left: BTreeMap<TaskId, Left>,
    /// Tasks whose work is lost. They start again at no cost.
    pub gone: Vec<TaskId>,
}

/// Prepares a run that follows another. `state` is the state between the runs and becomes that of the next run. `there` reports
/// whether the work of a task still exists.
pub fn resume<E>(
    plan: &Plan,
    state: &mut State,
    last: Option<&Run>,
    mut there: impl FnMut(&TaskId) -> Result<bool, E>,
) -> Result<Resumed, E> {
    let mut resumed = Resumed::default();
    for (task, left) in last.iter().flat_map(|last| last.left()) {
        let then = last.and_then(|last| last.state().get(&task));
        let (Some(then), Some(now), Some(_)) = (then, state.get(&task), plan.task(task.as_str())) else { continue };
        let Some(record) = left.resumed(then, now) else { continue };
        if there(&task)? {
            *state.of(&task) = record;
            resumed.left.insert(task, left);
        } else {
            resumed.gone.push(task);
        }
    }
    for task in plan.tasks().filter(|task| plan.validates(task)) {
        let known = resumed.left.contains_key(&task.id) || resumed.gone.contains(&task.id);
        if state.status(&task.id) == TaskStatus::Completed && !known {
            resumed.gone.push(task.id.clone());
        }
    }
    for task in &resumed.gone {
        let record = state.of(task);
        record.attempts = record.attempts.saturating_sub(1);
        // A suspended task still needs its answer.
        if record.status == TaskStatus::Completed {
            record.status = TaskStatus::Pending;
        }
    }
    Ok(resumed)
}
