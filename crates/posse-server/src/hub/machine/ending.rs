//! Ends terminals with all their processes, and stops the daemon, with or without its terminals.

use super::adoption::PumpState;
use super::*;
use crate::hub::GRACE_MS;
use crate::hub::messages::*;
use crate::pump;

#[derive(Default)]
pub(super) struct ShutdownState {
    /// The terminals end too.
    all: bool,
    pub(super) step: ShutdownStep,
    /// Families that are still being ended.
    pub(super) ending: BTreeSet<TerminalId>,
    pub(super) replies: Vec<StopReply>,
    pub(super) keeper_silent: Option<KeeperSilent>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum ShutdownStep {
    #[default]
    Ending,
    /// The farewell is being written.
    Farewell,
    /// The farewell was published, and the keeper has not answered it yet.
    Resting,
    Rested,
}

impl HubMachine {
    pub(super) fn delete(&mut self, id: TerminalId, grace_ms: u32, reply: DeleteReply) {
        if !self.terminals.contains_key(&id) {
            return self.reply(reply, Ok(None));
        }
        self.deleting.entry(id).or_default().push(reply);
        self.end(id, grace_ms);
    }

    pub(super) fn end(&mut self, id: TerminalId, grace_ms: u32) {
        if self.connected {
            self.ask_keeper(KeeperRequest::End { id, grace_ms });
        } else if self.reconnecting {
            self.end_later.push((id, grace_ms));
        } else {
            self.family_ended(id, 0);
        }
    }

    /// Handles the end of all processes of a terminal, except for `left` of them.
    pub(super) fn family_ended(&mut self, id: TerminalId, left: u32) {
        if let Some(shutdown) = &mut self.shutdown {
            shutdown.ending.remove(&id);
        }
        let Some(replies) = self.deleting.remove(&id) else { return };
        self.cancel_creation(id);
        if self.terminals.remove(&id).is_some() {
            if matches!(self.pumps.remove(&id), Some(PumpState::Started)) {
                // Its viewers learn of the end, even if it is still behind unread output.
                self.tell_pump(id, pump::PumpEvent::KeeperLost);
            }
            self.push(HubEffect::DropPump(id));
        }
        self.push(HubEffect::RemoveFiles(id));
        let deleted = EventBody::TerminalDeleted { reason: DeleteReason::Asked, processes_left: left };
        // The keeper keeps the terminal until this is written: the next daemon must find both or neither.
        let forget = self.connected.then_some(id);
        self.emit_and(self.event_of(id, deleted), vec![Change::Drop(id)], forget, move |machine| {
            for reply in replies {
                machine.reply(reply, Ok(Some(left)));
            }
        });
    }

    /// Handles a keeper that does not end this terminal: callers that wait for the deletion or the shutdown may retry.
    pub(super) fn not_ended(&mut self, id: TerminalId, why: &KeeperSilent) {
        for reply in self.deleting.remove(&id).into_iter().flatten() {
            self.reply(reply, Err(why.clone()));
        }
        if let Some(shutdown) = self.shutdown.take_if(|shutdown| shutdown.ending.contains(&id)) {
            for reply in shutdown.replies {
                self.reply(reply, Err(why.clone()));
            }
        }
    }

    pub(super) fn stop(&mut self, all: bool, reply: StopReply) {
        let running: Vec<TerminalId> = self.running().collect();
        let shutdown = self.shutdown.get_or_insert_default();
        shutdown.replies.push(reply);
        if !all && !shutdown.all {
            return self.rest();
        }
        if !std::mem::replace(&mut shutdown.all, true) {
            // An earlier request left the terminals running: the farewell starts again when they have ended.
            shutdown.step = ShutdownStep::Ending;
        }
        shutdown.ending.extend(&running);
        for id in running {
            self.end(id, GRACE_MS);
        }
    }

    /// Rests when all terminals have ended. A program may exit before its child processes: both are awaited.
    pub(super) fn rest_when_all_ended(&mut self) {
        let all_ended = self.shutdown.as_ref().is_some_and(|shutdown| shutdown.ending.is_empty());
        if all_ended && self.running().next().is_none() {
            self.rest();
        }
    }

    /// Writes the farewell, after all other pending writes.
    fn rest(&mut self) {
        let ending = self.shutdown.as_mut().filter(|shutdown| shutdown.step == ShutdownStep::Ending);
        let Some(shutdown) = ending else { return };
        shutdown.step = ShutdownStep::Farewell;
        self.emit_and(self.event(EventBody::DaemonStopped {}), vec![], None, Self::farewell_published);
    }

    /// Announces the daemon's exit to the keeper and waits for the answer, so that the keeper does not start another
    /// daemon. The keeper already knows which ended terminals to forget.
    fn farewell_published(&mut self) {
        let connected = self.connected;
        let written = self.shutdown.as_mut().filter(|shutdown| shutdown.step == ShutdownStep::Farewell);
        let Some(shutdown) = written else { return };
        shutdown.step = ShutdownStep::Resting;
        if connected {
            self.ask_keeper(KeeperRequest::Rest);
        } else {
            self.rested();
        }
    }

    /// Completes the shutdown: the keeper has answered, or is gone.
    pub(super) fn rested(&mut self) {
        if let Some(shutdown) = self.shutdown.as_mut().filter(|shutdown| shutdown.step == ShutdownStep::Resting) {
            shutdown.step = ShutdownStep::Rested;
            self.finished = true;
        }
    }

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
