//! The machine: inputs in, effects out.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::sending::SETTLE;
use super::{Caller, Effect, Entry, Imported, Input, RunEvent, RunStatus, Spec, Step, StepOutcome, Stop, TurnEvent};
use crate::engine::hold::Hold;
use crate::engine::progress::Progress;
use crate::engine::{Control, Machine, RunOutcome};
use crate::finalize::Snapshot;
use crate::ids::TerminalId;
use crate::review_loop::{Final, Next, Role, Rounds, Rules};
use crate::time::{Mono, Wall};
use crate::turn::{Cause, Event, Level, Seen, Turn, TurnError, TurnRecord};

/// A turn that failed, until it is tried again.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Failed {
    pub(super) record: TurnRecord,
    pub(super) cause: Cause,
    pub(super) message: String,
    /// The last time at which the agent was known to live.
    pub(super) lived_until: Wall,
}

/// The agents that are being asked to leave, and what the run stops for after that.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Leaving {
    pub(super) stop: Stop,
    pub(super) why: String,
    pub(super) terminals: Vec<TerminalId>,
}

/// What is waited for. `Go` begins with nothing.
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
        /// Since when it asks something instead.
        asks: Option<Mono>,
    },
    Clearing,
    Sending,
    Waiting(Box<Turn>),
    /// Time is up. What the agent has written by now is being kept; then the turn fails.
    KeepingLate(TurnError),
    /// A turn failed, or its terminal is gone; perhaps its agent is at it all the same, or its answer is there.
    Reconsidering,
    Archiving,
    Parked {
        until: Mono,
    },
    Stepping,
    /// Agents are asked to leave, the state file is written; then it stops, or is over.
    Closing,
}

#[derive(Clone, Debug)]
pub struct Run {
    pub spec: Spec,
    pub rounds: Rounds,
    pub terminals: BTreeMap<Role, TerminalId>,
    /// Names of terminals that are being started.
    pub starting: BTreeMap<Role, String>,
    /// The last turn's number.
    pub turns: u64,
    /// Why it has stopped, if it has.
    pub stopped: Option<Stop>,
    /// Steps after PASS that are done.
    pub steps: Vec<(Step, StepOutcome)>,
    /// How many terminals each role was given a name for.
    pub(super) wanted: BTreeMap<Role, u32>,
    /// What was uncommitted before; `None` until it is known.
    pub(super) snapshot: Option<Option<Snapshot>>,
    pub(super) record: Option<TurnRecord>,
    /// How many times the turn that comes next, or is under way, was begun.
    pub(super) attempts: u32,
    /// Files in the archive.
    pub(super) archived: u32,
    pub(super) failed: Option<Failed>,
    /// The run is parked until then.
    pub(super) hold: Option<Hold>,
    /// How often in a row the model's service failed, and how often a usage limit was hit.
    pub(super) outages: u32,
    pub(super) limits: u32,
    pub(super) leaving: Option<Leaving>,
    pub(super) live: Live,
    /// What the watched terminal is.
    pub(super) seen: Option<Seen>,
    pub(super) can_start: bool,
    /// A caller came who does not want to wait until the model is tried again.
    pub(super) hurry: bool,
    /// Deliveries of this turn that certainly failed.
    pub(super) undelivered: u32,
    /// When something was last accepted in each terminal.
    pub(super) accepted: BTreeMap<TerminalId, Mono>,
    /// When the event under way happened, by the clock that never jumps.
    pub(super) now: Mono,
    pub(super) progress: Progress<Effect>,
    /// What the last event has led to, for people.
    told: Vec<Entry>,
    /// How many entries were told before.
    told_before: i64,
    /// The state file is to be written.
    pub(super) mirror_due: bool,
}

