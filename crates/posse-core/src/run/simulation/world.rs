//! The world of a simulated run: terminals with scripted agents, files, a journal, a clock, and kills of posse.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::super::*;
use crate::config::{ConfigLayer, LayerSource};
use crate::engine::Machine;
use crate::engine::simulation::{Daemon, Dies, Journal, World};
use crate::ids::{Name, RunId, TerminalId};
use crate::review_loop::config::ResolvedRun;
use crate::review_loop::{Key, Prompt};
use crate::status::{StatusKind, WaitingKind};
use crate::time::{Mono, Wall};
use crate::turn::{self, Look, Seen};

/// The behaviour of the agents.
#[derive(Clone, Debug, Default)]
pub(super) struct Script {
    /// Rounds the tester fails.
    pub(super) failures: u32,
    /// Permissions asked for in each turn.
    pub(super) permissions: u32,
    /// The model of this turn fails the first time.
    pub(super) fails_once: Option<Key>,
    /// The same, after the answer is written.
    pub(super) fails_after: Option<Key>,
    /// Number of agents killed, each at its own moment in the first seconds.
    pub(super) murders: u32,
    /// A person answers some of the questions before posse does.
    pub(super) person: bool,
    /// The traces of a prompt in a terminal are sometimes unclear.
    pub(super) blurred: bool,
    /// The agents are asked to exit when the run stops or is over.
    pub(super) cleanup: bool,
}

/// The time of posse's kills.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kill {
    /// At this input, counted from 1.
    pub(super) at: usize,
    pub(super) dies: Dies,
    /// Number of inputs until each further kill; 0: never.
    pub(super) again: usize,
}

/// The outcome of a run.
pub(super) struct Outcome {
    pub(super) status: RunStatus,
    /// The published entries.
    pub(super) told: Vec<Entry>,
    /// Inputs in the journal.
    pub(super) entries: usize,
    pub(super) answers: Vec<(Key, String)>,
    pub(super) world: Outside,
}

enum Act {
    /// An event for the current daemon.
    Tell(RunEvent),
    Prompt(TerminalId, String),
    Agent(TerminalId, Does),
    /// The knowledge of the store and the pump about a message.
    Note(u64, bool),
    /// A client resumes the run, with or without the environment.
    Go(bool),
    /// Kills one of the live agents.
    Murder,
    /// The current daemon asks these agents to exit.
    Leave(Vec<TerminalId>),
}

#[derive(Clone, Copy)]
enum Does {
    Work,
    Ask,
    /// A person has answered its question.
    Obey,
    Write,
    Finish,
    Fail,
}

struct Agent {
    kind: StatusKind,
    epoch: u64,
    since: Wall,
    alive: bool,
    name: String,
    key: Option<Key>,
    /// The round in the last prompt.
    round: u32,
    asks: u32,
}

#[derive(Default)]
pub(super) struct Outside {
    script: Script,
    kill: Option<Kill>,
    now: Duration,
    queue: BTreeMap<(Duration, u64), Act>,
    order: u64,
    random: u64,
    /// How many were killed before this posse, and whether it goes on with the run.
    pub(super) posse: usize,
    is_up: bool,
    watching: Option<TerminalId>,
    agents: BTreeMap<TerminalId, Agent>,
    /// Messages that arrived or are on their way.
    noted: BTreeMap<u64, bool>,
    files: BTreeMap<Key, String>,
    written: BTreeMap<Key, u32>,
    /// The prompts of each agent.
    pub(super) prompts: BTreeMap<TerminalId, Vec<String>>,
    /// Accepts that were typed.
    pub(super) accepts: usize,
    pub(super) notices: Vec<&'static str>,
}

impl World for Outside {
    type Run = Run;

    fn new_run(&self) -> Run {
        Run::new(spec(self.script.cleanup), Wall(0))
    }

