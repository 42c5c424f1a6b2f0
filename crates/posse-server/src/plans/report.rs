//! The report of a run, in Markdown.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use posse_agents::headless::Sandbox;
use posse_core::engine::Machine;
use posse_core::plan::file::{GateWhen, Isolation};
use posse_core::plan::names::plan_slug;
use posse_core::plan::outcome::Denial;
use posse_core::plan::usage::{COSTS, Summary};
use posse_core::plan::{Record, TaskId, TaskStatus};

use super::PlanLedger;
use crate::disk;

/// Writes the usage of every session of the run, beside the report.
pub(super) async fn write_usage(ledger: &PlanLedger, state: &Path) -> std::io::Result<()> {
    let name = format!("{}-usage.json", plan_slug(&ledger.machine.plan().name, &ledger.spec.file));
    let text = serde_json::to_vec_pretty(&Summary::of(ledger.lines.clone()))?;
    disk::at(state.join(name), move |disk, path| disk.write_private(path, &text)).await
}

/// Returns a report of completed tasks, costs and open tasks.
pub(super) fn markdown(ledger: &PlanLedger, kept: &[String]) -> String {
    let (plan, state) = (ledger.machine.plan(), ledger.machine.state());
    let mut out = format!("# {}\n\n", line(&plan.name));
    if let Some((outcome, reason)) = ledger.machine.outcome() {
        let _ = writeln!(out, "**{}**: {}\n", outcome.words(), line(reason));
    }
    let took = ledger.changed.timestamp().duration_since(ledger.begun.timestamp());
    let minutes = took.as_secs().max(0) / 60;
    let _ = writeln!(out, "- Run {} of {}, {minutes} min", ledger.spec.id, ledger.spec.file);
    let total = &ledger.total;
    let _ = writeln!(out, "- {} sessions, {} ({COSTS})", total.sessions, total.cost());
    for level in ledger.machine.levels() {
        let Some(limit) = level.limit_usd else { continue };
        let _ = writeln!(out, "- {}: {} of {limit:.2} USD", line(&level.name), level.spent.cost());
    }
    if let Some(file) = &ledger.spec.config_file {
        let _ = writeln!(out, "- Configuration: {} (sha256 {})", line(&file.path), file.sha256);
    }
    if ledger.spec.sandbox == Sandbox::Off {
        out.push_str("- **The sandbox was off: sessions could do everything.**\n");
    }
    if ledger.spec.git.isolation == Isolation::InPlace {
        out.push_str("- Sessions worked in the checkout itself.\n");
    }
    for gate in ledger.spec.gates(plan).iter().filter(|gate| gate.when == GateWhen::AfterPlan) {
        let said = ledger.machine.plan_checks().iter().find(|check| check.gate == gate.name);
        let said = said.map_or("not run".into(), |check| check.verdict.to_string());
        let _ = writeln!(out, "- Check `{}` (after_plan): {}", line(&gate.name), line(&said));
    }
    for section in &plan.sections {
        let _ = writeln!(out, "\n## {} {}\n", line(&section.id), line(&section.name));
        for task in &section.tasks {
            let record = state.get(&task.id).cloned().unwrap_or_default();
            let _ = writeln!(out, "- **{} {}**: {}", task.id, line(&task.name), in_words(&record));
            details(&mut out, &record);
            refused(&mut out, ledger, &task.id);
        }
    }
    if !kept.is_empty() {
        out.push_str("\n## Work that is kept\n\n");
        for kept in kept {
            let _ = writeln!(out, "- {}", line(kept));
        }
    }
    out
}

fn in_words(record: &Record) -> String {
    let mut text = record.status.to_string();
    if let (TaskStatus::Failed, Some(kind)) = (record.status, record.failure_kind) {
        let _ = write!(text, " ({kind})");
    }
    if record.attempts > 1 {
        let _ = write!(text, ", {} attempts", record.attempts);
    }
    if let Some(cost) = record.cost_usd {
        let _ = write!(text, ", {cost:.2} USD");
    }
    text
}

fn details(out: &mut String, record: &Record) {
    let texts = [
        ("", &record.result_message),
        ("Error: ", &record.last_error),
        ("Asks: ", &record.question.clone().filter(|_| record.status == TaskStatus::Suspended)),
        ("Skipped: ", &record.skip_reason),
    ];
    for (word, text) in texts {
        if let Some(text) = text {
            let _ = writeln!(out, "  - {word}{}", line(text));
        }
    }
    for finding in &record.validation_findings {
        let _ = writeln!(out, "  - Finding: {}", line(finding));
    }
    for commit in &record.commits {
        let _ = writeln!(out, "  - Commit {}", line(commit));
    }
}

/// Lists the actions denied to sessions of a task, without duplicates.
fn refused(out: &mut String, ledger: &PlanLedger, task: &TaskId) {
    let of_task = ledger.refused.iter().filter(|(run, _)| run.task == *task);
    let denials: BTreeSet<&Denial> = of_task.flat_map(|(_, denials)| denials).collect();
    for denial in denials {
        let _ = writeln!(out, "  - Refused: {}", line(&denial.to_string()));
    }
}

fn line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
