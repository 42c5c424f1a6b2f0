//! Creates a terminal: checks, records, starts and announces it, in this order.

use std::sync::Arc;

use posse_agents::Provider;
use posse_core::status::{Event as StatusEvent, Life, StatusKind};
use posse_term::wire::{ProgramSpec, SpawnRefusal};

use super::*;
use crate::hub::messages::*;
use crate::pump::PumpBeginning;

/// A terminal whose record is being written, or whose program is being started.
pub(super) struct PendingTerminal {
    program: ProgramSpec,
    provider: Option<Arc<Provider>>,
    /// `None` once it has been answered.
    reply: Option<CreateReply>,
    at_once: bool,
    stored: bool,
}

/// An agent that runs and is not ready yet.
pub(super) struct StartingAgent {
    reply: CreateReply,
    provider: Arc<Provider>,
}

impl HubMachine {
    pub(super) fn create(&mut self, new: NewTerminal, reply: CreateReply) {
        if self.shutdown.is_some() {
            return; // The dropped `reply` tells the caller.
        }
        if let Err(error) = self.check(&new) {
            if !self.terminals.contains_key(&new.record.id) {
                self.push(HubEffect::RemoveEventsFile(new.record.id));
            }
            return self.reply(reply, Err(error));
        }
        let NewTerminal { record, program, provider, at_once, .. } = new;
        let id = record.id;
        let created = EventBody::TerminalCreated {
            name: record.name.clone(),
            session: record.session.clone(),
            command: record.command.clone(),
        };
        let event = self.event_of(id, created);
        let changes = vec![Change::Put(Box::new(record.clone())), logged(&event)];
        self.terminals.insert(id, TerminalSnapshot::new(record));
        self.pending.insert(id, PendingTerminal { program, provider, reply: Some(reply), at_once, stored: false });
        // The record is written before the program is started: after a crash in between, the terminal is known to be missing.
        self.write(changes, false, move |machine, result| machine.creation_stored(id, event, result));
    }

    fn check(&self, new: &NewTerminal) -> Result<(), CreateError> {
        let Record { id, name, session, .. } = &new.record;
        if let Some(why) = &self.problems.no_keeper {
            return Err(CreateError::NoKeeper(why.clone()));
        }
        let mut others = self.terminals.values().map(|entry| &entry.record);
        // An id is random, and hardly ever that of another terminal.
        if others.clone().any(|other| (new.named && other.name == *name) || other.id == *id) {
            return Err(CreateError::NameTaken(name.clone()));
        }
        let exists = others.any(|other| other.session == *session);
        match new.choice {
            SessionChoice::New if exists => Err(CreateError::SessionTaken(session.clone())),
            SessionChoice::Existing if !exists => Err(CreateError::NoSession(session.clone())),
            SessionChoice::New | SessionChoice::Existing | SessionChoice::Any => Ok(()),
        }
    }

    fn creation_stored(&mut self, id: TerminalId, event: LogEvent, result: WriteResult) {
        if let Err(why) = result {
            self.problems.disk = Some(why.clone());
            self.terminals.remove(&id);
            self.push(HubEffect::RemoveEventsFile(id));
            if let Some(PendingTerminal { reply: Some(reply), .. }) = self.pending.remove(&id) {
                self.reply(reply, Err(CreateError::Store(why)));
            }
            return;
        }
        self.publish_stored(event, result);
        if self.shutdown.is_some() {
            return self.spawn_failed(id, CreateError::Ended);
        }
        let (Some(pending), Some(entry)) = (self.pending.get_mut(&id), self.terminals.get(&id)) else { return };
        pending.stored = true;
        let answered = if pending.at_once { pending.reply.take() } else { None };
        if let Some(reply) = answered {
            let snapshot = entry.clone();
            self.reply(reply, Ok(snapshot));
        }
        // The keeper was already asked to end a terminal that is being deleted, and must not start it after that.
        if !self.deleting.contains_key(&id) {
            self.spawn(id);
        }
    }