    /// Replays the journal, as from a disk.
    fn read_back(&self, journal: &Journal<Self>) -> Run {
        let mut run = self.new_run();
        for (input, at) in journal {
            run.handle(serde_json::from_value(serde_json::to_value(input).unwrap()).unwrap(), *at);
        }
        run
    }

    fn check(&mut self, daemon: &Daemon<Self>, _: &[Effect]) {
        if self.is_killed_at(daemon.journal.len()).is_some() {
            let read_back = self.read_back(&daemon.journal);
            assert_eq!(format!("{read_back:?}"), format!("{:?}", daemon.run), "read back it is another run");
        }
    }

    fn perform(&mut self, run: &Run, effect: &Effect) {
        self.begin(run, effect.clone());
    }

    fn returned(&mut self, daemon: &Daemon<Self>) {
        self.posse += 1;
        self.is_up = false;
        self.watching = None;
        // Pending work of the dead daemon is lost.
        self.queue.retain(|_, act| !matches!(act, Act::Tell(_) | Act::Leave(_)));
        // A kill before the write must not repeat forever.
        self.kill =
            self.kill.filter(|kill| kill.again > 0).map(|kill| Kill { at: daemon.journal.len() + kill.again, ..kill });
        // S-159 and S-160: for a moment, or for longer than a minute.
        let pause = if self.random(8) == 0 { 61_000 } else { 5 + self.random(400) };
        // Often no client with the environment is connected.
        let somebody = self.random(2) == 0;
        self.later(pause, Act::Go(somebody));
    }
}

impl Outside {
    pub(super) fn play(script: Script, kill: Option<Kill>, seed: u64) -> Outcome {
        let mut world = Self {
            script,
            kill,
            now: Duration::from_secs(1),
            random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            ..Self::default()
        };
        let mut daemon = Daemon::new(&world);
        world.later(0, Act::Go(true));
        for _ in 0..world.script.murders {
            let at = world.random(4_000);
            world.later(at, Act::Murder);
        }
        for _ in 0..20_000 {
            let due = daemon.run.due().filter(|_| world.is_up).map(|deadline| deadline.0.max(world.now));
            let next = world.queue.first_key_value().map(|((at, _), _)| *at);
            match (next, due) {
                (None, None) => break,
                (next, Some(due)) if next.is_none_or(|next| due < next) => {
                    world.now = due + Duration::from_nanos(1);
                    world.happens(&mut daemon, RunEvent::Time);
                }
                _ => {
                    if let Some(((at, _), act)) = world.queue.pop_first() {
                        world.now = world.now.max(at);
                        world.act(&mut daemon, act);
                    }
                }
            }
        }
        world.outcome(&daemon)
    }

    /// Reads the published entries from the journal.
    fn outcome(self, daemon: &Daemon<Self>) -> Outcome {
        let (mut run, mut told, mut answers) = (self.new_run(), Vec::new(), Vec::new());
        for (input, at) in daemon.journal.iter().cloned() {
            run.handle(input, at);
            for (_, entry) in run.told() {
                if let (Entry::Answered { text, .. }, Some(record)) = (entry, &run.record) {
                    answers.push((record.key, text.clone()));
                }
                told.push(entry.clone());
            }
        }
        Outcome { status: run.status(), told, entries: daemon.journal.len(), answers, world: self }
    }

    fn is_killed_at(&self, number: usize) -> Option<Dies> {
        self.kill.filter(|kill| kill.at == number).map(|kill| kill.dies)
    }

    fn wall(&self) -> Wall {
        Wall(self.now.as_millis() as i64)
    }

    fn random(&mut self, below: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % below
    }

    fn later(&mut self, milliseconds: u64, act: Act) {
        self.order += 1;
        self.queue.insert((self.now + Duration::from_millis(milliseconds), self.order), act);
    }

    fn tell(&mut self, milliseconds: u64, happened: RunEvent) {
        self.later(milliseconds, Act::Tell(happened));
    }

