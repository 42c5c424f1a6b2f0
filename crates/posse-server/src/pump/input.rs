//! Keys on their way to a program, and the replies to their senders.

use super::*;
use crate::api::ApiProblem;
use crate::store::Change;

impl Pump {
    pub(super) fn input(&mut self, input: PumpInput) {
        let PumpInput { writer, sequence, bytes, expect, origin, .. } = input;
        let status = self.life.status().kind;
        if expect.is_some_and(|expected| expected != status) {
            return self.answer(sequence, origin, Err(InputError::Status(status)));
        }
        let Some(link) = &self.link else { return self.answer(sequence, origin, Err(self.no_reader())) };
        self.last_input = Some(self.emulator.cursor_line());
        link.send(KeeperRequest::Input { id: self.id, writer, sequence, bytes });
        // The same input over a second connection: the keeper applies it once, and both senders get a reply.
        self.inputs.entry((writer, sequence)).or_default().push(origin);
    }

    /// Returns the reason why no program reads input.
    pub(super) fn no_reader(&self) -> InputError {
        if self.exit == Some(Exit::Lost) { InputError::Lost } else { InputError::Ended }
    }

    /// Returns whether this message has arrived; `None` if that is unknown.
    pub(super) fn known_input(&self, writer: WriterId, sequence: u64) -> Option<bool> {
        let of_writer = || self.known_inputs.iter().filter(|known| known.writer == writer);
        if let Some(known) = of_writer().find(|known| known.sequence == sequence) {
            return Some(known.arrived);
        }
        // All input of a writer before an arrived message has arrived as well.
        of_writer().any(|known| known.arrived && known.sequence > sequence).then_some(true)
    }

    /// Records that a message has arrived, or certainly has not and may be sent again.
    pub(super) fn settle(&mut self, writer: WriterId, sequence: u64, arrived: bool) {
        if arrived {
            self.known_inputs.retain(|known| known.writer != writer || known.sequence > sequence);
            self.known_inputs.push(KnownInput { writer, sequence, arrived });
            // The oldest writers are dropped first; a writer matters for the seconds it takes to reconnect.
            let surplus = self.known_inputs.len().saturating_sub(KNOWN_INPUTS);
            self.known_inputs.drain(..surplus);
        }
        let change = Change::Settled { terminal: self.id, writer, sequence, arrived };
        self.store.write_surely(vec![change], |_| (), || ());
    }

    pub(super) fn answer_all(&mut self, writer: WriterId, sequence: u64, outcome: Result<(), InputError>) {
        for origin in self.inputs.remove(&(writer, sequence)).into_iter().flatten() {
            self.answer(sequence, origin, outcome);
        }
    }

    pub(super) fn answer(&mut self, sequence: u64, origin: InputOrigin, outcome: Result<(), InputError>) {
        match (origin, outcome) {
            (InputOrigin::Request(reply), outcome) => {
                let _ = reply.send(outcome);
            }
            (InputOrigin::Agent(key), Ok(())) => self.drive(Some(Event::Typed(key))),
            (InputOrigin::Agent(key), Err(_)) => self.drive(Some(Event::TypingFailed(key))),
            (InputOrigin::Watcher(watcher), outcome) => {
                let message = match outcome {
                    Ok(()) => StreamMessage::InputDone { sequence },
                    Err(why) => StreamMessage::InputRefused { sequence, why: why.problem().0 },
                };
                self.watchers.tell_one(watcher, Item::Message(message));
            }
        }
    }
}
