//! The world of a simulated run: terminals with scripted agents, files, a journal, a clock, and somebody who kills posse.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::super::*;
use crate::config::{ConfigLayer, LayerSource};
use crate::engine::Machine;
use crate::ids::{Name, RunId, TerminalId};
use crate::rounds::config::ResolvedRun;
use crate::rounds::{Key, Prompt};
use crate::status::{StatusKind, WaitingKind};
use crate::time::{Mono, Wall};
use crate::turn::{self, Look, Seen};

/// What the agents do.
#[derive(Clone, Debug, Default)]
pub(super) struct Script {
    /// Rounds the tester fails.
    pub(super) failures: u32,
    /// Permissions asked for in each turn.
    pub(super) permissions: u32,
    /// The agent of this turn dies in the middle of its first one.
    pub(super) dies: Option<Key>,
    /// The model of this turn fails the first time.
    pub(super) fails_once: Option<Key>,
    /// The same, when the answer is written already.
    pub(super) fails_after: Option<Key>,
    /// Agents that are killed, each at a moment of its own in the first seconds.
    pub(super) murders: u32,
    /// A person answers some of the questions before posse does.
    pub(super) person: bool,
    /// What a terminal shows of a prompt is not always clear.
    pub(super) blurred: bool,
    /// The agents are asked to leave when the run stops or is over.
    pub(super) cleanup: bool,
}

/// When posse is killed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kill {
    /// At this entry, counted from the beginning.
    pub(super) at: usize,
    pub(super) moment: Moment,
    /// Then again after so many more; 0: never.
    pub(super) again: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moment {
    /// The entry is not on disk yet.
    Before,
    /// It is, and nothing that follows from it has been done.
    After,
}

/// How a run went.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) status: RunStatus,
    /// What was told.
    pub(super) told: Vec<Entry>,
    /// Entries of the journal.
    pub(super) entries: usize,
    pub(super) answers: Vec<(Key, String)>,
    /// What each agent was told.
    pub(super) prompts: BTreeMap<TerminalId, Vec<String>>,
    /// Accepts that were typed.
    pub(super) accepts: usize,
    pub(super) kills: usize,
    pub(super) notices: Vec<&'static str>,
    /// Agents that run when everything is over.
    pub(super) left: usize,
}

enum Act {
    /// To the posse that lives now, if it is still this one.
    Tell(usize, RunEvent),
    Prompt(TerminalId, String),
    Agent(TerminalId, Does),
    /// What the store and the pump remember of a message.
    Note(u64, bool),
    Restart,
    /// Somebody kills an agent, whoever is there.
    Murder,
    /// Asked to leave, by the posse that lives now.
    Leave(usize, Vec<TerminalId>),
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
    Die,
}

struct Agent {
    kind: StatusKind,
    epoch: u64,
    since: Wall,
    alive: bool,
    name: String,
    key: Option<Key>,
    /// As it was told last.
    round: u32,
    asks: u32,
}

pub(super) struct World {
    script: Script,
    kill: Option<Kill>,
    now: Duration,
    queue: BTreeMap<(Duration, u64), Act>,
    order: u64,
    random: u64,
    /// Which posse this is.
    posse: usize,
    run: Option<Run>,
    watching: Option<TerminalId>,
    /// Its creation, and then the inputs, as JSON.
    journal: Vec<(Wall, Option<String>)>,
    /// The run that was killed last, as far as it is written down.
    killed: Option<Run>,
    agents: BTreeMap<TerminalId, Agent>,
    /// Messages of which something is known: arrived, or on their way.
    noted: BTreeMap<u64, bool>,
    files: BTreeMap<Key, String>,
    written: BTreeMap<Key, u32>,
    outcome: Outcome,
}

