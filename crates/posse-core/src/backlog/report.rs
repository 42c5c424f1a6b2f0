//! The report beside an archived item.

use std::fmt::Write as _;
use std::time::Duration;

use super::Item;
use super::edit::OutcomeBlock;
use crate::plan::TaskStatus;
use crate::plan::budget::{Line, Phase, Total};
use crate::visible::{lasted, words_of};

#[derive(Clone, Copy, Debug)]
pub struct ItemReport<'a> {
    pub item: &'a Item,
    pub block: &'a OutcomeBlock,
    pub tasks: &'a [ReportedTask],
    /// Every session of the item, oldest first: planners, tasks, validators, verifiers.
    pub sessions: &'a [Line],
}

#[derive(Clone, Debug)]
pub struct ReportedTask {
    pub id: String,
    pub name: String,
    pub status: TaskStatus,
    pub attempts: u32,
    pub commits: Vec<String>,
}

pub fn markdown(report: &ItemReport<'_>) -> String {
    let ItemReport { item, block, .. } = report;
    let mut out = format!("# Report: {}\n\n", cell(&item.title));
    out.push_str("| | |\n|---|---|\n");
    let rows = [("Item", item.slug.to_string()), ("Kind", item.kind.to_string())];
    for (name, value) in rows.into_iter().chain(block.rows(cell)) {
        let _ = writeln!(out, "| {name} | {value} |");
    }
    if !item.log.is_empty() {
        out.push_str("\n## Verifications\n\n| # | verdict | |\n|---|---|---|\n");
        for entry in &item.log {
            let beginning = |mark: &str| entry.text.lines().filter(|line| line.starts_with(mark)).count();
            // The findings below repeat the points that failed.
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
                lasted(Duration::try_from_secs_f64(line.seconds).unwrap_or_default()),
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

/// Returns the purpose of a session.
fn phase(line: &Line) -> String {
    let task = line.task.as_deref().unwrap_or_default();
    match line.phase {
        Phase::Planning => "plan".into(),
        Phase::Task => format!("task {task}"),
        Phase::Validation => format!("validation of {task}"),
        Phase::Verification => "verification".into(),
    }
}

/// Returns the requested model, or else those that the tool reports.
fn model(line: &Line) -> String {
    let said = || line.usage.models.iter().map(|used| used.model.as_str()).collect::<Vec<_>>().join(", ");
    line.model.clone().unwrap_or_else(said)
}

/// Returns a text as a table cell: one line, with bars escaped.
fn cell(text: &str) -> String {
    words_of(text).replace('|', "\\|").replace('<', "&lt;")
}
