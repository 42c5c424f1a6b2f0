//! Where a run is. A crash does not change it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::park::Times;
use super::{Entry, RunStatus, Spec, Step, StepOutcome, Stop};
use crate::finalize::Snapshot;
use crate::ids::TerminalId;
use crate::rounds::{Final, Key, Note, Role, Rounds, Rules};
use crate::time::Wall;
use crate::turn::Cause;

/// Where a run is.
#[derive(Clone, Debug, PartialEq)]
pub enum Place {
    /// No turn is under way.
    Between,
    Turn(TurnRecord),
    /// A turn is over, and its response file is where the agent put it.
    Unarchived {
        turn: u64,
        key: Key,
    },
    /// The verdict stands.
    After(Final),
    Over(Final),
}

/// What is known of the turn that is under way.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnRecord {
    pub turn: u64,
    pub key: Key,
    pub terminal: TerminalId,
    pub attempt: u32,
    pub text: String,
    pub begun: Wall,
    /// When the prompt may first have been on its way.
    pub dispatching: Option<Wall>,
    /// How much the terminal had printed by then.
    pub printed: Option<u64>,
    pub sent: Option<Wall>,
    pub accepts: u32,
    pub reminders: u32,
    pub human_told: bool,
}

impl TurnRecord {
    /// A turn of which nothing has been sent yet.
    fn begun(turn: u64, key: Key, terminal: TerminalId, attempt: u32, text: &str, at: Wall) -> Self {
        Self {
            turn,
            key,
            terminal,
            attempt,
            text: text.to_owned(),
            begun: at,
            dispatching: None,
            printed: None,
            sent: None,
            accepts: 0,
            reminders: 0,
            human_told: false,
        }
    }
}

/// A turn that failed, until it is tried again.
#[derive(Clone, Debug, PartialEq)]
pub struct Failed {
    pub record: TurnRecord,
    pub cause: Cause,
    pub message: String,
}

/// Who is being asked to leave, and what the run stops for after that.
#[derive(Clone, Debug, PartialEq)]
pub struct Leaving {
    pub stop: Stop,
    pub why: String,
    pub terminals: Vec<TerminalId>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Ledger {
    pub spec: Spec,
    pub rounds: Rounds,
    /// What was uncommitted before; `None` until it is known.
    pub snapshot: Option<Option<Snapshot>>,
    pub terminals: BTreeMap<Role, TerminalId>,
    /// How many terminals each role was given a name for.
    pub wanted: BTreeMap<Role, u32>,
    /// Names of terminals that are being started.
    pub starting: BTreeMap<Role, String>,
    pub place: Place,
    /// The last turn's number.
    pub turns: u64,
    /// How many times the turn that comes next, or is under way, was begun.
    pub attempts: u32,
    /// Files in the archive.
    pub archived: u32,
    pub failed: Option<Failed>,
    /// Until when, and how often in a row.
    pub parked: Option<Wall>,
    pub parked_times: Times,
    pub stopped: Option<(Stop, String)>,
    /// Agents that are being asked to leave before it stops.
    pub leaving: Option<Leaving>,
    pub steps: Vec<(Step, StepOutcome)>,
    pub last_accepts: BTreeMap<TerminalId, Wall>,
    pub begun: Wall,
    /// When the last entry was made.
    pub changed: Wall,
}

impl Ledger {
    pub fn new(spec: Spec, at: Wall) -> Self {
        let (rounds, terminals) = match &spec.imported {
            Some(imported) => (imported.rounds.clone(), imported.terminals.clone()),
            None => {
                let rules = Rules::new(&spec.config, spec.openspec, spec.prompts.clone());
                (Rounds::begin(rules, spec.prompt.clone(), spec.config.start_agent), BTreeMap::new())
            }
        };
        let in_flight = spec.imported.as_ref().and_then(|imported| imported.in_flight);
        let turns = u32::from(in_flight.is_some());
        Self {
            spec,
            rounds,
            snapshot: None,
            terminals,
            wanted: BTreeMap::new(),
            starting: BTreeMap::new(),
            place: in_flight.map_or(Place::Between, |(key, terminal)| {
                // Sent by somebody else, in words we do not know. Its time begins anew.
                let begun = TurnRecord::begun(1, key, terminal, 1, "", at);
                Place::Turn(TurnRecord { dispatching: Some(at), sent: Some(at), ..begun })
            }),
            turns: turns.into(),
            attempts: turns,
            archived: 0,
            failed: None,
            parked: None,
            parked_times: Times::default(),
            stopped: None,
            leaving: None,
            steps: Vec::new(),
            last_accepts: BTreeMap::new(),
            begun: at,
            changed: at,
        }
    }

