//! The machine: what happened in, what is wanted out.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::ledger::{Leaving, Ledger, Place};
use super::{Entry, Spec, Step, StepOutcome, Stop};
use crate::aftermath::Snapshot;
use crate::ids::TerminalId;
use crate::rounds::config::AgentChoice;
use crate::rounds::state::StateFile;
use crate::rounds::{Final, Key, Next, Role};
use crate::status::StatusKind;
use crate::time::{Mono, Wall};
use crate::turn::{self, Cause, ErrorKind, Level, Notice, Seen, Turn, TurnError, files};

/// How long a terminal may take to be quiet before its turn, before people are told (LOOP-32).
const SETTLE: Duration = Duration::from_secs(10);
/// How often a prompt that certainly did not arrive is tried again.
const DELIVERIES: u32 = 3;

/// What can happen to a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Happened {
    /// It begins, or goes on after a stop or a crash. These of its terminals live, and these were being started when posse
    /// died.
    Go {
        alive: BTreeSet<TerminalId>,
        adopted: BTreeMap<Role, TerminalId>,
        can_start: bool,
    },
    /// Somebody who knows the environment of its agents is there, or has gone.
    CanStart(bool),
    TerminalStarted {
        role: Role,
        result: Result<TerminalId, String>,
    },
    /// What a watched terminal is now.
    Status {
        terminal: TerminalId,
        seen: Seen,
    },
    /// What an earlier turn left in the response file was moved away, under this name, or could not be. So much had the
    /// terminal printed by then.
    StaleCleared {
        turn: u64,
        stale: Result<Option<String>, String>,
        printed: Option<u64>,
    },
    Sent {
        turn: u64,
        sent: Sent,
    },
    Traces {
        turn: u64,
        traces: Traces,
    },
    /// Something about the turn that is under way.
    Turn {
        turn: u64,
        event: turn::Event,
    },
    Archived {
        turn: u64,
        name: Option<String>,
    },
    /// An answer that came too late was kept, under this name.
    KeptLate {
        turn: u64,
        name: Option<String>,
    },
    Snapshot(Option<Snapshot>),
    StepDone {
        step: Step,
        outcome: StepOutcome,
    },
    /// Those who were to be asked to exit have been.
    TerminalsAsked,
    Stop {
        why: String,
    },
    Time,
}

/// What became of a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sent {
    Taken,
    /// Nothing of it is with the agent.
    Not(String),
    /// Nobody knows.
    Uncertain(String),
    Gone(String),
}

/// What a terminal shows of a prompt nobody is sure of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Traces {
    /// It is in the conversation, or the agent has worked since.
    Taken,
    /// The agent has been quiet since before, and shows nothing of it.
    NotTaken,
    Unclear(String),
}

/// What a run wants done, in this order.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// To be durable before anything after it is done.
    Record(Entry),
    StartTerminal {
        role: Role,
        choice: AgentChoice,
        name: String,
    },
    /// Its status is told, now and at every change, and no other terminal's.
    Watch(TerminalId),
    ClearStale {
        turn: u64,
        key: Key,
        terminal: TerminalId,
        number: u32,
    },
    /// Typed once for all times, whoever asks how often.
    Send {
        turn: u64,
        terminal: TerminalId,
        text: String,
    },
    LookForTraces {
        turn: u64,
        terminal: TerminalId,
        key: Key,
        text: String,
        since: Wall,
        printed: Option<u64>,
    },
    LookAtFile {
        turn: u64,
        key: Key,
    },
    Accept {
        turn: u64,
        terminal: TerminalId,
        role: Role,
        n: u32,
        cap: u32,
        question: Option<String>,
        epoch: u64,
    },
    AskLastOutput {
        turn: u64,
        terminal: TerminalId,
    },
    Remind {
        turn: u64,
        terminal: TerminalId,
        n: u32,
        text: String,
    },
    /// The response file goes to the archive under this number.
    Archive {
        turn: u64,
        key: Key,
        number: u32,
    },
    /// As `Archive`, as an answer that came too late.
    KeepLate {
        turn: u64,
        key: Key,
        number: u32,
    },
    /// `event` is what happened, in one word for programs.
    Notify {
        event: &'static str,
        notice: Notice,
    },
    /// See what is uncommitted in the project.
    TakeSnapshot,
    /// The state file is to say this, with these times.
    Mirror {
        state: Box<StateFile>,
        at: Wall,
        dispatched: Option<Wall>,
    },
    Step {
        step: Step,
        before: Option<Snapshot>,
    },
    /// Ask these to exit, and tell when all have been asked.
    EndTerminals(Vec<TerminalId>),
    /// The state file goes to the archive.
    ArchiveState,
    /// Nothing more will come until `Go`.
    Rest,
}

