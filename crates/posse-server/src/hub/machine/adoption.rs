//! The connection to the keeper, and the pumps of the terminals it holds.

use std::collections::btree_map;
use std::sync::Arc;

use posse_agents::Provider;
use posse_core::status::{Event as StatusEvent, Exit, Life};
use posse_term::client::Untaken;
use posse_term::emulator::Emulator;
use posse_term::wire::{KeeperEvent, TerminalSummary};

use super::*;
use crate::hub::GRACE_MS;
use crate::hub::messages::*;
use crate::pump::{PumpBeginning, PumpStart};
use crate::watch::TAIL;

pub(super) enum PumpState {
    /// The load with this number reads the data for the pump.
    Loading(u64, PumpBeginning),
    Started,
}

impl HubMachine {
    pub(super) fn keeper_report(&mut self, report: KeeperReport) {
        if matches!(report, KeeperReport::Up { .. } | KeeperReport::Lost(_)) {
            self.reconnecting = false;
            self.problems.keeper_silent = None;
        }
        match report {
            KeeperReport::Up { link, held, saved_screens } => {
                self.keeper_pid = link.pid.or(self.keeper_pid);
                self.keeper_up(held, &saved_screens);
            }
            KeeperReport::Event(event) => self.keeper_event(event),
            KeeperReport::Unreachable(why) => self.keeper_unreachable(why),
            KeeperReport::Lost(why) => self.keeper_lost(&why),
            KeeperReport::Untaken(untaken, why) => self.untaken(untaken, KeeperSilent(why)),
            KeeperReport::Silent(why) => {
                let body = match &why {
                    Some(reason) => EventBody::KeeperSilent { reason: reason.clone() },
                    None => EventBody::KeeperAnswers {},
                };
                self.emit(self.event(body), vec![]);
                self.problems.keeper_silent = why;
            }
        }
    }

    fn keeper_event(&mut self, event: KeeperEvent) {
        match event {
            KeeperEvent::Spawned { id, pid } => self.spawned(id, pid),
            KeeperEvent::SpawnFailed { id, why, message } => {
                self.spawn_failed(id, CreateError::Refused(why, message));
            }
            KeeperEvent::Ended { id, left } => self.family_ended(id, left),
            KeeperEvent::Resting => self.rested(),
            _ => {}
        }
    }

    pub(super) fn reconnect(&mut self) {
        if !std::mem::replace(&mut self.reconnecting, true) {
            self.push(HubEffect::Reconnect);
        }
    }

    /// Takes over the terminals that the keeper holds, and marks the others as lost.
    fn keeper_up(&mut self, held: Vec<TerminalSummary>, saved_screens: &BTreeSet<TerminalId>) {
        self.connected = true;
        self.problems.no_keeper = None;
        let held_ids: BTreeSet<TerminalId> = held.iter().map(|summary| summary.id).collect();
        for summary in held {
            self.adopt(&summary, saved_screens);
        }
        for id in self.running().collect::<Vec<_>>() {
            if self.pending.contains_key(&id) {
                self.spawn(id);
            } else if !held_ids.contains(&id) {
                self.lost(id);
            }
        }
        for (id, grace_ms) in std::mem::take(&mut self.end_later) {
            self.end(id, grace_ms);
        }
        if self.shutdown.as_ref().is_some_and(|shutdown| shutdown.step == ShutdownStep::Resting) {
            self.ask_keeper(KeeperRequest::Rest);
        }
    }

    fn adopt(&mut self, summary: &TerminalSummary, saved_screens: &BTreeSet<TerminalId>) {
        let id = summary.id;
        let entry = match self.terminals.entry(id) {
            btree_map::Entry::Occupied(known) => known.into_mut(),
            // Records are written before terminals start, so this terminal was deleted.
            btree_map::Entry::Vacant(_) if summary.exit.is_some() => {
                return self.ask_keeper(KeeperRequest::Forget { id });
            }
            btree_map::Entry::Vacant(unknown) => {
                // The record was lost or never written. The keeper has a copy.
                let Ok(record) = serde_json::from_slice::<Record>(&summary.label) else {
                    tracing::warn!("the keeper holds a terminal {id} whose label cannot be read");
                    return;
                };
                unknown.insert(TerminalSnapshot::new(record))
            }
        };
        // An ended terminal is completely known: it must not appear as running, not even briefly.
        if summary.exit.is_some() && entry.record.exit.is_some() && saved_screens.contains(&id) {
            return self.ask_keeper(KeeperRequest::Forget { id });
        }
        entry.record.pid = Some(summary.pid);
        entry.record.exit = None;
        let (start, end) = summary.output;
        let from = summary.checkpoint.map_or(start, |at| at.saturating_sub(TAIL as u64).max(start));
        let ring = u64::from(summary.ring);
        let live = PumpBeginning::Live { ring, from, caught_up_at: end, over: summary.exit.is_some() };
        if entry.record.confirmed.is_some() {
            self.load(id, live);
        } else {
            self.start_pump(id, None, live);
        }
        let changes = self.put(id);
        self.emit(self.event_of(id, EventBody::TerminalAdopted { pid: summary.pid }), changes);
    }

    fn load(&mut self, id: TerminalId, beginning: PumpBeginning) {
        self.loads += 1;
        let number = self.loads;
        let Some(entry) = self.terminals.get(&id) else { return };
        let provider = entry.record.confirmed.map(|_| entry.record.provider.clone());
        let screen = matches!(beginning, PumpBeginning::Ended(..));
        self.pumps.insert(id, PumpState::Loading(number, beginning));
        self.push(HubEffect::LoadTerminal(LoadTerminal { id, number, provider, screen }));
    }

