//! The one loop that owns what is shared: which terminals there are, what is believed of them, who is told.
//!
//! Everything that can make it act is in `Message`. It never waits: not for the disk (the store tells when
//! something is written), not for the keeper, not for a pump. What others see is published after it was
//! written down.

use std::collections::{BTreeMap, HashMap, btree_map};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use posse_core::ids::{BadName, Name, TerminalId};
use posse_core::screen::Size;
use posse_core::signal::Signal;
use posse_core::status::{Exit, Life, Status};
use posse_term::client::Link;
use posse_term::emulator::{Emulator, HistoryLimit};
use posse_term::places::Places;
use posse_term::wire::{Program, Request, SpawnRefusal, Summary, Wiring};
use serde_json::json;
use tokio::sync::{broadcast, mpsc, oneshot};

use crate::keeper_link::Routes;
use crate::pump::{self, Beginning, Handle};
use crate::record::{COMMAND, LogEvent, Record};
use crate::store::{self, Outcome, Writer};
use crate::watch::TAIL;

/// How long a family is given to end by itself before it is killed.
pub(crate) const GRACE_MS: u32 = 3_000;

pub(crate) enum Message {
    Command(Command),
    Change(TerminalId, Change),
    Keeper(KeeperNews),
    /// The store has dealt with an event.
    Stored(LogEvent, Outcome),
    /// The store has dealt with the record of a terminal to be started.
    CreationStored(TerminalId, LogEvent, Outcome),
}

/// What a pump has to say.
pub(crate) enum Change {
    Status(Status),
    Title(String),
    Size(Size),
    Signal(Signal),
    Ended(Exit),
}

pub(crate) enum KeeperNews {
    /// A keeper is connected, and this is what it has.
    Up(Link, Vec<Summary>),
    Spawned {
        id: TerminalId,
        pid: u32,
    },
    SpawnFailed {
        id: TerminalId,
        why: SpawnRefusal,
        message: String,
    },
    Ended {
        id: TerminalId,
        left: u32,
    },
    /// It will not start us again when we go.
    Resting,
    Lost(String),
}

/// A terminal to start, checked as far as that can be done without starting it.
pub(crate) struct Creation {
    pub(crate) command: Vec<String>,
    pub(crate) name: Option<Name>,
    pub(crate) session: Option<Name>,
    pub(crate) directory: PathBuf,
    pub(crate) environment: BTreeMap<String, String>,
    pub(crate) size: Size,
    pub(crate) ring: u32,
}

pub(crate) enum Command {
    Create(Box<Creation>, oneshot::Sender<Result<View, CreateError>>),
    List(oneshot::Sender<Vec<View>>),
    Show(TerminalId, oneshot::Sender<Option<View>>),
    /// The pump of a terminal.
    Find(TerminalId, oneshot::Sender<Option<Handle>>),
    Resize(TerminalId, Size),
    Touch(TerminalId),
    HangUp(TerminalId),
    Delete {
        id: TerminalId,
        grace_ms: u32,
        reply: oneshot::Sender<Option<Deleted>>,
    },
    Stop {
        all: bool,
        reply: oneshot::Sender<Stopped>,
    },
    Health(oneshot::Sender<Health>),
}

