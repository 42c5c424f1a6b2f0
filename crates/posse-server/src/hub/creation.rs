//! Starting a terminal: checked, written down, started, told. In this order.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use posse_agents::Provider;
use posse_agents::launch::{LaunchError, Wish};
use posse_agents::start::Confirmed;
use posse_api::{EventBody, LogEvent};
use posse_core::ids::{Name, TerminalId};
use posse_core::status::{Life, StatusKind};
use posse_term::wire::{KeeperRequest, ProgramSpec, SpawnRefusal, Wiring};
use tokio::sync::oneshot;

use super::{CreateError, Creation, Entry, Hub, Message, SessionChoice, View, What, of, view};
use crate::environment;
use crate::event_files;
use crate::pump::Beginning;
use crate::record::Record;
use crate::store::{self, Outcome};

/// A terminal whose record is being written, or whose program is being started.
pub(super) struct Creating {
    pub(super) program: ProgramSpec,
    /// `None` once it has been answered.
    pub(super) reply: Option<oneshot::Sender<Result<View, CreateError>>>,
    pub(super) at_once: bool,
    /// Its record is written.
    pub(super) stored: bool,
    /// How people get the program, where we know.
    pub(super) install: Option<String>,
}

/// An agent that runs and is not ready yet.
pub(super) struct Starting {
    reply: oneshot::Sender<Result<View, CreateError>>,
    provider: Arc<Provider>,
}

