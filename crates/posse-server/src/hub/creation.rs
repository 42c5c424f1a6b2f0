//! Starting a terminal: checked, written down, started, told. In this order.

use posse_core::ids::{Name, TerminalId};
use posse_core::status::Life;
use posse_term::wire::{Program, Request, Wiring};
use serde_json::json;
use tokio::sync::oneshot;

use super::{CreateError, Creation, Entry, Hub, Message, SessionChoice, View, event, view};
use crate::pump::Beginning;
use crate::record::{Backend, LogEvent, Record};
use crate::store::{self, Outcome};

/// A terminal whose record is being written, or whose program is being started.
pub(super) struct Creating {
    pub(super) program: Program,
    /// `None` once it has been answered.
    pub(super) reply: Option<oneshot::Sender<Result<View, CreateError>>>,
    pub(super) at_once: bool,
    /// Its record is written.
    pub(super) stored: bool,
}

impl Creating {
    pub(super) fn answer(&mut self, answer: Result<View, CreateError>) {
        if let Some(reply) = self.reply.take() {
            let _ = reply.send(answer);
        }
    }
}

impl Hub {
    pub(super) fn create(&mut self, creation: Creation, reply: oneshot::Sender<Result<View, CreateError>>) {
        if self.stopping.is_some() {
            return; // Dropping `reply` says so.
        }
        if let (Some(why), Backend::Embedded) = (&self.keeper_problem, creation.backend) {
            let _ = reply.send(Err(CreateError::NoKeeper(why.clone())));
            return;
        }
        if let Some(name) = &creation.name
            && self.terminals.values().any(|entry| &entry.record.name == name)
        {
            let _ = reply.send(Err(CreateError::NameTaken(name.clone())));
            return;
        }
        let session = match self.choose_session(creation.session) {
            Ok(session) => session,
            Err(error) => return drop(reply.send(Err(error))),
        };
        let id = loop {
            let id = TerminalId::from_random(crate::random() as u32);
            if !self.terminals.contains_key(&id) {
                break id;
            }
        };
        let now = crate::now();
        let program = creation.command.first().map_or("", String::as_str).rsplit('/').next().unwrap_or("");
        let what = creation.agent_profile.as_deref().unwrap_or(program);
        let name = creation.name.unwrap_or_else(|| Name::random_terminal(what, crate::random() as u16));
        let record = Record {
            id,
            name,
            session,
            backend: creation.backend,
            provider: creation.provider,
            agent_profile: creation.agent_profile,
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
        self.terminals.insert(id, Entry::new(record));
        self.creating.insert(id, Creating { program, reply: Some(reply), at_once: creation.at_once, stored: false });
        let messages = self.messages.clone();
        // Written before it is started: after a crash in between, the terminal is known to be missing.
        self.store.write(changes, move |outcome| {
            let _ = messages.send(Message::CreationStored(id, event, outcome));
        });
    }

    fn choose_session(&self, choice: SessionChoice) -> Result<Name, CreateError> {
        let exists = |name: &Name| self.terminals.values().any(|entry| &entry.record.session == name);
        match choice {
            SessionChoice::New(None) => Ok(Name::random_session(crate::random() as u32)),
            SessionChoice::New(Some(name)) if exists(&name) => Err(CreateError::SessionTaken(name)),
            SessionChoice::Existing(name) if !exists(&name) => Err(CreateError::NoSession(name)),
            SessionChoice::New(Some(name)) | SessionChoice::Existing(name) | SessionChoice::Any(name) => Ok(name),
        }
    }

    pub(super) fn creation_stored(&mut self, id: TerminalId, event: LogEvent, outcome: Outcome) {
        if let Outcome::Refused(why) = outcome {
            self.disk_problem = Some(why.clone());
            self.terminals.remove(&id);
            if let Some(mut creating) = self.creating.remove(&id) {
                creating.answer(Err(CreateError::Store(why)));
            }
            return;
        }
        let backend = self.terminals.get(&id).map_or(Backend::Embedded, |entry| entry.record.backend);
        if self.stopping.is_some() {
            self.stored(event, outcome);
            return self.spawn_failed(id, CreateError::Ended);
        }
        if let (Some(creating), Some(entry)) = (self.creating.get_mut(&id), self.terminals.get(&id)) {
            creating.stored = true;
            if creating.at_once {
                creating.answer(Ok(view(entry)));
            }
            match (self.links.get(&backend), backend) {
                (Some(link), _) => link.send(Request::Spawn { id, program: creating.program.clone() }),
                // Started with the first terminal that wants it.
                (None, Backend::Tmux) => self.want(Backend::Tmux),
                (None, Backend::Embedded) => {
                    self.spawn_failed(id, CreateError::NoKeeper("it went away just now".into()));
                }
            }
        }
        self.stored(event, outcome);
    }

    pub(super) fn spawned(&mut self, id: TerminalId, pid: u32) {
        let Some(mut creating) = self.creating.remove(&id) else { return };
        let Some(link) = self.link_of(id).cloned() else { return };
        let Some(entry) = self.terminals.get_mut(&id) else { return };
        entry.record.pid = Some(pid);
        let mut life = Life::resumed(entry.record.status.clone(), false);
        if let Some(status) = life.handle(&posse_core::status::Event::Running, crate::mono(), crate::now()) {
            entry.record.status = status.clone();
        }
        let view = view(entry);
        let ring = u64::from(creating.program.ring);
        self.start_pump(id, Beginning::Live { link, ring, from: 0, caught_up_at: 0 });
        let changes = self.put(id);
        self.emit("terminal_started", Some(id), json!({ "pid": pid }), changes);
        creating.answer(Ok(view));
    }

    pub(super) fn spawn_failed(&mut self, id: TerminalId, error: CreateError) {
        let Some(mut creating) = self.creating.remove(&id) else { return };
        self.terminals.remove(&id);
        let data = json!({ "reason": error.to_string() });
        self.emit("terminal_failed", Some(id), data, vec![store::Change::Drop(id)]);
        creating.answer(Err(error));
    }
}
