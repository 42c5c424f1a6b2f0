//! The protocol between the keeper and its peers: the messages, and their encoding.
//!
//! Pure: this module owns no socket. A keeper outlives the daemon that started it, upgrades included, so every frame
//! names the protocol version it is written in:
//!
//! ```text
//! length: u32 LE   of everything behind it
//! version: u16 LE  the protocol version of the sender
//! fields           one message, encoded with postcard
//! payload          the raw bytes of output, input or a checkpoint; empty for all other messages
//! ```
//!
//! Length and version never change their place. A peer can therefore recognise a frame of any other version, and name
//! that version. Within one version the fields never change either: `tests/golden/` holds their bytes.
//!
//! Decoding never panics. A frame is bounded before it is decoded, and everything in it takes space in the frame, so
//! the memory for a message is bounded by a constant times [`MAX_FRAME`].

use posse_core::ids::{TerminalId, WriterId};
use posse_core::screen::Size;
use posse_core::status::Exit;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

pub const VERSION: u16 = 3;

/// The longest frame either side accepts, without its length. Larger than every valid frame: a checkpoint of a full
/// screen with its history stays below 2 MiB, an environment below the kernel's limit of a few MiB.
pub const MAX_FRAME: usize = 8 << 20;

/// The longest frame accepted from a peer that may neither type nor start programs.
pub const MAX_FRAME_INSIDE: usize = 64 << 10;

pub const MAX_INPUT: usize = 1 << 20;

/// A program to start on a terminal of its own. It inherits nothing from the keeper.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramSpec {
    /// The program and its arguments. The program is looked up in the `PATH` of `environment`.
    pub arguments: Vec<Vec<u8>>,
    pub environment: Vec<(Vec<u8>, Vec<u8>)>,
    pub directory: Vec<u8>,
    pub size: Size,
    /// The number of output bytes that the keeper remembers.
    pub ring: u32,
    /// The daemon's own notes on this terminal. The keeper returns them unread, so that a daemon that lost its database
    /// still knows its terminals.
    pub label: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminalSummary {
    pub id: TerminalId,
    pub pid: u32,
    pub size: Size,
    /// Offsets of the oldest byte remembered and of the next one to come.
    pub output: (u64, u64),
    /// The output offset of the checkpoint held, if any.
    pub checkpoint: Option<u64>,
    pub exit: Option<Exit>,
    /// The maximum number of output bytes remembered.
    pub ring: u32,
    pub label: Vec<u8>,
}

