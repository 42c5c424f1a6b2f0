//! The one loop that owns what is shared: which terminals there are, what is believed of them, who is told.
//!
//! Everything that can make it act is in `Message`. It never waits: not for the database (the store tells when
//! something is written), not for the keeper, not for a pump. What others see is published after it was
//! written down.

#![expect(clippy::disallowed_methods, reason = "not moved to the disk module yet")]

pub(crate) mod audit;
mod creation;
mod keeping;
mod silence;
mod stopping;
mod tidying;
mod words;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use posse_api::{EventBody, LogEvent, StatusView, VERSION};
use posse_core::ids::TerminalId;
use posse_core::peer::Household;
use posse_core::screen::Size;
use posse_core::status::{Status, StatusKind};
use posse_files::providers::Providers;
use posse_term::client::KeeperLink;
use posse_term::emulator::HistoryLimit;
use posse_term::paths::Paths;
use posse_term::wire::KeeperRequest;
use tokio::sync::{broadcast, mpsc, oneshot};

use crate::disk;
use crate::keeper::Routes;
use crate::pump::{self, Handle};
use crate::record::Record;
use crate::recording::Recorder;
use crate::retention;
use crate::session_files;
use crate::store::{self, JournalEntry, KnownInput, Outcome, Writer};
use crate::watched_files::{FileWatch, WatchedFiles};

use creation::{Creating, Starting};
use stopping::Stopping;
pub(crate) use words::*;

/// How long a family is given to end by itself before it is killed.
pub(crate) const GRACE_MS: u32 = 3_000;

struct Entry {
    record: Record,
    title: String,
    size: Size,
    watched: bool,
    /// `None`: ended before this daemon began, and not asked for since.
    pump: Option<Handle>,
    /// The watch on the agent's session file.
    session_file: Option<FileWatch>,
    /// The watch on the file to which the agent writes its events.
    events: Option<FileWatch>,
}

impl Entry {
    fn new(record: Record) -> Self {
        let (title, size) = (String::new(), record.size);
        Self { title, size, watched: false, pump: None, session_file: None, events: None, record }
    }
}

pub(crate) struct Hub {
    paths: Paths,
    history: HistoryLimit,
    store: Writer,
    messages: mpsc::UnboundedSender<Message>,
    events: broadcast::Sender<Arc<LogEvent>>,
    newest: Arc<AtomicI64>,
    routes: Routes,
    recorder: Recorder,
    /// The connection to the keeper; `None` while there is none.
    link: Option<KeeperLink>,
    /// A connection was asked for and is not there yet.
    reconnecting: bool,
    /// Asks for a connection to the keeper.
    reconnect: mpsc::UnboundedSender<()>,
    /// Why there is no keeper, and none can be started.
    keeper_problem: Option<String>,
    /// Why the keeper that is there does not answer.
    keeper_silent: Option<String>,
    disk_problem: Option<String>,
    terminals: BTreeMap<TerminalId, Entry>,
    /// Input of which something was written down before this daemon began, by terminal.
    inputs: HashMap<TerminalId, Vec<KnownInput>>,
    /// Who asks for a pump, until there is one: the keeper may still be on its way up.
    finds: Vec<(TerminalId, oneshot::Sender<Option<Handle>>)>,
    creating: HashMap<TerminalId, Creating>,
    /// Agents that run and are not ready yet, with who waits for them.
    starting: HashMap<TerminalId, Starting>,
    providers: Arc<Providers>,
    files: WatchedFiles,
    /// This program, for what agents call.
    executable: PathBuf,
    /// To be ended when the keeper is connected.
    end_later: Vec<(TerminalId, u32)>,
    deleting: HashMap<TerminalId, Vec<DeleteReply>>,
    stopping: Option<Stopping>,
    done: bool,
    /// Events since things were last tidied up.
    since_tidy: u64,
}

pub(crate) struct Parts {
    pub(crate) paths: Paths,
    pub(crate) store: Writer,
    pub(crate) records: Vec<Record>,
    pub(crate) messages: mpsc::UnboundedSender<Message>,
    pub(crate) events: broadcast::Sender<Arc<LogEvent>>,
    pub(crate) newest: Arc<AtomicI64>,
    pub(crate) routes: Routes,
    pub(crate) recorder: Recorder,
    pub(crate) inputs: Vec<(TerminalId, KnownInput)>,
    pub(crate) reconnect: mpsc::UnboundedSender<()>,
    pub(crate) providers: Arc<Providers>,
    pub(crate) files: WatchedFiles,
    pub(crate) executable: PathBuf,
}

