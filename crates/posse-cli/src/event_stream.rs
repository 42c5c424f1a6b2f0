//! Reading server-sent events.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::SendRequest;
use posse_api::LogEvent;

/// The pause before a new stream is requested after one has ended.
pub(crate) const AGAIN: Duration = Duration::from_millis(20);

pub(crate) struct EventStream {
    body: Incoming,
    buffer: Vec<u8>,
    /// Dropping it would close the connection.
    _connection: Option<SendRequest<Full<Bytes>>>,
}

impl EventStream {
    pub(crate) fn new(body: Incoming, connection: Option<SendRequest<Full<Bytes>>>) -> Self {
        Self { body, buffer: Vec::new(), _connection: connection }
    }

    /// The next event; `None` when the connection has ended.
    pub(crate) async fn next(&mut self) -> Option<LogEvent> {
        loop {
            while let Some(end) = self.buffer.windows(2).position(|pair| pair == b"\n\n") {
                let block: Vec<u8> = self.buffer.drain(..end + 2).collect();
                if let Some(event) = parse(&block) {
                    return Some(event);
                }
            }
            let frame = self.body.frame().await?.ok()?;
            if let Ok(data) = frame.into_data() {
                self.buffer.extend_from_slice(&data);
            }
        }
    }

    /// Waits for an event like this. `None`: the connection has ended.
    pub(crate) async fn until(&mut self, wanted: impl Fn(&LogEvent) -> bool) -> Option<LogEvent> {
        while let Some(event) = self.next().await {
            if wanted(&event) {
                return Some(event);
            }
        }
        None
    }
}

/// One block of the stream. Comments, which keep the connection alive, give nothing.
fn parse(block: &[u8]) -> Option<LogEvent> {
    let text = std::str::from_utf8(block).ok()?;
    let data: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("data:")).map(str::trim_start).collect();
    serde_json::from_str(&data.join("\n")).ok()
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn blocks_are_events_or_nothing() {
        let block =
            "id: 7\ndata: {\"seq\":7,\"at\":\"2026-01-01T00:00:00Z\",\"kind\":\"keeper_answers\",\"data\":{}}\n\n";
        assert_eq!(parse(block.as_bytes()).unwrap().seq, Some(7));
        assert!(parse(b":\n\n").is_none());
        assert!(parse(b"data: nonsense\n\n").is_none());
    }
}