/// A command, ready to be run.
struct Planned {
    provider: String,
    command: Vec<String>,
    environment: Vec<(Vec<u8>, Vec<u8>)>,
    confirmed: Option<Confirmed>,
    install: Option<String>,
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
        let planned = match self.plan(creation.what, &creation.directory, creation.environment, id) {
            Ok(planned) => planned,
            Err(error) => return drop(reply.send(Err(error.into()))),
        };
        let now = crate::now();
        let program = planned.command.first().map_or("", String::as_str).rsplit('/').next().unwrap_or("");
        let what = creation.agent_profile.as_deref().unwrap_or(program);
        let name = creation.name.unwrap_or_else(|| Name::random_terminal(what, crate::random() as u16));
        let record = Record {
            id,
            name,
            session,
            confirmed: planned.confirmed,
            provider: planned.provider,
            agent_profile: creation.agent_profile,
            directory: creation.directory.to_string_lossy().into_owned(),
            command: planned.command.clone(),
            size: creation.size,
            created: now,
            last_active: now,
            pid: None,
            exit: None,
            status: Life::starting(now).status().clone(),
        };
        let program = ProgramSpec {
            arguments: planned.command.into_iter().map(String::into_bytes).collect(),
            environment: planned.environment,
            directory: creation.directory.into_os_string().into_encoded_bytes(),
            wiring: Wiring::Terminal(creation.size),
            ring: creation.ring,
            label: serde_json::to_vec(&record).unwrap_or_default(),
        };
        let event = of(
            id,
            EventBody::TerminalCreated {
                name: record.name.clone(),
                session: record.session.clone(),
                command: record.command.clone(),
            },
        );
        let changes = vec![store::Change::Put(Box::new(record.clone())), store::Change::Event(Box::new(event.clone()))];
        self.terminals.insert(id, Entry::new(record));
        let (reply, at_once, install) = (Some(reply), creation.at_once, planned.install);
        self.creating.insert(id, Creating { program, reply, at_once, stored: false, install });
        let messages = self.messages.clone();
        // Written before it is started: after a crash in between, the terminal is known to be missing.
        self.store.write(changes, move |outcome| {
            let _ = messages.send(Message::CreationStored(id, event, outcome));
        });
    }

    /// The command and the environment of what is to be started.
    fn plan(
        &self,
        what: What,
        directory: &Path,
        environment: BTreeMap<String, String>,
        id: TerminalId,
    ) -> Result<Planned, LaunchError> {
        let agent = match what {
            What::Command(provider, command) => {
                let environment = environment::for_program(environment, &BTreeMap::new(), id);
                let provider = provider.to_owned();
                return Ok(Planned { provider, command, environment, confirmed: None, install: None });
            }
            What::Agent(agent) => agent,
        };
        let manifest = &agent.provider.manifest;
        let Some(launch) = &manifest.launch else {
            return Err(LaunchError::NotStartable(manifest.name.clone()));
        };
        let mcp = agent.profile.as_ref().and_then(|profile| profile.mcp_config(id.as_str()));
        let model = agent.model.as_deref().or_else(|| agent.profile.as_ref()?.model.as_deref());
        let hook_command = format!("{} hook", shell_quoted(&self.executable.to_string_lossy()));
        let events = agent.provider.writes_events().then(|| self.paths.events().join(id.as_str()));
        if let Some(Err(error)) = events.as_deref().map(event_files::make) {
            tracing::warn!(terminal = %id, "what it does will not be read from a file: {error}");
        }
        let events = events.map(|file| file.to_string_lossy().into_owned());
        let wish = Wish {
            mode: agent.confirmed.mode,
            version: agent.version.as_ref(),
            model,
            profile: agent.profile.as_ref().map(|profile| (profile.name.as_str(), profile.text.as_str())),
            mcp: mcp.as_deref(),
            directory: &directory.to_string_lossy(),
            trusted: agent.confirmed.trusted,
            hook_command: Some(&hook_command),
            hook_files: agent.hook_files.as_deref(),
            events: events.as_deref(),
            more: &agent.more,
        };
        let planned = launch.plan(&manifest.name, &wish)?;
        let mut caller = environment;
        caller.retain(|name, _| !planned.unset.contains(name));
        for (name, value) in planned.unless_set {
            caller.entry(name).or_insert(value);
        }
        Ok(Planned {
            provider: manifest.id.clone(),
            command: planned.command,
            environment: environment::for_program(caller, &planned.environment, id),
            confirmed: Some(agent.confirmed),
            install: Some(launch.install.clone()),
        })
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
        if self.stopping.is_some() {
            self.stored(event, outcome);
            return self.spawn_failed(id, CreateError::Ended);
        }
        if let (Some(creating), Some(entry)) = (self.creating.get_mut(&id), self.terminals.get(&id)) {
            creating.stored = true;
            if creating.at_once {
                creating.answer(Ok(view(entry)));
            }
            match &self.link {
                Some(link) => link.send(KeeperRequest::Spawn { id, program: creating.program.clone() }),
                None => self.reconnect(),
            }
        }
        self.stored(event, outcome);
    }

    pub(super) fn spawned(&mut self, id: TerminalId, pid: u32) {
        let Some(mut creating) = self.creating.remove(&id) else { return };
        let Some(link) = self.link.clone() else { return };
        let Some(entry) = self.terminals.get_mut(&id) else { return };
        entry.record.pid = Some(pid);
        // Of a program that is no agent this is all that will be known.
        if entry.record.confirmed.is_none() {
            let mut life = Life::resumed(entry.record.status.clone(), false);
            if let Some(status) = life.handle(&posse_core::status::Event::Running, crate::mono(), crate::now()) {
                entry.record.status = status.clone();
            }
        }
        let view = view(entry);
        let ring = u64::from(creating.program.ring);
        self.start_pump(id, Beginning::Live { link, ring, from: 0, caught_up_at: 0, over: false });
        let changes = self.put(id);
        self.emit(of(id, EventBody::TerminalStarted { pid }), changes);
        let agent = view.record.confirmed.and_then(|_| self.providers.load(&view.record.provider).ok());
        match (agent, creating.reply.take()) {
            // Whoever waits for an agent waits until it can be talked to.
            (Some(provider), Some(reply)) => drop(self.starting.insert(id, Starting { reply, provider })),
            (_, reply) => {
                creating.reply = reply;
                creating.answer(Ok(view));
            }
        }
    }

    /// Answers who waits for an agent, when its status says that it is up, or never will be.
    pub(super) fn started(&mut self, id: TerminalId) {
        let (Some(starting), Some(entry)) = (self.starting.get(&id), self.terminals.get(&id)) else { return };
        let status = &entry.record.status;
        let answers_itself = || {
            let (start, dialog) = (starting.provider.manifest.start.as_ref()?, status.dialog.as_ref()?);
            start.answer(dialog, entry.record.confirmed?)
        };
        let failed = || Err(CreateError::Failed { terminal: id, reason: status.reason.clone() });
        let answer = match status.kind {
            _ if entry.record.exit.is_some() => failed(),
            StatusKind::Processing => return,
            StatusKind::WaitingUserAnswer if answers_itself().is_some() => return,
            StatusKind::Error => failed(),
            StatusKind::Idle | StatusKind::Completed | StatusKind::WaitingUserAnswer => Ok(view(entry)),
        };
        if let Some(starting) = self.starting.remove(&id) {
            let _ = starting.reply.send(answer);
        }
    }

    /// It was deleted before it was ready.
    pub(super) fn starts_no_more(&mut self, id: TerminalId) {
        if let Some(starting) = self.starting.remove(&id) {
            let _ = starting.reply.send(Err(CreateError::Ended));
        }
    }

    pub(super) fn spawn_failed(&mut self, id: TerminalId, error: CreateError) {
        let Some(mut creating) = self.creating.remove(&id) else { return };
        let error = match (error, creating.install.take()) {
            (CreateError::Refused(SpawnRefusal::ProgramMissing, _), Some(install)) => {
                let program = creating.program.arguments.first().map(|program| String::from_utf8_lossy(program));
                CreateError::NotInstalled { program: program.unwrap_or_default().into_owned(), install }
            }
            (error, _) => error,
        };
        self.terminals.remove(&id);
        self.forget_events(id);
        let failed = EventBody::TerminalFailed { reason: error.to_string() };
        self.emit(of(id, failed), vec![store::Change::Drop(id)]);
        creating.answer(Err(error));
    }
}

/// A word for a shell: agents run their hooks through one.
fn shell_quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}
