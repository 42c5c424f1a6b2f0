//! Merges a session's changes to its plan, and reverts those that are not permitted.
//!
//! A session may add tasks, split them, improve descriptions, add notes, and skip a task that has not begun, with a
//! reason. It may not set other statuses, nor change its rules: budgets, permissions, validation, gates, limits. Such
//! edits are reverted and reported. An edit that breaks the plan, or removes a task that has run, is reverted as a
//! whole. The session's own report of the edit does not matter.

use super::edit::{Edits, task_node};
use super::record::RECORD_KEYS;
use super::yaml::{self, Node, YamlTree};
use super::{Plan, Record, State, TaskId, TaskStatus};
use crate::file_problem::{FileProblem, FileProblems};

/// The result of an edit of a plan.
#[derive(Debug, PartialEq)]
pub struct Merged {
    pub text: String,
    pub plan: Plan,
    pub state: State,
    /// The rejected changes, in words for the log and for the next prompt.
    pub rejected: Vec<String>,
}

/// The reason why none of a session's changes can be accepted.
#[derive(Debug, thiserror::Error)]
enum Refused {
    #[error("it is no plan any more:\n{0}")]
    NoPlan(#[source] FileProblems),
    #[error("{0}")]
    NotYaml(FileProblem),
    #[error("the plan has no meta")]
    NoMeta,
    #[error("task {0} was removed, but it has run")]
    Removed(TaskId),
    #[error("task {0} is not where it should be")]
    Misplaced(TaskId),
    #[error("`{key}` of task {task} was changed")]
    Guarded { task: TaskId, key: &'static str },
    #[error("{}", .0.join("; "))]
    NotPutBack(Vec<String>),
}

/// Keys of `meta` that anyone may change, because no decision depends on them.
const FREE_META: [&str; 2] = ["description", "created"];

/// Fields of a task that decide its session's permissions and cost.
const GUARDED: [&str; 5] = ["agent", "model", "max_attempts", "timeout", "permissions"];

/// The guarded fields of a task that a session adds. It must name an agent, and may choose a model.
const GUARDED_NEW: [&str; 3] = ["max_attempts", "timeout", "permissions"];

/// Merges an edit into the plan. `ours` is the text before the edit.
pub fn merge(ours: &str, theirs: &str, state: &State) -> Result<Merged, FileProblems> {
    let (plan, _) = Plan::read("plan", ours)?;
    match try_merge(ours, &plan, theirs, state) {
        Ok(merged) => Ok(merged),
        Err(why) => Ok(Merged {
            text: ours.to_owned(),
            plan,
            state: state.clone(),
            rejected: vec![format!("all changes to the plan were undone: {why}")],
        }),
    }
}

fn try_merge(ours: &str, plan: &Plan, theirs: &str, state: &State) -> Result<Merged, Refused> {
    let (edited, _) = Plan::read("plan", theirs).map_err(Refused::NoPlan)?;
    let (our_tree, their_tree) = (tree(ours)?, tree(theirs)?);
    let mut rejected = Vec::new();
    let mut state = state.clone();
    let mut edits = Edits { text: theirs, splices: Vec::new() };

    for task in plan.tasks().filter(|task| edited.task(task.id.as_str()).is_none()) {
        let record = state.of(&task.id);
        if record.attempts > 0 || !matches!(record.status, TaskStatus::Pending | TaskStatus::Skipped) {
            return Err(Refused::Removed(task.id.clone()));
        }
        state.forget(&task.id);
    }
    for task in edited.tasks() {
        let before = plan.task(task.id.as_str()).map(|before| before.record.status);
        take_status(&task.id, &task.record, before.unwrap_or_default(), &mut state, &mut rejected);
        let node = task_node(&their_tree.root, &task.id).ok_or_else(|| Refused::Misplaced(task.id.clone()))?;
        let our_node = task_node(&our_tree.root, &task.id);
        for key in changed_guarded(node, our_node) {
            rejected.push(format!("task {}: `{key}` cannot be changed while the plan runs", task.id));
            let was = our_node.and_then(|node| node.get(key)).map(|entry| raw(ours, &entry.value));
            put_back(&mut edits, node, key, was).ok_or_else(|| Refused::Guarded { task: task.id.clone(), key })?;
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
    let (merged, _) = Plan::read("plan", &text).map_err(Refused::NoPlan)?;
    // Reverted changes must be gone, whatever the text looked like.
    let new_tree = tree(&text)?;
    let guarded = |task: &TaskId| {
        let node = task_node(&new_tree.root, task);
        node.is_some_and(|node| changed_guarded(node, task_node(&our_tree.root, task)).is_empty())
    };
    if !changed_meta(our_meta, meta(&new_tree)?).is_empty() || !merged.tasks().all(|task| guarded(&task.id)) {
        return Err(Refused::NotPutBack(rejected));
    }
    Ok(Merged { text, plan: merged, state, rejected })
}

fn tree(text: &str) -> Result<YamlTree, Refused> {
    yaml::parse(text).map_err(Refused::NotYaml)
}

fn meta(tree: &YamlTree) -> Result<&Node, Refused> {
    tree.root.get("meta").map(|entry| &entry.value).ok_or(Refused::NoMeta)
}

/// Accepts one claim about a task: that it is not needed, if it has not begun.
fn take_status(task: &TaskId, claimed: &Record, before: TaskStatus, state: &mut State, rejected: &mut Vec<String>) {
    let actual = state.of(task);
    if claimed.status == before {
        return;
    }
    if claimed.status == TaskStatus::Skipped && actual.status == TaskStatus::Pending {
        actual.status = TaskStatus::Skipped;
        actual.skip_reason.clone_from(&claimed.skip_reason);
        return;
    }
    rejected.push(format!("task {task}: its status cannot be set to {} while the plan runs", claimed.status));
}

/// Returns the changed keys of a task that only its author may set.
fn changed_guarded(theirs: &Node, ours: Option<&Node>) -> Vec<&'static str> {
    let own = if ours.is_some() { &GUARDED[..] } else { &GUARDED_NEW[..] };
    // While the plan runs, the text does not decide the status.
    let records = RECORD_KEYS.iter().map(String::as_str).filter(|key| !["status", "skip_reason"].contains(key));
    let changed = |key: &&str| value_of(theirs, key) != ours.and_then(|ours| value_of(ours, key));
    own.iter().copied().chain(records).filter(changed).collect()
}

fn value_of<'n>(node: &'n Node, key: &str) -> Option<&'n Node> {
    node.get(key).map(|entry| &entry.value).filter(|value| !value.is_null())
}

fn changed_meta<'n>(ours: &'n Node, theirs: &'n Node) -> Vec<&'n str> {
    let mut keys: Vec<&str> = ours.entries().iter().chain(theirs.entries()).filter_map(|entry| entry.name()).collect();
    keys.sort_unstable();
    keys.dedup();
    keys.retain(|key| {
        let value = |node: &'n Node| node.get(key).map(|entry| &entry.value);
        let same = value(ours) == value(theirs);
        !same && !FREE_META.contains(key)
    });
    keys
}

/// Returns a value exactly as written.
fn raw(text: &str, node: &Node) -> String {
    let edits = Edits { text, splices: Vec::new() };
    text[node.at.start..edits.end(node).max(node.at.start)].to_owned()
}

/// Reverts a key. Returns `None` if that takes more than one line.
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
