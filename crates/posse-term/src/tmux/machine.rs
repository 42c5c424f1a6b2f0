//! Every decision of the tmux backend: what happened in, what to do out.
//!
//! Pure: no process, no file, no clock. The driver (`client`) carries out the effects and brings back what came of them.
//!
//! Commands are answered in the order in which they were sent, and what one line asks for is done without anything in
//! between: making a pane and listening to it, an input and the note of it, taking a screen and going on from there.
//! No answer comes before output that tmux read earlier; but output that it read later may come before the answer.

mod asking;
mod ending;
mod input;
mod looking;
mod output;
mod spawning;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ffi::OsString;
use std::time::{Duration, Instant};

use posse_core::ids::{TerminalId, WriterId};
use posse_core::status::Exit;
use rustix::process::Signal;

use super::command::{Line, PaneId, SessionId};
use super::control::{Message, Reply};
use super::doorbell::Secret;
use super::layout;
use super::notes::{Fate, Found, Notes};
use super::survey;
use super::terminal::{Flow, Life, Terminal};
use crate::emulator::HistoryLimit;
use crate::wire::{self, Event, InputRefusal, Program, Request, SpawnRefusal, Stream};

/// How long tmux may take to answer. It answers within milliseconds unless it is stopped or busy beyond use.
const PATIENCE: Duration = Duration::from_secs(10);
/// tmux drops what we did not take for so many seconds, and says so. Long enough for a daemon that was stopped for a
/// moment, and little enough for the memory of tmux.
const PAUSE_AFTER: u8 = 5;
/// Offsets of one daemon are below this, those of the next begin above: what somebody read from one is never taken
/// for output of the other.
const EPOCH: u64 = 1 << 40;

#[derive(Debug)]
pub(super) enum Happening {
    Connected,
    Said(Message),
    Asked(Request),
    /// What a program needs was written down, or could not be.
    Prepared(TerminalId, Result<(), String>),
    /// What the shim wrote.
    Fate(TerminalId, Fate),
    /// A deadline may have passed.
    Time,
    /// This connection is of no use any more; there will be another.
    Disconnected,
    /// There is nothing to connect to any more.
    ServerGone,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Effect {
    Send(Line),
    Tell(Event),
    Prepare(TerminalId, Program, Secret),
    ReadFate(TerminalId),
    Forget(TerminalId),
    SaveInput(u64, Vec<u8>),
    DropInput(u64),
    /// To a pane's process, or to the server.
    Signal(u32, Signal),
    /// The program, if it still is in this session.
    Kill {
        program: u32,
        session: u32,
    },
    /// The connection must be made anew.
    Broken(String),
    /// The server is not the one we knew.
    OtherServer,
    /// End the connection, and then the session it was in.
    Depart,
}

/// What makes one backend different from another.
pub(super) struct Config {
    pub(super) anchor: String,
    /// Part of our buffers' names; others may use the same server.
    pub(super) tag: String,
    /// Options for a server of our own.
    pub(super) private: Option<Private>,
    pub(super) shim: Vec<OsString>,
    pub(super) notes: Notes,
    pub(super) history: HistoryLimit,
    /// Random, and nobody else's: the secrets of the bells are made of it.
    pub(super) seed: [u8; 32],
}

pub(super) struct Private {
    /// What tmux tells programs that it is.
    pub(super) terminal: &'static str,
}

/// Why a line was sent.
#[derive(Debug)]
enum Purpose {
    /// Whether it works is worth a line in the log.
    Nothing,
    /// Whether it works is nobody's concern.
    Quiet,
    Identity,
    PasteFlags,
    Buffers,
    Survey,
    Close,
    Create {
        id: TerminalId,
        made: Made,
    },
    Stop {
        id: TerminalId,
        serial: u64,
    },
    Take {
        id: TerminalId,
        serial: u64,
    },
    Input(input::Sent),
}

/// What a pane was created with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Made {
    Session,
    Window,
}

