//! What the daemon asks for.

use super::*;

impl Machine {
    pub(super) fn asked(&mut self, request: Request) {
        match request {
            Request::Hello { .. } => {
                let pid = self.server.map_or(0, |(pid, _)| pid);
                self.tell(Event::Hello { version: wire::VERSION, pid, build: b"tmux".to_vec() });
            }
            Request::List => {
                let summaries = self.terminals.values().filter(|terminal| terminal.is_known());
                let summaries = summaries.map(Terminal::summary).collect();
                self.tell(Event::Listed { summaries });
            }
            Request::Spawn { id, program } => self.spawn(id, program),
            Request::Attach { id, stream: Stream::Main, .. } => self.attach(id),
            Request::Attach { id, stream: Stream::Error, .. } => self.problem(format!("{id} has no second output")),
            Request::Acknowledge { id, offset, .. } => self.acknowledge(id, offset),
            Request::Input { id, writer, sequence, bytes } => self.input(id, writer, sequence, bytes),
            Request::Resize { id, size } => self.resize(id, size),
            Request::HangUp { id } => {
                // The shim passes it on to whoever is in the foreground.
                if let Some(place) = self.terminals.get(&id).and_then(|terminal| terminal.place) {
                    self.effects.push(Effect::Signal(place.shim, Signal::HUP));
                }
            }
            Request::End { id, grace_ms } => self.end(id, Duration::from_millis(grace_ms.into())),
            Request::Forget { id } => {
                self.drop_terminal(id);
                self.tell(Event::Forgotten { id });
            }
            // The screen can be taken from tmux at any time.
            Request::Checkpoint { .. } | Request::Stamp { .. } => {}
            Request::StartDaemon { .. } => self.problem("tmux starts no daemons"),
            // With nothing of ours left in it, a server of our own goes too, and its end is the answer. Killed: asked to
            // leave, tmux sometimes waits for ever for clients that are long gone.
            Request::Rest if self.may_leave() && self.config.private.is_some() => match self.server {
                Some((server, _)) => self.effects.push(Effect::Signal(server, Signal::KILL)),
                None => self.tell(Event::Resting),
            },
            // On somebody else's our session goes, and the end of the events is the answer.
            Request::Rest if self.may_leave() => {
                self.phase = Phase::Apart;
                self.effects.push(Effect::Depart);
            }
            Request::Rest => self.tell(Event::Resting),
        }
    }

    /// Nothing of ours runs. What has ended and is not forgotten yet needs no server: it is in the notes.
    fn may_leave(&self) -> bool {
        self.phase == Phase::Ready && self.terminals.values().all(|terminal| matches!(terminal.life, Life::Ended(_)))
    }

    fn attach(&mut self, id: TerminalId) {
        let Some(terminal) = self.terminals.get_mut(&id) else {
            return self.problem(format!("no terminal {id} to attach to"));
        };
        match (std::mem::replace(&mut terminal.flow, Flow::Flowing), terminal.place) {
            (Flow::Kept(bytes), _) => {
                let (offset, size) = (terminal.offset - bytes.len() as u64, terminal.size);
                self.tell(Event::Resized { id, offset, size });
                self.tell(Event::Output { id, stream: Stream::Main, offset, bytes });
                self.settle(id);
            }
            (_, Some(place)) => self.resync(place.pane),
            (_, None) => self.settle(id),
        }
    }

    fn acknowledge(&mut self, id: TerminalId, offset: u64) {
        let Some(terminal) = self.terminals.get_mut(&id) else { return };
        terminal.acknowledged = terminal.acknowledged.max(offset.min(terminal.offset));
        if let (Flow::Held, true, Some(place)) =
            (&terminal.flow, terminal.acknowledged == terminal.offset, terminal.place)
        {
            self.resync(place.pane);
        }
    }
}
