//! A terminal followed live over its WebSocket. Blocking, so that nothing but the kernel lies between a message
//! and the moment it is noticed.

use std::os::unix::net::UnixStream;

use posse_api::StreamMessage;
use posse_core::ids::TerminalId;
use tokio_tungstenite::tungstenite::{self, HandshakeError, Message, WebSocket};

use super::stamp::{self, Stamp};
use super::{Bench, BenchError};
use crate::http;

pub(super) struct Stream {
    socket: WebSocket<UnixStream>,
    /// Where the terminal's output was when this began.
    pub(super) offset: u64,
    /// What has come and was not looked at yet, beginning with the picture.
    waiting: Vec<u8>,
}

impl Stream {
    pub(super) fn follow(http: &http::Client, id: TerminalId) -> Result<Self, BenchError> {
        let socket = http.connect().map_err(BenchError::io("connect to the daemon"))?;
        let (socket, _) =
            tungstenite::client(format!("ws://posse/terminals/{id}/stream"), socket).map_err(|error| match error {
                HandshakeError::Failure(error) => Box::new(error),
                HandshakeError::Interrupted(_) => Box::new(tungstenite::Error::ConnectionClosed),
            })?;
        let mut stream = Self { socket, offset: 0, waiting: Vec::new() };
        stream.offset = loop {
            if let Message::Text(text) = stream.read()?
                && let Ok(StreamMessage::Start { offset, .. }) = serde_json::from_str(&text)
            {
                break offset;
            }
        };
        Ok(stream)
    }

    fn read(&mut self) -> Result<Message, BenchError> {
        self.socket.read().map_err(|error| Box::new(error).into())
    }

    /// Waits for the next output.
    fn next(&mut self) -> Result<(), BenchError> {
        loop {
            if let Message::Binary(bytes) = self.read()? {
                self.waiting.extend_from_slice(bytes.get(8..).unwrap_or_default());
                return Ok(());
            }
        }
    }

    /// Waits until the terminal has shown `text`, and passes over everything up to it.
    pub(super) fn until(&mut self, text: &str) -> Result<(), BenchError> {
        loop {
            if let Some(start) = self.waiting.windows(text.len()).position(|window| window == text.as_bytes()) {
                self.waiting.drain(..start + text.len());
                return Ok(());
            }
            self.next()?;
        }
    }

    /// How many nanoseconds each of the next `count` stamps was on its way.
    pub(super) fn delays(&mut self, bench: &Bench, count: u32) -> Result<Vec<u64>, BenchError> {
        let mut delays = Vec::new();
        loop {
            bench.go_on()?;
            self.next()?;
            let now = stamp::now();
            while let Some(Stamp { number, at }) = Stamp::take(&mut self.waiting) {
                delays.push(now - at);
                if number + 1 == count {
                    // Every byte must come: one that is missing is a bug, not a slow sample.
                    let (what, found, expected) = ("stamps on the stream", delays.len(), count as usize);
                    return if found == expected {
                        Ok(delays)
                    } else {
                        Err(BenchError::Missing { what, found, expected })
                    };
                }
            }
        }
    }
}