impl World {
    pub(super) fn new(script: Script, kill: Option<Kill>, seed: u64) -> Self {
        Self {
            script,
            kill,
            now: Duration::from_secs(1),
            queue: BTreeMap::new(),
            order: 0,
            random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            posse: 0,
            run: None,
            watching: None,
            journal: Vec::new(),
            killed: None,
            agents: BTreeMap::new(),
            noted: BTreeMap::new(),
            files: BTreeMap::new(),
            written: BTreeMap::new(),
            outcome: Outcome {
                status: RunStatus::Running,
                told: Vec::new(),
                entries: 0,
                answers: Vec::new(),
                prompts: BTreeMap::new(),
                accepts: 0,
                kills: 0,
                notices: Vec::new(),
                left: 0,
            },
        }
    }

    pub(super) fn play(mut self) -> Outcome {
        self.create();
        for _ in 0..self.script.murders {
            let at = self.random(4_000);
            self.later(at, Act::Murder);
        }
        for _ in 0..20_000 {
            let due = self.run.as_ref().and_then(Run::due).map(|deadline| deadline.0.max(self.now));
            let next = self.queue.first_key_value().map(|((at, _), _)| *at);
            match (next, due) {
                (None, None) => break,
                (next, Some(due)) if next.is_none_or(|next| due < next) => {
                    self.now = due + Duration::from_nanos(1);
                    self.happens(RunEvent::Time);
                }
                _ => {
                    if let Some(((at, _), act)) = self.queue.pop_first() {
                        self.now = self.now.max(at);
                        self.act(act);
                    }
                }
            }
        }
        let status = self.run.as_ref().map_or(RunStatus::Stopped, |run| run.ledger().status());
        self.outcome.status = status;
        self.outcome.left = self.alive().len();
        self.outcome.entries = self.journal.len();
        self.outcome
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
        let posse = self.posse;
        self.later(milliseconds, Act::Tell(posse, happened));
    }

    fn create(&mut self) {
        let wall = self.wall();
        let spec = spec(self.script.cleanup);
        if self.writes(wall, None, move |_| (Run::new(spec, wall), Vec::new())) {
            self.go(true);
        }
    }

    fn happens(&mut self, happened: RunEvent) {
        let wall = self.wall();
        let input = Input { mono: Mono(self.now), event: happened };
        let Some(run) = self.run.take_if(|run| run.heeds(&input.event)) else { return };
        let json = serde_json::to_string(&input).unwrap();
        let handles = move |run: Option<Run>| {
            let mut run = run.unwrap();
            let effects = run.handle(input, wall);
            (run, effects)
        };
        self.run = Some(run);
        self.writes(wall, Some(json), handles);
    }

    /// Writes an entry of the journal, takes it in, and does what follows. `false`: posse was killed on the way.
    fn writes(
        &mut self,
        wall: Wall,
        entry: Option<String>,
        takes: impl FnOnce(Option<Run>) -> (Run, Vec<Effect>),
    ) -> bool {
        let number = self.journal.len() + 1;
        let kill = self.kill.filter(|kill| kill.at == number).map(|kill| kill.moment);
        if kill == Some(Moment::Before) {
            self.die();
            return false;
        }
        self.journal.push((wall, entry));
        let (run, effects) = takes(self.run.take());
        for (_, entry) in run.told() {
            if let (Entry::Answered { text, .. }, Place::Unarchived { key, .. }) = (entry, &run.ledger().place) {
                self.outcome.answers.push((*key, text.clone()));
            }
            self.outcome.told.push(entry.clone());
        }
        let rests = run.outcome().is_some() && !run.ledger().status().is_over();
        self.run = Some(run);
        if kill.is_some() {
            self.killed = self.run.take();
            self.die();
            return false;
        }
        effects.into_iter().for_each(|effect| self.begin(effect));
        // A person comes and resumes it.
        if rests {
            self.go(true);
        }
        true
    }

