//! What may be started now, and why the rest may not.
//!
//! One function decides for everyone: who runs a plan, who shows it, and who asks why a task does not start. That nothing
//! can be started does not mean that all is done; what it means is said too (`Standing`).

use std::collections::{BTreeSet, HashMap};
use std::fmt;

use serde::Serialize;

use super::file::{Plan, Task};
use super::writes::{overlap, write_set};
use super::{State, TaskId, TaskStatus};

/// Attempts of a task if neither it nor the plan says how many.
pub const DEFAULT_ATTEMPTS: u32 = 3;

/// So many tasks of a chain are named, and the last.
const CHAIN_SHOWN: usize = 8;

/// What holds besides the plan and the state of its tasks.
#[derive(Clone, Copy, Debug)]
pub struct Limits<'a> {
    /// Sessions at once. With 1, groups have no meaning.
    pub workers: usize,
    /// Only this task.
    pub only: Option<&'a TaskId>,
    /// This task and those behind it.
    pub from: Option<&'a TaskId>,
    /// Tasks that pause after a failure.
    pub resting: &'a BTreeSet<TaskId>,
    /// Tasks that are being validated right now.
    pub validating: &'a BTreeSet<TaskId>,
    /// Resources that other runs hold, and who.
    pub taken: &'a [(String, String)],
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Selection {
    /// To be validated now. Before anything new is started: what waits for them must not wait longer than it has to.
    pub validate: Vec<TaskId>,
    pub start: Vec<TaskId>,
    /// Every other task that is not at its end, in the order of the file.
    pub blocked: Vec<(TaskId, Why)>,
    pub standing: Standing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// Something is under way, can be started, or will be possible when a pause is over.
    Going,
    /// Every task is at its end, and none has failed.
    Complete,
    /// Every task is at its end, and some have failed.
    Failed,
    /// Only people's answers can move it.
    Suspended,
    /// Something that failed is needed by what is left. Nothing can move.
    Deadlocked,
    /// What was asked for is done. The plan is not.
    Partial,
}

/// Why a task is not started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    Running,
    Validating,
    /// Waits for a validator to be started.
    ValidationDue,
    /// Waits for a person.
    Suspended,
    /// Waits for others. One chain for each task it needs and does not have, down to the one that is
    /// the cause; the middle of a long chain is left out.
    Needs(Vec<Vec<(TaskId, TaskStatus)>>),
    NoAttemptsLeft {
        attempts: u32,
        of: u32,
    },
    /// Pauses after a failure.
    Resting,
    /// Somebody else has what only one may have.
    Resource {
        name: String,
        held_by: String,
    },
    /// Another task writes the same files.
    Files {
        path: String,
        task: TaskId,
    },
    /// Nothing is in its way but the order, and the number of sessions at once.
    Turn,
    /// Not among the tasks that were asked for.
    NotAsked,
}

/// How far a cause is from being moved, worst last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum BlockCause {
    Moves,
    NotAsked,
    Suspended,
    Stuck,
}

/// Whether what depends on this task may begin.
pub fn satisfied(plan: &Plan, task: &Task, state: &State) -> bool {
    match state.status(&task.id) {
        TaskStatus::Verified | TaskStatus::Skipped => true,
        TaskStatus::Completed => !plan.validates(task),
        TaskStatus::Pending | TaskStatus::InProgress | TaskStatus::Failed | TaskStatus::Suspended => false,
    }
}

/// How often a task may be tried.
pub fn attempts_of(plan: &Plan, task: &Task) -> u32 {
    task.max_attempts.or(plan.meta.max_attempts).unwrap_or(DEFAULT_ATTEMPTS)
}

/// Whether a plan is at its end, and how. The one answer for running, archiving and showing.
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

/// The same without the reasons, which cost more than all the rest.
pub(super) fn next(plan: &Plan, state: &State, limits: &Limits<'_>) -> Selection {
    let view = View::new(plan, state, limits);
    let start = view.named(&view.start());
    Selection { validate: view.validate(), start, blocked: Vec::new(), standing: view.standing() }
}

/// The plan with numbers instead of names.
struct View<'a> {
    plan: &'a Plan,
    state: &'a State,
    limits: &'a Limits<'a>,
    tasks: Vec<&'a Task>,
    /// What each task needs and does not have.
    lacks: Vec<Vec<usize>>,
    satisfied: Vec<bool>,
    asked: Vec<bool>,
    /// What is at the bottom of why it does not run, and the next task on the way there.
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

    /// What keeps the task itself, not counting what it waits for.
    fn own_cause(&self, i: usize) -> BlockCause {
        match self.status(i) {
            TaskStatus::Failed => BlockCause::Stuck,
            TaskStatus::Suspended => BlockCause::Suspended,
            TaskStatus::Pending if self.no_attempts_left(i) => BlockCause::Stuck,
            TaskStatus::Pending if !self.asked[i] => BlockCause::NotAsked,
            _ => BlockCause::Moves,
        }
    }

    /// Finds the worst thing that every task waits for. If a task stands above one that it needs, that takes more than one
    /// round. A plan has no circles.
    fn find_causes(&mut self) {
        let mut changed = true;
        while std::mem::take(&mut changed) {
            for here in 0..self.tasks.len() {
                let worst = self.lacks[here].iter().map(|next| (self.causes[*next].0, Some(*next)));
                // Of equals the first, in the order the task names them.
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

    /// Those that may run beside each other and beside what runs, before resources are looked at.
    fn candidates(&self) -> Vec<usize> {
        let runnable: Vec<usize> = (0..self.tasks.len()).filter(|i| self.runnable(*i)).collect();
        let members = |group: &String| -> Vec<usize> {
            runnable.iter().copied().filter(|i| self.tasks[*i].parallel_group.as_ref() == Some(group)).collect()
        };
        let groups = || runnable.iter().filter_map(|i| self.tasks[*i].parallel_group.as_ref());
        match self.running.first() {
            _ if self.limits.workers <= 1 => first_free(self, &runnable),
            // A task outside of any group runs alone; the group of one that runs may be filled up.
            Some(running) => self.tasks[*running].parallel_group.as_ref().map(members).unwrap_or_default(),
            None => match groups().map(members).find(|members| members.len() > 1) {
                Some(members) => members,
                None => first_free(self, &runnable),
            },
        }
    }

    /// What keeps a task from running beside what runs and beside those chosen already.
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

    /// From a task down to the cause. Of a long chain only the beginning and the end: a plan of a thousand tasks in a row
    /// would otherwise cost a million names.
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
        // On its way, or nothing is in its way but others that are, a pause or the order.
        let moves = |i: usize| match self.status(i) {
            TaskStatus::InProgress => true,
            TaskStatus::Completed => !self.satisfied[i],
            TaskStatus::Pending => self.asked[i] && self.lacks[i].is_empty() && !self.no_attempts_left(i),
            TaskStatus::Verified | TaskStatus::Failed | TaskStatus::Skipped | TaskStatus::Suspended => false,
        };
        if (0..self.tasks.len()).any(moves) {
            return Standing::Going;
        }
        // Only tasks that were asked for and are not at their end can say how it stands.
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

/// The first that nothing is in the way of. One that waits for a resource does not hold up the others.
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
