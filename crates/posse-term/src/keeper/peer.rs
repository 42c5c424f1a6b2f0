//! One connection to the keeper. Output is not queued per peer: each peer has a cursor in the ring of every terminal it
//! is attached to, and output is sent from there when the peer can take more. A peer that does not read costs a bounded
//! buffer and delays no other peer.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Instant;

use posse_core::ids::TerminalId;

use super::terminal::KeptTerminal;
use crate::wire::{self, KeeperEvent, MAX_FRAME, MAX_FRAME_INSIDE, StampedRequest, WINDOW, WireError};

/// The number of bytes put into the send buffer at once.
const FILL: usize = 256 << 10;
/// A peer that leaves this much unread is disconnected. Output never reaches this limit, only answers to requests do.
const TOO_MUCH: usize = 2 * MAX_FRAME;
/// The maximum output of one terminal in one frame, so that other terminals get their turn.
const FRAME: u64 = 64 << 10;

/// A peer's position in one output.
pub(super) struct OutputCursor {
    sent: u64,
    pub(super) acknowledged: u64,
    /// The time of the last new acknowledgement by the peer.
    pub(super) moved: Instant,
    /// The peer has acknowledged nothing for so long that the program is no longer paused for it.
    pub(super) stalled: bool,
    /// The last change of size that was sent. 0 before the checkpoint and the first size were sent; nothing else is sent
    /// before them.
    serial: u64,
    /// The peer has not attached yet: output is kept for it, but nothing is sent.
    reserved: bool,
}

impl OutputCursor {
    fn new(from: u64, now: Instant) -> Self {
        Self { sent: from, acknowledged: from, moved: now, stalled: false, serial: 0, reserved: false }
    }
}

pub(super) struct KeeperPeer {
    pub(super) stream: UnixStream,
    /// The peer runs in a terminal. It may list terminals and have the previous daemon started. It may not type, start or
    /// end programs, or act as the daemon.
    pub(super) inside: bool,
    pub(super) greeted: bool,
    pub(super) daemon: bool,
    pub(super) pid: u32,
    pub(super) awaits_daemon: bool,
    /// Requests sent before this time are refused, because an earlier one was too old.
    pub(super) refuse_before: u64,
    incoming: Vec<u8>,
    outgoing: Vec<u8>,
    written: usize,
    pub(super) cursors: BTreeMap<TerminalId, OutputCursor>,
    /// The cursors that may have something to send.
    ready: VecDeque<TerminalId>,
    /// Exits to report once the output before them has been sent.
    exits: Vec<TerminalId>,
    pub(super) wants_write: bool,
}

impl KeeperPeer {
    pub(super) fn new(stream: UnixStream, pid: u32, inside: bool) -> Self {
        Self {
            stream,
            inside,
            greeted: false,
            daemon: false,
            pid,
            awaits_daemon: false,
            refuse_before: 0,
            incoming: Vec::new(),
            outgoing: Vec::new(),
            written: 0,
            cursors: BTreeMap::new(),
            ready: VecDeque::new(),
            exits: Vec::new(),
            wants_write: false,
        }
    }

    pub(super) fn tell(&mut self, event: &KeeperEvent) {
        wire::encode(event, &mut self.outgoing);
    }

    /// Reads the available bytes and returns the complete requests. If it fails, the caller disconnects the peer.
    pub(super) fn receive(&mut self, buffer: &mut [u8]) -> Result<Vec<StampedRequest>, DisconnectReason> {
        match self.stream.read(buffer) {
            Ok(0) => return Err(DisconnectReason::Closed),
            Ok(n) => self.incoming.extend_from_slice(&buffer[..n]),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(_) => return Err(DisconnectReason::Closed),
        }
        let limit = if self.inside { MAX_FRAME_INSIDE } else { MAX_FRAME };
        let mut requests = Vec::new();
        let mut used = 0;
        while let Some((request, length)) = wire::decode(&self.incoming[used..], limit)? {
            requests.push(request);
            used += length;
        }
        self.incoming.drain(..used);
        if self.incoming.is_empty() && self.incoming.capacity() > FILL {
            self.incoming = Vec::new();
        }
        Ok(requests)
    }

    pub(super) fn attach(&mut self, terminal: &KeptTerminal, from: u64, now: Instant) {
        let ring = &terminal.ring;
        let cursor = OutputCursor::new(from.clamp(ring.start(), ring.end()), now);
        self.cursors.insert(terminal.id, cursor);
        self.ready.retain(|id| *id != terminal.id);
        self.has_news(terminal.id);
        if terminal.announced.is_some() {
            self.owes_exit(terminal.id);
        }
    }

    /// Keeps the output of a program that this peer has just started until the peer attaches, as for an attached peer that
    /// acknowledges nothing.
    pub(super) fn expects(&mut self, id: TerminalId, now: Instant) {
        self.cursors.insert(id, OutputCursor { reserved: true, ..OutputCursor::new(0, now) });
    }

