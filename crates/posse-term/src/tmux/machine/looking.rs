//! Looking where our panes are, whenever something may have moved, and putting right what has.

use posse_core::screen::Size;

use super::*;
use crate::tmux::survey::Survey;
use crate::tmux::terminal::Place;

/// The signal of a terminal that is closed.
const HANG_UP: i32 = 1;

impl Machine {
    /// Asks once, however often something changes before the answer.
    pub(super) fn look(&mut self) {
        if self.looking == Looking::No {
            self.looking = Looking::Asked;
            self.send(survey::line(), Purpose::Survey);
        } else {
            self.looking = Looking::Again;
        }
    }

    pub(super) fn looked(&mut self, survey: &Survey) {
        let again = std::mem::replace(&mut self.looking, Looking::No) == Looking::Again;
        let Some(anchor) = self.anchor else { return self.broken("tmux does not say where we are") };
        let ids: Vec<TerminalId> = self.terminals.keys().copied().collect();
        for id in ids {
            self.find(id, survey, anchor);
        }
        let ours = |pane: PaneId| {
            let id = survey.panes.get(&pane).and_then(|pane| pane.id);
            self.panes.contains_key(&pane) || id.is_some_and(|id| self.terminals.contains_key(&id))
        };
        let strays = survey.strays(anchor, ours);
        // Those that are about to be closed are nobody's either, but no mistake.
        let about_to_go = |pane: &PaneId| self.closing.contains(&Line::new("kill-pane -t").pane(*pane));
        let mut orphans = survey.orphans(anchor, |id| self.terminals.contains_key(&id));
        orphans.retain(|(_, pane)| !about_to_go(pane));
        for (id, pane) in orphans {
            self.problem(format!("{id} runs in tmux and nobody knows it: it is ended"));
            self.close(Line::new("kill-pane -t").pane(pane));
            // Whatever has left the pane is found by whoever hears this.
            self.tell(Event::Ended { id, left: 0 });
        }
        for window in strays {
            let line = Line::new("unlink-window -t").text(format!("{anchor}:{window}"));
            self.send(line, Purpose::Nothing);
        }
        if self.phase == Phase::Greeting {
            self.phase = Phase::Ready;
            self.confirm_inputs(survey);
            for request in std::mem::take(&mut self.waiting) {
                self.asked(request);
            }
        }
        if again {
            self.look();
        }
    }

    fn find(&mut self, id: TerminalId, survey: &Survey, anchor: SessionId) {
        let returned = self.phase == Phase::Greeting;
        let Some(terminal) = self.terminals.get_mut(&id) else { return };
        if matches!(terminal.life, Life::Creating(..)) && !returned {
            return; // The answer to that will tell.
        }
        let before = terminal.place;
        let found = before.map_or_else(|| survey.by_id(id), |place| survey.panes.get(&place.pane));
        let Some(pane) = found else {
            return match terminal.life {
                // The wish for it was lost with the connection.
                Life::Creating(..) => self.create(id, Made::Session),
                _ => self.vanished(id),
            };
        };
        let shown = survey.session_beside(pane.window, anchor);
        let session_before = before.and_then(|place| place.session);
        let place = Place {
            pane: pane.pane,
            window: pane.window,
            shim: pane.pid,
            session: shown.or(session_before),
            alone: survey.is_alone(pane.window),
        };
        terminal.place = Some(place);
        self.panes.insert(pane.pane, id);
        if let Life::Creating(_, until) = terminal.life {
            // It was made, and only the answer lost.
            terminal.life = Life::Starting(until);
        } else if before.is_none() {
            // Of an earlier daemon.
            terminal.offset = u64::from(pane.epoch + 1) * EPOCH;
            terminal.acknowledged = terminal.offset;
            terminal.applied = pane.applied.clone();
            terminal.paste = pane.paste;
            terminal.size = pane.size;
            let line = Line::new("set-option -p -t").pane(pane.pane).words(survey::EPOCH_OPTION);
            self.send(line.number(pane.epoch + 1), Purpose::Nothing);
        }
        self.resized(pane.pane, pane.size);

        // We hear only what is in the session we look at; people move panes to new windows.
        let heard = survey.is_in(pane.window, anchor);
        if !heard {
            let line = Line::new("link-window -d -s").window(pane.window);
            let line = line.words("-t").text(format!("={}:", self.config.anchor));
            self.send(line, Purpose::Nothing);
        }
        if !heard || returned {
            self.missed(id);
        }
        if returned {
            self.release_again(id);
        }
        // Somebody closed the session; without us the window would have gone with it.
        if shown.is_none() && session_before.is_some_and(|session| !survey.has_session(session)) {
            self.close(Line::new("kill-window -t").window(pane.window));
        }
    }

    /// Output of this one may have passed unheard.
    fn missed(&mut self, id: TerminalId) {
        let Some(terminal) = self.terminals.get_mut(&id) else { return };
        match (&terminal.flow, terminal.place) {
            (Flow::Kept(_), _) => terminal.flow = Flow::Unheard,
            (Flow::Unheard, _) | (_, None) => {}
            (_, Some(place)) => self.resync(place.pane),
        }
        self.effects.push(Effect::ReadFate(id));
    }

    fn vanished(&mut self, id: TerminalId) {
        let Some(terminal) = self.terminals.get_mut(&id) else { return };
        if terminal.vanished.is_some() {
            return;
        }
        let exit = match terminal.place.take() {
            Some(place) => {
                self.panes.remove(&place.pane);
                Exit::Signal(HANG_UP)
            }
            // Gone before we came; nobody knows how.
            None => Exit::Lost,
        };
        terminal.vanished = Some(exit);
        terminal.over = true;
        if terminal.is_attached() {
            terminal.flow = Flow::Flowing;
        }
        self.effects.push(Effect::ReadFate(id));
    }

    pub(super) fn resized(&mut self, pane: PaneId, size: Size) {
        let Some(terminal) = self.panes.get(&pane).and_then(|id| self.terminals.get_mut(id)) else { return };
        if terminal.size != size {
            terminal.size = size;
            let (id, offset) = (terminal.id, terminal.offset);
            // Others hear of it when they attach.
            if terminal.flow == Flow::Flowing {
                self.tell(Event::Resized { id, offset, size });
            }
        }
    }

    pub(super) fn resize(&mut self, id: TerminalId, size: Size) {
        let Some(place) = self.terminals.get(&id).and_then(|terminal| terminal.place) else {
            return self.problem(format!("no terminal {id} to resize"));
        };
        let line = if place.alone {
            Line::new("resize-window -t").window(place.window)
        } else {
            // Among others it gets what there is.
            Line::new("resize-pane -t").pane(place.pane)
        };
        self.send(line.words("-x").number(size.cols()).words("-y").number(size.rows()), Purpose::Nothing);
    }
}
