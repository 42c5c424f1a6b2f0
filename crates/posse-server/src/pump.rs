//! Runs one task per terminal: output in, screen and status out, keys back in.
//!
//! The task owns the emulator. Output arrives from the keeper with offsets. Queries in it are answered at once,
//! numbered by the offset at which they ended: a daemon that replays output after a crash does not answer twice. Only
//! changes go to the hub. The task is idle between events: an idle terminal has no timer.

mod agent;
mod answering;
mod deliver;
mod end;
mod input;
mod jobs;
mod messages;
mod text;

use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use posse_api::StreamMessage;
use posse_core::delivery::{Event, Order, Showing};
use posse_core::frame::FrameClock;
use posse_core::ids::{TerminalId, WriterId};
use posse_core::screen::Size;
use posse_core::signal::Signal;
use posse_core::status::{Event as LifeEvent, Exit, Life, Status};
use posse_term::client::KeeperLink;
use posse_term::emulator::{Emulator, HistoryLimit};
use posse_term::ring::Ring;
use posse_term::wire::{InputRefusal, KeeperEvent, KeeperRequest, MAX_FRAME, WINDOW};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;

use agent::Agent;
use jobs::{By, Queued, Wanted};
pub(crate) use messages::*;
use text::Before;

use crate::hub::{HubEvent, PumpReport};
use crate::recording::Tape;
use crate::store::{KnownInput, StoreHandle};
use crate::watch::{Item, Start, TAIL, Watchers};
use crate::watched_files::{FileWatch, WatchedFiles};
use crate::{agent_files, disk};

/// The number of checkpoints per ring of output. A checkpoint must never be older than the ring, and costs about as much as
/// printing the screen and its history once.
const CHECKPOINTS_PER_RING: u64 = 2;
/// Output in pieces of this size is a flood: it takes so long that other terminals should not wait for all of it.
const FLOOD: usize = 8 << 10;
const KNOWN_INPUTS: usize = 1024;
/// The time in which an agent draws the end of an answer after it has reported that end: three times the 180 ms
/// that Claude Code took at most.
const DRAWING: Duration = Duration::from_millis(600);
/// The time for which a terminal keeps another size to make its program repaint. Long enough for a busy program to
/// handle the signal between two frames.
const NUDGE: Duration = Duration::from_millis(100);

pub(crate) fn start(start: PumpStart, settings: PumpSettings) -> PumpHandle {
    let PumpStart { record, provider, known_inputs, beginning } = start;
    let (events, queue) = mpsc::unbounded_channel();
    let id = record.id;
    let link = settings.link;
    let (ring, caught_up_at, over, emulator, exit) = match beginning {
        PumpBeginning::Live { ring, from, caught_up_at, over } => {
            if let Some(link) = &link {
                link.send(KeeperRequest::Attach { id, from });
            }
            // The recording starts where catching up ends.
            let _ = events.send(PumpEvent::Command(PumpCommand::Picture));
            (ring, caught_up_at, over, None, None)
        }
        PumpBeginning::Ended(emulator, exit) => (0, 0, true, emulator.map(|emulator| *emulator), Some(exit)),
    };
    let handle = PumpHandle { events };
    let agent = provider.zip(record.confirmed).map(|(provider, confirmed)| {
        let mut agent = Agent::new(provider, record.agent_profile.as_deref(), confirmed);
        if caught_up_at > 0 {
            agent.restore(&record.status);
        }
        agent
    });
    let writes_events = agent.as_ref().map(|agent| &agent.provider).filter(|provider| provider.writes_events());
    let event_watch = writes_events
        .filter(|_| link.is_some())
        .map(|provider| agent_files::follow(&settings.files, &settings.events_file, provider.clone(), handle.clone()));
    let pump = Pump {
        id,
        own_handle: handle.events.downgrade(),
        pid: record.pid,
        files: settings.files,
        event_watch,
        session_file: None,
        known_inputs,
        undelivered: HashMap::new(),
        agent,
        last_wanted: Vec::new(),
        held_back: VecDeque::new(),
        writer: WriterId(crate::random().max(1)),
        typed: 0,
        emulator: emulator.unwrap_or_else(|| Emulator::new(record.size, HistoryLimit::default())),
        observed: watch::Sender::new(Observation::of(record.status.clone(), exit)),
        life: Life::resumed(record.status, exit.is_some()),
        base_size: record.size,
        last_screen: settings.last_screen,
        hub: settings.hub,
        store: settings.store,
        name: record.name.to_string(),
        tape: Tape::new(settings.recorder, id),
        link,
        ring,
        caught_up_at,
        over,
        waiting: VecDeque::new(),
        tail: Ring::new(TAIL),
        watchers: Watchers::default(),
        inputs: HashMap::new(),
        frames: FrameClock::default(),
        told_title: String::new(),
        told_watched: false,
        acknowledged: 0,
        checkpointed: 0,
        nudge_ends: None,
        last_input: None,
        before: None,
        exit,
    };
    crate::spawn(pump.run(queue));
    handle
}