    fn happens(&mut self, daemon: &mut Daemon<Self>, event: RunEvent) {
        if !daemon.run.heeds(&event) {
            return;
        }
        let (now, mono, posse) = (self.wall(), Mono(self.now), self.posse);
        let dies = self.is_killed_at(daemon.journal.len() + 1);
        daemon.handle(self, Input { mono, event }, now, dies);
        // A person comes and resumes it.
        if posse == self.posse && daemon.run.outcome().is_some() && !daemon.run.status().is_over() {
            self.later(1, Act::Go(true));
        }
    }

    fn act(&mut self, daemon: &mut Daemon<Self>, act: Act) {
        match act {
            Act::Tell(happened) => self.happens(daemon, happened),
            Act::Prompt(terminal, text) => self.prompted(terminal, &text),
            Act::Agent(terminal, does) => self.agent(&daemon.run, terminal, does),
            Act::Note(sequence, arrived) => drop(self.noted.insert(sequence, arrived)),
            Act::Go(somebody) => self.go(daemon, somebody),
            Act::Murder => {
                let alive: Vec<TerminalId> = self.alive().into_iter().collect();
                if !alive.is_empty() {
                    let victim = alive[self.random(alive.len() as u64) as usize];
                    self.end(&daemon.run, victim);
                }
            }
            Act::Leave(terminals) => {
                terminals.into_iter().for_each(|terminal| self.end(&daemon.run, terminal));
                self.happens(daemon, RunEvent::Closed);
            }
        }
    }

    /// Returns the running agents.
    pub(super) fn alive(&self) -> BTreeSet<TerminalId> {
        self.agents.iter().filter(|(_, agent)| agent.alive).map(|(terminal, _)| *terminal).collect()
    }

    fn end(&mut self, run: &Run, terminal: TerminalId) {
        if let Some(agent) = self.agents.get_mut(&terminal) {
            agent.alive = false;
        }
        self.show(run, terminal);
    }

    fn go(&mut self, daemon: &mut Daemon<Self>, can_start: bool) {
        self.is_up = true;
        let found = |(role, name): (&Role, &String)| {
            let agent = self.agents.iter().find(|(_, agent)| agent.alive && agent.name == *name);
            agent.map(|(terminal, _)| (*role, *terminal))
        };
        let adopted = daemon.run.starting.iter().filter_map(found).collect();
        let go = RunEvent::Go { alive: self.alive(), adopted, caller: HURRIED.filter(|_| can_start) };
        self.happens(daemon, go);
    }

    fn begin(&mut self, run: &Run, effect: Effect) {
        match effect {
            Effect::StartTerminal { role, name, .. } => {
                let terminal = TerminalId::from_random(0xa000_0000 | self.agents.len() as u32);
                let agent = Agent {
                    kind: StatusKind::Idle,
                    epoch: 1,
                    since: self.wall(),
                    alive: true,
                    name,
                    key: None,
                    round: 0,
                    asks: 0,
                };
                self.agents.insert(terminal, agent);
                self.tell(20, RunEvent::TerminalStarted { role, terminal: Ok(terminal) });
            }
            Effect::Watch(terminal) => {
                self.watching = Some(terminal);
                self.show(run, terminal);
            }
            Effect::Turn(record, effect) => self.begin_for(*record, effect),
            Effect::Notify { event, .. } => self.notices.push(event),
            Effect::Close { terminals, .. } => {
                self.later(15, Act::Leave(terminals));
            }
            Effect::WriteState(_) => {}
            other => panic!("nobody asked for {other:?} in this world"),
        }
    }