/// What is under way, as far as it is not in the ledger.
#[derive(Clone, Debug)]
pub(super) enum Live {
    Resting,
    Snapshotting,
    /// Waits for these terminals; the first that could not be started says why.
    Starting {
        waiting: BTreeSet<Role>,
        failed: Option<String>,
    },
    /// Waits for the terminal to be quiet.
    Settling {
        since: Mono,
        told: bool,
    },
    Clearing,
    Sending,
    Tracing,
    Waiting(Box<Turn>),
    /// Time is up. What the agent has written by now is being kept; then the turn fails.
    KeepingLate(TurnError),
    /// The terminal is gone; perhaps the answer is there.
    Salvaging,
    /// A turn failed before the run stopped; perhaps its agent is at it all the same.
    Reconsidering,
    Archiving,
    Parked {
        until: Mono,
    },
    Stepping,
    /// Agents are being asked to leave; then it stops, or is over.
    Leaving,
}

#[derive(Clone, Debug)]
pub struct Run {
    pub(super) ledger: Ledger,
    pub(super) live: Live,
    /// What the watched terminal is.
    pub(super) seen: Option<Seen>,
    pub(super) can_start: bool,
    /// Deliveries of this turn that certainly failed.
    undelivered: u32,
    pub(super) out: Vec<Effect>,
}

impl Run {
    /// A new run. Nothing happens before `Go`.
    pub fn create(spec: Spec, at: Wall) -> (Self, Effect) {
        let entry = Entry::Created { spec: Box::new(spec.clone()) };
        (Self::from(Ledger::new(spec, at)), Effect::Record(entry))
    }

    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    pub fn deadline(&self) -> Option<Mono> {
        match &self.live {
            Live::Settling { since, told: false } => Some(*since + SETTLE),
            Live::Settling { since, told: true } => Some(*since + self.timeout()),
            Live::Waiting(turn) => turn.deadline(),
            Live::Parked { until } => Some(*until),
            _ => None,
        }
    }

    pub fn handle(&mut self, happened: Happened, now: Mono, wall: Wall) -> Vec<Effect> {
        match happened {
            Happened::Go { alive, adopted, can_start } => {
                self.can_start = can_start;
                self.go(&alive, adopted, now, wall);
            }
            Happened::CanStart(can_start) => self.can_start = can_start,
            // What stops it already has its own reason; and what is over cannot be stopped.
            Happened::Stop { why } if !matches!(self.live, Live::Resting | Live::Leaving) => {
                self.stop(Stop::Asked, &why, wall);
            }
            Happened::Stop { .. } => {}
            Happened::TerminalsAsked => self.terminals_asked(wall),
            Happened::TerminalStarted { role, result } => self.terminal_started(role, result, now, wall),
            Happened::Status { seen, .. } if matches!(self.live, Live::Reconsidering) => {
                self.seen = Some(seen);
                self.reconsider(now, wall);
            }
            Happened::Status { terminal, seen } => {
                if self.ledger.turn().is_some_and(|turn| turn.terminal == terminal) {
                    self.seen = Some(seen.clone());
                    self.status(seen, now, wall);
                }
            }
            Happened::Snapshot(snapshot) => {
                if matches!(self.live, Live::Snapshotting) {
                    self.record(Entry::Snapshot { snapshot }, wall);
                    self.start(self.ledger.missing(), wall);
                }
            }
            Happened::StepDone { step, outcome } => {
                if matches!(self.live, Live::Stepping) {
                    self.record(Entry::StepDone { step, outcome }, wall);
                    self.after(wall);
                }
            }
            Happened::Time => self.time(now, wall),
            Happened::StaleCleared { turn, .. }
            | Happened::Sent { turn, .. }
            | Happened::Traces { turn, .. }
            | Happened::Turn { turn, .. }
            | Happened::Archived { turn, .. }
            | Happened::KeptLate { turn, .. }
                if !self.concerns(turn) => {} // Of a turn that is over.
            Happened::StaleCleared { turn, stale, printed } => self.stale_cleared(turn, stale, printed, now, wall),
            Happened::Sent { turn, sent } => self.sent(turn, sent, now, wall),
            Happened::Traces { turn, traces } => self.traces(turn, traces, now, wall),
            Happened::Turn { event, .. } => self.turn_event(event, now, wall),
            Happened::KeptLate { name, .. } => self.kept_late(name, now, wall),
            Happened::Archived { turn, name } => {
                if matches!(self.live, Live::Archiving) {
                    self.record(Entry::Archived { turn, name }, wall);
                    self.advance(now, wall);
                }
            }
        }
        std::mem::take(&mut self.out)
    }

