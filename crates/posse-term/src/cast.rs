//! Recordings of terminals: asciicast v2, as `asciinema play` and others read it. No files here, only text and bytes.
//!
//! A header line, then one line per event: `[seconds,"o",text]` for output, `[seconds,"r","COLUMNSxROWS"]` for a new size,
//! `[seconds,"m",text]` for a mark, `[seconds,"e",json]` for evidence of a status that is not in the output. Times are from the header's timestamp on.
//!
//! The format carries text, terminals carry bytes. A character that was cut by the end of a chunk waits for the next one,
//! and so gets that one's time. Bytes that are no UTF-8 are left out, as the emulator leaves them out.

use std::io::{self, BufRead};
use std::time::Duration;

use posse_core::screen::{BadSize, Size};
use serde::Deserialize;

use crate::sequence::cut_character;

/// The maximum output in one line. Even with every byte escaped a line stays well below [`MAX_LINE`].
const PIECE: usize = 16 << 10;
/// The maximum length of a line of [`Encoder`], which bounds the search for the last whole line.
pub const MAX_LINE: usize = 128 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    pub size: Size,
    /// The start of the recording, in seconds since 1970.
    pub began: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CastEvent {
    /// The time after the header's `began`, in whole microseconds.
    pub at: Duration,
    pub what: CastEventKind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CastEventKind {
    Output(Vec<u8>),
    Resized(Size),
    Mark(String),
    /// Evidence that the output does not contain, as JSON.
    Evidence(String),
}

#[derive(Debug, thiserror::Error)]
pub enum CastError {
    #[error("the recording cannot be read: {0}")]
    Io(#[from] io::Error),
    #[error("this is no recording of version 2: {0}")]
    Header(String),
    #[error("line {line} of the recording makes no sense: {why}")]
    Line { line: usize, why: String },
}

#[derive(Deserialize)]
struct HeaderLine {
    version: u8,
    width: u16,
    height: u16,
    timestamp: Option<u64>,
}

impl Header {
    pub fn line(&self) -> String {
        let Self { size, began } = self;
        format!("{{\"version\":2,\"width\":{},\"height\":{},\"timestamp\":{began}}}\n", size.cols(), size.rows())
    }

    pub fn parse(line: &[u8]) -> Result<Self, CastError> {
        let wrong = |why: String| CastError::Header(why);
        let found: HeaderLine = serde_json::from_slice(line).map_err(|error| wrong(error.to_string()))?;
        if found.version != 2 {
            return Err(wrong(format!("version {}", found.version)));
        }
        let size = Size::new(found.height, found.width).map_err(|error| wrong(error.to_string()))?;
        Ok(Self { size, began: found.timestamp.unwrap_or(0) })
    }
}

#[derive(Debug, Default)]
pub struct Encoder {
    /// The beginning of a character.
    held: Vec<u8>,
}

impl Encoder {
    pub fn output(&mut self, at: Duration, bytes: &[u8], out: &mut Vec<u8>) {
        for piece in bytes.chunks(PIECE) {
            if self.held.is_empty() {
                let (whole, rest) = piece.split_at(piece.len() - cut_character(piece));
                write_output(at, whole, out);
                self.held.extend_from_slice(rest);
            } else {
                self.held.extend_from_slice(piece);
                let rest = self.held.split_off(self.held.len() - cut_character(&self.held));
                write_output(at, &self.held, out);
                self.held = rest;
            }
        }
    }

    pub fn resized(&self, at: Duration, size: Size, out: &mut Vec<u8>) {
        write_line(at, "r", &size.to_string(), out);
    }

    pub fn mark(&self, at: Duration, text: &str, out: &mut Vec<u8>) {
        write_line(at, "m", text, out);
    }

    pub fn evidence(&self, at: Duration, json: &str, out: &mut Vec<u8>) {
        write_line(at, "e", json, out);
    }
}

fn write_output(at: Duration, bytes: &[u8], out: &mut Vec<u8>) {
    let text: String = bytes.utf8_chunks().map(|chunk| chunk.valid()).collect();
    if !text.is_empty() {
        write_line(at, "o", &text, out);
    }
}

fn write_line(at: Duration, code: &str, text: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(format!("[{}.{:06},\"{code}\",", at.as_secs(), at.subsec_micros()).as_bytes());
    // Text always has a form in JSON, and a vector takes all of it.
    let _ = serde_json::to_writer(&mut *out, text);
    out.extend_from_slice(b"]\n");
}

/// Reads a recording, event by event.
///
/// A last line without a line break was cut by a crash, and is left out.
pub struct CastReader<R> {
    input: R,
    header: Header,
    line: usize,
}

impl<R: BufRead> CastReader<R> {
    pub fn new(mut input: R) -> Result<Self, CastError> {
        let mut line = Vec::new();
        input.read_until(b'\n', &mut line)?;
        Ok(Self { input, header: Header::parse(&line)?, line: 1 })
    }

    pub fn header(&self) -> Header {
        self.header
    }
}

impl<R: BufRead> Iterator for CastReader<R> {
    type Item = Result<CastEvent, CastError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let mut text = Vec::new();
            if let Err(error) = self.input.read_until(b'\n', &mut text) {
                return Some(Err(error.into()));
            }
            if text.last() != Some(&b'\n') {
                return None;
            }
            self.line += 1;
            let event = parse(&text).map_err(|why| CastError::Line { line: self.line, why }).transpose();
            if event.is_some() {
                return event;
            }
        }
    }
}

/// Parses one line. `None` is an unknown kind of event.
fn parse(line: &[u8]) -> Result<Option<CastEvent>, String> {
    let (seconds, code, text): (f64, String, String) =
        serde_json::from_slice(line).map_err(|error| error.to_string())?;
    if !(0.0..1e12).contains(&seconds) {
        return Err(format!("{seconds} is no time"));
    }
    let what = match code.as_str() {
        "o" => CastEventKind::Output(text.into_bytes()),
        "r" => CastEventKind::Resized(text.parse().map_err(|error: BadSize| error.to_string())?),
        "m" => CastEventKind::Mark(text),
        "e" => CastEventKind::Evidence(text),
        _ => return Ok(None),
    };
    Ok(Some(CastEvent { at: Duration::from_micros((seconds * 1e6).round() as u64), what }))
}

#[cfg(test)]
mod tests;
