//! The machine: what happened in, what is wanted out.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::ledger::{Ledger, Place};
use super::sending::SETTLE;
use super::{Caller, Effect, Entry, Happened, Spec, Stop};
use crate::ids::TerminalId;
use crate::rounds::{Next, Role};
use crate::time::{Mono, Wall};
use crate::turn::{self, Cause, ErrorKind, Level, Seen, Turn, TurnError};

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
    /// Agents are being asked to leave; then it stops, or is over.
    Leaving,
}

impl Live {
    pub(super) fn settling(now: Mono) -> Self {
        Self::Settling { since: now, told: false, asks: None }
    }
}

#[derive(Clone, Debug)]
pub struct Run {
    pub(super) ledger: Ledger,
    pub(super) live: Live,
    /// What the watched terminal is.
    pub(super) seen: Option<Seen>,
    pub(super) can_start: bool,
    /// Somebody came who does not want to wait until the model is tried again.
    pub(super) hurry: bool,
    /// Deliveries of this turn that certainly failed.
    pub(super) undelivered: u32,
    /// When something was last accepted in each terminal, by this posse.
    pub(super) accepted: BTreeMap<TerminalId, Mono>,
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
            Live::Settling { since, told, asks } => {
                let next = if *told { *since + self.timeout() } else { *since + SETTLE };
                asks.map(|asks| asks + SETTLE).into_iter().chain([next]).min()
            }
            Live::Waiting(turn) => turn.deadline(),
            Live::Parked { until } => Some(*until),
            _ => None,
        }
    }

    pub fn handle(&mut self, happened: Happened, now: Mono, wall: Wall) -> Vec<Effect> {
        match happened {
            Happened::Go { alive, adopted, caller } => {
                self.can_start = caller.is_some();
                self.hurry = caller.is_some_and(|caller| caller.hurry);
                self.go(&alive, adopted, caller, now, wall);
            }
            Happened::Came(caller) => {
                (self.can_start, self.hurry) = (true, caller.hurry);
                self.heed(caller, false, now, wall);
                if caller.hurry && matches!(self.live, Live::Parked { .. }) {
                    self.look_again(now, wall);
                }
            }
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

    /// Whether what happened to this turn still matters: it is the last one, one that goes on after all, or the failed one
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

    pub(super) fn timeout(&self) -> Duration {
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

    /// Whether permissions are accepted is a matter of the person who goes on with it, not of who began it. While it goes on
    /// nobody can have more accepted: it might be one of its agents.
    pub(super) fn heed(&mut self, caller: Caller, stopped: bool, now: Mono, wall: Wall) {
        let handoff = &self.ledger.spec.config.handoff;
        let accepts = handoff.auto_accept_permissions;
        let on = caller.auto_accept.or(handoff.auto_accept_configured).unwrap_or(accepts);
        if on == accepts || !caller.hurry {
            return;
        }
        if on && !stopped {
            let text =
                "AUTO_ACCEPT_PERMISSIONS=1 counts for a run that was stopped; `posse run stop` it, and resume it then";
            return self.say(Level::Warning, text, wall);
        }
        self.record(Entry::AutoAccept { on }, wall);
        let text = match on {
            true => {
                "permissions are accepted from now on, because AUTO_ACCEPT_PERMISSIONS=1 or the configuration says so"
            }
            false => "permissions are not accepted any more: AUTO_ACCEPT_PERMISSIONS is not 1",
        };
        self.say(Level::Warning, text, wall);
        if let Live::Waiting(turn) = &mut self.live {
            turn.set_auto_accept(on);
            self.turn_event(turn::Event::Time, now, wall);
        }
    }

    fn time(&mut self, now: Mono, wall: Wall) {
        match &self.live {
            Live::Settling { .. } => self.settle(now, wall),
            Live::Waiting(_) => self.turn_event(turn::Event::Time, now, wall),
            Live::Parked { until } if now >= *until => {
                self.record(Entry::Unparked, wall);
                self.look_again(now, wall);
            }
            _ => {}
        }
    }
}

impl From<Ledger> for Run {
    fn from(ledger: Ledger) -> Self {
        Self {
            ledger,
            live: Live::Resting,
            seen: None,
            can_start: false,
            hurry: false,
            undelivered: 0,
            accepted: BTreeMap::new(),
            out: Vec::new(),
        }
    }
}

pub(super) fn runtime(cause: Cause, message: String) -> TurnError {
    TurnError { kind: ErrorKind::Runtime, cause, message }
}
