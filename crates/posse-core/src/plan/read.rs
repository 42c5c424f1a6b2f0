//! From the text of a plan to the plan.

use super::check;
use super::fields::{Keys, MapFields};
use super::file::{Mention, Mentioned, Meta, Permissions, Plan, Section, Task, TaskPlaces};
use super::read_meta::meta;
use super::yaml::{self, Node, Value};
use super::{Record, TaskId, TaskStatus};
use crate::file_problem::{FileProblem, FileProblems, ProblemList, TextSpan};

const PLAN: Keys = Keys { of: "a plan", elsewhere: &[("tasks", "sections")], ..Keys::NONE };

const SECTION: Keys = Keys {
    of: "a section",
    // The status of a section follows from its tasks.
    ignored: &["status"],
    elsewhere: &[("title", "name"), ("steps", "tasks")],
    harmless: &["name", "status"],
    ..Keys::NONE
};

const TASK: Keys = Keys {
    of: "a task",
    // For readers.
    ignored: &["notes"],
    aliases: &[("dependencies", "depends_on"), ("exclusive_resource", "exclusive_resources")],
    elsewhere: &[
        ("needs", "depends_on"),
        ("requires", "depends_on"),
        ("deps", "depends_on"),
        ("after", "depends_on"),
        ("group", "parallel_group"),
        ("resources", "exclusive_resources"),
        ("title", "name"),
        ("max_retries", "max_attempts"),
    ],
    // What the original orchestrator notes of earlier sessions, except for the number of attempts; and what is for readers.
    harmless: &[
        "notes",
        "target_acs",
        "execution_mode",
        "team_roles",
        "last_attempt",
        "model_used",
        "completed_at",
        "result_message",
        "last_error",
        "failure_kind",
        "suspended_at",
        "cost_usd",
        "commits",
    ],
};

const PERMISSIONS: Keys = Keys { of: "permissions", aliases: &[("allowed_tools", "tools")], ..Keys::NONE };

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
    let mut fields = MapFields::open(root, &PLAN, found)?;
    let mut mentions = Vec::new();
    let (named, meta) = match fields.node("meta") {
        Some(node) => meta(node, &mut mentions, fields.found),
        None => {
            fields.error(root.at, "the plan has no `meta`").add_hint("begin with `meta:` and a `name:` in it");
            (None, Meta::default())
        }
    };
    let sections = match fields.node("sections") {
        Some(node) => sections(node, &mut mentions, fields.found),
        None => {
            fields.error(root.at, "the plan has no `sections`").add_hint("tasks stand in `sections: [{id, tasks}]`");
            Vec::new()
        }
    };
    drop(fields);
    let name = named.unwrap_or_else(|| stem(file));
    let plan = Plan { name, meta, sections, mentions };
    check::check(&plan, found);
    Some(plan)
}

/// The name of a file without directories and ending.
fn stem(file: &str) -> String {
    let name = file.rsplit('/').next().unwrap_or(file);
    name.strip_suffix(".yaml").or_else(|| name.strip_suffix(".yml")).unwrap_or(name).to_owned()
}

fn sections(node: &Node, mentions: &mut Vec<Mention>, found: &mut ProblemList) -> Vec<Section> {
    if !matches!(node.value, Value::List(_)) || node.items().is_empty() {
        let what = if node.items().is_empty() && node.kind() == "a list" { "an empty list" } else { node.kind() };
        let problem = found.error(node.at, format!("`sections` should be a list of at least one, this is {what}"));
        problem.add_hint("each section is `- id: …` with its `tasks:`");
        return Vec::new();
    }
    let mut sections: Vec<Section> = Vec::new();
    let mut places: Vec<TextSpan> = Vec::new();
    for item in node.items() {
        let Some(mut fields) = MapFields::open(item, &SECTION, found) else { continue };
        let (id, name) = (fields.text_at("id"), fields.words("name"));
        let mut tasks = Vec::new();
        if let Some(list) = fields.node("tasks") {
            if !matches!(list.value, Value::List(_)) {
                fields.error(list.at, format!("`tasks` should be a list, this is {}", list.kind()));
            }
            tasks = list.items().iter().filter_map(|node| task(node, mentions, fields.found)).collect();
        }
        let Some((id, at)) = id else {
            fields.error(item.at, "the section has no `id`").add_hint("give it one that no other section has");
            continue;
        };
        if let Some(first) = sections.iter().position(|section| section.id == id) {
            fields.error(at, format!("there are two sections `{id}`")).add_span(places[first], "the first");
        }
        let name = name.unwrap_or_else(|| id.clone());
        places.push(at);
        sections.push(Section { id, name, tasks });
    }
    sections
}

