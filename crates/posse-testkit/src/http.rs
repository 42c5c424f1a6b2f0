//! A small HTTP client over the daemon's socket, independent of the command line's own. One blocking connection per
//! request.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::PATIENCE;

#[derive(Clone, Debug)]
pub struct Client {
    socket: PathBuf,
}

#[derive(Debug)]
pub struct HttpAnswer {
    pub status: u16,
    pub body: String,
}

impl HttpAnswer {
    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("no JSON ({error}): {self:?}"))
    }
}

impl Client {
    pub fn new(socket: PathBuf) -> Self {
        Self { socket }
    }

    pub fn connect(&self) -> io::Result<UnixStream> {
        let stream = UnixStream::connect(&self.socket)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(stream)
    }

    pub fn call(&self, method: &str, path: &str, body: &str) -> io::Result<HttpAnswer> {
        let mut stream = self.connect()?;
        let head =
            format!("{method} {path} HTTP/1.1\r\nhost: posse\r\nconnection: close\r\ncontent-type: application/json");
        // In one write: a server may answer, and close the connection, after reading the head.
        stream.write_all(format!("{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len()).as_bytes())?;
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes)?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let cut = || io::Error::new(io::ErrorKind::UnexpectedEof, format!("no answer: {:?}", text(&bytes)));
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n").ok_or_else(cut)?;
        let head = text(&bytes[..end]);
        let body = &bytes[end + 4..];
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).ok_or_else(cut)?;
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        if length.is_some_and(|length| length.parse() != Ok(body.len())) {
            return Err(cut());
        }
        Ok(HttpAnswer { status, body: text(body) })
    }

    pub fn get<T: DeserializeOwned>(&self, path: &str) -> io::Result<T> {
        let answer = self.call("GET", path, "")?;
        serde_json::from_str(&answer.body).map_err(io::Error::other)
    }

    pub fn post<B: Serialize>(&self, path: &str, body: &B) -> io::Result<HttpAnswer> {
        self.call("POST", path, &serde_json::to_string(body)?)
    }

    pub fn events(&self, last: Option<i64>) -> io::Result<Events> {
        let mut stream = self.connect()?;
        let last = last.map(|last| format!("last-event-id: {last}\r\n")).unwrap_or_default();
        write!(stream, "GET /events HTTP/1.1\r\nhost: posse\r\n{last}\r\n")?;
        let mut reader = BufReader::new(stream);
        // The daemon answers as soon as it has subscribed.
        reader.read_line(&mut String::new())?;
        Ok(Events { reader })
    }
}

pub struct Events {
    reader: BufReader<UnixStream>,
}

impl Events {
    /// Returns the next event; `None` at the end of the stream. Waits at most [`PATIENCE`].
    pub fn next_event(&mut self) -> io::Result<Option<serde_json::Value>> {
        let mut line = String::new();
        loop {
            line.clear();
            if self.reader.read_line(&mut line)? == 0 {
                return Ok(None);
            }
            // The response head, the chunk lengths and the other fields of an event are skipped.
            if let Some(data) = line.strip_prefix("data:") {
                return serde_json::from_str(data.trim()).map(Some).map_err(io::Error::other);
            }
        }
    }

    #[track_caller]
    pub fn until(&mut self, fits: impl Fn(&serde_json::Value) -> bool) -> serde_json::Value {
        loop {
            match self.next_event() {
                Ok(Some(event)) if fits(&event) => return event,
                Ok(Some(_)) => {}
                other => panic!("the events ended before it came: {other:?}"),
            }
        }
    }
}