    fn begin_for(&mut self, record: TurnRecord, effect: TurnEffect) {
        let TurnRecord { turn, key, terminal, .. } = record;
        let (after, event) = match effect {
            TurnEffect::ClearStale { .. } => {
                let stale = self.files.remove(&key).map(|_| "stale".to_owned());
                (1, TurnEvent::StaleCleared { stale: Ok(stale), printed: None })
            }
            TurnEffect::Send => return self.send(record),
            TurnEffect::LookAtFile { .. } => {
                let look = self.files.get(&key).map_or(Look::Absent, |text| Look::Ready(text.clone()));
                (2, TurnEvent::Waiting(turn::Event::File(look)))
            }
            TurnEffect::Accept { .. } => {
                let asks = self.agents.get(&terminal).is_some_and(|agent| agent.kind == StatusKind::WaitingUserAnswer);
                let result = if asks {
                    self.accepts += 1;
                    self.later(2, Act::Agent(terminal, Does::Work));
                    Ok(())
                } else {
                    Err(turn::AcceptFailure::Refused("no question is open".into()))
                };
                (4, TurnEvent::Waiting(turn::Event::Accepted(result)))
            }
            TurnEffect::Archive { suffix: None, .. } => {
                (1, TurnEvent::Archived(self.files.remove(&key).map(|_| "answer".to_owned())))
            }
            other => panic!("nobody asked for {other:?} in this world"),
        };
        self.tell(after, RunEvent::Turn { turn, event });
    }

    /// Plays the pump's part: record, type, confirm. An interrupted delivery may leave traces.
    fn send(&mut self, record: TurnRecord) {
        let TurnRecord { turn, terminal, text, .. } = record;
        let typed = self.prompts.get(&terminal).is_some_and(|prompts| prompts.contains(&text));
        let sent = match self.noted.get(&turn).copied() {
            Some(true) => Sent::Taken,
            Some(false) if self.script.blurred && self.random(2) == 0 => {
                Sent::Uncertain("the screen is blurred".into())
            }
            Some(false) if typed => Sent::Taken,
            Some(false) => Sent::Lost,
            None => {
                self.noted.insert(turn, false);
                let at = 1 + self.random(4);
                // A kill in between may prevent the typing: the pump dies with its daemon.
                self.later(at, Act::Prompt(terminal, text));
                self.later(at + 3, Act::Note(turn, true));
                return self.tell(at + 4, RunEvent::Turn { turn, event: TurnEvent::Sent(Sent::Taken) });
            }
        };
        self.tell(3, RunEvent::Turn { turn, event: TurnEvent::Sent(sent) });
    }

    fn prompted(&mut self, terminal: TerminalId, text: &str) {
        self.prompts.entry(terminal).or_default().push(text.to_owned());
        let key = Key::ALL.into_iter().find(|key| text.contains(&format!("/{}'", key.file_name())));
        let Some(agent) = self.agents.get_mut(&terminal) else { return };
        agent.key = key.or(agent.key);
        let round = text.split_once("Round ").and_then(|(_, rest)| rest.split(' ').next()?.parse().ok());
        agent.round = round.unwrap_or(agent.round);
        agent.asks = self.script.permissions;
        // The state of a terminal whose prompt was just taken.
        (agent.kind, agent.epoch) = (StatusKind::Processing, agent.epoch + 1);
        self.later(5, Act::Agent(terminal, Does::Work));
    }

