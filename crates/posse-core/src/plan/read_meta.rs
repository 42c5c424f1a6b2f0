//! The `meta` of a plan.

use super::fields::{Keys, MapFields, as_bool, word};
use super::file::{BudgetMeta, Escalation, Gate, GateWhen, Mention, Mentioned, Meta, Parallel, Validation};
use super::yaml::{Node, Value};
use crate::file_problem::{ProblemList, TextSpan};

const META: Keys = Keys {
    of: "meta",
    // Nothing is mailed.
    ignored: &["status", "pause_reason", "failure_reason", "created", "notification_email"],
    elsewhere: &[
        ("max_attempts", "max_attempts_default"),
        ("timeout", "timeout_default"),
        ("max_parallel", "parallel"),
    ],
    harmless: &[
        "name",
        "title",
        "description",
        "created",
        "status",
        "pause_reason",
        "failure_reason",
        "step_notifications",
        "notification_email",
    ],
    ..Keys::NONE
};

const BUDGET: Keys = Keys {
    of: "budget",
    elsewhere: &[("ceiling", "quota_ceiling_usd"), ("limit_usd", "quota_ceiling_usd")],
    ..Keys::NONE
};

const VALIDATION: Keys =
    Keys { of: "validation", elsewhere: &[("max_attempts", "max_validation_attempts")], ..Keys::NONE };

const ESCALATION: Keys = Keys { of: "model_escalation", ..Keys::NONE };

const GATE: Keys = Keys { of: "a gate", aliases: &[("command", "cmd")], harmless: &["name"], ..Keys::NONE };

pub(super) fn meta(node: &Node, mentions: &mut Vec<Mention>, found: &mut ProblemList) -> (Option<String>, Meta) {
    let Some(mut fields) = MapFields::open(node, &META, found) else { return (None, Meta::default()) };
    let mut mention = |mentioned: Option<(String, TextSpan)>| {
        let (name, at) = mentioned.filter(|(name, _)| !name.trim().is_empty())?;
        mentions.push(Mention { what: Mentioned::File, name: name.clone(), at });
        Some(name)
    };
    let meta = Meta {
        description: fields.text("description").unwrap_or_default(),
        plan_doc: mention(fields.text_at("plan_doc")),
        source_item: mention(fields.text_at("source_item")),
        requirements_path: fields.words("requirements_path"),
        max_attempts: fields.count_from_1("max_attempts_default"),
        timeout: fields.duration("timeout_default"),
        breaker_threshold: fields.count_from_1("circuit_breaker_threshold"),
        breaker_reset: fields.duration("circuit_breaker_reset_timeout"),
        backoff_base: fields.duration("backoff_base"),
        backoff_max: fields.duration("backoff_max"),
        budget: budget(&mut fields),
        validation: fields.map("validation", &VALIDATION).map_or_else(Validation::default, |f| validation(f, mentions)),
        escalation: fields.map("model_escalation", &ESCALATION).map_or_else(Escalation::default, escalation),
        step_notifications: fields.switch("step_notifications"),
        parallel: parallel(&mut fields),
        isolation: fields.choice("isolation"),
        gates: gates(&mut fields),
    };
    (name(&mut fields), meta)
}

/// The name of the plan. The original orchestrator's planners also wrote `title`, and its programs never read it.
fn name(fields: &mut MapFields<'_, '_>) -> Option<String> {
    let name = fields.words("name");
    let Some((title, at)) = fields.text_at("title") else { return name };
    let what = if name.is_some() { "`title` has no effect beside `name`" } else { "`title` is read as `name`" };
    fields.found.warning(at, what).add_hint("keep `name`");
    name.or(Some(title).filter(|title| !title.trim().is_empty()))
}

fn budget(fields: &mut MapFields<'_, '_>) -> BudgetMeta {
    let short = fields.amount("budget_limit_usd");
    let Some(mut inner) = fields.map("budget", &BUDGET) else {
        return BudgetMeta { ceiling_usd: short, ..BudgetMeta::default() };
    };
    let ceiling = inner.amount("quota_ceiling_usd");
    let budget = BudgetMeta {
        ceiling_usd: ceiling.or(short),
        percent: inner.amount("max_quota_percent"),
        reserved_usd: inner.amount("reserved_budget_usd"),
    };
    drop(inner);
    if let (Some(_), Some(_), Some(node)) = (ceiling, short, fields.node("budget_limit_usd")) {
        let problem = fields.error(node.at, "`budget_limit_usd` and `budget.quota_ceiling_usd` say the same");
        problem.add_hint("keep one of them");
    }
    budget
}

fn validation(mut fields: MapFields<'_, '_>, mentions: &mut Vec<Mention>) -> Validation {
    let default = Validation::default();
    let mut agents = |key: &'static str, what| {
        let nodes = fields.list(key)?;
        mentions.extend(nodes.iter().map(|node| Mention { what, name: word(node), at: node.at }));
        Some(nodes.into_iter().map(word).collect())
    };
    let run_after = agents("run_after", Mentioned::RunAfter);
    let validators = agents("validators", Mentioned::Validator);
    Validation {
        enabled: fields.switch("enabled").unwrap_or(default.enabled),
        run_after: run_after.unwrap_or(default.run_after),
        validators: validators.unwrap_or(default.validators),
        max_attempts: fields.count_from_1("max_validation_attempts").unwrap_or(default.max_attempts),
        on_warning: fields.choice("warn_policy").unwrap_or(default.on_warning),
    }
}

fn escalation(mut fields: MapFields<'_, '_>) -> Escalation {
    let default = Escalation::default();
    Escalation {
        enabled: fields.switch("enabled").unwrap_or(default.enabled),
        after: fields.count_from_1("escalate_after").unwrap_or(default.after),
        max_model: fields.words("max_model").unwrap_or(default.max_model),
        validation_model: fields.words("validation_model").unwrap_or(default.validation_model),
        starting_model: fields.words("starting_model").unwrap_or(default.starting_model),
    }
}

fn parallel(fields: &mut MapFields<'_, '_>) -> Option<Parallel> {
    let text = word(fields.node("parallel")?);
    match (as_bool(&text), text.parse()) {
        (Some(true), _) => Some(Parallel::On),
        (Some(false), _) | (None, Ok(0 | 1)) => Some(Parallel::Off),
        (None, Ok(workers)) => Some(Parallel::Workers(workers)),
        (None, Err(_)) => {
            // Says what it should be, and is absent then.
            fields.count("parallel").map(|_| Parallel::Off)
        }
    }
}

fn gates(fields: &mut MapFields<'_, '_>) -> Vec<Gate> {
    let Some(node) = fields.node("gates") else { return Vec::new() };
    if !matches!(node.value, Value::List(_)) {
        fields.error(node.at, format!("`gates` should be a list, this is {}", node.kind()));
    }
    let mut gates = Vec::new();
    for item in node.items() {
        let Some(mut gate) = MapFields::open(item, &GATE, fields.found) else { continue };
        let (command, name, when) = (gate.text_at("cmd"), gate.words("name"), gate.choice("when"));
        let Some((command, at)) = command else {
            gate.error(item.at, "the gate has no `cmd`").add_hint("`cmd:` is the command line to run");
            continue;
        };
        if let Some(why) = cannot_fail(&command) {
            gate.found.warning(at, format!("this gate cannot fail: {why}"));
        }
        let name = name.unwrap_or_else(|| command.clone());
        gates.push(Gate { name, when: when.unwrap_or(GateWhen::AfterTask), command });
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