impl Hub {
    pub(crate) fn new(parts: Parts) -> Self {
        Self {
            paths: parts.paths,
            history: HistoryLimit::default(),
            store: parts.store,
            messages: parts.messages,
            events: parts.events,
            newest: parts.newest,
            routes: parts.routes,
            recorder: parts.recorder,
            link: None,
            reconnecting: false,
            reconnect: parts.reconnect,
            keeper_problem: None,
            keeper_silent: None,
            disk_problem: None,
            terminals: parts.records.into_iter().map(|record| (record.id, Entry::new(record))).collect(),
            inputs: parts.inputs.into_iter().fold(HashMap::new(), |mut inputs, (id, input)| {
                inputs.entry(id).or_default().push(input);
                inputs
            }),
            finds: Vec::new(),
            creating: HashMap::new(),
            starting: HashMap::new(),
            providers: parts.providers,
            files: parts.files,
            executable: parts.executable,
            end_later: Vec::new(),
            deleting: HashMap::new(),
            stopping: None,
            done: false,
            since_tidy: 0,
        }
    }

    /// Runs until told to stop.
    pub(crate) async fn run(mut self, mut queue: mpsc::UnboundedReceiver<Message>) {
        self.emit(event(EventBody::DaemonStarted { pid: std::process::id(), version: VERSION.into() }), vec![]);
        self.tidy();
        // Of those that have ended while nobody was here.
        let running: BTreeSet<TerminalId> = self.running().map(|entry| entry.record.id).collect();
        let _ = disk::at(self.paths.events(), move |disk, events| retention::tidy_files(disk, events, &running)).await;
        while let Some(message) = queue.recv().await {
            match message {
                Message::Command(command) => self.command(command),
                Message::Change(id, offset, change) => self.change(id, offset, change),
                Message::Keeper(report) => self.keeper_report(report),
                Message::AnswerOver(note, then) => self.answer_over(note, then),
                Message::Stored(event, outcome) => self.stored(event, outcome),
                Message::FarewellTold => self.farewell_told(),
                Message::RecordingsGrown => self.tidy_recordings(),
                Message::CreationStored(id, event, outcome) => self.creation_stored(id, event, outcome),
            }
            self.answer_finds();
            self.rest_when_all_ended();
            if self.done {
                break;
            }
        }
        if let Some(stopping) = self.stopping.take() {
            let running = self.views(|entry| entry.record.exit.is_none());
            for reply in stopping.replies {
                let (running, keeper_silent) = (running.clone(), stopping.keeper_silent.clone());
                let _ = reply.send(Ok(Stopped { running, keeper_silent }));
            }
        }
    }

    // ---- writing down and telling ----

    /// Writes an event and what it changes, and tells everyone when it is written, or is refused for now.
    fn emit(&self, event: LogEvent, changes: Vec<store::Change>) {
        self.emit_then(event, changes, || {}, || {});
    }

    /// As `emit`, and does something more when everyone was told, and when it is written, however late that is.
    fn emit_then(
        &self,
        event: LogEvent,
        mut changes: Vec<store::Change>,
        told: impl FnOnce() + Send + 'static,
        written: impl FnOnce() + Send + 'static,
    ) {
        changes.push(store::Change::Event(Box::new(event.clone())));
        let messages = self.messages.clone();
        let tell = move |outcome| {
            let _ = messages.send(Message::Stored(event, outcome));
            told();
        };
        self.store.write_surely_then(changes, tell, written);
    }

    /// What a run wrote down. It goes on when it is on disk and not before; if the disk refuses, it asks again.
    fn journal(&self, entry: Box<JournalEntry>, reply: oneshot::Sender<Result<(), String>>) {
        let logged = event(entry.event.for_log());
        let event = LogEvent { body: entry.event.clone(), ..logged.clone() };
        let messages = self.messages.clone();
        let changes = vec![store::Change::Journal(entry), store::Change::Event(Box::new(logged))];
        self.store.write(changes, move |outcome| {
            let done = match &outcome {
                Outcome::Written(_) => Ok(()),
                Outcome::Refused(why) => Err(why.clone()),
            };
            if done.is_ok() {
                let _ = messages.send(Message::Stored(event, outcome));
            }
            let _ = reply.send(done);
        });
    }

    fn stored(&mut self, mut event: LogEvent, outcome: Outcome) {
        match outcome {
            Outcome::Written(numbers) => {
                event.seq = numbers.last().copied();
                self.disk_problem = None;
                self.since_tidy += 1;
                if self.since_tidy >= retention::ROUND {
                    self.tidy();
                }
            }
            // Told all the same: what happened has happened. The store tries again by itself.
            Outcome::Refused(why) => self.disk_problem = Some(why),
        }
        self.publish(event);
    }

    fn publish(&self, event: LogEvent) {
        if let Some(seq) = event.seq {
            self.newest.store(seq, Ordering::Release);
        }
        let _ = self.events.send(Arc::new(event));
    }

