//! One connection to the keeper: blocking, with a deadline on everything it waits for.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Instant;

use posse_core::ids::{TerminalId, WriterId};
use posse_core::screen::Size;
use posse_core::status::Exit;
use posse_term::wire::{self, InputRefusal, KeeperEvent, KeeperRequest, ProgramSpec, TerminalSummary};
pub(crate) use posse_testkit::PATIENCE;

/// What this peer tells the keeper of the output it has dealt with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Acknowledging {
    Everything,
    /// Only when this much has come since the last time.
    Every(u64),
    Nothing,
}

/// What a peer has been told of one terminal since it last attached to it.
#[derive(Debug, Default)]
pub(crate) struct Heard {
    pub(crate) output: Vec<(u64, Vec<u8>)>,
    pub(crate) sizes: Vec<(u64, Size)>,
    pub(crate) checkpoints: Vec<(u64, Vec<u8>)>,
    /// How it ended, and its final offset. More than one if it was told more than once.
    pub(crate) exits: Vec<(Exit, u64)>,
    acknowledged: u64,
}

impl Heard {
    /// Everything it printed as one piece, which it must be.
    #[track_caller]
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut all = Vec::new();
        let mut next = None;
        for (offset, bytes) in &self.output {
            assert!(next.is_none_or(|next| next == *offset), "output jumps from {next:?} to {offset}");
            all.extend_from_slice(bytes);
            next = Some(offset + bytes.len() as u64);
        }
        all
    }

    #[track_caller]
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes()).into_owned()
    }

    pub(crate) fn end(&self) -> u64 {
        self.output.last().map_or(0, |(offset, bytes)| offset + bytes.len() as u64)
    }
}

/// The keeper has closed the connection.
#[derive(Debug)]
pub(crate) struct Closed;

pub(crate) struct Peer {
    stream: UnixStream,
    buffer: Vec<u8>,
    used: usize,
    pub(crate) acknowledging: Acknowledging,
    heard: HashMap<TerminalId, Heard>,
}