    fn act(&mut self, act: Act) {
        match act {
            Act::Tell(posse, happened) if posse == self.posse => self.happens(happened),
            Act::Tell(..) => {}
            Act::Prompt(terminal, text) => self.prompted(terminal, &text),
            Act::Agent(terminal, does) => self.agent(terminal, does),
            Act::Note(sequence, arrived) => drop(self.noted.insert(sequence, arrived)),
            Act::Restart => self.restart(),
            Act::Murder => {
                let alive: Vec<TerminalId> = self.alive().into_iter().collect();
                if !alive.is_empty() {
                    let victim = alive[self.random(alive.len() as u64) as usize];
                    self.end(victim);
                }
            }
            Act::Leave(posse, terminals) if posse == self.posse => {
                terminals.into_iter().for_each(|terminal| self.end(terminal));
                self.happens(RunEvent::Closed);
            }
            Act::Leave(..) => {}
        }
    }

    fn alive(&self) -> BTreeSet<TerminalId> {
        self.agents.iter().filter(|(_, agent)| agent.alive).map(|(terminal, _)| *terminal).collect()
    }

    fn end(&mut self, terminal: TerminalId) {
        if let Some(agent) = self.agents.get_mut(&terminal) {
            agent.alive = false;
        }
        self.show(terminal);
    }

    fn restart(&mut self) {
        let mut journal = self.journal.iter();
        // Nothing was ever written down: whoever asked is told so, and asks again.
        let Some((at, None)) = journal.next() else { return self.create() };
        let mut run = Run::new(spec(self.script.cleanup), *at);
        for (at, input) in journal {
            let input: Input = serde_json::from_str(input.as_ref().unwrap()).unwrap();
            run.handle(input, *at);
        }
        if let Some(killed) = self.killed.take() {
            let all = |run: &Run| (run.ledger.clone(), run.seen.clone(), run.due(), format!("{:?}", run.live));
            assert_eq!(all(&run), all(&killed), "read back it is another run");
        }
        self.run = Some(run);
        self.watching = None;
        // Often nobody is there who knows the environment.
        let somebody = self.random(2) == 0;
        self.go(somebody);
    }

    fn go(&mut self, can_start: bool) {
        let alive = self.alive();
        let starting = self.run.as_ref().map(|run| run.ledger().starting.clone()).unwrap_or_default();
        let adopted = (starting.into_iter())
            .filter_map(|(role, name)| {
                let found = self.agents.iter().find(|(_, agent)| agent.alive && agent.name == name);
                found.map(|(terminal, _)| (role, *terminal))
            })
            .collect();
        self.tell(1, RunEvent::Go { alive, adopted, caller: HURRIED.filter(|_| can_start) });
    }

    fn die(&mut self) {
        self.outcome.kills += 1;
        self.posse += 1;
        self.run = None;
        // What was killed before it was written must not be killed for ever.
        self.kill =
            self.kill.filter(|kill| kill.again > 0).map(|kill| Kill { at: self.journal.len() + kill.again, ..kill });
        let pause = 5 + self.random(400);
        self.later(pause, Act::Restart);
    }