impl Run {
    /// A new run. Nothing happens before `Go`.
    pub fn new(spec: Spec, at: Wall) -> Self {
        let (rounds, terminals, in_flight) = match &spec.imported {
            Some(Imported { rounds, terminals, in_flight }) => (rounds.clone(), terminals.clone(), *in_flight),
            None => {
                let rules = Rules::new(&spec.config, spec.openspec, spec.prompts.clone());
                (Rounds::begin(rules, spec.prompt.clone(), spec.config.start_agent), BTreeMap::new(), None)
            }
        };
        let record = in_flight.map(|(key, terminal)| {
            // Sent by somebody else, in words we do not know. Its time begins anew.
            let begun = TurnRecord::new(1, key, terminal, 1, String::new(), at);
            TurnRecord { dispatching: Some(at), sent: Some(at), ..begun }
        });
        let mut progress = Progress::default();
        progress.now = at;
        Self {
            told: vec![Entry::Created { spec: Box::new(spec.clone()) }],
            spec,
            rounds,
            terminals,
            starting: BTreeMap::new(),
            turns: u64::from(record.is_some()),
            attempts: u32::from(record.is_some()),
            record,
            stopped: None,
            steps: Vec::new(),
            wanted: BTreeMap::new(),
            snapshot: None,
            archived: 0,
            failed: None,
            hold: None,
            outages: 0,
            limits: 0,
            leaving: None,
            live: Live::Resting,
            seen: None,
            can_start: false,
            hurry: false,
            undelivered: 0,
            accepted: BTreeMap::new(),
            now: Mono::default(),
            progress,
            told_before: 0,
            mirror_due: false,
        }
    }

    pub fn status(&self) -> RunStatus {
        match (self.progress.outcome().map(|(outcome, _)| outcome), self.stopped) {
            (Some(RunOutcome::Verified), _) => RunStatus::Passed,
            (Some(RunOutcome::Failed), _) => RunStatus::Failed,
            // There is nothing to go on with.
            (Some(_), Some(Stop::Start)) if self.is_fresh() => RunStatus::Failed,
            (Some(_), _) => RunStatus::Stopped,
            (None, _) if self.hold.is_some() => RunStatus::Parked,
            (None, _) => RunStatus::Running,
        }
    }

    /// The turn whose answer is awaited.
    pub fn turn(&self) -> Option<&TurnRecord> {
        self.record.as_ref().filter(|record| !record.answered)
    }

    pub(super) fn turn_mut(&mut self) -> Option<&mut TurnRecord> {
        self.record.as_mut().filter(|record| !record.answered)
    }

    /// No turn was ever begun.
    pub(super) fn is_fresh(&self) -> bool {
        self.turns == 0 && self.spec.imported.is_none()
    }

    /// The verdict, once nothing more is asked of any agent.
    pub(super) fn verdict(&self) -> Option<Final> {
        match self.rounds.next() {
            Next::Over(verdict) if self.record.is_none() => Some(verdict),
            _ => None,
        }
    }

    /// The roles without a terminal.
    pub(super) fn missing(&self) -> BTreeSet<Role> {
        Role::ALL.into_iter().filter(|role| !self.terminals.contains_key(role)).collect()
    }

    /// What the last event has led to, numbered from 1 on through all events.
    pub fn told(&self) -> impl Iterator<Item = (i64, &Entry)> {
        (self.told_before + 1..).zip(&self.told)
    }

    /// Whether the event changes anything. Others need not be journaled.
    pub fn heeds(&self, event: &RunEvent) -> bool {
        match (event, &self.live) {
            (RunEvent::Status { seen, .. }, Live::Settling { .. } | Live::Waiting(_) | Live::Reconsidering) => {
                self.seen.as_ref() != Some(seen)
            }
            (RunEvent::Status { .. }, _) => false,
            (RunEvent::Turn { turn, .. }, _) if !self.concerns(*turn) => false,
            (RunEvent::Turn { event: TurnEvent::Waiting(Event::FileStirred | Event::MessageChanged), .. }, live) => {
                matches!(live, Live::Waiting(turn) if turn.is_quiet())
            }
            _ => true,
        }
    }

    /// When to send `Time`.
    pub fn due(&self) -> Option<Mono> {
        match &self.live {
            Live::Settling { since, told, asks } => {
                let next = if *told { *since + self.spec.config.handoff.timeout() } else { *since + SETTLE };
                asks.map(|asks| asks + SETTLE).into_iter().chain([next]).min()
            }
            Live::Waiting(turn) => turn.deadline(),
            Live::Parked { until } => Some(*until),
            _ => None,
        }
    }

    /// The clock that never jumps may be another daemon's now: only the wall clock tells how long ago the last accepts were.
    fn set_clock(&mut self, now: Mono, wall: Wall) {
        let away = wall.since(self.progress.now);
        self.accepted.retain(|_, at| {
            let ago = self.now.since(*at) + away;
            *at = Mono(now.0.saturating_sub(ago));
            ago < crate::permission::COOLDOWN
        });
    }

