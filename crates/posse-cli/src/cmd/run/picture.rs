//! Texts and rows that the pictures and statuses of runs have in common.

use jiff::Timestamp;
use posse_api::{HoldView, LimitView};
use posse_core::plan::TaskStatus;
use posse_core::plan::budget::Total;

use crate::status_area::Row;
use crate::ui::{Colour, date_time, plain};

/// The first two rows of a picture: a rule of this character, and where the run is.
pub(in crate::cmd) fn head(rule: &str, columns: usize, place: Row) -> Vec<Row> {
    vec![vec![(rule.repeat(columns), Some(Colour::Dim))], place]
}

/// The reasons why a run starts no sessions.
pub(in crate::cmd) fn holds(hold: Option<&HoldView>, paused_until: Option<Timestamp>) -> Vec<String> {
    let hold = hold.map(|hold| format!("no session before {}: {}", date_time(hold.until), plain(&hold.reason)));
    let paused =
        paused_until.map(|until| format!("sessions failed one after the other; none before {}", date_time(until)));
    hold.into_iter().chain(paused).collect()
}

/// The cost of sessions, and the limits on it, one line each.
pub(in crate::cmd) fn money(used: &Total, limits: &[LimitView]) -> Vec<String> {
    let limit =
        |limit: &LimitView| format!("{}: {} of {:.2} USD", plain(&limit.name), limit.spent.cost(), limit.limit_usd);
    let sessions = format!("{} sessions, {}", used.sessions, used.cost());
    std::iter::once(sessions).chain(limits.iter().map(limit)).collect()
}

/// Returns whether nothing is left to do for a task.
pub(in crate::cmd) fn is_done(status: TaskStatus) -> bool {
    matches!(status, TaskStatus::Verified | TaskStatus::Skipped)
}

/// The sign of a task.
pub(in crate::cmd) fn mark(status: TaskStatus) -> (&'static str, Option<Colour>) {
    match status {
        TaskStatus::Pending => ("○", Some(Colour::Dim)),
        TaskStatus::InProgress => ("▸", Some(Colour::Blue)),
        TaskStatus::Completed => ("●", Some(Colour::Green)),
        TaskStatus::Verified => ("✓", Some(Colour::Green)),
        TaskStatus::Failed => ("✗", Some(Colour::Red)),
        TaskStatus::Skipped => ("–", Some(Colour::Dim)),
        TaskStatus::Suspended => ("?", Some(Colour::Yellow)),
    }
}
