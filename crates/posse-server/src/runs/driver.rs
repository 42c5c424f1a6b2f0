//! The driver of one run: tells the machine what happens, does what it wants, and nothing else.
//!
//! `send_and_wait` of the spec is a turn of this loop: `Effect::Send` (`send_input`), then what the terminal says
//! (`get_status`) and what happens to the file (`wait_for_response_file`) until the machine has its answer, or
//! `get_last_output` where the run allows that. Each of these is a function of its own in `doing`.
//!
//! Everything takes its time elsewhere: what an effect leads to comes back as something that happened. Only the journal
//! is waited for, because nothing may be done before it is written down.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use posse_api::LogEvent;
use posse_core::ids::{RunId, TerminalId};
use posse_core::run::{Caller, Effect, Entry, Happened, Ledger, Run};
use posse_core::status::StatusKind;
use posse_core::turn;
use tokio::sync::{broadcast, mpsc, oneshot};

use super::claim::Claim;
use super::doing::{self, Doing};
use super::files::RunFiles;
use super::view;
use super::{Command, Means};
use crate::api::App;
use crate::disk;
use crate::hub;
use crate::journal;
use crate::store::{JournalEntry, Kind, RunRow};
use crate::watched_files::{FileWatch, WatchedFiles};

pub(super) struct Driver {
    run: Run,
    /// The run as far as it is written down. The machine is ahead of that while its effects are carried out, and what
    /// is told of a run must not be.
    written: Ledger,
    id: RunId,
    /// The last entry's number.
    seq: i64,
    app: App,
    files: RunFiles,
    watched_files: WatchedFiles,
    happened: mpsc::UnboundedSender<Happened>,
    inbox: mpsc::UnboundedReceiver<Happened>,
    commands: mpsc::UnboundedReceiver<Command>,
    events: broadcast::Receiver<Arc<LogEvent>>,
    /// What starting an agent takes. Never stored.
    means: Option<Means>,
    /// Who it was that has it go on.
    caller: Option<Caller>,
    /// As long as it drives.
    _claim: Claim,
    /// The terminal whose status is told, and the status it had when its turn began.
    watching: Option<TerminalId>,
    first_epoch: Option<u64>,
    watched_turn: u64,
    /// Reports changes of the response file of the turn, and whether it was renamed into place.
    response_changed: mpsc::UnboundedReceiver<bool>,
    response_watch: Option<FileWatch>,
    placed: bool,
    /// Told once the run goes on.
    begun: Option<oneshot::Sender<()>>,
}

/// Why a driver has ended.
pub(super) enum Ended {
    /// The run is over, or rests until somebody resumes it.
    Rests,
    /// The daemon is going.
    Stopping,
}

/// A run to drive.
pub(super) struct Charge {
    pub(super) run: Run,
    /// The last entry's number.
    pub(super) seq: i64,
    pub(super) caller: Option<(Means, Caller)>,
    /// Nobody else uses its files.
    pub(super) claim: Claim,
}

impl Driver {
    pub(super) fn new(
        charge: Charge,
        app: App,
        watched_files: WatchedFiles,
        commands: mpsc::UnboundedReceiver<Command>,
        begun: oneshot::Sender<()>,
    ) -> Self {
        let Charge { run, seq, caller, claim } = charge;
        let (means, caller) = caller.unzip();
        let (happened, inbox) = mpsc::unbounded_channel();
        let spec = &run.ledger().spec;
        Self {
            id: spec.id,
            files: RunFiles::new(&spec.directory, &spec.stamp, &spec.state_file),
            events: app.events.subscribe(),
            written: run.ledger().clone(),
            run,
            seq,
            app,
            watched_files,
            happened,
            inbox,
            commands,
            means,
            caller,
            _claim: claim,
            watching: None,
            first_epoch: None,
            watched_turn: 0,
            response_changed: mpsc::unbounded_channel().1,
            response_watch: None,
            placed: false,
            begun: Some(begun),
        }
    }

    /// Goes on until the run is over or rests.
    pub(super) async fn drive(mut self) -> Ended {
        let (alive, adopted) = self.living().await;
        let go = Happened::Go { alive, adopted, caller: self.caller };
        let mut next = Some(go);
        loop {
            let happened = match next.take() {
                Some(happened) => happened,
                None => match self.next().await {
                    Some(happened) => happened,
                    None => return Ended::Stopping,
                },
            };
            let effects = self.run.handle(happened, crate::mono(), crate::now());
            for effect in effects {
                match effect {
                    Effect::Record(entry) => {
                        if !self.record(entry).await {
                            return Ended::Stopping;
                        }
                    }
                    Effect::Watch(terminal) => next = self.watch(terminal).await.or(next),
                    // Here, and in order: the file must not be written again after it was archived.
                    Effect::Mirror { state, at, dispatched } => {
                        let files = self.files.clone();
                        disk::run(move |disk| files.mirror(disk, *state, at, dispatched)).await;
                    }
                    Effect::ArchiveState => {
                        let files = self.files.clone();
                        disk::run(move |disk| files.archive_state(disk)).await;
                    }
                    Effect::Rest => return Ended::Rests,
                    effect => self.doing().begin(effect),
                }
            }
            if let Some(begun) = self.begun.take() {
                let _ = begun.send(());
            }
        }
    }

