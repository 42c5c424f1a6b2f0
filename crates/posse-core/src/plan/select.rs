//! Selects the tasks that may start now, and gives reasons for the others.
//!
//! One function decides for running a plan, for showing it, and for explaining why a task does not start. If nothing
//! can start, the plan may still be unfinished; `Standing` has the difference.

use std::collections::{BTreeSet, HashMap};
use std::fmt;

use serde::Serialize;

use super::file::{Plan, Task};
use super::writes::{overlap, write_set};
use super::{State, TaskId, TaskStatus};

/// The default number of attempts of a task.
pub const DEFAULT_ATTEMPTS: u32 = 3;

/// The number of tasks of a chain that are named, besides the last.
const CHAIN_SHOWN: usize = 8;

/// The limits besides the plan and the state of its tasks.
#[derive(Clone, Copy, Debug)]
pub struct Limits<'a> {
    /// The maximum number of parallel sessions. With 1, groups have no meaning.
    pub workers: usize,
    /// Only this task.
    pub only: Option<&'a TaskId>,
    /// Only this task and its dependents.
    pub from: Option<&'a TaskId>,
    /// Tasks that pause after a failure.
    pub resting: &'a BTreeSet<TaskId>,
    /// Tasks whose validation is running.
    pub validating: &'a BTreeSet<TaskId>,
    /// Resources that other runs hold, and their holders.
    pub taken: &'a [(String, String)],
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Selection {
    /// The tasks to validate now. Validation comes before new starts, because other tasks may wait for it.
    pub validate: Vec<TaskId>,
    pub start: Vec<TaskId>,
    /// Every other unfinished task, in the order of the file.
    pub blocked: Vec<(TaskId, Why)>,
    pub standing: Standing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// A task is in progress, can start, or can start after a pause.
    Going,
    /// Every task is finished, and none has failed.
    Complete,
    /// Every task is finished, and some have failed.
    Failed,
    /// Only people's answers can unblock it.
    Suspended,
    /// The remaining tasks need a failed one, so nothing can start.
    Deadlocked,
    /// The requested tasks are done, but not the whole plan.
    Partial,
}

/// The reason why a task is not started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    Running,
    Validating,
    /// Waits for the start of a validator.
    ValidationDue,
    /// Waits for a person.
    Suspended,
    /// Waits for other tasks. Each unmet dependency has one chain down to its cause; the middle of a long chain is left
    /// out.
    Needs(Vec<Vec<(TaskId, TaskStatus)>>),
    NoAttemptsLeft {
        attempts: u32,
        of: u32,
    },
    /// Pauses after a failure.
    Resting,
    /// Another run or task holds an exclusive resource.
    Resource {
        name: String,
        held_by: String,
    },
    /// Another task writes the same files.
    Files {
        path: String,
        task: TaskId,
    },
    /// Only the order and the number of parallel sessions hold it back.
    Turn,
    /// Not among the requested tasks.
    NotAsked,
}

/// The severity of a cause, worst last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum BlockCause {
    Moves,
    NotAsked,
    Suspended,
    Stuck,
}

/// Returns whether the dependents of this task may start.
pub fn satisfied(plan: &Plan, task: &Task, state: &State) -> bool {
    match state.status(&task.id) {
        TaskStatus::Verified | TaskStatus::Skipped => true,
        TaskStatus::Completed => !plan.validates(task),
        TaskStatus::Pending | TaskStatus::InProgress | TaskStatus::Failed | TaskStatus::Suspended => false,
    }
}

/// Returns the maximum number of attempts of a task.
pub fn attempts_of(plan: &Plan, task: &Task) -> u32 {
    task.max_attempts.or(plan.meta.max_attempts).unwrap_or(DEFAULT_ATTEMPTS)
}

/// Returns the standing of a finished plan. Running, archiving and showing all use this function.
pub fn finished(plan: &Plan, state: &State) -> Option<Standing> {
    let at_end = |task: &Task| satisfied(plan, task, state) || state.status(&task.id) == TaskStatus::Failed;
    if !plan.tasks().all(at_end) {
        return None;
    }
    let failed = plan.tasks().any(|task| state.status(&task.id) == TaskStatus::Failed);
    Some(if failed { Standing::Failed } else { Standing::Complete })
}