    /// Whether what happened to this turn still matters: it is the last one, or the failed one that is looked at again.
    fn concerns(&self, turn: u64) -> bool {
        let reconsidered = || self.ledger.failed.as_ref().is_some_and(|failed| failed.record.turn == turn);
        turn == self.ledger.turns || (matches!(self.live, Live::Reconsidering) && reconsidered())
    }

    pub(super) fn record(&mut self, entry: Entry, wall: Wall) {
        let notes = self.ledger.apply(&entry, wall);
        self.out.push(Effect::Record(entry));
        for note in notes {
            self.say(note.level, note.text, wall);
        }
    }

    pub(super) fn say(&mut self, level: Level, text: impl Into<String>, wall: Wall) {
        self.record(Entry::Said { level, text: text.into() }, wall);
    }

    fn timeout(&self) -> Duration {
        Duration::from_secs(self.ledger.spec.config.handoff.response_timeout.into())
    }

    pub(super) fn mirror(&mut self, wall: Wall) {
        self.out.push(super::mirror::now(&self.ledger, wall));
    }

    /// Goes on from between two turns.
    pub(super) fn advance(&mut self, now: Mono, wall: Wall) {
        self.mirror(wall);
        match self.ledger.rounds.next() {
            Next::Turn(key) => self.begin_turn(key, now, wall),
            Next::Over(verdict) => {
                self.record(Entry::Decided { verdict }, wall);
                self.after(wall);
            }
            Next::Stuck(why) => self.stop(Stop::Stuck, &why, wall),
        }
    }

    /// Starts a terminal for each of these roles.
    pub(super) fn start(&mut self, roles: BTreeSet<Role>, wall: Wall) {
        if !self.can_start {
            let names = roles.iter().map(|role| role.as_str()).collect::<Vec<_>>().join(", ");
            let why =
                format!("an agent is to be started ({names}), and only `posse loop --resume` knows its environment");
            return self.stop(Stop::Alone, &why, wall);
        }
        for role in &roles {
            let nth = self.ledger.wanted.get(role).copied().unwrap_or(0) + 1;
            let name = self.ledger.spec.terminal_name(*role, nth);
            self.record(Entry::TerminalWanted { role: *role, name: name.clone() }, wall);
            if let Some(choice) = self.ledger.spec.config.agents.get(role).cloned() {
                self.out.push(Effect::StartTerminal { role: *role, choice, name });
            }
        }
        self.live = Live::Starting { waiting: roles, failed: None };
    }

    fn terminal_started(&mut self, role: Role, result: Result<TerminalId, String>, now: Mono, wall: Wall) {
        let entry = match result {
            Ok(terminal) => Entry::TerminalReady { role, terminal },
            Err(why) => Entry::TerminalLost { role, why },
        };
        let why = match &entry {
            Entry::TerminalLost { why, .. } => Some(format!("the {role} could not be started: {why}")),
            _ => None,
        };
        self.record(entry, wall);
        let Live::Starting { waiting, failed } = &mut self.live else { return };
        waiting.remove(&role);
        *failed = failed.take().or(why);
        if !waiting.is_empty() {
            return;
        }
        // Somebody else may be missing meanwhile: whose turn it is finds that out.
        let Some(why) = failed.take() else { return self.advance(now, wall) };
        self.stop(Stop::Start, &why, wall);
    }

