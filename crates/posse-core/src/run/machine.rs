//! The machine: what happened in, what is wanted out.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::ledger::{Ledger, Place};
use super::sending::SETTLE;
use super::{Caller, Effect, Entry, Input, RunEvent, Spec, Stop};
use crate::engine::{Control, Machine, RunOutcome};
use crate::ids::TerminalId;
use crate::rounds::{Final, Next, Role};
use crate::time::{Mono, Wall};
use crate::turn::{self, Cause, Level, Seen, Turn, TurnError};

/// What is under way, as far as it is not in the ledger. A crash ends it.
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
    /// Agents are asked to leave, the state file is written; then it stops, or is over.
    Closing,
}

#[derive(Clone, Debug)]
pub struct Run {
    pub(super) ledger: Ledger,
    pub(super) live: Live,
    /// What the watched terminal is.
    pub(super) seen: Option<Seen>,
    pub(super) can_start: bool,
    /// A caller came who does not want to wait until the model is tried again.
    pub(super) hurry: bool,
    /// Deliveries of this turn that certainly failed.
    pub(super) undelivered: u32,
    /// When something was last accepted in each terminal, by this posse.
    pub(super) accepted: BTreeMap<TerminalId, Mono>,
    /// When the event under way happened, by both clocks.
    pub(super) now: Mono,
    pub(super) wall: Wall,
    /// What the last event has led to, for people.
    told: Vec<Entry>,
    /// How many entries were told before.
    told_before: i64,
    /// The state file is to be written.
    pub(super) mirror_due: bool,
    pub(super) out: Vec<Effect>,
}

impl Run {
    /// A new run. Nothing happens before `Go`.
    pub fn new(spec: Spec, at: Wall) -> Self {
        Self {
            told: vec![Entry::Created { spec: Box::new(spec.clone()) }],
            ledger: Ledger::new(spec, at),
            live: Live::Resting,
            seen: None,
            can_start: false,
            hurry: false,
            undelivered: 0,
            accepted: BTreeMap::new(),
            now: Mono::default(),
            wall: at,
            told_before: 0,
            mirror_due: false,
            out: Vec::new(),
        }
    }

    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// What the last event has led to, numbered from 1 on through all events.
    pub fn told(&self) -> impl Iterator<Item = (i64, &Entry)> {
        (self.told_before + 1..).zip(&self.told)
    }

    /// Whether the event changes anything. Others need not be journaled.
    pub fn heeds(&self, event: &RunEvent) -> bool {
        if event.turn().is_some_and(|turn| !self.concerns(turn)) {
            return false;
        }
        match (event, &self.live) {
            (RunEvent::Status { seen, .. }, Live::Settling { .. } | Live::Waiting(_) | Live::Reconsidering) => {
                self.seen.as_ref() != Some(seen)
            }
            (RunEvent::Status { .. }, _) => false,
            (RunEvent::Turn { event: turn::Event::FileStirred | turn::Event::MessageChanged, .. }, live) => {
                matches!(live, Live::Waiting(turn) if turn.is_quiet())
            }
            _ => true,
        }
    }

    /// When to send `Time`.
    pub fn due(&self) -> Option<Mono> {
        match &self.live {
            Live::Settling { since, told, asks } => {
                let next = if *told { *since + self.timeout() } else { *since + SETTLE };
                asks.map(|asks| asks + SETTLE).into_iter().chain([next]).min()
            }
            Live::Waiting(turn) => turn.deadline(),
            Live::Parked { until } => Some(*until),
            _ => None,
        }
    }

    pub fn take(&mut self, event: RunEvent, now: Mono, wall: Wall) -> Vec<Effect> {
        self.now = now;
        self.wall = wall;
        self.ledger.changed = wall;
        self.told_before += i64::try_from(self.told.len()).unwrap_or(i64::MAX);
        self.told.clear();
        if self.heeds(&event) {
            self.apply(event);
        }
        let mut effects = std::mem::take(&mut self.out);
        if std::mem::take(&mut self.mirror_due) {
            effects.insert(0, Effect::WriteState(super::mirror::mirror(&self.ledger, None, wall)));
        }
        effects
    }

