//! Leaving: with the terminals, or without them.

use std::collections::BTreeSet;

use posse_api::EventBody;
use posse_core::ids::TerminalId;
use posse_term::wire::KeeperRequest;
use tokio::sync::oneshot;

use super::{Entry, GRACE_MS, Hub, KeeperSilent, Message, Stopped, event};

#[derive(Default)]
pub(super) struct Stopping {
    pub(super) all: bool,
    /// All has ended that should, and that we leave is being written down.
    pub(super) resting: bool,
    /// Everyone was told that we leave, and so was the keeper.
    pub(super) told: bool,
    /// The keeper has not answered that yet.
    pub(super) unrested: bool,
    /// Families that are still being ended.
    pub(super) ending: BTreeSet<TerminalId>,
    pub(super) replies: Vec<oneshot::Sender<Result<Stopped, KeeperSilent>>>,
    /// The keeper did not answer when it was told that we leave.
    pub(super) keeper_silent: Option<KeeperSilent>,
}

impl Hub {
    pub(super) fn stop(&mut self, all: bool, reply: oneshot::Sender<Result<Stopped, KeeperSilent>>) {
        let stopping = self.stopping.get_or_insert_with(Stopping::default);
        stopping.replies.push(reply);
        if !all && !stopping.all {
            return self.rest();
        }
        if !std::mem::replace(&mut stopping.all, true) {
            // Whoever asked before wanted them to go on: that begins anew when they have ended.
            (stopping.resting, stopping.told) = (false, false);
        }
        let running: BTreeSet<TerminalId> = self.running().map(|entry| entry.record.id).collect();
        if let Some(stopping) = &mut self.stopping {
            stopping.ending.extend(&running);
        }
        for id in running {
            self.end(id, GRACE_MS);
        }
        self.rest_when_all_ended();
    }

    /// A program may end before all it has started do: both are waited for.
    pub(super) fn rest_when_all_ended(&mut self) {
        let waiting = self.stopping.as_ref().is_some_and(|stopping| !stopping.resting && stopping.ending.is_empty());
        if waiting && self.running().next().is_none() {
            self.rest();
        }
    }

    pub(super) fn running(&self) -> impl Iterator<Item = &Entry> {
        self.terminals.values().filter(|entry| entry.record.exit.is_none())
    }

    /// Writes down that we leave, and with that all that was to be written before.
    pub(super) fn rest(&mut self) {
        let stopping = self.stopping.get_or_insert_with(Stopping::default);
        if std::mem::replace(&mut stopping.resting, true) {
            return;
        }
        let messages = self.messages.clone();
        let told = move || drop(messages.send(Message::FarewellTold));
        self.emit_then(event(EventBody::DaemonStopped {}), vec![], told, || {});
    }

    /// Tells the keeper that we leave and waits for its answer, so that it does not start us again. Called after the keeper
    /// was told to forget what has ended.
    pub(super) fn farewell_told(&mut self) {
        let Some(stopping) = self.stopping.as_mut().filter(|stopping| stopping.resting) else { return };
        stopping.told = true;
        if let Some(link) = &self.link {
            stopping.unrested = true;
            link.send(KeeperRequest::Rest);
        }
        self.leave_when_rested();
    }

    /// The keeper has answered, or is gone.
    pub(super) fn rested(&mut self) {
        if let Some(stopping) = &mut self.stopping {
            stopping.unrested = false;
        }
        self.leave_when_rested();
    }

    fn leave_when_rested(&mut self) {
        let rested = |stopping: &Stopping| stopping.resting && stopping.told && !stopping.unrested;
        self.done = self.stopping.as_ref().is_some_and(rested);
    }
}
