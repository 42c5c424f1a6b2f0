//! Each test is a story: events go in, and the effects that came of them are compared as lines of text.

use std::collections::VecDeque;

use posse_agents::launch::Mode;
use posse_agents::start::Confirmed;
use posse_api::COMMAND;
use posse_core::audit::{Ended, Step, Who};
use posse_core::status::{Exit, Life};
use posse_term::client::{KeeperLink, Untaken};
use posse_term::wire::{SpawnRefusal, TerminalSummary};

use super::*;
use crate::pump::PumpBeginning;

const DAY: i64 = 24 * 3600 * 1000;

/// A machine whose effects are described and collected. The test is the store, the keeper and the disk.
struct Story {
    machine: HubMachine,
    log: Vec<String>,
    /// What the store has yet to do.
    writes: VecDeque<AfterWrite>,
    /// Loads that the disk has yet to do.
    loads: VecDeque<LoadTerminal>,
    /// Yields the answer of each caller that waits, once.
    waiting: Vec<Box<dyn FnMut() -> Option<String>>>,
    seq: i64,
    wall: i64,
}

impl Story {
    /// A daemon that knows these terminals from before.
    fn begin(records: Vec<Record>) -> Self {
        let params = HubMachineParams {
            records,
            inputs: Vec::new(),
            executable: "/bin/posse".into(),
            events_directory: "/events".into(),
            pid: 1,
            seed: 7,
        };
        let mut story = Self {
            machine: HubMachine::new(params),
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

    /// A daemon with a keeper that holds nothing.
    fn connected() -> Self {
        let mut story = Self::begin(vec![]);
        story.keeper_up(vec![]);
        story.all_stored();
        story.log.clear();
        story
    }

    /// A connected daemon with a program that runs.
    fn with_running(name: &str) -> (Self, TerminalId) {
        let mut story = Self::connected();
        story.create(name);
        story.stored();
        let id = story.id(name);
        story.keeper(KeeperReport::Spawned { id, pid: 10 });
        story.all_stored();
        story.log.clear();
        (story, id)
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

    /// Asks, and has the answer described when it comes.
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
        let show = |answer: Result<Option<DeletedTerminal>, KeeperSilent>| match answer {
            Ok(Some(deleted)) => format!("deleted, {} left", deleted.left),
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

    /// The store has written the oldest batch.
    fn stored(&mut self) {
        self.seq += 1;
        let then = self.writes.pop_front().expect("something is to be written");
        self.send(HubEvent::Stored(then, Outcome::Written(vec![self.seq])));
    }

    fn all_stored(&mut self) {
        while !self.writes.is_empty() {
            self.stored();
        }
    }

    /// The disk has refused the oldest batch.
    fn refused(&mut self) {
        let then = self.writes.pop_front().expect("something is to be written");
        self.send(HubEvent::Stored(then, Outcome::Refused("full".into())));
    }

    /// The disk has read what a pump needs.
    fn loaded(&mut self) {
        let load = self.loads.pop_front().expect("something is to be read");
        let provider = load.provider.map(|_| agent_provider());
        self.send(HubEvent::TerminalLoaded { id: load.id, load: load.number, provider, emulator: None });
    }

    /// Compares what happened since the last call.
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
                HubEffect::ProbeKeeper(_) => "probe keeper".into(),
                HubEffect::HangUp(..) => "hang up".into(),
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
                    pump::PumpEvent::AnswerNoted(seq) => format!("pump: answer noted {}", seq.is_some()),
                    pump::PumpEvent::InputNoted { written, .. } => format!("pump: input noted {written}"),
                    _ => "pump: other".into(),
                },
                HubEffect::DropPump(_) => "drop pump".into(),
                HubEffect::Find(_, reply) => {
                    let _ = reply.send(Some(pump::testing::played().0));
                    self.note_answers();
                    continue;
                }
                HubEffect::Record(on) => format!("record {on}"),
                HubEffect::MakeEventsFile(_) => "make events file".into(),
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
    NewTerminal {
        program: ProgramChoice::Command(COMMAND, vec!["sleep".into(), "1".into()]),
        agent_profile: None,
        name: Some(name.parse().unwrap()),
        session: SessionChoice::New(None),
        directory: "/".into(),
        environment: BTreeMap::new(),
        size: Size::DEFAULT,
        ring: 1 << 20,
        at_once: false,
    }
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
    let start = AgentStart {
        provider: agent_provider(),
        confirmed: Confirmed { trusted: true, mode: Mode::Ask },
        model: None,
        profile: None,
        more: vec![],
        version: None,
        hook_files: None,
    };
    NewTerminal { program: ProgramChoice::Agent(Box::new(start)), ..new_terminal(name) }
}

/// A terminal that an earlier daemon wrote down.
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

fn note(id: TerminalId) -> Box<Note> {
    let step = Step::Outcome(Ended::cut_off(1));
    Box::new(Note { at: Wall(0), terminal: id, name: None, who: Who::person(), step })
}

// ---- creation ----

#[test]
fn program_is_written_before_it_is_started_and_announced_after() {
    let mut story = Story::connected();
    story.create("a");
    story.expect(&["write once: put + terminal_created"]);
    story.stored();
    story.expect(&["publish terminal_created", "keeper: Spawn"]);
    let id = story.id("a");
    story.keeper(KeeperReport::Spawned { id, pid: 10 });
    story.expect(&["start pump from 0 to 0", "write: put + terminal_started", "reply: created a"]);
    story.stored();
    story.expect(&["publish terminal_started"]);
}

#[test]
fn caller_that_does_not_wait_is_answered_when_the_record_is_written() {
    let mut story = Story::connected();
    story.create_with(NewTerminal { at_once: true, ..new_terminal("a") });
    story.expect(&["write once: put + terminal_created"]);
    story.stored();
    story.expect(&["publish terminal_created", "reply: created a", "keeper: Spawn"]);
}

#[test]
fn creator_of_an_agent_is_answered_when_the_agent_is_ready() {
    let cases = [
        (StatusKind::Processing, None),
        (StatusKind::Idle, Some("reply: created a")),
        (StatusKind::WaitingUserAnswer, Some("reply: created a")),
        (StatusKind::Error, Some("reply: not created: it ended while it was starting: starting")),
    ];
    for (kind, answer) in cases {
        let mut story = Story::connected();
        story.create_with(new_agent("a"));
        // The agent may write to its file as soon as it runs.
        story.expect(&["make events file"]);
        let id = story.id("a");
        story.send(HubEvent::EventsFileMade(id));
        story.expect(&["write once: put + terminal_created"]);
        story.stored();
        story.expect(&["publish terminal_created", "keeper: Spawn"]);
        story.keeper(KeeperReport::Spawned { id, pid: 10 });
        story.expect(&["start pump with agent from 0 to 0", "write: put + terminal_started"]);
        story.pump(id, status(kind));
        let mut expected = vec!["write: put + status_changed"];
        expected.extend(answer);
        story.expect(&expected);
    }
}

#[test]
fn requests_that_cannot_be_met_change_nothing() {
    let (mut story, _) = Story::with_running("a");
    let session = story.machine.terminals.values().next().unwrap().record.session.clone();
    let other: posse_core::ids::Name = "posse-other".parse().unwrap();
    let with = |session| NewTerminal { session, ..new_terminal("b") };
    let cases = [
        (new_terminal("a"), "reply: not created: the name a is taken".to_owned()),
        (
            with(SessionChoice::New(Some(session.clone()))),
            format!("reply: not created: there is a session {session} already"),
        ),
        (with(SessionChoice::Existing(other.clone())), format!("reply: not created: there is no session {other}")),
    ];
    for (request, answer) in cases {
        story.create_with(request);
        story.expect(&[&answer]);
    }
    for (name, choice) in [("c", SessionChoice::Existing(session)), ("d", SessionChoice::Any(other))] {
        story.create_with(NewTerminal { session: choice, ..new_terminal(name) });
        story.expect(&["write once: put + terminal_created"]);
    }
}

#[test]
fn refused_record_starts_nothing() {
    let mut story = Story::connected();
    story.create("a");
    story.log.clear();
    story.refused();
    story.expect(&["remove events file", "reply: not created: the database cannot be written: full"]);
    assert!(story.machine.terminals.is_empty());
}

#[test]
fn creation_waits_for_a_keeper_that_reconnects() {
    let mut story = Story::connected();
    story.keeper(KeeperReport::Lost("killed".into()));
    story.all_stored();
    story.log.clear();
    story.create("a");
    story.stored();
    // The connection was asked for when the keeper was lost.
    story.expect(&["write once: put + terminal_created", "publish terminal_created"]);
    story.keeper_up(vec![]);
    story.expect(&["keeper: Spawn"]);
}

#[test]
fn keeper_that_comes_up_starts_nothing_that_is_not_written() {
    let mut story = Story::begin(vec![]);
    story.all_stored();
    story.create("a");
    story.log.clear();
    story.keeper_up(vec![]);
    story.expect(&[]);
    story.stored();
    story.expect(&["publish terminal_created", "keeper: Spawn"]);
}

#[test]
fn creation_fails_when_no_keeper_can_be_reached() {
    let mut story = Story::begin(vec![]);
    story.all_stored();
    story.log.clear();
    story.create("a");
    story.stored();
    story.expect(&["write once: put + terminal_created", "publish terminal_created", "reconnect"]);
    story.keeper(KeeperReport::Unreachable("no memory".into()));
    story.expect(&[
        "remove events file",
        "write: drop + terminal_failed",
        "reply: not created: no keeper is running to start it: no memory",
    ]);
    story.create("b");
    story.expect(&["reply: not created: no keeper is running to start it: no memory"]);
}

#[test]
fn creation_fails_when_the_keeper_refuses_or_is_silent() {
    let refused = |id, why| KeeperReport::SpawnFailed { id, why, message: "no".into() };
    let silent = |id| KeeperReport::Untaken(Untaken::Spawn { id }, "it was stopped".into());
    type Report = Box<dyn Fn(TerminalId) -> KeeperReport>;
    let cases: [(NewTerminal, Report, &str); 3] = [
        (new_terminal("a"), Box::new(move |id| refused(id, SpawnRefusal::ProgramMissing)), "no"),
        (
            new_agent("a"),
            Box::new(move |id| refused(id, SpawnRefusal::ProgramMissing)),
            "x-agent is not installed, or not in PATH",
        ),
        (new_terminal("a"), Box::new(silent), "nothing was started: it was stopped"),
    ];
    for (request, report, why) in cases {
        let mut story = Story::connected();
        story.create_with(request);
        let id = story.id("a");
        if story.writes.is_empty() {
            story.send(HubEvent::EventsFileMade(id));
        }
        story.stored();
        story.log.clear();
        story.keeper(report(id));
        let answer = format!("reply: not created: {why}");
        story.expect(&["remove events file", "write: drop + terminal_failed", &answer]);
    }
}

#[test]
fn terminal_deleted_while_it_is_written_is_never_started() {
    let mut story = Story::connected();
    story.create("a");
    let id = story.id("a");
    story.log.clear();
    story.delete(id);
    story.expect(&["keeper: End"]);
    story.stored();
    // The keeper has taken the end already and would keep what is started after it.
    story.expect(&["publish terminal_created"]);
    story.keeper(KeeperReport::Ended { id, left: 0 });
    story.expect(&[
        "reply: not created: it was ended before it had started",
        "drop pump",
        "remove files",
        "write: drop + terminal_deleted, then forget",
    ]);
    story.stored();
    story.expect(&["publish terminal_deleted", "reply: deleted, 0 left"]);
}

#[test]
fn agent_deleted_before_it_is_ready_answers_both_callers() {
    let mut story = Story::connected();
    story.create_with(new_agent("a"));
    let id = story.id("a");
    story.send(HubEvent::EventsFileMade(id));
    story.stored();
    story.keeper(KeeperReport::Spawned { id, pid: 10 });
    story.delete(id);
    story.log.clear();
    story.keeper(KeeperReport::Ended { id, left: 1 });
    story.expect(&[
        "reply: not created: it was ended before it had started",
        "pump: keeper lost",
        "drop pump",
        "remove files",
        "write: drop + terminal_deleted, then forget",
    ]);
}

#[test]
fn events_file_of_a_failed_creation_is_removed() {
    let mut story = Story::connected();
    story.create_with(new_agent("a"));
    let id = story.id("a");
    story.keeper(KeeperReport::Unreachable("gone".into()));
    story.log.clear();
    story.send(HubEvent::EventsFileMade(id));
    story.expect(&["remove events file"]);
}

#[test]
fn stop_during_a_creation_starts_nothing() {
    let mut story = Story::connected();
    story.create("a");
    story.log.clear();
    story.stop(false);
    story.expect(&["write: daemon_stopped"]);
    story.create("b");
    story.expect(&["reply: dropped"]);
    story.stored();
    story.expect(&[
        "publish terminal_created",
        "remove events file",
        "write: drop + terminal_failed",
        "reply: not created: it was ended before it had started",
    ]);
}

// ---- adoption and loss ----

#[test]
fn restart_adopts_what_the_keeper_holds_and_gives_up_the_rest() {
    let held = record(1, None, false);
    let agent = record(2, None, true);
    let missing = record(3, None, false);
    let mut story = Story::begin(vec![held.clone(), agent.clone(), missing]);
    story.expect(&["write: daemon_started", "write once: trim", "tidy Startup known 3 running 3"]);
    story.all_stored();
    story.expect(&["publish daemon_started"]);
    story.keeper_up(vec![summary(&held, None), summary(&agent, None)]);
    story.expect(&[
        "start pump from 100 to 900",
        "write: put + terminal_adopted",
        "load provider true screen false",
        "write: put + terminal_adopted",
        // Processes of it may be left.
        "keeper: End",
        "write: put + status_changed",
        "remove events file",
        "write: put + terminal_exited",
    ]);
    story.loaded();
    story.expect(&["start pump with agent from 100 to 900"]);
}

#[test]
fn terminal_that_the_database_lost_is_adopted_from_its_label() {
    let unknown = record(1, None, false);
    let mut story = Story::connected();
    story.keeper_up(vec![summary(&unknown, None)]);
    story.expect(&["start pump from 100 to 900", "write: put + terminal_adopted"]);
    // One that has ended was deleted: records are written first.
    let deleted = record(2, None, false);
    story.keeper_up(vec![summary(&unknown, None), summary(&deleted, Some(Exit::Code(0)))]);
    assert!(story.log.contains(&"keeper: Forget".to_owned()));
    assert!(!story.machine.terminals.contains_key(&deleted.id));
}

#[test]
fn ended_terminal_whose_screen_is_saved_does_not_run_again() {
    let ended = Record { last_active: Wall(15 * DAY), ..record(1, Some(Exit::Code(0)), false) };
    for saved in [true, false] {
        let mut story = Story::begin(vec![ended.clone()]);
        story.log.clear();
        let (link, _requests) = KeeperLink::unconnected();
        let saved_screens = saved.then_some(ended.id).into_iter().collect();
        let held = vec![summary(&ended, Some(Exit::Code(0)))];
        story.keeper(KeeperReport::Up { link, held, saved_screens });
        match saved {
            true => story.expect(&["keeper: Forget"]),
            false => story.expect(&["start pump from 100 to 900", "write: put + terminal_adopted"]),
        }
    }
}

#[test]
fn load_that_the_loss_of_the_keeper_overtakes_starts_no_pump() {
    let agent = record(1, None, true);
    let mut story = Story::begin(vec![agent.clone()]);
    story.keeper_up(vec![summary(&agent, None)]);
    story.log.clear();
    story.keeper(KeeperReport::Lost("killed".into()));
    story.expect(&[
        "write: keeper_lost",
        "write: put + status_changed",
        "remove events file",
        "write: put + terminal_exited",
        "reconnect",
    ]);
    story.loaded();
    story.expect(&[]);
}

#[test]
fn load_for_an_earlier_connection_starts_no_pump() {
    let agent = record(1, None, true);
    let mut story = Story::begin(vec![agent.clone()]);
    story.keeper_up(vec![summary(&agent, None)]);
    story.keeper(KeeperReport::Lost("killed".into()));
    story.keeper_up(vec![summary(&agent, None)]);
    story.log.clear();
    story.loaded();
    story.expect(&[]);
    story.loaded();
    story.expect(&["start pump with agent from 100 to 900"]);
}

#[test]
fn lost_keeper_ends_every_terminal_and_is_reconnected_once() {
    let (mut story, id) = Story::with_running("a");
    story.create("b");
    story.stored();
    story.delete(id);
    story.log.clear();
    story.keeper(KeeperReport::Lost("killed".into()));
    story.note_answers();
    let lines: Vec<String> = std::mem::take(&mut story.log);
    let count = |line: &str| lines.iter().filter(|found| *found == line).count();
    assert_eq!(count("pump: keeper lost"), 2, "once as lost, once as deleted: {lines:?}");
    assert_eq!(count("reply: not created: no keeper is running to start it: killed"), 1, "{lines:?}");
    assert_eq!(count("write: drop + terminal_deleted"), 1, "no keeper is left to forget it: {lines:?}");
    assert_eq!(count("reconnect"), 1, "{lines:?}");
    story.all_stored();
    story.note_answers();
    assert!(story.log.contains(&"reply: deleted, 0 left".to_owned()), "{:?}", story.log);
}

#[test]
fn caller_gets_the_pump_as_soon_as_there_is_one() {
    let known = record(1, None, false);
    let mut story = Story::begin(vec![known.clone()]);
    story.log.clear();
    story.find(known.id);
    story.find(TerminalId::from_random(99));
    story.expect(&["reply: found false"]);
    story.keeper_up(vec![summary(&known, None)]);
    story.expect(&["start pump from 100 to 900", "write: put + terminal_adopted", "reply: found true"]);
}

#[test]
fn pump_of_an_ended_terminal_is_read_from_its_file_once() {
    let (mut story, id) = Story::with_running("a");
    story.exits(id);
    story.log.clear();
    story.find(id);
    story.find(id);
    story.expect(&["load provider false screen true"]);
    story.loaded();
    story.expect(&["start pump of ended", "reply: found true", "reply: found true"]);
}

#[test]
fn caller_that_waits_for_a_lost_terminal_is_answered() {
    let known = record(1, None, false);
    let mut story = Story::begin(vec![known.clone()]);
    story.find(known.id);
    story.keeper_up(vec![]);
    story.log.clear();
    story.loaded();
    story.expect(&["start pump of ended", "reply: found true"]);
}

#[test]
fn silent_keeper_is_reported_once_and_is_a_problem_until_it_answers() {
    let mut story = Story::connected();
    story.keeper(KeeperReport::Silent(Some("stopped".into())));
    story.expect(&["write: keeper_silent"]);
    assert_eq!(story.machine.problems.keeper_silent.as_deref(), Some("stopped"));
    story.keeper(KeeperReport::Silent(None));
    story.expect(&["write: keeper_answers"]);
    assert_eq!(story.machine.problems.keeper_silent, None);
}

// ---- the end of a terminal ----

#[test]
fn keeper_forgets_an_exit_only_after_it_is_written() {
    let (mut story, id) = Story::with_running("a");
    story.exits(id);
    story.expect(&["drop pump", "remove events file", "write: put + terminal_exited, then forget"]);
    story.stored();
    story.expect(&["publish terminal_exited"]);
}

#[test]
fn every_caller_of_a_deletion_is_answered_after_it_is_written() {
    let (mut story, id) = Story::with_running("a");
    story.delete(id);
    story.delete(id);
    story.expect(&["keeper: End", "keeper: End"]);
    story.keeper(KeeperReport::Ended { id, left: 2 });
    story.expect(&["pump: keeper lost", "drop pump", "remove files", "write: drop + terminal_deleted, then forget"]);
    story.keeper(KeeperReport::Ended { id, left: 0 });
    story.expect(&[]);
    story.stored();
    story.expect(&["publish terminal_deleted", "reply: deleted, 2 left", "reply: deleted, 2 left"]);
    story.delete(id);
    story.expect(&["reply: nothing to delete"]);
    // The pump saves its last screen after that.
    story.exits(id);
    story.expect(&["remove files"]);
}

#[test]
fn deletion_waits_for_a_keeper_that_reconnects_and_fails_if_it_is_silent() {
    let (mut story, id) = Story::with_running("a");
    story.delete(id);
    story.log.clear();
    story.keeper(KeeperReport::Untaken(Untaken::End { id }, "it was stopped".into()));
    story.expect(&["reply: not deleted: it was stopped"]);
    story.keeper(KeeperReport::Lost("killed".into()));
    story.log.clear();
    story.delete(id);
    story.expect(&[]);
    story.keeper_up(vec![]);
    assert!(story.log.contains(&"keeper: End".to_owned()), "{:?}", story.log);
}

// ---- the audit and the log ----

#[test]
fn nothing_is_typed_before_the_audit_is_written() {
    for (refused, noted) in [(false, "pump: answer noted true"), (true, "pump: answer noted false")] {
        let (mut story, id) = Story::with_running("a");
        story.pump(id, PumpReport::Answering(note(id)));
        story.expect(&["write once: audit"]);
        match refused {
            false => story.stored(),
            true => story.refused(),
        }
        story.expect(&[noted]);
    }
}

#[test]
fn input_is_sent_only_if_it_is_written_down() {
    for (refused, noted) in [(false, "pump: input noted true"), (true, "pump: input noted false")] {
        let (mut story, id) = Story::with_running("a");
        story.pump(id, PumpReport::InputAhead { writer: posse_core::ids::WriterId(1), sequence: 1 });
        story.expect(&["write once: ahead"]);
        match refused {
            false => story.stored(),
            true => story.refused(),
        }
        story.expect(&[noted]);
    }
}

#[test]
fn another_pump_is_not_told_of_the_answer_of_the_one_before() {
    let (mut story, id) = Story::with_running("a");
    story.pump(id, PumpReport::Answering(note(id)));
    let held = story.machine.terminals[&id].record.clone();
    story.keeper_up(vec![summary(&held, None)]);
    story.log.clear();
    story.stored();
    story.expect(&[]);
}

#[test]
fn outcome_of_an_answer_is_kept_until_it_is_written() {
    let (mut story, id) = Story::with_running("a");
    let (reply, mut answer) = oneshot::channel::<()>();
    story.send(HubEvent::AnswerOver(note(id), Box::new(move || reply.send(()).unwrap())));
    story.expect(&["write: audit"]);
    assert!(answer.try_recv().is_err(), "it is not answered before");
    story.refused();
    assert!(answer.try_recv().is_ok());
}

#[test]
fn events_are_published_after_they_are_written_or_refused() {
    let (mut story, id) = Story::with_running("a");
    story.pump(id, status(StatusKind::Idle));
    story.expect(&["write: put + status_changed"]);
    story.stored();
    story.expect(&["publish status_changed"]);
    story.pump(id, status(StatusKind::Completed));
    story.log.clear();
    story.refused();
    story.expect(&["publish status_changed without number"]);
    assert_eq!(story.machine.problems.disk.as_deref(), Some("full"));
    // Events that are not kept are published at once.
    story.pump(id, PumpReport::Title("x".into()));
    story.expect(&["publish title_changed without number"]);
}

#[test]
fn setting_is_answered_when_it_is_written_or_refused() {
    let show = |answer: Result<(), StoreRefusal>| format!("set {}", answer.is_ok());
    for (refused, expected) in [
        (false, ["publish setting_changed", "reply: set true"]),
        (true, ["publish setting_changed without number", "reply: set false"]),
    ] {
        let mut story = Story::connected();
        story.ask(show, |reply| HubCommand::Set { name: "recordings", value: None, reply });
        story.expect(&["write once: setting + setting_changed"]);
        match refused {
            false => story.stored(),
            true => story.refused(),
        }
        story.expect(&expected);
    }
}

// ---- stopping ----

#[test]
fn daemon_stops_when_its_farewell_is_written_and_the_keeper_answers() {
    let (mut story, _) = Story::with_running("a");
    story.stop(false);
    story.expect(&["write: daemon_stopped"]);
    story.stored();
    story.expect(&["publish daemon_stopped", "keeper: Rest"]);
    assert!(!story.machine.has_finished());
    story.keeper(KeeperReport::Resting);
    story.expect(&["reply: stopped, 1 running"]);
    assert!(story.machine.has_finished());
}

#[test]
fn silent_or_lost_keeper_does_not_hold_up_a_stop() {
    for report in [KeeperReport::Lost("killed".into()), KeeperReport::Untaken(Untaken::Rest, "stopped".into())] {
        let mut story = Story::connected();
        story.stop(false);
        story.stored();
        story.log.clear();
        story.keeper(report);
        story.expect(&["reply: stopped, 0 running"]);
    }
}

#[test]
fn stop_of_all_waits_for_every_process() {
    let (mut story, id) = Story::with_running("a");
    story.stop(true);
    story.expect(&["keeper: End"]);
    // The program ends before the processes it has started.
    story.exits(id);
    story.expect(&["drop pump", "remove events file", "write: put + terminal_exited, then forget"]);
    story.keeper(KeeperReport::Ended { id, left: 0 });
    story.expect(&["write: daemon_stopped"]);
    story.all_stored();
    story.expect(&["publish terminal_exited", "publish daemon_stopped", "keeper: Rest"]);
    story.keeper(KeeperReport::Resting);
    story.expect(&["reply: stopped, 0 running"]);
}

#[test]
fn stop_of_all_overrides_a_stop_that_is_under_way() {
    let (mut story, id) = Story::with_running("a");
    story.stop(false);
    story.stop(true);
    story.expect(&["write: daemon_stopped", "keeper: End"]);
    story.stored();
    story.expect(&["publish daemon_stopped"]);
    story.exits(id);
    story.keeper(KeeperReport::Ended { id, left: 0 });
    story.all_stored();
    story.log.clear();
    story.keeper(KeeperReport::Resting);
    story.expect(&["reply: stopped, 0 running", "reply: stopped, 0 running"]);
}

#[test]
fn stop_of_all_fails_if_the_keeper_ends_nothing_and_may_be_repeated() {
    let (mut story, id) = Story::with_running("a");
    story.stop(true);
    story.log.clear();
    story.keeper(KeeperReport::Untaken(Untaken::End { id }, "stopped".into()));
    story.expect(&["reply: not stopped: stopped"]);
    assert!(!story.machine.has_finished());
    story.stop(true);
    story.expect(&["keeper: End"]);
}

// ---- retention ----

#[test]
fn retention_drops_what_ended_long_ago_and_trims_the_log() {
    let old = record(1, Some(Exit::Code(0)), false);
    let running = record(2, None, false);
    let mut story = Story::begin(vec![old, running]);
    story.expect(&[
        "write: daemon_started",
        "drop pump",
        "write: drop + terminal_deleted",
        "write once: trim",
        "tidy Startup known 1 running 1",
    ]);
    story.send(HubEvent::RecordingsGrown);
    story.expect(&["tidy Recordings known 1 running 1"]);
}

#[test]
fn retention_comes_round_after_enough_events() {
    let (mut story, id) = Story::with_running("a");
    story.machine.since_tidy = retention::ROUND - 1;
    story.pump(id, status(StatusKind::Idle));
    story.log.clear();
    story.stored();
    story.expect(&["write once: trim", "tidy Everything known 1 running 1", "publish status_changed"]);
}