fn task(node: &Node, mentions: &mut Vec<Mention>, found: &mut ProblemList) -> Option<Task> {
    let mut fields = MapFields::open(node, &TASK, found)?;
    let id_node = fields.node("id");
    if id_node.is_none() {
        fields.error(node.at, "the task has no `id`").add_hint("give it one that no other task of the plan has");
    }
    let id = id_node.and_then(|node| task_id(node, fields.found));
    let name = fields.words("name");
    if let (None, Some(id), Some(node)) = (&name, &id, id_node) {
        fields.error(node.at, format!("task {id} has no `name`"));
    }
    let mut depends_on = Vec::new();
    let mut depends_at = Vec::new();
    for node in fields.list("depends_on").unwrap_or_default() {
        if let Some(id) = task_id(node, fields.found) {
            depends_on.push(id);
            depends_at.push(node.at);
        }
    }
    let agent = fields.text_at("agent").map(|(name, at)| {
        mentions.push(Mention { what: Mentioned::Agent, name: name.clone(), at });
        name
    });
    for key in ["execution_mode", "team_roles"] {
        if let Some(node) = fields.node(key) {
            fields.found.warning(node.at, format!("`{key}` is not supported: the task runs in one session"));
        }
    }
    let task = Task {
        name: name.unwrap_or_default(),
        description: fields.text("description").unwrap_or_default(),
        depends_on,
        parallel_group: fields.words("parallel_group"),
        exclusive_resources: fields.words_of("exclusive_resources").unwrap_or_default(),
        files: fields.words_of("files").unwrap_or_default(),
        agent,
        model: fields.words("model"),
        max_attempts: fields.count_from_1("max_attempts"),
        timeout: fields.duration("timeout"),
        target_acs: fields.words_of("target_acs").unwrap_or_default(),
        permissions: permissions(&mut fields),
        record: record(&mut fields),
        at: TaskPlaces { id: id_node?.at, depends_on: depends_at },
        id: id?,
    };
    Some(task)
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

fn permissions(fields: &mut MapFields<'_, '_>) -> Option<Permissions> {
    let node = fields.node("permissions")?;
    if let Value::Map(..) = node.value {
        let mut inner = fields.map("permissions", &PERMISSIONS)?;
        let (tools, profile) = (inner.words_of("tools"), inner.words("profile"));
        return tools.map(Permissions::Tools).or(profile.map(Permissions::Profile));
    }
    fields.words("permissions").map(Permissions::Profile)
}

fn record(fields: &mut MapFields<'_, '_>) -> Record {
    let record = Record {
        status: fields.choice("status").unwrap_or_default(),
        attempts: fields.count("attempts").unwrap_or_default(),
        last_attempt: fields.words("last_attempt"),
        model_used: fields.words("model_used"),
        completed_at: fields.words("completed_at"),
        result_message: fields.words("result_message"),
        last_error: fields.words("last_error"),
        failure_kind: fields.choice("failure_kind"),
        validation_attempts: fields.count("validation_attempts").unwrap_or_default(),
        validation_findings: fields.words_of("validation_findings").unwrap_or_default(),
        suspended_at: fields.words("suspended_at"),
        question: fields.words("question"),
        answer: fields.words("answer"),
        skip_reason: fields.words("skip_reason"),
        cost_usd: fields.amount("cost_usd"),
        commits: fields.words_of("commits").unwrap_or_default(),
    };
    if let Some(at) = fields.node("status").map(|node| node.at)
        && record.status == TaskStatus::Skipped
        && record.skip_reason.is_none()
    {
        fields.error(at, "the task is skipped without a reason").add_hint("add `skip_reason:`");
    }
    record
}