    /// Records that there may be output, or a change of size, to send to this peer.
    pub(super) fn has_news(&mut self, id: TerminalId) {
        if self.cursors.get(&id).is_some_and(|cursor| !cursor.reserved) && !self.ready.contains(&id) {
            self.ready.push_back(id);
        }
    }

    pub(super) fn owes_exit(&mut self, id: TerminalId) {
        if !self.exits.contains(&id) {
            self.exits.push(id);
        }
    }

    pub(super) fn forget(&mut self, id: TerminalId) {
        self.cursors.remove(&id);
        self.ready.retain(|terminal| *terminal != id);
        self.exits.retain(|terminal| *terminal != id);
    }

    /// Fills the send buffer and writes it, until there is no more output or the peer takes no more.
    pub(super) fn flush(&mut self, terminals: &HashMap<TerminalId, KeptTerminal>) -> Result<(), DisconnectReason> {
        loop {
            self.fill(terminals);
            if self.outgoing.len() - self.written > TOO_MUCH {
                return Err(DisconnectReason::Overrun);
            }
            if self.written == self.outgoing.len() {
                self.wants_write = false;
                return Ok(());
            }
            match self.stream.write(&self.outgoing[self.written..]) {
                Ok(n) => self.written += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.wants_write = true;
                    return Ok(());
                }
                Err(_) => return Err(DisconnectReason::Closed),
            }
        }
    }

    fn fill(&mut self, terminals: &HashMap<TerminalId, KeptTerminal>) {
        if self.written == self.outgoing.len() {
            self.outgoing.clear();
            self.written = 0;
            if self.outgoing.capacity() > 2 * FILL {
                self.outgoing = Vec::new();
            }
        } else if self.written >= FILL.max(self.outgoing.len() / 2) {
            // A peer that never catches up would make the buffer grow without bound.
            self.outgoing.drain(..self.written);
            self.written = 0;
        }
        while self.outgoing.len() - self.written < FILL
            && let Some(id) = self.ready.pop_front()
        {
            let (Some(cursor), Some(terminal)) = (self.cursors.get_mut(&id), terminals.get(&id)) else { continue };
            if send_some(cursor, terminal, &mut self.outgoing) {
                self.has_news(id);
            }
        }
        let (cursors, outgoing) = (&self.cursors, &mut self.outgoing);
        self.exits.retain(|id| {
            let Some(terminal) = terminals.get(id) else { return false };
            let (Some(exit), Some(end)) = (terminal.exit, terminal.announced) else { return true };
            if cursors.get(id).is_some_and(|cursor| !cursor.reserved && (cursor.sent < end || cursor.serial == 0)) {
                return true;
            }
            wire::encode(&KeeperEvent::Exited { id: *id, exit, end }, outgoing);
            false
        });
    }
}

/// Appends the next frames of one output. Returns true if more may be sent now.
fn send_some(cursor: &mut OutputCursor, terminal: &KeptTerminal, out: &mut Vec<u8>) -> bool {
    let ring = &terminal.ring;
    if cursor.sent < ring.start() {
        // The output was overwritten before it could be sent. The peer sees the jump in the offsets.
        cursor.sent = ring.start();
        cursor.acknowledged = cursor.acknowledged.max(cursor.sent);
    }
    if cursor.serial == 0 {
        // Sent only now, because a daemon that reconnects attaches to all its terminals at once, and all their
        // checkpoints together are too much for one buffer.
        if let Some((offset, blob)) = &terminal.checkpoint {
            wire::encode(&KeeperEvent::Checkpoint { id: terminal.id, offset: *offset, blob: blob.clone() }, out);
        }
        if let Some(mark) = terminal.mark_at(cursor.sent) {
            wire::encode(&KeeperEvent::Resized { id: terminal.id, offset: cursor.sent, size: mark.size }, out);
            cursor.serial = mark.serial;
        }
        return true;
    }
    let allowed = (cursor.acknowledged + WINDOW).min(ring.end()).min(cursor.sent + FRAME);
    let mark = terminal.mark_after(cursor.serial);
    let until = mark.map_or(allowed, |mark| allowed.min(mark.offset.max(cursor.sent)));
    if until > cursor.sent {
        let bytes = ring.bytes(cursor.sent, (until - cursor.sent) as usize);
        wire::encode(&KeeperEvent::Output { id: terminal.id, offset: cursor.sent, bytes }, out);
        cursor.sent = until;
    }
    if let Some(mark) = mark
        && mark.offset <= cursor.sent
    {
        wire::encode(&KeeperEvent::Resized { id: terminal.id, offset: cursor.sent, size: mark.size }, out);
        cursor.serial = mark.serial;
        return true;
    }
    cursor.sent < ring.end().min(cursor.acknowledged + WINDOW)
}

#[derive(Debug, thiserror::Error)]
pub(super) enum DisconnectReason {
    #[error("it closed the connection")]
    Closed,
    #[error("it sent {0}")]
    BadFrame(#[from] WireError),
    #[error("it did not say hello first")]
    NoGreeting,
    #[error("it runs in a terminal, and asked for what only the daemon and the user may do")]
    NotAllowed,
    #[error("it does not read its answers")]
    Overrun,
}
