//! The keeper's protocol: what the daemon and the keeper say to each other, and how it looks as bytes.
//!
//! Pure: no socket in here. The protocol is frozen early because a keeper outlives the daemon that
//! started it, upgrades included. Version 1 may gain frames; a frame never changes its meaning.
//!
//! A frame is `length: u32` (of what follows), `kind: u8`, then the fields of that kind, little endian.
//! Byte strings are `length: u32` and the bytes. Anything else is a protocol error, and the peer that
//! sent it is cut off; nothing in here panics or allocates more than the frame is long.

use posse_core::ids::{TerminalId, WriterId};
use posse_core::screen::Size;
use posse_core::status::Exit;

/// What both sides of this build speak.
pub const VERSION: u16 = 1;

/// The longest frame either side accepts. Above every honest frame: a checkpoint of a full screen with
/// all its history stays under 2 MiB, an environment under the kernel's own limit of a few MiB.
pub const MAX_FRAME: usize = 8 << 20;

/// The most bytes one `Input` may carry.
pub const MAX_INPUT: usize = 1 << 20;

/// Which of a program's outputs. A terminal has one, a program on pipes has two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum OutputStream {
    /// The terminal, or standard output.
    Main,
    /// Standard error of a program on pipes.
    Error,
}

/// What a program is connected to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wiring {
    Terminal(Size),
    /// Standard input is empty, standard output and error are pipes.
    Pipes,
}

/// A program to start. Nothing in it is inherited from the keeper: what is not listed is not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramSpec {
    /// The first one is looked up in the `PATH` of `environment`.
    pub arguments: Vec<Vec<u8>>,
    pub environment: Vec<(Vec<u8>, Vec<u8>)>,
    pub directory: Vec<u8>,
    pub wiring: Wiring,
    /// How many of its last output bytes the keeper remembers.
    pub ring: u32,
    /// Not the keeper's business: the daemon's own notes on this terminal, given back as they are, so
    /// that a daemon which lost its database still knows what it has.
    pub label: Vec<u8>,
}

/// Why the keeper is still asked about a terminal: what it has of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TerminalSummary {
    pub id: TerminalId,
    pub pid: u32,
    pub wiring: Wiring,
    /// Offsets of the oldest byte remembered and of the next one to come, per stream.
    pub main: (u64, u64),
    pub error: (u64, u64),
    /// The output offset of the checkpoint held, if any.
    pub checkpoint: Option<u64>,
    pub exit: Option<Exit>,
    /// How many output bytes are remembered at most.
    pub ring: u32,
    pub label: Vec<u8>,
}

/// Why some input was not taken. Nothing of it reached the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputRefusal {
    NoSuchTerminal,
    /// The program has ended, or reads no input at all (pipes).
    NotReading,
    /// The program does not read, and what is already waiting for it has reached the limit.
    Full,
    /// The keeper did not take it in time. Never sent: the daemon's side of the connection finds this out.
    Untaken,
}

/// Why a program could not be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpawnRefusal {
    IdTaken,
    DirectoryMissing,
    ProgramMissing,
    NotExecutable,
    /// The operating system is out of processes, terminals or descriptors.
    LimitReached,
    Other,
}

