//! A small HTTP client over the daemon's socket, written apart from the command line's own. One connection per
//! request, blocking, no cleverness.

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

/// An answer: its status and its body.
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
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nhost: posse\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )?;
        let mut reader = BufReader::new(stream);
        let (status, length) = read_head(&mut reader)?;
        let mut body = Vec::new();
        match length {
            Some(length) => {
                body.resize(length, 0);
                reader.read_exact(&mut body)?;
            }
            None => drop(reader.read_to_end(&mut body)?),
        }
        Ok(HttpAnswer { status, body: String::from_utf8_lossy(&body).into_owned() })
    }

    pub fn get<T: DeserializeOwned>(&self, path: &str) -> io::Result<T> {
        let answer = self.call("GET", path, "")?;
        serde_json::from_str(&answer.body).map_err(io::Error::other)
    }

    pub fn post<B: Serialize>(&self, path: &str, body: &B) -> io::Result<HttpAnswer> {
        self.call("POST", path, &serde_json::to_string(body)?)
    }

    /// Follows the events, after `last` if given.
    pub fn events(&self, last: Option<i64>) -> io::Result<Events> {
        let mut stream = self.connect()?;
        let last = last.map(|last| format!("last-event-id: {last}\r\n")).unwrap_or_default();
        write!(stream, "GET /events HTTP/1.1\r\nhost: posse\r\n{last}\r\n")?;
        let mut reader = BufReader::new(stream);
        read_head(&mut reader)?;
        Ok(Events { reader })
    }
}

fn read_head(reader: &mut impl BufRead) -> io::Result<(u16, Option<usize>)> {
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let status = line.split(' ').nth(1).and_then(|status| status.parse().ok());
    let status = status.ok_or_else(|| io::Error::new(io::ErrorKind::UnexpectedEof, format!("no answer: {line:?}")))?;
    let mut length = None;
    loop {
        line.clear();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().ok();
        }
    }
    Ok((status, length))
}

/// Server-sent events, as JSON.
pub struct Events {
    reader: BufReader<UnixStream>,
}

impl Events {
    /// The next event; `None` at the end of the stream. Waits at most [`PATIENCE`].
    pub fn next_event(&mut self) -> io::Result<Option<serde_json::Value>> {
        let mut line = String::new();
        loop {
            line.clear();
            if self.reader.read_line(&mut line)? == 0 {
                return Ok(None);
            }
            // The lengths of chunks and the other fields of an event are passed over.
            if let Some(data) = line.strip_prefix("data:") {
                return serde_json::from_str(data.trim()).map(Some).map_err(io::Error::other);
            }
        }
    }

    /// Reads on until an event fits.
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
