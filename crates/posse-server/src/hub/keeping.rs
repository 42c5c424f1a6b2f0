//! The terminals that are there: taken over, given a pump, lost, ended.

use std::collections::btree_map;

use posse_core::ids::TerminalId;
use posse_core::status::{Exit, Life};
use posse_term::client::Link;
use posse_term::emulator::Emulator;
use posse_term::wire::{Request, Summary, Wiring};
use serde_json::json;

use super::{Change, CreateError, DeleteReply, Deleted, Entry, GRACE_MS, Hub};
use crate::backends::Want;
use crate::event_files;
use crate::pump::{self, Beginning, Handle};
use crate::record::{Backend, Record};
use crate::store;
use crate::watch::TAIL;

impl Hub {
    /// Takes over what a backend holds, and settles what it does not.
    pub(super) fn backend_up(&mut self, backend: Backend, link: &Link, summaries: Vec<Summary>) {
        if self.links.insert(backend, link.clone()).is_some() {
            tracing::error!("a second connection to the {backend} backend");
        }
        if backend == Backend::Embedded {
            self.keeper_problem = None;
        }
        let held: Vec<TerminalId> = summaries.iter().map(|summary| summary.id).collect();
        for summary in summaries {
            self.adopt(link, &summary);
        }
        for id in self.running_on(backend) {
            if let Some(creating) = self.creating.get(&id) {
                // Waited for this backend.
                if creating.stored {
                    link.send(Request::Spawn { id, program: creating.program.clone() });
                }
            } else if !held.contains(&id) {
                self.lost(id);
            }
        }
        self.end_those_that_waited();
        if self.stopping.as_ref().is_some_and(|stopping| stopping.told) {
            link.send(Request::Rest);
        }
    }

    fn end_those_that_waited(&mut self) {
        for (id, grace_ms) in std::mem::take(&mut self.end_later) {
            self.end(id, grace_ms);
        }
    }

    fn running_on(&self, backend: Backend) -> Vec<TerminalId> {
        self.running()
            .map(|entry| &entry.record)
            .filter(|record| record.backend == backend)
            .map(|record| record.id)
            .collect()
    }

