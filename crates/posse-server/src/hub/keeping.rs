//! The terminals that are there: taken over, given a pump, lost, ended.

use std::collections::btree_map;

use posse_api::{DeleteReason, EventBody};
use posse_core::ids::TerminalId;
use posse_core::status::{Exit, Life};
use posse_term::client::KeeperLink;
use posse_term::emulator::Emulator;
use posse_term::wire::{KeeperRequest, TerminalSummary, Wiring};

use super::{Change, CreateError, DeleteReply, Deleted, Entry, GRACE_MS, Hub, event, of};
use crate::event_files;
use crate::pump::{self, Beginning, Handle};
use crate::record::Record;
use crate::store;
use crate::watch::TAIL;

impl Hub {
    /// Takes over the terminals that the keeper holds, and marks those it does not hold as lost.
    pub(super) fn keeper_up(&mut self, link: &KeeperLink, summaries: Vec<TerminalSummary>) {
        if self.link.replace(link.clone()).is_some() {
            tracing::error!("a second connection to the keeper");
        }
        self.keeper_problem = None;
        let held: Vec<TerminalId> = summaries.iter().map(|summary| summary.id).collect();
        for summary in summaries {
            self.adopt(link, &summary);
        }
        for id in self.running_ids() {
            if let Some(creating) = self.creating.get(&id) {
                // It waited for this connection.
                if creating.stored {
                    link.send(KeeperRequest::Spawn { id, program: creating.program.clone() });
                }
            } else if !held.contains(&id) {
                self.lost(id);
            }
        }
        for (id, grace_ms) in std::mem::take(&mut self.end_later) {
            self.end(id, grace_ms);
        }
        if self.stopping.as_ref().is_some_and(|stopping| stopping.told) {
            link.send(KeeperRequest::Rest);
        }
    }

    fn running_ids(&self) -> Vec<TerminalId> {
        self.running().map(|entry| entry.record.id).collect()
    }

    /// Handles a terminal whose keeper is gone. Processes of it that still run cannot be reached by anyone, so a keeper, if
    /// there is one, ends them.
    fn lost(&mut self, id: TerminalId) {
        if let Some(keeper) = &self.link {
            keeper.send(KeeperRequest::End { id, grace_ms: GRACE_MS });
        }
        let Some(entry) = self.terminals.get_mut(&id) else { return };
        match &entry.pump {
            Some(pump) => pump.send(pump::Event::KeeperLost),
            None => {
                let mut life = Life::resumed(entry.record.status.clone(), false);
                let exited = posse_core::status::Event::Exited(Exit::Lost);
                let status = life.handle(&exited, crate::mono(), crate::now()).cloned().map(Box::new);
                self.change(id, None, Change::Ended { exit: Exit::Lost, status, screen_saved: false, known_to: None });
            }
        }
    }

    /// No keeper answers for now, and none could be started. Requests that wait for one fail.
    pub(super) fn keeper_unreachable(&mut self, why: &str) {
        for id in self.running_ids() {
            if self.creating.contains_key(&id) {
                self.spawn_failed(id, CreateError::NoKeeper(why.to_owned()));
            }
        }
        self.keeper_problem = Some(why.to_owned());
        for (id, _) in std::mem::take(&mut self.end_later) {
            if self.terminals.get(&id).is_some_and(|entry| entry.record.exit.is_none()) {
                self.lost(id);
            }
            self.family_ended(id, 0);
        }
        self.rested();
    }

    pub(super) fn adopt(&mut self, link: &KeeperLink, summary: &TerminalSummary) {
        let id = summary.id;
        if !matches!(summary.wiring, Wiring::Terminal(_)) {
            return;
        }
        let entry = match self.terminals.entry(id) {
            btree_map::Entry::Occupied(known) => known.into_mut(),
            // Records are written before anything is started: this one was deleted.
            btree_map::Entry::Vacant(_) if summary.exit.is_some() => return link.send(KeeperRequest::Forget { id }),
            btree_map::Entry::Vacant(unknown) => {
                // Not in the database: it was lost, or never written. The keeper's own copy will do.
                let Ok(record) = serde_json::from_slice::<Record>(&summary.label) else {
                    tracing::warn!("the keeper holds a terminal {id} that cannot be made sense of");
                    return;
                };
                unknown.insert(Entry::new(record))
            }
        };
        // Ended, and everything is known of it: what is over does not begin again, not even for a moment.
        let kept = || self.paths.screens().join(id.as_str()).exists();
        if summary.exit.is_some() && entry.record.exit.is_some() && kept() {
            return link.send(KeeperRequest::Forget { id });
        }
        entry.record.pid = Some(summary.pid);
        entry.record.exit = None;
        let (start, end) = summary.main;
        let from = summary.checkpoint.map_or(start, |at| at.saturating_sub(TAIL as u64).max(start));
        let beginning = Beginning::Live {
            link: link.clone(),
            ring: u64::from(summary.ring),
            from,
            caught_up_at: end,
            over: summary.exit.is_some(),
        };
        self.start_pump(id, beginning);
        let changes = self.put(id);
        self.emit(of(id, EventBody::TerminalAdopted { pid: summary.pid }), changes);
    }

