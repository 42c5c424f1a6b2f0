//! Stopping the daemon, with its terminals or without them.

use std::collections::BTreeSet;

use posse_api::EventBody;
use posse_core::ids::TerminalId;
use posse_term::wire::KeeperRequest;

use super::HubMachine;
use crate::hub::GRACE_MS;
use crate::hub::messages::*;

#[derive(Default)]
pub(super) struct ShutdownState {
    /// Terminals end too.
    all: bool,
    /// Everything has ended that should, and the farewell is being written.
    pub(super) resting: bool,
    /// The farewell was published, and sent to the keeper.
    pub(super) published: bool,
    /// The keeper has not answered the farewell yet.
    unrested: bool,
    /// Families that are still being ended.
    pub(super) ending: BTreeSet<TerminalId>,
    pub(super) replies: Vec<StopReply>,
    /// The keeper did not answer the farewell.
    pub(super) keeper_silent: Option<KeeperSilent>,
}

impl HubMachine {
    pub(super) fn stop(&mut self, all: bool, reply: StopReply) {
        let running: Vec<TerminalId> = self.running().collect();
        let shutdown = self.shutdown.get_or_insert_default();
        shutdown.replies.push(reply);
        if !all && !shutdown.all {
            return self.rest();
        }
        if !std::mem::replace(&mut shutdown.all, true) {
            // An earlier request left the terminals running: the farewell begins again when they have ended.
            shutdown.resting = false;
            shutdown.published = false;
        }
        shutdown.ending.extend(&running);
        for id in running {
            self.end(id, GRACE_MS);
        }
    }

    /// A program may end before the processes it has started do: both are waited for.
    pub(super) fn rest_when_all_ended(&mut self) {
        let waiting = self.shutdown.as_ref().is_some_and(|shutdown| !shutdown.resting && shutdown.ending.is_empty());
        if waiting && self.running().next().is_none() {
            self.rest();
        }
    }

    /// Writes the farewell, behind everything else that is to be written.
    fn rest(&mut self) {
        let Some(shutdown) = &mut self.shutdown else { return };
        if std::mem::replace(&mut shutdown.resting, true) {
            return;
        }
        self.emit_and(self.event(EventBody::DaemonStopped {}), vec![], None, Self::farewell_published);
    }

    /// Tells the keeper that the daemon leaves and waits for its answer, so that the keeper does not start another daemon.
    /// The keeper was told before to forget what has ended.
    fn farewell_published(&mut self) {
        let connected = self.connected;
        let Some(shutdown) = self.shutdown.as_mut().filter(|shutdown| shutdown.resting) else { return };
        shutdown.published = true;
        shutdown.unrested = connected;
        if connected {
            self.ask_keeper(KeeperRequest::Rest);
        }
        self.finish_when_rested();
    }

    /// The keeper has answered, or is gone.
    pub(super) fn rested(&mut self) {
        if let Some(shutdown) = &mut self.shutdown {
            shutdown.unrested = false;
        }
        self.finish_when_rested();
    }

    fn finish_when_rested(&mut self) {
        let rested = |shutdown: &ShutdownState| shutdown.resting && shutdown.published && !shutdown.unrested;
        self.finished = self.shutdown.as_ref().is_some_and(rested);
    }

    /// Answers everyone who asked the daemon to stop.
    pub(super) fn say_farewell(&mut self) {
        let Some(shutdown) = self.shutdown.take() else { return };
        let running = self.snapshots(|entry| entry.record.exit.is_none());
        for reply in shutdown.replies {
            let stopped = StoppedDaemon {
                running: running.clone(),
                keeper_silent: shutdown.keeper_silent.clone(),
                unsaved: self.problems.disk.as_ref().map(|StoreRefusal(why)| why.to_string()),
            };
            self.reply(reply, Ok(stopped));
        }
    }
}
