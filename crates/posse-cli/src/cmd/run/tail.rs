//! New entries of the journal of a run and, if asked for, new events of its sessions. Each entry is returned once and in
//! order. An event brings the next one; otherwise it is read from the daemon.

use std::collections::BTreeMap;

use jiff::Timestamp;
use posse_api::{EntryView, EventBody, JournalView, LogEvent, RunEntry, SaidLine, SessionLines};
use posse_core::auto::messages::{Event as BacklogEvent, StepAnswer};
use posse_core::backlog::Slug;
use posse_core::ids::RunId;
use posse_core::plan::machine::Event as PlanEvent;
use posse_core::run::Entry;
use serde::Serialize;

use crate::client::Client;
use crate::error::Error;

/// Returns the task or item that an entry is about.
pub(super) fn about(entry: &EntryView) -> Option<&str> {
    match entry {
        EntryView::Loop(_) => None,
        EntryView::Plan(entry) => match entry {
            RunEntry::Launched { id, .. } | RunEntry::Refused { id, .. } => Some(id.task.as_str()),
            RunEntry::Happened { event } => task_of(event),
            _ => None,
        },
        EntryView::Backlog(entry) => match entry {
            RunEntry::Launched { id, .. } | RunEntry::Refused { id, .. } => Some(id.item.as_str()),
            RunEntry::Said { item, .. } => item.as_ref().map(Slug::as_str),
            RunEntry::Happened { event } => match &**event {
                BacklogEvent::Retry { item } => Some(item.as_str()),
                BacklogEvent::Answered { id, .. } | BacklogEvent::PlanBegun { id, .. } => Some(id.item.as_str()),
                _ => None,
            },
            _ => None,
        },
    }
}

fn task_of(event: &PlanEvent) -> Option<&str> {
    match event {
        PlanEvent::AreaReady { run }
        | PlanEvent::AreaFailed { run, .. }
        | PlanEvent::SessionEnded { run, .. }
        | PlanEvent::ValidatorEnded { run, .. }
        | PlanEvent::GatesEnded { run, .. }
        | PlanEvent::GatesStopped { run }
        | PlanEvent::GatesNotRun { run, .. }
        | PlanEvent::Taken { run, .. }
        | PlanEvent::MergeEnded { run, .. } => Some(run.task.as_str()),
        PlanEvent::Answered { task, .. } | PlanEvent::Retry { task } => Some(task.as_str()),
        _ => None,
    }
}

/// Returns the name of the session that an entry starts.
fn started_session(entry: &EntryView) -> Option<String> {
    match entry {
        EntryView::Plan(RunEntry::Launched { id, .. }) => Some(id.to_string()),
        EntryView::Backlog(RunEntry::Launched { id, .. }) => Some(id.to_string()),
        _ => None,
    }
}

/// Something new in a run.
#[derive(Clone, Debug, Serialize)]
pub(super) struct TailItem {
    #[serde(skip)]
    run: RunId,
    /// Set if it is of the run of an item's plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) plan_run: Option<RunId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    item: Option<String>,
    #[serde(flatten)]
    pub(super) news: TailNews,
}

#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub(super) enum TailNews {
    Entry(Box<JournalView>),
    Said {
        session: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        task: Option<String>,
        #[serde(flatten)]
        line: SaidLine,
    },
}

impl TailItem {
    pub(super) fn at(&self) -> Timestamp {
        match &self.news {
            TailNews::Entry(entry) => entry.at,
            TailNews::Said { line, .. } => line.at,
        }
    }

    /// The entry, if it is of a run of the loop.
    pub(super) fn of_loop(&self) -> Option<&Entry> {
        match &self.news {
            TailNews::Entry(view) => {
                if let EntryView::Loop(entry) = &view.entry {
                    Some(entry)
                } else {
                    None
                }
            }
            TailNews::Said { .. } => None,
        }
    }

    /// The name of the session that begins here, and its path in the API.
    pub(super) fn session(&self) -> Option<(String, String)> {
        let TailNews::Entry(entry) = &self.news else { return None };
        let session = started_session(&entry.entry)?;
        Some((format!("/runs/{}/sessions/{session}", self.run), session))
    }
}

/// A session whose log is read.
struct ReadSession {
    task: Option<String>,
    item: Option<String>,
    /// The position up to which it was read.
    next: u64,
}

/// Reads what is new in a run.
pub(super) struct RunTail {
    pub(super) run: RunId,
    /// The place of the last entry that was read.
    last: i64,
    /// Only entries about this task or item.
    about: Option<String>,
    /// Also reads sessions, and the runs of an item's plans.
    sessions: bool,
    /// The sessions that run.
    read: BTreeMap<String, ReadSession>,
    /// The runs of plans, and their items.
    plans: BTreeMap<RunId, (String, RunTail)>,
}