/// The reason for refusing input. Nothing of it reached the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum InputRefusal {
    NoSuchTerminal,
    NotReading,
    /// The program does not read, and its queue is full.
    Full,
    /// The keeper did not take the input in time. Never sent: the daemon's side of the connection finds this out.
    Untaken,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SpawnRefusal {
    IdTaken,
    DirectoryMissing,
    ProgramMissing,
    NotExecutable,
    /// The operating system is out of processes, terminals or descriptors.
    LimitReached,
    Other,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum KeeperRequest {
    /// The first message. `daemon` asks the keeper to restart this peer when it goes away.
    Hello {
        daemon: bool,
    },
    List,
    Spawn {
        id: TerminalId,
        program: ProgramSpec,
    },
    /// Asks for the output from this offset on. The keeper sends at most `WINDOW` bytes beyond what was acknowledged.
    Attach {
        id: TerminalId,
        from: u64,
    },
    /// Reports that the output before `offset` is processed.
    Acknowledge {
        id: TerminalId,
        offset: u64,
    },
    /// Applied if `sequence` is higher than any this writer has sent before, and acknowledged either way.
    Input {
        id: TerminalId,
        writer: WriterId,
        sequence: u64,
        #[serde(skip)]
        bytes: Vec<u8>,
    },
    Resize {
        id: TerminalId,
        size: Size,
    },
    /// Sends SIGHUP to the program and its foreground group, as closing a terminal window does.
    HangUp {
        id: TerminalId,
    },
    /// Ends the whole process family: SIGTERM, then SIGKILL for every process left after `grace_ms`. For an id that the
    /// keeper does not hold, it ends the processes that have this id in their environment.
    End {
        id: TerminalId,
        grace_ms: u32,
    },
    /// Drops the record of an exited terminal.
    Forget {
        id: TerminalId,
    },
    /// The screen as of `offset`, for the keeper to hold.
    Checkpoint {
        id: TerminalId,
        offset: u64,
        #[serde(skip)]
        blob: Vec<u8>,
    },
    /// Starts a daemon from this program file if none is connected, and uses the file for restarts from now on.
    StartDaemon {
        executable: Vec<u8>,
    },
    /// Announces that the daemon leaves on purpose and must not be restarted. A keeper without terminals leaves too.
    Rest,
    /// The time of [`crate::monotonic_ns`] at which the next request was sent. The keeper answers that request with
    /// `Taken`. It does not execute a request older than `LATE_AFTER`, because the sender has given up on it, nor
    /// anything this peer sent before it could know that: the end of a line must not be typed without its beginning.
    Stamp {
        token: u64,
        sent: u64,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum KeeperEvent {
    Hello {
        pid: u32,
        build: String,
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
        message: String,
    },
    /// Output as of `offset`. An offset beyond the end of the last frame means that the bytes between were
    /// overwritten before they could be sent.
    Output {
        id: TerminalId,
        offset: u64,
        #[serde(skip)]
        bytes: Vec<u8>,
    },
    /// From `offset` on the output was written for this size.
    Resized {
        id: TerminalId,
        offset: u64,
        size: Size,
    },
    /// The checkpoint held, sent once after `Attach`, before any output.
    Checkpoint {
        id: TerminalId,
        offset: u64,
        #[serde(skip)]
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
    /// The program exited after writing output up to this offset. Sent after all of that output.
    Exited {
        id: TerminalId,
        exit: Exit,
        end: u64,
    },
    /// The process family of this terminal is gone, except for `left` processes that could not be ended.
    Ended {
        id: TerminalId,
        left: u32,
    },
    Forgotten {
        id: TerminalId,
    },
    /// The keeper cannot execute a request, for example because the terminal is unknown. Only for the log.
    Problem {
        message: String,
    },
    /// The answer to `StartDaemon` if a daemon is connected now.
    DaemonUp {
        pid: u32,
    },
    /// The answer to `StartDaemon` if no daemon could be started.
    DaemonFailed {
        message: String,
    },
    /// The answer to `Rest`.
    Resting,
    /// The request behind the `Stamp` with this token was executed, or is too old and never will be.
    Taken {
        token: u64,
        late: bool,
    },
}

/// The age beyond which the keeper does not execute a request that has a `Stamp`. A keeper that was stopped must not
/// execute minutes later what its user saw fail.
pub const LATE_AFTER: std::time::Duration = std::time::Duration::from_secs(6);

/// The time of a `Stamp` that never gets too old.
pub const NEVER_LATE: u64 = u64::MAX;

/// The number of bytes that the keeper sends beyond what a peer has acknowledged, per terminal. Bounds the buffer of a
/// daemon that falls behind, and is far more than one terminal prints while a message travels.
pub const WINDOW: u64 = 256 << 10;

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum WireError {
    #[error("a frame of {length} bytes, longer than the {limit} allowed")]
    TooLong { length: usize, limit: usize },
    #[error("a frame of protocol version {0}, not {VERSION}")]
    Version(u16),
    #[error("a frame that is no message of protocol version {VERSION}")]
    Malformed,
}

pub trait WireMessage: Clone + Serialize + DeserializeOwned {
    /// The bytes sent raw behind the fields, for the messages that have some.
    fn payload(&mut self) -> Option<&mut Vec<u8>>;
}

impl WireMessage for KeeperRequest {
    fn payload(&mut self) -> Option<&mut Vec<u8>> {
        match self {
            Self::Input { bytes, .. } | Self::Checkpoint { blob: bytes, .. } => Some(bytes),
            _ => None,
        }
    }
}

impl WireMessage for KeeperEvent {
    fn payload(&mut self) -> Option<&mut Vec<u8>> {
        match self {
            Self::Output { bytes, .. } | Self::Checkpoint { blob: bytes, .. } => Some(bytes),
            _ => None,
        }
    }
}

/// Appends one frame to `out`.
pub fn encode<M: WireMessage>(message: &M, out: &mut Vec<u8>) {
    let payload = message.clone().payload().map(std::mem::take).unwrap_or_default();
    encode_with(message, &[&payload], out);
}

/// Appends one frame with this payload instead of the message's own, so that large payloads are copied only once.
pub fn encode_with<M: WireMessage>(message: &M, payload: &[&[u8]], out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&VERSION.to_le_bytes());
    // Encoding into memory fails only for sequences of unknown length, and no message has one.
    let encoded = postcard::to_io(message, &mut *out);
    debug_assert!(encoded.is_ok(), "{encoded:?}");
    for part in payload {
        out.extend_from_slice(part);
    }
    let length = (out.len() - start - 4) as u32;
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
}

/// Reads one frame of at most `limit` bytes off the front of `bytes`: the message and the length of the frame, or `None`
/// if the frame is not complete yet.
pub fn decode<M: WireMessage>(bytes: &[u8], limit: usize) -> Result<Option<(M, usize)>, WireError> {
    let Some((length, rest)) = bytes.split_first_chunk::<4>() else { return Ok(None) };
    let length = u32::from_le_bytes(*length) as usize;
    if length > limit {
        return Err(WireError::TooLong { length, limit });
    }
    if length < 2 {
        return Err(WireError::Malformed);
    }
    // A frame of another version is refused before the rest of it arrives.
    let Some((version, _)) = rest.split_first_chunk::<2>() else { return Ok(None) };
    let version = u16::from_le_bytes(*version);
    if version != VERSION {
        return Err(WireError::Version(version));
    }
    let Some(fields) = rest.get(2..length) else { return Ok(None) };
    let (mut message, payload) = postcard::take_from_bytes::<M>(fields).map_err(|_| WireError::Malformed)?;
    match message.payload() {
        Some(bytes) => bytes.extend_from_slice(payload),
        None if payload.is_empty() => {}
        None => return Err(WireError::Malformed),
    }
    Ok(Some((message, 4 + length)))
}

#[cfg(test)]
mod tests;