    fn put(&self, id: TerminalId) -> Vec<store::Change> {
        let record = self.terminals.get(&id).map(|entry| entry.record.clone());
        record.into_iter().map(|record| store::Change::Put(Box::new(record))).collect()
    }

    // ---- what pumps say ----

    fn change(&mut self, id: TerminalId, offset: Option<u64>, change: Change) {
        let about = |body| LogEvent { terminal: Some(id), offset, ..event(body) };
        let Some(entry) = self.terminals.get_mut(&id) else {
            // Deleted meanwhile, and so is what it has left at its end.
            if matches!(change, Change::Ended { .. }) {
                self.forget_files(id);
            }
            return;
        };
        match change {
            Change::Status(status) => self.status_changed(id, offset, *status),
            Change::Title(title) => {
                entry.title.clone_from(&title);
                self.publish(about(EventBody::TitleChanged { title }));
            }
            Change::Size(size) => {
                entry.size = size;
                self.publish(about(EventBody::Resized { rows: size.rows(), cols: size.cols() }));
            }
            Change::Signal(signal) => self.publish(about(EventBody::Signal { signal })),
            Change::Event(body) => self.emit(about(*body), vec![]),
            Change::Watched(watched) => entry.watched = watched,
            Change::InputAhead { writer, sequence } => {
                let change = store::Change::Ahead { terminal: id, writer, sequence };
                let pump = entry.pump.clone();
                self.store.write(vec![change], move |outcome| {
                    let written = matches!(outcome, Outcome::Written(_));
                    if let Some(pump) = pump {
                        pump.send(pump::Event::InputNoted { writer, sequence, written });
                    }
                });
            }
            Change::InputSettled { writer, sequence, arrived } => {
                let change = store::Change::Settled { terminal: id, writer, sequence, arrived };
                self.store.write_surely(vec![change], |_| {});
            }
            Change::Answering(note) => {
                if let Some(pump) = entry.pump.clone() {
                    self.answering(note, pump);
                }
            }
            Change::Ended { exit, status, screen_saved, known_to } => {
                entry.record.exit = Some(exit);
                entry.events = None;
                entry.session_file = None;
                // Its last screen is in a file, and read from there when somebody asks.
                if screen_saved {
                    self.routes.remove(id);
                    entry.pump = None;
                }
                if let Some(status) = status {
                    self.status_changed(id, offset, *status);
                }
                self.forget_events(id);
                let exited = about(EventBody::TerminalExited { exit, text: exit.to_string() });
                // Before it is written down nobody may forget it: a daemon that came after us would take it for lost.
                let forget = move || {
                    if let Some(keeper) = known_to {
                        keeper.send(KeeperRequest::Forget { id });
                    }
                };
                self.emit_then(exited, self.put(id), || {}, forget);
            }
        }
    }

    fn status_changed(&mut self, id: TerminalId, offset: Option<u64>, status: Status) {
        let Some(entry) = self.terminals.get_mut(&id) else { return };
        entry.record.last_active = crate::now();
        let view = StatusView::from(&status);
        let about = |body| LogEvent { terminal: Some(id), offset, ..event(body) };
        let awaiting = status.awaiting_reaction;
        let at_rest = status.kind != StatusKind::Processing;
        let before = std::mem::replace(&mut entry.record.status, status);
        let unchanged = before.awaiting_reaction && entry.record.status.unproven && at_rest;
        let changes = self.put(id);
        if awaiting {
            // An input was submitted; `prompt_delivered` tells that. Of the status there is no news yet.
            self.store.write_surely(changes, |_| {});
        } else if unchanged {
            self.emit(about(EventBody::NoReaction(view)), changes);
        } else {
            self.emit(about(EventBody::StatusChanged(view)), changes);
        }
        self.started(id);
        self.watch_session_file(id);
    }

    // ---- what the keeper says ----

    /// Asks for a connection to the keeper, once.
    fn reconnect(&mut self) {
        if !std::mem::replace(&mut self.reconnecting, true) {
            let _ = self.reconnect.send(());
        }
    }

    fn keeper_report(&mut self, report: KeeperReport) {
        if matches!(report, KeeperReport::Up(..) | KeeperReport::Lost(_)) {
            self.reconnecting = false;
            self.keeper_silent = None;
        }
        match report {
            KeeperReport::Up(link, summaries) => self.keeper_up(&link, summaries),
            KeeperReport::Spawned { id, pid } => self.spawned(id, pid),
            KeeperReport::SpawnFailed { id, why, message } => self.spawn_failed(id, CreateError::Refused(why, message)),
            KeeperReport::Ended { id, left } => self.family_ended(id, left),
            KeeperReport::Resting => self.rested(),
            KeeperReport::Unreachable(why) => self.keeper_unreachable(&why),
            KeeperReport::Lost(why) => self.keeper_lost(&why),
            KeeperReport::Untaken(untaken, why) => self.untaken(untaken, KeeperSilent(why)),
            KeeperReport::Silent(why) => self.keeper_silence(why),
        }
    }

