//! Which items may be worked on, in which order, and why the others may not.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;

use serde::Serialize;

use super::{Dependency, Item, Kind, Slug, Status};
use crate::nearest::nearest;
use crate::plan::check::cycles;

/// All that is known when it is decided.
#[derive(Clone, Copy, Debug)]
pub struct Backlog<'a> {
    /// What waits to be worked on.
    pub items: &'a [Item],
    /// Items whose files could not be read.
    pub unreadable: &'a [Slug],
    pub archived: &'a [Archived],
    /// Items on which work has begun: they come first.
    pub unfinished: &'a BTreeSet<Slug>,
    /// Items that are kept out for a reason of their own, and the reason.
    pub parked: &'a BTreeMap<Slug, String>,
}

/// An item that is done with, one way or the other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Archived {
    pub slug: Slug,
    pub status: Status,
    pub shelf: Shelf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Shelf {
    Completed,
    Failed,
}

impl Archived {
    /// Whether it was done. The original pipeline left `Open` in what it moved to the completed items; any other status that
    /// is not a success is believed.
    fn succeeded(&self) -> bool {
        self.shelf == Shelf::Completed && (self.status.is_done() || self.status == Status::Open)
    }
}

/// One item in the queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct QueueEntry {
    pub slug: Slug,
    pub kind: Kind,
    #[serde(flatten)]
    pub standing: Standing,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    Eligible,
    Held(Held),
}

/// Why an item is not worked on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Held {
    /// Its status says so.
    Status(Status),
    /// Somebody must answer.
    Question(Option<String>),
    Waits(Vec<Wait>),
    /// Each of these waits for the next, and the last for the first.
    Circle(Vec<Slug>),
    /// Another file gives an item of the same name.
    SameName,
    /// The archive has it already.
    Archived,
    Parked(String),
}

/// A dependency that is not there yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum Wait {
    /// It is still to be done.
    #[error("waits for {0}")]
    For(Slug),
    #[error("waits for {0}, whose file cannot be read")]
    Unreadable(Slug),
    #[error("waits for {slug}, which was given up ({status})")]
    GaveUp { slug: Slug, status: Status },
    #[error("waits for {0}, which is archived but does not say that it was done; set its status")]
    Unproven(Slug),
    #[error("depends on {slug}, which does not exist{}", meant.as_ref().map(|meant| format!("; did you mean {meant}?")).unwrap_or_default())]
    Unknown { slug: Slug, meant: Option<Slug> },
}

/// The whole queue: what may be worked on in the order in which it should be, then the rest by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Queue {
    pub entries: Vec<QueueEntry>,
    /// Items that wait for each other, each circle once.
    pub circles: Vec<Vec<Slug>>,
}

impl Queue {
    pub fn standing(&self, slug: &Slug) -> Option<&Standing> {
        self.entries.iter().find(|entry| entry.slug == *slug).map(|entry| &entry.standing)
    }
}

pub fn queue(backlog: &Backlog<'_>) -> Queue {
    let items = backlog.items;
    let by_slug: HashMap<&Slug, usize> = items.iter().enumerate().map(|(i, item)| (&item.slug, i)).collect();
    let circles = circles(items, &by_slug);
    let mut ranked: Vec<(&Item, Standing)> = items
        .iter()
        .map(|item| {
            let held = held(item, backlog, &by_slug, &circles);
            (item, held.map_or(Standing::Eligible, Standing::Held))
        })
        .collect();
    ranked.sort_by_key(|(item, standing)| {
        let held = *standing != Standing::Eligible;
        let begun = backlog.unfinished.contains(&item.slug);
        let rank = (!begun, item.priority, item.kind);
        (held, (!held).then_some(rank), item.slug.order(), item.kind)
    });
    let entry = |(item, standing): (&Item, Standing)| QueueEntry { slug: item.slug.clone(), kind: item.kind, standing };
    Queue { entries: ranked.into_iter().map(entry).collect(), circles }
}

