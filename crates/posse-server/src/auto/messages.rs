//! What a pipeline tells people.

use posse_core::auto::messages::{Notice, NoticeKind};

use super::AutoLedger;
use crate::notify;
use crate::run::messages;

pub(super) fn notification(notice: &Notice, ledger: &AutoLedger) -> Option<notify::Notice> {
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
    Some(messages::notice(ledger, event, priority, title, text))
}