    fn agent(&mut self, run: &Run, terminal: TerminalId, does: Does) {
        let wall = self.wall();
        let Some(agent) = self.agents.get_mut(&terminal).filter(|agent| agent.alive) else { return };
        let Some(key) = agent.key else { return };
        let waits = agent.kind == StatusKind::WaitingUserAnswer;
        let mut turn_to = |kind| {
            agent.kind = kind;
            agent.epoch += 1;
            agent.since = wall;
        };
        match does {
            Does::Work => {
                turn_to(StatusKind::Processing);
                let nth = *self.written.entry(key).or_default();
                let next = if self.script.fails_once == Some(key) && nth == 0 {
                    self.written.insert(key, 1);
                    Does::Fail
                } else if agent.asks > 0 {
                    agent.asks -= 1;
                    Does::Ask
                } else {
                    Does::Write
                };
                self.later(30, Act::Agent(terminal, next));
            }
            Does::Ask => {
                turn_to(StatusKind::WaitingUserAnswer);
                if self.script.person && self.random(2) == 0 {
                    let after = self.random(8);
                    self.later(after, Act::Agent(terminal, Does::Obey));
                }
            }
            // Unless a person was quicker.
            Does::Obey if waits => {
                turn_to(StatusKind::Processing);
                self.later(2, Act::Agent(terminal, Does::Work));
            }
            Does::Obey => {}
            Does::Write => {
                let written = self.written.entry(key).or_default();
                *written += 1;
                let fails = self.script.fails_after == Some(key) && *written == 1;
                self.files.insert(key, answer(key, agent.round > self.script.failures));
                self.later(10, Act::Agent(terminal, if fails { Does::Fail } else { Does::Finish }));
            }
            Does::Finish => turn_to(StatusKind::Completed),
            Does::Fail => turn_to(StatusKind::Error),
        }
        self.show(run, terminal);
    }

    /// Reports a terminal's status, if the run watches it.
    fn show(&mut self, run: &Run, terminal: TerminalId) {
        if self.watching != Some(terminal) {
            return;
        }
        let Some(agent) = self.agents.get(&terminal) else { return };
        if !agent.alive {
            let turn = run.turns;
            let gone = turn::Event::Gone("its program exited with 9".into());
            return self.tell(2, RunEvent::Turn { turn, event: TurnEvent::Waiting(gone) });
        }
        let waits = agent.kind == StatusKind::WaitingUserAnswer;
        let seen = Seen {
            shown: Vec::new(),
            kind: Some(agent.kind),
            waiting: waits.then_some(WaitingKind::Permission),
            question: waits.then(|| format!("q{}", agent.epoch)),
            plain_yes: waits,
            epoch: agent.epoch,
            reason: String::new(),
            words: (agent.kind == StatusKind::Error).then(|| "API Error: 529 Overloaded".into()),
            unproven: false,
        };
        self.tell(2, RunEvent::Status { terminal, seen });
    }
}

fn answer(key: Key, passes: bool) -> String {
    let notes = "REVIEW_NOTES:\n- proposal verified, P1 traceability coverage complete, downstream module src/a.rs, handoff lists 3 steps\n\
                 - implementation and diff read, test command run, regression risk low, no defect left to fix";
    match key {
        Key::Analyst => "ANALYST_SUMMARY:\n- Scope: src/a.rs".into(),
        Key::Programmer => "PROGRAMMER_SUMMARY:\n- Files changed: src/a.rs".into(),
        Key::AnalystReview | Key::ProgrammerReview => format!("REVIEW_RESULT: APPROVED\n{notes}"),
        Key::Tester if passes => "RESULT: PASS\nEVIDENCE:\n- hello".into(),
        Key::Tester => "RESULT: FAIL\nEVIDENCE:\n- no hello".into(),
    }
}

pub(in crate::run) fn spec(cleanup: bool) -> Spec {
    let json = format!(
        r#"{{"limits": {{"min_review_cycles_before_approval": 1}}, "handoff": {{"auto_accept_permissions": true}}, "cleanup_on_exit": {cleanup}}}"#
    );
    spec_of(&json)
}

pub(in crate::run) fn spec_of(config: &str) -> Spec {
    let user = ConfigLayer::empty(LayerSource::User);
    let config = ResolvedRun::new(Some(("c", config)), &|_| None, &user, &["codex"]).unwrap().config;
    Spec {
        id: RunId::from_random(0xfeed_beef),
        config,
        prompt: Prompt { explore: "Say hello.".into(), scenario: "Expect hello.".into() },
        directory: "/project".into(),
        openspec: false,
        prompts: Default::default(),
        stamp: "now".into(),
        state_file: "/project/.tmp/state.json".into(),
        session: Name::session("loop-test").unwrap(),
        trusted: true,
        zone: None,
        config_hash: None,
        imported: None,
    }
}