/// Daemon → keeper.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeeperRequest {
    /// The first frame. `daemon` says that this peer is the one to restart when it goes away.
    Hello {
        version: u16,
        daemon: bool,
    },
    List,
    Spawn {
        id: TerminalId,
        program: ProgramSpec,
    },
    /// Send me this output from here on. The keeper sends no further than `WINDOW` past what was acknowledged.
    Attach {
        id: TerminalId,
        stream: OutputStream,
        from: u64,
    },
    /// I have dealt with the output before `offset`.
    Acknowledge {
        id: TerminalId,
        stream: OutputStream,
        offset: u64,
    },
    /// Applied if `sequence` is higher than any this writer has sent before, and acknowledged either way.
    Input {
        id: TerminalId,
        writer: WriterId,
        sequence: u64,
        bytes: Vec<u8>,
    },
    Resize {
        id: TerminalId,
        size: Size,
    },
    /// What closing a terminal window does: SIGHUP to the program and its foreground group.
    HangUp {
        id: TerminalId,
    },
    /// End the whole family: SIGTERM, and SIGKILL for what is left after `grace_ms`. Works for ids the
    /// keeper does not hold too: what carries that id in its environment is ended.
    End {
        id: TerminalId,
        grace_ms: u32,
    },
    /// Drop what is remembered of an ended terminal.
    Forget {
        id: TerminalId,
    },
    /// Keep this for me: the terminal's screen as of `offset`.
    Checkpoint {
        id: TerminalId,
        offset: u64,
        blob: Vec<u8>,
    },
    /// Start a daemon from this program file if none is connected, and use it for restarts from now on.
    StartDaemon {
        executable: Vec<u8>,
    },
    /// I am leaving on purpose: do not restart me. Without terminals the keeper leaves too.
    Rest,
    /// The next request was sent at this time of `clock::monotonic_ns`. It is answered with `Taken`. A request that is
    /// older than `LATE_AFTER` is not carried out: its sender has given up on it. Nor is what this peer sent before it could
    /// know that: the end of a line must not be typed without its beginning.
    Stamp {
        token: u64,
        sent: u64,
    },
}

/// Keeper → daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeeperEvent {
    Hello {
        version: u16,
        pid: u32,
        build: Vec<u8>,
    },
    Listed {
        summaries: Vec<TerminalSummary>,
    },
    Spawned {
        id: TerminalId,
        pid: u32,
    },
    SpawnFailed {
        id: TerminalId,
        why: SpawnRefusal,
        message: Vec<u8>,
    },
    /// Output as of `offset`. An offset beyond the end of the last frame means that the bytes between were
    /// overwritten before they could be sent.
    Output {
        id: TerminalId,
        stream: OutputStream,
        offset: u64,
        bytes: Vec<u8>,
    },
    /// From `offset` on the output was written for this size.
    Resized {
        id: TerminalId,
        offset: u64,
        size: Size,
    },
    /// The checkpoint held, sent once on `Attach` before any output.
    Checkpoint {
        id: TerminalId,
        offset: u64,
        blob: Vec<u8>,
    },
    /// Every byte of this input, and of all before it by this writer, has reached the terminal.
    InputDone {
        id: TerminalId,
        writer: WriterId,
        sequence: u64,
    },
    InputRefused {
        id: TerminalId,
        writer: WriterId,
        sequence: u64,
        why: InputRefusal,
    },
    /// The program ended, having written output up to these offsets. Sent after all of that output.
    Exited {
        id: TerminalId,
        exit: Exit,
        main: u64,
        error: u64,
    },
    /// The family of this terminal is gone but for `left` processes that could not be ended.
    Ended {
        id: TerminalId,
        left: u32,
    },
    Forgotten {
        id: TerminalId,
    },
    /// The request made no sense (unknown terminal, say). Told for the log; nothing else follows.
    Problem {
        message: Vec<u8>,
    },
    /// The answer to `StartDaemon`: one is connected now.
    DaemonUp {
        pid: u32,
    },
    /// The other answer to `StartDaemon`.
    DaemonFailed {
        message: Vec<u8>,
    },
    /// The answer to `Rest`: leave in peace.
    Resting,
    /// The request behind the `Stamp` with this token was carried out, or is too old and never will be.
    Taken {
        token: u64,
        late: bool,
    },
}

/// The age beyond which the keeper does not carry out a request that has a `Stamp`. A keeper that was stopped must not do
/// minutes later what its user was told has failed.
pub const LATE_AFTER: std::time::Duration = std::time::Duration::from_secs(6);

/// The time of a `Stamp` that never gets too old.
pub const NEVER_LATE: u64 = u64::MAX;

/// How far the keeper runs ahead of what a peer has acknowledged, per stream. Bounds what a daemon that
/// falls behind must buffer, and is well above what one terminal prints while a message travels.
pub const WINDOW: u64 = 256 << 10;

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum WireError {
    #[error("a frame of {0} bytes is longer than the {MAX_FRAME} allowed")]
    TooLong(usize),
    #[error("a frame of unknown kind {0}")]
    UnknownKind(u8),
    #[error("a frame of kind {0} that ends early, goes on too long or holds an impossible value")]
    Malformed(u8),
}

