//! The driver of one pipeline: writes down what happens, tells the machine, does what it wants, and nothing else.
//!
//! Everything takes its time elsewhere (`doing`) and comes back as something that happened. A pipeline with nothing to do
//! sleeps until the kernel tells of a change; it has no timer and writes nothing.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use posse_core::auto::session::SessionEnd;
use posse_core::auto::words::{Deed, DeedId, Effect, Event};
use posse_core::backlog::Slug;
use posse_core::plan::budget::Usage;
use posse_core::plan::machine::{RunOutcome, StopHow};
use posse_core::plan::verdict::{Judgement, Verdict};
use posse_core::turn::Level;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::doing::{Doing, Told};
use super::entry::Entry;
use super::ledger::Ledger;
use super::scan;
use super::view::{self, AutoView};
use super::watching::Watching;
use super::{AllHeard, Command, guard, words};
use crate::api::App;
use crate::journal::{self, Stopping};
use crate::notify;
use crate::plans::stop_file::{Says, StopWatch};
use crate::plans::words::log;
use crate::store::{JournalEntry, Kind, RunRow};

/// Files come in crowds: an editor writes, renames and removes within this time.
const SETTLE: Duration = Duration::from_millis(150);
/// If the kernel cannot tell of changes, the backlog is looked at so often (spec §14.1).
const SAFETY_SCAN: Duration = Duration::from_secs(60);

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
    /// What a look at the backlog found.
    scanned: (mpsc::UnboundedSender<Found>, mpsc::UnboundedReceiver<Found>),
    /// When the backlog is looked at, because something changed in it.
    look: Option<Instant>,
    /// How to end the session that runs.
    stops: BTreeMap<DeedId, watch::Sender<bool>>,
    /// How the run of the plan is to be stopped as soon as there is one.
    stop_plan: Option<StopHow>,
    /// What nobody can do who does not know the environment.
    waiting: Vec<(DeedId, Deed)>,
    /// Items that a person wants to be taken up again.
    retries: Vec<Slug>,
}

type Found = Vec<posse_core::auto::words::Candidate>;

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
    pub(super) retries: Vec<Slug>,
    pub(super) stop_files: StopWatch,
}

