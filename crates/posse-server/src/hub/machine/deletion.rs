//! Ending and deleting a terminal, with every process in it.

use posse_api::{DeleteReason, EventBody};
use posse_core::ids::TerminalId;
use posse_term::wire::KeeperRequest;

use super::HubMachine;
use super::adoption::PumpState;
use crate::hub::messages::*;
use crate::pump;
use crate::store::Change;

impl HubMachine {
    pub(super) fn delete(&mut self, id: TerminalId, grace_ms: u32, reply: DeleteReply) {
        if !self.terminals.contains_key(&id) {
            return self.reply(reply, Ok(None));
        }
        self.deleting.entry(id).or_default().push(reply);
        self.end(id, grace_ms);
    }

    /// Ends every process of a terminal.
    pub(super) fn end(&mut self, id: TerminalId, grace_ms: u32) {
        if self.connected {
            self.ask_keeper(KeeperRequest::End { id, grace_ms });
        } else if self.reconnecting {
            self.end_later.push((id, grace_ms));
        } else {
            self.family_ended(id, 0);
        }
    }

    /// All processes of a terminal have ended, except for `left` of them.
    pub(super) fn family_ended(&mut self, id: TerminalId, left: u32) {
        if let Some(shutdown) = &mut self.shutdown {
            shutdown.ending.remove(&id);
        }
        let Some(replies) = self.deleting.remove(&id) else { return };
        self.cancel_creation(id);
        if let Some(entry) = self.terminals.remove(&id) {
            if matches!(entry.pump, PumpState::Started(_)) {
                // Its viewers learn of the end, even if the end is still behind unread output.
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

    /// The keeper does not end this terminal: callers that wanted it deleted, or everything stopped, may ask again.
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
}
