//! What a session may change in the plan it works on, and what is put back.
//!
//! A session may add tasks, split them, describe them better, add notes, and skip a task that has not begun, with a reason.
//! It may not say what has become of a task, nor change the rules it is held to: budgets, permissions, validation, gates,
//! limits. Such edits are put back and reported. What breaks the plan, or takes away a task that has run, is undone as a
//! whole. Whether the session says that it changed the plan does not matter.

use super::edit::{Edits, Mark, NotWritten, task_node, write};
use super::file::Task;
use super::yaml::{self, Node, Tree};
use super::{Plan, Record, State, TaskId, TaskStatus};

/// What came of somebody's changes to a plan file.
#[derive(Debug, PartialEq)]
pub struct Merged {
    /// To be written to the file.
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

/// Takes over what a session made of the plan. `ours` is the text as we last wrote or read it, `theirs` what is there now.
pub fn merge(ours: &str, theirs: &str, state: &State, mark: &Mark) -> Result<Merged, NotWritten> {
    let (plan, _) = Plan::read("plan", ours).map_err(NotWritten::Unreadable)?;
    match try_merge(ours, &plan, theirs, state, mark) {
        Ok(merged) => Ok(merged),
        Err(why) => Ok(Merged {
            text: write(ours, state, mark)?,
            plan,
            state: state.clone(),
            rejected: vec![format!("all changes to the plan were undone: {why}")],
        }),
    }
}

/// The error is why nothing of it can be taken.
fn try_merge(ours: &str, plan: &Plan, theirs: &str, state: &State, mark: &Mark) -> Result<Merged, String> {
    let (edited, _) = Plan::read("plan", theirs).map_err(|problems| format!("it is no plan any more:\n{problems}"))?;
    let (our_tree, their_tree) = (tree(ours)?, tree(theirs)?);
    let mut rejected = Vec::new();
    let mut state = state.clone();
    let mut edits = Edits { text: theirs, splices: Vec::new() };

    for task in plan.tasks().filter(|task| edited.task(task.id.as_str()).is_none()) {
        let record = state.of(&task.id);
        if record.attempts > 0 || !matches!(record.status, TaskStatus::Pending | TaskStatus::Skipped) {
            return Err(format!("task {} was removed, but it has run", task.id));
        }
        state.forget(&task.id);
    }
    for task in edited.tasks() {
        let before = plan.task(task.id.as_str());
        let record = before.map(|before| before.record.clone()).unwrap_or_default();
        state.of(&task.id);
        take_record(task, &record, &mut state, &mut rejected);
        let node = task_node(&their_tree.root, &task.id).ok_or("a task is not where it should be")?;
        let our_node = before.and_then(|before| task_node(&our_tree.root, &before.id));
        for key in changed_guarded(task, before) {
            rejected.push(format!("task {}: `{key}` cannot be changed while the plan runs", task.id));
            let was = our_node.and_then(|node| node.get(key)).map(|entry| raw(ours, &entry.value));
            put_back(&mut edits, node, key, was).ok_or_else(|| format!("`{key}` of task {} was changed", task.id))?;
        }
    }
    let (our_meta, their_meta) = (meta(&our_tree)?, meta(&their_tree)?);
    let changed = changed_meta(our_meta, their_meta);
    if !changed.is_empty() {
        rejected.push(format!("meta: {} cannot be changed while the plan runs", changed.join(", ")));
        let range = their_meta.at.start..edits.end(their_meta);
        edits.splices.push((range, raw(ours, our_meta)));
    }

    let text = edits.apply();
    let text = write(&text, &state, mark).map_err(|error| error.to_string())?;
    let (merged, _) = Plan::read("plan", &text).map_err(|problems| problems.to_string())?;
    // What was put back must be back, whatever the text looked like.
    let held = changed_meta(our_meta, meta(&tree(&text)?)?).is_empty()
        && merged.tasks().all(|task| changed_guarded(task, plan.task(task.id.as_str())).is_empty());
    if held { Ok(Merged { text, plan: merged, state, rejected }) } else { Err(rejected.join("; ")) }
}

fn tree(text: &str) -> Result<Tree, String> {
    yaml::parse(text).map_err(|problem| problem.to_string())
}

fn meta(tree: &Tree) -> Result<&Node, String> {
    tree.root.get("meta").map(|entry| &entry.value).ok_or_else(|| "the plan has no meta".to_owned())
}

/// What a session wrote about a task. Only one thing is taken: that a task not yet begun is not needed.
fn take_record(task: &Task, before: &Record, state: &mut State, rejected: &mut Vec<String>) {
    let claimed = &task.record;
    if claimed == before {
        return;
    }
    let actual = state.of(&task.id);
    let skips = Record { status: TaskStatus::Skipped, skip_reason: claimed.skip_reason.clone(), ..before.clone() };
    if *claimed == skips && actual.status == TaskStatus::Pending {
        actual.status = TaskStatus::Skipped;
        actual.skip_reason.clone_from(&claimed.skip_reason);
        return;
    }
    rejected.push(if claimed.status == before.status {
        format!("task {}: what has become of it is not taken from the file while the plan runs", task.id)
    } else {
        format!("task {}: its status cannot be set to {} while the plan runs", task.id, claimed.status)
    });
}

fn changed_guarded(task: &Task, before: Option<&Task>) -> Vec<&'static str> {
    let set = |key: &str, task: &Task| match key {
        "agent" => task.agent.clone(),
        "model" => task.model.clone(),
        "max_attempts" => task.max_attempts.map(|n| n.to_string()),
        "timeout" => task.timeout.map(|timeout| format!("{timeout:?}")),
        _ => task.permissions.as_ref().map(|permissions| format!("{permissions:?}")),
    };
    match before {
        Some(before) => GUARDED.into_iter().filter(|key| set(key, task) != set(key, before)).collect(),
        None => GUARDED_NEW.into_iter().filter(|key| set(key, task).is_some()).collect(),
    }
}

fn changed_meta<'n>(ours: &'n Node, theirs: &'n Node) -> Vec<&'n str> {
    let mut keys: Vec<&str> = ours.entries().iter().chain(theirs.entries()).filter_map(|entry| entry.name()).collect();
    keys.sort_unstable();
    keys.dedup();
    keys.retain(|key| {
        let value = |node: &'n Node| node.get(key).map(|entry| &entry.value);
        let same = value(ours) == value(theirs);
        // The mark is ours and is written anew each time; a session's change to it is no success, only lost.
        !same && !FREE_META.contains(key) && !["status", "pause_reason", "failure_reason"].contains(key)
    });
    keys
}

/// A value as it stands in a text.
fn raw(text: &str, node: &Node) -> String {
    let edits = Edits { text, splices: Vec::new() };
    text[node.at.start..edits.end(node).max(node.at.start)].to_owned()
}

/// Nothing if it cannot be done in one line.
fn put_back(edits: &mut Edits<'_>, node: &Node, key: &str, was: Option<String>) -> Option<()> {
    let was = was.unwrap_or_else(|| "null".into());
    if was.contains('\n') {
        return None;
    }
    match node.get(key) {
        Some(entry) => edits.replace(entry, &was),
        None => {
            edits.insert_behind(node, node.get("id")?, key, &was);
            Some(())
        }
    }
}

/// The ids of tasks in one plan that another does not have.
pub fn added<'p>(before: &Plan, after: &'p Plan) -> Vec<&'p TaskId> {
    after.tasks().map(|task| &task.id).filter(|id| before.task(id.as_str()).is_none()).collect()
}
