//! What people read when the work on an item is over: a report beside the item, and one message.

use std::fmt::Write as _;

use super::edit::OutcomeBlock;
use super::{Item, ItemOutcome, Kind};
use crate::plan::TaskStatus;

/// The longest sentence in a message.
const SENTENCE_MAX: usize = 300;

/// All that goes into a report.
#[derive(Clone, Copy, Debug)]
pub struct ItemReport<'a> {
    pub item: &'a Item,
    pub block: &'a OutcomeBlock,
    pub tasks: &'a [TaskRow],
    pub sessions: &'a [SessionRow],
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

/// One session, of any phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRow {
    /// plan, task 1.2, verify
    pub phase: String,
    pub model: Option<String>,
    /// In words: unknown is not zero.
    pub cost: String,
    pub duration: String,
    pub result: String,
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
            let verdict = format!("{:?}", entry.verdict).to_uppercase();
            let beginning = |mark: &str| entry.text.lines().filter(|line| line.starts_with(mark)).count();
            // The findings below name again what does not hold.
            let (held, points) = (beginning("- [x] "), beginning("- [x] ") + beginning("- [ ] "));
            let _ = writeln!(out, "| {} | {verdict} | {held} of {points} points hold |", entry.number);
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
        out.push_str("\n## Sessions\n\n| phase | model | duration | cost | result |\n|---|---|---|---|---|\n");
        for session in report.sessions {
            let _ = writeln!(
                out,
                "| {} | {} | {} | {} | {} |",
                cell(&session.phase),
                cell(session.model.as_deref().unwrap_or("")),
                cell(&session.duration),
                cell(&session.cost),
                cell(&session.result)
            );
        }
        out.push_str("\nCosts are what the agents' programs report, as if every token were paid for.\n");
    }
    out
}

/// A text in a table: one line, and no bar of its own.
fn cell(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|").replace('<', "&lt;")
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
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let end = words.find(". ").map_or(words.len(), |at| at + 1);
    let first = &words[..end];
    match first.char_indices().nth(SENTENCE_MAX) {
        Some((at, _)) => format!("{}…", &first[..at]),
        None => first.to_owned(),
    }
}
