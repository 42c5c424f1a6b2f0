//! The machine without tmux: happenings in, effects compared.

mod connections;
mod terminals;

use posse_core::screen::Size;

use super::*;
use crate::tmux::command::WindowId;
use crate::tmux::doorbell::Ring;
use crate::tmux::notes::End;
use crate::wire::Wiring;

fn id(number: u32) -> TerminalId {
    TerminalId::from_random(number)
}

fn program() -> Program {
    Program {
        arguments: vec![b"agent".to_vec()],
        environment: vec![],
        directory: b"/work".to_vec(),
        wiring: Wiring::Terminal(Size::clamped(24, 80)),
        ring: 0,
        label: br#"{"name":"n","session":"s"}"#.to_vec(),
    }
}

/// As an argument, with the space before it.
fn quoted(text: &str) -> String {
    Line::new("").text(text).as_str().to_owned()
}

struct Bench {
    machine: Machine,
    now: Instant,
    effects: Vec<Effect>,
}

impl Bench {
    fn new(found: Vec<Found>) -> Self {
        let temp = tempfile::tempdir().unwrap();
        let config = Config {
            anchor: "_anchor".into(),
            tag: "tag".into(),
            private: None,
            shim: vec!["shim".into()],
            notes: Notes::open(&temp.path().join("state")).unwrap(),
            history: HistoryLimit::default(),
            seed: [7; 32],
        };
        let now = Instant::now();
        let mut bench = Self { machine: Machine::new(config, found, now), now, effects: Vec::new() };
        bench.happens(Happening::Connected);
        bench
    }

    /// Connected, and this is what tmux has.
    fn ready(found: Vec<Found>, panes: &[&str]) -> Self {
        let mut bench = Self::new(found);
        bench.arrive(panes);
        bench
    }

    fn arrive(&mut self, panes: &[&str]) {
        self.says(Message::Session(SessionId(0)));
        for lines in [&[][..], &["42 1000 /run/socket"], &["paste-buffer (pasteb) [-dpr] [-s separator]"], &[], panes] {
            self.answers(lines);
        }
        assert!(self.machine.is_ready());
    }

    fn happens(&mut self, happening: Happening) {
        let effects = self.machine.handle(happening, self.now);
        self.effects.extend(effects);
    }

    fn says(&mut self, message: Message) {
        self.happens(Happening::Said(message));
    }

    fn asks(&mut self, request: Request) {
        self.happens(Happening::Asked(request));
    }

    /// tmux answers the next command.
    fn answers(&mut self, lines: &[&str]) {
        let lines = lines.iter().map(|line| line.as_bytes().to_vec()).collect();
        self.says(Message::Reply(Reply { ours: true, failed: false, lines }));
    }

    fn refuses(&mut self, why: &str) {
        self.says(Message::Reply(Reply { ours: true, failed: true, lines: vec![why.into()] }));
    }

    /// What was sent since last asked for, and all other effects.
    fn take(&mut self) -> (Vec<String>, Vec<Effect>) {
        let (mut sent, mut others) = (Vec::new(), Vec::new());
        for effect in std::mem::take(&mut self.effects) {
            match effect {
                Effect::Send(line) => sent.push(line.as_str().to_owned()),
                other => others.push(other),
            }
        }
        (sent, others)
    }

    fn told(&mut self) -> Vec<Event> {
        let tell = |effect| match effect {
            Effect::Tell(event) => Some(event),
            _ => None,
        };
        self.take().1.into_iter().filter_map(tell).collect()
    }

    /// A terminal in pane %1 that runs and is attached to.
    fn running() -> Self {
        let mut bench = Self::ready(vec![], &[]);
        bench.asks(Request::Spawn { id: id(1), program: program() });
        bench.happens(Happening::Prepared(id(1), Ok(())));
        bench.answers(&["$1 @1 %1 101"]);
        (0..3).for_each(|_| bench.answers(&[]));
        (0..6).for_each(|_| bench.answers(&[]));
        bench.happens(Happening::Fate(id(1), Fate { pid: Some(102), end: None }));
        bench.asks(Request::Attach { id: id(1), stream: Stream::Main, from: 0 });
        bench.take();
        bench
    }

    fn ring(&mut self, ring: Ring, fate: Fate) {
        let secret = self.machine.secret(id(1));
        self.says(Message::Output { pane: PaneId(1), bytes: secret.bell(ring) });
        assert!(self.effects.contains(&Effect::ReadFate(id(1))));
        self.happens(Happening::Fate(id(1), fate));
    }
}

fn output(offset: u64, bytes: &[u8]) -> Event {
    Event::Output { id: id(1), stream: Stream::Main, offset, bytes: bytes.to_vec() }
}

fn input(sequence: u64, bytes: &[u8]) -> Request {
    Request::Input { id: id(1), writer: WriterId(5), sequence, bytes: bytes.to_vec() }
}

fn done(sequence: u64) -> Event {
    Event::InputDone { id: id(1), writer: WriterId(5), sequence }
}

fn refused(sequence: u64, why: InputRefusal) -> Event {
    Event::InputRefused { id: id(1), writer: WriterId(5), sequence, why }
}
