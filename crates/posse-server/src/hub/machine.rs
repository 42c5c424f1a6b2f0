//! The decisions of the hub, without IO: [`HubMachine::handle`] takes an event and the time, and returns effects.
//!
//! Two orders always hold. An event is written, or refused by the disk, before it is published. A terminal is written
//! before it is started: after a crash in between, its record shows that it is missing.

mod adoption;
mod creation;
mod ending;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use posse_api::{DeleteReason, EventBody, LogEvent, StatusView, VERSION};
use posse_core::ids::TerminalId;
use posse_core::peer::Household;
use posse_core::status::{Status, StatusKind};
use posse_term::wire::KeeperRequest;
use tokio::sync::oneshot;

use super::messages::*;
use crate::pump::{self, PumpHandle};
use crate::record::Record;
use crate::retention;
use crate::store::{Change, KnownInput, WriteResult};

use adoption::PumpState;
use creation::{PendingTerminal, StartingAgent};
use ending::{ShutdownState, ShutdownStep};

#[derive(Default)]
pub(crate) struct HubMachine {
    /// The process of the daemon.
    pid: u32,
    now: HubTime,
    effects: Vec<HubEffect>,
    terminals: BTreeMap<TerminalId, TerminalSnapshot>,
    /// Without an entry the program ended before this daemon started, or its last screen is in a file.
    pumps: BTreeMap<TerminalId, PumpState>,
    /// Input recorded before this daemon started, by terminal.
    inputs: HashMap<TerminalId, Vec<KnownInput>>,
    connected: bool,
    keeper_pid: Option<i32>,
    /// A connection was requested and is not established yet.
    reconnecting: bool,
    problems: HubProblems,
    /// Callers that wait for the pump of a terminal.
    finds: Vec<(TerminalId, oneshot::Sender<Option<PumpHandle>>)>,
    /// Terminals that are being recorded or started.
    pending: BTreeMap<TerminalId, PendingTerminal>,
    starting: BTreeMap<TerminalId, StartingAgent>,
    end_later: Vec<(TerminalId, u32)>,
    deleting: BTreeMap<TerminalId, Vec<DeleteReply>>,
    shutdown: Option<ShutdownState>,
    /// The daemon may exit. Later events are not handled.
    pub(super) finished: bool,
    since_tidy: u64,
    loads: u64,
}

impl HubMachine {
    pub(crate) fn new(records: Vec<Record>, known_inputs: Vec<(TerminalId, KnownInput)>, pid: u32) -> Self {
        let mut inputs: HashMap<TerminalId, Vec<KnownInput>> = HashMap::new();
        for (id, input) in known_inputs {
            inputs.entry(id).or_default().push(input);
        }
        let terminals = records.into_iter().map(|record| (record.id, TerminalSnapshot::new(record))).collect();
        Self { pid, terminals, inputs, ..Self::default() }
    }

    pub(super) fn start(&mut self, now: HubTime) -> Vec<HubEffect> {
        self.now = now;
        self.emit(self.event(EventBody::DaemonStarted { pid: self.pid, version: VERSION.into() }), vec![]);
        self.tidy(TidyScope::Everything);
        std::mem::take(&mut self.effects)
    }

    pub(super) fn handle(&mut self, event: HubEvent, now: HubTime) -> Vec<HubEffect> {
        self.now = now;
        match event {
            HubEvent::Command(command) => self.command(command),
            HubEvent::Pump(id, offset, report) => self.pump_report(id, offset, report),
            HubEvent::Keeper(report) => self.keeper_report(report),
            HubEvent::Stored(then, result) => then(self, result),
            HubEvent::RecordingsGrown => self.tidy_files(TidyScope::Recordings),
            HubEvent::TerminalLoaded { id, load, provider, emulator } => self.loaded(id, load, provider, emulator),
        }
        self.answer_finds();
        self.rest_when_all_ended();
        if self.finished {
            self.say_farewell();
        }
        std::mem::take(&mut self.effects)
    }

    fn push(&mut self, effect: HubEffect) {
        self.effects.push(effect);
    }

