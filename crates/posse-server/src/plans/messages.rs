//! What a run of a plan tells people.

use posse_core::plan::machine::Notice;
use posse_core::turn::Level;

use super::PlanLedger;
use super::worktrees::Kept;
use crate::notify;
use crate::run::messages;

/// A plan of so many tasks tells of each that is done (spec §15.1).
const MANY: usize = 6;

/// A notice, for the journal, and its notification, if one is sent.
pub(super) fn notice(notice: &Notice, ledger: &PlanLedger) -> (Level, String, Option<notify::Notice>) {
    let plan = ledger.machine.plan();
    let (event, priority, text) = match notice {
        Notice::TaskVerified(task) => ("task_verified", 2, format!("task {task} is done")),
        Notice::TaskFailed(task, why) => ("task_failed", 4, format!("task {task} failed: {why}")),
        Notice::ValidationFailed(task, findings) => {
            ("validation_failed", 3, format!("task {task} was found wanting: {}", findings.join("; ")))
        }
        Notice::Question(task, question) => {
            let hint = format!("`posse run answer {} {task} TEXT` answers", ledger.spec.file);
            ("question", 5, format!("task {task} asks: {question}\n{hint}"))
        }
        Notice::HoldBegins(reason) => ("hold_begins", 3, format!("no session is started for now: {reason}")),
        Notice::HoldEnds => ("hold_ends", 2, "sessions may be started again".into()),
        Notice::BreakerOpen(reason) => ("breaker_open", 4, format!("paused: {reason}")),
        Notice::EditRejected(what) => ("edit_rejected", 3, format!("not taken over: {what}")),
    };
    let (level, is_sent) = match notice {
        Notice::TaskVerified(_) => (Level::Info, plan.meta.step_notifications.unwrap_or(plan.tasks().count() > MANY)),
        Notice::HoldEnds => (Level::Info, true),
        notice => (Level::Warning, !matches!(notice, Notice::EditRejected(_))),
    };
    let notification = is_sent.then(|| messages::notice(ledger, event, priority, plan.name.clone(), text.clone()));
    (level, text, notification)
}

/// A work tree that stays, in one line.
pub(super) fn kept(kept: &Kept) -> String {
    format!("{} (branch {}): {}", kept.directory.display(), kept.branch, kept.why)
}
