//! Parts that the views of all kinds of runs have.

use posse_api::{HoldView, LimitView};
use posse_core::engine::hold::Hold;
use posse_core::plan::budget::Level;

pub(crate) fn hold_view(hold: &Hold) -> HoldView {
    HoldView { until: hold.until.timestamp(), reason: hold.reason.clone() }
}

/// The levels that have a limit, and what is spent of it.
pub(crate) fn limit_views(levels: &[Level]) -> Vec<LimitView> {
    let view = |level: &Level| {
        let (name, spent) = (level.name.clone(), level.spent.clone());
        Some(LimitView { name, limit_usd: level.limit_usd?, spent })
    };
    levels.iter().filter_map(view).collect()
}