    // ---- what people and programs ask ----

    fn command(&mut self, command: Command) {
        match command {
            Command::Create(creation, reply) => self.create(*creation, reply),
            Command::List(reply) => {
                let _ = reply.send(self.views(|_| true));
            }
            Command::Show(id, reply) => {
                let _ = reply.send(self.terminals.get(&id).map(view));
            }
            Command::Household(reply) => {
                let _ = reply.send(self.household());
            }
            Command::Find(id, reply) => self.finds.push((id, reply)),
            Command::Resize(id, size) => {
                if let Some(entry) = self.terminals.get_mut(&id) {
                    entry.record.size = size;
                    let changes = self.put(id);
                    self.emit(of(id, EventBody::SizeSet { rows: size.rows(), cols: size.cols() }), changes);
                }
                if let Some(pump) = self.find(id) {
                    pump.send(pump::Event::Command(pump::Command::Resize(size)));
                }
            }
            Command::Touch(id) => {
                if let Some(entry) = self.terminals.get_mut(&id) {
                    entry.record.last_active = crate::now();
                }
            }
            Command::HangUp(id, reply) => self.hang_up(id, reply),
            Command::ProbeKeeper(reply) => self.probe_keeper(reply),
            Command::Delete { id, grace_ms, reply } => self.delete(id, grace_ms, reply),
            Command::Stop { all, reply } => self.stop(all, reply),
            Command::Set { name, value, reply } => {
                let event = event(EventBody::SettingChanged { name: name.into(), value: value.clone() });
                let changes = vec![store::Change::Setting(name, value), store::Change::Event(Box::new(event.clone()))];
                let messages = self.messages.clone();
                // Not tried again: whoever asked is told, and may say it again.
                self.store.write(changes, move |outcome| {
                    let done = match &outcome {
                        Outcome::Written(_) => Ok(()),
                        Outcome::Refused(why) => Err(SettingError(why.clone())),
                    };
                    let _ = messages.send(Message::Stored(event, outcome));
                    let _ = reply.send(done);
                });
            }
            Command::Record(on) => {
                self.recorder.switch(on);
                for pump in self.routes.handles().into_iter().filter(|_| on) {
                    pump.send(pump::Event::Command(pump::Command::Picture));
                }
            }
            Command::Journal { entry, reply } => self.journal(entry, reply),
            Command::Health(reply) => {
                let disk = self.disk_problem.as_ref().map(|why| format!("the database cannot be written: {why}"));
                let keeper = self.keeper_problem.as_ref().map(|why| format!("no keeper: {why}"));
                let anchor = self.store.anchor_problem();
                let problem = self.why_keeper_is_silent().or(keeper).or(disk).or(anchor);
                let _ = reply.send(Health { problem });
            }
        }
    }

    /// Has the pump told of what the agent writes down of itself. Its file is not there from the beginning, so this is tried
    /// again until it is.
    fn watch_session_file(&mut self, id: TerminalId) {
        let Some(entry) = self.terminals.get_mut(&id).filter(|entry| entry.session_file.is_none()) else { return };
        let (Some(pump), Some(pid), Some(_)) = (&entry.pump, entry.record.pid, entry.record.confirmed) else { return };
        let Ok(provider) = self.providers.load(&entry.record.provider) else { return };
        let patterns = &provider.manifest.session_file;
        if let Some(file) = (!patterns.is_empty()).then(|| session_files::locate(patterns, pid)).flatten() {
            entry.session_file = Some(session_files::watch(&self.files, &file, pump.clone()));
        }
    }

    /// The processes that are ours, to tell theirs from those of others.
    fn household(&self) -> Household {
        let leader = |entry: &Entry| entry.record.pid.filter(|_| entry.record.exit.is_none()).map(|pid| pid as i32);
        let terminals = self.terminals.values().map(|entry| (entry.record.id, leader(entry))).collect();
        Household { keeper: self.routes.keeper(), daemon: std::process::id() as i32, terminals }
    }

    fn views(&self, which: impl Fn(&Entry) -> bool) -> Vec<View> {
        let mut views: Vec<View> = self.terminals.values().filter(|entry| which(entry)).map(view).collect();
        views.sort_by_key(|view| (view.record.created, view.record.id));
        views
    }
}

fn view(entry: &Entry) -> View {
    View { record: entry.record.clone(), title: entry.title.clone(), size: entry.size, watched: entry.watched }
}

fn event(body: EventBody) -> LogEvent {
    LogEvent { seq: None, at: jiff::Timestamp::now(), terminal: None, offset: None, body }
}

/// An event about this terminal.
fn of(id: TerminalId, body: EventBody) -> LogEvent {
    LogEvent { terminal: Some(id), ..event(body) }
}
