//! From the text of a plan to the plan.

use std::path::Path;

use super::check;
use super::fields::{Keys, MapFields};
use super::file::{Mention, Mentioned, Meta, Permissions, Plan, Section, Task, TaskPlaces};
use super::read_meta::meta;
use super::yaml::{self, Node, Value};
use super::{FailureKind, Record, TaskId, TaskStatus};
use crate::config::ValueKind::{Amount, OneOf, Scalar, Scalars};
use crate::config::{LONG, NUMBER, POSITIVE};
use crate::file_problem::{FileProblem, FileProblems, ProblemList, TextSpan};

const PLAN: Keys =
    Keys { of: "a plan", others: &["meta", "sections"], elsewhere: &[("tasks", "sections")], ..Keys::NONE };

const SECTION: Keys = Keys {
    of: "a section",
    fields: &[("id", Scalar), ("name", Scalar)],
    // The status of a section follows from its tasks.
    others: &["tasks", "status"],
    elsewhere: &[("title", "name"), ("steps", "tasks")],
    harmless: &["name", "status"],
    ..Keys::NONE
};

#[rustfmt::skip]
const TASK: Keys = Keys {
    of: "a task",
    fields: &[
        ("name", Scalar), ("description", Scalar), ("depends_on", Scalars), ("parallel_group", Scalar),
        ("exclusive_resources", Scalars), ("files", Scalars), ("target_acs", Scalars),
        ("agent", Scalar), ("model", Scalar), ("max_attempts", POSITIVE), ("timeout", LONG),
        // What the original orchestrator notes of earlier sessions.
        ("status", OneOf(&TaskStatus::WORDS)), ("attempts", NUMBER), ("last_attempt", Scalar),
        ("failure_kind", OneOf(&FailureKind::WORDS)), ("last_error", Scalar),
        ("model_used", Scalar), ("completed_at", Scalar), ("result_message", Scalar), ("cost_usd", Amount),
        ("validation_attempts", NUMBER), ("validation_findings", Scalars), ("commits", Scalars),
        ("suspended_at", Scalar), ("question", Scalar), ("answer", Scalar), ("skip_reason", Scalar),
    ],
    // Notes are for readers.
    others: &["id", "notes", "permissions", "execution_mode", "team_roles"],
    aliases: &[("dependencies", "depends_on"), ("exclusive_resource", "exclusive_resources")],
    elsewhere: &[
        ("needs", "depends_on"), ("requires", "depends_on"), ("deps", "depends_on"), ("after", "depends_on"),
        ("group", "parallel_group"), ("resources", "exclusive_resources"), ("title", "name"),
        ("max_retries", "max_attempts"),
    ],
    // What is noted of earlier sessions, except for the number of attempts; and what is for readers.
    harmless: &[
        "notes", "target_acs", "execution_mode", "team_roles", "last_attempt", "model_used", "completed_at",
        "result_message", "last_error", "failure_kind", "suspended_at", "cost_usd", "commits",
    ],
};

const PERMISSIONS: Keys = Keys {
    of: "permissions",
    fields: &[("profile", Scalar), ("tools", Scalars)],
    aliases: &[("allowed_tools", "tools")],
    ..Keys::NONE
};

pub(super) fn read(file: &str, text: &str) -> Result<(Plan, Vec<FileProblem>), FileProblems> {
    let mut found = ProblemList::default();
    let plan = match yaml::parse(text) {
        Ok(tree) => plan(file, &tree.root, &mut found),
        Err(problem) => {
            found.errors.push(problem);
            None
        }
    };
    found.finish(file, plan)
}

/// Nothing if the text is no plan at all. A plan with problems is built as far as it goes, so that they can all be found.
fn plan(file: &str, root: &Node, found: &mut ProblemList) -> Option<Plan> {
    let fields = MapFields::read(root, &PLAN, found)?;
    let mut mentions = Vec::new();
    let (named, meta) = match fields.node("meta") {
        Some(node) => meta(node, &mut mentions, found),
        None => {
            found.error(root.at, "the plan has no `meta`").add_hint("begin with `meta:` and a `name:` in it");
            (None, Meta::default())
        }
    };
    let sections = match fields.node("sections") {
        Some(node) => sections(node, &mut mentions, found),
        None => {
            found.error(root.at, "the plan has no `sections`").add_hint("tasks stand in `sections: [{id, tasks}]`");
            Vec::new()
        }
    };
    let stem = || Path::new(file).file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let plan = Plan { name: named.unwrap_or_else(stem), meta, sections, mentions };
    check::check(&plan, found);
    Some(plan)
}

