//! From the wish for a program to a running one, and what is left of those before us.

use std::os::unix::ffi::OsStrExt;

use posse_core::screen::Size;
use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::*;
use crate::tmux::command::{WindowId, name};
use crate::tmux::notes::End;
use crate::tmux::terminal::{Order, Place};
use crate::wire::Wiring;

/// How long a program may take from the wish to the shim's first ring. Two starts of a small program, on a machine
/// that is busy with everything else.
const START: Duration = Duration::from_secs(20);
/// A session may come or go between two commands, but hardly this often.
const TRIES: u32 = 3;

/// What of a label concerns us.
#[derive(Deserialize)]
struct Label {
    name: String,
    session: String,
}

impl Machine {
    /// A terminal of an earlier daemon. Whether its pane is still there the first look will tell.
    pub(super) fn remember(&mut self, found: Found) {
        // Even if it has ended: its pane may still be there, and will ring.
        let mut terminal = Terminal::new(found.id, found.label, &found.secret, Size::DEFAULT, Life::Running);
        terminal.pid = found.fate.pid;
        self.terminals.insert(found.id, terminal);
    }

    pub(super) fn spawn(&mut self, id: TerminalId, program: Program) {
        match self.terminal_for(id, &program) {
            Ok((terminal, secret)) => {
                self.terminals.insert(id, terminal);
                self.effects.push(Effect::Prepare(id, program, secret));
            }
            Err((why, message)) => self.tell(Event::SpawnFailed { id, why, message: message.into() }),
        }
    }

    fn terminal_for(
        &self,
        id: TerminalId,
        program: &Program,
    ) -> Result<(Terminal, Secret), (SpawnRefusal, &'static str)> {
        if self.terminals.contains_key(&id) {
            return Err((SpawnRefusal::IdTaken, "the id is taken"));
        }
        let Wiring::Terminal(size) = program.wiring else {
            return Err((SpawnRefusal::Other, "tmux has only terminals, no pipes"));
        };
        let Ok(label) = serde_json::from_slice::<Label>(&program.label) else {
            return Err((SpawnRefusal::Other, "it has no name or no session"));
        };
        let order = Order {
            session: name(&label.session),
            name: name(&label.name),
            directory: program.directory.clone(),
            tries: 0,
        };
        let secret = self.secret(id);
        let life = Life::Creating(order, self.now + START);
        Ok((Terminal::new(id, program.label.clone(), &secret, size, life), secret))
    }

    /// Nobody can guess it who does not know the seed.
    pub(super) fn secret(&self, id: TerminalId) -> Secret {
        let hash = Sha256::new().chain_update(self.config.seed).chain_update(id.as_bytes()).finalize();
        Secret::new(std::array::from_fn(|i| hash[i]))
    }

    pub(super) fn prepared(&mut self, id: TerminalId, outcome: Result<(), String>) {
        match outcome {
            Ok(()) => self.create(id, Made::Session),
            Err(why) => self.spawn_failed(id, SpawnRefusal::Other, why),
        }
    }

    /// Asks for the pane. One line, so that we hear it from its first byte, know it as ours whatever happens to us
    /// next, and its program never sees another size.
    pub(super) fn create(&mut self, id: TerminalId, made: Made) {
        let Some(Terminal { life: Life::Creating(order, _), size, .. }) = self.terminals.get_mut(&id) else { return };
        order.tries += 1;
        let (columns, rows) = (u64::from(size.cols()), u64::from(size.rows()));
        // The window is the last one of its session then.
        let there = format!("={}:{{end}}", order.session);
        let line = match made {
            Made::Session => Line::new("new-session -d -s")
                .literal(&order.session)
                .words("-x")
                .number(columns)
                .words("-y")
                .number(rows),
            Made::Window => Line::new("new-window -d -a -t").text(&there),
        };
        let mut line = line
            .words("-n")
            .literal(&order.name)
            .words("-c")
            .literal(&order.directory)
            .words("-P -F")
            .text("#{session_id} #{window_id} #{pane_id} #{pane_pid}");
        for word in &self.config.shim {
            line = line.text(word.as_bytes());
        }
        let line = line
            .text(self.config.notes.program_path(id).as_os_str().as_bytes())
            .then("link-window -d -s")
            .text(&there)
            .words("-t")
            .text(format!("={}:", self.config.anchor))
            .then("set-option -p -t")
            .text(&there)
            .words(survey::ID_OPTION)
            .text(id.as_str())
            .then("resize-window -t")
            .text(&there)
            .words("-x")
            .number(columns)
            .words("-y")
            .number(rows);
        self.send(line, Purpose::Create { id, made });
    }

