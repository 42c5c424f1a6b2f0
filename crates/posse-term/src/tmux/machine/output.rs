//! Output, and what stands in its place when some was lost.

use super::*;
use crate::tmux::capture::{self, Captured};

/// How much is kept of panes that are being made.
const EARLY: usize = 4 << 20;

impl Machine {
    pub(super) fn output(&mut self, pane: PaneId, bytes: Vec<u8>) {
        let Some(terminal) = self.panes.get(&pane).and_then(|id| self.terminals.get_mut(id)) else {
            return self.early(pane, bytes);
        };
        let (id, heard, paste) = (terminal.id, terminal.output(bytes), terminal.paste);
        self.effects.extend(heard.events.into_iter().map(Effect::Tell));
        if heard.paste_changed {
            let line = Line::new("set-option -p -t").pane(pane).words(survey::PASTE_OPTION).number(u8::from(paste));
            self.send(line, Purpose::Nothing);
        }
        if heard.too_far {
            match self.terminals.get(&id).map(|terminal| &terminal.flow) {
                // Its screen is out of date before it was taken.
                Some(Flow::Taking(_)) => self.resync(pane),
                _ => self.send(capture::stop(pane), Purpose::Nothing),
            }
        }
        if heard.rang {
            self.effects.push(Effect::ReadFate(id));
        }
    }

    /// Output of a pane nobody knows. It may be the one that is being made: tmux sends output before answers that
    /// were due earlier, when others have much to say.
    fn early(&mut self, pane: PaneId, bytes: Vec<u8>) {
        let creating = self.pending.iter().any(|pending| matches!(pending.purpose, Purpose::Create { .. }));
        if !creating {
            self.early.clear();
        } else if self.early.values().map(Vec::len).sum::<usize>() < EARLY {
            self.early.entry(pane).or_default().extend(bytes);
        }
    }

    /// Takes the screen of a pane, in two steps. After the answer to the first nothing of what is on the screen can
    /// arrive any more, and until the second nothing at all.
    pub(super) fn resync(&mut self, pane: PaneId) {
        if let Some(terminal) = self.panes.get(&pane).and_then(|id| self.terminals.get_mut(id)) {
            terminal.flow = Flow::Stopping;
            terminal.taking += 1;
            let (id, serial) = (terminal.id, terminal.taking);
            self.send(capture::stop(pane), Purpose::Stop { id, serial });
        }
    }

    pub(super) fn stopped(&mut self, id: TerminalId, serial: u64, failed: Option<&Reply>) {
        let Some(terminal) = self.terminals.get_mut(&id) else { return };
        if let (Flow::Stopping, true, Some(place)) = (&terminal.flow, terminal.taking == serial, terminal.place) {
            if let Some(reply) = failed {
                return self.not_taken(id, &reply.text());
            }
            terminal.flow = Flow::Taking(Vec::new());
            self.send(capture::take(place.pane), Purpose::Take { id, serial });
        }
    }

    /// Most likely it is gone.
    fn not_taken(&mut self, id: TerminalId, why: &str) {
        if let Some(terminal) = self.terminals.get_mut(&id) {
            terminal.flow = Flow::Flowing;
        }
        self.problem(format!("the screen of {id} could not be taken: {why}"));
        self.look();
        self.settle(id);
    }

    pub(super) fn taken(&mut self, id: TerminalId, serial: u64, replies: &[Reply]) {
        let history = self.config.history;
        let Some(terminal) = self.terminals.get_mut(&id).filter(|terminal| terminal.taking == serial) else { return };
        let (Flow::Taking(after), Some(place)) = (&mut terminal.flow, terminal.place) else { return };
        let after = std::mem::take(after);
        let Some(captured) = Captured::read(replies) else {
            let said = replies.last().map(Reply::text).unwrap_or_default();
            return self.not_taken(id, &said);
        };
        terminal.flow = Flow::Flowing;
        // Something was lost, if only the knowledge that nothing was.
        let offset = terminal.offset + 1;
        terminal.begin_anew(offset);
        terminal.size = captured.size();
        let (size, stream) = (terminal.size, Stream::Main);
        let blob = captured.emulator(offset, terminal.paste, history).checkpoint();
        self.tell(Event::Resized { id, offset, size });
        self.tell(Event::Checkpoint { id, offset, blob });
        // Nothing, but it says up to where everything is known now.
        self.tell(Event::Output { id, stream, offset, bytes: Vec::new() });
        self.output(place.pane, after);
        self.settle(id);
    }
}
