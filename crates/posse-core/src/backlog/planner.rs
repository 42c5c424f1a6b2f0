//! The prompt of the session that plans an item, and the rules for its plan.
//!
//! The item's text is data and never an instruction. The plan that comes back is not trusted: it must not mark a task as done,
//! and must not set commands, budgets or the isolation.

use minijinja::{Value, context};
use serde::Serialize;

use super::{Item, LogEntry};
use crate::plan::Plan;
use crate::plan::file::{Isolation, Meta};
use crate::prompts::PromptTemplates;

/// The task id in the planner's report.
pub const TASK: &str = "plan";

/// The maximum length of an item that a prompt quotes, in bytes. The prompt names the file.
const ITEM_MAX: usize = 64 << 10;

#[derive(Clone, Copy, Debug, Serialize)]
pub struct PlannerBrief<'a> {
    /// The agent's text, without its fields.
    pub role: &'a str,
    pub item: &'a Item,
    /// Relative to the project.
    pub item_path: &'a str,
    /// The whole file.
    pub item_text: &'a str,
    /// The path of the design document. The plan names it exactly like this.
    pub design_path: &'a str,
    pub plan_path: &'a str,
    /// Files of the project that describe its conventions.
    pub conventions: &'a [String],
    /// Name and description of every agent that tasks may use.
    pub agents: &'a [(String, String)],
    /// Commands that posse will run to check the work: name, command.
    pub gates: &'a [(String, String)],
    /// The path of the report. `None`: the report is the last message.
    pub report_file: Option<&'a str>,
    pub nonce: &'a str,
    /// The problems of the plan to repair.
    pub repair: Option<&'a [String]>,
    /// The failure of the previous attempt.
    pub failed: Option<&'a str>,
}

impl PlannerBrief<'_> {
    pub fn render(&self, prompts: &PromptTemplates) -> String {
        let values = context! {
            role => self.role.trim(),
            item => item_values(self.item, self.item_path, self.item_text),
            criteria => lines(numbered(self.item)),
            ..Value::from_serialize(self)
        };
        prompts.render("planner", &values) + "\n"
    }
}

/// Returns the values of an item for prompts.
pub(super) fn item_values(item: &Item, path: &str, text: &str) -> Value {
    let text = if text.len() > ITEM_MAX {
        format!("{}\n(the rest is in the file)", &text[..text.floor_char_boundary(ITEM_MAX)])
    } else {
        text.to_owned()
    };
    let entry = |entry: &LogEntry| format!("Verification #{}\n{}", entry.number, entry.text);
    context! {
        slug => item.slug.as_str(),
        kind => item.kind.as_str(),
        path,
        priority => item.priority.as_str(),
        agent => item.agent,
        text,
        log => item.log.iter().map(entry).collect::<Vec<_>>(),
    }
}

/// Returns the acceptance criteria: id, text.
pub(super) fn numbered(item: &Item) -> Vec<(String, String)> {
    item.criteria().into_iter().enumerate().map(|(i, text)| (format!("AC{}", i + 1), text)).collect()
}

pub(super) fn lines(points: Vec<(String, String)>) -> Vec<String> {
    points.into_iter().map(|(id, text)| format!("{id}: {text}")).collect()
}

/// Returns the prompt's example plan for this item, without criteria that the item does not have.
#[cfg(test)]
pub(super) fn example(item: &Item, item_path: &str, design_path: &str) -> String {
    let (item, criteria) = (item_values(item, item_path, ""), lines(numbered(item)));
    PromptTemplates::default().render("planner_example", &context! { item, criteria, design_path }) + "\n"
}

/// Returns the problems of a planner's plan, beyond those that `Plan::read` finds.
pub fn problems(plan: &Plan, item: &Item, item_path: &str, design_path: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut add = |text: String| wrong.push(text);
    let meta = &plan.meta;
    if meta.source_item.as_deref() != Some(item_path) {
        add(format!("`meta.source_item` should be {item_path}"));
    }
    if meta.plan_doc.as_deref() != Some(design_path) {
        add(format!("`meta.plan_doc` should be {design_path}"));
    }
    if !meta.validation.enabled {
        add("`meta.validation.enabled` should be true".into());
    }
    for text in not_theirs(meta) {
        add(text);
    }
    if plan.tasks().next().is_none() {
        add("the plan has no task".into());
    }
    for task in plan.tasks() {
        if task.agent.is_none() {
            add(format!("task {} names no `agent`", task.id));
        }
        if task.record != crate::plan::Record::default() {
            add(format!("task {} says what became of it; nothing of a new plan is done yet", task.id));
        }
        if task.permissions.is_some() {
            add(format!("task {}: `permissions` are not set by a planner", task.id));
        }
        for id in &task.target_acs {
            if !numbered(item).iter().any(|(known, _)| known == id) {
                add(format!("task {}: the item has no criterion {id}", task.id));
            }
        }
    }
    for (id, text) in numbered(item) {
        if !plan.tasks().any(|task| task.target_acs.contains(&id)) {
            let text: String = text.chars().take(80).collect();
            add(format!("no task covers {id} ({text}): name it in `target_acs`"));
        }
    }
    wrong
}

/// Returns the keys of `meta` that only people or the configuration may set.
fn not_theirs(meta: &Meta) -> Vec<String> {
    let money = &meta.budget;
    let set = [
        ("gates", !meta.gates.is_empty()),
        ("budget", money.ceiling_usd.is_some() || money.percent.is_some() || money.reserved_usd.is_some()),
        ("isolation", meta.isolation == Some(Isolation::InPlace)),
    ];
    set.iter()
        .filter(|(_, set)| *set)
        .map(|(key, _)| format!("`meta.{key}` is not set by a planner: remove it"))
        .collect()
}