    pub(super) fn created(&mut self, id: TerminalId, made: Made, replies: &[Reply]) {
        let first = replies[0].text();
        let place = if replies[0].failed { None } else { read_place(&first) };
        let failed = replies.iter().find(|reply| reply.failed).map(Reply::text);
        let Some(terminal) = self.terminals.get_mut(&id) else {
            // Ended before it began.
            return self.close_place(place);
        };
        let Life::Creating(order, until) = &terminal.life else { return };
        let (tries, until) = (order.tries, *until);
        match (place, failed) {
            (Some(place), None) => {
                terminal.place = Some(place);
                terminal.life = Life::Starting(until);
                terminal.flow = Flow::Kept(Vec::new());
                self.panes.insert(place.pane, id);
                if let Some(bytes) = self.early.remove(&place.pane) {
                    self.output(place.pane, bytes);
                }
                self.furnish(place.window);
                if let (Made::Session, Some(session)) = (made, place.session) {
                    let line = Line::new("set-option -t").session(session).words("destroy-unattached off");
                    self.send(line, Purpose::Nothing);
                }
            }
            (None, Some(why)) if tries < TRIES && why.contains("duplicate session") => self.create(id, Made::Window),
            (None, Some(why)) if tries < TRIES && why.contains("can't find") => self.create(id, Made::Session),
            (place, why) => {
                self.close_place(place);
                let why = why.unwrap_or_else(|| format!("tmux said {first:?}"));
                self.spawn_failed(id, SpawnRefusal::Other, why);
            }
        }
    }

    /// The options of a window of ours. Each on its own: one that some tmux does not know must not cost the others.
    fn furnish(&mut self, window: WindowId) {
        let options = [
            "remain-on-exit off",
            "allow-rename off",
            "automatic-rename off",
            "synchronize-panes off",
            // It would take a row of the terminal.
            "pane-border-status off",
        ];
        for option in options {
            self.send(Line::new("set-option -w -t").window(window).words(option), Purpose::Nothing);
        }
    }

    fn close_place(&mut self, place: Option<Place>) {
        if let Some(place) = place {
            self.close(Line::new("kill-pane -t").pane(place.pane));
        }
    }

    /// What the shim wrote, read because it rang, because the pane is gone, or because it may have rung unheard.
    pub(super) fn fate(&mut self, id: TerminalId, fate: Fate) {
        let Some(terminal) = self.terminals.get_mut(&id) else { return };
        terminal.pid = terminal.pid.or(fate.pid);
        if let (Life::Starting(_), Some(pid)) = (&terminal.life, fate.pid) {
            terminal.life = Life::Running;
            self.effects.push(Effect::Tell(Event::Spawned { id, pid }));
        }
        match (&terminal.life, fate.end.filter(|_| terminal.over), terminal.vanished) {
            (Life::Starting(_), Some(End::Refused(why, message)), _) => return self.spawn_failed(id, why, message),
            (Life::Starting(_), Some(End::Exit(_)), _) | (Life::Starting(_), None, Some(_)) => {
                let message = "its pane closed before it began".to_owned();
                return self.spawn_failed(id, SpawnRefusal::Other, message);
            }
            (Life::Running, Some(End::Exit(exit)), _) => terminal.life = Life::Ended(exit),
            (Life::Running, Some(End::Refused(..)), _) => terminal.life = Life::Ended(Exit::Lost),
            (Life::Running, None, Some(exit)) => terminal.life = Life::Ended(exit),
            _ => {}
        }
        self.settle(id);
    }

    pub(super) fn spawn_failed(&mut self, id: TerminalId, why: SpawnRefusal, message: String) {
        self.tell(Event::SpawnFailed { id, why, message: message.into_bytes() });
        if self.terminals.get(&id).is_some_and(|terminal| terminal.ending.is_some()) {
            self.tell(Event::Ended { id, left: 0 });
        }
        self.drop_terminal(id);
    }

    pub(super) fn starts_due(&mut self) {
        let due = |terminal: &&Terminal| terminal.start_until().is_some_and(|until| until <= self.now);
        let due: Vec<TerminalId> = self.terminals.values().filter(due).map(|terminal| terminal.id).collect();
        for id in due {
            let message = format!("it did not start within {} s", START.as_secs());
            self.spawn_failed(id, SpawnRefusal::Other, message);
        }
    }

    pub(super) fn drop_terminal(&mut self, id: TerminalId) {
        if let Some(terminal) = self.terminals.remove(&id) {
            if let Some(place) = terminal.place {
                self.panes.remove(&place.pane);
                if self.phase == Phase::Ready && !terminal.released {
                    self.close_place(terminal.place);
                }
            }
            self.effects.push(Effect::Forget(id));
        }
    }
}

fn read_place(text: &str) -> Option<Place> {
    let mut words = text.split(' ');
    let session = words.next()?.parse().ok()?;
    let window = words.next()?.parse().ok()?;
    let pane = words.next()?.parse().ok()?;
    let shim = words.next()?.parse().ok()?;
    Some(Place { pane, window, shim, session: Some(session), alone: true })
}
