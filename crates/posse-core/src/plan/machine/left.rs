//! Work that a run leaves behind: done, but not judged, or not merged. The next run of the plan goes on with it, and does not
//! do it again.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::{Event, Flight, Part, Run, RunId, Stage};
use crate::plan::{LeftTask, Plan, Record, State, TaskId, TaskStatus};

/// What is still to come for a task whose work is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Left {
    /// Its validators.
    Unjudged,
    /// Its way into the user's branch.
    Unmerged,
}

impl Left {
    /// How a task of which this is left stands when the next run begins, if that can go on with it. `then` is what the last
    /// run knew of it, `now` how it stands; a person may have answered meanwhile, or want it done again.
    fn resumed(self, then: &Record, now: &Record) -> Option<Record> {
        let same = now.question == then.question;
        let answered = now.status == TaskStatus::Pending && now.answer.is_some() && same;
        let asks = now.status == TaskStatus::Suspended && then.status == TaskStatus::Suspended && same;
        let status = match self {
            Left::Unjudged if now.status == TaskStatus::Completed || answered => TaskStatus::Completed,
            // With its answer, which the run finds when it begins.
            Left::Unmerged if answered => TaskStatus::Suspended,
            _ if asks => TaskStatus::Suspended,
            _ => return None,
        };
        Some(Record { status, ..now.clone() })
    }
}

impl Run {
    /// What is left of tasks whose work is done.
    pub fn left(&self) -> BTreeMap<TaskId, Left> {
        let left = self.flights.iter().filter_map(|(task, flight)| match flight.stage {
            Stage::Validation { .. } => Some((task.clone(), Left::Unjudged)),
            Stage::Merge | Stage::Unmerged => Some((task.clone(), Left::Unmerged)),
            Stage::Area | Stage::Session | Stage::Gates => None,
        });
        left.collect()
    }

    /// The sessions whose work is done, and neither judged nor merged.
    pub fn sessions_left(&self) -> BTreeSet<RunId> {
        let session = |task: TaskId| RunId {
            start: self.memory.get(&task).map_or(0, |memory| memory.starts),
            task,
            part: Part::Work,
        };
        self.left().into_keys().map(session).collect()
    }

    /// How often tasks were started, in this run and before.
    pub fn starts(&self) -> BTreeMap<TaskId, u32> {
        self.memory
            .iter()
            .filter(|(_, memory)| memory.starts > 0)
            .map(|(task, memory)| (task.clone(), memory.starts))
            .collect()
    }

    /// Takes in what a person does after the run, for the next one.
    pub(super) fn after_the_end(&mut self, event: Event) {
        match event {
            Event::FileBehind { shown } => self.left_in_file = shown,
            Event::Answered { task, answer } if self.state.status(&task) == TaskStatus::Suspended => {
                let record = self.state.of(&task);
                (record.answer, record.status) = (Some(answer), TaskStatus::Pending);
            }
            Event::Retry { task } => {
                self.flights.remove(&task);
                self.retry(&task);
            }
            _ => {}
        }
    }

    /// The state of a plan after this run, for the next one.
    pub fn state_between_runs(&self, plan: &Plan) -> State {
        State::between_runs(plan, |id| {
            let name = &self.plan.task(id.as_str())?.name;
            Some(LeftTask { name, record: self.state.get(id)?, shown: self.status_left_in_file(id) })
        })
    }

    /// The status of a task with which the run left the plan file. Unknown while it goes on.
    pub fn status_left_in_file(&self, task: &TaskId) -> Option<TaskStatus> {
        self.left_in_file.get(task).copied()
    }

    /// Goes on with what an earlier run has left. Before it begins.
    pub fn take_over(&mut self, left: &BTreeMap<TaskId, Left>) {
        for (task, left) in left {
            let stage = match left {
                Left::Unjudged => Stage::Validation { validator: 0, errors: 0, asked: false },
                Left::Unmerged => Stage::Unmerged,
            };
            let start = self.memory(task).starts;
            self.flights.insert(task.clone(), Flight { start, stage });
        }
    }

    /// What a person answered before the run began is done now, if it is among what was asked for.
    pub(super) fn hear_earlier_answers(&mut self) {
        let asked = self.asked();
        let unmerged = self.flights.iter().filter(|(_, flight)| flight.stage == Stage::Unmerged);
        let tasks: Vec<TaskId> = unmerged.map(|(task, _)| task.clone()).filter(|task| asked.contains(task)).collect();
        for task in tasks {
            if let Some(answer) = self.state.get(&task).and_then(|record| record.answer.clone()) {
                self.answered(&task, answer);
            }
        }
    }
}

/// How a run begins that comes after another.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Resumed {
    /// What it goes on with.
    pub left: BTreeMap<TaskId, Left>,
    /// Tasks that were done, and whose work is gone. They are done again, as if they had not been tried.
    pub gone: Vec<TaskId>,
}

/// Goes on from where the last run was. `state` is the state between the runs, and becomes what the next run begins with;
/// `there` says whether the work of a task is still there.
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
        // Who asks still wants an answer.
        if record.status == TaskStatus::Completed {
            record.status = TaskStatus::Pending;
        }
    }
    Ok(resumed)
}
