//! The protocol between the keeper and its peers: the messages, and their encoding.
//!
//! Pure: this module owns no socket. A keeper outlives the daemon that started it, upgrades included, so every frame
//! names the protocol version it is written in:
//!
//! ```text
//! length: u32 LE   of everything behind it
//! version: u16 LE  the protocol version of the sender
//! message          encoded with postcard
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
use serde::{Deserialize, Serialize};

pub const VERSION: u16 = 4;

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

/// The reason for refusing input, of which no part reached the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum InputRefusal {
    /// There is no such terminal, or its program has ended.
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
    /// The first message. `daemon` asks the keeper to restart this peer when it disconnects.
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
        #[serde(with = "in_one_piece")]
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
    /// End the whole process family: SIGTERM, then SIGKILL for every process left after `grace_ms`. For an id that the
    /// keeper does not hold, end the processes that have this id in their environment.
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
        #[serde(with = "in_one_piece")]
        blob: Vec<u8>,
    },
    /// Starts a daemon from this program file if none is connected, and uses the file for restarts from now on.
    StartDaemon {
        executable: Vec<u8>,
    },
    /// Announces that the daemon leaves on purpose and must not be restarted. A keeper without terminals leaves too.
    Rest,
}

/// A peer's message: a request, with a stamp if the keeper must report that it took the request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StampedRequest {
    pub stamp: Option<RequestStamp>,
    pub request: KeeperRequest,
}

impl From<KeeperRequest> for StampedRequest {
    fn from(request: KeeperRequest) -> Self {
        Self { stamp: None, request }
    }
}

/// Identifies a request, which the keeper answers with `Taken`. The keeper does not execute a stamped request older
/// than `LATE_AFTER`, because the sender has given it up. It also drops all requests that this peer sent before it
/// could know that: the end of a line must not be typed without its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestStamp {
    pub token: u64,
    /// The time of [`crate::monotonic_ns`] at which the request was sent.
    pub sent: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum KeeperEvent {
    Hello,
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
        #[serde(with = "in_one_piece")]
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
        #[serde(with = "in_one_piece")]
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
    /// The request with this token was executed, or is too old and never will be.
    Taken {
        token: u64,
        late: bool,
    },
}

/// The age beyond which the keeper does not execute a stamped request. A keeper that was stopped must not execute
/// minutes later what its user saw fail.
pub const LATE_AFTER: std::time::Duration = std::time::Duration::from_secs(6);

/// The time of a stamp that never gets too old.
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

/// Encodes payloads as a whole. By itself, serde would visit every byte of a vector.
mod in_one_piece {
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(bytes)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        Ok(<&[u8]>::deserialize(deserializer)?.to_vec())
    }
}

pub fn encode(message: &impl Serialize, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&VERSION.to_le_bytes());
    // Encoding into memory fails only for sequences of unknown length, and no message has one.
    let encoded = postcard::to_io(message, &mut *out);
    debug_assert!(encoded.is_ok(), "{encoded:?}");
    let length = (out.len() - start - 4) as u32;
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
}

/// Reads one frame of at most `limit` bytes off the front of `bytes`: the message and the length of the frame, or `None`
/// if the frame is not complete yet.
pub fn decode<'a, M: Deserialize<'a>>(bytes: &'a [u8], limit: usize) -> Result<Option<(M, usize)>, WireError> {
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
    match postcard::take_from_bytes(fields) {
        Ok((message, [])) => Ok(Some((message, 4 + length))),
        _ => Err(WireError::Malformed),
    }
}

#[cfg(test)]
mod tests;