/// A message that has a place in a frame.
pub trait Message: Sized {
    fn put(&self, out: &mut Put<'_>) -> u8;
    fn take(kind: u8, fields: &mut Take<'_>) -> Option<Result<Self, WireError>>;
}

/// Appends one frame to `out`.
pub fn encode<M: Message>(message: &M, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&[0; 5]);
    let kind = message.put(&mut Put(out));
    let length = (out.len() - start - 4) as u32;
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
    out[start + 4] = kind;
}

/// Reads one frame off the front of `bytes`: the message and how long its frame was, or `None` if the
/// frame is not complete yet.
pub fn decode<M: Message>(bytes: &[u8]) -> Result<Option<(M, usize)>, WireError> {
    let Some((length, rest)) = bytes.split_first_chunk::<4>() else { return Ok(None) };
    let length = u32::from_le_bytes(*length) as usize;
    if length > MAX_FRAME {
        return Err(WireError::TooLong(length));
    }
    if length == 0 {
        return Err(WireError::Malformed(0));
    }
    let Some(frame) = rest.get(..length) else { return Ok(None) };
    let kind = frame[0];
    let mut fields = Take(&frame[1..]);
    match M::take(kind, &mut fields) {
        None => Err(WireError::Malformed(kind)),
        Some(Err(error)) => Err(error),
        Some(Ok(_)) if !fields.0.is_empty() => Err(WireError::Malformed(kind)),
        Some(Ok(message)) => Ok(Some((message, 4 + length))),
    }
}

/// Appends an `Output` frame straight from a ring's two halves, without building the message first.
pub fn encode_output(id: TerminalId, stream: OutputStream, offset: u64, halves: (&[u8], &[u8]), out: &mut Vec<u8>) {
    let length = halves.0.len() + halves.1.len();
    out.extend_from_slice(&((1 + 8 + 1 + 8 + 4 + length) as u32).to_le_bytes());
    out.push(5);
    let mut put = Put(out);
    put.id(id).stream(stream).u64(offset).u32(length as u32);
    out.extend_from_slice(halves.0);
    out.extend_from_slice(halves.1);
}

pub struct Put<'a>(&'a mut Vec<u8>);

impl Put<'_> {
    fn u8(&mut self, v: u8) -> &mut Self {
        self.0.push(v);
        self
    }
    fn u16(&mut self, v: u16) -> &mut Self {
        self.0.extend_from_slice(&v.to_le_bytes());
        self
    }
    fn u32(&mut self, v: u32) -> &mut Self {
        self.0.extend_from_slice(&v.to_le_bytes());
        self
    }
    fn u64(&mut self, v: u64) -> &mut Self {
        self.0.extend_from_slice(&v.to_le_bytes());
        self
    }
    fn id(&mut self, id: TerminalId) -> &mut Self {
        self.0.extend_from_slice(id.as_bytes());
        self
    }
    fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.u32(bytes.len() as u32).0.extend_from_slice(bytes);
        self
    }
    fn size(&mut self, size: Size) -> &mut Self {
        self.u16(size.rows()).u16(size.cols())
    }
    fn stream(&mut self, stream: OutputStream) -> &mut Self {
        self.u8(match stream {
            OutputStream::Main => 0,
            OutputStream::Error => 1,
        })
    }
    fn wiring(&mut self, wiring: Wiring) -> &mut Self {
        match wiring {
            Wiring::Terminal(size) => self.u8(0).size(size),
            Wiring::Pipes => self.u8(1),
        }
    }
    fn exit(&mut self, exit: Option<Exit>) -> &mut Self {
        match exit {
            None => self.u8(0),
            Some(Exit::Code(code)) => self.u8(1).u32(code as u32),
            Some(Exit::Signal(signal)) => self.u8(2).u32(signal as u32),
            Some(Exit::Lost) => self.u8(3),
        }
    }
}

pub struct Take<'a>(&'a [u8]);

