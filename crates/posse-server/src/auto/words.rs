//! What a pipeline tells people.

use posse_core::auto::words::{Notice, NoticeKind};
use posse_core::plan::machine::RunOutcome;

use super::ledger::Ledger;
use crate::notify;

/// Said when nobody is there who knows the environment.
pub(super) const WAITS: &str = "the daemon was restarted, and nobody is there who knows the environment of sessions; `posse auto` in the same project goes on";

/// A notice, for who is not looking.
pub(super) fn told(notice: &Notice, ledger: &Ledger) -> Option<notify::Notice> {
    let (event, priority) = match notice.what {
        NoticeKind::Step | NoticeKind::ItemPlanned => return None,
        NoticeKind::ItemStarted => ("item_started", 2),
        NoticeKind::ItemFinished => ("item_finished", 3),
        NoticeKind::ItemFailed | NoticeKind::ItemExhausted => ("item_failed", 4),
        NoticeKind::ItemParked | NoticeKind::NotArchived => ("item_parked", 5),
        NoticeKind::HoldBegins => ("hold_begins", 3),
        NoticeKind::HoldEnds => ("hold_ends", 2),
        NoticeKind::CheckoutAway => ("checkout_away", 4),
    };
    let title = notice.item.as_ref().map_or_else(|| "backlog".to_owned(), ToString::to_string);
    let text = notice.message.as_ref().unwrap_or(&notice.text).clone();
    Some(notify::Notice { event, priority, title, text, run: Some(ledger.spec.id.to_string()) })
}

/// The end, for who is not looking.
pub(super) fn ended(ledger: &Ledger) -> Option<notify::Notice> {
    let (outcome, reason) = ledger.pipeline.outcome()?;
    let priority = match outcome {
        RunOutcome::Verified | RunOutcome::CompletedWithWarnings | RunOutcome::Stopped => 3,
        _ => 4,
    };
    let title = format!("backlog: {}", outcome.words());
    let text = format!("{reason}\n{}", ledger.pipeline.total().cost());
    Some(notify::Notice { event: "auto_ended", priority, title, text, run: Some(ledger.spec.id.to_string()) })
}
