//! What people read when the work on an item is over: a report beside the item, and one message.

use std::fmt::Write as _;
use std::time::Duration;

use super::edit::OutcomeBlock;
use super::{Item, ItemOutcome, Kind};
use crate::plan::TaskStatus;
use crate::plan::budget::{Line, Phase, Total};
use crate::visible::{shortened, words_of};

/// The longest sentence in a message.
const SENTENCE_MAX: usize = 300;

/// All that goes into a report.
#[derive(Clone, Copy, Debug)]
pub struct ItemReport<'a> {
    pub item: &'a Item,
    pub block: &'a OutcomeBlock,
    pub tasks: &'a [TaskRow],
    /// Every session that worked on it, oldest first: planners, tasks, validators, verifiers.
    pub sessions: &'a [Line],
    /// What is still open though it is done.
    pub warnings: &'a [String],
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskRow {
    pub id: String,
    pub name: String,
    pub status: TaskStatus,
    pub attempts: u32,
    pub commits: Vec<String>,
}

pub fn markdown(report: &ItemReport<'_>) -> String {
    let ItemReport { item, block, .. } = report;
    let mut out = format!("# Report: {}\n\n", cell(&item.title));
    let rows = [
        ("Item", Some(item.slug.to_string())),
        ("Kind", Some(item.kind.as_str().to_owned())),
        ("Outcome", Some(block.outcome.as_str().to_owned())),
        ("Reason", block.reason.clone()),
        ("Finished", Some(block.finished.clone())),
        ("Duration", Some(block.duration.clone())),
        ("Cost", Some(block.cost.clone())),
        ("Commits", Some(block.commits.join(", "))),
        ("Plan", block.plan.clone()),
    ];
    out.push_str("| | |\n|---|---|\n");
    for (name, value) in rows {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            let _ = writeln!(out, "| {name} | {} |", cell(&value));
        }
    }
    if !report.warnings.is_empty() {
        out.push_str("\n## Still open\n\n");
        report.warnings.iter().for_each(|warning| out.push_str(&format!("- {}\n", cell(warning))));
    }
    if !item.log.is_empty() {
        out.push_str("\n## Verifications\n\n| # | verdict | |\n|---|---|---|\n");
        for entry in &item.log {
            let beginning = |mark: &str| entry.text.lines().filter(|line| line.starts_with(mark)).count();
            // The findings below name again what does not hold.
            let (held, points) = (beginning("- [x] "), beginning("- [x] ") + beginning("- [ ] "));
            let _ = writeln!(out, "| {} | {} | {held} of {points} points hold |", entry.number, entry.verdict);
        }
    }
    if !report.tasks.is_empty() {
        out.push_str("\n## Tasks\n\n| task | | status | attempts | commits |\n|---|---|---|---|---|\n");
        for task in report.tasks {
            let (name, commits) = (cell(&task.name), cell(&task.commits.join(" ")));
            let _ = writeln!(
                out,
                "| {} | {name} | {} | {} | {commits} |",
                cell(&task.id),
                task.status.as_str(),
                task.attempts
            );
        }
    }
    if !report.sessions.is_empty() {
        out.push_str("\n## Sessions\n\n| | agent | model | attempt | outcome | duration | cost |\n");
        out.push_str("|---|---|---|---|---|---|---|\n");
        for line in report.sessions {
            let cost = line.usage.cost_usd.map_or_else(|| "unknown".to_owned(), |cost| format!("{cost:.2} USD"));
            let row = [
                phase(line),
                line.agent.clone(),
                model(line),
                line.attempt.map(|attempt| attempt.to_string()).unwrap_or_default(),
                line.outcome.replace('_', " "),
                lasted(line.seconds),
                if line.usage.partial { format!("{cost}, at least") } else { cost },
            ];
            let _ = writeln!(out, "| {} |", row.map(|text| cell(&text)).join(" | "));
        }
        let total = Total::of(report.sessions);
        let _ = writeln!(out, "\n{} sessions, {}.", total.sessions, total.cost());
        out.push_str("Costs are what the agents' programs report, as if every token were paid for.\n");
    }
    out
}

/// What a session was for.
fn phase(line: &Line) -> String {
    let task = line.task.as_deref().unwrap_or_default();
    match line.phase {
        Phase::Intake => "intake".into(),
        Phase::Planning => "plan".into(),
        Phase::Task => format!("task {task}"),
        Phase::Validation => format!("validation of {task}"),
        Phase::Verification => "verification".into(),
    }
}

/// What was asked for, else what its tool says.
fn model(line: &Line) -> String {
    let said = || line.usage.models.iter().map(|used| used.model.as_str()).collect::<Vec<_>>().join(", ");
    line.model.clone().unwrap_or_else(said)
}

/// A duration in words.
pub fn lasted(seconds: f64) -> String {
    match Duration::try_from_secs_f64(seconds).map_or(0, |lasted| lasted.as_secs()) {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds @ 60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        seconds => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}

/// A text in a table: one line, and no bar of its own.
fn cell(text: &str) -> String {
    words_of(text).replace('|', "\\|").replace('<', "&lt;")
}

/// What is told when an item is over, without asking any model.
pub fn message(item: &Item, block: &OutcomeBlock) -> String {
    let ended = match (block.outcome, item.kind) {
        (ItemOutcome::Completed, Kind::Defect) => "fixed",
        (ItemOutcome::Completed, Kind::Feature) => "done",
        (ItemOutcome::CompletedWithWarnings, _) => "done, with warnings",
        (ItemOutcome::Exhausted, _) => "not done: verified too often without success",
        (ItemOutcome::Failed, _) => "failed",
        (ItemOutcome::Deadlocked, _) => "failed: nothing could go on",
    };
    let mut out = format!("{}: {ended} ({}, {})", item.slug, block.duration, block.cost);
    if let Some(reason) = &block.reason {
        let _ = write!(out, ": {}", sentence(reason));
    }
    let about = ["root cause", "summary"].iter().find_map(|title| item.section(title)).unwrap_or(&item.title);
    let _ = write!(out, "\n{}", sentence(about));
    if !block.commits.is_empty() {
        let _ = write!(out, "\ncommits: {}", block.commits.join(" "));
    }
    out
}

/// The first sentence of a text, and not more than a few lines of it.
fn sentence(text: &str) -> String {
    let words = words_of(text);
    let end = words.find(". ").map_or(words.len(), |at| at + 1);
    shortened(&words[..end], SENTENCE_MAX)
}
