//! Parses a plan.

use std::path::Path;

use super::check;
use super::fields::{Keys, MapFields};
use super::file::{
    Gate, GateWhen, Isolation, Mention, Mentioned, Meta, OnWarning, Parallel, Permissions, Plan, Section, Task,
    TaskPlaces,
};
use super::yaml::{self, Node, Value};
use super::{FailureKind, Record, TaskId, TaskStatus};
use crate::config::ValueKind::{Amount, Bool, OneOf, Scalar, Scalars};
use crate::config::{LONG, NUMBER, POSITIVE, Typed, typed};
use crate::file_problem::{FileProblem, FileProblems, ProblemList, TextSpan};

const PLAN: Keys =
    Keys { of: "a plan", others: &["meta", "sections"], elsewhere: &[("tasks", "sections")], ..Keys::NONE };

#[rustfmt::skip]
const META: Keys = Keys {
    of: "meta",
    fields: &[
        ("name", Scalar), ("plan_doc", Scalar), ("source_item", Scalar), ("requirements_path", Scalar),
        ("max_attempts_default", POSITIVE), ("timeout_default", LONG),
        ("circuit_breaker_threshold", POSITIVE), ("circuit_breaker_reset_timeout", LONG),
        ("backoff_base", LONG), ("backoff_max", LONG), ("budget_limit_usd", Amount), ("step_notifications", Bool),
        ("isolation", OneOf(&Isolation::WORDS)), ("judge_model", Scalar),
    ],
    others: &[
        "budget", "validation", "model_escalation", "parallel", "gates", "title",
        // For readers, and from the original orchestrator. Nothing is mailed.
        "description", "status", "pause_reason", "failure_reason", "created", "notification_email",
    ],
    elsewhere: &[
        ("max_attempts", "max_attempts_default"), ("timeout", "timeout_default"), ("max_parallel", "parallel"),
    ],
    harmless: &[
        "name", "title", "description", "created", "status", "pause_reason", "failure_reason", "step_notifications",
        "notification_email",
    ],
    ..Keys::NONE
};

const BUDGET: Keys = Keys {
    of: "budget",
    fields: &[("quota_ceiling_usd", Amount), ("max_quota_percent", Amount), ("reserved_budget_usd", Amount)],
    elsewhere: &[("ceiling", "quota_ceiling_usd"), ("limit_usd", "quota_ceiling_usd")],
    ..Keys::NONE
};

const VALIDATION: Keys = Keys {
    of: "validation",
    fields: &[
        ("enabled", Bool),
        ("run_after", Scalars),
        ("validators", Scalars),
        ("max_validation_attempts", POSITIVE),
        ("warn_policy", OneOf(&OnWarning::WORDS)),
    ],
    elsewhere: &[("max_attempts", "max_validation_attempts")],
    ..Keys::NONE
};

const ESCALATION: Keys = Keys {
    of: "model_escalation",
    fields: &[
        ("enabled", Bool),
        ("escalate_after", POSITIVE),
        ("max_model", Scalar),
        ("validation_model", Scalar),
        ("starting_model", Scalar),
    ],
    ..Keys::NONE
};

const GATE: Keys = Keys {
    of: "a gate",
    fields: &[("name", Scalar), ("when", OneOf(&GateWhen::WORDS))],
    others: &["cmd"],
    aliases: &[("command", "cmd")],
    harmless: &["name"],
    ..Keys::NONE
};

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
        // The original orchestrator's records of earlier sessions.
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
    // Records of earlier sessions, except the number of attempts, and keys for readers.
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

/// Returns `None` if the text is not a plan at all. A plan with problems is built as far as possible, so that all
/// problems are found.
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

