//! Reading server-sent events, over one daemon and the next.

use std::time::Duration;

use http_body_util::BodyExt;
use hyper::body::Incoming;
use posse_api::LogEvent;
use tokio::time::sleep;

use crate::client::Client;
use crate::error::Error;

/// The pause before a new stream is requested after one has ended.
const AGAIN: Duration = Duration::from_millis(20);

pub(crate) struct EventStream {
    /// Has the connection of the stream. Dropping it would close that.
    client: Client,
    /// The next stream begins after this event. `None`: with new events.
    last: Option<i64>,
    body: Incoming,
    buffer: Vec<u8>,
}

impl EventStream {
    pub(crate) fn new(client: Client, last: Option<i64>, body: Incoming) -> Self {
        Self { client, last, body, buffer: Vec::new() }
    }

    /// The next event; `None` when the connection has ended.
    pub(crate) async fn next(&mut self) -> Option<LogEvent> {
        loop {
            while let Some(end) = self.buffer.windows(2).position(|pair| pair == b"\n\n") {
                let block: Vec<u8> = self.buffer.drain(..end + 2).collect();
                if let Some(event) = parse(&block) {
                    self.last = self.last.map(|last| event.seq.unwrap_or(last));
                    return Some(event);
                }
            }
            let frame = self.body.frame().await?.ok()?;
            if let Ok(data) = frame.into_data() {
                self.buffer.extend_from_slice(&data);
            }
        }
    }

    /// The next event like this; `None` when the connection has ended.
    pub(crate) async fn matching(&mut self, wanted: impl Fn(&LogEvent) -> bool) -> Option<LogEvent> {
        while let Some(event) = self.next().await {
            if wanted(&event) {
                return Some(event);
            }
        }
        None
    }

    /// Waits for an event like this. `None`: the daemon went away, and the stream is that of the next one. Unless it began
    /// after a certain event, events were missed.
    pub(crate) async fn until(&mut self, wanted: impl Fn(&LogEvent) -> bool) -> Result<Option<LogEvent>, Error> {
        let event = self.matching(wanted).await;
        if event.is_none() {
            self.reconnect().await?;
        }
        Ok(event)
    }

    /// Continues with the stream of the next daemon.
    pub(crate) async fn reconnect(&mut self) -> Result<(), Error> {
        sleep(AGAIN).await;
        *self = self.client.listen(self.last).await?;
        Ok(())
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