    pub(super) fn begin_turn(&mut self, key: Key, now: Mono, wall: Wall) {
        let role = key.role();
        let Some(terminal) = self.ledger.terminals.get(&role).copied() else {
            return self.start(BTreeSet::from([role]), wall);
        };
        let turn = self.ledger.turns + 1;
        let instruction = files::instruction(&self.response_file(key), &self.heredoc_word(turn, 0));
        // An agent whose turn broke off still has the task; one that never got it is told everything.
        let broke_off = self.ledger.failed.as_ref().filter(|failed| {
            failed.record.key == key && failed.record.terminal == terminal && failed.record.sent.is_some()
        });
        let text = match broke_off {
            Some(failed) => again(&failed.message, &instruction),
            None => self.ledger.rounds.text(key, &instruction),
        };
        // No two prompts begin alike, so that each can be recognised on a screen.
        let text = format!("[run {}, turn {turn}]\n{text}", self.ledger.spec.id);
        let attempt = self.ledger.attempts + 1;
        self.undelivered = 0;
        self.seen = None;
        self.record(Entry::TurnBegun { turn, key, terminal, attempt, text }, wall);
        self.mirror(wall);
        self.live = Live::Settling { since: now, told: false };
        self.out.push(Effect::Watch(terminal));
    }

    pub(super) fn response_file(&self, key: Key) -> String {
        format!("{}/.tmp/agent-responses/{}", self.ledger.spec.directory, key.file_name())
    }

    /// The word that ends an answer's heredoc. Nobody can have written it into an answer before: the run's name is random.
    pub(super) fn heredoc_word(&self, turn: u64, reminder: u32) -> String {
        let run = u64::from(self.ledger.spec.id.bits());
        files::heredoc_word(run << 32 | (turn & 0xff_ffff) << 8 | u64::from(reminder & 0xff))
    }

    fn status(&mut self, seen: Seen, now: Mono, wall: Wall) {
        match &self.live {
            Live::Settling { .. } => self.settle(now, wall),
            Live::Waiting(_) => self.turn_event(turn::Event::Status(seen), now, wall),
            _ => {}
        }
    }

    /// A prompt is typed into a quiet terminal only.
    pub(super) fn settle(&mut self, now: Mono, wall: Wall) {
        let Live::Settling { since, told } = self.live else { return };
        let Some(turn) = self.ledger.turn() else { return };
        let (id, key, terminal) = (turn.turn, turn.key, turn.terminal);
        let waited = now.since(since);
        match self.seen.as_ref().and_then(|seen| seen.kind) {
            Some(StatusKind::Idle | StatusKind::Completed) => {
                self.live = Live::Clearing;
                let number = self.ledger.archived + 1;
                self.out.push(Effect::ClearStale { turn: id, key, terminal, number });
            }
            // An agent that a failing model threw back to its prompt stands there until it is told to go on.
            Some(StatusKind::Error) if self.ledger.attempts > 1 => {
                self.live = Live::Clearing;
                let number = self.ledger.archived + 1;
                self.out.push(Effect::ClearStale { turn: id, key, terminal, number });
            }
            // Nothing was typed yet, so there is time to see whether it stays: a screen that is drawn anew is no error.
            Some(StatusKind::Error) if waited >= SETTLE => {
                let reason = self.seen.as_ref().map_or("", |seen| seen.reason.as_str());
                let text = format!("terminal {terminal} of the {} is in ERROR state: {reason}", key.role());
                self.fail(runtime(Cause::ErrorState, text), now, wall);
            }
            Some(StatusKind::WaitingUserAnswer) if waited >= SETTLE => {
                let text = format!(
                    "terminal {terminal} of the {} waits for an answer, and a prompt is not typed into a question; \
                     answer it with `posse approve {terminal}` or `posse deny {terminal}`, then resume",
                    key.role()
                );
                self.fail(runtime(Cause::Waiting, text), now, wall);
            }
            _ if waited > self.timeout() => {
                let text = format!("terminal {terminal} of the {} did not become quiet", key.role());
                let error = TurnError { kind: ErrorKind::Timeout, cause: Cause::TimedOut, message: text };
                self.fail(error, now, wall);
            }
            _ if waited >= SETTLE && !told => {
                self.live = Live::Settling { since, told: true };
                let text = format!("the {} is still busy with what came before; its next prompt waits", key.role());
                self.say(Level::Warning, text, wall);
            }
            _ => {}
        }
    }

    fn stale_cleared(
        &mut self,
        turn: u64,
        stale: Result<Option<String>, String>,
        printed: Option<u64>,
        now: Mono,
        wall: Wall,
    ) {
        if !matches!(self.live, Live::Clearing) {
            return;
        }
        let stale = match stale {
            Ok(stale) => stale,
            // Left where it is it would be taken for the answer to this turn.
            Err(why) => {
                let text = format!("an older answer is in the way and cannot be moved: {why}");
                return self.fail(runtime(Cause::Unarchived, text), now, wall);
            }
        };
        self.record(Entry::Dispatching { turn, stale, printed }, wall);
        self.dispatch();
    }

