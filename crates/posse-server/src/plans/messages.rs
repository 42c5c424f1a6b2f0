//! What a run of a plan tells people.

use posse_core::plan::machine::{GateFailure, Notice};
use posse_core::turn::Level;

use super::PlanLedger;
use super::worktrees::Kept;
use crate::notify;
use crate::run::messages;

/// A plan of so many tasks tells of each that is done (spec §15.1).
const MANY: usize = 6;

/// A notice, for the journal.
pub(super) fn notice(notice: &Notice, file: &str) -> (Level, String) {
    match notice {
        Notice::TaskVerified(task) => (Level::Info, format!("task {task} is done")),
        Notice::TaskFailed(task, why) => (Level::Warning, format!("task {task} failed: {why}")),
        Notice::ValidationFailed(task, findings) => {
            (Level::Warning, format!("task {task} was found wanting: {}", findings.join("; ")))
        }
        Notice::Question(task, question) => {
            let hint = format!("`posse run answer {file} {task} TEXT` answers");
            (Level::Warning, format!("task {task} asks: {question}\n{hint}"))
        }
        Notice::HoldBegins(reason) => (Level::Warning, format!("no session is started for now: {reason}")),
        Notice::HoldEnds => (Level::Info, "sessions may be started again".into()),
        Notice::BreakerOpen(reason) => (Level::Warning, format!("paused: {reason}")),
        Notice::EditRejected(what) => (Level::Warning, format!("not taken over: {what}")),
    }
}

/// The notification for a notice, if one is sent.
pub(super) fn notification(notice: &Notice, ledger: &PlanLedger) -> Option<notify::Notice> {
    let plan = ledger.machine.plan();
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
    Some(messages::notice(ledger, event, priority, plan.name.clone(), text))
}

/// A work tree that stays, in one line.
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
