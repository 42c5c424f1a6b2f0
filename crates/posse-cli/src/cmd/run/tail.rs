//! New entries of the journal of a run and, if asked for, new events of its sessions. Each entry is returned once and in order. An event brings the next one; otherwise it is read from the daemon.

use std::collections::BTreeMap;

use jiff::Timestamp;
use posse_api::{
    AutoEntry, AutoJournalView, EventBody, LogEvent, LoopJournalView, PlanEntry, PlanJournalView, SaidLine,
    SessionLines,
};
use posse_core::auto::messages::Event as BacklogEvent;
use posse_core::backlog::Slug;
use posse_core::ids::RunId;
use posse_core::plan::machine::Event as PlanEvent;
use posse_core::run::Entry;
use serde::Serialize;

use super::kind::RunKind;
use crate::client::Client;
use crate::error::Error;

/// An entry of a run's journal.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub(in crate::cmd) enum RunEntry {
    Loop(Box<LoopJournalView>),
    Plan(Box<PlanJournalView>),
    Backlog(Box<AutoJournalView>),
}

/// A session that an entry starts.
pub(super) struct StartedSession<'a> {
    pub(super) name: String,
    pub(super) agent: &'a str,
    pub(super) flags: &'a [String],
}

/// The content of an entry.
pub(super) enum EntryBody<'a> {
    Loop(&'a Entry),
    Plan(&'a PlanEntry),
    PlanEvent(&'a PlanEvent),
    Backlog(&'a AutoEntry),
    BacklogEvent(&'a BacklogEvent),
}

impl RunEntry {
    fn of_event(event: &EventBody) -> Option<Self> {
        match event {
            EventBody::LoopEntry { view, .. } => view.clone().map(Self::Loop),
            EventBody::PlanEntry { view, .. } => view.clone().map(Self::Plan),
            EventBody::AutoEntry { view, .. } => view.clone().map(Self::Backlog),
            _ => None,
        }
    }

    pub(super) fn seq(&self) -> i64 {
        match self {
            Self::Loop(entry) => entry.seq,
            Self::Plan(entry) => entry.seq,
            Self::Backlog(entry) => entry.seq,
        }
    }

    pub(super) fn at(&self) -> Timestamp {
        match self {
            Self::Loop(entry) => entry.at,
            Self::Plan(entry) => entry.at,
            Self::Backlog(entry) => entry.at,
        }
    }

    pub(super) fn body(&self) -> EntryBody<'_> {
        match self {
            Self::Loop(entry) => EntryBody::Loop(&entry.entry),
            Self::Plan(entry) => match &entry.entry {
                PlanEntry::Happened { event } => EntryBody::PlanEvent(event),
                entry => EntryBody::Plan(entry),
            },
            Self::Backlog(entry) => match &entry.entry {
                AutoEntry::Happened { event } => EntryBody::BacklogEvent(event),
                entry => EntryBody::Backlog(entry),
            },
        }
    }

    /// The task or item that the entry is about.
    pub(super) fn about(&self) -> Option<&str> {
        match self.body() {
            EntryBody::Plan(PlanEntry::Launched { run, .. } | PlanEntry::Refused { run, .. }) => {
                Some(run.task.as_str())
            }
            EntryBody::PlanEvent(event) => task_of(event),
            EntryBody::Backlog(AutoEntry::Launched { id, .. }) => Some(id.item.as_str()),
            EntryBody::Backlog(AutoEntry::Said { item, .. }) => item.as_ref().map(Slug::as_str),
            EntryBody::BacklogEvent(event) => item_of(event),
            EntryBody::Loop(_) | EntryBody::Plan(_) | EntryBody::Backlog(_) => None,
        }
    }

    pub(super) fn session(&self) -> Option<StartedSession<'_>> {
        match self.body() {
            EntryBody::Plan(PlanEntry::Launched { run, agent, flags, .. }) => {
                Some(StartedSession { name: run.to_string(), agent, flags })
            }
            EntryBody::Backlog(AutoEntry::Launched { id, agent, flags, .. }) => {
                Some(StartedSession { name: id.to_string(), agent, flags })
            }
            _ => None,
        }
    }

    /// The session whose end the entry reports.
    fn ended_session(&self) -> Option<String> {
        match self.body() {
            EntryBody::PlanEvent(PlanEvent::SessionEnded { run, .. } | PlanEvent::ValidatorEnded { run, .. }) => {
                Some(run.to_string())
            }
            EntryBody::BacklogEvent(BacklogEvent::PlannerEnded { id, .. } | BacklogEvent::VerifierEnded { id, .. }) => {
                Some(id.to_string())
            }
            _ => None,
        }
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

fn item_of(event: &BacklogEvent) -> Option<&str> {
    match event {
        BacklogEvent::Retry { item } => Some(item.as_str()),
        BacklogEvent::IntakeEnded { id, .. }
        | BacklogEvent::Marked { id }
        | BacklogEvent::PlanChecked { id, .. }
        | BacklogEvent::SetAside { id }
        | BacklogEvent::PlannerEnded { id, .. }
        | BacklogEvent::PlanBegun { id, .. }
        | BacklogEvent::PlanEnded { id, .. }
        | BacklogEvent::VerifierEnded { id, .. }
        | BacklogEvent::Logged { id }
        | BacklogEvent::EvidenceFound { id, .. }
        | BacklogEvent::Retired { id, .. }
        | BacklogEvent::NotRetired { id, .. }
        | BacklogEvent::NotNow { id, .. }
        | BacklogEvent::DeedFailed { id, .. } => Some(id.item.as_str()),
        BacklogEvent::Started
        | BacklogEvent::Scanned { .. }
        | BacklogEvent::Spent { .. }
        | BacklogEvent::Stop(_)
        | BacklogEvent::Time => None,
    }
}

/// Something new in a run.
#[derive(Clone, Debug, Serialize)]
pub(in crate::cmd) struct TailItem {
    /// The path of the run in the API.
    #[serde(skip)]
    pub(super) run: String,
    /// Set if it is of the run of an item's plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) plan_run: Option<RunId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    item: Option<String>,
    #[serde(flatten)]
    pub(in crate::cmd) news: TailNews,
}

#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub(in crate::cmd) enum TailNews {
    Entry(RunEntry),
    Said(SessionSaid),
}

/// An event of a session.
#[derive(Clone, Debug, Serialize)]
pub(in crate::cmd) struct SessionSaid {
    pub(super) session: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    task: Option<String>,
    #[serde(flatten)]
    pub(super) line: SaidLine,
}

impl TailItem {
    /// The place in the journal, of an entry.
    pub(super) fn seq(&self) -> Option<i64> {
        match &self.news {
            TailNews::Entry(entry) => Some(entry.seq()),
            TailNews::Said(_) => None,
        }
    }

    pub(super) fn at(&self) -> Timestamp {
        match &self.news {
            TailNews::Entry(entry) => entry.at(),
            TailNews::Said(said) => said.line.at,
        }
    }

    /// The session that begins here, with its path in the API.
    pub(super) fn session(&self) -> Option<(String, StartedSession<'_>)> {
        let TailNews::Entry(entry) = &self.news else { return None };
        let session = entry.session()?;
        Some((format!("{}/sessions/{}", self.run, session.name), session))
    }
}

/// Reads what is new in a run.
pub(super) struct RunTail {
    kind: RunKind,
    pub(super) run: RunId,
    /// The place of the last entry that was read.
    last: i64,
    /// Only entries about this task or item.
    about: Option<String>,
    /// Whether sessions are read too, and the runs of an item's plans.
    sessions: bool,
    /// The sessions that run, their task or item, and how far each was read.
    read: BTreeMap<String, (String, u64)>,
    /// The runs of plans, and their items.
    plans: BTreeMap<RunId, (String, RunTail)>,
}

impl RunTail {
    pub(super) fn new(kind: RunKind, run: RunId) -> Self {
        let (read, plans) = Default::default();
        Self { kind, run, last: 0, about: None, sessions: false, read, plans }
    }

    #[must_use]
    pub(super) fn with_sessions(self, sessions: bool) -> Self {
        Self { sessions, ..self }
    }

    #[must_use]
    pub(super) fn about(self, about: Option<String>) -> Self {
        Self { about, ..self }
    }

    pub(super) fn path(&self) -> String {
        self.kind.path(self.run)
    }

    /// Returns whether nothing was read yet.
    pub(super) fn is_at_start(&self) -> bool {
        self.last == 0
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
        entries.retain(|entry| self.about.as_deref().is_none_or(|about| entry.about() == Some(about)));
        if self.sessions {
            entries.iter().for_each(|entry| self.begins(entry));
        }
        let run = self.path();
        let mut items = Vec::new();
        for (session, (about, next)) in &mut self.read {
            let about = Some(about.clone());
            let (task, item) = if self.kind == RunKind::Plan { (about, None) } else { (None, about) };
            for line in said_since(client, &format!("{run}/sessions/{session}"), next).await? {
                let news = TailNews::Said(SessionSaid { session: session.clone(), task: task.clone(), line });
                items.push(TailItem { run: run.clone(), plan_run: None, item: item.clone(), news });
            }
        }
        for (plan_run, (item, tail)) in &mut self.plans {
            let found = Box::pin(tail.next(event, client)).await?;
            let of_plan = |found| TailItem { plan_run: Some(*plan_run), item: Some(item.clone()), ..found };
            items.extend(found.into_iter().map(of_plan));
        }
        for entry in entries {
            self.ends(&entry);
            items.push(TailItem { run: run.clone(), plan_run: None, item: None, news: TailNews::Entry(entry) });
        }
        items.sort_by_key(TailItem::at);
        Ok(items)
    }

    async fn entries(&mut self, event: Option<&LogEvent>, client: &mut Client) -> Result<Vec<RunEntry>, Error> {
        if let Some(event) = event {
            match event.body.entry_of().filter(|(run, _)| *run == self.run) {
                None => return Ok(Vec::new()),
                Some((_, seq)) if seq <= self.last => return Ok(Vec::new()),
                Some((_, seq)) if seq == self.last + 1 => {
                    if let Some(entry) = RunEntry::of_event(&event.body) {
                        self.last = seq;
                        return Ok(vec![entry]);
                    }
                }
                Some(_) => {}
            }
        }
        let path = format!("{}/journal?after={}", self.path(), self.last);
        let entries: Vec<RunEntry> = match self.kind {
            RunKind::Loop => client.get::<Vec<_>>(&path).await?.into_iter().map(RunEntry::Loop).collect(),
            RunKind::Plan => client.get::<Vec<_>>(&path).await?.into_iter().map(RunEntry::Plan).collect(),
            RunKind::Backlog => client.get::<Vec<_>>(&path).await?.into_iter().map(RunEntry::Backlog).collect(),
        };
        self.last = entries.last().map_or(self.last, RunEntry::seq);
        Ok(entries)
    }

    fn begins(&mut self, entry: &RunEntry) {
        if let Some(session) = entry.session() {
            let about = entry.about().unwrap_or_default().to_owned();
            self.read.entry(session.name).or_insert((about, 0));
        }
        if let EntryBody::BacklogEvent(BacklogEvent::PlanBegun { id, run }) = entry.body() {
            let tail = || (id.item.to_string(), RunTail::new(RunKind::Plan, *run).with_sessions(true));
            self.plans.entry(*run).or_insert_with(tail);
        }
    }

    fn ends(&mut self, entry: &RunEntry) {
        if let Some(session) = entry.ended_session() {
            self.read.remove(&session);
        }
        if let EntryBody::BacklogEvent(BacklogEvent::PlanEnded { id, .. }) = entry.body() {
            self.plans.retain(|_, (item, _)| *item != id.item.as_str());
        }
    }
}

/// Reads what the session at this path of the API did and said since `next`.
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
