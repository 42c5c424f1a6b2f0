//! The terminals that are there: taken over, given a pump, lost, ended.

use std::collections::btree_map;

use posse_core::ids::TerminalId;
use posse_core::status::{Exit, Life};
use posse_term::client::Link;
use posse_term::emulator::Emulator;
use posse_term::wire::{Request, Summary, Wiring};
use serde_json::json;
use tokio::sync::oneshot;

use super::{Change, CreateError, Deleted, Entry, GRACE_MS, Hub};
use crate::pump::{self, Beginning, Handle};
use crate::record::Record;
use crate::store;
use crate::watch::TAIL;

impl Hub {
    /// Takes over what the keeper holds, and settles what it does not.
    pub(super) fn keeper_up(&mut self, link: &Link, summaries: Vec<Summary>) {
        self.link = Some(link.clone());
        self.keeper_problem = None;
        let held: Vec<TerminalId> = summaries.iter().map(|summary| summary.id).collect();
        for summary in summaries {
            self.adopt(link, &summary);
        }
        let gone: Vec<TerminalId> = self
            .terminals
            .values()
            .filter(|entry| entry.record.exit.is_none() && !held.contains(&entry.record.id))
            .map(|entry| entry.record.id)
            .collect();
        for id in gone {
            // Its keeper went away, with the machine or without. Whatever of it still runs, nobody can see.
            link.send(Request::End { id, grace_ms: GRACE_MS });
            if let Some(entry) = self.terminals.get_mut(&id)
                && entry.pump.is_none()
            {
                let mut life = Life::resumed(entry.record.status.clone(), false);
                let status = life.handle(&posse_core::status::Event::Exited(Exit::Lost), crate::now()).cloned();
                for change in status.map(Change::Status).into_iter().chain([Change::Ended(Exit::Lost)]) {
                    self.change(id, change);
                }
            }
        }
    }

    pub(super) fn adopt(&mut self, link: &Link, summary: &Summary) {
        let id = summary.id;
        if !matches!(summary.wiring, Wiring::Terminal(_)) {
            return;
        }
        let entry = match self.terminals.entry(id) {
            btree_map::Entry::Occupied(known) => known.into_mut(),
            btree_map::Entry::Vacant(unknown) => {
                // Not in the database: it was lost, or never written. The keeper's own copy will do.
                let Ok(record) = serde_json::from_slice::<Record>(&summary.label) else {
                    tracing::warn!("the keeper holds a terminal {id} that cannot be made sense of");
                    return;
                };
                unknown.insert(Entry::new(record))
            }
        };
        entry.record.pid = Some(summary.pid);
        entry.record.exit = None;
        let (start, end) = summary.main;
        let from = summary.checkpoint.map_or(start, |at| at.saturating_sub(TAIL as u64).max(start));
        let beginning = Beginning::Live { link: link.clone(), ring: u64::from(summary.ring), from, caught_up_at: end };
        self.start_pump(id, beginning);
        let changes = self.put(id);
        self.emit("terminal_adopted", Some(id), json!({ "pid": summary.pid }), changes);
    }

    pub(super) fn start_pump(&mut self, id: TerminalId, beginning: Beginning) {
        let Some(entry) = self.terminals.get_mut(&id) else { return };
        let live = matches!(beginning, Beginning::Live { .. });
        let settings = pump::Settings {
            id,
            size: entry.record.size,
            status: entry.record.status.clone(),
            history: self.history,
            last_screen: self.places.screens().join(id.as_str()),
            hub: self.messages.clone(),
        };
        // The route must be there before the keeper answers; it answers in order, after `Attach`.
        let handle = pump::start(settings, beginning);
        if live {
            self.routes.insert(id, handle.clone());
        }
        entry.pump = Some(handle);
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

    pub(super) fn keeper_lost(&mut self, why: &str) {
        tracing::error!("the keeper is gone: {why}");
        self.link = None;
        self.keeper_problem = Some(why.to_owned());
        self.emit("keeper_lost", None, json!({ "reason": why }), vec![]);
        for entry in self.terminals.values().filter(|entry| entry.record.exit.is_none()) {
            if let Some(pump) = &entry.pump {
                pump.send(pump::Event::KeeperLost);
            }
        }
        let ids: Vec<TerminalId> = self.creating.keys().copied().collect();
        for id in ids {
            self.spawn_failed(id, CreateError::NoKeeper(why.to_owned()));
        }
        let ids: Vec<TerminalId> = self.deleting.keys().copied().collect();
        for id in ids {
            self.family_ended(id, 0);
        }
        match self.stopping {
            None => drop(self.want_keeper.send(())),
            Some(_) => self.done = true,
        }
    }

    pub(super) fn delete(&mut self, id: TerminalId, grace_ms: u32, reply: oneshot::Sender<Option<Deleted>>) {
        if !self.terminals.contains_key(&id) {
            let _ = reply.send(None);
            return;
        }
        self.deleting.entry(id).or_default().push(reply);
        match &self.link {
            Some(link) => link.send(Request::End { id, grace_ms }),
            None => self.family_ended(id, 0),
        }
    }

    pub(super) fn family_ended(&mut self, id: TerminalId, left: u32) {
        if let Some(replies) = self.deleting.remove(&id) {
            if let Some(link) = &self.link {
                link.send(Request::Forget { id });
            }
            self.routes.remove(id);
            self.terminals.remove(&id);
            let _ = std::fs::remove_file(self.places.screens().join(id.as_str()));
            let data = json!({ "processes_left": left });
            self.emit("terminal_deleted", Some(id), data, vec![store::Change::Drop(id)]);
            for reply in replies {
                let _ = reply.send(Some(Deleted { left }));
            }
        }
    }
}
