//! The prompts of sessions: the values that the templates `plan_task` and `validator` are rendered with.
//!
//! Text from files, tools and people is data. The templates mark it as such with a heading, and put it into a fence
//! that nothing in the text can close.

use minijinja::{Value, context};
use serde::Serialize;

use super::file::{Plan, Task};
use super::outcome::FailedHow;
use super::{Record, TaskId};
use crate::prompts::PromptTemplates;

/// The values of a task's prompt.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct TaskBrief<'a> {
    /// The agent's text, without its fields.
    pub role: &'a str,
    #[serde(skip)]
    pub plan: &'a Plan,
    pub plan_path: &'a str,
    pub task: &'a Task,
    #[serde(skip)]
    pub record: &'a Record,
    /// The attempt number, starting at 1.
    pub attempt: u32,
    pub before: Option<EarlierAttempt<'a>>,
    pub beside: Option<ParallelWork<'a>>,
    #[serde(skip)]
    pub in_place: Option<SharedCheckout<'a>>,
    /// The text of the plan's backlog item.
    pub item: Option<&'a str>,
    /// The commands that check the work: name, command.
    pub gates: &'a [(String, String)],
    /// The path of the report. `None`: the session may not write, so the report is the end of its last message.
    pub report_file: Option<&'a str>,
    pub nonce: &'a str,
    /// Changes to the plan file that were reverted after the last attempt.
    pub rejected: &'a [String],
}

#[derive(Clone, Copy, Debug, Serialize)]
pub struct EarlierAttempt<'a> {
    pub failed: Option<FailedHow>,
    pub message: &'a str,
    /// The end of a check's output.
    pub output: Option<&'a str>,
    /// The branch that holds its work.
    pub branch: Option<&'a str>,
}

/// The other tasks that run at the same time.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct ParallelWork<'a> {
    pub worker: u32,
    pub area: &'a str,
    pub group: &'a str,
    pub siblings: &'a [TaskId],
    pub write_set: &'a [String],
}

/// The user's own checkout, if the session works there.
#[derive(Clone, Copy, Debug)]
pub struct SharedCheckout<'a> {
    pub branch: &'a str,
    /// Files that the session must not commit, because they had uncommitted changes before.
    pub not_yours: &'a [String],
}

/// The maximum number of files that a prompt lists.
const NAMED_FILES: usize = 100;

impl TaskBrief<'_> {
    pub fn render(&self, prompts: &PromptTemplates) -> String {
        let (plan, record) = (self.plan, self.record);
        // If this run has no attempt yet, only the recorded error of an earlier run is known.
        let recorded = record.last_error.as_deref().filter(|_| self.attempt > 1);
        let recorded = recorded.map(|message| EarlierAttempt { failed: None, message, output: None, branch: None });
        let answered = record.question.as_ref().zip(record.answer.as_ref());
        let values = context! {
            role => self.role.trim(),
            findings => record.validation_findings,
            answered => answered.map(|(question, answer)| context! { question, answer }),
            in_place => self.in_place.map(|place| context! { branch => place.branch, not_yours => named(place.not_yours) }),
            task => task_values(plan, self.task),
            plan_doc => plan.meta.plan_doc,
            source_item => plan.meta.source_item,
            requirements_path => plan.meta.requirements_path,
            before => self.before.or(recorded),
            ..Value::from_serialize(self)
        };
        prompts.render("plan_task", &values) + "\n"
    }
}

fn task_values(plan: &Plan, task: &Task) -> Value {
    context! {
        id => task.id,
        name => task.name,
        section => plan.section_of(&task.id).map(|section| format!("{} ({})", section.name, section.id)),
        target_acs => task.target_acs,
        description => task.description.trim(),
    }
}

fn named(files: &[String]) -> String {
    let mut names = files.iter().take(NAMED_FILES).cloned().collect::<Vec<_>>();
    if files.len() > NAMED_FILES {
        names.push(format!("and {} more; `git status` shows them", files.len() - NAMED_FILES));
    }
    names.join("\n")
}

/// The values of a validator's prompt.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct ValidatorBrief<'a> {
    pub role: &'a str,
    #[serde(skip)]
    pub plan: &'a Plan,
    pub task: &'a Task,
    /// The session's own words about its work.
    pub message: &'a str,
    /// The changed files, and the size of each change.
    pub diff: &'a str,
    /// The checks that posse ran: name, result.
    pub gates: &'a [(String, String)],
    pub nonce: &'a str,
}

impl ValidatorBrief<'_> {
    pub fn render(&self, prompts: &PromptTemplates) -> String {
        let values = context! {
            role => self.role.trim(),
            task => task_values(self.plan, self.task),
            source_item => self.plan.meta.source_item,
            requirements_path => self.plan.meta.requirements_path,
            ..Value::from_serialize(self)
        };
        prompts.render("validator", &values) + "\n"
    }
}