    pub(super) fn start_pump(&mut self, id: TerminalId, beginning: Beginning) {
        let Some(entry) = self.terminals.get_mut(&id) else { return };
        let agent = entry.record.confirmed.and_then(|confirmed| {
            let provider = self.providers.load(&entry.record.provider);
            let provider =
                provider.inspect_err(|error| tracing::warn!(terminal = %id, "its screen is not read: {error}"));
            Some((provider.ok()?, entry.record.agent_profile.clone(), confirmed))
        });
        let live = matches!(beginning, Beginning::Live { .. });
        let writing = agent.as_ref().map(|(provider, ..)| provider).filter(|provider| live && provider.writes_events());
        let writing = writing.cloned();
        let settings = pump::Settings {
            id,
            known_inputs: self.inputs.remove(&id).unwrap_or_default(),
            size: entry.record.size,
            status: entry.record.status.clone(),
            history: self.history,
            last_screen: self.paths.screens().join(id.as_str()),
            agent,
            hub: self.messages.clone(),
            recorder: self.recorder.clone(),
        };
        // The route must be there before the keeper answers; it answers in order, after `Attach`.
        let handle = pump::start(settings, beginning);
        if live {
            self.routes.insert(id, handle.clone());
        }
        let events = self.paths.events().join(id.as_str());
        entry.events = writing.map(|provider| event_files::follow(&self.files, &events, provider, handle.clone()));
        entry.pump = Some(handle);
        entry.session_file = None;
    }

    /// All there is of one that was deleted.
    pub(super) fn forget_files(&self, id: TerminalId) {
        let _ = std::fs::remove_file(self.paths.screens().join(id.as_str()));
        self.forget_events(id);
        self.recorder.forget(id);
    }

    /// What it has written down of what it did is of no use any more.
    pub(super) fn forget_events(&self, id: TerminalId) {
        let _ = std::fs::remove_file(self.paths.events().join(id.as_str()));
    }

    /// Answers those who ask for a pump, as far as there is one or never will be.
    pub(super) fn answer_finds(&mut self) {
        for (id, reply) in std::mem::take(&mut self.finds) {
            if reply.is_closed() {
                continue;
            }
            match self.find(id) {
                None if self.terminals.contains_key(&id) => self.finds.push((id, reply)),
                found => drop(reply.send(found)),
            }
        }
    }

    pub(super) fn find(&mut self, id: TerminalId) -> Option<Handle> {
        let entry = self.terminals.get(&id)?;
        if let (None, Some(exit)) = (&entry.pump, entry.record.exit) {
            let last = std::fs::read(self.paths.screens().join(id.as_str())).ok();
            let emulator = last.and_then(|blob| Emulator::restore(&blob, self.history).ok()).map(Box::new);
            self.start_pump(id, Beginning::Ended(emulator, exit));
        }
        self.terminals.get(&id)?.pump.clone()
    }

    pub(super) fn keeper_lost(&mut self, why: &str) {
        self.link = None;
        if self.stopping.as_ref().is_some_and(|stopping| stopping.resting) {
            return self.rested(); // It was told that it may.
        }
        tracing::error!("the keeper is gone: {why}");
        self.emit(event(EventBody::KeeperLost { reason: why.into() }), vec![]);
        for id in self.running_ids() {
            if self.creating.contains_key(&id) {
                self.spawn_failed(id, CreateError::NoKeeper(why.to_owned()));
            } else {
                self.lost(id);
            }
        }
        let deleting: Vec<TerminalId> = self.deleting.keys().copied().collect();
        for id in deleting {
            self.family_ended(id, 0);
        }
        match &mut self.stopping {
            // No keeper is left to report that they have ended.
            Some(stopping) => stopping.ending.clear(),
            None => self.reconnect(),
        }
        self.rested();
    }

    pub(super) fn delete(&mut self, id: TerminalId, grace_ms: u32, reply: DeleteReply) {
        if !self.terminals.contains_key(&id) {
            let _ = reply.send(Ok(None));
            return;
        }
        self.deleting.entry(id).or_default().push(reply);
        self.end(id, grace_ms);
    }

    /// Ends a terminal, with all that belongs to it.
    pub(super) fn end(&mut self, id: TerminalId, grace_ms: u32) {
        match &self.link {
            Some(link) => link.send(KeeperRequest::End { id, grace_ms }),
            None if self.reconnecting => self.end_later.push((id, grace_ms)),
            None => self.family_ended(id, 0),
        }
    }

    /// All processes of a terminal have ended, except for `left` of them.
    pub(super) fn family_ended(&mut self, id: TerminalId, left: u32) {
        if let Some(stopping) = &mut self.stopping {
            stopping.ending.remove(&id);
        }
        if let Some(replies) = self.deleting.remove(&id) {
            let link = self.link.clone();
            if let Some(mut creating) = self.creating.remove(&id) {
                creating.answer(Err(CreateError::Ended));
            }
            self.starts_no_more(id);
            self.routes.remove(id);
            if let Some(pump) = self.terminals.remove(&id).and_then(|entry| entry.pump) {
                // Who watches it hears so, also where its end was still behind what it printed.
                pump.send(pump::Event::KeeperLost);
            }
            self.forget_files(id);
            let deleted = of(id, EventBody::TerminalDeleted { reason: DeleteReason::Asked, processes_left: left });
            let answer = move || replies.into_iter().for_each(|reply| drop(reply.send(Ok(Some(Deleted { left })))));
            // Not before: who comes after us must find neither of the two without the other.
            let forget = move || link.iter().for_each(|link| link.send(KeeperRequest::Forget { id }));
            self.emit_then(deleted, vec![store::Change::Drop(id)], answer, forget);
        }
    }
}
