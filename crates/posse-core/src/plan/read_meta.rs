//! The `meta` of a plan.

use super::fields::{Keys, MapFields};
use super::file::{Gate, GateWhen, Isolation, Mention, Mentioned, Meta, OnWarning, Parallel};
use super::yaml::{Node, Value};
use crate::config::ValueKind::{Amount, Bool, OneOf, Scalar, Scalars};
use crate::config::{LONG, POSITIVE, Typed, typed};
use crate::file_problem::ProblemList;

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
        // For readers, and of the original orchestrator. Nothing is mailed.
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

/// The name of the plan, and what else `meta` says.
pub(super) fn meta(node: &Node, mentions: &mut Vec<Mention>, found: &mut ProblemList) -> (Option<String>, Meta) {
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

/// The name of the plan. The original orchestrator's planners also wrote `title`, and its programs never read it.
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

/// Why a command's exit code says nothing, if so. A gate that is always green proves nothing.
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
