//! The settings of a pipeline.

use serde::{Deserialize, Serialize};

use crate::backlog::Slug;
use crate::plan::budget::Level;
use crate::plan::config::{PipelineLimits, PipelineSettings};

/// When a pipeline ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = PipelineMode)]
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
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    pub mode: Mode,
    /// Only this item.
    pub item: Option<Slug>,
    /// The maximum number of items.
    pub max_items: Option<u32>,
    pub pipeline: PipelineSettings,
    pub limits: PipelineLimits,
    /// End instead of waiting for the quota.
    pub no_wait: bool,
    /// The result branch. Items that started on another branch wait for that one.
    pub branch: Option<String>,
    /// The budgets of all items together, with the amounts spent before this run.
    pub levels: Vec<Level>,
}