fn held(item: &Item, backlog: &Backlog<'_>, by_slug: &HashMap<&Slug, usize>, circles: &[Vec<Slug>]) -> Option<Held> {
    let slug = &item.slug;
    let same = backlog.items.iter().filter(|other| other.slug == *slug).count();
    if same > 1 || backlog.unreadable.contains(slug) {
        return Some(Held::SameName);
    }
    if let Some(reason) = backlog.parked.get(slug) {
        return Some(Held::Parked(reason.clone()));
    }
    if backlog.archived.iter().any(|archived| archived.slug == *slug) {
        return Some(Held::Archived);
    }
    let answered = item.clarification.as_ref().is_some_and(|asked| asked.answer.is_some());
    match &item.status {
        Status::Open => {}
        Status::NeedsClarification if answered => {}
        Status::NeedsClarification => {
            return Some(Held::Question(item.clarification.as_ref().map(|asked| asked.question.clone())));
        }
        // By us, before a restart.
        Status::InProgress if backlog.unfinished.contains(slug) => {}
        other => return Some(Held::Status(other.clone())),
    }
    if let Some(circle) = circles.iter().find(|circle| circle.contains(slug)) {
        return Some(Held::Circle(circle.clone()));
    }
    let needs = item.depends_on.iter().filter_map(|dependency| match dependency {
        Dependency::On(slug) => Some(slug),
        Dependency::Words(_) => None,
    });
    let waits: Vec<Wait> = needs.filter_map(|needed| wait(needed, backlog, by_slug)).collect();
    (!waits.is_empty()).then_some(Held::Waits(waits))
}

/// What keeps an item from being there, if anything.
fn wait(needed: &Slug, backlog: &Backlog<'_>, by_slug: &HashMap<&Slug, usize>) -> Option<Wait> {
    let mut archived = backlog.archived.iter().filter(|archived| archived.slug == *needed).peekable();
    if by_slug.contains_key(needed) {
        return Some(Wait::For(needed.clone()));
    }
    if backlog.unreadable.contains(needed) {
        return Some(Wait::Unreadable(needed.clone()));
    }
    if archived.peek().is_some() {
        let archived: Vec<&Archived> = archived.collect();
        if archived.iter().any(|archived| archived.succeeded()) {
            return None;
        }
        let given_up = archived.iter().find(|archived| {
            archived.shelf == Shelf::Failed
                || matches!(archived.status, Status::Failed | Status::Exhausted | Status::Duplicate)
        });
        return Some(match given_up {
            Some(archived) => Wait::GaveUp { slug: needed.clone(), status: archived.status.clone() },
            None => Wait::Unproven(needed.clone()),
        });
    }
    let known =
        || backlog.items.iter().map(|item| &item.slug).chain(backlog.archived.iter().map(|archived| &archived.slug));
    // `12` for `12-colours`, else a slip.
    let begins =
        known().find(|slug| slug.as_str().strip_prefix(needed.as_str()).is_some_and(|rest| rest.starts_with('-')));
    let meant = begins.map(Slug::as_str).or_else(|| nearest(needed.as_str(), known().map(Slug::as_str)));
    Some(Wait::Unknown { slug: needed.clone(), meant: meant.and_then(|meant| meant.parse().ok()) })
}

fn circles(items: &[Item], by_slug: &HashMap<&Slug, usize>) -> Vec<Vec<Slug>> {
    let needs: Vec<Vec<usize>> = items
        .iter()
        .map(|item| {
            let slugs = item.depends_on.iter().filter_map(|dependency| match dependency {
                Dependency::On(slug) => by_slug.get(slug).copied(),
                Dependency::Words(_) => None,
            });
            slugs.collect()
        })
        .collect();
    let named = |circle: Vec<usize>| circle.into_iter().map(|i| items[i].slug.clone()).collect();
    cycles(&needs).into_iter().map(named).collect()
}

impl fmt::Display for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(status) => match status {
                Status::OnHold => f.write_str("on hold"),
                Status::InProgress => f.write_str("somebody works on it; set it to open to have it done here"),
                Status::Fixed | Status::Completed => write!(f, "{status} already; move it to the archive"),
                Status::Failed | Status::Exhausted => write!(f, "{status}; set it to open to try again"),
                Status::Unknown(word) => write!(f, "its status is {word:?}, which means nothing here"),
                other => write!(f, "{other}"),
            },
            Self::Question(Some(question)) => write!(f, "waits for an answer: {question}"),
            Self::Question(None) => f.write_str("waits for clarification; set it to open when it is clear"),
            Self::Waits(waits) => {
                let words: Vec<String> = waits.iter().map(ToString::to_string).collect();
                f.write_str(&words.join("; "))
            }
            Self::Circle(circle) => {
                let names: Vec<&str> = circle.iter().chain(circle.first()).map(Slug::as_str).collect();
                write!(f, "items wait for each other: {}; remove one of these dependencies", names.join(" -> "))
            }
            Self::SameName => f.write_str("two files have this name; rename one"),
            Self::Archived => f.write_str("the archive has an item of this name already; rename or remove this one"),
            Self::Parked(reason) => f.write_str(reason),
        }
    }
}