    /// The next thing that happens. `None`: the daemon is going.
    async fn next(&mut self) -> Option<Happened> {
        loop {
            let deadline = self.run.deadline();
            let due = async {
                match deadline {
                    Some(deadline) => tokio::time::sleep_until(crate::instant(deadline)).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                happened = self.inbox.recv() => return happened,
                command = self.commands.recv() => match command? {
                    Command::Stop { why } => return Some(Happened::Stop { why }),
                    Command::Came { means, caller, taken } => {
                        self.means = Some(means);
                        let _ = taken.send(());
                        return Some(Happened::Came(caller));
                    }
                },
                event = self.events.recv() => match event {
                    Ok(event) if !self.watching.is_some_and(|terminal| event.changes(terminal)) => {}
                    Err(broadcast::error::RecvError::Closed) => return None,
                    // A change of our terminal, or so much that one may have been missed.
                    Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => {
                        if let Some(happened) = self.status().await {
                            return Some(happened);
                        }
                    }
                },
                Some(placed) = self.response_changed.recv() => {
                    self.placed = placed;
                    let turn = self.run.ledger().turns;
                    return Some(Happened::Turn { turn, event: turn::Event::FileStirred });
                }
                () = due => return Some(Happened::Time),
            }
        }
    }

    /// Writes an entry down. A disk that refuses is waited for: the run must not go on without its journal.
    async fn record(&mut self, entry: Entry) -> bool {
        self.seq += 1;
        if let Entry::Said { level, text } = &entry {
            doing::log(self.id, *level, text);
        }
        self.written.apply(&entry, self.run.ledger().changed);
        let journal = journal_entry(&self.written, self.seq, &entry);
        let channels = &self.written.spec.config.notifications;
        journal::write_surely(&self.app, journal, channels).await.is_ok()
    }

    /// Follows this terminal from now on, and no other; and the response file of the turn.
    async fn watch(&mut self, terminal: TerminalId) -> Option<Happened> {
        self.watching = Some(terminal);
        let turn = self.run.ledger().turns;
        if self.watched_turn != turn {
            (self.watched_turn, self.first_epoch) = (turn, None);
        }
        if let Some(turn) = self.run.ledger().turn() {
            let (tell, changed) = mpsc::unbounded_channel();
            self.response_watch = Some(self.files.watch(&self.watched_files, turn.key, tell).await);
            self.response_changed = changed;
            self.placed = false;
        }
        self.status().await
    }

    /// What the watched terminal is now.
    async fn status(&mut self) -> Option<Happened> {
        let terminal = self.watching?;
        let turn = self.run.ledger().turns;
        let (seen, answered) = match doing::get_status(&self.app, terminal).await {
            Ok(seen) => seen,
            Err(event) => return Some(Happened::Turn { turn, event }),
        };
        // An agent that is quiet under another number has worked in between, however short it was.
        let first = *self.first_epoch.get_or_insert(seen.epoch);
        let quiet = matches!(seen.kind, Some(StatusKind::Idle | StatusKind::Completed));
        let worked = if seen.unproven { answered } else { seen.epoch > first + 1 };
        if quiet && worked {
            let _ = self.happened.send(Happened::Turn { turn, event: turn::Event::MessageChanged });
        }
        Some(Happened::Status { terminal, seen })
    }

    /// Which of the run's terminals live, and those that were being started when the last daemon ended.
    async fn living(&self) -> (BTreeSet<TerminalId>, BTreeMap<posse_core::rounds::Role, TerminalId>) {
        let ledger = self.run.ledger();
        let mut alive = BTreeSet::new();
        for terminal in ledger.terminals.values() {
            if doing::is_alive(&self.app, *terminal).await {
                alive.insert(*terminal);
            }
        }
        let views = self.app.ask(hub::HubCommand::List).await.unwrap_or_default();
        let mut adopted = BTreeMap::new();
        let patience = tokio::time::Instant::now() + doing::GETTING_READY;
        for (role, name) in &ledger.starting {
            let found = views.iter().find(|view| {
                view.record.name.as_str() == name
                    && view.record.session == ledger.spec.session
                    && view.record.exit.is_none()
            });
            let Some(view) = found else { continue };
            if doing::is_alive(&self.app, view.record.id).await
                && doing::gets_ready(&self.app, view.record.id, patience).await
            {
                adopted.insert(*role, view.record.id);
                alive.insert(view.record.id);
            }
        }
        (alive, adopted)
    }

    fn doing(&self) -> Doing {
        Doing {
            app: self.app.clone(),
            spec: self.run.ledger().spec.clone(),
            files: self.files.clone(),
            means: self.means.clone(),
            happened: self.happened.clone(),
            placed: self.placed,
        }
    }
}

/// An entry as it is stored, with the run as it is after it.
pub(super) fn journal_entry(ledger: &Ledger, seq: i64, entry: &Entry) -> serde_json::Result<JournalEntry> {
    Ok(JournalEntry {
        run: ledger.spec.id,
        seq,
        at: ledger.changed,
        entry: serde_json::to_string(entry)?,
        event: view::entry_event(ledger.spec.id, seq, ledger.changed, entry),
        row: Some(RunRow {
            id: ledger.spec.id,
            kind: Kind::Loop,
            status: ledger.status().to_string(),
            state_file: ledger.spec.state_file.clone(),
            created: ledger.begun,
            view: serde_json::to_string(&view::run_view(ledger))?,
        }),
        usage: None,
    })
}
