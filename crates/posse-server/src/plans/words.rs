//! What a run of a plan tells people.

use posse_agents::headless::Event as Said;
use posse_core::ids::RunId;
use posse_core::plan::machine::{GateFailure, Notice, RunOutcome};
use posse_core::secrets::masked;
use posse_core::turn::Level;

use super::areas::Kept;
use super::ledger::Ledger;
use crate::notify;

/// Said when nobody is there who knows the environment.
pub(super) const WAITS: &str = "the daemon was restarted, and nobody is there who knows the environment of sessions; `posse plan run` with the same file goes on";

/// A plan of so many tasks tells of each that is done (spec §15.1).
const MANY: usize = 6;

pub(crate) fn log(run: RunId, level: Level, text: &str) {
    match level {
        Level::Detail => tracing::debug!(%run, "{text}"),
        Level::Info => tracing::info!(%run, "{text}"),
        Level::Warning => tracing::warn!(%run, "{text}"),
    }
}

/// A notice, for the journal.
pub(super) fn notice(notice: &Notice, file: &str) -> (Level, String) {
    match notice {
        Notice::TaskVerified(task) => (Level::Info, format!("task {task} is done")),
        Notice::TaskFailed(task, why) => (Level::Warning, format!("task {task} failed: {why}")),
        Notice::ValidationFailed(task, findings) => {
            (Level::Warning, format!("task {task} was found wanting: {}", findings.join("; ")))
        }
        Notice::Question(task, question) => {
            let hint = format!("`posse plan answer {file} {task} TEXT` answers");
            (Level::Warning, format!("task {task} asks: {question}\n{hint}"))
        }
        Notice::HoldBegins(reason) => (Level::Warning, format!("no session is started for now: {reason}")),
        Notice::HoldEnds => (Level::Info, "sessions may be started again".into()),
        Notice::BreakerOpen(reason) => (Level::Warning, format!("paused: {reason}")),
        Notice::EditRejected(what) => (Level::Warning, format!("not taken over: {what}")),
    }
}

/// A notice, for who is not looking.
pub(super) fn told(notice: &Notice, ledger: &Ledger) -> Option<notify::Notice> {
    let plan = ledger.run.plan();
    let (event, priority) = match notice {
        Notice::TaskVerified(_) => {
            if !plan.meta.step_notifications.unwrap_or(plan.tasks().count() > MANY) {
                return None;
            }
            ("task_verified", 2)
        }
        Notice::TaskFailed(..) => ("task_failed", 4),
        Notice::ValidationFailed(..) => ("validation_failed", 3),
        Notice::Question(..) => ("question", 5),
        Notice::HoldBegins(_) => ("hold_begins", 3),
        Notice::HoldEnds => ("hold_ends", 2),
        Notice::BreakerOpen(_) => ("breaker_open", 4),
        Notice::EditRejected(_) => return None,
    };
    let (_, text) = self::notice(notice, &ledger.spec.file);
    Some(notify::Notice { event, priority, title: plan.name.clone(), text, run: Some(ledger.spec.id.to_string()) })
}

/// The end, for who is not looking.
pub(super) fn ended(ledger: &Ledger) -> Option<notify::Notice> {
    let (outcome, reason) = ledger.ended.as_ref()?;
    let priority = match outcome {
        RunOutcome::Verified | RunOutcome::CompletedWithWarnings | RunOutcome::Stopped => 3,
        RunOutcome::Suspended => 5,
        _ => 4,
    };
    let title = format!("{}: {}", ledger.run.plan().name, outcome.words());
    let text = format!("{reason}\n{}", ledger.total.cost());
    Some(notify::Notice { event: "plan_ended", priority, title, text, run: Some(ledger.spec.id.to_string()) })
}

/// An area that stays, in one line.
pub(super) fn kept(kept: &Kept) -> String {
    format!("{} (branch {}): {}", kept.directory.display(), kept.branch, kept.why)
}

/// A check that could not be made has not passed.
pub(super) fn gate_not_run(why: &str) -> GateFailure {
    GateFailure {
        gate: "posse".into(),
        message: format!("the work could not be checked: {why}"),
        output: String::new(),
    }
}

/// What a session does, in a few words.
pub(crate) fn heard(event: &Said) -> Option<String> {
    let text = match event {
        Said::Said(text) => text.lines().next()?.to_owned(),
        Said::ToolUse { name, summary, .. } => format!("{name} {summary}"),
        _ => return None,
    };
    Some(masked(text.trim()).chars().take(200).collect())
}