    pub(super) fn spawn(&mut self, id: TerminalId) {
        let Some(program) = self.pending.get(&id).filter(|pending| pending.stored).map(|pending| &pending.program)
        else {
            return;
        };
        if self.connected {
            let program = program.clone();
            self.ask_keeper(KeeperRequest::Spawn { id, program });
        } else {
            self.reconnect();
        }
    }

    pub(super) fn spawned(&mut self, id: TerminalId, pid: u32) {
        let Some(pending) = self.pending.remove(&id) else { return };
        let now = self.now;
        let Some(entry) = self.terminals.get_mut(&id) else { return };
        entry.record.pid = Some(pid);
        // Nothing more will be known of a program that is not an agent.
        if entry.record.confirmed.is_none() {
            let mut life = Life::resumed(entry.record.status.clone(), false);
            if let Some(status) = life.handle(&StatusEvent::Running, now.mono, now.wall) {
                entry.record.status = status.clone();
            }
        }
        let snapshot = entry.clone();
        let ring = u64::from(pending.program.ring);
        let live = PumpBeginning::Live { ring, from: 0, caught_up_at: 0, over: false };
        self.start_pump(id, pending.provider.clone(), live);
        let changes = self.put(id);
        self.emit(self.event_of(id, EventBody::TerminalStarted { pid }), changes);
        match (pending.provider, pending.reply) {
            // The creator of an agent waits until the agent accepts input.
            (Some(provider), Some(reply)) => drop(self.starting.insert(id, StartingAgent { reply, provider })),
            (None, Some(reply)) => self.reply(reply, Ok(snapshot)),
            (_, None) => {}
        }
    }

    /// Answers the creator of an agent when its status shows that it is ready, or never will be.
    pub(super) fn answer_when_ready(&mut self, id: TerminalId) {
        let (Some(starting), Some(entry)) = (self.starting.get(&id), self.terminals.get(&id)) else { return };
        let status = &entry.record.status;
        let answers_itself = || {
            let start = starting.provider.manifest.start.as_ref()?;
            start.answer(status.dialog.as_ref()?, entry.record.confirmed?)
        };
        let failed = || Err(CreateError::Failed { terminal: id, reason: status.reason.clone() });
        let answer = match status.kind {
            _ if entry.record.exit.is_some() => failed(),
            StatusKind::Processing => return,
            StatusKind::WaitingUserAnswer if answers_itself().is_some() => return,
            StatusKind::Error => failed(),
            StatusKind::Idle | StatusKind::Completed | StatusKind::WaitingUserAnswer => Ok(entry.clone()),
        };
        if let Some(starting) = self.starting.remove(&id) {
            self.reply(starting.reply, answer);
        }
    }

    /// Answers the creator of a terminal that was deleted before it was ready.
    pub(super) fn cancel_creation(&mut self, id: TerminalId) {
        let pending = self.pending.remove(&id).and_then(|pending| pending.reply);
        let starting = self.starting.remove(&id).map(|starting| starting.reply);
        for reply in pending.into_iter().chain(starting) {
            self.reply(reply, Err(CreateError::Ended));
        }
    }

    pub(super) fn spawn_failed(&mut self, id: TerminalId, error: CreateError) {
        let Some(pending) = self.pending.remove(&id) else { return };
        let launch = pending.provider.as_ref().and_then(|provider| provider.manifest.launch.as_ref());
        let error = match (error, launch) {
            (CreateError::Refused(SpawnRefusal::ProgramMissing, _), Some(launch)) => {
                let program = pending.program.arguments.first().map(|program| String::from_utf8_lossy(program));
                let install = launch.install.clone();
                CreateError::NotInstalled { program: program.unwrap_or_default().into_owned(), install }
            }
            (error, _) => error,
        };
        self.terminals.remove(&id);
        self.push(HubEffect::RemoveEventsFile(id));
        let failed = EventBody::TerminalFailed { reason: error.to_string() };
        self.emit(self.event_of(id, failed), vec![Change::Drop(id)]);
        if let Some(reply) = pending.reply {
            self.reply(reply, Err(error));
        }
    }
}
