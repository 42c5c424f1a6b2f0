//! The order of items that may start, and the reasons why others may not.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::{Clarification, Dependency, Item, Kind, Slug, Status};
use crate::nearest::nearest;
use crate::plan::check::cycles;

/// The input of the decision.
#[derive(Clone, Copy, Debug)]
pub struct Backlog<'a> {
    /// The open items.
    pub items: &'a [Item],
    /// Items whose files could not be read.
    pub unreadable: &'a [Slug],
    pub archived: &'a [Archived],
    /// Items in progress, which come first.
    pub unfinished: &'a BTreeSet<Slug>,
    /// Items that are held for a reason of their own, and the reason.
    pub parked: &'a BTreeMap<Slug, String>,
}

/// An item that has ended, with any outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Archived {
    pub slug: Slug,
    /// `None`: the status in its file is missing or unknown.
    pub status: Option<Status>,
    pub shelf: Shelf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shelf {
    Completed,
    Failed,
}

impl Archived {
    /// Returns whether the item was completed. The original pipeline left `Open` in completed items. Any other status
    /// that is not a success is believed.
    fn succeeded(&self) -> bool {
        let done = |status: Status| status.is_done() || status == Status::Open;
        self.shelf == Shelf::Completed && self.status.is_some_and(done)
    }

    fn given_up(&self) -> bool {
        let given_up = |status| matches!(status, Status::Failed | Status::Exhausted | Status::Duplicate);
        self.shelf == Shelf::Failed || self.status.is_some_and(given_up)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueEntry {
    pub slug: Slug,
    pub kind: Kind,
    /// The reason why it may not start, in words.
    pub held: Option<String>,
}

/// Returns the whole queue: items that may start, in order, then the others by name.
pub fn queue(backlog: &Backlog<'_>) -> Vec<QueueEntry> {
    let by_slug: HashMap<&Slug, usize> = backlog.items.iter().enumerate().map(|(i, item)| (&item.slug, i)).collect();
    let circles = circles(backlog.items, &by_slug);
    let with_reason = |item| (item, held(item, backlog, &by_slug, &circles));
    let mut ranked: Vec<(&Item, Option<String>)> = backlog.items.iter().map(with_reason).collect();
    ranked.sort_by_key(|(item, held)| {
        let rank = (!backlog.unfinished.contains(&item.slug), item.priority, item.kind);
        (held.is_some(), held.is_none().then_some(rank), item.slug.order(), item.kind)
    });
    let entry = |(item, held): (&Item, _)| QueueEntry { slug: item.slug.clone(), kind: item.kind, held };
    ranked.into_iter().map(entry).collect()
}

/// Returns why an item may not start.
fn held(item: &Item, backlog: &Backlog<'_>, by_slug: &HashMap<&Slug, usize>, circles: &[Vec<&Slug>]) -> Option<String> {
    let slug = &item.slug;
    let same = backlog.items.iter().filter(|other| other.slug == *slug).count();
    if same > 1 || backlog.unreadable.contains(slug) {
        return Some("two files have this name; rename one".into());
    }
    if let Some(reason) = backlog.parked.get(slug) {
        return Some(reason.clone());
    }
    if backlog.archived.iter().any(|archived| archived.slug == *slug) {
        return Some("the archive has an item of this name already; rename or remove this one".into());
    }
    let by_status = match (item.status, &item.clarification) {
        (Some(Status::Open), _) | (Some(Status::NeedsClarification), Some(Clarification { answer: Some(_), .. })) => {
            None
        }
        (Some(Status::NeedsClarification), Some(asked)) => Some(format!("waits for an answer: {}", asked.question)),
        (Some(Status::NeedsClarification), None) => {
            Some("waits for clarification; set it to open when it is clear".into())
        }
        // By posse, before a restart.
        (Some(Status::InProgress), _) if backlog.unfinished.contains(slug) => None,
        (Some(Status::InProgress), _) => Some("somebody works on it; set it to open to have it done here".into()),
        (Some(Status::OnHold), _) => Some("on hold".into()),
        (Some(done @ (Status::Fixed | Status::Completed)), _) => {
            Some(format!("{done} already; move it to the archive"))
        }
        (Some(status @ (Status::Failed | Status::Exhausted)), _) => {
            Some(format!("{status}; set it to open to try again"))
        }
        (Some(Status::Duplicate), _) => Some("duplicate".into()),
        (None, _) => Some("its status means nothing here".into()),
    };
    if by_status.is_some() {
        return by_status;
    }
    if let Some(circle) = circles.iter().find(|circle| circle.contains(&slug)) {
        let names: Vec<&str> = circle.iter().chain(circle.first()).map(|slug| slug.as_str()).collect();
        return Some(format!("items wait for each other: {}; remove one of these dependencies", names.join(" -> ")));
    }
    let waits: Vec<String> = needs(item).filter_map(|needed| wait(needed, backlog, by_slug)).collect();
    (!waits.is_empty()).then(|| waits.join("; "))
}

fn needs(item: &Item) -> impl Iterator<Item = &Slug> {
    item.depends_on.iter().filter_map(|dependency| match dependency {
        Dependency::On(slug) => Some(slug),
        Dependency::Words(_) => None,
    })
}

/// Returns why a dependency is not met, if so.
fn wait(needed: &Slug, backlog: &Backlog<'_>, by_slug: &HashMap<&Slug, usize>) -> Option<String> {
    if by_slug.contains_key(needed) {
        return Some(format!("waits for {needed}"));
    }
    if backlog.unreadable.contains(needed) {
        return Some(format!("waits for {needed}, whose file cannot be read"));
    }
    let archived: Vec<&Archived> = backlog.archived.iter().filter(|archived| archived.slug == *needed).collect();
    if archived.iter().any(|archived| archived.succeeded()) {
        return None;
    }
    if let Some(archived) = archived.iter().find(|archived| archived.given_up()) {
        let status = archived.status.map(|status| format!(" ({status})")).unwrap_or_default();
        return Some(format!("waits for {needed}, which was given up{status}"));
    }
    if !archived.is_empty() {
        let lack = "which is archived but does not say that it was done; set its status";
        return Some(format!("waits for {needed}, {lack}"));
    }
    let active = backlog.items.iter().map(|item| &item.slug);
    let known = || active.clone().chain(backlog.archived.iter().map(|archived| &archived.slug)).map(Slug::as_str);
    // `12` for `12-colours`; any other name is a mistake.
    let begins = known().find(|slug| slug.strip_prefix(needed.as_str()).is_some_and(|rest| rest.starts_with('-')));
    let meant = begins.or_else(|| nearest(needed.as_str(), known()));
    let hint = meant.map(|meant| format!("; did you mean {meant}?")).unwrap_or_default();
    Some(format!("depends on {needed}, which does not exist{hint}"))
}

/// Returns each dependency cycle once.
fn circles<'a>(items: &'a [Item], by_slug: &HashMap<&Slug, usize>) -> Vec<Vec<&'a Slug>> {
    let known = |item| needs(item).filter_map(|slug| by_slug.get(slug).copied()).collect();
    let needs: Vec<Vec<usize>> = items.iter().map(known).collect();
    cycles(&needs).into_iter().map(|circle| circle.into_iter().map(|i| &items[i].slug).collect()).collect()
}