pub fn select(plan: &Plan, state: &State, limits: &Limits<'_>) -> Selection {
    let view = View::new(plan, state, limits);
    let (validate, start) = (view.validate(), view.start());
    let mut blocked = Vec::new();
    for i in 0..view.tasks.len() {
        let id = &view.tasks[i].id;
        if view.satisfied[i] || view.status(i) == TaskStatus::Failed || validate.contains(id) || start.contains(&i) {
            continue;
        }
        blocked.push((id.clone(), view.why(i, &start)));
    }
    let standing = view.standing();
    Selection { validate, start: view.named(&start), blocked, standing }
}

/// Returns the selection without the reasons, which are the most expensive part.
pub(super) fn next(plan: &Plan, state: &State, limits: &Limits<'_>) -> Selection {
    let view = View::new(plan, state, limits);
    let start = view.named(&view.start());
    Selection { validate: view.validate(), start, blocked: Vec::new(), standing: view.standing() }
}

/// The plan with indices instead of names.
struct View<'a> {
    plan: &'a Plan,
    state: &'a State,
    limits: &'a Limits<'a>,
    tasks: Vec<&'a Task>,
    /// The unmet dependencies of each task.
    lacks: Vec<Vec<usize>>,
    satisfied: Vec<bool>,
    asked: Vec<bool>,
    /// The root cause of each task's block, and the next task on the way to it.
    causes: Vec<(BlockCause, Option<usize>)>,
    running: Vec<usize>,
}

impl<'a> View<'a> {
    fn new(plan: &'a Plan, state: &'a State, limits: &'a Limits<'a>) -> Self {
        let tasks: Vec<&Task> = plan.tasks().collect();
        let number: HashMap<&str, usize> = tasks.iter().enumerate().map(|(i, task)| (task.id.as_str(), i)).collect();
        let satisfied: Vec<bool> = tasks.iter().map(|task| satisfied(plan, task, state)).collect();
        let lacks = |task: &&Task| {
            let needs = task.depends_on.iter().filter_map(|id| number.get(id.as_str()).copied());
            needs.filter(|i| !satisfied[*i]).collect::<Vec<usize>>()
        };
        let from = limits.from.and_then(|id| number.get(id.as_str()).copied()).unwrap_or(0);
        let asked = |(i, task): (usize, &&Task)| i >= from && limits.only.is_none_or(|only| *only == task.id);
        let running = (0..tasks.len()).filter(|i| state.status(&tasks[*i].id) == TaskStatus::InProgress).collect();
        let mut view = Self {
            plan,
            state,
            limits,
            lacks: tasks.iter().map(lacks).collect(),
            asked: tasks.iter().enumerate().map(asked).collect(),
            causes: vec![(BlockCause::Moves, None); tasks.len()],
            satisfied,
            running,
            tasks,
        };
        view.find_causes();
        view
    }

    fn status(&self, i: usize) -> TaskStatus {
        self.state.status(&self.tasks[i].id)
    }

    fn attempts(&self, i: usize) -> u32 {
        self.state.get(&self.tasks[i].id).map_or(0, |record| record.attempts)
    }

    fn no_attempts_left(&self, i: usize) -> bool {
        self.status(i) == TaskStatus::Pending && self.attempts(i) >= attempts_of(self.plan, self.tasks[i])
    }

    /// Returns the task's own reason, without its dependencies.
    fn own_cause(&self, i: usize) -> BlockCause {
        match self.status(i) {
            TaskStatus::Failed => BlockCause::Stuck,
            TaskStatus::Suspended => BlockCause::Suspended,
            TaskStatus::Pending if self.no_attempts_left(i) => BlockCause::Stuck,
            TaskStatus::Pending if !self.asked[i] => BlockCause::NotAsked,
            _ => BlockCause::Moves,
        }
    }

