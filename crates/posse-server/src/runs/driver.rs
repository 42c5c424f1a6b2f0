//! The driver of one run: hands events to the machine and has its effects carried out.
//!
//! `send_and_wait` of the spec is a turn of this loop: `Effect::Send` (`send_input`), then what the terminal says
//! (`get_status`: the pump pushes each change of it) and what happens to the file (`wait_for_response_file`) until the
//! machine has its answer, or `get_last_output` where the run allows that.
//!
//! Effects run in tasks of their own, and their results come back as events. The driver waits only for the journal, because
//! nothing may be done before it is written down.

use std::collections::{BTreeMap, BTreeSet};

use posse_core::ids::{RunId, TerminalId};
use posse_core::run::{Caller, Effect, Entry, Ledger, Run, RunEvent};
use posse_core::status::StatusKind;
use posse_core::turn::{self, Seen};
use tokio::sync::{mpsc, oneshot, watch};

use super::Command;
use super::claim::Claim;
use super::executor::{self, LoopExecutor};
use super::files::RunFiles;
use super::view;
use crate::api::App;
use crate::disk;
use crate::pump::Observation;
use crate::run::LaunchContext;
use crate::run::journal;
use crate::run::messages;
use crate::store::{JournalEntry, Kind, RunRow};
use crate::watched_files::{FileWatch, WatchedFiles};

pub(super) struct Driver {
    run: Run,
    /// The run as far as it is written down. The machine is ahead of that while its effects are carried out, and views of
    /// the run must not be.
    written: Ledger,
    id: RunId,
    /// The last entry's number.
    seq: i64,
    app: App,
    files: RunFiles,
    watched_files: WatchedFiles,
    happened: mpsc::UnboundedSender<RunEvent>,
    inbox: mpsc::UnboundedReceiver<RunEvent>,
    commands: mpsc::UnboundedReceiver<Command>,
    /// What starting an agent takes. Never stored.
    means: Option<LaunchContext>,
    /// The caller that had the run go on.
    caller: Option<Caller>,
    /// Held while the run is driven.
    _claim: Claim,
    /// The terminal that is followed and what its pump pushes, and the epoch of its status when the turn began.
    watching: Option<(TerminalId, watch::Receiver<Observation>)>,
    first_epoch: Option<u64>,
    watched_turn: u64,
    /// Reports changes of the response file of the turn, and whether it was renamed into place.
    response_changed: mpsc::UnboundedReceiver<bool>,
    response_watch: Option<FileWatch>,
    placed: bool,
    /// Sent once the run has begun or resumed.
    begun: Option<oneshot::Sender<()>>,
}

/// Why a driver has ended.
pub(super) enum Ended {
    /// The run is over, or rests until it is resumed.
    Rests,
    /// The daemon is going.
    Stopping,
}

/// A run to drive.
pub(super) struct LoopDriverParams {
    pub(super) run: Run,
    /// The last entry's number.
    pub(super) seq: i64,
    pub(super) caller: Option<(LaunchContext, Caller)>,
    /// The claim to its files.
    pub(super) claim: Claim,
}