struct Pump {
    id: TerminalId,
    /// Allows other threads to send events to this pump without keeping it alive.
    own_handle: mpsc::WeakUnboundedSender<PumpEvent>,
    /// The process whose session file has not been located yet.
    pid: Option<u32>,
    files: WatchedFiles,
    event_watch: Option<FileWatch>,
    session_file: Option<FileWatch>,
    known_inputs: Vec<KnownInput>,
    undelivered: HashMap<(WriterId, u64), (Order, Answerer)>,
    agent: Option<Agent>,
    /// Callers that wait for the last answer on the screen, with their deadlines.
    last_wanted: Vec<(oneshot::Sender<Option<String>>, Instant)>,
    /// Input that arrived during a delivery, and the question that was open then.
    held_back: VecDeque<(PumpInput, Option<Showing>)>,
    /// The writer of the keys that the pump types, and their number so far.
    writer: WriterId,
    typed: u64,
    emulator: Emulator,
    life: Life,
    observed: watch::Sender<Observation>,
    base_size: Size,
    last_screen: PathBuf,
    hub: mpsc::UnboundedSender<HubEvent>,
    store: StoreHandle,
    name: String,
    tape: Tape,
    /// `None` once the program has ended or its keeper is gone.
    link: Option<KeeperLink>,
    ring: u64,
    caught_up_at: u64,
    /// The program has ended; the reason follows later.
    over: bool,
    /// Commands that arrived before the replay caught up.
    waiting: VecDeque<PumpCommand>,
    /// The last output, so that a watcher can reconnect and continue.
    tail: Ring,
    watchers: Watchers,
    inputs: HashMap<(WriterId, u64), Vec<InputOrigin>>,
    frames: FrameClock<Instant>,
    told_title: String,
    told_watched: bool,
    acknowledged: u64,
    checkpointed: u64,
    nudge_ends: Option<Instant>,
    /// The line on which the cursor was when input was last sent.
    last_input: Option<u64>,
    /// The screen before the last message to the agent; `None` if another daemon sent it.
    before: Option<Before>,
    exit: Option<Exit>,
}

impl Pump {
    async fn run(mut self, mut queue: mpsc::UnboundedReceiver<PumpEvent>) {
        loop {
            let deadline = self.frames.deadline().into_iter().chain(self.nudge_ends).chain(self.agent_deadline()).min();
            let event = match deadline {
                None => queue.recv().await,
                Some(deadline) => match tokio::time::timeout_at(deadline, queue.recv()).await {
                    Ok(event) => event,
                    Err(_) => {
                        self.on_time(Instant::now());
                        continue;
                    }
                },
            };
            match event {
                None => return,
                Some(PumpEvent::Keeper(event)) => {
                    let flood = matches!(&event, KeeperEvent::Output { bytes, .. } if bytes.len() >= FLOOD);
                    self.keeper(event).await;
                    if flood {
                        // Other terminals get their turn before the next piece.
                        tokio::task::yield_now().await;
                    }
                }
                Some(PumpEvent::KeeperLost) => self.ended(Exit::Lost).await,
                Some(PumpEvent::InputNoted { writer, sequence, written }) => {
                    self.delivery_noted(writer, sequence, written);
                }
                Some(PumpEvent::AnswerNoted(seq)) => self.answer_noted(seq),
                Some(PumpEvent::Hook(payload)) => self.hook(&payload),
                Some(PumpEvent::SessionFile(content)) => {
                    let said = self.signals().and_then(|signals| signals.session_file(&content));
                    self.said(said);
                }
                Some(PumpEvent::SessionFileLocated(file)) => self.watch_session_file(&file),
                Some(PumpEvent::Said(said, report)) => {
                    self.reported(report);
                    self.said(said);
                }
                Some(PumpEvent::Command(command)) if self.catching_up() => self.waiting.push_back(command),
                Some(PumpEvent::Command(command)) => self.command(command),
            }
        }
    }

