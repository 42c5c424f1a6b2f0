//! The driver of one pipeline: writes down what happens, tells the machine, does what it wants, and nothing else.
//!
//! Everything takes its time elsewhere (`doing`) and comes back as something that happened. A pipeline with nothing to do
//! sleeps until the kernel tells of a change; it has no timer and writes nothing (`looking`).

mod looking;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use posse_api::AutoEntry;
use posse_core::auto::session::SessionEnd;
use posse_core::auto::words::{Deed, DeedId, Effect, Event, Notice};
use posse_core::backlog::Slug;
use posse_core::plan::budget::Usage;
use posse_core::plan::machine::{RunOutcome, StopHow};
use posse_core::plan::verdict::{Judgement, Verdict};
use posse_core::secrets::masked;
use posse_core::turn::Level;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::doing::{Doing, Told};
use super::ledger::Ledger;
use super::view;
use super::watching::Watching;
use super::{AllHeard, Command, guard, log_file, words};
use crate::api::App;
use crate::journal::{self, Stopping};
use crate::masking::MaskedEntry;
use crate::plans::stop_file::StopWatch;
use crate::plans::words::log;
use crate::plans::{Listening, News};
use crate::store::{JournalEntry, Kind, RunRow};
use looking::Seen;

pub(super) struct Driver {
    ledger: Ledger,
    /// The last entry's number.
    seq: i64,
    app: App,
    doing: Doing,
    told: mpsc::UnboundedReceiver<Told>,
    commands: mpsc::UnboundedReceiver<Command>,
    heard: AllHeard,
    watching: Watching,
    stop_files: StopWatch,
    /// What a look around has found.
    seen: (mpsc::UnboundedSender<Seen>, mpsc::UnboundedReceiver<Seen>),
    /// When it is looked around, because something has changed, and when it was done last.
    look: Option<Instant>,
    looked_at: Instant,
    /// How often that was.
    looks: u64,
    /// Others spend money too.
    others: Listening,
    /// How to end the sessions that run.
    stops: BTreeMap<DeedId, watch::Sender<bool>>,
    /// How the run of an item's plan is to be stopped as soon as there is one.
    stop_plans: BTreeMap<Slug, StopHow>,
    /// What nobody can do who does not know the environment.
    waiting: Vec<(DeedId, Deed)>,
}

/// Why a driver has ended.
pub(super) enum Ended {
    /// The pipeline is over.
    Over,
    /// The daemon is going.
    Stopping,
}

pub(super) struct Parts {
    pub(super) ledger: Ledger,
    pub(super) seq: i64,
    pub(super) app: App,
    pub(super) doing: Doing,
    pub(super) told: mpsc::UnboundedReceiver<Told>,
    pub(super) commands: mpsc::UnboundedReceiver<Command>,
    pub(super) heard: AllHeard,
    pub(super) stop_files: StopWatch,
    pub(super) others: Listening,
}

impl Driver {
    pub(super) fn new(parts: Parts) -> Self {
        let Parts { ledger, seq, app, doing, told, commands, heard, stop_files, others } = parts;
        let watching = Watching::new(doing.sessions.files.clone(), &ledger.spec);
        Self {
            ledger,
            seq,
            app,
            doing,
            told,
            commands,
            heard,
            watching,
            stop_files,
            seen: mpsc::unbounded_channel(),
            look: None,
            looked_at: Instant::now(),
            looks: 0,
            others,
            stops: BTreeMap::new(),
            stop_plans: BTreeMap::new(),
            waiting: Vec::new(),
        }
    }

    /// Goes on until the pipeline is over.
    pub(super) async fn drive(mut self) -> Ended {
        match self.go().await {
            Ok(()) => Ended::Over,
            Err(Stopping) => Ended::Stopping,
        }
    }

    async fn go(&mut self) -> Result<(), Stopping> {
        // Before the first scan, so that later changes are reported.
        self.watching.watch_checkout().await;
        // What was asked for and not answered before a crash is asked for again; a new pipeline has asked for nothing.
        let mut effects: VecDeque<Effect> = self.ledger.pipeline.outstanding().iter().cloned().collect();
        if !self.ledger.started {
            // Twice is the same as once.
            for item in self.ledger.spec.retry.clone() {
                effects.extend(self.happen(Event::Retry { item }).await?);
            }
            for text in self.doing.sweep().await {
                self.record(AutoEntry::Said { level: Level::Warning, item: None, text }).await?;
            }
            effects.extend(self.happen(Event::Started).await?);
        } else {
            self.look_first();
        }
        effects.extend(self.stop_asked_for().await?);
        loop {
            while let Some(effect) = effects.pop_front() {
                let more = self.begin(effect).await?;
                effects.extend(more);
            }
            if self.ledger.pipeline.outcome().is_some() {
                return self.close().await;
            }
            let waits = !self.waiting.is_empty();
            if self.ledger.waits != waits {
                self.ledger.waits = waits;
                let (level, text) = match waits {
                    true => (Level::Warning, words::WAITS.to_owned()),
                    false => (Level::Info, "going on".to_owned()),
                };
                self.record(AutoEntry::Said { level, item: None, text }).await?;
            }
            effects.extend(self.next().await?);
        }
    }

