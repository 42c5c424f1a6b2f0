//! Each test is a story: events go in, and the resulting effects are compared as lines of text.

mod creation;
mod ending;
mod keeper;
mod writing;

use std::collections::VecDeque;

use posse_agents::launch::Mode;
use posse_agents::start::Confirmed;
use posse_api::COMMAND;
use posse_core::screen::Size;
use posse_core::status::{Exit, Life};
use posse_core::time::{Mono, Wall};
use posse_term::client::{KeeperLink, Untaken};
use posse_term::wire::{KeeperEvent, ProgramSpec, SpawnRefusal, TerminalSummary};

use super::*;
use crate::pump::PumpBeginning;
use crate::store::WriteError;

/// The store's error when it refuses a batch.
const REFUSED: &str = "the database cannot be written: the thread that writes the database has ended";
const DAY: i64 = 24 * 3600 * 1000;

/// A machine with descriptions of its effects. The test plays the store, the keeper and the disk.
struct Story {
    machine: HubMachine,
    log: Vec<String>,
    /// The pending writes of the store.
    writes: VecDeque<AfterWrite>,
    /// The pending loads of the disk.
    loads: VecDeque<LoadTerminal>,
    /// Yields the answer of each waiting caller, once.
    waiting: Vec<Box<dyn FnMut() -> Option<String>>>,
    seq: i64,
    wall: i64,
}

impl Story {
    /// Creates a daemon that already knows these terminals.
    fn begin(records: Vec<Record>) -> Self {
        let mut story = Self {
            machine: HubMachine::new(records, Vec::new(), 1),
            log: Vec::new(),
            writes: VecDeque::new(),
            loads: VecDeque::new(),
            waiting: Vec::new(),
            seq: 0,
            wall: 15 * DAY,
        };
        let effects = story.machine.start(story.now());
        story.take(effects);
        story
    }

    /// Creates a daemon with a keeper that holds nothing.
    fn connected() -> Self {
        let mut story = Self::begin(vec![]);
        story.keeper_up(vec![]);
        story.all_stored();
        story.log.clear();
        story
    }

    /// Creates a connected daemon with a running program `a`.
    fn with_running() -> (Self, TerminalId) {
        let mut story = Self::connected();
        story.create("a");
        story.stored();
        let id = story.id("a");
        story.spawned(id);
        story.all_stored();
        story.log.clear();
        (story, id)
    }

    /// Creates a daemon that has adopted this agent, whose manifest is still being read.
    fn with_loading(agent: &Record) -> Self {
        let mut story = Self::begin(vec![agent.clone()]);
        story.keeper_up(vec![summary(agent, None)]);
        story.log.clear();
        story
    }

    fn now(&self) -> HubTime {
        HubTime { wall: Wall(self.wall), mono: Mono::default() }
    }

    fn id(&self, name: &str) -> TerminalId {
        let named = self.machine.terminals.values().find(|entry| entry.record.name.to_string() == name);
        named.expect("the terminal exists").record.id
    }

    fn send(&mut self, event: HubEvent) {
        let effects = self.machine.handle(event, self.now());
        self.take(effects);
    }

    fn keeper(&mut self, report: KeeperReport) {
        self.send(HubEvent::Keeper(report));
    }

    fn spawned(&mut self, id: TerminalId) {
        self.keeper(KeeperReport::Event(KeeperEvent::Spawned { id, pid: 10 }));
    }

    fn family_ended(&mut self, id: TerminalId, left: u32) {
        self.keeper(KeeperReport::Event(KeeperEvent::Ended { id, left }));
    }

    fn resting(&mut self) {
        self.keeper(KeeperReport::Event(KeeperEvent::Resting));
    }

    fn lost(&mut self) {
        self.keeper(KeeperReport::Lost("killed".into()));
    }

    fn untaken(&mut self, untaken: Untaken) {
        self.keeper(KeeperReport::Untaken(untaken, "it was stopped".into()));
    }

    fn keeper_up(&mut self, held: Vec<TerminalSummary>) {
        let (link, _requests) = KeeperLink::unconnected();
        self.keeper(KeeperReport::Up { link, held, saved_screens: BTreeSet::new() });
    }

    fn pump(&mut self, id: TerminalId, report: PumpReport) {
        self.send(HubEvent::Pump(id, Some(5), report));
    }

