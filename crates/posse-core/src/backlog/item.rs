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
    /// What the work on it may cost, in US dollars.
    pub budget_usd: Option<f64>,
    /// Who should work on it, if the author has a wish.
    pub agent: Option<String>,
    /// What stands before the first section.
    pub lead: String,
    /// What the author wrote, without header and without what is ours.
    pub sections: Vec<ItemSection>,
    /// The last question that was asked about it.
    pub clarification: Option<Clarification>,
    /// Every verification there was, in order.
    pub log: Vec<LogEntry>,
    pub ended: Option<ItemEnd>,
    /// Of what the author asks for. Another status, another priority or a new entry in the log do not change it: a plan that
    /// was made for the item stays good.
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
    /// Words that name no item. Shown to people, and not waited for.
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
    /// What stands below its heading.
    pub text: String,
}

/// What is written in an item whose work is over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ItemEnd {
    pub outcome: ItemOutcome,
    /// Which work it was. Tells our own hand from others'.
    pub run: Option<String>,
}

words! {
    /// How the work on an item ended.
    pub enum ItemOutcome ("outcome") {
        Completed = "completed",
        CompletedWithWarnings = "completed_with_warnings",
        /// Verified as often as it may be, and never right.
        Exhausted = "exhausted",
        /// No plan could be made, or none could be carried out.
        Failed = "failed",
        /// Its plan came to a point from which nothing could go on.
        Deadlocked = "deadlocked",
    }
}

impl Status {
    pub fn is_done(self) -> bool {
        matches!(self, Self::Fixed | Self::Completed)
    }
}

impl ItemOutcome {
    /// Only this may go into the archive of what is done.
    pub fn is_success(self) -> bool {
        matches!(self, Self::Completed | Self::CompletedWithWarnings)
    }

    /// The status of an item that ended so.
    pub fn status(self, kind: Kind) -> Status {
        match (self, kind) {
            (Self::Completed | Self::CompletedWithWarnings, Kind::Defect) => Status::Fixed,
            (Self::Completed | Self::CompletedWithWarnings, Kind::Feature) => Status::Completed,
            (Self::Exhausted, _) => Status::Exhausted,
            (Self::Failed | Self::Deadlocked, _) => Status::Failed,
        }
    }
}

/// Sections in which people say what is to be seen when it is done.
const CRITERIA: [&str; 6] =
    ["acceptance criteria", "success criteria", "criteria", "definition of done", "verification", "requirements"];
/// Sections in which people say what is wrong.
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
    /// The text of a section, whatever the case of its title.
    pub fn section(&self, title: &str) -> Option<&str> {
        let found = self.sections.iter().find(|section| plain_title(&section.title) == plain_title(title));
        found.map(|section| section.text.as_str())
    }

    /// What must hold when it is done, point by point: list items of the sections that say so, or their text where it is no list.
    pub fn criteria(&self) -> Vec<String> {
        let wanted = CRITERIA.iter().filter_map(|title| self.section(title));
        let mut criteria: Vec<String> = wanted.flat_map(points).collect();
        if criteria.is_empty() {
            criteria = self.section("expected behavior").map(points).unwrap_or_default();
        }
        criteria
    }

    /// What is wrong, in the words of the author.
    pub fn symptoms(&self) -> Vec<&str> {
        SYMPTOMS.iter().filter_map(|title| self.section(title)).filter(|text| says_something(text)).collect()
    }

    /// How often a verification found that it is not done.
    pub fn failed_verifications(&self) -> u32 {
        let failed = self.log.iter().filter(|entry| entry.verdict == Verdict::Fail).count();
        u32::try_from(failed).unwrap_or(u32::MAX)
    }

    /// The number of the next entry in the log.
    pub fn next_verification(&self) -> u32 {
        self.log.iter().map(|entry| entry.number).max().unwrap_or(0).saturating_add(1)
    }
}

/// `Expected Behaviour:` and `expected behavior` are one.
pub(super) fn plain_title(title: &str) -> String {
    title.trim().trim_end_matches(':').trim_end().to_lowercase().replace("behaviour", "behavior")
}

/// The points of a text: its list items, each with the lines that belong to it, else the whole.
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

/// Whether there is more than a placeholder.
pub(super) fn says_something(text: &str) -> bool {
    let words = text.lines().filter(|line| !line.trim_start().starts_with("<!--")).collect::<Vec<_>>().join(" ");
    let plain = words.trim().trim_matches(['.', '-', '*', '_', '(', ')', '…', ' ', '[', ']', '<', '>']).to_lowercase();
    !matches!(
        plain.as_str(),
        "" | "tbd" | "todo" | "n/a" | "na" | "none" | "to be done" | "to be defined" | "?" | "fixme"
    )
}