    fn reply<T: Send + 'static>(&mut self, to: oneshot::Sender<T>, answer: T) {
        self.push(HubEffect::Reply(Box::new(move || drop(to.send(answer)))));
    }

    fn ask_keeper(&mut self, request: KeeperRequest) {
        self.push(HubEffect::Keeper(Box::new(request)));
    }

    fn tell_pump(&mut self, id: TerminalId, event: pump::PumpEvent) {
        self.push(HubEffect::ToPump(id, Box::new(event)));
    }

    fn event(&self, body: EventBody) -> LogEvent {
        LogEvent { seq: None, at: self.now.wall.timestamp(), terminal: None, offset: None, body }
    }

    fn event_of(&self, id: TerminalId, body: EventBody) -> LogEvent {
        LogEvent { terminal: Some(id), ..self.event(body) }
    }

    fn write(&mut self, changes: Vec<Change>, retry: bool, then: impl FnOnce(&mut Self, WriteResult) + Send + 'static) {
        self.push(HubEffect::Write { changes, retry, then: Box::new(then), forget: None });
    }

    /// Writes an event and its changes until the disk takes them. The event is published after the first attempt.
    fn emit(&mut self, event: LogEvent, changes: Vec<Change>) {
        self.emit_and(event, changes, None, |_| ());
    }

    /// Like `emit`, and then takes another step. The keeper forgets the terminal `forget` when the event is committed.
    fn emit_and(
        &mut self,
        event: LogEvent,
        mut changes: Vec<Change>,
        forget: Option<TerminalId>,
        then: impl FnOnce(&mut Self) + Send + 'static,
    ) {
        changes.push(logged(&event));
        let then: AfterWrite = Box::new(move |machine, result| {
            machine.publish_stored(event, result);
            then(machine);
        });
        self.push(HubEffect::Write { changes, retry: true, then, forget });
    }

    fn put(&self, id: TerminalId) -> Vec<Change> {
        let record = self.terminals.get(&id).map(|entry| entry.record.clone());
        record.into_iter().map(|record| Change::Put(Box::new(record))).collect()
    }

    fn publish_stored(&mut self, mut event: LogEvent, result: WriteResult) {
        match result {
            Ok(numbers) => {
                event.seq = numbers.last().copied();
                self.problems.disk = None;
                self.since_tidy += 1;
                if self.since_tidy >= retention::ROUND {
                    self.tidy(TidyScope::Everything);
                }
            }
            // Published anyway, because the event has happened. The store retries by itself.
            Err(why) => self.problems.disk = Some(why),
        }
        self.publish(event);
    }

    /// Publishes events and answers the caller. Nothing is published if the disk refused.
    fn committed(
        &mut self,
        events: Vec<LogEvent>,
        result: WriteResult,
        reply: oneshot::Sender<Result<(), StoreRefusal>>,
    ) {
        let done = result.map(|numbers| {
            for (event, number) in events.into_iter().zip(numbers) {
                self.publish_stored(event, Ok(vec![number]));
            }
        });
        self.reply(reply, done);
    }

    fn publish(&mut self, event: LogEvent) {
        self.push(HubEffect::Publish(Box::new(event)));
    }

    fn tidy(&mut self, scope: TidyScope) {
        self.since_tidy = 0;
        for id in retention::expired(self.terminals.values().map(|entry| &entry.record), self.now.wall) {
            self.terminals.remove(&id);
            self.pumps.remove(&id);
            self.push(HubEffect::DropPump(id));
            let deleted = EventBody::TerminalDeleted { reason: DeleteReason::Expired, processes_left: 0 };
            self.emit(self.event_of(id, deleted), vec![Change::Drop(id)]);
        }
        let before = self.now.wall.0 - retention::AGE.as_millis() as i64;
        self.write(vec![Change::Trim { before, keep: retention::EVENTS }], false, |_, _| ());
        self.tidy_files(scope);
    }

    fn tidy_files(&mut self, scope: TidyScope) {
        let known = self.terminals.keys().copied().collect();
        let running: BTreeSet<TerminalId> = self.running().collect();
        self.push(HubEffect::Tidy(TidyRequest { scope, known, running }));
    }

    fn pump_report(&mut self, id: TerminalId, offset: Option<u64>, report: PumpReport) {
        let about = |machine: &Self, body| LogEvent { offset, ..machine.event_of(id, body) };
        let Some(entry) = self.terminals.get_mut(&id) else {
            // The terminal was deleted, so its last screen is removed too.
            if matches!(report, PumpReport::Ended { .. }) {
                self.push(HubEffect::RemoveFiles(id));
            }
            return;
        };
        match report {
            PumpReport::Status(status) => self.status_changed(id, offset, *status),
            PumpReport::Title(title) => {
                entry.title.clone_from(&title);
                self.publish(about(self, EventBody::TitleChanged { title }));
            }
            PumpReport::Size(size) => {
                entry.size = size;
                self.publish(about(self, EventBody::Resized { rows: size.rows(), cols: size.cols() }));
            }
            PumpReport::Signal(signal) => self.publish(about(self, EventBody::Signal { signal })),
            PumpReport::Event(body) => self.emit(about(self, *body), vec![]),
            PumpReport::Watched(watched) => entry.watched = watched,
            PumpReport::Ended { exit, status, screen_saved, keeper_knows } => {
                entry.record.exit = Some(exit);
                // The last screen is in a file, and read from there when a client asks for it.
                if screen_saved {
                    self.pumps.remove(&id);
                    self.push(HubEffect::DropPump(id));
                }
                if let Some(status) = status {
                    self.status_changed(id, offset, *status);
                }
                self.push(HubEffect::RemoveEventsFile(id));
                let event = about(self, EventBody::TerminalExited { exit, text: exit.to_string() });
                // If the keeper forgot it before this is written, the next daemon would consider the terminal lost.
                self.emit_and(event, self.put(id), keeper_knows.then_some(id), |_| ());
            }
        }
    }

    fn status_changed(&mut self, id: TerminalId, offset: Option<u64>, status: Status) {
        let now = self.now.wall;
        let Some(entry) = self.terminals.get_mut(&id) else { return };
        entry.record.last_active = now;
        let view = StatusView::from(&status);
        let awaiting = status.awaiting_reaction;
        let at_rest = status.kind != StatusKind::Processing;
        let before = std::mem::replace(&mut entry.record.status, status);
        let unchanged = before.awaiting_reaction && entry.record.status.unproven && at_rest;
        let changes = self.put(id);
        if awaiting {
            // An input was submitted, which `prompt_delivered` reports. The status is not known yet.
            self.write(changes, true, |_, _| ());
        } else {
            let body = if unchanged { EventBody::NoReaction(view) } else { EventBody::StatusChanged(view) };
            self.emit(LogEvent { offset, ..self.event_of(id, body) }, changes);
        }
        self.answer_when_ready(id);
    }

    fn command(&mut self, command: HubCommand) {
        match command {
            HubCommand::Create(request, reply) => self.create(*request, reply),
            HubCommand::List(reply) => {
                let all = self.snapshots(|_| true);
                self.reply(reply, all);
            }
            HubCommand::Show(id, reply) => {
                let shown = self.terminals.get(&id).cloned();
                self.reply(reply, shown);
            }
            HubCommand::Household(reply) => {
                let household = self.household();
                self.reply(reply, household);
            }
            HubCommand::Find(id, reply) => self.finds.push((id, reply)),
            HubCommand::Resize(id, size) => {
                if let Some(entry) = self.terminals.get_mut(&id) {
                    entry.record.size = size;
                    let changes = self.put(id);
                    self.emit(self.event_of(id, EventBody::SizeSet { rows: size.rows(), cols: size.cols() }), changes);
                    self.tell_pump(id, pump::PumpEvent::Command(pump::PumpCommand::Resize(size)));
                }
            }
            HubCommand::Touch(id) => {
                if let Some(entry) = self.terminals.get_mut(&id) {
                    entry.record.last_active = self.now.wall;
                }
            }
            HubCommand::HangUp(id, reply) => self.push(HubEffect::Confirm(Some(id), reply)),
            HubCommand::ProbeKeeper(reply) => self.push(HubEffect::Confirm(None, reply)),
            HubCommand::Delete { id, grace_ms, reply } => self.delete(id, grace_ms, reply),
            HubCommand::Stop { all, reply } => self.stop(all, reply),
            HubCommand::Record(on) => self.push(HubEffect::Record(on)),
            HubCommand::Commit { change, events, reply } => {
                let events: Vec<LogEvent> = events.into_iter().map(|body| self.event(body)).collect();
                let for_log = |event: &LogEvent| LogEvent { body: event.body.for_log(), ..event.clone() };
                let mut changes: Vec<Change> =
                    events.iter().map(|event| Change::Event(Box::new(for_log(event)))).collect();
                changes.push(*change);
                // Not tried again: the caller learns of it and may repeat the request.
                self.write(changes, false, |machine, result| machine.committed(events, result, reply));
            }
            HubCommand::Health(reply) => self.push(HubEffect::Health(self.problems.clone(), reply)),
        }
    }

    /// Returns the processes of the daemon, the keeper and the terminals, which distinguish them from others.
    fn household(&self) -> Household {
        let leader =
            |entry: &TerminalSnapshot| entry.record.pid.filter(|_| entry.record.exit.is_none()).map(|pid| pid as i32);
        let terminals = self.terminals.values().map(|entry| (entry.record.id, leader(entry))).collect();
        Household { keeper: self.keeper_pid, daemon: self.pid as i32, terminals }
    }

    fn snapshots(&self, which: impl Fn(&TerminalSnapshot) -> bool) -> Vec<TerminalSnapshot> {
        let chosen = self.terminals.values().filter(|entry| which(entry));
        let mut snapshots: Vec<TerminalSnapshot> = chosen.cloned().collect();
        snapshots.sort_by_key(|snapshot| (snapshot.record.created, snapshot.record.id));
        snapshots
    }

    fn running(&self) -> impl Iterator<Item = TerminalId> {
        self.terminals.values().filter(|entry| entry.record.exit.is_none()).map(|entry| entry.record.id)
    }
}

fn logged(event: &LogEvent) -> Change {
    Change::Event(Box::new(event.clone()))
}
