//! The part of HTTP/1.1 that agents need from a model server: one request per connection, and full control over the
//! bytes that are sent, so that a scenario can break the protocol.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;

/// Longer bodies are refused. Agents send their whole conversation.
const MAX_BODY: usize = 64 << 20;

#[derive(Debug)]
pub(crate) struct HttpRequest {
    pub(crate) method: String,
    /// Without the query.
    pub(crate) path: String,
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl HttpRequest {
    /// Returns a header; `name` is in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// Reads a request. Returns `None` if the connection was closed without one.
pub(crate) fn read(stream: &TcpStream) -> io::Result<Option<HttpRequest>> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split_ascii_whitespace().map(str::to_owned);
    let (Some(method), Some(target)) = (words.next(), words.next()) else {
        return Err(io::ErrorKind::InvalidData.into());
    };
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let path = target.split('?').next().unwrap_or_default().to_owned();
    let mut request = HttpRequest { method, path, headers, body: Vec::new() };
    let chunked = request.header("transfer-encoding").is_some_and(|how| how.eq_ignore_ascii_case("chunked"));
    request.body = if chunked {
        read_chunks(&mut reader)?
    } else {
        let length = request.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
        read_exactly(&mut reader, length)?
    };
    Ok(Some(request))
}

fn read_exactly(reader: &mut impl Read, length: usize) -> io::Result<Vec<u8>> {
    if length > MAX_BODY {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut bytes = vec![0; length];
    reader.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn read_chunks(reader: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let length = usize::from_str_radix(line.trim(), 16).map_err(|_| io::ErrorKind::InvalidData)?;
        body.extend(read_exactly(reader, length)?);
        // An empty line ends each chunk, also the last one.
        reader.read_line(&mut line)?;
        if length == 0 {
            return Ok(body);
        }
    }
}

pub(crate) type Headers<'a> = &'a [(&'a str, &'a str)];

/// Sends a whole answer with a JSON body.
pub(crate) fn answer(
    mut to: &TcpStream,
    status: u16,
    headers: Headers<'_>,
    body: &str,
    body_wanted: bool,
) -> io::Result<()> {
    let length = body.len().to_string();
    let mut all = vec![("content-type", "application/json"), ("content-length", &length)];
    all.extend(headers);
    let body = if body_wanted { body } else { "" };
    to.write_all(format!("{}{body}", head(status, &all)).as_bytes())
}

/// Sends the head of a stream of events. [`chunk`] sends the events and [`last_chunks`] ends the stream.
pub(crate) fn stream_head(mut to: &TcpStream) -> io::Result<()> {
    let headers =
        [("content-type", "text/event-stream"), ("cache-control", "no-cache"), ("transfer-encoding", "chunked")];
    to.write_all(head(200, &headers).as_bytes())
}

pub(crate) fn chunk(mut to: &TcpStream, text: &str) -> io::Result<()> {
    // An empty chunk would end the stream.
    if text.is_empty() { Ok(()) } else { to.write_all(format!("{:x}\r\n{text}\r\n", text.len()).as_bytes()) }
}

pub(crate) fn last_chunks(mut to: &TcpStream, events: &[String]) -> io::Result<()> {
    events.iter().try_for_each(|event| chunk(to, event))?;
    to.write_all(b"0\r\n\r\n")
}

fn head(status: u16, headers: Headers<'_>) -> String {
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    // One request per connection, so that a closed connection always means a lost request.
    format!("HTTP/1.1 {status} \r\n{headers}request-id: req_scripted\r\nconnection: close\r\n\r\n")
}