    fn agent_deadline(&self) -> Option<Instant> {
        let life = self.agent.as_ref().and_then(|_| self.life.deadline());
        let work = self.agent.as_ref().and_then(Agent::deadline);
        let wanted = self.last_wanted.iter().map(|(_, until)| *until);
        life.into_iter().chain(work).map(crate::instant).chain(wanted).min()
    }

    fn catching_up(&self) -> bool {
        self.link.is_some() && self.tail.end() < self.caught_up_at
    }

    async fn keeper(&mut self, event: KeeperEvent) {
        match event {
            KeeperEvent::Checkpoint { offset, blob, .. } => match Emulator::restore(&blob, HistoryLimit::default()) {
                Ok(emulator) => {
                    self.emulator = emulator;
                    self.checkpointed = offset;
                    self.told_title = String::new();
                }
                Err(error) => tracing::warn!(terminal = %self.id, "the screen kept for us cannot be read: {error}"),
            },
            KeeperEvent::Output { offset, bytes, .. } => self.output(offset, bytes),
            KeeperEvent::Resized { offset, size, .. } if offset >= self.emulator.offset() => self.resized(offset, size),
            KeeperEvent::InputDone { writer, sequence, .. } => self.answer_all(writer, sequence, Ok(())),
            KeeperEvent::InputRefused { writer, sequence, why, .. } => {
                let why = match why {
                    InputRefusal::NotReading => InputError::Ended,
                    InputRefusal::Full => InputError::Full,
                    InputRefusal::Untaken => InputError::KeeperSilent,
                };
                self.answer_all(writer, sequence, Err(why));
            }
            KeeperEvent::Spawned { .. } if self.agent.is_none() => self.live(&LifeEvent::Running),
            // Sent to all peers at once, so it may overtake the output just requested. It is sent again after that.
            KeeperEvent::Exited { end, .. } if self.tail.end() < end => {}
            KeeperEvent::Exited { exit, .. } => self.ended(exit).await,
            _ => {}
        }
    }

    fn output(&mut self, offset: u64, mut bytes: Vec<u8>) {
        let replayed = self.catching_up();
        // Output from before this pump started is not new; output after it may be.
        let old = self.caught_up_at.saturating_sub(offset);
        if replayed && old > 0 && old < bytes.len() as u64 {
            let new = bytes.split_off(old as usize);
            self.output(offset, bytes);
            return self.output(offset + old, new);
        }
        if offset != self.tail.end() {
            self.tail.skip_to(offset);
        }
        self.tail.push(&bytes);
        let bytes = Bytes::from(bytes);
        let end = offset + bytes.len() as u64;
        let seen = self.emulator.offset();
        if end > seen {
            if offset > seen {
                tracing::warn!(terminal = %self.id, "{} bytes of output were lost", offset - seen);
                self.emulator.skip_to(offset);
                self.live(&LifeEvent::Missed);
                self.nudge();
            }
            let new = bytes.slice(seen.saturating_sub(offset) as usize..);
            let heard = self.emulator.feed(&new);
            self.tape.output(&new);
            if offset > seen && self.tape.is_started() {
                self.record_picture();
            }
            if let Some(link) = &self.link {
                for reply in heard.replies {
                    let (id, writer, sequence) = (self.id, WriterId::RESPONDER, reply.at);
                    link.send(KeeperRequest::Input { id, writer, sequence, bytes: reply.bytes });
                }
            }
            for signal in heard.signals {
                if replayed {
                    self.recall(&signal);
                } else {
                    self.signal(&signal);
                }
            }
            if heard.screen_lost {
                tracing::error!(terminal = %self.id, "the screen was lost to a bug in the emulator; the program is asked to repaint");
                self.nudge();
            }
            let now = Instant::now();
            self.frames.printed(heard.frame_ended && !self.emulator.in_frame(), now);
            if self.frames.due(now) {
                self.look();
            }
            if replayed && !self.catching_up() && self.emulator.size() != self.base_size {
                self.tell_hub(PumpReport::Size(self.emulator.size()));
            }
        }
        if self.watchers.tell(&Item::Output { offset, bytes }) {
            self.fit_views();
        }
        self.account(end);
    }