    /// Sends the prompt of the turn that is under way. Under one number it is typed once, however often this is asked.
    pub(super) fn dispatch(&mut self) {
        if let Some(turn) = self.ledger.turn() {
            let (turn, terminal, text) = (turn.turn, turn.terminal, turn.text.clone());
            self.live = Live::Sending;
            self.out.push(Effect::Send { turn, terminal, text });
        }
    }

    fn sent(&mut self, turn: u64, sent: Sent, now: Mono, wall: Wall) {
        if !matches!(self.live, Live::Sending) {
            return;
        }
        match sent {
            Sent::Taken => {
                self.record(Entry::Sent { turn }, wall);
                self.mirror(wall);
                self.wait(now, wall);
            }
            Sent::Uncertain(why) => {
                self.say(Level::Warning, format!("nobody knows whether the prompt arrived ({why}); looking"), wall);
                if let Some(turn) = self.ledger.turn() {
                    let (text, since) = (turn.text.clone(), turn.dispatching.unwrap_or(turn.begun));
                    let (turn, terminal, key, printed) = (turn.turn, turn.terminal, turn.key, turn.printed);
                    self.live = Live::Tracing;
                    self.out.push(Effect::LookForTraces { turn, terminal, key, text, since, printed });
                }
            }
            Sent::Not(why) => {
                self.undelivered += 1;
                if self.undelivered >= DELIVERIES {
                    return self.fail(
                        runtime(Cause::ErrorState, format!("the prompt was not taken: {why}")),
                        now,
                        wall,
                    );
                }
                self.say(Level::Warning, format!("the prompt was not taken: {why}; trying again"), wall);
                self.live = Live::Settling { since: now, told: false };
                if let Some(turn) = self.ledger.turn() {
                    self.out.push(Effect::Watch(turn.terminal));
                }
            }
            Sent::Gone(why) => self.gone(&why, now, wall),
        }
    }

    fn traces(&mut self, turn: u64, traces: Traces, now: Mono, wall: Wall) {
        if !matches!(self.live, Live::Tracing) {
            return;
        }
        match traces {
            Traces::Taken => {
                self.record(Entry::Sent { turn }, wall);
                self.wait(now, wall);
            }
            Traces::NotTaken => {
                let why = "the agent has done nothing since and shows nothing of it".to_owned();
                self.record(Entry::Unsent { turn, why }, wall);
                self.advance(now, wall);
            }
            Traces::Unclear(why) => {
                let text = format!("nobody knows whether the prompt arrived, and it is not sent twice: {why}");
                self.fail(runtime(Cause::Unreachable, text), now, wall);
            }
        }
    }

    pub(super) fn gone(&mut self, why: &str, now: Mono, wall: Wall) {
        let text = match self.ledger.turn() {
            Some(turn) => format!("terminal {} of the {} is gone: {why}", turn.terminal, turn.key.role()),
            None => format!("a terminal is gone: {why}"),
        };
        self.fail(runtime(Cause::Gone, text), now, wall);
    }

    fn time(&mut self, now: Mono, wall: Wall) {
        match &self.live {
            Live::Settling { .. } => self.settle(now, wall),
            Live::Waiting(_) => self.turn_event(turn::Event::Time, now, wall),
            Live::Parked { until } if now >= *until => {
                self.record(Entry::Unparked, wall);
                self.advance(now, wall);
            }
            _ => {}
        }
    }

    /// What comes after the verdict, one step at a time.
    pub(super) fn after(&mut self, wall: Wall) {
        let Place::After(verdict) = self.ledger.place else { return };
        self.live = Live::Stepping;
        if let (Final::Pass, Some(step)) = (verdict, self.next_step()) {
            let before = self.ledger.snapshot.clone().flatten();
            return self.out.push(Effect::Step { step, before });
        }
        let terminals: Vec<TerminalId> = self.ledger.terminals.values().copied().collect();
        if self.ledger.spec.config.cleanup_on_exit && !terminals.is_empty() {
            return self.leave(terminals);
        }
        self.finish(verdict, wall);
    }

    /// Everything that comes after the verdict is done.
    fn finish(&mut self, verdict: Final, wall: Wall) {
        self.out.push(super::mirror::last(&self.ledger, verdict, wall));
        self.out.push(Effect::ArchiveState);
        self.record(Entry::Finished, wall);
        self.out.push(verdict_notice(&self.ledger, verdict));
        self.live = Live::Resting;
        self.out.push(Effect::Rest);
    }