struct Pending {
    purpose: Purpose,
    /// Answers still to come.
    left: usize,
    replies: Vec<Reply>,
    deadline: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Apart,
    /// tmux has not yet said which session we look at. What is sent before that may be done before it.
    Arriving,
    /// Connected, and not yet looked around.
    Greeting,
    Ready,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Looking {
    No,
    Asked,
    /// Something changed since.
    Again,
}

pub(super) struct Machine {
    config: Config,
    phase: Phase,
    arrive_until: Option<Instant>,
    /// Process and start time of the server.
    server: Option<(u32, u64)>,
    socket: String,
    anchor: Option<SessionId>,
    /// Whether pasting must be told to leave the bytes alone.
    paste_raw: bool,
    looking: Looking,
    terminals: BTreeMap<TerminalId, Terminal>,
    panes: HashMap<PaneId, TerminalId>,
    /// Output of panes that may turn out to be ours.
    early: HashMap<PaneId, Vec<u8>>,
    /// What is to be closed after what is being closed.
    closing: VecDeque<Line>,
    pending: VecDeque<Pending>,
    /// Inputs whose answer was lost with the connection.
    unconfirmed: Vec<input::Sent>,
    /// Requests that came while there was no connection.
    waiting: Vec<Request>,
    inputs: u64,
    effects: Vec<Effect>,
    now: Instant,
}

impl Machine {
    pub(super) fn new(config: Config, found: Vec<Found>, now: Instant) -> Self {
        let mut machine = Self {
            config,
            phase: Phase::Apart,
            arrive_until: None,
            server: None,
            socket: String::new(),
            anchor: None,
            paste_raw: false,
            looking: Looking::No,
            terminals: BTreeMap::new(),
            panes: HashMap::new(),
            early: HashMap::new(),
            closing: VecDeque::new(),
            pending: VecDeque::new(),
            unconfirmed: Vec::new(),
            waiting: Vec::new(),
            inputs: 0,
            effects: Vec::new(),
            now,
        };
        for found in found {
            machine.remember(found);
        }
        machine
    }

    /// The connection is made and looked around in.
    pub(super) fn is_ready(&self) -> bool {
        self.phase == Phase::Ready
    }

    /// Where the server can be found, once it has said so.
    pub(super) fn socket(&self) -> &str {
        &self.socket
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        let answer = self.pending.front().map(|pending| pending.deadline).or(self.arrive_until);
        let terminals = self.terminals.values().flat_map(|terminal| [terminal.start_until(), terminal.end_until()]);
        answer.into_iter().chain(terminals.flatten()).min()
    }

    pub(super) fn handle(&mut self, happening: Happening, now: Instant) -> Vec<Effect> {
        self.now = now;
        match happening {
            Happening::Connected => {
                self.phase = Phase::Arriving;
                self.arrive_until = Some(now + PATIENCE);
            }
            Happening::Said(message) if self.phase != Phase::Apart => self.said(message),
            Happening::Said(_) => {}
            Happening::Asked(request) if self.phase == Phase::Ready => self.asked(request),
            Happening::Asked(request) => self.waiting.push(request),
            Happening::Prepared(id, outcome) => self.prepared(id, outcome),
            Happening::Fate(id, fate) => self.fate(id, fate),
            Happening::Time => self.time(),
            Happening::Disconnected => self.disconnected(),
            Happening::ServerGone => self.server_gone(),
        }
        std::mem::take(&mut self.effects)
    }

    fn tell(&mut self, event: Event) {
        self.effects.push(Effect::Tell(event));
    }

    fn problem(&mut self, message: impl Into<String>) {
        self.tell(Event::Problem { message: message.into().into_bytes() });
    }

    fn send(&mut self, line: Line, purpose: Purpose) {
        let deadline = self.now + PATIENCE;
        self.pending.push_back(Pending { purpose, left: line.commands(), replies: Vec::new(), deadline });
        self.effects.push(Effect::Send(line));
    }

    /// Closes a pane or window, one after the other. tmux 3.3a dies when the last two windows of a session close in one
    /// go while somebody listens in control mode: it tells of a change to a window that is gone.
    fn close(&mut self, line: Line) {
        self.closing.push_back(line);
        if self.closing.len() == 1 {
            self.close_next();
        }
    }

    fn close_next(&mut self) {
        if let Some(line) = self.closing.front().cloned() {
            self.send(line, Purpose::Close);
        }
    }

    fn broken(&mut self, why: impl Into<String>) {
        if self.phase != Phase::Apart {
            self.phase = Phase::Apart;
            self.effects.push(Effect::Broken(why.into()));
        }
    }

    // ---- the connection ----

    fn greet(&mut self, anchor: SessionId) {
        self.phase = Phase::Greeting;
        self.arrive_until = None;
        self.anchor = Some(anchor);
        self.looking = Looking::No;
        let flags = format!("pause-after={PAUSE_AFTER}");
        self.send(Line::new("refresh-client -f").text(flags), Purpose::Nothing);
        let identity = "#{pid} #{start_time} #{socket_path}";
        self.send(Line::new("display-message -p").text(identity), Purpose::Identity);
        self.send(Line::new("list-commands paste-buffer"), Purpose::PasteFlags);
        self.send(Line::new("list-buffers -F").text("#{buffer_name}"), Purpose::Buffers);
        if let Some(private) = &self.config.private {
            let rows = self.config.history.rows as u64;
            let lines = [
                // It must outlive its last terminal: starting one takes longer than keeping one costs.
                Line::new("set-option -s exit-empty off"),
                // A key is a key: what we send is never the beginning of something typed.
                Line::new("set-option -s escape-time 0"),
                Line::new("set-option -s focus-events off"),
                Line::new("set-option -s default-terminal").text(private.terminal),
                Line::new("set-option -g destroy-unattached off"),
                Line::new("set-option -g history-limit").number(rows),
            ];
            for line in lines {
                self.send(line, Purpose::Nothing);
            }
        }
        self.look();
    }