    fn apply(&mut self, event: RunEvent) {
        match (event, &self.live) {
            (RunEvent::Go { alive, adopted, caller }, _) => {
                (self.live, self.seen, self.undelivered) = (Live::Resting, None, 0);
                self.can_start = caller.is_some();
                self.hurry = caller.is_some_and(|caller| caller.hurry);
                self.go(&alive, adopted, caller);
            }
            (RunEvent::Came(caller), _) => {
                self.can_start = true;
                self.hurry = caller.hurry;
                self.heed(caller, false);
                if caller.hurry && matches!(self.live, Live::Parked { .. }) {
                    self.look_again();
                }
            }
            // What stops it already has its own reason; and what is over cannot be stopped.
            (RunEvent::Stop { .. }, Live::Resting | Live::Closing) => {}
            (RunEvent::Stop { why }, _) => self.stop(Stop::Asked, &why),
            (RunEvent::Closed, Live::Closing) => self.closed(),
            (RunEvent::NotResumed { why }, _) => {
                self.live = Live::Resting;
                self.stopped(Stop::Asked, why);
            }
            (RunEvent::Said { level, text }, _) => self.say(level, text),
            (RunEvent::TerminalStarted { role, terminal }, _) => {
                let failed = terminal.as_ref().err().map(|why| format!("the {role} could not be started: {why}"));
                match terminal {
                    Ok(terminal) => self.terminal_ready(role, terminal),
                    Err(why) => self.terminal_lost(role, why),
                }
                self.start_over(role, failed);
            }
            (RunEvent::Status { seen, .. }, Live::Reconsidering) => {
                self.seen = Some(seen);
                self.reconsider();
            }
            (RunEvent::Status { terminal, seen }, _) if self.turn().is_some_and(|turn| turn.terminal == terminal) => {
                self.seen = Some(seen.clone());
                match &self.live {
                    Live::Settling { .. } => self.settle(),
                    _ => self.hand_to_turn(Event::Status(seen)),
                }
            }
            (RunEvent::Snapshot(snapshot), Live::Snapshotting) => {
                self.snapshot = Some(snapshot);
                self.start(self.missing());
            }
            (RunEvent::StepDone { step, outcome }, Live::Stepping) => {
                self.steps.push((step, outcome.clone()));
                self.tell(Entry::StepDone { step, outcome });
                self.after();
            }
            (RunEvent::Time, Live::Settling { .. }) => self.settle(),
            (RunEvent::Time, Live::Waiting(_)) => self.hand_to_turn(Event::Time),
            (RunEvent::Time, Live::Parked { until }) if self.now >= *until => {
                self.hold = None;
                self.say(Level::Info, "the model is tried again");
                self.look_again();
            }
            (RunEvent::Turn { event, .. }, _) => self.turn_event(event),
            // The result of something that the run no longer waits for.
            _ => {}
        }
    }

    /// Whether an event of this turn still matters: it is the last one, one that was reopened, or the failed one
    /// that is looked at again.
    fn concerns(&self, turn: u64) -> bool {
        let reconsidered = self.failed.as_ref().filter(|_| matches!(self.live, Live::Reconsidering));
        let known = self.record.as_ref().or(reconsidered.map(|failed| &failed.record));
        turn == self.turns || known.is_some_and(|record| record.turn == turn)
    }

    pub(super) fn tell(&mut self, entry: Entry) {
        self.told.push(entry);
    }

    pub(super) fn say(&mut self, level: Level, text: impl Into<String>) {
        self.tell(Entry::Said { level, text: text.into() });
    }

    pub(super) fn terminal_ready(&mut self, role: Role, terminal: TerminalId) {
        self.starting.remove(&role);
        self.terminals.insert(role, terminal);
        self.rounds.forget(role);
        self.tell(Entry::TerminalReady { role, terminal });
    }

    pub(super) fn terminal_lost(&mut self, role: Role, why: impl Into<String>) {
        self.starting.remove(&role);
        self.terminals.remove(&role);
        self.tell(Entry::TerminalLost { role, why: why.into() });
    }

    /// Goes on from between two turns.
    pub(super) fn advance(&mut self) {
        self.mirror_due = true;
        match self.rounds.next() {
            Next::Turn(key) => self.begin_turn(key),
            Next::Over(verdict) => {
                self.tell(Entry::Decided { verdict });
                self.after();
            }
        }
    }

