//! Starting a terminal: checked, written down, started, announced, in this order.

use std::sync::Arc;

use posse_agents::Provider;
use posse_agents::launch::{LaunchError, LaunchPlan, LaunchRequest};
use posse_agents::start::Confirmed;
use posse_api::{COMMAND, Create, RING_BYTES};
use posse_core::ids::Name;
use posse_core::screen::Size;
use posse_core::status::{Event as StatusEvent, Life, StatusKind};
use posse_term::wire::{ProgramSpec, SpawnRefusal};

use super::*;
use crate::environment;
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
    pub(super) fn create(&mut self, request: NewTerminal, reply: CreateReply) {
        if self.shutdown.is_some() {
            return; // The caller learns it from the dropped `reply`.
        }
        match self.prepare(request) {
            Ok((record, mut pending)) => {
                let id = record.id;
                pending.reply = Some(reply);
                let writes_events = pending.provider.as_ref().is_some_and(|provider| provider.writes_events());
                self.terminals.insert(id, TerminalSnapshot::new(record));
                self.pending.insert(id, pending);
                if writes_events {
                    self.push(HubEffect::MakeEventsFile(id));
                } else {
                    self.write_creation(id);
                }
            }
            Err(error) => self.reply(reply, Err(error)),
        }
    }

    fn prepare(&mut self, request: NewTerminal) -> Result<(Record, PendingTerminal), CreateError> {
        let NewTerminal { create, agent, name, session, directory } = request;
        if let Some(why) = &self.problems.no_keeper {
            return Err(CreateError::NoKeeper(why.clone()));
        }
        if let Some(name) = &name
            && self.terminals.values().any(|entry| &entry.record.name == name)
        {
            return Err(CreateError::NameTaken(name.clone()));
        }
        let session = self.choose_session(session)?;
        let id = loop {
            let id = TerminalId::from_random(self.random() as u32);
            if !self.terminals.contains_key(&id) {
                break id;
            }
        };
        let shown_directory = directory.to_string_lossy().into_owned();
        let plan = match &agent {
            Some(agent) => self.plan(agent, &create, &shown_directory, id)?,
            None => LaunchPlan { command: create.command, ..LaunchPlan::default() },
        };
        let name = name.unwrap_or_else(|| {
            let program = plan.command.first().map_or("", String::as_str).rsplit('/').next().unwrap_or("");
            Name::random_terminal(create.agent_profile.as_deref().unwrap_or(program), self.random() as u16)
        });
        let mut environment = create.environment;
        environment.retain(|name, _| !plan.unset.contains(name));
        for (name, value) in plan.unless_set {
            environment.entry(name).or_insert(value);
        }
        let now = self.now.wall;
        let mode = create.mode.unwrap_or_default();
        let record = Record {
            id,
            name,
            session,
            confirmed: agent.as_ref().map(|_| Confirmed { trusted: create.trusted, mode }),
            provider: create.provider.unwrap_or_else(|| COMMAND.into()),
            agent_profile: create.agent_profile,
            directory: shown_directory,
            command: plan.command,
            size: create.size.unwrap_or(Size::DEFAULT),
            created: now,
            last_active: now,
            pid: None,
            exit: None,
            status: Life::starting(now).status().clone(),
        };
        let program = ProgramSpec {
            arguments: record.command.iter().cloned().map(String::into_bytes).collect(),
            environment: environment::for_program(environment, &plan.environment, id),
            directory: directory.into_os_string().into_encoded_bytes(),
            size: record.size,
            ring: create.ring_bytes.unwrap_or(RING_BYTES),
            label: serde_json::to_vec(&record)?,
        };
        let at_once = create.wait == Some(false);
        let provider = agent.map(|agent| agent.provider);
        Ok((record, PendingTerminal { program, provider, reply: None, at_once, stored: false }))
    }

    fn choose_session(&mut self, choice: SessionChoice) -> Result<Name, CreateError> {
        let exists = |name: &Name| self.terminals.values().any(|entry| &entry.record.session == name);
        match choice {
            SessionChoice::New(None) => Ok(Name::random_session(self.random() as u32)),
            SessionChoice::New(Some(name)) if exists(&name) => Err(CreateError::SessionTaken(name)),
            SessionChoice::Existing(name) if !exists(&name) => Err(CreateError::NoSession(name)),
            SessionChoice::New(Some(name)) | SessionChoice::Existing(name) | SessionChoice::Any(name) => Ok(name),
        }
    }

    fn plan(
        &self,
        agent: &AgentStart,
        create: &Create,
        directory: &str,
        id: TerminalId,
    ) -> Result<LaunchPlan, LaunchError> {
        let manifest = &agent.provider.manifest;
        let launch = manifest.launch.as_ref().ok_or_else(|| LaunchError::NotStartable(manifest.name.clone()))?;
        let profile = agent.profile.as_ref();
        let mcp = profile.and_then(|profile| profile.mcp_config(id.as_str()));
        let hook_command = format!("{} hook", shell_quoted(&self.host.executable.to_string_lossy()));
        let events = agent.provider.writes_events().then(|| self.host.events_directory.join(id.as_str()));
        let events = events.map(|file| file.to_string_lossy().into_owned());
        let wish = LaunchRequest {
            mode: create.mode.unwrap_or_default(),
            version: agent.version.as_ref(),
            model: create.model.as_deref().or_else(|| profile?.model.as_deref()),
            profile: profile.map(|profile| (profile.name.as_str(), profile.text.as_str())),
            mcp: mcp.as_deref(),
            directory,
            trusted: create.trusted,
            hook_command: Some(&hook_command),
            hook_files: agent.hook_files.as_deref(),
            events: events.as_deref(),
            more: &create.command,
        };
        launch.plan(&manifest.name, &wish)
    }

    /// The record is written before the program is started: after a crash in between, the terminal is known to be missing.
    fn write_creation(&mut self, id: TerminalId) {
        let Some(record) = self.terminals.get(&id).map(|entry| entry.record.clone()) else { return };
        let created = EventBody::TerminalCreated {
            name: record.name.clone(),
            session: record.session.clone(),
            command: record.command.clone(),
        };
        let event = self.event_of(id, created);
        let changes = vec![Change::Put(Box::new(record)), logged(&event)];
        self.write(changes, false, move |machine, result| machine.creation_stored(id, event, result));
    }

    pub(super) fn events_file_made(&mut self, id: TerminalId) {
        if self.pending.contains_key(&id) {
            self.write_creation(id);
        } else {
            self.push(HubEffect::RemoveEventsFile(id));
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
        // Nothing more will be known of a program that is no agent.
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

    /// Answers the creator of an agent when its status says that it is ready, or never will be.
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

/// A word for a shell: agents run their hooks through one.
fn shell_quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}