    pub fn status(&self) -> RunStatus {
        match (&self.place, &self.stopped, self.parked) {
            (Place::Over(Final::Pass), ..) => RunStatus::Passed,
            (Place::Over(Final::Fail), ..) => RunStatus::Failed,
            // There is nothing to go on with.
            (_, Some((Stop::Start, _)), _) if self.is_fresh() => RunStatus::Failed,
            (_, Some(_), _) => RunStatus::Stopped,
            (_, None, Some(_)) => RunStatus::Parked,
            (_, None, None) => RunStatus::Running,
        }
    }

    /// No turn was ever begun.
    pub fn is_fresh(&self) -> bool {
        self.turns == 0 && self.spec.imported.is_none()
    }

    /// The roles without a terminal.
    pub fn missing(&self) -> BTreeSet<Role> {
        Role::ALL.into_iter().filter(|role| !self.terminals.contains_key(role)).collect()
    }

    /// The turn that is under way.
    pub fn turn(&self) -> Option<&TurnRecord> {
        match &self.place {
            Place::Turn(turn) => Some(turn),
            _ => None,
        }
    }

    /// How long ago something was last accepted in a terminal.
    pub fn since_accept(&self, terminal: TerminalId, now: Wall) -> Option<Duration> {
        self.last_accepts.get(&terminal).map(|at| elapsed(*at, now))
    }

    /// Takes in what happened. The notes are for people; when a run is read back, they have them already.
    pub fn apply(&mut self, entry: &Entry, at: Wall) -> Vec<Note> {
        match entry {
            // The first entry made this ledger.
            Entry::Created { .. } | Entry::Said { .. } => {}
            Entry::Snapshot { snapshot } => self.snapshot = Some(snapshot.clone()),
            Entry::TerminalWanted { role, name } => {
                *self.wanted.entry(*role).or_default() += 1;
                self.starting.insert(*role, name.clone());
            }
            Entry::TerminalReady { role, terminal } => {
                self.starting.remove(role);
                self.terminals.insert(*role, *terminal);
                self.rounds.forget(*role);
            }
            Entry::TerminalLost { role, .. } => {
                self.starting.remove(role);
                self.terminals.remove(role);
            }
            Entry::TurnBegun { turn, key, terminal, attempt, text } => {
                self.turns = *turn;
                self.attempts = *attempt;
                self.place = Place::Turn(TurnRecord::begun(*turn, *key, *terminal, *attempt, text, at));
            }
            Entry::Parked { until, times, limit, .. } => {
                self.parked = Some(*until);
                *(if *limit { &mut self.parked_times.limits } else { &mut self.parked_times.outages }) = *times;
            }
            Entry::KeptLate { .. } => self.archived += 1,
            Entry::Reopened { .. } => {
                self.parked = None;
                if let Some(Failed { record, .. }) = self.failed.take() {
                    // Its time begins anew: somebody has decided that it is worth it.
                    self.place = Place::Turn(TurnRecord { sent: Some(at), ..record });
                }
            }
            Entry::Unparked => self.parked = None,
            Entry::Leaving { stop, why } => {
                let terminals = std::mem::take(&mut self.terminals).into_values().collect();
                self.leaving = Some(Leaving { stop: *stop, why: why.clone(), terminals });
            }
            Entry::Stopped { stop, why } => {
                self.leaving = None;
                self.stopped = Some((*stop, why.clone()));
            }
            Entry::Resumed => {
                // A person has looked and said that it shall go on: the turn that failed begins anew, as if its prompt had been
                // sent again. (A crash is no such thing, and to be alone is put right by a program.)
                let decided = self.stopped.take().is_some_and(|(stop, _)| stop != Stop::Alone);
                if decided {
                    self.decided_to_go_on(at);
                }
                // Whoever comes back cannot know what the agents still remember.
                Role::ALL.into_iter().for_each(|role| self.rounds.forget(role));
            }
            Entry::AutoAccept { on } => self.spec.config.handoff.auto_accept_permissions = *on,
            Entry::Decided { verdict } => self.place = Place::After(*verdict),
            Entry::StepDone { step, outcome } => self.steps.push((*step, outcome.clone())),
            Entry::Finished => {
                if let Place::After(verdict) = self.place {
                    self.place = Place::Over(verdict);
                }
            }
            Entry::Dispatching { .. }
            | Entry::Sent { .. }
            | Entry::Unsent { .. }
            | Entry::Accepting { .. }
            | Entry::Accepted { .. }
            | Entry::Reminding { .. }
            | Entry::HumanTold { .. }
            | Entry::Answered { .. }
            | Entry::Archived { .. }
            | Entry::TurnFailed { .. } => return self.apply_to_turn(entry, at),
        }
        Vec::new()
    }

