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

/// A failed turn that waits for a retry.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Failed {
    pub(super) record: TurnRecord,
    pub(super) cause: Cause,
    pub(super) message: String,
    /// The last time at which the agent was known to be alive.
    pub(super) lived_until: Wall,
}

/// The agents that are asked to exit, and the reason for the following stop.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Leaving {
    pub(super) stop: Stop,
    pub(super) why: String,
    pub(super) terminals: Vec<TerminalId>,
}

/// The live state: what the run waits for. `Go` starts in an empty state.
#[derive(Clone, Debug)]
pub(super) enum Live {
    Resting,
    Snapshotting,
    /// Waits for these terminals; the first failure to start supplies the reason.
    Starting {
        waiting: BTreeSet<Role>,
        failed: Option<String>,
    },
    /// Waits until the terminal is quiet.
    Settling {
        since: Mono,
        told: bool,
        /// When the terminal began to ask a question instead.
        asks: Option<Mono>,
    },
    Clearing,
    Sending,
    Waiting(Box<Turn>),
    /// The timeout passed. The agent's partial output is being kept; then the turn fails.
    KeepingLate(TurnError),
    /// A turn failed or its terminal is gone. The agent may still be working, or its answer may exist.
    Reconsidering,
    Archiving,
    Parked {
        until: Mono,
    },
    Stepping,
    /// Agents are asked to exit and the state file is written; then the run stops or is over.
    Closing,
}

#[derive(Clone, Debug)]
pub struct Run {
    pub spec: Spec,
    pub rounds: Rounds,
    pub terminals: BTreeMap<Role, TerminalId>,
    /// Names of terminals that are starting.
    pub starting: BTreeMap<Role, String>,
    /// The number of the last turn.
    pub turns: u64,
    /// The reason for the stop, if the run is stopped.
    pub stopped: Option<Stop>,
    /// Completed steps after PASS.
    pub steps: Vec<(Step, StepOutcome)>,
    /// Number of terminal names issued per role.
    pub(super) wanted: BTreeMap<Role, u32>,
    /// Uncommitted changes before the run; `None` until known.
    pub(super) snapshot: Option<Option<Snapshot>>,
    pub(super) record: Option<TurnRecord>,
    /// Number of attempts of the current or next turn.
    pub(super) attempts: u32,
    /// Number of files in the archive.
    pub(super) archived: u32,
    pub(super) failed: Option<Failed>,
    /// The end of the parking, while the run is parked.
    pub(super) hold: Option<Hold>,
    /// Number of consecutive failures of the model's service, and of usage limits hit.
    pub(super) outages: u32,
    pub(super) limits: u32,
    pub(super) leaving: Option<Leaving>,
    pub(super) live: Live,
    /// The state of the watched terminal.
    pub(super) seen: Option<Seen>,
    pub(super) can_start: bool,
    /// A caller asked to retry the model without waiting.
    pub(super) hurry: bool,
    /// Deliveries of this turn that are known to have failed.
    pub(super) undelivered: u32,
    /// Time of the last accept in each terminal.
    pub(super) accepted: BTreeMap<TerminalId, Mono>,
    /// Monotonic time of the current event.
    pub(super) now: Mono,
    pub(super) progress: Progress<Effect>,
    /// Entries produced by the last event, for people.
    told: Vec<Entry>,
    /// Number of entries published before.
    told_before: i64,
    /// The state file must be written.
    pub(super) mirror_due: bool,
}

impl Run {
    /// Creates a run. Nothing happens before `Go`.
    pub fn new(spec: Spec, at: Wall) -> Self {
        let (rounds, terminals, in_flight) = match &spec.imported {
            Some(Imported { rounds, terminals, in_flight }) => (rounds.clone(), terminals.clone(), *in_flight),
            None => {
                let rules = Rules::new(&spec.config, spec.openspec, spec.prompts.clone());
                (Rounds::begin(rules, spec.prompt.clone(), spec.config.start_agent), BTreeMap::new(), None)
            }
        };
        let record = in_flight.map(|(key, terminal)| {
            // Another program sent an unknown prompt. The turn's time starts again.
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
            // There is nothing to resume.
            (Some(_), Some(Stop::Start)) if self.is_fresh() => RunStatus::Failed,
            (Some(_), _) => RunStatus::Stopped,
            (None, _) if self.hold.is_some() => RunStatus::Parked,
            (None, _) => RunStatus::Running,
        }
    }

    /// Returns the turn whose answer is awaited.
    pub fn turn(&self) -> Option<&TurnRecord> {
        self.record.as_ref().filter(|record| !record.answered)
    }

    pub(super) fn turn_mut(&mut self) -> Option<&mut TurnRecord> {
        self.record.as_mut().filter(|record| !record.answered)
    }

    /// Returns whether no turn was ever begun.
    pub(super) fn is_fresh(&self) -> bool {
        self.turns == 0 && self.spec.imported.is_none()
    }

    /// Returns the verdict, once no agent has work left.
    pub(super) fn verdict(&self) -> Option<Final> {
        match self.rounds.next() {
            Next::Over(verdict) if self.record.is_none() => Some(verdict),
            _ => None,
        }
    }

    /// Returns the roles without a terminal.
    pub(super) fn missing(&self) -> BTreeSet<Role> {
        Role::ALL.into_iter().filter(|role| !self.terminals.contains_key(role)).collect()
    }

    /// Returns the entries of the last event, numbered from 1 across all events.
    pub fn told(&self) -> impl Iterator<Item = (i64, &Entry)> {
        (self.told_before + 1..).zip(&self.told)
    }

    /// Returns whether the event changes anything. Other events need not be journaled.
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

    /// Returns when to send `Time`.
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

    /// Sets both clocks. The monotonic clock may be another daemon's, so the age of the last accepts comes from the
    /// wall clock.
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
            // A closing run has its own reason to stop, and a finished run cannot be stopped.
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
            // The result of an effect that the run no longer waits for.
            _ => {}
        }
    }

    /// Returns whether an event of this turn still matters: the turn is the last one, a reopened one, or a failed one
    /// under review.
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

    /// Continues between two turns.
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

    /// Handles the end of a terminal's start; `why` is the reason for a failure.
    fn start_over(&mut self, role: Role, why: Option<String>) {
        let Live::Starting { waiting, failed } = &mut self.live else { return };
        waiting.remove(&role);
        *failed = failed.take().or(why);
        if !waiting.is_empty() {
            return;
        }
        // Another role's terminal may have gone in the meantime; the next turn detects that.
        let Some(why) = failed.take() else { return self.advance() };
        self.stop(Stop::Start, &why);
    }

    /// Applies the caller's setting for accepting permissions: the person who resumes a run decides, not the one who
    /// began it. A driven run cannot be made to accept more, because the caller may be one of its agents.
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

    /// No effect is outstanding: `Go` brings evidence of their results.
    fn progress(&self) -> &Progress<Effect> {
        &self.progress
    }

    fn deadline(&self) -> Option<Wall> {
        // Rounded up, because a wall clock counts milliseconds.
        self.due().map(|due| self.progress.now.after(due.since(self.now) + Duration::from_millis(1)))
    }

    fn hold(&self) -> Option<&Hold> {
        self.hold.as_ref()
    }
}

/// Stamped with the monotonic clock when it is journaled.
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
