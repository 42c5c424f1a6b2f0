//! What a session may change in the plan it works on, and what is put back.
//!
//! A session may add tasks, split them, describe them better, add notes, and skip a task that has not begun, with a reason.
//! It may not say what has become of a task, nor change the rules it is held to: budgets, permissions, validation, gates,
//! limits. Such edits are put back and reported. What breaks the plan, or takes away a task that has run, is undone as a
//! whole. Whether the session says that it changed the plan does not matter.

use super::edit::{Edits, id_of, task_nodes};
use super::yaml::{self, Node};
use super::{Plan, Record, State, TaskId, TaskStatus};
use crate::file_problem::FileProblems;

/// The result of an edit of a plan.
#[derive(Debug, PartialEq)]
pub struct Merged {
    pub text: String,
    pub plan: Plan,
    pub state: State,
    /// What was not accepted, in words for the log and for the next prompt.
    pub rejected: Vec<String>,
}

/// What of `meta` anyone may change: nothing is decided by it.
const FREE_META: [&str; 2] = ["description", "created"];

/// Fields of a task that decide what its session may do and what it may cost.
const GUARDED: [&str; 5] = ["agent", "model", "max_attempts", "timeout", "permissions"];

/// The same for a task that a session adds. It must name an agent, and may choose a model.
const GUARDED_NEW: [&str; 3] = ["max_attempts", "timeout", "permissions"];

/// Merges an edit into the plan. `ours` is the text before the edit.
pub fn merge(ours: &str, theirs: &str, state: &State) -> Result<Merged, FileProblems> {
    let (plan, _) = Plan::read("plan", ours)?;
    Ok(try_merge(ours, &plan, theirs, state.clone()).unwrap_or_else(|why| Merged {
        text: ours.to_owned(),
        plan,
        state: state.clone(),
        rejected: vec![format!("all changes to the plan were undone: {why}")],
    }))
}

/// Returns why none of the changes can be taken, if so.
fn try_merge(ours: &str, plan: &Plan, theirs: &str, mut state: State) -> Result<Merged, String> {
    let read = |text: &str| match (Plan::read("plan", text), yaml::parse(text)) {
        (Ok((plan, _)), Ok(tree)) => Ok((plan, tree.root)),
        (Err(problems), _) => Err(format!("it is no plan any more:\n{problems}")),
        (_, Err(problem)) => Err(problem.to_string()),
    };
    let ((_, our_tree), (edited, their_tree)) = (read(ours)?, read(theirs)?);
    if our_tree.get("meta").is_some() != their_tree.get("meta").is_some() {
        return Err("meta was added or removed".into());
    }
    for task in plan.tasks().filter(|task| edited.task(task.id.as_str()).is_none()) {
        let record = state.of(&task.id);
        if record.attempts > 0 || !matches!(record.status, TaskStatus::Pending | TaskStatus::Skipped) {
            return Err(format!("task {} was removed, but it has run", task.id));
        }
        state.forget(&task.id);
    }
    let mut rejected = Vec::new();
    for task in edited.tasks() {
        if !task_nodes(&their_tree).any(|node| id_of(node) == Some(task.id.as_str())) {
            return Err(format!("task {} is not where it should be", task.id));
        }
        let before = plan.task(task.id.as_str()).map(|before| before.record.status);
        rejected.extend(take_status(&task.id, &task.record, before.unwrap_or_default(), &mut state));
    }
    let mut edits = Edits { text: theirs, splices: Vec::new() };
    for (what, ours_of_it, theirs_of_it) in guarded_changes(&our_tree, &their_tree) {
        rejected.push(what);
        let end = |node| Edits { text: ours, splices: Vec::new() }.end(node);
        let was = ours_of_it.map_or("null", |node| &ours[node.at.start..end(node)]);
        edits.splices.push((theirs_of_it.at.start..edits.end(theirs_of_it), was.to_owned()));
    }
    let text = edits.apply();
    // What was put back must be back, whatever the text looked like.
    let (plan, tree) = read(&text)?;
    if guarded_changes(&our_tree, &tree).is_empty() {
        Ok(Merged { text, plan, state, rejected })
    } else {
        Err(rejected.join("; "))
    }
}

/// Takes over one claim about a task: that it is not needed, if it has not begun. Returns any other claim, in words.
fn take_status(task: &TaskId, claimed: &Record, before: TaskStatus, state: &mut State) -> Option<String> {
    let actual = state.of(task);
    if claimed.status == before {
        return None;
    }
    if claimed.status == TaskStatus::Skipped && actual.status == TaskStatus::Pending {
        actual.status = TaskStatus::Skipped;
        actual.skip_reason.clone_from(&claimed.skip_reason);
        return None;
    }
    Some(format!("task {task}: its status cannot be set to {} while the plan runs", claimed.status))
}

/// The parts of a plan in which an edit changed what only their author may: in words, what was there, and what is there now.
fn guarded_changes<'n>(ours: &'n Node, theirs: &'n Node) -> Vec<(String, Option<&'n Node>, &'n Node)> {
    let mut found = Vec::new();
    for theirs in task_nodes(theirs).filter(|theirs| !task_nodes(ours).any(|ours| id_of(ours) == id_of(theirs))) {
        for (key, value) in GUARDED_NEW.iter().filter_map(|key| Some((key, value_of(theirs, key)?))) {
            let id = id_of(theirs).unwrap_or_default();
            found.push((format!("task {id}: `{key}` of a new task cannot be set while the plan runs"), None, value));
        }
    }
    let mut compare = |what: String, ours: &'n Node, theirs: &'n Node, is_guarded: fn(&str) -> bool| {
        let entries = ours.entries().iter().chain(theirs.entries());
        let mut keys: Vec<&str> = entries.filter_map(|entry| entry.name()).filter(|key| is_guarded(key)).collect();
        keys.sort_unstable();
        keys.dedup();
        keys.retain(|key| value_of(ours, key) != value_of(theirs, key));
        if !keys.is_empty() {
            let what = format!("{what}: {} cannot be changed while the plan runs", keys.join(", "));
            found.push((what, Some(ours), theirs));
        }
    };
    for ours in task_nodes(ours) {
        if let (Some(id), Some(theirs)) = (id_of(ours), task_nodes(theirs).find(|theirs| id_of(theirs) == id_of(ours)))
        {
            compare(format!("task {id}"), ours, theirs, |key| GUARDED.contains(&key));
        }
    }
    if let (Some(ours), Some(theirs)) = (ours.get("meta"), theirs.get("meta")) {
        compare("meta".into(), &ours.value, &theirs.value, |key| !FREE_META.contains(&key));
    }
    found
}

fn value_of<'n>(node: &'n Node, key: &str) -> Option<&'n Node> {
    node.get(key).map(|entry| &entry.value).filter(|value| !value.is_null())
}