/// A terminal as the world sees it.
#[derive(Clone, Debug)]
pub(crate) struct View {
    pub(crate) record: Record,
    pub(crate) title: String,
    pub(crate) size: Size,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum CreateError {
    #[error("the name {0} is taken")]
    NameTaken(Name),
    #[error(transparent)]
    BadName(#[from] BadName),
    #[error("{1}")]
    Refused(SpawnRefusal, String),
    #[error("the database cannot be written: {0}")]
    Store(String),
    #[error("no keeper is running to start it: {0}")]
    NoKeeper(String),
}

#[derive(Debug)]
pub(crate) struct Deleted {
    /// Processes that could not be ended.
    pub(crate) left: u32,
}

/// What goes on when the daemon stops.
#[derive(Debug)]
pub(crate) struct Stopped {
    pub(crate) running: Vec<View>,
}

#[derive(Debug, Clone)]
pub(crate) struct Health {
    /// What keeps the daemon from working as it should, in words.
    pub(crate) problem: Option<String>,
}

struct Entry {
    record: Record,
    title: String,
    size: Size,
    /// `None`: ended before this daemon began, and not asked for since.
    pump: Option<Handle>,
}

#[derive(Default)]
struct Stopping {
    all: bool,
    /// The keeper has been told.
    resting: bool,
    replies: Vec<oneshot::Sender<Stopped>>,
}

struct Creating {
    program: Program,
    reply: oneshot::Sender<Result<View, CreateError>>,
}

pub(crate) struct Hub {
    places: Places,
    history: HistoryLimit,
    store: Writer,
    messages: mpsc::UnboundedSender<Message>,
    events: broadcast::Sender<Arc<LogEvent>>,
    newest: Arc<AtomicI64>,
    routes: Routes,
    link: Option<Link>,
    keeper_problem: Option<String>,
    disk_problem: Option<String>,
    terminals: BTreeMap<TerminalId, Entry>,
    creating: HashMap<TerminalId, Creating>,
    deleting: HashMap<TerminalId, Vec<oneshot::Sender<Option<Deleted>>>>,
    stopping: Option<Stopping>,
    done: bool,
    /// Asked of the shell: a new keeper.
    want_keeper: mpsc::UnboundedSender<()>,
}

pub(crate) struct Parts {
    pub(crate) places: Places,
    pub(crate) store: Writer,
    pub(crate) records: Vec<Record>,
    pub(crate) messages: mpsc::UnboundedSender<Message>,
    pub(crate) events: broadcast::Sender<Arc<LogEvent>>,
    pub(crate) newest: Arc<AtomicI64>,
    pub(crate) routes: Routes,
    pub(crate) want_keeper: mpsc::UnboundedSender<()>,
}

impl Hub {
    pub(crate) fn new(parts: Parts) -> Self {
        let entry = |record: Record| Entry { title: String::new(), size: record.size, record, pump: None };
        Self {
            places: parts.places,
            history: HistoryLimit::default(),
            store: parts.store,
            messages: parts.messages,
            events: parts.events,
            newest: parts.newest,
            routes: parts.routes,
            link: None,
            keeper_problem: None,
            disk_problem: None,
            terminals: parts.records.into_iter().map(|record| (record.id, entry(record))).collect(),
            creating: HashMap::new(),
            deleting: HashMap::new(),
            stopping: None,
            done: false,
            want_keeper: parts.want_keeper,
        }
    }

    /// Runs until told to stop.
    pub(crate) async fn run(mut self, mut queue: mpsc::UnboundedReceiver<Message>) {
        self.emit("daemon_started", None, json!({ "pid": std::process::id(), "version": crate::VERSION }), vec![]);
        while let Some(message) = queue.recv().await {
            match message {
                Message::Command(command) => self.command(command),
                Message::Change(id, change) => self.change(id, change),
                Message::Keeper(news) => self.keeper(news),
                Message::Stored(event, outcome) => self.stored(event, outcome),
                Message::CreationStored(id, event, outcome) => self.creation_stored(id, event, outcome),
            }
            if self.stopping.as_ref().is_some_and(|stopping| !stopping.resting) && self.running().next().is_none() {
                self.rest();
            }
            if self.done {
                break;
            }
        }
        if let Some(stopping) = self.stopping.take() {
            let running = if stopping.all { vec![] } else { self.views(|entry| entry.record.exit.is_none()) };
            for reply in stopping.replies {
                let _ = reply.send(Stopped { running: running.clone() });
            }
        }
    }

    // ---- writing down and telling ----

    /// Writes an event and what it changes, and tells everyone when it is written.
    fn emit(&self, kind: &str, terminal: Option<TerminalId>, data: serde_json::Value, mut changes: Vec<store::Change>) {
        let event = event(kind, terminal, data);
        changes.push(store::Change::Event(event.clone()));
        let messages = self.messages.clone();
        self.store.write_surely(changes, move |outcome| {
            let _ = messages.send(Message::Stored(event, outcome));
        });
    }

    fn stored(&mut self, mut event: LogEvent, outcome: Outcome) {
        match outcome {
            Outcome::Written(numbers) => {
                event.seq = numbers.last().copied();
                self.disk_problem = None;
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

    fn change(&mut self, id: TerminalId, change: Change) {
        let Some(entry) = self.terminals.get_mut(&id) else { return };
        match change {
            Change::Status(status) => {
                entry.record.last_active = crate::now();
                entry.record.status = status.clone();
                let data = serde_json::to_value(crate::api::types::StatusView::from(&status)).unwrap_or_default();
                let changes = self.put(id);
                self.emit("status_changed", Some(id), data, changes);
            }
            Change::Title(title) => {
                entry.title.clone_from(&title);
                self.publish(event("title_changed", Some(id), json!({ "title": title })));
            }
            Change::Size(size) => {
                entry.size = size;
                let data = json!({ "rows": size.rows(), "cols": size.cols() });
                self.publish(event("resized", Some(id), data));
            }
            Change::Signal(signal) => {
                let data = serde_json::to_value(&signal).unwrap_or_default();
                self.publish(event("signal", Some(id), data));
            }
            Change::Ended(exit) => {
                entry.record.exit = Some(exit);
                let changes = self.put(id);
                self.emit("terminal_exited", Some(id), json!({ "exit": exit, "text": exit.to_string() }), changes);
            }
        }
    }

    // ---- what the keeper says ----

    fn keeper(&mut self, news: KeeperNews) {
        match news {
            KeeperNews::Up(link, summaries) => self.keeper_up(&link, summaries),
            KeeperNews::Spawned { id, pid } => self.spawned(id, pid),
            KeeperNews::SpawnFailed { id, why, message } => self.spawn_failed(id, CreateError::Refused(why, message)),
            KeeperNews::Ended { id, left } => self.family_ended(id, left),
            KeeperNews::Resting => self.done = true,
            KeeperNews::Lost(why) => self.keeper_lost(&why),
        }
    }

    /// Takes over what the keeper holds, and settles what it does not.
    fn keeper_up(&mut self, link: &Link, summaries: Vec<Summary>) {
        self.link = Some(link.clone());
        self.keeper_problem = None;
        let held: Vec<TerminalId> = summaries.iter().map(|summary| summary.id).collect();
        for summary in summaries {
            self.adopt(link, &summary);
        }
        let gone: Vec<TerminalId> = self
            .terminals
            .values()
            .filter(|entry| entry.record.exit.is_none() && !held.contains(&entry.record.id))
            .map(|entry| entry.record.id)
            .collect();
        for id in gone {
            // Its keeper went away, with the machine or without. Whatever of it still runs, nobody can see.
            link.send(&Request::End { id, grace_ms: GRACE_MS });
            if let Some(entry) = self.terminals.get_mut(&id)
                && entry.pump.is_none()
            {
                let mut life = Life::resumed(entry.record.status.clone(), false);
                let status = life.handle(&posse_core::status::Event::Exited(Exit::Lost), crate::now()).cloned();
                for change in status.map(Change::Status).into_iter().chain([Change::Ended(Exit::Lost)]) {
                    self.change(id, change);
                }
            }
        }
    }

    fn adopt(&mut self, link: &Link, summary: &Summary) {
        let id = summary.id;
        if !matches!(summary.wiring, Wiring::Terminal(_)) {
            return;
        }
        let entry = match self.terminals.entry(id) {
            btree_map::Entry::Occupied(known) => known.into_mut(),
            btree_map::Entry::Vacant(unknown) => {
                // Not in the database: it was lost, or never written. The keeper's own copy will do.
                let Ok(record) = serde_json::from_slice::<Record>(&summary.label) else {
                    tracing::warn!("the keeper holds a terminal {id} that cannot be made sense of");
                    return;
                };
                unknown.insert(Entry { title: String::new(), size: record.size, record, pump: None })
            }
        };
        entry.record.pid = Some(summary.pid);
        entry.record.exit = None;
        let (start, end) = summary.main;
        let from = summary.checkpoint.map_or(start, |at| at.saturating_sub(TAIL as u64).max(start));
        let beginning = Beginning::Live { link: link.clone(), ring: u64::from(summary.ring), from, caught_up_at: end };
        self.start_pump(id, beginning);
        let changes = self.put(id);
        self.emit("terminal_adopted", Some(id), json!({ "pid": summary.pid }), changes);
    }

    fn start_pump(&mut self, id: TerminalId, beginning: Beginning) {
        let Some(entry) = self.terminals.get_mut(&id) else { return };
        let live = matches!(beginning, Beginning::Live { .. });
        let settings = pump::Settings {
            id,
            size: entry.record.size,
            status: entry.record.status.clone(),
            history: self.history,
            last_screen: self.places.screens().join(id.as_str()),
            hub: self.messages.clone(),
        };
        // The route must be there before the keeper answers; it answers in order, after `Attach`.
        let handle = pump::start(settings, beginning);
        if live {
            self.routes.insert(id, handle.clone());
        }
        entry.pump = Some(handle);
    }

    fn spawned(&mut self, id: TerminalId, pid: u32) {
        let Some(creating) = self.creating.remove(&id) else { return };
        let (Some(entry), Some(link)) = (self.terminals.get_mut(&id), self.link.clone()) else { return };
        entry.record.pid = Some(pid);
        let mut life = Life::resumed(entry.record.status.clone(), false);
        if let Some(status) = life.handle(&posse_core::status::Event::Started, crate::now()) {
            entry.record.status = status.clone();
        }
        let view = view(entry);
        let ring = u64::from(creating.program.ring);
        self.start_pump(id, Beginning::Live { link, ring, from: 0, caught_up_at: 0 });
        let changes = self.put(id);
        self.emit("terminal_started", Some(id), json!({ "pid": pid }), changes);
        let _ = creating.reply.send(Ok(view));
    }

    fn spawn_failed(&mut self, id: TerminalId, error: CreateError) {
        let Some(creating) = self.creating.remove(&id) else { return };
        self.terminals.remove(&id);
        let data = json!({ "reason": error.to_string() });
        self.emit("terminal_failed", Some(id), data, vec![store::Change::Drop(id)]);
        let _ = creating.reply.send(Err(error));
    }

    fn keeper_lost(&mut self, why: &str) {
        tracing::error!("the keeper is gone: {why}");
        self.link = None;
        self.keeper_problem = Some(why.to_owned());
        self.emit("keeper_lost", None, json!({ "reason": why }), vec![]);
        for entry in self.terminals.values().filter(|entry| entry.record.exit.is_none()) {
            if let Some(pump) = &entry.pump {
                pump.send(pump::Event::KeeperLost);
            }
        }
        let ids: Vec<TerminalId> = self.creating.keys().copied().collect();
        for id in ids {
            self.spawn_failed(id, CreateError::NoKeeper(why.to_owned()));
        }
        let ids: Vec<TerminalId> = self.deleting.keys().copied().collect();
        for id in ids {
            self.family_ended(id, 0);
        }
        match self.stopping {
            None => drop(self.want_keeper.send(())),
            Some(_) => self.done = true,
        }
    }

    fn family_ended(&mut self, id: TerminalId, left: u32) {
        if let Some(replies) = self.deleting.remove(&id) {
            if let Some(link) = &self.link {
                link.send(&Request::Forget { id });
            }
            self.routes.remove(id);
            self.terminals.remove(&id);
            let _ = std::fs::remove_file(self.places.screens().join(id.as_str()));
            let data = json!({ "processes_left": left });
            self.emit("terminal_deleted", Some(id), data, vec![store::Change::Drop(id)]);
            for reply in replies {
                let _ = reply.send(Some(Deleted { left }));
            }
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
            Command::Find(id, reply) => {
                let _ = reply.send(self.find(id));
            }
            Command::Resize(id, size) => {
                if let Some(entry) = self.terminals.get_mut(&id) {
                    entry.record.size = size;
                    let changes = self.put(id);
                    let data = json!({ "rows": size.rows(), "cols": size.cols() });
                    self.emit("size_set", Some(id), data, changes);
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
            Command::HangUp(id) => {
                if let (Some(link), true) = (&self.link, self.terminals.contains_key(&id)) {
                    link.send(&Request::HangUp { id });
                    self.emit("hang_up", Some(id), json!({}), vec![]);
                }
            }
            Command::Delete { id, grace_ms, reply } => self.delete(id, grace_ms, reply),
            Command::Stop { all, reply } => self.stop(all, reply),
            Command::Health(reply) => {
                let disk = self.disk_problem.as_ref().map(|why| format!("the database cannot be written: {why}"));
                let keeper = self.keeper_problem.as_ref().map(|why| format!("no keeper: {why}"));
                let _ = reply.send(Health { problem: keeper.or(disk) });
            }
        }
    }

    fn views(&self, which: impl Fn(&Entry) -> bool) -> Vec<View> {
        let mut views: Vec<View> = self.terminals.values().filter(|entry| which(entry)).map(view).collect();
        views.sort_by_key(|view| (view.record.created, view.record.id));
        views
    }

    fn find(&mut self, id: TerminalId) -> Option<Handle> {
        let entry = self.terminals.get(&id)?;
        if let (None, Some(exit)) = (&entry.pump, entry.record.exit) {
            let last = std::fs::read(self.places.screens().join(id.as_str())).ok();
            let emulator = last.and_then(|blob| Emulator::restore(&blob, self.history).ok()).map(Box::new);
            self.start_pump(id, Beginning::Ended(emulator, exit));
        }
        self.terminals.get(&id)?.pump.clone()
    }

    fn create(&mut self, creation: Creation, reply: oneshot::Sender<Result<View, CreateError>>) {
        if let Some(why) = &self.keeper_problem {
            let _ = reply.send(Err(CreateError::NoKeeper(why.clone())));
            return;
        }
        if let Some(name) = &creation.name
            && self.terminals.values().any(|entry| &entry.record.name == name)
        {
            let _ = reply.send(Err(CreateError::NameTaken(name.clone())));
            return;
        }
        let id = loop {
            let id = TerminalId::from_random(crate::random() as u32);
            if !self.terminals.contains_key(&id) {
                break id;
            }
        };
        let now = crate::now();
        let program_name = creation.command.first().map_or("", String::as_str).rsplit('/').next().unwrap_or("");
        let name = creation.name.unwrap_or_else(|| Name::random_terminal(program_name, crate::random() as u16));
        let record = Record {
            id,
            name,
            session: creation.session.unwrap_or_else(|| Name::random_session(crate::random() as u32)),
            provider: COMMAND.into(),
            agent_profile: None,
            directory: creation.directory.to_string_lossy().into_owned(),
            command: creation.command.clone(),
            size: creation.size,
            created: now,
            last_active: now,
            pid: None,
            exit: None,
            status: Life::starting(now).status().clone(),
        };
        let program = Program {
            arguments: creation.command.into_iter().map(String::into_bytes).collect(),
            environment: crate::environment::for_program(creation.environment, id),
            directory: creation.directory.into_os_string().into_encoded_bytes(),
            wiring: Wiring::Terminal(creation.size),
            ring: creation.ring,
            label: serde_json::to_vec(&record).unwrap_or_default(),
        };
        let event = event(
            "terminal_created",
            Some(id),
            json!({ "name": record.name, "session": record.session, "command": record.command }),
        );
        let changes = vec![store::Change::Put(Box::new(record.clone())), store::Change::Event(event.clone())];
        self.terminals.insert(id, Entry { title: String::new(), size: record.size, record, pump: None });
        self.creating.insert(id, Creating { program, reply });
        let messages = self.messages.clone();
        // Written before it is started: after a crash in between, the terminal is known to be missing.
        self.store.write(changes, move |outcome| {
            let _ = messages.send(Message::CreationStored(id, event, outcome));
        });
    }

    fn creation_stored(&mut self, id: TerminalId, event: LogEvent, outcome: Outcome) {
        match (&outcome, &self.link) {
            (Outcome::Refused(why), _) => {
                let why = why.clone();
                self.disk_problem = Some(why.clone());
                self.terminals.remove(&id);
                if let Some(creating) = self.creating.remove(&id) {
                    let _ = creating.reply.send(Err(CreateError::Store(why)));
                }
            }
            (Outcome::Written(_), None) => {
                self.stored(event, outcome);
                self.spawn_failed(id, CreateError::NoKeeper("it went away just now".into()));
            }
            (Outcome::Written(_), Some(link)) => {
                if let Some(creating) = self.creating.get(&id) {
                    link.send(&Request::Spawn { id, program: creating.program.clone() });
                }
                self.stored(event, outcome);
            }
        }
    }

    fn delete(&mut self, id: TerminalId, grace_ms: u32, reply: oneshot::Sender<Option<Deleted>>) {
        if !self.terminals.contains_key(&id) {
            let _ = reply.send(None);
            return;
        }
        self.deleting.entry(id).or_default().push(reply);
        match &self.link {
            Some(link) => link.send(&Request::End { id, grace_ms }),
            None => self.family_ended(id, 0),
        }
    }

    // ---- stopping ----

    fn stop(&mut self, all: bool, reply: oneshot::Sender<Stopped>) {
        let stopping = self.stopping.get_or_insert_with(Stopping::default);
        stopping.replies.push(reply);
        stopping.all |= all;
        if !all {
            return self.rest();
        }
        let running: Vec<TerminalId> = self.running().map(|entry| entry.record.id).collect();
        for id in running {
            match &self.link {
                Some(link) => link.send(&Request::End { id, grace_ms: GRACE_MS }),
                None => self.done = true,
            }
        }
    }

    fn running(&self) -> impl Iterator<Item = &Entry> {
        self.terminals.values().filter(|entry| entry.record.exit.is_none())
    }

    /// Tells the keeper not to start us again, and waits to hear that it will not.
    fn rest(&mut self) {
        if let Some(stopping) = &mut self.stopping {
            stopping.resting = true;
        }
        self.emit("daemon_stopped", None, json!({}), vec![]);
        match &self.link {
            Some(link) => link.send(&Request::Rest),
            None => self.done = true,
        }
    }
}

fn view(entry: &Entry) -> View {
    View { record: entry.record.clone(), title: entry.title.clone(), size: entry.size }
}

fn event(kind: &str, terminal: Option<TerminalId>, data: serde_json::Value) -> LogEvent {
    LogEvent { seq: None, at: jiff::Timestamp::now(), kind: kind.into(), terminal, data }
}
