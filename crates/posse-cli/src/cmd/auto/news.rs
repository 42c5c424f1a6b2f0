//! What is new in a pipeline: entries of its journal, what its planners and verifiers do and say, and the same of the runs of
//! its plans.

use std::collections::BTreeMap;

use jiff::Timestamp;
use posse_api::{AutoEntry, AutoJournalView, EventBody, LogEvent, SaidLine};
use posse_core::auto::words::{DeedId, Event};
use posse_core::backlog::Slug;
use posse_core::ids::RunId;
use posse_core::plan::budget::Total;
use serde::Serialize;

use super::words;
use crate::client::Client;
use crate::cmd::journal_cursor::JournalCursor;
use crate::cmd::plan::said::{Extent, Teller};
use crate::cmd::plan::{news as plan, words as plan_words};
use crate::error::Error;
use crate::ui::Ui;

/// Something new.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Item {
    Entry(Box<AutoJournalView>),
    Said(Said),
    Plan(OfPlan),
}

/// What a planner or verifier did or said.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Said {
    pub(super) session: String,
    item: Slug,
    #[serde(flatten)]
    pub(super) line: SaidLine,
}

/// Something of the run of an item's plan.
#[derive(Clone, Debug, Serialize)]
pub(super) struct OfPlan {
    pub(super) plan_run: RunId,
    item: Slug,
    #[serde(flatten)]
    pub(super) news: plan::Item,
}

impl Item {
    pub(super) fn at(&self) -> Timestamp {
        match self {
            Self::Entry(entry) => entry.at,
            Self::Said(said) => said.line.at,
            Self::Plan(of_plan) => of_plan.news.at(),
        }
    }
}

/// What is listened to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hears {
    /// What was decided, and what came of it.
    Decisions,
    /// What sessions do and say, too, and how plans are carried out.
    Everything,
}

pub(super) struct News {
    journal: JournalCursor<AutoJournalView>,
    /// Only of this item.
    of: Option<Slug>,
    hears: Hears,
    /// How far sessions were read.
    read: BTreeMap<DeedId, u64>,
    /// Runs of plans, and whose they are.
    plans: BTreeMap<RunId, (Slug, plan::News)>,
}

impl News {
    pub(super) fn new(id: RunId, of: Option<Slug>, hears: Hears) -> Self {
        let journal = JournalCursor::new(id, "auto", entry_of);
        Self { journal, of, hears, read: BTreeMap::new(), plans: BTreeMap::new() }
    }

    /// What this event brings, in order; without an event everything since the last call.
    pub(super) async fn next(&mut self, event: Option<&LogEvent>, client: &mut Client) -> Result<Vec<Item>, Error> {
        let mut entries = self.journal.next(event, client).await?;
        entries.retain(|entry| self.of.as_ref().is_none_or(|of| item_of(&entry.entry) == Some(of)));
        if self.hears == Hears::Everything {
            entries.iter().for_each(|entry| self.begins(&entry.entry));
        }
        let mut items = Vec::new();
        for (session, next) in &mut self.read {
            let said =
                plan::said_since(client, &format!("/auto/{}/sessions/{session}", self.journal.run()), next).await?;
            let said =
                said.into_iter().map(|line| Said { session: session.to_string(), item: session.item.clone(), line });
            items.extend(said.map(Item::Said));
        }
        for (run, (item, news)) in &mut self.plans {
            let found = news.next(event, client).await?;
            let of_plan = |news| Item::Plan(OfPlan { plan_run: *run, item: item.clone(), news });
            items.extend(found.into_iter().map(of_plan));
        }
        // Of what is over there will be no more.
        for entry in &entries {
            self.ends(&entry.entry);
        }
        items.extend(entries.into_iter().map(|entry| Item::Entry(Box::new(entry))));
        items.sort_by_key(Item::at);
        Ok(items)
    }

    fn begins(&mut self, entry: &AutoEntry) {
        match entry {
            AutoEntry::Launched { id, .. } => {
                self.read.entry(id.clone()).or_insert(0);
            }
            AutoEntry::Happened { event } => {
                if let Event::PlanBegun { id, run } = &**event {
                    let news = || (id.item.clone(), plan::News::new(*run, plan::Sessions::All));
                    self.plans.entry(*run).or_insert_with(news);
                }
            }
            _ => {}
        }
    }

    fn ends(&mut self, entry: &AutoEntry) {
        let AutoEntry::Happened { event } = entry else { return };
        match &**event {
            Event::PlannerEnded { id, .. } | Event::VerifierEnded { id, .. } => {
                self.read.remove(id);
            }
            Event::PlanEnded { id, .. } => self.plans.retain(|_, (item, _)| *item != id.item),
            _ => {}
        }
    }

    /// Whether it may mean that there is something new.
    pub(super) fn concerns(&self, event: &LogEvent) -> bool {
        let of_pipeline = match &event.body {
            EventBody::SessionSaid { run_id, .. } => *run_id == self.journal.run() && self.hears == Hears::Everything,
            _ => self.journal.concerns(event),
        };
        of_pipeline || self.plans.values().any(|(_, news)| news.concerns(event))
    }
}

/// The item that an entry is about, if it is about one.
fn item_of(entry: &AutoEntry) -> Option<&Slug> {
    match entry {
        AutoEntry::Launched { id, .. } => Some(&id.item),
        AutoEntry::Said { item, .. } => item.as_ref(),
        AutoEntry::Happened { event } => match &**event {
            Event::Retry { item } => Some(item),
            Event::IntakeEnded { id, .. }
            | Event::Marked { id }
            | Event::PlanChecked { id, .. }
            | Event::SetAside { id }
            | Event::PlannerEnded { id, .. }
            | Event::PlanBegun { id, .. }
            | Event::PlanEnded { id, .. }
            | Event::VerifierEnded { id, .. }
            | Event::Logged { id }
            | Event::EvidenceFound { id, .. }
            | Event::Retired { id, .. }
            | Event::NotRetired { id, .. }
            | Event::NotNow { id, .. }
            | Event::DeedFailed { id, .. } => Some(&id.item),
            Event::Started | Event::Scanned { .. } | Event::Spent { .. } | Event::Stop(_) | Event::Time => None,
        },
        AutoEntry::Created { .. } | AutoEntry::Closed => None,
    }
}

/// Tells it in lines.
pub(super) struct Telling {
    /// Of planners and verifiers, and of those who carry out plans.
    sessions: (Teller, Teller),
    /// What the sessions of plans that were told of have used.
    used: Total,
}

impl Telling {
    /// So much of planners and verifiers. Of those who carry out plans a line for each thing: they have a log of their own.
    pub(super) fn new(extent: Extent) -> Self {
        Self { sessions: (Teller::new(extent), Teller::new(Extent::Lines)), used: Total::default() }
    }

    /// Whole lines; `None` for what only posse itself needs to know.
    pub(super) fn tell(&mut self, item: &Item, ui: &Ui) -> Option<String> {
        match item {
            Item::Entry(entry) => words::line(entry, ui),
            Item::Said(said) => self.sessions.0.tell(&said.session, &said.line, ui),
            Item::Plan(OfPlan { news: plan::Item::Said(said), .. }) => {
                self.sessions.1.tell(&said.session, &said.line, ui)
            }
            Item::Plan(OfPlan { news: plan::Item::Entry(entry), .. }) => plan_words::line(entry, &mut self.used, ui),
        }
    }
}

fn entry_of(event: &EventBody) -> Option<&AutoJournalView> {
    match event {
        EventBody::AutoEntry { view, .. } => view.as_deref(),
        _ => None,
    }
}