    fn next_step(&self) -> Option<Step> {
        let wishes = &self.ledger.spec.config.post_processing;
        let done = |step| self.ledger.steps.iter().find(|(done, _)| *done == step).map(|(_, outcome)| outcome);
        let archive = done(Step::OpenspecArchive);
        if wishes.openspec_archive && archive.is_none() {
            return Some(Step::OpenspecArchive);
        }
        // What could not be archived is not committed (LOOP-60).
        let archive_failed = matches!(archive, Some(StepOutcome::Failed(_)));
        (wishes.git_commit && !archive_failed && done(Step::GitCommit).is_none()).then_some(Step::GitCommit)
    }

    /// Asks these to leave. What follows waits until they have been asked: posse may die on the way, and nobody would ever
    /// come back to them.
    pub(super) fn leave(&mut self, terminals: Vec<TerminalId>) {
        self.live = Live::Leaving;
        self.out.push(Effect::EndTerminals(terminals));
    }

    fn terminals_asked(&mut self, wall: Wall) {
        if !matches!(self.live, Live::Leaving) {
            return;
        }
        match (self.ledger.leaving.clone(), &self.ledger.place) {
            (Some(Leaving { stop, why, .. }), _) => self.stop_now(stop, &why, wall),
            (None, Place::After(verdict)) => self.finish(*verdict, wall),
            (None, _) => {}
        }
    }

    /// Stops. With agents that are to leave it does so when they have been asked: from then on they are no longer its own,
    /// or a run that is resumed at once would give a task to somebody who is on the way out.
    pub(super) fn stop(&mut self, stop: Stop, why: &str, wall: Wall) {
        let clean = match stop {
            // Who comes with the environment finds everybody where they were.
            Stop::Alone => false,
            // Nothing was done yet: those that did start are of no use to anybody.
            Stop::Start if self.ledger.is_fresh() => true,
            _ => self.ledger.spec.config.cleanup_on_exit,
        };
        if clean && !self.ledger.terminals.is_empty() {
            self.record(Entry::Leaving { stop, why: why.to_owned() }, wall);
            let terminals = self.ledger.leaving.iter().flat_map(|leaving| leaving.terminals.clone()).collect();
            return self.leave(terminals);
        }
        self.stop_now(stop, why, wall);
    }

    fn stop_now(&mut self, stop: Stop, why: &str, wall: Wall) {
        // A run that never had its terminals leaves no state file behind (LOOP-14). Otherwise it is written before anybody
        // hears of the stop: who waits for that finds it as it is to be.
        if !self.ledger.is_fresh() || self.ledger.missing().is_empty() {
            self.mirror(wall);
        }
        self.record(Entry::Stopped { stop, why: why.to_owned() }, wall);
        if stop != Stop::Asked {
            let id = self.ledger.spec.id;
            let over = self.ledger.status().is_over();
            let text = if over { why.to_owned() } else { format!("{why}\nGo on with: posse loop --resume {id}") };
            let notice = Notice { priority: 4, title: format!("run {id} has stopped"), text };
            self.out.push(Effect::Notify { event: "stopped", notice });
        }
        self.live = Live::Resting;
        self.out.push(Effect::Rest);
    }
}

impl From<Ledger> for Run {
    fn from(ledger: Ledger) -> Self {
        Self { ledger, live: Live::Resting, seen: None, can_start: false, undelivered: 0, out: Vec::new() }
    }
}

pub(super) fn runtime(cause: Cause, message: String) -> TurnError {
    TurnError { kind: ErrorKind::Runtime, cause, message }
}

fn again(why: &str, instruction: &str) -> String {
    format!(
        "Your last turn broke off before its answer was written ({why}). Take up the task of my last message where \
         you left it, finish it, and write the answer.\n\n{instruction}"
    )
}

fn verdict_notice(ledger: &Ledger, verdict: Final) -> Effect {
    let (id, rounds) = (ledger.spec.id, ledger.rounds.round());
    let (event, priority, word) = match verdict {
        Final::Pass => ("pass", 3, "PASS"),
        Final::Fail => ("fail", 4, "FAIL"),
    };
    let text = format!("{word} in round {rounds}, {}", ledger.spec.directory);
    Effect::Notify { event, notice: Notice { priority, title: format!("run {id}: {word}"), text } }
}