/// Returns the name of the plan, and the rest of `meta`.
fn meta(node: &Node, mentions: &mut Vec<Mention>, found: &mut ProblemList) -> (Option<String>, Meta) {
    let Some(mut fields) = MapFields::read(node, &META, found) else { return (None, Meta::default()) };
    let files = fields.words("plan_doc").chain(fields.words("source_item"));
    mentions.extend(files.map(|node| Mention::new(Mentioned::File, node)));
    fields.nest("budget", &BUDGET, found);
    fields.nest("model_escalation", &ESCALATION, found);
    if let Some(validation) = fields.nest("validation", &VALIDATION, found) {
        mentions.extend(validation.words("run_after").map(|node| Mention::new(Mentioned::RunAfter, node)));
        mentions.extend(validation.words("validators").map(|node| Mention::new(Mentioned::Validator, node)));
    }
    let mut meta: Meta = fields.whole();
    if let (Some(_), Some(node)) = (meta.budget.ceiling_usd, fields.node("budget_limit_usd")) {
        let what = "`budget_limit_usd` and `budget.quota_ceiling_usd` say the same";
        found.error(node.at, what).add_hint("keep one of them");
    }
    meta.budget.ceiling_usd = meta.budget.ceiling_usd.or_else(|| fields.values.get("budget_limit_usd")?.as_f64());
    meta.parallel = fields.node("parallel").and_then(|node| parallel(node, found));
    meta.gates = fields.node("gates").map_or_else(Vec::new, |node| gates(node, found));
    (name(&fields, found), meta)
}

/// Returns the name of the plan. The original orchestrator's planners also wrote `title`, and its programs never read
/// it.
fn name(fields: &MapFields<'_>, found: &mut ProblemList) -> Option<String> {
    let name = fields.text("name");
    let Some(title) = fields.words("title").next() else { return name };
    let what = if name.is_some() { "`title` has no effect beside `name`" } else { "`title` is read as `name`" };
    found.warning(title.at, what).add_hint("keep `name`");
    name.or_else(|| title.as_scalar().map(str::to_owned))
}

fn parallel(node: &Node, found: &mut ProblemList) -> Option<Parallel> {
    match typed(node) {
        Typed::Bool(true) => Some(Parallel::On),
        Typed::Bool(false) | Typed::Whole(0 | 1) => Some(Parallel::Off),
        _ => {
            let workers = POSITIVE.check(node, "`parallel`", None, &mut Vec::new());
            let workers = workers.map_err(|problem| found.errors.push(problem)).ok()?;
            Some(Parallel::Workers(u32::try_from(workers.as_u64()?).ok()?))
        }
    }
}

fn gates(node: &Node, found: &mut ProblemList) -> Vec<Gate> {
    if !matches!(node.value, Value::List(_)) {
        found.error(node.at, format!("`gates` should be a list, this is {}", node.kind()));
    }
    let mut gates = Vec::new();
    for item in node.items() {
        let Some(gate) = MapFields::read(item, &GATE, found) else { continue };
        let Some((at, command)) = gate.node("cmd").and_then(|node| Some((node.at, node.as_scalar()?.to_owned())))
        else {
            found.error(item.at, "the gate has no `cmd`").add_hint("`cmd:` is the command line to run");
            continue;
        };
        if let Some(why) = cannot_fail(&command) {
            found.warning(at, format!("this gate cannot fail: {why}"));
        }
        let when = gate.text("when").and_then(|when| when.parse().ok()).unwrap_or(GateWhen::AfterTask);
        gates.push(Gate { name: gate.text("name").unwrap_or_else(|| command.clone()), command, when });
    }
    gates
}

/// Returns why a command's exit status is meaningless, if so. A gate that always passes proves nothing.
pub fn cannot_fail(command: &str) -> Option<String> {
    let command = command.trim();
    if command.is_empty() || command == "true" || command == ":" {
        return Some("there is nothing to run".into());
    }
    let last = command.rsplit("||").next().filter(|_| command.contains("||"))?.trim();
    let first = last.split_whitespace().next().unwrap_or_default();
    matches!(first, "true" | ":" | "echo" | "printf" | "exit" if first != "exit" || last.ends_with(" 0"))
        .then(|| format!("`|| {last}` hides every failure"))
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

/// Reads an id, which must be text. Without quotes, `1.10` is the number 1.1 to other YAML readers.
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