impl Driver {
    pub(super) fn new(
        params: LoopDriverParams,
        app: App,
        watched_files: WatchedFiles,
        commands: mpsc::UnboundedReceiver<Command>,
        begun: oneshot::Sender<()>,
    ) -> Self {
        let LoopDriverParams { run, seq, caller, claim } = params;
        let (means, caller) = caller.unzip();
        let (happened, inbox) = mpsc::unbounded_channel();
        let spec = &run.ledger().spec;
        Self {
            id: spec.id,
            files: RunFiles::new(&spec.directory, &spec.stamp, &spec.state_file),
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
        let go = RunEvent::Go { alive, adopted, caller: self.caller };
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
                    Effect::Watch(terminal) => next = Some(self.watch(terminal).await),
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
                    effect => self.executor().begin(effect),
                }
            }
            if let Some(begun) = self.begun.take() {
                let _ = begun.send(());
            }
        }
    }

    /// The next thing that happens. `None`: the daemon is going.
    async fn next(&mut self) -> Option<RunEvent> {
        let deadline = self.run.deadline();
        let due = async {
            match deadline {
                Some(deadline) => tokio::time::sleep_until(crate::instant(deadline)).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            happened = self.inbox.recv() => happened,
            command = self.commands.recv() => Some(match command? {
                Command::Stop { why } => RunEvent::Stop { why },
                Command::Came { means, caller, taken } => {
                    self.means = Some(means);
                    let _ = taken.send(());
                    RunEvent::Came(caller)
                }
            }),
            Some(there) = is_pushed(&mut self.watching) => {
                self.watching = self.watching.take().filter(|_| there);
                Some(self.status())
            }
            Some(placed) = self.response_changed.recv() => {
                self.placed = placed;
                Some(self.of_turn(turn::Event::FileStirred))
            }
            () = due => Some(RunEvent::Time),
        }
    }

    /// Something about the turn under way.
    fn of_turn(&self, event: turn::Event) -> RunEvent {
        RunEvent::Turn { turn: self.run.ledger().turns, event }
    }

    /// Writes an entry down. A disk that refuses is waited for: the run must not go on without its journal.
    async fn record(&mut self, entry: Entry) -> bool {
        self.seq += 1;
        if let Entry::Said { level, text } = &entry {
            messages::log(self.id, *level, text);
        }
        self.written.apply(&entry, self.run.ledger().changed);
        let journal = journal_entry(&self.written, self.seq, &entry);
        let channels = &self.written.spec.config.notifications;
        journal::write_surely(&self.app, journal, channels).await.is_ok()
    }

    /// Follows this terminal from now on, and no other; and the response file of the turn.
    async fn watch(&mut self, terminal: TerminalId) -> RunEvent {
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
        let observed = executor::observe(&self.app, terminal).await;
        self.watching = observed.map(|observed| (terminal, observed));
        self.status()
    }

    /// What the watched terminal is now.
    fn status(&mut self) -> RunEvent {
        let Some((terminal, observed)) = &mut self.watching else {
            return self.of_turn(turn::Event::Gone("it was deleted".into()));
        };
        let terminal = *terminal;
        let Observation { status, exit, excerpt, answered } = observed.borrow_and_update().clone();
        if let Some(exit) = exit {
            self.watching = None;
            return self.of_turn(turn::Event::Gone(format!("its program {exit}")));
        }
        let seen = Seen { words: excerpt, ..Seen::of(&status) };
        // An agent that is quiet under another number has worked in between, however short it was.
        let first = *self.first_epoch.get_or_insert(seen.epoch);
        let quiet = matches!(seen.kind, Some(StatusKind::Idle | StatusKind::Completed));
        let worked = if seen.unproven { answered } else { seen.epoch > first + 1 };
        if quiet && worked {
            let _ = self.happened.send(self.of_turn(turn::Event::MessageChanged));
        }
        RunEvent::Status { terminal, seen }
    }

    /// Which of the run's terminals live, and those that were being started when the last daemon ended.
    async fn living(&self) -> (BTreeSet<TerminalId>, BTreeMap<posse_core::rounds::Role, TerminalId>) {
        let ledger = self.run.ledger();
        let mut alive = BTreeSet::new();
        for terminal in ledger.terminals.values() {
            if executor::is_alive(&self.app, *terminal).await {
                alive.insert(*terminal);
            }
        }
        let mut adopted = BTreeMap::new();
        let patience = tokio::time::Instant::now() + executor::GETTING_READY;
        for (role, name) in &ledger.starting {
            if let Some(terminal) = executor::find_running(&self.app, &ledger.spec, name).await
                && executor::is_alive(&self.app, terminal).await
                && executor::gets_ready(&self.app, terminal, patience).await
            {
                adopted.insert(*role, terminal);
                alive.insert(terminal);
            }
        }
        (alive, adopted)
    }

    fn executor(&self) -> LoopExecutor {
        LoopExecutor {
            app: self.app.clone(),
            spec: self.run.ledger().spec.clone(),
            files: self.files.clone(),
            means: self.means.clone(),
            happened: self.happened.clone(),
            placed: self.placed,
        }
    }
}

/// Waits for a change of the watched terminal. Returns whether it is still there.
async fn is_pushed(watching: &mut Option<(TerminalId, watch::Receiver<Observation>)>) -> Option<bool> {
    Some(watching.as_mut()?.1.changed().await.is_ok())
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
