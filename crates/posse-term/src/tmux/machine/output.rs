//! Output, and what stands in its place when some was lost.

use super::*;
use crate::tmux::capture::{self, Captured};

impl Machine {
    pub(super) fn output(&mut self, pane: PaneId, bytes: Vec<u8>) {
        let Some(terminal) = self.panes.get(&pane).and_then(|id| self.terminals.get_mut(id)) else { return };
        let (id, heard, paste) = (terminal.id, terminal.output(bytes), terminal.paste);
        self.effects.extend(heard.events.into_iter().map(Effect::Tell));
        if heard.paste_changed {
            let line = Line::new("set-option -p -t").pane(pane).words(survey::PASTE_OPTION).number(u8::from(paste));
            self.send(line, Purpose::Nothing);
        }
        if heard.too_far {
            self.send(Line::new("refresh-client -A").text(format!("{pane}:pause")), Purpose::Nothing);
        }
        if heard.rang {
            self.effects.push(Effect::ReadFate(id));
        }
    }

    pub(super) fn resync(&mut self, pane: PaneId) {
        if let Some(terminal) = self.panes.get(&pane).and_then(|id| self.terminals.get_mut(id)) {
            terminal.flow = Flow::Resyncing;
            let id = terminal.id;
            self.send(capture::line(pane), Purpose::Resync(id));
        }
    }

    pub(super) fn captured(&mut self, id: TerminalId, replies: &[Reply]) {
        let history = self.config.history;
        let Some(terminal) = self.terminals.get_mut(&id) else { return };
        if terminal.flow != Flow::Resyncing {
            return;
        }
        terminal.flow = Flow::Flowing;
        let Some(captured) = Captured::read(replies) else {
            // Most likely it is gone.
            let said = replies.last().map(Reply::text).unwrap_or_default();
            self.problem(format!("the screen of {id} could not be taken: {said}"));
            self.look();
            return self.settle(id);
        };
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
        self.settle(id);
    }
}