impl<'a> Take<'a> {
    fn chunk<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (chunk, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*chunk)
    }
    fn u8(&mut self) -> Option<u8> {
        self.chunk::<1>().map(|[b]| b)
    }
    fn u16(&mut self) -> Option<u16> {
        self.chunk().map(u16::from_le_bytes)
    }
    fn u32(&mut self) -> Option<u32> {
        self.chunk().map(u32::from_le_bytes)
    }
    fn u64(&mut self) -> Option<u64> {
        self.chunk().map(u64::from_le_bytes)
    }
    fn id(&mut self) -> Option<TerminalId> {
        TerminalId::from_bytes(self.chunk()?).ok()
    }
    fn bytes(&mut self) -> Option<Vec<u8>> {
        let length = self.u32()? as usize;
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes.to_vec())
    }
    /// How many elements follow, refused when even empty ones would not fit.
    fn count(&mut self, smallest: usize) -> Option<usize> {
        let count = self.u32()? as usize;
        (count <= self.0.len() / smallest).then_some(count)
    }
    fn size(&mut self) -> Option<Size> {
        let (rows, cols) = (self.u16()?, self.u16()?);
        Size::new(rows, cols).ok()
    }
    fn stream(&mut self) -> Option<OutputStream> {
        Some(match self.u8()? {
            0 => OutputStream::Main,
            1 => OutputStream::Error,
            _ => return None,
        })
    }
    fn wiring(&mut self) -> Option<Wiring> {
        Some(match self.u8()? {
            0 => Wiring::Terminal(self.size()?),
            1 => Wiring::Pipes,
            _ => return None,
        })
    }
    fn exit(&mut self) -> Option<Option<Exit>> {
        Some(match self.u8()? {
            0 => None,
            1 => Some(Exit::Code(self.u32()? as i32)),
            2 => Some(Exit::Signal(self.u32()? as i32)),
            3 => Some(Exit::Lost),
            _ => return None,
        })
    }
}

impl Message for KeeperRequest {
    fn put(&self, out: &mut Put<'_>) -> u8 {
        match self {
            KeeperRequest::Hello { version, daemon } => {
                out.u16(*version).u8(u8::from(*daemon));
                1
            }
            KeeperRequest::List => 2,
            KeeperRequest::Spawn { id, program } => {
                out.id(*id).u32(program.arguments.len() as u32);
                for argument in &program.arguments {
                    out.bytes(argument);
                }
                out.u32(program.environment.len() as u32);
                for (name, value) in &program.environment {
                    out.bytes(name).bytes(value);
                }
                out.bytes(&program.directory).wiring(program.wiring).u32(program.ring).bytes(&program.label);
                3
            }
            KeeperRequest::Attach { id, stream, from } => {
                out.id(*id).stream(*stream).u64(*from);
                4
            }
            KeeperRequest::Acknowledge { id, stream, offset } => {
                out.id(*id).stream(*stream).u64(*offset);
                5
            }
            KeeperRequest::Input { id, writer, sequence, bytes } => {
                out.id(*id).u64(writer.0).u64(*sequence).bytes(bytes);
                6
            }
            KeeperRequest::Resize { id, size } => {
                out.id(*id).size(*size);
                7
            }
            KeeperRequest::HangUp { id } => {
                out.id(*id);
                8
            }
            KeeperRequest::End { id, grace_ms } => {
                out.id(*id).u32(*grace_ms);
                9
            }
            KeeperRequest::Forget { id } => {
                out.id(*id);
                10
            }
            KeeperRequest::Checkpoint { id, offset, blob } => {
                out.id(*id).u64(*offset).bytes(blob);
                11
            }
            KeeperRequest::StartDaemon { executable } => {
                out.bytes(executable);
                12
            }
            KeeperRequest::Rest => 13,
            KeeperRequest::Stamp { token, sent } => {
                out.u64(*token).u64(*sent);
                14
            }
        }
    }