    fn exits(&mut self, id: TerminalId) {
        let exit = Exit::Code(0);
        self.pump(id, PumpReport::Ended { exit, status: None, screen_saved: true, keeper_knows: true });
    }

    fn ask<T: 'static>(
        &mut self,
        show: impl Fn(T) -> String + 'static,
        command: impl FnOnce(oneshot::Sender<T>) -> HubCommand,
    ) {
        let (reply, mut answer) = oneshot::channel();
        self.waiting.push(Box::new(move || match answer.try_recv() {
            Ok(answer) => Some(show(answer)),
            Err(oneshot::error::TryRecvError::Closed) => Some("dropped".into()),
            Err(oneshot::error::TryRecvError::Empty) => None,
        }));
        self.send(HubEvent::Command(command(reply)));
        self.note_answers();
    }

    fn create(&mut self, name: &str) {
        self.create_with(new_terminal(name));
    }

    fn create_with(&mut self, request: NewTerminal) {
        let show = |answer: Result<TerminalSnapshot, CreateError>| match answer {
            Ok(snapshot) => format!("created {}", snapshot.record.name),
            Err(error) => format!("not created: {error}"),
        };
        self.ask(show, |reply| HubCommand::Create(Box::new(request), reply));
    }

    fn delete(&mut self, id: TerminalId) {
        let show = |answer: Result<Option<u32>, KeeperSilent>| match answer {
            Ok(Some(left)) => format!("deleted, {left} left"),
            Ok(None) => "nothing to delete".into(),
            Err(error) => format!("not deleted: {error}"),
        };
        self.ask(show, |reply| HubCommand::Delete { id, grace_ms: 1, reply });
    }

    fn stop(&mut self, all: bool) {
        let show = |answer: Result<StoppedDaemon, KeeperSilent>| match answer {
            Ok(stopped) => format!("stopped, {} running", stopped.running.len()),
            Err(error) => format!("not stopped: {error}"),
        };
        self.ask(show, |reply| HubCommand::Stop { all, reply });
    }

    fn find(&mut self, id: TerminalId) {
        let show = |found: Option<PumpHandle>| format!("found {}", found.is_some());
        self.ask(show, |reply| HubCommand::Find(id, reply));
    }

    /// Reports that the store has written the oldest batch.
    fn stored(&mut self) {
        self.seq += 1;
        let then = self.writes.pop_front().expect("something is to be written");
        self.send(HubEvent::Stored(then, Ok(vec![self.seq])));
    }

    fn all_stored(&mut self) {
        while !self.writes.is_empty() {
            self.stored();
        }
    }

    /// Reports that the disk has refused the oldest batch.
    fn refused(&mut self) {
        let then = self.writes.pop_front().expect("something is to be written");
        self.send(HubEvent::Stored(then, Err(WriteError::ThreadEnded.into())));
    }

    /// Reports that the disk has read the data for a pump.
    fn loaded(&mut self) {
        let load = self.loads.pop_front().expect("something is to be read");
        let provider = load.provider.map(|_| agent_provider());
        self.send(HubEvent::TerminalLoaded { id: load.id, load: load.number, provider, emulator: None });
    }

    #[track_caller]
    fn expect(&mut self, expected: &[&str]) {
        self.note_answers();
        assert_eq!(std::mem::take(&mut self.log), expected);
    }

    fn note_answers(&mut self) {
        let log = &mut self.log;
        self.waiting.retain_mut(|answer| match answer() {
            Some(text) => {
                log.push(format!("reply: {text}"));
                false
            }
            None => true,
        });
    }

    fn take(&mut self, effects: Vec<HubEffect>) {
        for effect in effects {
            let line = match effect {
                HubEffect::Write { changes, retry, then, forget } => {
                    self.writes.push_back(then);
                    let changes: Vec<String> = changes.iter().map(describe_change).collect();
                    let once = if retry { "" } else { " once" };
                    let forget = if forget.is_some() { ", then forget" } else { "" };
                    format!("write{once}: {}{forget}", changes.join(" + "))
                }
                HubEffect::Publish(event) => {
                    let seq = if event.seq.is_some() { "" } else { " without number" };
                    format!("publish {}{seq}", kind(&event))
                }
                HubEffect::Reply(reply) => {
                    reply();
                    self.note_answers();
                    continue;
                }
                HubEffect::Keeper(request) => format!("keeper: {}", first_word(&format!("{request:?}"))),
                HubEffect::Reconnect => "reconnect".into(),
                HubEffect::Confirm(hang_up, _) => format!("confirm {}", hang_up.is_some()),
                HubEffect::Health(problems, _) => format!("health {problems:?}"),
                HubEffect::LoadTerminal(load) => {
                    let line = format!("load provider {} screen {}", load.provider.is_some(), load.screen);
                    self.loads.push_back(load);
                    line
                }
                HubEffect::StartPump(start) => {
                    let agent = if start.provider.is_some() { " with agent" } else { "" };
                    match start.beginning {
                        PumpBeginning::Live { from, caught_up_at, .. } => {
                            format!("start pump{agent} from {from} to {caught_up_at}")
                        }
                        PumpBeginning::Ended(..) => format!("start pump{agent} of ended"),
                    }
                }
                HubEffect::ToPump(_, event) => match *event {
                    pump::PumpEvent::KeeperLost => "pump: keeper lost".into(),
                    _ => "pump: other".into(),
                },
                HubEffect::DropPump(_) => "drop pump".into(),
                HubEffect::Find(_, reply) => {
                    let _ = reply.send(Some(pump::testing::played().0));
                    self.note_answers();
                    continue;
                }
                HubEffect::Record(on) => format!("record {on}"),
                HubEffect::RemoveEventsFile(_) => "remove events file".into(),
                HubEffect::RemoveFiles(_) => "remove files".into(),
                HubEffect::Tidy(tidy) => {
                    format!("tidy {:?} known {} running {}", tidy.scope, tidy.known.len(), tidy.running.len())
                }
            };
            self.log.push(line);
        }
    }
}

