//! How terminals end: by themselves, by request, or with the server.

use super::*;
use crate::tmux::terminal::Ending;

/// How long after it was killed a program's end may take to be heard of.
const KILLED: Duration = Duration::from_secs(1);

impl Machine {
    /// Tells the end of a program when all its output has been told. Its pane goes when somebody wants it to, or when it is
    /// forgotten: it has the last screen for as long as that may be needed again.
    pub(super) fn settle(&mut self, id: TerminalId) {
        let Some(terminal) = self.terminals.get_mut(&id) else { return };
        let Life::Ended(exit) = terminal.life else { return };
        let wanted = terminal.ending.is_some();
        match (&terminal.flow, terminal.place) {
            (Flow::Flowing, _) if !terminal.told => {
                terminal.told = true;
                let last = terminal.last_output();
                let main = terminal.offset;
                self.effects.extend(last.map(Effect::Tell));
                self.tell(Event::Exited { id, exit, main, error: 0 });
                if exit == Exit::Lost {
                    // Nobody asks for it to be forgotten: there is nothing left of it.
                    self.effects.push(Effect::Forget(id));
                }
            }
            // Its pane waits, and has what we missed.
            (Flow::Held, Some(place)) => return self.resync(place.pane),
            (Flow::Stopping | Flow::Taking(_), Some(_)) => return,
            _ => {}
        }
        if wanted {
            self.release(id);
            if let Some(terminal) = self.terminals.get_mut(&id) {
                terminal.ending = None;
            }
            self.tell(Event::Ended { id, left: 0 });
        }
    }

    /// The wish to close it may have been lost with the connection.
    pub(super) fn release_again(&mut self, id: TerminalId) {
        if self.terminals.get_mut(&id).is_some_and(|terminal| std::mem::take(&mut terminal.released)) {
            self.release(id);
        }
    }

    fn release(&mut self, id: TerminalId) {
        if let Some(terminal) = self.terminals.get_mut(&id)
            && let (Some(place), false) = (terminal.place, terminal.released)
        {
            terminal.released = true;
            self.close(Line::new("kill-pane -t").pane(place.pane));
        }
    }

    pub(super) fn end(&mut self, id: TerminalId, grace: Duration) {
        let until = self.now + grace;
        let Some(terminal) = self.terminals.get_mut(&id) else { return self.tell(Event::Ended { id, left: 0 }) };
        match (&terminal.life, terminal.place, terminal.end_until()) {
            (_, _, Some(earlier)) => terminal.ending = Some(Ending::Asked(until.min(earlier))),
            (Life::Ended(_), ..) => {
                terminal.ending = Some(Ending::Closing);
                self.settle(id);
            }
            (_, Some(place), _) => {
                terminal.ending = Some(Ending::Asked(until));
                self.effects.push(Effect::Signal(place.shim, Signal::TERM));
            }
            (_, None, _) => {
                terminal.ending = Some(Ending::Closing);
                self.spawn_failed(id, SpawnRefusal::Other, "it was ended before it began".into());
            }
        }
    }

    pub(super) fn ends_due(&mut self) {
        let now = self.now;
        let due = |terminal: &&mut Terminal| terminal.end_until().is_some_and(|until| until <= now);
        let mut released = Vec::new();
        for terminal in self.terminals.values_mut().filter(due) {
            match (terminal.ending, terminal.pid, terminal.place) {
                (Some(Ending::Asked(_)), Some(program), Some(place)) => {
                    terminal.ending = Some(Ending::Killed(now + KILLED));
                    self.effects.push(Effect::Kill { program, session: place.shim });
                }
                _ => {
                    terminal.ending = Some(Ending::Closing);
                    released.push(terminal.id);
                }
            }
        }
        for id in released {
            self.release(id);
        }
    }

    /// Every terminal went with it.
    pub(super) fn server_gone(&mut self) {
        self.phase = Phase::Apart;
        self.refuse_all();
        for request in std::mem::take(&mut self.waiting) {
            match request {
                Request::Spawn { id, .. } => self.lost_spawn(id),
                Request::Input { id, writer, sequence, .. } => {
                    self.tell(Event::InputRefused { id, writer, sequence, why: InputRefusal::NotReading });
                }
                Request::End { id, .. } => self.tell(Event::Ended { id, left: 0 }),
                Request::Forget { id } => {
                    self.terminals.remove(&id);
                    self.effects.push(Effect::Forget(id));
                }
                _ => {}
            }
        }
        for (id, terminal) in std::mem::take(&mut self.terminals) {
            let exit = match terminal.life {
                Life::Creating(..) | Life::Starting(_) => None,
                Life::Running => Some(Exit::Lost),
                Life::Ended(exit) => Some(exit),
            };
            match exit {
                None => self.lost_spawn(id),
                Some(exit) if !terminal.told => {
                    self.tell(Event::Exited { id, exit, main: terminal.offset, error: 0 });
                }
                Some(_) => {}
            }
            if terminal.ending.is_some() {
                self.tell(Event::Ended { id, left: 0 });
            }
            // How a program ended is the notes' to keep until somebody says that it is written down.
            if !matches!(exit, Some(exit) if exit != Exit::Lost) {
                self.effects.push(Effect::Forget(id));
            }
        }
        self.panes.clear();
    }

    fn lost_spawn(&mut self, id: TerminalId) {
        let message = b"the tmux server has ended".to_vec();
        self.tell(Event::SpawnFailed { id, why: SpawnRefusal::Other, message });
    }
}