impl Driver {
    pub(super) fn new(parts: Parts) -> Self {
        let Parts { ledger, seq, app, doing, told, commands, heard, retries, stop_files } = parts;
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
            scanned: mpsc::unbounded_channel(),
            look: None,
            stops: BTreeMap::new(),
            stop_plan: None,
            waiting: Vec::new(),
            retries,
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
        // Before the first look: what changes after it is told.
        let watched = self.watching.arm();
        // What was asked for and not answered before a crash is asked for again; a new pipeline has asked for nothing.
        let mut effects: VecDeque<Effect> = self.ledger.pipeline.outstanding().iter().cloned().collect();
        if self.seq == 1 {
            for item in std::mem::take(&mut self.retries) {
                effects.extend(self.happen(Event::Retry { item }).await?);
            }
            effects.extend(self.happen(Event::Started).await?);
        } else if self.ledger.pipeline.is_idle() {
            // Something may have changed while nobody looked.
            self.look = Some(Instant::now());
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
                self.record(Entry::Said { level, item: None, text }).await?;
            }
            effects.extend(self.next(watched).await?);
        }
    }

    /// The next thing that happens, and what is to be done then.
    async fn next(&mut self, watched: bool) -> Result<Vec<Effect>, Stopping> {
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
        let look = self.look.or_else(|| (!watched).then(|| Instant::now() + SAFETY_SCAN));
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
                Told::Heard(text) => {
                    guard(&self.heard).insert(self.ledger.spec.id, text);
                    Ok(Vec::new())
                }
            },
            found = self.scanned.1.recv() => self.looked(found.ok_or(Stopping)?).await,
            command = self.commands.recv() => match command.ok_or(Stopping)? {
                Command::Event(event, taken) => {
                    let effects = self.happen(*event).await?;
                    let _ = taken.send(());
                    Ok(effects)
                }
                Command::Means(means, taken) => {
                    self.doing.means = Some(*means);
                    let effects = self.waiting.drain(..).map(|(id, deed)| Effect::Do { id, deed }).collect();
                    // The run of a plan may wait for the same.
                    if let (Some(run), Some(means)) = (self.run(), &self.doing.means) {
                        self.doing.give_means(run, means).await;
                    }
                    self.ledger.waits = false;
                    let _ = taken.send(());
                    Ok(effects)
                }
            },
            _ = self.watching.changes.recv() => {
                while self.watching.changes.try_recv().is_ok() {}
                self.watching.arm();
                if self.ledger.pipeline.is_idle() && self.look.is_none() {
                    self.look = Some(Instant::now() + SETTLE);
                }
                Ok(Vec::new())
            }
            stirred = self.stop_files.stirred.recv() => {
                stirred.ok_or(Stopping)?;
                self.stop_asked_for().await
            }
            () = look => {
                self.look = None;
                if self.ledger.pipeline.is_idle() {
                    self.look();
                }
                self.stop_asked_for().await
            }
            () = due => self.happen(Event::Time).await,
        }
    }

    fn run(&self) -> Option<posse_core::ids::RunId> {
        self.ledger.pipeline.doing().and_then(|doing| doing.run)
    }

    async fn came_back(&mut self, event: Event) -> Result<Vec<Effect>, Stopping> {
        match &event {
            Event::PlanBegun { run, .. } => {
                if let Some(how) = self.stop_plan.take() {
                    self.doing.stop_plan(*run, how).await;
                }
            }
            Event::PlannerEnded { id, .. } | Event::VerifierEnded { id, .. } => {
                self.stops.remove(id);
                guard(&self.heard).remove(&self.ledger.spec.id);
            }
            _ => {}
        }
        self.happen(event).await
    }

    /// Looks at the backlog, elsewhere.
    fn look(&mut self) {
        let (spec, pipeline) = (self.doing.spec.clone(), self.ledger.pipeline.clone());
        let found = self.scanned.0.clone();
        tokio::task::spawn_blocking(move || {
            let _ = found.send(scan::candidates(&spec, &pipeline));
        });
    }

    /// Nothing is written down if nothing has changed and nobody asked.
    async fn looked(&mut self, found: Found) -> Result<Vec<Effect>, Stopping> {
        let asked = self.ledger.pipeline.outstanding().contains(&Effect::Scan);
        let event = self.ledger.pipeline.difference(found);
        let nothing = matches!(&event, Event::Scanned { changed, gone } if changed.is_empty() && gone.is_empty());
        if nothing && !asked {
            return Ok(Vec::new());
        }
        self.happen(event).await
    }

    /// Somebody may have put a file there that says so. It goes when everyone has written down what came of it.
    async fn stop_asked_for(&mut self) -> Result<Vec<Effect>, Stopping> {
        let mut effects = Vec::new();
        while let Some(found) = self.stop_files.look() {
            match found.says {
                Says::Stale => {
                    let text = format!("{} was there before this pipeline; it is not heeded", found.path.display());
                    effects.extend(self.record(Entry::Said { level: Level::Warning, item: None, text }).await?);
                }
                Says::Stop(how) => effects.extend(self.happen(Event::Stop(how)).await?),
            }
            self.stop_files.dealt_with(&found);
        }
        Ok(effects)
    }

    /// Writes down what happened, then tells the machine.
    async fn happen(&mut self, event: Event) -> Result<Vec<Effect>, Stopping> {
        self.record(Entry::Happened { event: Box::new(event) }).await
    }

    /// Takes an entry in and writes it down. A disk that refuses is waited for: nothing is done without the journal.
    async fn record(&mut self, entry: Entry) -> Result<Vec<Effect>, Stopping> {
        let entry = entry.masked();
        let effects = self.ledger.take(&entry, crate::now());
        self.seq += 1;
        let id = self.ledger.spec.id;
        if let Entry::Said { level, text, item } = &entry {
            let item = item.as_ref().map(|item| format!("{item}: ")).unwrap_or_default();
            log(id, *level, &format!("{item}{text}"));
        }
        let told = view::told(id, self.seq, &entry);
        let journal = journal_entry(&self.ledger, &self.doing.state, self.seq, &entry);
        journal::write_surely(&self.app, journal, told).await?;
        Ok(effects)
    }

    /// Begins one thing. What becomes of it happens later; what must be done besides is given back.
    async fn begin(&mut self, effect: Effect) -> Result<Vec<Effect>, Stopping> {
        match effect {
            Effect::Scan => {
                self.look();
                Ok(Vec::new())
            }
            Effect::Do { id, deed } => self.start(id, deed).await,
            Effect::EndSession { id } => self.end(&id).await,
            Effect::StopPlan { id, how } => self.stop_plan(&id, how).await,
            Effect::Tell(notice) => {
                if let Some(notice) = words::told(&notice, &self.ledger) {
                    let channels = self.ledger.spec.notifications.clone();
                    tokio::spawn(async move { notify::notify(&channels, notice).await });
                }
                self.record(Entry::Said { level: notice.level, item: notice.item, text: notice.text }).await
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
        match self.run() {
            Some(run) => self.doing.stop_plan(run, how).await,
            None => self.stop_plan = Some(how),
        }
        Ok(Vec::new())
    }

    async fn close(&mut self) -> Result<(), Stopping> {
        if let Some(notice) = words::ended(&self.ledger) {
            let channels = self.ledger.spec.notifications.clone();
            tokio::spawn(async move { notify::notify(&channels, notice).await });
        }
        self.record(Entry::Closed).await.map(drop)
    }
}

/// An entry as it is stored, with the pipeline as it is after it.
pub(super) fn journal_entry(ledger: &Ledger, state: &std::path::Path, seq: i64, entry: &Entry) -> JournalEntry {
    let view = AutoView::new(ledger, &state.to_string_lossy());
    JournalEntry {
        run: ledger.spec.id,
        seq,
        at: ledger.changed,
        entry: serde_json::to_string(entry).unwrap_or_default(),
        row: Some(RunRow {
            id: ledger.spec.id,
            kind: Kind::Auto,
            status: view.status.as_str().to_owned(),
            state_file: ledger.spec.directory.clone(),
            created: ledger.begun,
            view: serde_json::to_string(&view).unwrap_or_default(),
        }),
        usage: ledger.line.clone().filter(|line| line.at == ledger.changed && is_end(entry)),
    }
}

/// Whether it tells of the end of a session of ours.
fn is_end(entry: &Entry) -> bool {
    let Entry::Happened { event } = entry else { return false };
    matches!(**event, Event::PlannerEnded { .. } | Event::VerifierEnded { .. })
}