    fn begin(&mut self, effect: Effect) {
        let of_turn = |turn, event| RunEvent::Turn { turn, event };
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
                self.tell(20, RunEvent::TerminalStarted { role, terminal });
            }
            Effect::Watch(terminal) => {
                self.watching = Some(terminal);
                self.show(terminal);
            }
            Effect::ClearStale { turn, key, .. } => {
                let stale = self.files.remove(&key).map(|_| "stale".to_owned());
                self.tell(1, RunEvent::StaleCleared { turn, stale, printed: None });
            }
            Effect::Send { turn, terminal, text } => self.send(turn, terminal, text),
            Effect::LookForTraces { turn, terminal, text, .. } => {
                let seen = self.outcome.prompts.get(&terminal).is_some_and(|prompts| prompts.contains(&text));
                let traces = match seen {
                    _ if self.script.blurred && self.random(2) == 0 => Traces::Unclear("the screen is blurred".into()),
                    true => Traces::Taken,
                    false => Traces::NotTaken,
                };
                self.tell(2, RunEvent::Traces { turn, traces });
            }
            Effect::LookAtFile { turn, key } => {
                let look = self.files.get(&key).map_or(Look::Absent, |text| Look::Ready(text.clone()));
                self.tell(2, of_turn(turn, turn::Event::File(look)));
            }
            Effect::Accept { turn, terminal, .. } => {
                let asks = self.agents.get(&terminal).is_some_and(|agent| agent.kind == StatusKind::WaitingUserAnswer);
                let result = if asks {
                    self.outcome.accepts += 1;
                    self.later(2, Act::Agent(terminal, Does::Work));
                    Ok(())
                } else {
                    Err(turn::AcceptFailure::Refused("no question is open".into()))
                };
                self.tell(4, of_turn(turn, turn::Event::Accepted(result)));
            }
            Effect::Archive { turn, key, suffix: None, .. } => {
                let name = self.files.remove(&key).map(|_| "answer".to_owned());
                self.tell(1, RunEvent::Archived { turn, name });
            }
            Effect::Notify { event, .. } => self.outcome.notices.push(event),
            Effect::Close { terminals, .. } => {
                let posse = self.posse;
                self.later(15, Act::Leave(posse, terminals));
            }
            Effect::WriteState(_) => {}
            other => panic!("nobody asked for {other:?} in this world"),
        }
    }

    /// The pump's part: noted, typed, seen to be taken.
    fn send(&mut self, turn: u64, terminal: TerminalId, text: String) {
        let sent = match self.noted.get(&turn) {
            Some(true) => Sent::Taken,
            Some(false) => Sent::Uncertain("cut off".into()),
            None => {
                self.noted.insert(turn, false);
                let at = 1 + self.random(4);
                // Killed in between, it may never be typed: the pump dies with its posse.
                self.later(at, Act::Prompt(terminal, text));
                self.later(at + 3, Act::Note(turn, true));
                return self.tell(at + 4, RunEvent::Sent { turn, sent: Sent::Taken });
            }
        };
        self.tell(1, RunEvent::Sent { turn, sent });
    }

    fn prompted(&mut self, terminal: TerminalId, text: &str) {
        self.outcome.prompts.entry(terminal).or_default().push(text.to_owned());
        let key = Key::ALL.into_iter().find(|key| text.contains(&format!("/{}'", key.file_name())));
        let Some(agent) = self.agents.get_mut(&terminal) else { return };
        agent.key = key.or(agent.key);
        let round = text.split_once("Round ").and_then(|(_, rest)| rest.split(' ').next()?.parse().ok());
        agent.round = round.unwrap_or(agent.round);
        agent.asks = self.script.permissions;
        // As a terminal is from the moment a prompt was seen to be taken.
        (agent.kind, agent.epoch) = (StatusKind::Processing, agent.epoch + 1);
        self.later(5, Act::Agent(terminal, Does::Work));
    }

    fn agent(&mut self, terminal: TerminalId, does: Does) {
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
                let next = if self.script.dies == Some(key) && nth == 0 {
                    self.written.insert(key, 1);
                    Does::Die
                } else if self.script.fails_once == Some(key) && nth == 0 {
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
            // Unless somebody was quicker.
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
            Does::Die => agent.alive = false,
        }
        self.show(terminal);
    }

    /// Tells of a terminal, if somebody watches it.
    fn show(&mut self, terminal: TerminalId) {
        if self.watching != Some(terminal) {
            return;
        }
        let Some(agent) = self.agents.get(&terminal) else { return };
        if !agent.alive {
            let turn = self.run.as_ref().map_or(0, |run| run.ledger().turns);
            return self.tell(2, RunEvent::Turn { turn, event: turn::Event::Gone("its program exited with 9".into()) });
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