    /// Starts to read the last screen of a terminal that has ended and has no pump.
    fn load_ended(&mut self, id: TerminalId) {
        let exit = self.terminals.get(&id).and_then(|entry| entry.record.exit);
        if let Some(exit) = exit.filter(|_| !self.pumps.contains_key(&id)) {
            self.load(id, PumpBeginning::Ended(None, exit));
        }
    }

    pub(super) fn loaded(
        &mut self,
        id: TerminalId,
        load: u64,
        provider: Option<Arc<Provider>>,
        emulator: Option<Box<Emulator>>,
    ) {
        match self.pumps.remove(&id) {
            Some(PumpState::Loading(number, beginning)) if number == load => {
                let beginning = match beginning {
                    PumpBeginning::Ended(_, exit) => PumpBeginning::Ended(emulator, exit),
                    live => live,
                };
                self.start_pump(id, provider, beginning);
            }
            // Another load or pump took its place.
            other => self.pumps.extend(other.map(|other| (id, other))),
        }
    }

    pub(super) fn start_pump(&mut self, id: TerminalId, provider: Option<Arc<Provider>>, beginning: PumpBeginning) {
        let Some(record) = self.terminals.get(&id).map(|entry| entry.record.clone()) else { return };
        self.pumps.insert(id, PumpState::Started);
        let known_inputs = self.inputs.remove(&id).unwrap_or_default();
        self.push(HubEffect::StartPump(Box::new(PumpStart { record, provider, known_inputs, beginning })));
    }

    /// Answers the callers that wait for a pump which runs now, or never will.
    pub(super) fn answer_finds(&mut self) {
        for (id, reply) in std::mem::take(&mut self.finds) {
            self.load_ended(id);
            match self.pumps.get(&id) {
                _ if reply.is_closed() => {}
                Some(PumpState::Started) => self.push(HubEffect::Find(id, reply)),
                _ if self.terminals.contains_key(&id) => self.finds.push((id, reply)),
                _ => self.reply(reply, None),
            }
        }
    }

    /// Handles a terminal that the keeper does not hold. Its processes, if any are left, can only be reached by a keeper.
    fn lost(&mut self, id: TerminalId) {
        if self.connected {
            self.ask_keeper(KeeperRequest::End { id, grace_ms: GRACE_MS });
        }
        let Some(entry) = self.terminals.get(&id) else { return };
        if matches!(self.pumps.get(&id), Some(PumpState::Started)) {
            return self.tell_pump(id, pump::PumpEvent::KeeperLost);
        }
        self.pumps.remove(&id);
        let mut life = Life::resumed(entry.record.status.clone(), false);
        let exited = life.handle(&StatusEvent::Exited(Exit::Lost), self.now.mono, self.now.wall);
        let status = exited.cloned().map(Box::new);
        let report = PumpReport::Ended { exit: Exit::Lost, status, screen_saved: false, keeper_knows: false };
        self.pump_report(id, None, report);
    }

    /// Handles an unreachable keeper that cannot be started either. Requests that wait for it fail.
    fn keeper_unreachable(&mut self, why: String) {
        for id in self.pending.keys().copied().collect::<Vec<_>>() {
            self.spawn_failed(id, CreateError::NoKeeper(why.clone()));
        }
        self.problems.no_keeper = Some(why);
        for (id, _) in std::mem::take(&mut self.end_later) {
            if self.terminals.get(&id).is_some_and(|entry| entry.record.exit.is_none()) {
                self.lost(id);
            }
            self.family_ended(id, 0);
        }
        self.rested();
    }

    fn keeper_lost(&mut self, why: &str) {
        self.connected = false;
        if self.shutdown.as_ref().is_some_and(|shutdown| shutdown.step != ShutdownStep::Ending) {
            return self.rested(); // The keeper knows that it may leave.
        }
        tracing::error!("the keeper is gone: {why}");
        self.emit(self.event(EventBody::KeeperLost { reason: why.to_owned() }), vec![]);
        for id in self.running().collect::<Vec<_>>() {
            if self.pending.contains_key(&id) {
                self.spawn_failed(id, CreateError::NoKeeper(why.to_owned()));
            } else {
                self.lost(id);
            }
        }
        for id in self.deleting.keys().copied().collect::<Vec<_>>() {
            self.family_ended(id, 0);
        }
        match &mut self.shutdown {
            // No keeper is left to report that they have ended.
            Some(shutdown) => shutdown.ending.clear(),
            None => self.reconnect(),
        }
        self.rested();
    }

    /// Handles a request that the keeper did not take in time: the keeper was stopped, or the machine is overloaded.
    fn untaken(&mut self, untaken: Untaken, why: KeeperSilent) {
        match untaken {
            Untaken::Spawn { id } => self.spawn_failed(id, why.into()),
            Untaken::End { id } => self.not_ended(id, &why),
            Untaken::Rest => {
                if let Some(shutdown) = &mut self.shutdown {
                    shutdown.keeper_silent = Some(why);
                }
                self.rested();
            }
            // The pump learns of its input, the caller of a hang-up has a reply, and the daemon starts no daemon.
            Untaken::Input { .. } | Untaken::Other => {}
        }
    }
}
