//! What a pipeline goes by.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::backlog::Slug;
use crate::plan::budget::Level;
use crate::plan::retry::Backoff;

/// When a pipeline is through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Never: it waits for new items.
    #[default]
    Watch,
    /// When nothing is left that can be begun.
    Drain,
    /// When one item has come to its end, or waits for a person.
    Once,
}

/// Kept with the journal: a pipeline is the same again only under the same settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    pub mode: Mode,
    /// Only this item.
    pub item: Option<Slug>,
    /// No more than so many items.
    pub max_items: Option<u32>,
    /// How often an item may fail.
    pub max_attempts: u32,
    /// How often an item may be verified.
    pub max_verifications: u32,
    /// How often one item, and how many altogether, may be begun within an hour.
    pub item_starts_per_hour: u32,
    pub items_per_hour: u32,
    /// So many items in a row that fail at once or for nothing mean that nothing works.
    pub breaker: u32,
    /// What counts as at once.
    pub at_once: Duration,
    pub plan_timeout: Duration,
    pub verify_timeout: Duration,
    pub backoff: Backoff,
    /// End instead of waiting for the quota to come back.
    pub no_wait: bool,
    /// Items at once.
    pub parallel: u32,
    /// The branch that gathers the results. What was begun for another one is not mixed with it.
    pub branch: Option<String>,
    /// Limits on money that hold for all items, with what was spent before this run.
    pub levels: Vec<Level>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            mode: Mode::default(),
            item: None,
            max_items: None,
            max_attempts: 2,
            max_verifications: 3,
            item_starts_per_hour: 6,
            items_per_hour: 30,
            breaker: 3,
            at_once: Duration::from_secs(60),
            plan_timeout: Duration::from_secs(10 * 60),
            verify_timeout: Duration::from_secs(15 * 60),
            backoff: Backoff::default(),
            no_wait: false,
            parallel: 1,
            branch: None,
            levels: Vec::new(),
        }
    }
}
