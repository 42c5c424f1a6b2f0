//! The driver of one run of a plan: writes down what happens, tells the machine, does what it wants, and nothing else.
//!
//! Everything takes its time elsewhere (`doing`) and comes back as something that happened. Only the journal is waited for,
//! because it has an order. The plan's file, which is for people, follows.

mod file;
mod others;
mod stopping;

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::time::Duration;

use posse_api::{EventBody, PlanEntry};
use posse_core::plan::budget::{Line, Usage};
use posse_core::plan::file::Isolation;
use posse_core::plan::machine::{Effect, Event, Launch, MergeResult, Part, RunId};
use posse_core::plan::outcome::Outcome;
use posse_core::plan::verdict::{Judgement, Verdict};
use posse_core::turn::Level;
use tokio::sync::{mpsc, watch};

use super::doing::{Doing, Told};
use super::ledger::Ledger;
use super::others::Mine;
use super::plan_file::PlanFile;
use super::stop_file::StopWatch;
use super::view;
use super::{Command, Live, report, words};
use crate::api::App;
use crate::disk;
use crate::journal::{self, Stopping};
use crate::masking::MaskedEntry;
use crate::store::{JournalEntry, Kind, RunRow};

pub(super) struct Driver {
    ledger: Ledger,
    /// The last entry's number.
    seq: i64,
    app: App,
    doing: Doing,
    file: PlanFile,
    /// There is more to write than what is on its way there.
    file_behind: bool,
    told: mpsc::UnboundedReceiver<Told>,
    commands: mpsc::UnboundedReceiver<Command>,
    /// Where people look at this run.
    live: Live,
    /// How to end the sessions that run.
    stops: BTreeMap<RunId, watch::Sender<bool>>,
    /// What nobody can do who does not know the environment.
    waiting: Vec<Effect>,
    /// This run among the others.
    mine: Mine,
    stop_files: StopWatch,
    /// Areas whose work is merged. They go when there is time: while the next session works, or at the end.
    merged: Vec<RunId>,
}

/// Why a driver has ended.
pub(super) enum Ended {
    /// The run is over.
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
    pub(super) live: Live,
    pub(super) mine: Mine,
    pub(super) stop_files: StopWatch,
}

impl Driver {
    pub(super) async fn new(parts: Parts) -> Self {
        let Parts { ledger, seq, app, doing, told, commands, live, mine, stop_files } = parts;
        let file = PlanFile::open(&ledger.spec.file, &doing.state, &ledger.spec.text).await;
        let (stops, waiting, merged) = (BTreeMap::new(), Vec::new(), Vec::new());
        let file_behind = false;
        Self {
            ledger,
            seq,
            app,
            doing,
            file,
            file_behind,
            told,
            commands,
            live,
            stops,
            waiting,
            mine,
            stop_files,
            merged,
        }
    }

    /// Goes on until the run is over.
    pub(super) async fn drive(mut self) -> Ended {
        match self.go().await {
            Ok(()) => Ended::Over,
            Err(Stopping) => Ended::Stopping,
        }
    }

    async fn go(&mut self) -> Result<(), Stopping> {
        // What was asked for and not answered before a crash is asked for again; a new run has asked for nothing.
        let mut effects: VecDeque<Effect> = self.ledger.run.outstanding().iter().cloned().collect();
        effects.push_front(Effect::WritePlan);
        if self.seq == 1 {
            self.say_first().await?;
        }
        effects.extend(self.look_for_stop_file().await?);
        effects.extend(self.hear_of_others(true).await?);
        if !self.ledger.started {
            effects.extend(self.happen(Event::Started).await?);
        }
        loop {
            // The file is for people: it is written once for all of this, when the rest is on its way.
            let mut behind = false;
            while let Some(effect) = effects.pop_front() {
                behind |= effect == Effect::WritePlan;
                if effect != Effect::WritePlan {
                    effects.extend(self.begin(effect).await?);
                }
            }
            if behind {
                effects.extend(self.write_plan().await?);
                continue;
            }
            if self.ledger.ended.is_some() {
                return self.close().await;
            }
            let waits = !self.waiting.is_empty();
            if self.ledger.waits != waits {
                self.ledger.waits = waits;
                let (level, text) = match waits {
                    true => (Level::Warning, words::WAITS.to_owned()),
                    false => (Level::Info, "going on".to_owned()),
                };
                self.record(PlanEntry::Said { level, text }).await?;
            }
            effects.extend(self.next().await?);
        }
    }