    fn said(&mut self, message: Message) {
        match message {
            Message::Reply(reply) if reply.ours => self.reply(reply),
            Message::Reply(_) => {}
            Message::Output { pane, bytes } => self.output(pane, bytes),
            Message::Paused(pane) => {
                if let Some(terminal) = self.panes.get(&pane).and_then(|id| self.terminals.get_mut(id)) {
                    match terminal.flow {
                        Flow::Kept(_) => terminal.flow = Flow::Unheard,
                        Flow::Flowing => self.resync(pane),
                        // We stopped it ourselves: tmux 3.5a says so within its answer, 3.8 right behind it. It cannot be
                        // stopped again before it goes on, and that it does with the answer we wait for.
                        Flow::Unheard | Flow::Held | Flow::Stopping | Flow::Taking(_) => {}
                    }
                }
            }
            Message::Layout { layout, .. } => {
                for (pane, size) in layout::sizes(&layout) {
                    self.resized(pane, size);
                }
                self.look();
            }
            Message::Changed if self.phase == Phase::Arriving => {}
            Message::Changed => self.look(),
            Message::Session(session) if self.phase == Phase::Arriving => self.greet(session),
            Message::Session(session) if self.anchor.is_some_and(|anchor| anchor != session) => {
                self.broken("somebody moved our connection to another session");
            }
            Message::Session(_) => {}
            Message::Exit { reason } => self.broken(format!("tmux ended the connection: {reason}")),
        }
    }

    /// Answers come in order, one for each command of a line, up to the first that failed.
    fn reply(&mut self, reply: Reply) {
        let Some(pending) = self.pending.front_mut() else { return };
        pending.left = if reply.failed { 0 } else { pending.left - 1 };
        pending.replies.push(reply);
        if pending.left == 0
            && let Some(Pending { purpose, replies, .. }) = self.pending.pop_front()
        {
            self.answered(purpose, &replies);
        }
    }

    fn answered(&mut self, purpose: Purpose, replies: &[Reply]) {
        let failed = replies.iter().find(|reply| reply.failed);
        match purpose {
            Purpose::Quiet => {}
            Purpose::Nothing => {
                // Somebody may have closed the pane meanwhile; that is no news.
                if let Some(reply) = failed.filter(|reply| !reply.text().starts_with("can't find")) {
                    self.problem(format!("tmux: {}", reply.text()));
                }
            }
            Purpose::Identity => self.identified(&replies[0].text()),
            Purpose::PasteFlags => {
                let text = replies[0].text();
                let flags = text.split('[').nth(1).and_then(|rest| rest.split(']').next()).unwrap_or_default();
                self.paste_raw = failed.is_none() && flags.starts_with('-') && flags.contains('S');
            }
            Purpose::Buffers => self.clear_buffers(&replies[0]),
            Purpose::Survey => match failed {
                None => self.looked(&survey::Survey::read(&replies[0])),
                Some(reply) => self.broken(format!("tmux: {}", reply.text())),
            },
            Purpose::Close => {
                self.closing.pop_front();
                self.close_next();
            }
            Purpose::Create { id, made } => self.created(id, made, replies),
            Purpose::Stop { id, serial } => self.stopped(id, serial, failed),
            Purpose::Take { id, serial } => self.taken(id, serial, replies),
            Purpose::Input(sent) => self.input_answered(&sent, replies),
        }
    }

    fn identified(&mut self, text: &str) {
        let mut words = text.splitn(3, ' ');
        let mut number = || words.next().and_then(|word| word.parse::<u64>().ok());
        let (Some(pid), Some(start)) = (number(), number()) else {
            return self.broken(format!("tmux does not say who it is: {text:?}"));
        };
        let server = (pid as u32, start);
        if self.server.is_some_and(|known| known != server) {
            self.phase = Phase::Apart;
            self.effects.push(Effect::OtherServer);
            return;
        }
        self.server = Some(server);
        self.socket = words.next().unwrap_or_default().to_owned();
    }

    fn disconnected(&mut self) {
        self.phase = Phase::Apart;
        self.arrive_until = None;
        self.closing.clear();
        self.early.clear();
        for pending in std::mem::take(&mut self.pending) {
            if let Purpose::Input(sent) = pending.purpose {
                self.unconfirmed.push(sent);
            }
        }
        for terminal in self.terminals.values_mut() {
            if let Flow::Kept(_) = terminal.flow {
                terminal.flow = Flow::Unheard;
            }
        }
    }

    fn time(&mut self) {
        let now = self.now;
        let answer = self.pending.front().map(|pending| pending.deadline).or(self.arrive_until);
        if answer.is_some_and(|deadline| deadline <= now) {
            self.broken(format!("tmux did not answer for {} s", PATIENCE.as_secs()));
        }
        self.starts_due();
        self.ends_due();
    }
}