impl Peer {
    /// Connects and says nothing.
    pub(crate) fn connect(socket: &Path) -> io::Result<Self> {
        let stream = UnixStream::connect(socket)?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Self {
            stream,
            buffer: Vec::new(),
            used: 0,
            acknowledging: Acknowledging::Everything,
            heard: HashMap::new(),
        })
    }

    #[track_caller]
    pub(crate) fn greet(&mut self, daemon: bool) {
        self.send(&KeeperRequest::Hello { daemon });
        let hello = self.next();
        assert!(matches!(hello, KeeperEvent::Hello { .. }), "{hello:?}");
    }

    #[track_caller]
    pub(crate) fn send(&mut self, request: &KeeperRequest) {
        self.send_all(std::slice::from_ref(request));
    }

    /// All of them in one piece, so that the keeper has them all before it answers one.
    #[track_caller]
    pub(crate) fn send_all(&mut self, requests: &[KeeperRequest]) {
        let mut frames = Vec::new();
        for request in requests {
            wire::encode(request, &mut frames);
        }
        self.send_bytes(&frames).unwrap();
    }

    pub(crate) fn send_bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// The next thing the keeper says, `None` if it says nothing until then. Output is noted and acknowledged.
    pub(crate) fn next_until(&mut self, deadline: Instant) -> Result<Option<KeeperEvent>, Closed> {
        let event = loop {
            if let Some((event, length)) =
                wire::decode(&self.buffer[self.used..], wire::MAX_FRAME).expect("nonsense from the keeper")
            {
                self.used += length;
                break event;
            }
            self.buffer.drain(..self.used);
            self.used = 0;
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            self.stream.set_read_timeout(Some(left)).unwrap();
            let mut piece = [0; 64 << 10];
            match self.stream.read(&mut piece) {
                Ok(0) => return Err(Closed),
                Ok(n) => self.buffer.extend_from_slice(&piece[..n]),
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Err(Closed),
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
                Err(error) => panic!("cannot read from the keeper: {error}"),
            }
        };
        self.note(&event);
        Ok(Some(event))
    }

    fn note(&mut self, event: &KeeperEvent) {
        match event {
            KeeperEvent::Output { id, offset, bytes } => {
                let heard = self.heard.entry(*id).or_default();
                heard.output.push((*offset, bytes.clone()));
                let acknowledged = &mut heard.acknowledged;
                let end = offset + bytes.len() as u64;
                let step = match self.acknowledging {
                    Acknowledging::Everything => 1,
                    Acknowledging::Every(step) => step,
                    Acknowledging::Nothing => return,
                };
                if end - *acknowledged >= step {
                    *acknowledged = end;
                    let mut frame = Vec::new();
                    wire::encode(&KeeperRequest::Acknowledge { id: *id, offset: end }, &mut frame);
                    // If the keeper is gone the next read says so.
                    let _ = self.send_bytes(&frame);
                }
            }
            KeeperEvent::Resized { id, offset, size } => {
                self.heard.entry(*id).or_default().sizes.push((*offset, *size));
            }
            KeeperEvent::Checkpoint { id, offset, blob } => {
                self.heard.entry(*id).or_default().checkpoints.push((*offset, blob.clone()));
            }
            KeeperEvent::Exited { id, exit, end } => {
                self.heard.entry(*id).or_default().exits.push((*exit, *end));
            }
            _ => {}
        }
    }

    #[track_caller]
    pub(crate) fn next(&mut self) -> KeeperEvent {
        match self.next_until(Instant::now() + PATIENCE) {
            Ok(Some(event)) => event,
            Ok(None) => panic!("the keeper says nothing"),
            Err(Closed) => panic!("the keeper closed the connection"),
        }
    }

    /// Reads until `pick` finds what it looks for; what comes before is noted and passed over.
    #[track_caller]
    pub(crate) fn wait<T>(&mut self, what: &str, mut pick: impl FnMut(&KeeperEvent) -> Option<T>) -> T {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.next_until(deadline) {
                Ok(Some(event)) => {
                    if let Some(found) = pick(&event) {
                        return found;
                    }
                }
                Ok(None) => panic!("waited in vain for {what}"),
                Err(Closed) => panic!("the keeper closed the connection instead of {what}"),
            }
        }
    }

    /// Reads what the keeper still has to say before it closes the connection, which it must.
    #[track_caller]
    pub(crate) fn last_words(&mut self) -> Vec<KeeperEvent> {
        let deadline = Instant::now() + PATIENCE;
        let mut words = Vec::new();
        loop {
            match self.next_until(deadline) {
                Ok(Some(event)) => words.push(event),
                Ok(None) => panic!("the keeper did not close the connection; it said {words:?}"),
                Err(Closed) => return words,
            }
        }
    }

    // ---- asking ----

    #[track_caller]
    pub(crate) fn list(&mut self) -> Vec<TerminalSummary> {
        self.send(&KeeperRequest::List);
        self.wait("the list", |event| match event {
            KeeperEvent::Listed { summaries } => Some(summaries.clone()),
            _ => None,
        })
    }

    #[track_caller]
    pub(crate) fn summary(&mut self, id: TerminalId) -> TerminalSummary {
        self.list().into_iter().find(|summary| summary.id == id).expect("it is not in the list")
    }

    /// Asks until the answer is as it should be.
    #[track_caller]
    pub(crate) fn until_listed(&mut self, what: &str, id: TerminalId, good: impl Fn(&TerminalSummary) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let list = self.list();
            if list.iter().any(|summary| summary.id == id && good(summary)) {
                return;
            }
            assert!(Instant::now() < deadline, "waited in vain until {what}: {list:?}");
        }
    }

    /// Starts a program and gives its process id.
    #[track_caller]
    pub(crate) fn spawn(&mut self, id: TerminalId, program: ProgramSpec) -> u32 {
        self.send(&KeeperRequest::Spawn { id, program });
        self.until_spawned(id)
    }

    #[track_caller]
    fn until_spawned(&mut self, id: TerminalId) -> u32 {
        self.wait("the program to start", |event| match event {
            KeeperEvent::Spawned { id: of, pid } if *of == id => Some(*pid),
            KeeperEvent::SpawnFailed { id: of, message, .. } if *of == id => {
                panic!("it could not be started: {message}")
            }
            _ => None,
        })
    }

    #[track_caller]
    pub(crate) fn attach(&mut self, id: TerminalId, from: u64) {
        self.heard.insert(id, Heard::default());
        self.send(&KeeperRequest::Attach { id, from });
    }

    /// Starts a program and listens to it from the beginning. Asked for in one piece: the end of a program is told to
    /// everyone, and one that ends at once could otherwise be heard to end before it is heard to speak.
    #[track_caller]
    pub(crate) fn follow(&mut self, id: TerminalId, program: ProgramSpec) -> u32 {
        let requests = [KeeperRequest::Spawn { id, program }, KeeperRequest::Attach { id, from: 0 }];
        self.heard.remove(&id);
        self.send_all(&requests);
        self.until_spawned(id)
    }

    #[track_caller]
    pub(crate) fn heard(&self, id: TerminalId) -> &Heard {
        self.heard.get(&id).expect("nothing was heard of it")
    }

    /// Waits until it has printed this, and gives all it printed.
    #[track_caller]
    pub(crate) fn until_printed(&mut self, id: TerminalId, text: &str) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(heard) = self.heard.get(&id)
                && heard.text().contains(text)
            {
                return heard.text();
            }
            let heard = match self.next_until(deadline) {
                Ok(Some(_)) => continue,
                Ok(None) => "nothing more",
                Err(Closed) => "the end of the connection",
            };
            panic!("waited for {text:?}, got {heard} after {:?}", self.heard.get(&id).map(Heard::text));
        }
    }

    /// Waits until its end has been told, and says how it ended.
    #[track_caller]
    pub(crate) fn until_exit(&mut self, id: TerminalId) -> Exit {
        if let Some((exit, ..)) = self.heard.get(&id).and_then(|heard| heard.exits.last()) {
            return *exit;
        }
        self.wait("the end of the program", |event| match event {
            KeeperEvent::Exited { id: of, exit, .. } if *of == id => Some(*exit),
            _ => None,
        })
    }

    #[track_caller]
    pub(crate) fn input(&mut self, id: TerminalId, writer: u64, sequence: u64, bytes: &[u8]) {
        self.send(&KeeperRequest::Input { id, writer: WriterId(writer), sequence, bytes: bytes.to_vec() });
    }

    /// Waits to hear what became of an input.
    #[track_caller]
    pub(crate) fn receipt(&mut self, id: TerminalId, writer: u64, sequence: u64) -> Result<(), InputRefusal> {
        let (sought, number) = (WriterId(writer), sequence);
        self.wait("a receipt", |event| match event {
            KeeperEvent::InputDone { id: of, writer, sequence }
                if (*of, *writer, *sequence) == (id, sought, number) =>
            {
                Some(Ok(()))
            }
            KeeperEvent::InputRefused { id: of, writer, sequence, why }
                if (*of, *writer, *sequence) == (id, sought, number) =>
            {
                Some(Err(*why))
            }
            _ => None,
        })
    }

    /// Ends a family and gives the number of those who are left.
    #[track_caller]
    pub(crate) fn end(&mut self, id: TerminalId, grace_ms: u32) -> u32 {
        self.send(&KeeperRequest::End { id, grace_ms });
        self.wait("the family to end", |event| match event {
            KeeperEvent::Ended { id: of, left } if *of == id => Some(*left),
            _ => None,
        })
    }

    #[track_caller]
    pub(crate) fn forget(&mut self, id: TerminalId) {
        self.send(&KeeperRequest::Forget { id });
        self.wait("it to be forgotten", |event| match event {
            KeeperEvent::Forgotten { id: of } if *of == id => Some(()),
            KeeperEvent::Problem { message } => panic!("{message}"),
            _ => None,
        });
    }

    /// Asks something and waits for the answer: all requests before it have been dealt with then.
    #[track_caller]
    pub(crate) fn settle(&mut self) {
        self.list();
    }
}