    /// The next thing that happens, and what is to be done then.
    async fn next(&mut self) -> Result<Vec<Effect>, Stopping> {
        let deadline = self.ledger.run.deadline();
        let due = async {
            match deadline {
                Some(deadline) => {
                    let left = u64::try_from(deadline.0 - crate::now().0).unwrap_or(0);
                    tokio::time::sleep(Duration::from_millis(left)).await;
                }
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            told = self.told.recv() => match told.ok_or(Stopping)? {
                Told::Event(event) => {
                    if let Event::SessionEnded { run, .. } | Event::ValidatorEnded { run, .. } = &*event {
                        self.stops.remove(run);
                        self.live.forget(self.ledger.spec.id, run);
                    }
                    if let Event::MergeEnded { run, result: MergeResult::Merged { .. } } = &*event {
                        self.merged.push(run.clone());
                    }
                    self.happen(*event).await
                }
                Told::Entry(entry) => self.record(entry).await,
                Told::Heard(run, text) => {
                    if let Some(text) = text {
                        self.live.hear(self.ledger.spec.id, &run, text);
                    }
                    self.app.publish(EventBody::SessionSaid { run_id: self.ledger.spec.id, session: run.to_string() });
                    Ok(Vec::new())
                }
                Told::PlanCopy { given, theirs } => self.copy_edited(given, theirs).await,
            },
            command = self.commands.recv() => match command.ok_or(Stopping)? {
                Command::Event(event, taken) => {
                    let stops = matches!(*event, Event::Stop(_));
                    let mut effects = self.happen(*event).await?;
                    if stops {
                        effects.extend(self.let_go().await?);
                    }
                    let _ = taken.send(());
                    Ok(effects)
                }
                Command::Means(means, taken) => {
                    self.doing.means = Some(*means);
                    let _ = taken.send(());
                    Ok(std::mem::take(&mut self.waiting))
                }
            },
            prepared = self.file.prepared() => self.put_plan(prepared).await,
            news = self.mine.news.recv() => self.hear_news(news.ok_or(Stopping)?).await,
            changed = self.stop_files.changed.recv() => {
                changed.ok_or(Stopping)?;
                self.look_for_stop_file().await
            }
            () = due => self.happen(Event::Time).await,
        }
    }

    /// Writes down what happened, then tells the machine. What others did to the plan's file happened before.
    async fn happen(&mut self, event: Event) -> Result<Vec<Effect>, Stopping> {
        let mut effects = self.file_edited().await?;
        effects.extend(self.record(PlanEntry::Happened { event: Box::new(event) }).await?);
        Ok(effects)
    }

    /// Takes an entry in and writes it down. A disk that refuses is waited for: nothing is done without the journal.
    async fn record(&mut self, entry: PlanEntry) -> Result<Vec<Effect>, Stopping> {
        let (entry, sessions) = (entry.masked(), self.ledger.lines.len());
        let effects = self.ledger.take(&entry, crate::now());
        self.seq += 1;
        let id = self.ledger.spec.id;
        if let PlanEntry::Said { level, text } = &entry {
            words::log(id, *level, text);
        }
        let files = self.doing.state.to_string_lossy();
        let usage = self.ledger.lines.get(sessions).cloned();
        let journal = journal_entry(&self.ledger, &files, self.seq, &entry, usage);
        // Before anybody is told that there is something new to look at.
        self.live.put(&self.ledger, &files);
        journal::write_surely(&self.app, journal, &self.ledger.spec.notifications).await?;
        self.tell_others(&entry);
        Ok(effects)
    }

    /// Begins one thing. What becomes of it happens later; what must be done besides is given back.
    async fn begin(&mut self, effect: Effect) -> Result<Vec<Effect>, Stopping> {
        if let Effect::MakeArea { run } = &effect
            && let Some(taken) = self.in_the_way(run)
        {
            return self.happen(taken).await;
        }
        match effect {
            Effect::StartSession { run, launch } => self.start(run, launch).await,
            Effect::EndSession { run } => self.end(&run).await,
            Effect::EndChecks => self.end_checks().await,
            Effect::MakeArea { .. } | Effect::RunGates { .. } | Effect::Merge { .. } | Effect::CheckPlan
                if self.doing.means.is_none() && self.runs_gates(&effect) =>
            {
                self.waiting.push(effect);
                Ok(Vec::new())
            }
            Effect::MakeArea { .. } | Effect::RunGates { .. } | Effect::Merge { .. } | Effect::CheckPlan => {
                self.doing.clone().begin(effect, self.ledger.run.clone());
                Ok(Vec::new())
            }
            // Written when nothing else is left to do.
            Effect::WritePlan => Ok(vec![effect]),
            Effect::Notify(notice) => {
                let (level, text) = words::notice(&notice, &self.ledger.spec.file);
                if let Some(notice) = words::told(&notice, &self.ledger) {
                    self.app.notifier.tell(&self.ledger.spec.notifications, notice);
                }
                self.record(PlanEntry::Said { level, text }).await
            }
            // The end is closed when nothing else is left to do.
            Effect::Finish { .. } => Ok(Vec::new()),
        }
    }

    fn runs_gates(&self, effect: &Effect) -> bool {
        let spec = &self.ledger.spec;
        // Where sessions work in the user's checkout, the checks are run before them too.
        let makes_area = matches!(effect, Effect::MakeArea { .. }) && spec.git.isolation == Isolation::Worktree;
        spec.settings.has_gates && !makes_area
    }

    async fn start(&mut self, run: RunId, launch: Launch) -> Result<Vec<Effect>, Stopping> {
        if self.doing.means.is_none() && !self.doing.is_known(&run).await {
            self.waiting.push(Effect::StartSession { run, launch });
            return Ok(Vec::new());
        }
        let (stop, stopped) = watch::channel(false);
        self.stops.insert(run.clone(), stop);
        self.doing.clone().run_session(run, launch, self.ledger.run.clone(), stopped);
        self.doing.clone().remove_areas(std::mem::take(&mut self.merged));
        Ok(Vec::new())
    }

    async fn end(&mut self, run: &RunId) -> Result<Vec<Effect>, Stopping> {
        if let Some(stop) = self.stops.get(run) {
            let _ = stop.send(true);
            return Ok(Vec::new());
        }
        // It was never started, and need not be.
        let waits = |effect: &Effect| matches!(effect, Effect::StartSession { run: other, .. } if other == run);
        if !self.waiting.iter().any(waits) {
            return Ok(Vec::new());
        }
        self.waiting.retain(|effect| !waits(effect));
        let (run, outcome, usage) = (run.clone(), Outcome::Interrupted, Usage::none());
        self.happen(match run.part {
            Part::Work => Event::SessionEnded { run, outcome, usage },
            Part::Validation { .. } => {
                let judgement = Judgement { verdict: Verdict::Error, findings: Vec::new() };
                Event::ValidatorEnded { run, judgement, outcome, usage }
            }
        })
        .await
    }

    /// Checks end, and no more are begun. Those that wait for somebody who knows the environment need not wait any more.
    async fn end_checks(&mut self) -> Result<Vec<Effect>, Stopping> {
        self.doing.no_checks.send_replace(true);
        let mut effects = Vec::new();
        for effect in std::mem::take(&mut self.waiting) {
            let stopped = match effect {
                Effect::RunGates { run } => Event::GatesStopped { run },
                Effect::Merge { run } => Event::MergeEnded { run, result: MergeResult::Stopped },
                Effect::CheckPlan => Event::PlanCheckStopped,
                other => {
                    self.waiting.push(other);
                    continue;
                }
            };
            effects.extend(self.happen(stopped).await?);
        }
        Ok(effects)
    }

    /// The run is to stop: what waits for somebody who knows the environment, and was never begun, need not wait any more.
    async fn let_go(&mut self) -> Result<Vec<Effect>, Stopping> {
        let mut effects = Vec::new();
        for effect in self.waiting.clone() {
            match effect {
                Effect::StartSession { run, .. } => effects.extend(self.end(&run).await?),
                // Nothing is started in an area when a run stops.
                Effect::MakeArea { run } => {
                    self.waiting.retain(|effect| !matches!(effect, Effect::MakeArea { run: other } if *other == run));
                    effects.extend(self.happen(Event::AreaReady { run }).await?);
                }
                _ => {}
            }
        }
        Ok(effects)
    }

    /// The end: what is left of work areas, the report, a notice.
    async fn close(&mut self) -> Result<(), Stopping> {
        self.file.settle().await;
        if let Err(why) = self.write_last().await {
            let text = format!(
                "{} does not show how this run ended, because it cannot be written: {why}; the next run knows it all the same",
                self.ledger.spec.file
            );
            self.record(PlanEntry::Said { level: Level::Warning, text }).await?;
        }
        let kept = self.doing.tidy(self.ledger.left()).await;
        let path: PathBuf = self.doing.state.join("report.md");
        let text = report::markdown(&self.ledger, &kept);
        let written = disk::at(&path, move |disk, path| disk.write_private(path, text.as_bytes())).await;
        let report = match written {
            Ok(()) => Some(path.display().to_string()),
            Err(error) => {
                tracing::warn!("{}: {error}", path.display());
                None
            }
        };
        if let Err(error) = report::write_usage(&self.ledger, &self.doing.state).await {
            tracing::warn!("{error}");
        }
        if let Some(notice) = words::ended(&self.ledger) {
            self.app.notifier.tell(&self.ledger.spec.notifications, notice);
        }
        self.record(PlanEntry::Closed { report }).await.map(drop)
    }
}

/// An entry as it is stored, and what the session has used that it tells of; with the run as it is, where it begins or ends.
pub(super) fn journal_entry(
    ledger: &Ledger,
    files: &str,
    seq: i64,
    entry: &PlanEntry,
    usage: Option<Line>,
) -> serde_json::Result<JournalEntry> {
    let row = || {
        let view = view::plan_view(ledger, files);
        serde_json::Result::Ok(RunRow {
            id: view.id,
            kind: Kind::Plan,
            status: view.status.as_str().to_owned(),
            state_file: view.file.clone(),
            created: ledger.begun,
            view: serde_json::to_string(&view)?,
        })
    };
    let row = matches!(entry, PlanEntry::Created { .. } | PlanEntry::Closed { .. }).then(row).transpose()?;
    let text = serde_json::to_string(entry)?;
    let event = view::entry_event(ledger.spec.id, seq, ledger.changed, entry);
    Ok(JournalEntry { run: ledger.spec.id, seq, at: ledger.changed, entry: text, event, row, usage })
}