    fn take(kind: u8, fields: &mut Take<'_>) -> Option<Result<Self, WireError>> {
        let f = fields;
        Some(Ok(match kind {
            1 => KeeperRequest::Hello { version: f.u16()?, daemon: f.u8()? != 0 },
            2 => KeeperRequest::List,
            3 => {
                let id = f.id()?;
                let count = f.count(4)?;
                let arguments = (0..count).map(|_| f.bytes()).collect::<Option<_>>()?;
                let count = f.count(8)?;
                let environment = (0..count).map(|_| Some((f.bytes()?, f.bytes()?))).collect::<Option<_>>()?;
                let program = ProgramSpec {
                    arguments,
                    environment,
                    directory: f.bytes()?,
                    wiring: f.wiring()?,
                    ring: f.u32()?,
                    label: f.bytes()?,
                };
                KeeperRequest::Spawn { id, program }
            }
            4 => KeeperRequest::Attach { id: f.id()?, stream: f.stream()?, from: f.u64()? },
            5 => KeeperRequest::Acknowledge { id: f.id()?, stream: f.stream()?, offset: f.u64()? },
            6 => {
                KeeperRequest::Input { id: f.id()?, writer: WriterId(f.u64()?), sequence: f.u64()?, bytes: f.bytes()? }
            }
            7 => KeeperRequest::Resize { id: f.id()?, size: f.size()? },
            8 => KeeperRequest::HangUp { id: f.id()? },
            9 => KeeperRequest::End { id: f.id()?, grace_ms: f.u32()? },
            10 => KeeperRequest::Forget { id: f.id()? },
            11 => KeeperRequest::Checkpoint { id: f.id()?, offset: f.u64()?, blob: f.bytes()? },
            12 => KeeperRequest::StartDaemon { executable: f.bytes()? },
            13 => KeeperRequest::Rest,
            14 => KeeperRequest::Stamp { token: f.u64()?, sent: f.u64()? },
            unknown => return Some(Err(WireError::UnknownKind(unknown))),
        }))
    }
}

impl Message for KeeperEvent {
    fn put(&self, out: &mut Put<'_>) -> u8 {
        match self {
            KeeperEvent::Hello { version, pid, build } => {
                out.u16(*version).u32(*pid).bytes(build);
                1
            }
            KeeperEvent::Listed { summaries } => {
                out.u32(summaries.len() as u32);
                for s in summaries {
                    out.id(s.id).u32(s.pid).wiring(s.wiring);
                    out.u64(s.main.0).u64(s.main.1).u64(s.error.0).u64(s.error.1);
                    out.u8(u8::from(s.checkpoint.is_some())).u64(s.checkpoint.unwrap_or(0));
                    out.exit(s.exit).u32(s.ring).bytes(&s.label);
                }
                2
            }
            KeeperEvent::Spawned { id, pid } => {
                out.id(*id).u32(*pid);
                3
            }
            KeeperEvent::SpawnFailed { id, why, message } => {
                let why = match why {
                    SpawnRefusal::IdTaken => 0,
                    SpawnRefusal::DirectoryMissing => 1,
                    SpawnRefusal::ProgramMissing => 2,
                    SpawnRefusal::NotExecutable => 3,
                    SpawnRefusal::LimitReached => 4,
                    SpawnRefusal::Other => 5,
                };
                out.id(*id).u8(why).bytes(message);
                4
            }
            KeeperEvent::Output { id, stream, offset, bytes } => {
                out.id(*id).stream(*stream).u64(*offset).bytes(bytes);
                5
            }
            KeeperEvent::Resized { id, offset, size } => {
                out.id(*id).u64(*offset).size(*size);
                6
            }
            KeeperEvent::Checkpoint { id, offset, blob } => {
                out.id(*id).u64(*offset).bytes(blob);
                7
            }
            KeeperEvent::InputDone { id, writer, sequence } => {
                out.id(*id).u64(writer.0).u64(*sequence);
                8
            }
            KeeperEvent::InputRefused { id, writer, sequence, why } => {
                let why = match why {
                    InputRefusal::NoSuchTerminal => 0,
                    InputRefusal::NotReading => 1,
                    InputRefusal::Full => 2,
                    InputRefusal::Untaken => 3,
                };
                out.id(*id).u64(writer.0).u64(*sequence).u8(why);
                9
            }
            KeeperEvent::Exited { id, exit, main, error } => {
                out.id(*id).exit(Some(*exit)).u64(*main).u64(*error);
                10
            }
            KeeperEvent::Ended { id, left } => {
                out.id(*id).u32(*left);
                11
            }
            KeeperEvent::Forgotten { id } => {
                out.id(*id);
                12
            }
            KeeperEvent::Problem { message } => {
                out.bytes(message);
                13
            }
            KeeperEvent::DaemonUp { pid } => {
                out.u32(*pid);
                14
            }
            KeeperEvent::DaemonFailed { message } => {
                out.bytes(message);
                15
            }
            KeeperEvent::Resting => 16,
            KeeperEvent::Taken { token, late } => {
                out.u64(*token).u8(u8::from(*late));
                17
            }
        }
    }