    /// Finds the worst root cause of every task. A task listed before its dependency needs another round. A plan has no
    /// cycles.
    fn find_causes(&mut self) {
        let mut changed = true;
        while std::mem::take(&mut changed) {
            for here in 0..self.tasks.len() {
                let worst = self.lacks[here].iter().map(|next| (self.causes[*next].0, Some(*next)));
                // Of equal causes the first counts, in the order of the task's dependencies.
                let mut cause = worst.fold((self.own_cause(here), None), |a, b| if b.0 > a.0 { b } else { a });
                if cause == (BlockCause::Moves, None) {
                    cause.1 = self.lacks[here].first().copied();
                }
                changed |= cause != self.causes[here];
                self.causes[here] = cause;
            }
        }
    }

    fn validate(&self) -> Vec<TaskId> {
        let due = (0..self.tasks.len()).filter(|i| self.validation_due(*i));
        due.take(self.slots()).map(|i| self.tasks[i].id.clone()).collect()
    }

    fn validation_due(&self, i: usize) -> bool {
        self.status(i) == TaskStatus::Completed
            && !self.satisfied[i]
            && !self.limits.validating.contains(&self.tasks[i].id)
    }

    fn slots(&self) -> usize {
        self.limits.workers.max(1).saturating_sub(self.running.len() + self.limits.validating.len())
    }

    fn runnable(&self, i: usize) -> bool {
        self.status(i) == TaskStatus::Pending
            && self.asked[i]
            && self.lacks[i].is_empty()
            && !self.no_attempts_left(i)
            && !self.limits.resting.contains(&self.tasks[i].id)
    }

    fn start(&self) -> Vec<usize> {
        if (0..self.tasks.len()).any(|i| self.validation_due(i)) {
            return Vec::new();
        }
        let mut start: Vec<usize> = Vec::new();
        for i in self.candidates() {
            if start.len() < self.slots() && self.conflict(i, &start).is_none() {
                start.push(i);
            }
        }
        start
    }

    /// Returns the tasks that may run together and beside the running ones, before resources are checked.
    fn candidates(&self) -> Vec<usize> {
        let runnable: Vec<usize> = (0..self.tasks.len()).filter(|i| self.runnable(*i)).collect();
        let members = |group: &String| -> Vec<usize> {
            runnable.iter().copied().filter(|i| self.tasks[*i].parallel_group.as_ref() == Some(group)).collect()
        };
        let groups = || runnable.iter().filter_map(|i| self.tasks[*i].parallel_group.as_ref());
        match self.running.first() {
            _ if self.limits.workers <= 1 => first_free(self, &runnable),
            // A task without a group runs alone. The group of a running task may be filled up.
            Some(running) => self.tasks[*running].parallel_group.as_ref().map(members).unwrap_or_default(),
            None => match groups().map(members).find(|members| members.len() > 1) {
                Some(members) => members,
                None => first_free(self, &runnable),
            },
        }
    }

    /// Returns why a task cannot run beside the running and the chosen ones.
    fn conflict(&self, i: usize, chosen: &[usize]) -> Option<Why> {
        let task = self.tasks[i];
        if let Some((name, by)) = self.limits.taken.iter().find(|(name, _)| task.exclusive_resources.contains(name)) {
            return Some(Why::Resource { name: name.clone(), held_by: by.clone() });
        }
        let validating = (0..self.tasks.len()).filter(|i| self.limits.validating.contains(&self.tasks[*i].id));
        let others: Vec<usize> =
            self.running.iter().chain(chosen).copied().chain(validating).filter(|o| *o != i).collect();
        for other in &others {
            let other = self.tasks[*other];
            if let Some(name) = task.exclusive_resources.iter().find(|name| other.exclusive_resources.contains(name)) {
                return Some(Why::Resource { name: name.clone(), held_by: format!("task {}", other.id) });
            }
        }
        let writes = write_set(task);
        others.iter().find_map(|other| {
            let path = overlap(&writes, &write_set(self.tasks[*other]))?;
            Some(Why::Files { path: path.to_owned(), task: self.tasks[*other].id.clone() })
        })
    }