    fn decided_to_go_on(&mut self, at: Wall) {
        self.parked_times = Times::default();
        if let Some(failed) = &mut self.failed {
            (failed.record.accepts, failed.record.human_told) = (0, false);
        }
        // While the run was stopped nobody waited for the answer, and nobody was told of questions.
        if let Place::Turn(turn) = &mut self.place {
            (turn.sent, turn.human_told) = (turn.sent.map(|_| at), false);
        }
    }

    fn apply_to_turn(&mut self, entry: &Entry, at: Wall) -> Vec<Note> {
        if let Entry::Archived { name, .. } = entry {
            self.archived += u32::from(name.is_some());
            self.place = Place::Between;
            return Vec::new();
        }
        let Place::Turn(turn) = &mut self.place else { return Vec::new() };
        match entry {
            Entry::Dispatching { stale, printed, .. } => {
                turn.dispatching = Some(at);
                turn.printed = *printed;
                self.archived += u32::from(stale.is_some());
            }
            Entry::Sent { .. } => {
                turn.sent = Some(at);
                self.rounds.told(turn.key.role());
            }
            Entry::Unsent { .. } => self.place = Place::Between,
            Entry::Accepting { .. } => {
                turn.accepts += 1;
                self.last_accepts.insert(turn.terminal, at);
            }
            Entry::Accepted { refused, .. } => turn.accepts -= u32::from(*refused).min(turn.accepts),
            Entry::Reminding { .. } => turn.reminders += 1,
            Entry::HumanTold { .. } => turn.human_told = true,
            Entry::Answered { text, .. } => {
                let (turn, key) = (turn.turn, turn.key);
                self.place = Place::Unarchived { turn, key };
                (self.attempts, self.parked, self.parked_times, self.failed) = (0, None, Times::default(), None);
                return self.rounds.answered(key, text);
            }
            Entry::TurnFailed { cause, message, .. } => {
                // Nobody knows what it remembers of the task.
                self.rounds.forget(turn.key.role());
                // What an agent was never asked it cannot be at: then the one before it counts.
                if turn.dispatching.is_some() || self.failed.is_none() {
                    let record = turn.clone();
                    self.failed = Some(Failed { record, cause: cause.clone(), message: message.clone() });
                }
                self.place = Place::Between;
            }
            _ => {}
        }
        Vec::new()
    }
}

/// Time between two points of the wall clock; nothing if it was set back.
pub(super) fn elapsed(from: Wall, to: Wall) -> Duration {
    Duration::from_millis(u64::try_from(to.0 - from.0).unwrap_or(0))
}
