//! A terminal followed live over its WebSocket. Blocking, so that nothing but the kernel lies between a message
//! and the moment it is noticed.

use posse_api::StreamMessage;
use posse_core::ids::TerminalId;

use super::stamp::{self, Stamp};
use super::{Bench, BenchError, missing};
use crate::http;
use crate::stream::{Item, Stream};

pub(super) struct ProbeStream {
    socket: Stream,
    /// Where the terminal's output was when this began.
    pub(super) offset: u64,
    /// Output that was not looked at yet, beginning with the picture.
    waiting: Vec<u8>,
}

impl ProbeStream {
    pub(super) fn follow(http: &http::Client, id: TerminalId) -> Result<Self, BenchError> {
        let mut socket = Stream::open(http, id, None, 1)?;
        loop {
            if let Item::Word(StreamMessage::Start { offset, .. }) = socket.next_item()? {
                return Ok(Self { socket, offset, waiting: Vec::new() });
            }
        }
    }

    fn next(&mut self) -> Result<(), BenchError> {
        loop {
            if let Item::Output { bytes, .. } = self.socket.next_item()? {
                self.waiting.extend_from_slice(&bytes);
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
                    let all = delays.len() == count as usize;
                    return if all {
                        Ok(delays)
                    } else {
                        Err(missing("stamps on the stream", delays.len(), count as usize))
                    };
                }
            }
        }
    }
}
