//! What is new in a run of a plan: entries of its journal and, for who wants to know, what its sessions do and say.

use std::collections::BTreeMap;

use jiff::Timestamp;
use posse_api::{EventBody, LogEvent, PlanEntry, PlanJournalView, SaidLine, SessionLines};
use posse_core::ids::RunId;
use posse_core::plan::TaskId;
use posse_core::plan::machine::{self, Event};
use serde::Serialize;

use crate::client::Client;
use crate::cmd::journal_cursor::JournalCursor;
use crate::error::Error;

/// Which sessions are listened to.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::cmd) enum Sessions {
    None,
    All,
    Of(TaskId),
}

/// Something new.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub(in crate::cmd) enum Item {
    Entry(Box<PlanJournalView>),
    Said(Said),
}

/// What a session did or said.
#[derive(Clone, Debug, Serialize)]
pub(in crate::cmd) struct Said {
    pub(in crate::cmd) session: String,
    pub(super) task: TaskId,
    #[serde(flatten)]
    pub(in crate::cmd) line: SaidLine,
}

impl Item {
    pub(in crate::cmd) fn at(&self) -> Timestamp {
        match self {
            Self::Entry(entry) => entry.at,
            Self::Said(said) => said.line.at,
        }
    }
}

pub(in crate::cmd) struct News {
    journal: JournalCursor<PlanJournalView>,
    sessions: Sessions,
    /// How far sessions were read, and of which task they are.
    read: BTreeMap<String, (TaskId, u64)>,
}

impl News {
    pub(in crate::cmd) fn new(run: RunId, sessions: Sessions) -> Self {
        Self { journal: JournalCursor::new(run, "plans", entry_of), sessions, read: BTreeMap::new() }
    }

    /// What this event brings, in order; without an event everything since the last call.
    pub(in crate::cmd) async fn next(
        &mut self,
        event: Option<&LogEvent>,
        client: &mut Client,
    ) -> Result<Vec<Item>, Error> {
        let entries = self.journal.next(event, client).await?;
        for entry in &entries {
            if let PlanEntry::Launched { run, .. } = &entry.entry
                && self.hears(&run.task)
            {
                self.read.entry(run.to_string()).or_insert((run.task.clone(), 0));
            }
        }
        let mut items = Vec::new();
        for (session, (task, next)) in &mut self.read {
            let said = said_since(client, &format!("/plans/{}/sessions/{session}", self.journal.run()), next).await?;
            let said = said.into_iter().map(|line| Said { session: session.clone(), task: task.clone(), line });
            items.extend(said.map(Item::Said));
        }
        // Of what is over there will be no more.
        for ended in entries.iter().filter_map(|entry| ended(&entry.entry)) {
            self.read.remove(&ended.to_string());
        }
        items.extend(entries.into_iter().map(|entry| Item::Entry(Box::new(entry))));
        items.sort_by_key(Item::at);
        Ok(items)
    }

    fn hears(&self, task: &TaskId) -> bool {
        match &self.sessions {
            Sessions::None => false,
            Sessions::All => true,
            Sessions::Of(one) => one == task,
        }
    }

    /// Whether it may mean that there is something new.
    pub(in crate::cmd) fn concerns(&self, event: &LogEvent) -> bool {
        match &event.body {
            EventBody::SessionSaid { run_id, .. } => *run_id == self.journal.run() && self.sessions != Sessions::None,
            _ => self.journal.concerns(event),
        }
    }
}

/// What the session at this path of the API did and said since the last time.
pub(in crate::cmd) async fn said_since(
    client: &mut Client,
    session: &str,
    next: &mut u64,
) -> Result<Vec<SaidLine>, Error> {
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

fn ended(entry: &PlanEntry) -> Option<&machine::RunId> {
    let PlanEntry::Happened { event } = entry else { return None };
    match &**event {
        Event::SessionEnded { run, .. } | Event::ValidatorEnded { run, .. } => Some(run),
        _ => None,
    }
}

/// The task that an entry is about, if it is about one.
pub(super) fn task_of(entry: &PlanEntry) -> Option<&TaskId> {
    match entry {
        PlanEntry::Launched { run, .. } | PlanEntry::Refused { run, .. } => Some(&run.task),
        PlanEntry::Happened { event } => match &**event {
            Event::AreaReady { run }
            | Event::AreaFailed { run, .. }
            | Event::SessionEnded { run, .. }
            | Event::ValidatorEnded { run, .. }
            | Event::GatesEnded { run, .. }
            | Event::GatesStopped { run }
            | Event::GatesNotRun { run, .. }
            | Event::MergeEnded { run, .. } => Some(&run.task),
            Event::Answered { task, .. } | Event::Retry { task } => Some(task),
            _ => None,
        },
        _ => None,
    }
}

fn entry_of(event: &EventBody) -> Option<&PlanJournalView> {
    match event {
        EventBody::PlanEntry { view, .. } => view.as_deref(),
        _ => None,
    }
}