    fn apply(&mut self, event: RunEvent) {
        match (event, &self.live) {
            (RunEvent::Go { alive, adopted, caller }, _) => {
                (self.live, self.seen, self.undelivered) = (Live::Resting, None, 0);
                self.accepted.clear();
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
                self.record(Entry::Stopped { stop: Stop::Asked, why });
            }
            (RunEvent::Said { level, text }, _) => self.say(level, text),
            (RunEvent::TerminalStarted { role, terminal }, _) => {
                self.record(Entry::TerminalReady { role, terminal });
                self.start_over(role, None);
            }
            (RunEvent::TerminalNotStarted { role, why }, _) => {
                self.record(Entry::TerminalLost { role, why: why.clone() });
                self.start_over(role, Some(format!("the {role} could not be started: {why}")));
            }
            (RunEvent::Status { seen, .. }, Live::Reconsidering) => {
                self.seen = Some(seen);
                self.reconsider();
            }
            (RunEvent::Status { terminal, seen }, _)
                if self.ledger.turn().is_some_and(|turn| turn.terminal == terminal) =>
            {
                self.seen = Some(seen.clone());
                self.status(seen);
            }
            (RunEvent::Snapshot(snapshot), Live::Snapshotting) => {
                self.record(Entry::Snapshot { snapshot });
                self.start(self.ledger.missing());
            }
            (RunEvent::StepDone { step, outcome }, Live::Stepping) => {
                self.record(Entry::StepDone { step, outcome });
                self.after();
            }
            (RunEvent::Time, _) => self.time(),
            (RunEvent::StaleCleared { turn, stale, printed }, Live::Clearing) => {
                self.record(Entry::Dispatching { turn, stale, printed });
                self.dispatch();
            }
            // Left where it is it would be taken for the answer to this turn.
            (RunEvent::StaleInTheWay { why, .. }, Live::Clearing) => {
                let text = format!("an older answer is in the way and cannot be moved: {why}");
                self.fail(TurnError::runtime(Cause::Unarchived, text));
            }
            (RunEvent::Sent { turn, sent }, Live::Sending) => self.sent(turn, sent),
            (RunEvent::Traces { turn, traces }, Live::Tracing) => self.traces(turn, traces),
            (RunEvent::Turn { event, .. }, _) => self.turn_event(event),
            (RunEvent::Archived { turn, name }, Live::Archiving) => {
                self.record(Entry::Archived { turn, name });
                self.advance();
            }
            (RunEvent::Archived { name, .. }, Live::KeepingLate(error)) => self.kept_late(error.clone(), name),
            // The result of something that the run no longer waits for.
            _ => {}
        }
    }

    /// Whether an event of this turn still matters: it is the last one, one that was reopened, or the failed one
    /// that is looked at again.
    fn concerns(&self, turn: u64) -> bool {
        let under_way = match &self.ledger.place {
            Place::Turn(record) => record.turn == turn,
            Place::Unarchived { turn: unarchived, .. } => *unarchived == turn,
            _ => false,
        };
        let reconsidered = || self.ledger.failed.as_ref().is_some_and(|failed| failed.record.turn == turn);
        turn == self.ledger.turns || under_way || (matches!(self.live, Live::Reconsidering) && reconsidered())
    }

    pub(super) fn record(&mut self, entry: Entry) {
        let notes = self.ledger.apply(&entry, self.wall);
        self.told.push(entry);
        for note in notes {
            self.say(note.level, note.text);
        }
    }

    pub(super) fn say(&mut self, level: Level, text: impl Into<String>) {
        self.record(Entry::Said { level, text: text.into() });
    }

    pub(super) fn timeout(&self) -> Duration {
        Duration::from_secs(self.ledger.spec.config.handoff.response_timeout.into())
    }

    pub(super) fn mirror(&mut self) {
        self.mirror_due = true;
    }

    /// Goes on from between two turns.
    pub(super) fn advance(&mut self) {
        self.mirror();
        match self.ledger.rounds.next() {
            Next::Turn(key) => self.begin_turn(key),
            Next::Over(verdict) => {
                self.record(Entry::Decided { verdict });
                self.after();
            }
            Next::Stuck(why) => self.stop(Stop::Stuck, &why),
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
            let nth = self.ledger.wanted.get(role).copied().unwrap_or(0) + 1;
            let name = self.ledger.spec.terminal_name(*role, nth);
            self.record(Entry::TerminalWanted { role: *role, name: name.clone() });
            if let Some(choice) = self.ledger.spec.config.agents.get(role).cloned() {
                self.out.push(Effect::StartTerminal { role: *role, choice, name });
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
        let handoff = &self.ledger.spec.config.handoff;
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
        self.record(Entry::AutoAccept { on });
        let text = match on {
            true => {
                "permissions are accepted from now on, because AUTO_ACCEPT_PERMISSIONS=1 or the configuration says so"
            }
            false => "permissions are not accepted any more: AUTO_ACCEPT_PERMISSIONS is not 1",
        };
        self.say(Level::Warning, text);
        if let Live::Waiting(turn) = &mut self.live {
            turn.set_auto_accept(on);
            self.turn_event(turn::Event::Time);
        }
    }

    fn time(&mut self) {
        match &self.live {
            Live::Settling { .. } => self.settle(),
            Live::Waiting(_) => self.turn_event(turn::Event::Time),
            Live::Parked { until } if self.now >= *until => {
                self.record(Entry::Unparked);
                self.look_again();
            }
            _ => {}
        }
    }
}

/// The state is in the journal: its entries are the inputs, each with its time.
impl Machine for Run {
    type Input = Input;
    type Effect = Effect;

    fn handle(&mut self, input: Input, now: Wall) -> Vec<Effect> {
        self.take(input.event, input.mono, now)
    }

    /// None: `Go` brings the evidence of what became of them.
    fn outstanding(&self) -> &[Effect] {
        &[]
    }

    fn deadline(&self) -> Option<Wall> {
        // Not too early, because a wall clock counts milliseconds.
        self.due().map(|due| self.wall.after(due.since(self.now) + Duration::from_millis(1)))
    }

    fn outcome(&self) -> Option<(RunOutcome, &str)> {
        match (&self.live, &self.ledger.place, &self.ledger.stopped) {
            (Live::Resting, Place::Over(Final::Pass), _) => Some((RunOutcome::Verified, "PASS")),
            (Live::Resting, Place::Over(Final::Fail), _) => Some((RunOutcome::Failed, "FAIL")),
            (Live::Resting, _, Some((_, why))) => Some((RunOutcome::Stopped, why)),
            _ => None,
        }
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
