//! Leaving: with the terminals, or without them.

use posse_core::ids::TerminalId;
use posse_term::wire::Request;
use serde_json::json;
use tokio::sync::oneshot;

use super::{Entry, GRACE_MS, Hub, Stopped};

#[derive(Default)]
pub(super) struct Stopping {
    pub(super) all: bool,
    /// The keeper has been told.
    pub(super) resting: bool,
    pub(super) replies: Vec<oneshot::Sender<Stopped>>,
}

impl Hub {
    pub(super) fn stop(&mut self, all: bool, reply: oneshot::Sender<Stopped>) {
        let stopping = self.stopping.get_or_insert_with(Stopping::default);
        stopping.replies.push(reply);
        stopping.all |= all;
        if !all {
            return self.rest();
        }
        let running: Vec<TerminalId> = self.running().map(|entry| entry.record.id).collect();
        for id in running {
            match &self.link {
                Some(link) => link.send(Request::End { id, grace_ms: GRACE_MS }),
                None => self.done = true,
            }
        }
    }

    pub(super) fn running(&self) -> impl Iterator<Item = &Entry> {
        self.terminals.values().filter(|entry| entry.record.exit.is_none())
    }

    /// Tells the keeper not to start us again, and waits to hear that it will not.
    pub(super) fn rest(&mut self) {
        if let Some(stopping) = &mut self.stopping {
            stopping.resting = true;
        }
        self.emit("daemon_stopped", None, json!({}), vec![]);
        match &self.link {
            Some(link) => link.send(Request::Rest),
            None => self.done = true,
        }
    }
}