    /// Lets the keeper send more, and sends it a checkpoint when the ring is about to overwrite the last one.
    fn account(&mut self, end: u64) {
        let Some(link) = &self.link else { return };
        if end - self.acknowledged >= WINDOW / 4 {
            self.acknowledged = end;
            link.send(KeeperRequest::Acknowledge { id: self.id, offset: end });
        }
        let offset = self.emulator.offset();
        if offset.saturating_sub(self.checkpointed) >= self.ring / CHECKPOINTS_PER_RING {
            self.checkpointed = offset;
            let blob = self.emulator.checkpoint();
            // A giant screen full of colours may not fit into a frame. Then the ring alone must suffice.
            if blob.len() < MAX_FRAME / 2 {
                link.send(KeeperRequest::Checkpoint { id: self.id, offset, blob });
            }
        }
        self.run_waiting();
    }

    fn run_waiting(&mut self) {
        if !self.catching_up() {
            for command in std::mem::take(&mut self.waiting) {
                self.command(command);
            }
        }
    }

    fn record_picture(&mut self) {
        if self.link.is_some() {
            let printed = self.emulator.offset() > 0;
            let picture = if printed { self.emulator.repaint() } else { Vec::new() };
            self.tape.picture(self.emulator.size(), picture);
        }
    }

    fn signal(&mut self, signal: &Signal) {
        let said = self.signals().and_then(|signals| signals.hear(signal));
        self.said(said);
        if matches!(signal, Signal::Bell | Signal::Notification { .. }) {
            self.tell_hub(PumpReport::Signal(signal.clone()));
        }
    }

    /// Reads the complete screen at the end of a frame. Replayed output is not the current screen.
    fn look(&mut self) {
        if self.catching_up() {
            return;
        }
        self.tell_title();
        self.read_screen();
        self.push_observation();
        self.tell_last_answer();
    }

    fn tell_title(&mut self) {
        if self.emulator.title() != self.told_title {
            self.told_title = self.emulator.title().to_owned();
            self.tell_hub(PumpReport::Title(self.told_title.clone()));
        }
    }

    fn resized(&mut self, offset: u64, size: Size) {
        if size == self.emulator.size() {
            return;
        }
        self.emulator.resize(size);
        self.tape.resized(size);
        self.watchers.tell(&Item::Message(StreamMessage::Resized { offset, size }));
        if !self.catching_up() {
            self.tell_hub(PumpReport::Size(size));
        }
    }

    /// Makes the program repaint by briefly changing its size.
    fn nudge(&mut self) {
        let size = self.emulator.size();
        let other = Size::clamped(if size.rows() > 1 { size.rows() - 1 } else { 2 }, size.cols());
        self.request_size(other);
        self.nudge_ends = Some(Instant::now() + NUDGE);
    }

    fn on_time(&mut self, now: Instant) {
        if self.frames.due(now) {
            self.look();
        }
        if self.nudge_ends.is_some_and(|end| end <= now) {
            self.nudge_ends = None;
            self.fit_views();
        }
        if self.agent_deadline().is_some_and(|due| due <= now) {
            self.agent_time();
            self.tell_last_answer();
        }
    }

    /// Gives the terminal the smallest size that a viewer asks for, or its own.
    fn fit_views(&mut self) {
        let watched = self.watchers.has_views();
        if std::mem::replace(&mut self.told_watched, watched) != watched {
            self.tell_hub(PumpReport::Watched(watched));
        }
        if self.nudge_ends.is_none() {
            self.request_size(self.watchers.wanted_size().unwrap_or(self.base_size));
        }
    }

    fn request_size(&self, size: Size) {
        if let Some(link) = &self.link {
            link.send(KeeperRequest::Resize { id: self.id, size });
        }
    }

