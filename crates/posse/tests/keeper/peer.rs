//! One connection to the keeper: blocking, with a deadline on everything it waits for.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Instant;

use posse_core::ids::{TerminalId, WriterId};
use posse_core::screen::Size;
use posse_core::status::Exit;
use posse_term::wire::{self, InputRefusal, KeeperEvent, KeeperRequest, ProgramSpec, StampedRequest, TerminalSummary};
pub(crate) use posse_testkit::PATIENCE;

use crate::keeper::until;

/// The acknowledgements this peer sends for output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Acknowledging {
    Everything,
    /// Only when this much has come since the last time.
    Every(u64),
    Nothing,
}

/// A peer's events of one terminal since it last attached to it.
#[derive(Debug, Default)]
pub(crate) struct Heard {
    pub(crate) output: Vec<(u64, Vec<u8>)>,
    pub(crate) sizes: Vec<(u64, Size)>,
    pub(crate) checkpoints: Vec<(u64, Vec<u8>)>,
    /// The exit status and the final offset. More than one if it was reported more than once.
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

/// The reason for the keeper's silence.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Silence {
    Closed,
    Quiet,
}

pub(crate) struct Peer {
    stream: UnixStream,
    buffer: Vec<u8>,
    pub(crate) acknowledging: Acknowledging,
    heard: HashMap<TerminalId, Heard>,
}

impl Peer {
    /// Connects without a greeting.
    pub(crate) fn connect(socket: &Path) -> io::Result<Self> {
        let stream = UnixStream::connect(socket)?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let acknowledging = Acknowledging::Everything;
        Ok(Self { stream, buffer: Vec::new(), acknowledging, heard: HashMap::new() })
    }

    #[track_caller]
    pub(crate) fn greet(&mut self, daemon: bool) {
        self.send(&KeeperRequest::Hello { daemon });
        assert_eq!(self.next(), KeeperEvent::Hello);
    }

    #[track_caller]
    pub(crate) fn send(&mut self, request: &KeeperRequest) {
        self.send_all(std::slice::from_ref(request));
    }

    /// Sends all of them in one piece, so that the keeper has them all before it answers one.
    #[track_caller]
    pub(crate) fn send_all(&mut self, requests: &[KeeperRequest]) {
        let unstamped: Vec<StampedRequest> = requests.iter().cloned().map(StampedRequest::from).collect();
        self.send_stamped(&unstamped);
    }

    #[track_caller]
    pub(crate) fn send_stamped(&mut self, requests: &[StampedRequest]) {
        let mut frames = Vec::new();
        requests.iter().for_each(|request| wire::encode(request, &mut frames));
        self.send_bytes(&frames).unwrap();
    }

    pub(crate) fn send_bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// Returns the keeper's next event. Output is recorded and acknowledged.
    fn next_until(&mut self, deadline: Instant) -> Result<KeeperEvent, Silence> {
        loop {
            let decoded = wire::decode(&self.buffer, wire::MAX_FRAME).expect("nonsense from the keeper");
            if let Some((event, length)) = decoded {
                self.buffer.drain(..length);
                self.note(&event);
                return Ok(event);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Silence::Quiet);
            }
            self.stream.set_read_timeout(Some(left)).unwrap();
            let mut piece = [0; 64 << 10];
            match self.stream.read(&mut piece) {
                Ok(0) => return Err(Silence::Closed),
                Ok(n) => self.buffer.extend_from_slice(&piece[..n]),
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Err(Silence::Closed),
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
                Err(error) => panic!("cannot read from the keeper: {error}"),
            }
        }
    }

    fn note(&mut self, event: &KeeperEvent) {
        match event {
            KeeperEvent::Output { id, offset, bytes } => {
                let heard = self.heard.entry(*id).or_default();
                heard.output.push((*offset, bytes.clone()));
                let end = offset + bytes.len() as u64;
                let step = match self.acknowledging {
                    Acknowledging::Everything => 1,
                    Acknowledging::Every(step) => step,
                    Acknowledging::Nothing => return,
                };
                if end - heard.acknowledged >= step {
                    heard.acknowledged = end;
                    let mut frame = Vec::new();
                    let acknowledge = KeeperRequest::Acknowledge { id: *id, offset: end };
                    wire::encode(&StampedRequest::from(acknowledge), &mut frame);
                    // If the keeper is gone the next read fails.
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
        self.wait("an event", |event| Some(event.clone()))
    }

    /// Reads until `pick` finds what it looks for; what comes before is noted and passed over.
    #[track_caller]
    pub(crate) fn wait<T>(&mut self, what: &str, mut pick: impl FnMut(&KeeperEvent) -> Option<T>) -> T {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let event = self.next_until(deadline).unwrap_or_else(|why| panic!("waited in vain for {what}: {why:?}"));
            if let Some(found) = pick(&event) {
                return found;
            }
        }
    }

    /// Reads the remaining events before the keeper closes the connection, which it must.
    #[track_caller]
    pub(crate) fn last_words(&mut self) -> Vec<KeeperEvent> {
        let deadline = Instant::now() + PATIENCE;
        let mut words = Vec::new();
        loop {
            match self.next_until(deadline) {
                Ok(event) => words.push(event),
                Err(why) => {
                    assert_eq!(why, Silence::Closed, "it said {words:?}");
                    return words;
                }
            }
        }
    }

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
        until(what, || self.list().iter().any(|summary| summary.id == id && good(summary)));
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

    /// Starts a program and reads its output from the beginning. Both requests go in one piece: exits are reported to
    /// every peer, and a fast program's exit could otherwise arrive before its output.
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
            let printed = self.heard.get(&id).map(Heard::text).unwrap_or_default();
            if printed.contains(text) {
                return printed;
            }
            if let Err(why) = self.next_until(deadline) {
                panic!("waited for {text:?}, got {why:?} after {printed:?}");
            }
        }
    }

    /// Waits for the exit event, and returns the exit.
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
        let sought = |of: TerminalId, by: WriterId, number: u64| (of, by, number) == (id, WriterId(writer), sequence);
        self.wait("a receipt", |event| match *event {
            KeeperEvent::InputDone { id, writer, sequence } if sought(id, writer, sequence) => Some(Ok(())),
            KeeperEvent::InputRefused { id, writer, sequence, why } if sought(id, writer, sequence) => Some(Err(why)),
            _ => None,
        })
    }

    /// Ends a family and returns the number of survivors.
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
        assert!(self.list().iter().all(|summary| summary.id != id), "it is not forgotten");
    }

    /// Asks something and waits for the answer: all requests before it have been dealt with then.
    #[track_caller]
    pub(crate) fn settle(&mut self) {
        self.list();
    }
}