fn sections(node: &Node, mentions: &mut Vec<Mention>, found: &mut ProblemList) -> Vec<Section> {
    if node.items().is_empty() {
        let what = if node.kind() == "a list" { "an empty list" } else { node.kind() };
        let problem = found.error(node.at, format!("`sections` should be a list of at least one, this is {what}"));
        problem.add_hint("each section is `- id: …` with its `tasks:`");
    }
    let mut sections: Vec<Section> = Vec::new();
    let mut places: Vec<TextSpan> = Vec::new();
    for item in node.items() {
        let Some(fields) = MapFields::read(item, &SECTION, found) else { continue };
        let mut tasks = Vec::new();
        if let Some(list) = fields.node("tasks") {
            if !matches!(list.value, Value::List(_)) {
                found.error(list.at, format!("`tasks` should be a list, this is {}", list.kind()));
            }
            tasks = list.items().iter().filter_map(|node| task(node, mentions, found)).collect();
        }
        let (Some(id), Some(Node { at, .. })) = (fields.text("id"), fields.node("id")) else {
            found.error(item.at, "the section has no `id`").add_hint("give it one that no other section has");
            continue;
        };
        if let Some(first) = sections.iter().position(|section| section.id == id) {
            found.error(*at, format!("there are two sections `{id}`")).add_span(places[first], "the first");
        }
        places.push(*at);
        sections.push(Section { name: fields.text("name").unwrap_or_else(|| id.clone()), id, tasks });
    }
    sections
}

fn task(node: &Node, mentions: &mut Vec<Mention>, found: &mut ProblemList) -> Option<Task> {
    let mut fields = MapFields::read(node, &TASK, found)?;
    let id_node = fields.node("id");
    if id_node.is_none() {
        found.error(node.at, "the task has no `id`").add_hint("give it one that no other task of the plan has");
    }
    let id = id_node.and_then(|node| task_id(node, found));
    if let (None, Some(id), Some(node)) = (fields.values.get("name"), &id, id_node) {
        found.error(node.at, format!("task {id} has no `name`"));
    }
    let needs = fields.words("depends_on").filter_map(|node| Some((task_id(node, found)?, node.at)));
    let (depends_on, depends_at): (Vec<TaskId>, Vec<TextSpan>) = needs.unzip();
    mentions.extend(fields.words("agent").map(|node| Mention::new(Mentioned::Agent, node)));
    for key in ["execution_mode", "team_roles"] {
        if let Some(node) = fields.node(key) {
            found.warning(node.at, format!("`{key}` is not supported: the task runs in one session"));
        }
    }
    let record = fields.over(&Record::default());
    let without_reason = record.status == TaskStatus::Skipped && record.skip_reason.is_none();
    if let Some(node) = fields.node("status").filter(|_| without_reason) {
        found.error(node.at, "the task is skipped without a reason").add_hint("add `skip_reason:`");
    }
    let permissions = permissions(&fields, found);
    fields.values.insert("id".into(), id?.to_string().into());
    fields.values.insert("depends_on".into(), depends_on.iter().map(TaskId::as_str).collect());
    let at = TaskPlaces { id: id_node?.at, depends_on: depends_at };
    Some(Task { permissions, record, at, ..fields.whole() })
}

/// An id must be text. Written without quotes, `1.10` is the number 1.1 to every YAML reader but ours.
fn task_id(node: &Node, found: &mut ProblemList) -> Option<TaskId> {
    let Value::Scalar { text, plain } = &node.value else {
        found.error(node.at, format!("an id should be text, this is {}", node.kind()));
        return None;
    };
    let number = text.bytes().all(|b| b.is_ascii_digit() || b"._eE+-xX".contains(&b)) && text.parse::<f64>().is_ok();
    let whole = text.parse::<u64>().is_ok_and(|n| n.to_string() == *text);
    if *plain && number && !whole {
        let problem = found.error(node.at, format!("the id {text} is a number here, and 1.10 would be 1.1"));
        problem.add_hint(format!("quote the id: \"{text}\""));
        return None;
    }
    text.parse().map_err(|error: super::BadTaskId| found.error(node.at, error.to_string())).ok()
}

fn permissions(fields: &MapFields<'_>, found: &mut ProblemList) -> Option<Permissions> {
    let node = fields.node("permissions")?;
    if node.as_scalar().is_some() {
        return fields.words("permissions").next()?.as_scalar().map(|profile| Permissions::Profile(profile.to_owned()));
    }
    let inner = MapFields::read(node, &PERMISSIONS, found)?;
    let tools = inner.words("tools").filter_map(Node::as_scalar).map(str::to_owned).collect();
    let tools = inner.values.contains_key("tools").then_some(Permissions::Tools(tools));
    tools.or_else(|| inner.text("profile").map(Permissions::Profile))
}