impl RunTail {
    pub(super) fn new(run: RunId, sessions: bool, about: Option<String>) -> Self {
        Self { run, last: 0, about, sessions, read: BTreeMap::new(), plans: BTreeMap::new() }
    }

    /// Returns whether there may be something new after this event.
    pub(super) fn concerns(&self, event: &LogEvent) -> bool {
        let own = match &event.body {
            EventBody::SessionSaid { run_id, .. } => *run_id == self.run && self.sessions,
            body => body.entry_of().is_some_and(|(run, _)| run == self.run),
        };
        own || self.plans.values().any(|(_, tail)| tail.concerns(event))
    }

    /// Returns what this event brings; without an event, everything since the last call.
    pub(super) async fn next(&mut self, event: Option<&LogEvent>, client: &mut Client) -> Result<Vec<TailItem>, Error> {
        let mut entries = self.entries(event, client).await?;
        entries.retain(|entry| self.about.as_deref().is_none_or(|part| about(&entry.entry) == Some(part)));
        if self.sessions {
            entries.iter().for_each(|entry| self.begins(&entry.entry));
        }
        let run = self.run;
        let mut items = Vec::new();
        for (session, read) in &mut self.read {
            for line in said_since(client, &format!("/runs/{run}/sessions/{session}"), &mut read.next).await? {
                let news = TailNews::Said { session: session.clone(), task: read.task.clone(), line };
                items.push(TailItem { run, plan_run: None, item: read.item.clone(), news });
            }
        }
        for (plan_run, (item, tail)) in &mut self.plans {
            let found = Box::pin(tail.next(event, client)).await?;
            let of_plan = |found| TailItem { plan_run: Some(*plan_run), item: Some(item.clone()), ..found };
            items.extend(found.into_iter().map(of_plan));
        }
        for entry in entries {
            self.ends(&entry.entry);
            items.push(TailItem { run, plan_run: None, item: None, news: TailNews::Entry(Box::new(entry)) });
        }
        items.sort_by_key(TailItem::at);
        Ok(items)
    }

    async fn entries(&mut self, event: Option<&LogEvent>, client: &mut Client) -> Result<Vec<JournalView>, Error> {
        if let Some(event) = event {
            match event.body.entry_of().filter(|(run, _)| *run == self.run) {
                None => return Ok(Vec::new()),
                Some((_, seq)) if seq <= self.last => return Ok(Vec::new()),
                Some((_, seq)) if seq == self.last + 1 => {
                    if let EventBody::RunEntry { view: Some(view), .. } = &event.body {
                        self.last = seq;
                        return Ok(vec![*view.clone()]);
                    }
                }
                Some(_) => {}
            }
        }
        let path = format!("/runs/{}/journal?after={}", self.run, self.last);
        let entries: Vec<JournalView> = client.get(&path).await?;
        self.last = entries.last().map_or(self.last, |entry| entry.seq);
        Ok(entries)
    }

    fn begins(&mut self, entry: &EntryView) {
        if let Some(session) = started_session(entry) {
            let part = about(entry).map(str::to_owned);
            let (task, item) = if matches!(entry, EntryView::Plan(_)) { (part, None) } else { (None, part) };
            self.read.entry(session).or_insert(ReadSession { task, item, next: 0 });
        }
        if let EntryView::Backlog(RunEntry::Happened { event }) = entry
            && let BacklogEvent::PlanBegun { id, run } = &**event
        {
            let tail = || (id.item.to_string(), RunTail::new(*run, true, None));
            self.plans.entry(*run).or_insert_with(tail);
        }
    }

    fn ends(&mut self, entry: &EntryView) {
        match entry {
            EntryView::Plan(RunEntry::Happened { event }) => {
                if let PlanEvent::SessionEnded { run, .. } | PlanEvent::ValidatorEnded { run, .. } = &**event {
                    self.read.remove(&run.to_string());
                }
            }
            EntryView::Backlog(RunEntry::Happened { event }) => {
                let BacklogEvent::Answered { id, answer } = &**event else { return };
                self.read.remove(&id.to_string());
                if matches!(answer, StepAnswer::PlanEnded { .. }) {
                    self.plans.retain(|_, (item, _)| *item != id.item.as_str());
                }
            }
            _ => {}
        }
    }
}

/// Reads the session's output since `next`, from this path of the API.
async fn said_since(client: &mut Client, session: &str, next: &mut u64) -> Result<Vec<SaidLine>, Error> {
    let mut said = Vec::new();
    loop {
        let found: SessionLines = client.get(&format!("{session}/log?after={next}")).await?;
        *next = found.next;
        if found.lines.is_empty() {
            return Ok(said);
        }
        said.extend(found.lines.iter().filter_map(|line| serde_json::from_str::<SaidLine>(line).ok()));
    }
}