    /// Its backend went away, with the machine or without. Whatever of it still runs, nobody can see: it is ended.
    fn lost(&mut self, id: TerminalId) {
        if let Some(keeper) = self.links.get(&Backend::Embedded) {
            keeper.send(Request::End { id, grace_ms: GRACE_MS });
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

    /// A backend is out of reach for now. It is tried again as long as terminals may be well there: nobody ends them for our
    /// want of a connection. Who wants something of it now is told.
    pub(super) fn not_yet(&mut self, backend: Backend, why: &str) {
        let (asked_for, held): (Vec<_>, Vec<_>) =
            self.running_on(backend).into_iter().partition(|id| self.creating.contains_key(id));
        if backend == Backend::Tmux && held.is_empty() {
            self.wanted.remove(&backend);
            return self.backend_failed(backend, why);
        }
        for id in asked_for {
            self.spawn_failed(id, unavailable(backend, why));
        }
        if backend == Backend::Tmux {
            tracing::error!("tmux cannot be reached: {why}");
            let _ = self.want.send(Want::TmuxAgain(self.tmux_server.clone()));
        }
        if backend == Backend::Embedded {
            self.keeper_problem = Some(why.to_owned());
        }
        let here = |id: &TerminalId| self.terminals.get(id).is_none_or(|entry| entry.record.backend == backend);
        let (ended, later) = std::mem::take(&mut self.end_later).into_iter().partition(|(id, _)| here(id));
        self.end_later = later;
        // Not by whom it should be; but the keeper, if there is one, finds what is left of them.
        let ended: Vec<(TerminalId, u32)> = ended;
        for (id, _) in ended {
            let runs = self.terminals.get(&id).is_some_and(|entry| entry.record.exit.is_none());
            if runs {
                self.lost(id);
            }
            // Of those that run the keeper says when they have ended.
            if !runs || !self.links.contains_key(&Backend::Embedded) {
                self.backend_ended(backend, id, 0);
            }
        }
        self.rested(backend);
    }

    pub(super) fn backend_failed(&mut self, backend: Backend, why: &str) {
        for id in self.running_on(backend) {
            if self.creating.contains_key(&id) {
                self.spawn_failed(id, unavailable(backend, why));
            } else {
                self.lost(id);
            }
        }
        self.end_those_that_waited();
        self.rested(backend);
    }

    pub(super) fn adopt(&mut self, link: &Link, summary: &Summary) {
        let id = summary.id;
        if !matches!(summary.wiring, Wiring::Terminal(_)) {
            return;
        }
        let entry = match self.terminals.entry(id) {
            btree_map::Entry::Occupied(known) => known.into_mut(),
            // Records are written before anything is started: this one was deleted.
            btree_map::Entry::Vacant(_) if summary.exit.is_some() => return link.send(Request::Forget { id }),
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
        let kept = || self.places.screens().join(id.as_str()).exists();
        if summary.exit.is_some() && entry.record.exit.is_some() && kept() {
            return link.send(Request::Forget { id });
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
        self.emit("terminal_adopted", Some(id), json!({ "pid": summary.pid }), changes);
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
            backend: entry.record.backend,
            known_inputs: self.inputs.remove(&id).unwrap_or_default(),
            size: entry.record.size,
            status: entry.record.status.clone(),
            history: self.history,
            last_screen: self.places.screens().join(id.as_str()),
            agent,
            hub: self.messages.clone(),
            recorder: self.recorder.clone(),
        };
        // The route must be there before the keeper answers; it answers in order, after `Attach`.
        let handle = pump::start(settings, beginning);
        if live {
            self.routes.insert(id, handle.clone());
        }
        let events = self.places.events().join(id.as_str());
        entry.events = writing.and_then(|provider| event_files::follow(&self.files, &events, provider, handle.clone()));
        entry.pump = Some(handle);
        entry.follows_file = false;
    }

    /// All there is of one that was deleted.
    pub(super) fn forget_files(&self, id: TerminalId) {
        let _ = std::fs::remove_file(self.places.screens().join(id.as_str()));
        self.forget_events(id);
        self.recorder.forget(id);
    }

    /// What it has written down of what it did is of no use any more.
    pub(super) fn forget_events(&self, id: TerminalId) {
        let _ = std::fs::remove_file(self.places.events().join(id.as_str()));
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
            let last = std::fs::read(self.places.screens().join(id.as_str())).ok();
            let emulator = last.and_then(|blob| Emulator::restore(&blob, self.history).ok()).map(Box::new);
            self.start_pump(id, Beginning::Ended(emulator, exit));
        }
        self.terminals.get(&id)?.pump.clone()
    }

    pub(super) fn backend_lost(&mut self, backend: Backend, why: &str) {
        if backend == Backend::Tmux && self.leaving_tmux.is_some() {
            self.rested(backend);
            return self.left_tmux();
        }
        self.links.remove(&backend);
        if self.stopping.as_ref().is_some_and(|stopping| stopping.resting) {
            return self.rested(backend); // It was told that it may.
        }
        tracing::error!("the {backend} backend is gone: {why}");
        self.emit("backend_lost", None, json!({ "backend": backend, "reason": why }), vec![]);
        for id in self.running_on(backend) {
            if self.creating.contains_key(&id) {
                self.spawn_failed(id, CreateError::NoKeeper(why.to_owned()));
            } else {
                self.lost(id);
            }
        }
        let here = |id: &&TerminalId| self.terminals.get(*id).is_some_and(|entry| entry.record.backend == backend);
        let deleting: Vec<TerminalId> = self.deleting.keys().filter(here).copied().collect();
        for id in deleting {
            self.backend_ended(backend, id, 0);
        }
        if backend == Backend::Embedded && self.stopping.is_none() {
            self.want(Backend::Embedded);
        }
        if let (Some(stopping), Backend::Embedded) = (&mut self.stopping, backend) {
            // Nobody is left to say that they have ended.
            stopping.ending.clear();
        }
        self.rested(backend);
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
        let on_its_way = |hub: &Self| hub.terminals.get(&id).is_some_and(|e| hub.wanted.contains(&e.record.backend));
        match self.link_of(id) {
            Some(link) => link.send(Request::End { id, grace_ms }),
            None if on_its_way(self) => self.end_later.push((id, grace_ms)),
            None => self.backend_ended(Backend::Tmux, id, 0),
        }
    }

    /// A backend has ended a terminal. Only the keeper finds what has left the terminal; it has the last word.
    pub(super) fn backend_ended(&mut self, backend: Backend, id: TerminalId, left: u32) {
        match (backend, self.links.get(&Backend::Embedded)) {
            (Backend::Tmux, Some(keeper)) => keeper.send(Request::End { id, grace_ms: 0 }),
            _ => self.family_ended(id, left),
        }
    }

    fn family_ended(&mut self, id: TerminalId, left: u32) {
        if let Some(stopping) = &mut self.stopping {
            stopping.ending.remove(&id);
        }
        if let Some(replies) = self.deleting.remove(&id) {
            let link = self.link_of(id).cloned();
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
            let data = json!({ "processes_left": left });
            let answer = move || replies.into_iter().for_each(|reply| drop(reply.send(Ok(Some(Deleted { left })))));
            // Not before: who comes after us must find neither of the two without the other.
            let forget = move || link.iter().for_each(|link| link.send(Request::Forget { id }));
            self.emit_then("terminal_deleted", Some(id), data, vec![store::Change::Drop(id)], answer, forget);
        }
    }
}

/// Why nothing is started.
fn unavailable(backend: Backend, why: &str) -> CreateError {
    match backend {
        Backend::Embedded => CreateError::NoKeeper(why.to_owned()),
        Backend::Tmux => CreateError::NoTmux(why.to_owned()),
    }
}
