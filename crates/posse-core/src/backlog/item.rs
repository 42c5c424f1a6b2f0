//! An item as a value.

use serde::Serialize;

use super::Slug;
use super::markdown::list_item;
use crate::plan::verdict::Verdict;
use crate::visible::words_of;
use crate::words;

/// One file of the backlog.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Item {
    pub slug: Slug,
    pub kind: Kind,
    pub title: String,
    /// `None` if its header has another word. Such an item is not touched.
    pub status: Option<Status>,
    pub priority: Priority,
    pub depends_on: Vec<Dependency>,
    /// The budget of the item, in US dollars.
    pub budget_usd: Option<f64>,
    /// The agent that the author wants, if any.
    pub agent: Option<String>,
    /// The text before the first section.
    pub lead: String,
    /// The author's sections, without the header and posse's sections.
    pub sections: Vec<ItemSection>,
    /// The last question that was asked about it.
    pub clarification: Option<Clarification>,
    /// All verifications, in order.
    pub log: Vec<LogEntry>,
    pub ended: Option<ItemEnd>,
    /// The hash of the author's request. Status, priority and log do not change it, so an existing plan stays valid.
    pub hash: String,
}

words! {
    #[derive(PartialOrd, Ord, Hash, utoipa::ToSchema)]
    #[schema(as = ItemKind)]
    pub enum Kind ("type") {
        Defect = "defect",
        Feature = "feature",
    }
}

words! {
    pub enum Status ("status") {
        Open = "open",
        NeedsClarification = "needs_clarification",
        OnHold = "on_hold",
        InProgress = "in_progress",
        Fixed = "fixed",
        Completed = "completed",
        Failed = "failed",
        Exhausted = "exhausted",
        Duplicate = "duplicate",
    }
}

words! {
    #[derive(Default, PartialOrd, Ord, Hash, utoipa::ToSchema)]
    pub enum Priority ("priority") {
        Critical = "critical",
        High = "high",
        #[default]
        Medium = "medium",
        Low = "low",
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Dependency {
    On(Slug),
    /// Text that names no item. It is shown to people, and does not hold the item.
    Words(String),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ItemSection {
    pub title: String,
    pub text: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Clarification {
    pub question: String,
    pub answer: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LogEntry {
    pub number: u32,
    pub verdict: Verdict,
    /// The text below its heading.
    pub text: String,
}

/// The outcome block of an item.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ItemEnd {
    pub outcome: ItemOutcome,
    /// The name of the run. Distinguishes posse's own entries from others.
    pub run: Option<String>,
}

words! {
    /// The outcome of an item.
    pub enum ItemOutcome ("outcome") {
        Completed = "completed",
        CompletedWithWarnings = "completed_with_warnings",
        /// It failed its last permitted verification.
        Exhausted = "exhausted",
        /// No plan could be made or carried out.
        Failed = "failed",
        /// No task of its plan could continue.
        Deadlocked = "deadlocked",
    }
}

impl Status {
    pub fn is_done(self) -> bool {
        matches!(self, Self::Fixed | Self::Completed)
    }
}

impl ItemOutcome {
    /// Returns whether the item belongs in the archive of completed items.
    pub fn is_success(self) -> bool {
        matches!(self, Self::Completed | Self::CompletedWithWarnings)
    }

    /// Returns the status of an item with this outcome.
    pub fn status(self, kind: Kind) -> Status {
        match (self, kind) {
            (Self::Completed | Self::CompletedWithWarnings, Kind::Defect) => Status::Fixed,
            (Self::Completed | Self::CompletedWithWarnings, Kind::Feature) => Status::Completed,
            (Self::Exhausted, _) => Status::Exhausted,
            (Self::Failed | Self::Deadlocked, _) => Status::Failed,
        }
    }
}

/// Titles of sections with acceptance criteria.
const CRITERIA: [&str; 6] =
    ["acceptance criteria", "success criteria", "criteria", "definition of done", "verification", "requirements"];
/// Titles of sections with symptoms.
pub(super) const SYMPTOMS: [&str; 9] = [
    "actual behavior",
    "actual",
    "symptom",
    "symptoms",
    "steps to reproduce",
    "reproduction",
    "observed behavior",
    "problem",
    "current behavior",
];

impl Item {
    /// Returns the text of a section. The case of the title does not matter.
    pub fn section(&self, title: &str) -> Option<&str> {
        let found = self.sections.iter().find(|section| plain_title(&section.title) == plain_title(title));
        found.map(|section| section.text.as_str())
    }

    /// Returns the acceptance criteria: the list items of their sections, or the whole text if there is no list.
    pub fn criteria(&self) -> Vec<String> {
        let wanted = CRITERIA.iter().filter_map(|title| self.section(title));
        let mut criteria: Vec<String> = wanted.flat_map(points).collect();
        if criteria.is_empty() {
            criteria = self.section("expected behavior").map(points).unwrap_or_default();
        }
        criteria
    }

    /// Returns the symptoms, in the author's words.
    pub fn symptoms(&self) -> Vec<&str> {
        SYMPTOMS.iter().filter_map(|title| self.section(title)).filter(|text| says_something(text)).collect()
    }

    /// Returns the number of failed verifications.
    pub fn failed_verifications(&self) -> u32 {
        let failed = self.log.iter().filter(|entry| entry.verdict == Verdict::Fail).count();
        u32::try_from(failed).unwrap_or(u32::MAX)
    }

    /// Returns the number of the next entry in the log.
    pub fn next_verification(&self) -> u32 {
        self.log.iter().map(|entry| entry.number).max().unwrap_or(0).saturating_add(1)
    }
}

/// Normalizes a title: `Expected Behaviour:` and `expected behavior` are the same.
pub(super) fn plain_title(title: &str) -> String {
    title.trim().trim_end_matches(':').trim_end().to_lowercase().replace("behaviour", "behavior")
}

/// Returns the list items of a text, each with its continuation lines, or else the whole text.
fn points(text: &str) -> Vec<String> {
    let mut points: Vec<String> = Vec::new();
    for line in text.lines() {
        match (list_item(line), points.last_mut()) {
            (Some(item), _) => points.push(item.to_owned()),
            (None, Some(last)) if line.starts_with([' ', '\t']) => {
                last.push(' ');
                last.push_str(line.trim());
            }
            _ => {}
        }
    }
    if points.is_empty() {
        points.push(words_of(text));
    }
    points.retain(|point| says_something(point));
    points
}

/// Returns whether the text is more than a placeholder.
pub(super) fn says_something(text: &str) -> bool {
    let words = text.lines().filter(|line| !line.trim_start().starts_with("<!--")).collect::<Vec<_>>().join(" ");
    let plain = words.trim().trim_matches(['.', '-', '*', '_', '(', ')', '…', ' ', '[', ']', '<', '>']).to_lowercase();
    !matches!(
        plain.as_str(),
        "" | "tbd" | "todo" | "n/a" | "na" | "none" | "to be done" | "to be defined" | "?" | "fixme"
    )
}
