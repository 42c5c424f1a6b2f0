//! Messages of runs for people.

use posse_agents::headless::Event as Said;
use posse_core::engine::{self, Machine, RunOutcome};
use posse_core::ids::RunId;
use posse_core::secrets::masked;
use posse_core::turn::Level;

use super::{RunLedger, Workflow};
use crate::notify::Notice;

pub(crate) fn log(run: RunId, level: Level, text: &str) {
    match level {
        Level::Detail => tracing::debug!(%run, "{text}"),
        Level::Info => tracing::info!(%run, "{text}"),
        Level::Warning => tracing::warn!(%run, "{text}"),
    }
}

pub(super) fn ended<W: Workflow>(ledger: &RunLedger<W>) -> Option<Notice> {
    let (outcome, reason) = ledger.machine.outcome()?;
    let priority = match outcome {
        RunOutcome::Verified | RunOutcome::CompletedWithWarnings | RunOutcome::Stopped => 3,
        RunOutcome::Suspended => 5,
        _ => 4,
    };
    let title = format!("{}: {}", W::title(ledger), outcome.words());
    let text = format!("{reason}\n{}", W::used(ledger).cost());
    Some(Notice { event: W::ENDED, priority, title, text, run: Some(W::fields(&ledger.spec).id.to_string()) })
}

/// The notification of a notice, if one is sent.
pub(crate) fn notice<W: Workflow>(ledger: &RunLedger<W>, notice: &engine::notice::Notice) -> Option<Notice> {
    let (event, priority) = notice.what.event()?;
    let title = notice.item.as_ref().map_or_else(|| W::title(ledger), ToString::to_string);
    let text = notice.message.as_ref().unwrap_or(&notice.text).clone();
    Some(Notice { event, priority, title, text, run: Some(W::fields(&ledger.spec).id.to_string()) })
}

/// The current activity of a session, in a few words.
pub(super) fn activity(event: &Said) -> Option<String> {
    let text = match event {
        Said::Said(text) => text.lines().next()?.to_owned(),
        Said::ToolUse { name, summary, .. } => format!("{name} {summary}"),
        _ => return None,
    };
    Some(masked(text.trim()).chars().take(200).collect())
}