    fn take(kind: u8, fields: &mut Take<'_>) -> Option<Result<Self, WireError>> {
        let f = fields;
        Some(Ok(match kind {
            1 => KeeperEvent::Hello { version: f.u16()?, pid: f.u32()?, build: f.bytes()? },
            2 => {
                let count = f.count(8)?;
                let mut summaries = Vec::new();
                for _ in 0..count {
                    let (id, pid, wiring) = (f.id()?, f.u32()?, f.wiring()?);
                    let (main, error) = ((f.u64()?, f.u64()?), (f.u64()?, f.u64()?));
                    let (held, at) = (f.u8()? != 0, f.u64()?);
                    let (checkpoint, exit) = (held.then_some(at), f.exit()?);
                    let (ring, label) = (f.u32()?, f.bytes()?);
                    summaries.push(TerminalSummary { id, pid, wiring, main, error, checkpoint, exit, ring, label });
                }
                KeeperEvent::Listed { summaries }
            }
            3 => KeeperEvent::Spawned { id: f.id()?, pid: f.u32()? },
            4 => {
                let id = f.id()?;
                let why = match f.u8()? {
                    0 => SpawnRefusal::IdTaken,
                    1 => SpawnRefusal::DirectoryMissing,
                    2 => SpawnRefusal::ProgramMissing,
                    3 => SpawnRefusal::NotExecutable,
                    4 => SpawnRefusal::LimitReached,
                    5 => SpawnRefusal::Other,
                    _ => return None,
                };
                KeeperEvent::SpawnFailed { id, why, message: f.bytes()? }
            }
            5 => KeeperEvent::Output { id: f.id()?, stream: f.stream()?, offset: f.u64()?, bytes: f.bytes()? },
            6 => KeeperEvent::Resized { id: f.id()?, offset: f.u64()?, size: f.size()? },
            7 => KeeperEvent::Checkpoint { id: f.id()?, offset: f.u64()?, blob: f.bytes()? },
            8 => KeeperEvent::InputDone { id: f.id()?, writer: WriterId(f.u64()?), sequence: f.u64()? },
            9 => {
                let (id, writer, sequence) = (f.id()?, WriterId(f.u64()?), f.u64()?);
                let why = match f.u8()? {
                    0 => InputRefusal::NoSuchTerminal,
                    1 => InputRefusal::NotReading,
                    2 => InputRefusal::Full,
                    3 => InputRefusal::Untaken,
                    _ => return None,
                };
                KeeperEvent::InputRefused { id, writer, sequence, why }
            }
            10 => KeeperEvent::Exited { id: f.id()?, exit: f.exit()??, main: f.u64()?, error: f.u64()? },
            11 => KeeperEvent::Ended { id: f.id()?, left: f.u32()? },
            12 => KeeperEvent::Forgotten { id: f.id()? },
            13 => KeeperEvent::Problem { message: f.bytes()? },
            14 => KeeperEvent::DaemonUp { pid: f.u32()? },
            15 => KeeperEvent::DaemonFailed { message: f.bytes()? },
            16 => KeeperEvent::Resting,
            17 => KeeperEvent::Taken { token: f.u64()?, late: f.u8()? != 0 },
            unknown => return Some(Err(WireError::UnknownKind(unknown))),
        }))
    }
}

#[cfg(test)]
#[path = "wire_tests.rs"]
mod tests;