    fn why(&self, i: usize, start: &[usize]) -> Why {
        let id = &self.tasks[i].id;
        match self.status(i) {
            TaskStatus::InProgress => Why::Running,
            TaskStatus::Suspended => Why::Suspended,
            TaskStatus::Completed if self.limits.validating.contains(id) => Why::Validating,
            TaskStatus::Completed => Why::ValidationDue,
            _ if self.no_attempts_left(i) => {
                Why::NoAttemptsLeft { attempts: self.attempts(i), of: attempts_of(self.plan, self.tasks[i]) }
            }
            _ if !self.lacks[i].is_empty() => Why::Needs(self.lacks[i].iter().map(|need| self.chain(*need)).collect()),
            _ if !self.asked[i] => Why::NotAsked,
            _ if self.limits.resting.contains(id) => Why::Resting,
            _ => self.conflict(i, start).unwrap_or(Why::Turn),
        }
    }

    /// Returns the chain from a task down to the cause. The middle is left out, because a plan of a thousand tasks in a
    /// row would otherwise need a million names.
    fn chain(&self, from: usize) -> Vec<(TaskId, TaskStatus)> {
        let named = |i: usize| (self.tasks[i].id.clone(), self.status(i));
        let steps = std::iter::successors(Some(from), |i| self.causes[*i].1);
        let mut chain: Vec<_> = steps.clone().take(CHAIN_SHOWN).map(named).collect();
        chain.extend(steps.skip(CHAIN_SHOWN).last().map(named));
        chain
    }

    fn standing(&self) -> Standing {
        if let Some(finished) = finished(self.plan, self.state) {
            return finished;
        }
        // In progress, or waiting only for such tasks, a pause or the order.
        let moves = |i: usize| match self.status(i) {
            TaskStatus::InProgress => true,
            TaskStatus::Completed => !self.satisfied[i],
            TaskStatus::Pending => self.asked[i] && self.lacks[i].is_empty() && !self.no_attempts_left(i),
            TaskStatus::Verified | TaskStatus::Failed | TaskStatus::Skipped | TaskStatus::Suspended => false,
        };
        if (0..self.tasks.len()).any(moves) {
            return Standing::Going;
        }
        // Only requested, unfinished tasks decide the standing.
        let left = (0..self.tasks.len())
            .filter(|i| self.asked[*i] && !self.satisfied[*i] && self.status(*i) != TaskStatus::Failed);
        match left.map(|i| self.causes[i].0).max() {
            Some(BlockCause::Suspended) => Standing::Suspended,
            Some(BlockCause::Stuck) => Standing::Deadlocked,
            Some(BlockCause::Moves | BlockCause::NotAsked) | None => Standing::Partial,
        }
    }

    fn named(&self, tasks: &[usize]) -> Vec<TaskId> {
        tasks.iter().map(|i| self.tasks[*i].id.clone()).collect()
    }
}

/// Returns the first tasks that nothing holds back. A task that waits for a resource does not block the others.
fn first_free(view: &View<'_>, runnable: &[usize]) -> Vec<usize> {
    if !view.running.is_empty() {
        return Vec::new();
    }
    runnable.iter().copied().find(|i| view.conflict(*i, &[]).is_none()).into_iter().collect()
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Why::Running => f.write_str("it is running"),
            Why::Validating => f.write_str("it is being validated"),
            Why::ValidationDue => f.write_str("it is done and waits for its validation"),
            Why::Suspended => f.write_str("it waits for your answer"),
            Why::Needs(chains) => {
                for (i, chain) in chains.iter().enumerate() {
                    f.write_str(if i == 0 { "it waits for " } else { "; and for " })?;
                    for (j, (id, status)) in chain.iter().enumerate() {
                        let link = match j {
                            0 => "",
                            CHAIN_SHOWN => ", and so on, down to ",
                            _ => ", which waits for ",
                        };
                        write!(f, "{link}{id} ({status})")?;
                    }
                }
                Ok(())
            }
            Why::NoAttemptsLeft { attempts, of } => write!(f, "it was tried {attempts} times, and {of} are allowed"),
            Why::Resting => f.write_str("it pauses after a failure"),
            Why::Resource { name, held_by } => write!(f, "{name} is held by {held_by}"),
            Why::Files { path, task } => write!(f, "task {task} writes {path} too"),
            Why::Turn => f.write_str("it is ready, but not yet its turn"),
            Why::NotAsked => f.write_str("it is not among the tasks that were asked for"),
        }
    }
}
