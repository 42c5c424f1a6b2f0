//! The settings of a pipeline.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::backlog::Slug;
use crate::engine::retry::Backoff;
use crate::plan::budget::Level;

/// When a pipeline ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Never: it waits for new items.
    #[default]
    Watch,
    /// When no item is left that can start.
    Drain,
    /// When one item has ended or waits for a person.
    Once,
}

/// Kept with the journal, because a replay needs the same settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    pub mode: Mode,
    /// Only this item.
    pub item: Option<Slug>,
    /// The maximum number of items.
    pub max_items: Option<u32>,
    /// The maximum number of attempts at an item.
    pub max_attempts: u32,
    /// The maximum number of verifications of an item.
    pub max_verifications: u32,
    /// The maximum number of starts of one item, and of all items, within an hour.
    pub item_starts_per_hour: u32,
    pub items_per_hour: u32,
    /// The run ends when this many items in a row fail at once or without spending anything.
    pub breaker: u32,
    /// A failure within this time counts as at once.
    pub at_once: Duration,
    pub plan_timeout: Duration,
    pub verify_timeout: Duration,
    pub backoff: Backoff,
    /// End instead of waiting for the quota.
    pub no_wait: bool,
    /// The number of items in progress at once.
    pub parallel: u32,
    /// The branch for the results. Items that started on another branch wait for that one.
    pub branch: Option<String>,
    /// The budgets of all items together, with what was spent before this run.
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