    /// The next thing that happens, and what is to be done then.
    async fn next(&mut self) -> Result<Vec<Effect>, Stopping> {
        let deadline = self.ledger.pipeline.deadline();
        let due = async {
            match deadline {
                Some(deadline) => {
                    let left = u64::try_from(deadline.0 - crate::now().0).unwrap_or(0);
                    tokio::time::sleep(Duration::from_millis(left)).await;
                }
                None => std::future::pending().await,
            }
        };
        let look = self.next_look();
        let look = async {
            match look {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            told = self.told.recv() => match told.ok_or(Stopping)? {
                Told::Event(event) => self.came_back(*event).await,
                Told::Entry(entry) => self.record(entry).await,
                Told::Heard(id, text) => {
                    guard(&self.heard).entry(self.ledger.spec.id).or_default().insert(id.item, text);
                    Ok(Vec::new())
                }
            },
            seen = self.seen.1.recv() => self.looked(seen.ok_or(Stopping)?).await,
            news = self.others.news.recv() => match news.ok_or(Stopping)? {
                News::Money => self.count_money().await,
                // Whoever starts a session finds out.
                News::Hold | News::Resources => Ok(Vec::new()),
            },
            command = self.commands.recv() => match command.ok_or(Stopping)? {
                Command::Event(event, taken) => {
                    let effects = self.happen(*event).await?;
                    let _ = taken.send(());
                    Ok(effects)
                }
                Command::Means(means, taken) => {
                    self.doing.means = Some(*means);
                    let effects = self.waiting.drain(..).map(|(id, deed)| Effect::Do { id, deed }).collect();
                    // Runs of plans may wait for the same.
                    for run in self.ledger.pipeline.doing().into_iter().filter_map(|doing| doing.run) {
                        if let Some(means) = &self.doing.means {
                            self.doing.give_means(run, means).await;
                        }
                    }
                    self.ledger.waits = false;
                    let _ = taken.send(());
                    Ok(effects)
                }
            },
            change = self.watching.changes.recv() => {
                self.changed(change.ok_or(Stopping)?);
                Ok(Vec::new())
            }
            changed = self.stop_files.changed.recv() => {
                changed.ok_or(Stopping)?;
                self.stop_asked_for().await
            }
            () = look => self.look_now().await,
            () = due => self.happen(Event::Time).await,
        }
    }

    async fn came_back(&mut self, event: Event) -> Result<Vec<Effect>, Stopping> {
        match &event {
            Event::PlanBegun { id, run } => {
                if let Some(how) = self.stop_plans.remove(&id.item) {
                    self.doing.stop_plan(*run, how).await;
                }
            }
            // What its sessions have cost is in the ledger by now; what follows from its end goes by that.
            Event::PlanEnded { id, .. } => {
                self.stop_plans.remove(&id.item);
                let mut effects = self.count_money().await?;
                effects.extend(self.happen(event).await?);
                return Ok(effects);
            }
            Event::PlannerEnded { id, .. } | Event::VerifierEnded { id, .. } => {
                self.stops.remove(id);
                if let Some(heard) = guard(&self.heard).get_mut(&self.ledger.spec.id) {
                    heard.remove(&id.item);
                }
                let effects = self.happen(event).await?;
                self.others.spent();
                return Ok(effects);
            }
            _ => {}
        }
        self.happen(event).await
    }

    /// Writes down what happened, then tells the machine.
    async fn happen(&mut self, event: Event) -> Result<Vec<Effect>, Stopping> {
        self.record(AutoEntry::Happened { event: Box::new(event) }).await
    }

    /// Takes an entry in and writes it down. A disk that refuses is waited for: nothing is done without the journal.
    async fn record(&mut self, entry: AutoEntry) -> Result<Vec<Effect>, Stopping> {
        let entry = entry.masked();
        let effects = self.ledger.take(&entry, crate::now());
        self.seq += 1;
        let id = self.ledger.spec.id;
        if let AutoEntry::Said { level, text, item } = &entry {
            let item = item.as_ref().map(|item| format!("{item}: ")).unwrap_or_default();
            log(id, *level, &format!("{item}{text}"));
        }
        let journal = journal_entry(&self.ledger, &self.doing.state, self.seq, &entry);
        journal::write_surely(&self.app, journal, &self.ledger.spec.notifications).await?;
        Ok(effects)
    }

    /// Begins one thing. What becomes of it happens later; what must be done besides is given back.
    async fn begin(&mut self, effect: Effect) -> Result<Vec<Effect>, Stopping> {
        match effect {
            Effect::Scan => {
                self.look_elsewhere();
                Ok(Vec::new())
            }
            Effect::Do { id, deed } => self.start(id, deed).await,
            Effect::EndSession { id } => self.end(&id).await,
            Effect::StopPlan { id, how } => self.stop_plan(&id, how).await,
            Effect::Tell(notice) => {
                if let Some(notice) = words::told(&notice, &self.ledger) {
                    self.app.notifier.tell(&self.ledger.spec.notifications, notice);
                }
                let Notice { what, level, item, text, .. } = notice;
                let effects = self.record(AutoEntry::Said { level, item: item.clone(), text: text.clone() }).await?;
                log_file::append(&self.doing.state, crate::now(), what, level, item.as_ref(), &masked(&text)).await;
                Ok(effects)
            }
            // The end is closed when nothing else is left to do.
            Effect::Finish { .. } => Ok(Vec::new()),
        }
    }

    async fn start(&mut self, id: DeedId, deed: Deed) -> Result<Vec<Effect>, Stopping> {
        if self.doing.means.is_none() && self.takes_means(&id, &deed).await {
            self.waiting.push((id, deed));
            return Ok(Vec::new());
        }
        let (stop, stopped) = watch::channel(false);
        if matches!(deed, Deed::Plan(_) | Deed::Verify { .. }) {
            self.stops.insert(id.clone(), stop);
        }
        self.doing.clone().begin(id, deed, self.ledger.pipeline.clone(), stopped);
        Ok(Vec::new())
    }

    /// Whether it can only be done by who knows the environment. What was begun goes on by itself.
    async fn takes_means(&self, id: &DeedId, deed: &Deed) -> bool {
        match deed {
            Deed::Plan(_) | Deed::Verify { .. } => !self.doing.is_known(id).await,
            Deed::Execute { .. } => {
                let begun = self.doing.going_on(&self.ledger.pipeline, id).await;
                matches!(begun, Ok(None))
            }
            _ => false,
        }
    }

    async fn end(&mut self, id: &DeedId) -> Result<Vec<Effect>, Stopping> {
        if let Some(stop) = self.stops.get(id) {
            let _ = stop.send(true);
            return Ok(Vec::new());
        }
        // It was never started, and need not be.
        let Some(at) = self.waiting.iter().position(|(waiting, _)| waiting == id) else { return Ok(Vec::new()) };
        let (id, deed) = self.waiting.remove(at);
        let (end, usage) = (SessionEnd::Interrupted, Usage::default());
        self.happen(match deed {
            Deed::Verify { .. } => {
                let judgement = Judgement { verdict: Verdict::Error, findings: Vec::new() };
                Event::VerifierEnded { id, end, judgement, usage }
            }
            _ => Event::PlannerEnded { id, end, usage },
        })
        .await
    }

    async fn stop_plan(&mut self, id: &DeedId, how: StopHow) -> Result<Vec<Effect>, Stopping> {
        if let Some(at) = self.waiting.iter().position(|(waiting, _)| waiting == id) {
            let (id, _) = self.waiting.remove(at);
            let (outcome, reason) = (RunOutcome::Stopped, "stopped before it began".to_owned());
            return self.happen(Event::PlanEnded { id, outcome, reason, used: Default::default() }).await;
        }
        match self.ledger.pipeline.doing_for(&id.item).and_then(|doing| doing.run) {
            Some(run) => self.doing.stop_plan(run, how).await,
            None => drop(self.stop_plans.insert(id.item.clone(), how)),
        }
        Ok(Vec::new())
    }

    async fn close(&mut self) -> Result<(), Stopping> {
        if let Some(notice) = words::ended(&self.ledger) {
            self.app.notifier.tell(&self.ledger.spec.notifications, notice);
        }
        self.record(AutoEntry::Closed).await.map(drop)
    }
}

/// An entry as it is stored, with the pipeline as it is after it.
pub(super) fn journal_entry(
    ledger: &Ledger,
    state: &std::path::Path,
    seq: i64,
    entry: &AutoEntry,
) -> serde_json::Result<JournalEntry> {
    let view = view::auto_view(ledger, &state.to_string_lossy());
    Ok(JournalEntry {
        run: ledger.spec.id,
        seq,
        at: ledger.changed,
        entry: serde_json::to_string(entry)?,
        event: view::entry_event(ledger.spec.id, seq, ledger.changed, entry),
        row: Some(RunRow {
            id: ledger.spec.id,
            kind: Kind::Auto,
            status: view.status.as_str().to_owned(),
            state_file: ledger.spec.directory.clone(),
            created: ledger.begun,
            view: serde_json::to_string(&view)?,
        }),
        usage: ledger.line.clone().filter(|line| line.at == ledger.changed && is_end(entry)),
    })
}

/// Whether it tells of the end of a session of ours.
fn is_end(entry: &AutoEntry) -> bool {
    let AutoEntry::Happened { event } = entry else { return false };
    matches!(**event, Event::PlannerEnded { .. } | Event::VerifierEnded { .. })
}