fn first_word(text: &str) -> String {
    text.split(|character: char| !character.is_alphanumeric()).next().unwrap_or_default().to_owned()
}

fn kind(event: &LogEvent) -> String {
    let value = serde_json::to_value(&event.body).unwrap();
    value["kind"].as_str().unwrap().to_owned()
}

fn describe_change(change: &Change) -> String {
    match change {
        Change::Event(event) => kind(event),
        change => first_word(&format!("{change:?}")).to_lowercase(),
    }
}

fn new_terminal(name: &str) -> NewTerminal {
    let number = name.bytes().fold(1000, |number, byte| number * 31 + u32::from(byte));
    let (name, session) = (name.parse().unwrap(), format!("posse-{name}").parse().unwrap());
    let program = ProgramSpec {
        arguments: vec![b"x-agent".to_vec()],
        environment: Vec::new(),
        directory: b"/".to_vec(),
        size: Size::DEFAULT,
        ring: 1 << 20,
        label: Vec::new(),
    };
    let record = Record { name, session, pid: None, ..Record::sample(number) };
    NewTerminal { record, named: true, choice: SessionChoice::New, program, provider: None, at_once: false }
}

const AGENT: &str = r#"
    id = "x"
    name = "X"
    [launch]
    program = "x-agent"
    install = "npm install x"
    modes = { ask = {} }
    [[signals.events]]
    if = { type = "begin" }
    means = "working"
    [screen]
    [[screen.rule]]
    id = "any"
    status = "idle"
    why = "It is only read."
"#;

fn agent_provider() -> std::sync::Arc<posse_agents::Provider> {
    std::sync::Arc::new(posse_agents::Provider::parse(AGENT).unwrap())
}

fn new_agent(name: &str) -> NewTerminal {
    let mut new = new_terminal(name);
    new.record.confirmed = Some(Confirmed { trusted: true, mode: Mode::Ask });
    NewTerminal { provider: Some(agent_provider()), ..new }
}

/// Returns the record of a terminal from an earlier daemon.
fn record(number: u32, exit: Option<Exit>, confirmed: bool) -> Record {
    Record {
        provider: if confirmed { "x".into() } else { COMMAND.into() },
        confirmed: confirmed.then_some(Confirmed { trusted: true, mode: Mode::Ask }),
        exit,
        ..Record::sample(number)
    }
}

fn summary(record: &Record, exit: Option<Exit>) -> TerminalSummary {
    TerminalSummary {
        id: record.id,
        pid: 9,
        size: Size::DEFAULT,
        output: (100, 900),
        checkpoint: None,
        exit,
        ring: 1 << 20,
        label: serde_json::to_vec(record).unwrap(),
    }
}

fn status(kind: StatusKind) -> PumpReport {
    let mut status = Life::starting(Wall(0)).status().clone();
    status.kind = kind;
    PumpReport::Status(Box::new(status))
}