    /// Starts a terminal for each of these roles.
    pub(super) fn start(&mut self, roles: BTreeSet<Role>) {
        if !self.can_start {
            let names = roles.iter().map(|role| role.as_str()).collect::<Vec<_>>().join(", ");
            let why =
                format!("an agent is to be started ({names}), and only `posse loop --resume` knows its environment");
            return self.stop(Stop::Alone, &why);
        }
        for role in &roles {
            let nth = self.wanted.entry(*role).or_default();
            *nth += 1;
            let name = self.spec.terminal_name(*role, *nth);
            self.starting.insert(*role, name.clone());
            self.tell(Entry::TerminalWanted { role: *role, name: name.clone() });
            if let Some(choice) = self.spec.config.agents.get(role).cloned() {
                self.progress.request(Effect::StartTerminal { role: *role, choice, name });
            }
        }
        self.live = Live::Starting { waiting: roles, failed: None };
    }

    /// The start of a terminal is over; `why` it failed.
    fn start_over(&mut self, role: Role, why: Option<String>) {
        let Live::Starting { waiting, failed } = &mut self.live else { return };
        waiting.remove(&role);
        *failed = failed.take().or(why);
        if !waiting.is_empty() {
            return;
        }
        // Somebody else may be missing meanwhile: whose turn it is finds that out.
        let Some(why) = failed.take() else { return self.advance() };
        self.stop(Stop::Start, &why);
    }

    /// Applies what the caller says about accepting permissions: the person who resumes a run decides, not the one who began
    /// it. While a run is driven it cannot be made to accept more, because the caller may be one of its agents.
    pub(super) fn heed(&mut self, caller: Caller, stopped: bool) {
        let handoff = &self.spec.config.handoff;
        let accepts = handoff.auto_accept_permissions;
        let on = caller.auto_accept.or(handoff.auto_accept_configured).unwrap_or(accepts);
        if on == accepts || !caller.hurry {
            return;
        }
        if on && !stopped {
            let text =
                "AUTO_ACCEPT_PERMISSIONS=1 counts for a run that was stopped; `posse run stop` it, and resume it then";
            return self.say(Level::Warning, text);
        }
        self.spec.config.handoff.auto_accept_permissions = on;
        let text = match on {
            true => {
                "permissions are accepted from now on, because AUTO_ACCEPT_PERMISSIONS=1 or the configuration says so"
            }
            false => "permissions are not accepted any more: AUTO_ACCEPT_PERMISSIONS is not 1",
        };
        self.say(Level::Warning, text);
        if let Live::Waiting(turn) = &mut self.live {
            turn.set_auto_accept(on);
            self.hand_to_turn(Event::Time);
        }
    }
}

impl Machine for Run {
    type Input = Input;
    type Effect = Effect;

    fn handle(&mut self, Input { mono, event }: Input, now: Wall) -> Vec<Effect> {
        if let RunEvent::Go { .. } = event {
            self.set_clock(mono, now);
        }
        self.now = mono;
        self.progress.now = now;
        self.told_before += i64::try_from(self.told.len()).unwrap_or(i64::MAX);
        self.told.clear();
        if self.heeds(&event) {
            self.apply(event);
        }
        let mut effects = self.progress.take_effects(|_| false);
        if std::mem::take(&mut self.mirror_due) {
            effects.insert(0, Effect::WriteState(self.mirror(None)));
        }
        effects
    }

    /// No effect is outstanding: `Go` brings the evidence of what became of them.
    fn progress(&self) -> &Progress<Effect> {
        &self.progress
    }

    fn deadline(&self) -> Option<Wall> {
        // Not too early, because a wall clock counts milliseconds.
        self.due().map(|due| self.progress.now.after(due.since(self.now) + Duration::from_millis(1)))
    }

    fn hold(&self) -> Option<&Hold> {
        self.hold.as_ref()
    }
}

/// Stamped with the clock that never jumps when it is journaled.
impl From<RunEvent> for Input {
    fn from(event: RunEvent) -> Self {
        Self { mono: Mono::default(), event }
    }
}

impl From<Control> for Input {
    fn from(control: Control) -> Self {
        match control {
            Control::Tick => RunEvent::Time,
            Control::Started => RunEvent::Go { alive: BTreeSet::new(), adopted: BTreeMap::new(), caller: None },
            Control::Stop(_) => RunEvent::Stop { why: "a client stopped it".into() },
        }
        .into()
    }
}