    fn command(&mut self, command: PumpCommand) {
        match command {
            PumpCommand::Alive(reply) => {
                let _ = reply.send(self.link.is_some() && !self.over);
            }
            PumpCommand::Observe(reply) => {
                self.observed.send_replace(self.observe());
                let _ = reply.send(self.observed.subscribe());
            }
            PumpCommand::Screen(reply) => {
                let _ = reply.send(self.emulator.screen());
            }
            PumpCommand::Text(TextPart::Last, reply) if self.is_drawing() => {
                self.last_wanted.push((reply, Instant::now() + DRAWING));
            }
            PumpCommand::Text(text, reply) => {
                let _ = reply.send(self.text(text));
            }
            PumpCommand::BracketedPaste(reply) => {
                let _ = reply.send(self.emulator.bracketed_paste());
            }
            PumpCommand::Input(input) => match &self.agent {
                // Also without a question: the keys would wait for the next one.
                Some(_) if !input.may_answer => {
                    self.answer(input.sequence, input.origin, Err(InputError::KeysFromTerminal));
                }
                // One writer at a time: other input would mix with the delivery.
                Some(agent) if agent.works() => self.held_back.push_back((input, agent.showing.clone())),
                _ => self.input(input),
            },
            PumpCommand::Message { order, answerer, writer, sequence, reply } => {
                let origin = InputOrigin::Request(reply);
                match &self.agent {
                    Some(_) => self.deliver(order, answerer, writer, sequence, origin),
                    None => self.answer(sequence, origin, Err(InputError::NoAgent)),
                }
            }
            PumpCommand::Answer { wish, question, words, answerer, reply } => {
                let wanted = Wanted::Answer { wish, question, words, answerer };
                self.enqueue(Queued::Job(Box::new(wanted), By::Request(reply)));
            }
            PumpCommand::Question(reply) => self.enqueue(Queued::Look(reply)),
            PumpCommand::Explain(reply) => {
                let screen = self.emulator.screen();
                let said = self.life.claims().map(|(source, claim)| (source, claim.clone())).collect();
                let _ = reply.send(self.agent.as_ref().map(|agent| (agent.explain(&screen, &self.emulator), said)));
            }
            PumpCommand::Traces { text, reply } => {
                let printed = self.emulator.offset();
                let _ = reply.send(self.agent.as_ref().map(|agent| agent.traces(&text, printed)));
            }
            PumpCommand::Picture => self.record_picture(),
            PumpCommand::Resize(size) => {
                self.base_size = size;
                self.fit_views();
            }
            PumpCommand::Watch { from, reply } => self.watch(from, reply),
            PumpCommand::Unwatch(watcher) => {
                self.watchers.remove(watcher);
                self.fit_views();
            }
            PumpCommand::View { watcher, size } => {
                self.watchers.set_view(watcher, size);
                self.fit_views();
            }
        }
    }

    fn watch(&mut self, from: Option<u64>, reply: oneshot::Sender<Start>) {
        let (watcher, items) = self.watchers.add();
        let continued = from.and_then(|from| Some((from, self.tail.since(from)?)));
        let (offset, bytes, continued) = match continued {
            Some((from, bytes)) => (from, bytes, true),
            None => (self.emulator.offset(), self.emulator.repaint(), false),
        };
        let (size, exit) = (self.emulator.size(), self.exit);
        let start = Start { watcher, size, offset, bytes, continued, exit, items };
        if reply.send(start).is_err() {
            self.watchers.remove(watcher);
        }
    }

    /// Reports a change to the hub, with the output offset of its cause.
    fn tell_hub(&self, report: PumpReport) {
        let _ = self.hub.send(HubEvent::Pump(self.id, Some(self.emulator.offset()), report));
    }

    fn tell_status(&mut self, status: Option<Status>) {
        if let Some(status) = status {
            self.tell_hub(PumpReport::Status(Box::new(status)));
            self.push_observation();
            self.locate_session_file();
        }
    }

    /// Locates the agent's session file, once. The file need not exist yet.
    fn locate_session_file(&mut self) {
        let Some((pid, agent)) = self.pid.take().zip(self.agent.as_ref()) else { return };
        let (patterns, tell) = (agent.provider.manifest.session_file.clone(), self.tell_later());
        let locate = move |disk: &disk::Disk| {
            if let Some(file) = agent_files::locate_session(disk, &patterns, pid) {
                tell(PumpEvent::SessionFileLocated(file));
            }
        };
        drop(crate::spawn(disk::run(locate)));
    }

    /// Sends an event to this pump, from any thread and without keeping the pump alive.
    fn tell_later(&self) -> impl FnOnce(PumpEvent) + Send + 'static {
        let pump = self.own_handle.clone();
        move |event| {
            if let Some(pump) = pump.upgrade() {
                let _ = pump.send(event);
            }
        }
    }

    fn watch_session_file(&mut self, file: &Path) {
        if let (None, Some(events)) = (self.exit, self.own_handle.upgrade()) {
            self.session_file = Some(agent_files::watch_session(&self.files, file, PumpHandle { events }));
        }
    }
}

#[cfg(test)]
mod end_tests;
#[cfg(test)]
mod question_tests;
#[cfg(test)]
mod replay_tests;
#[cfg(test)]
pub(crate) mod testing;
