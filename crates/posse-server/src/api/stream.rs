//! A terminal live, over a WebSocket: a picture first, then its bytes as they come; keys the other way.

use axum::extract::Query;
use axum::extract::rejection::QueryRejection;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket, WebSocketUpgrade, close_code};
use axum::response::Response;
use bytes::{BufMut, Bytes, BytesMut};
use posse_api::{StreamMessage, StreamQuery, StreamRequest};
use posse_core::ids::WriterId;
use posse_core::screen::Size;

use super::listen::{Closed, Visitor};
use super::*;
use crate::pump::{InputOrigin, PumpCommand, PumpEvent, PumpHandle, PumpInput};
use crate::watch::{Item, Start};

/// Follow a terminal live
///
/// A WebSocket; see docs/api.md for what is said on it.
#[utoipa::path(get, path = "/terminals/{id}/stream", tag = "terminals", params(("id" = String, Path), StreamQuery),
    responses((status = 101, description = "The connection becomes a WebSocket")))]
pub(super) async fn stream(
    State(app): State<App>,
    Id(id): Id<TerminalId>,
    requester: Requester,
    query: Result<Query<StreamQuery>, QueryRejection>,
    closed: Option<Extension<Closed>>,
    visitor: Option<Extension<Visitor>>,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, ApiError> {
    let Query(query) = query?;
    if query.writer == Some(0) {
        return Err(ApiError::invalid("writer 0 is the daemon itself"));
    }
    let pump = terminals::find(&app, id).await?;
    let upgrade =
        upgrade.map_err(|_| ApiError::new(ProblemKind::NotAWebSocket, "this is a WebSocket; connect to it as one"))?;
    let upgrade = upgrade.max_message_size(MAX_INPUT + 8);
    Ok(upgrade.on_upgrade(move |socket| async move {
        // Counts as connected until the end.
        let _visitor = visitor;
        let writer = WriterId(query.writer.unwrap_or_else(crate::random).max(1));
        let mut conversation = Conversation { socket, pump, writer, requester, app, attached: false, wanted: None };
        let through_a_door = async {
            match closed {
                Some(Extension(closed)) => closed.wait().await,
                None => std::future::pending().await,
            }
        };
        let code = tokio::select! {
            code = conversation.run(query.from) => code,
            () = through_a_door => Some(close_code::AWAY),
        };
        if let Some(code) = code {
            let frame = CloseFrame { code, reason: Utf8Bytes::default() };
            let _ = conversation.socket.send(Message::Close(Some(frame))).await;
        }
    }))
}

struct Conversation {
    socket: WebSocket,
    pump: PumpHandle,
    writer: WriterId,
    requester: Requester,
    app: App,
    /// The follower looks through a window.
    attached: bool,
    /// The size that the follower asks for.
    wanted: Option<Size>,
}

enum End {
    /// With this code; without one the socket is gone.
    Close(Option<u16>),
    FellBehind,
}

impl Conversation {
    async fn run(&mut self, mut from: Option<u64>) -> Option<u16> {
        loop {
            let start = self.pump.ask(|reply| PumpCommand::Watch { from, reply }).await;
            // Deleted meanwhile.
            let Some(mut start) = start else { return Some(close_code::AWAY) };
            if self.attached {
                self.pump.send(PumpEvent::Command(PumpCommand::View { watcher: start.watcher, size: self.wanted }));
            }
            let end = self.follow(&mut start).await;
            self.pump.send(PumpEvent::Command(PumpCommand::Unwatch(start.watcher)));
            match end {
                Ok(End::Close(code)) => return code,
                Err(_) => return None,
                // Let go by the pump; it begins anew with a picture.
                Ok(End::FellBehind) => from = None,
            }
        }
    }

    async fn follow(&mut self, start: &mut Start) -> Result<End, axum::Error> {
        let begin = StreamMessage::Start { offset: start.offset, size: start.size, continued: start.continued };
        self.socket.send(text(&begin)?).await?;
        self.socket.send(output(start.offset, &start.bytes)).await?;
        if let Some(exit) = start.exit {
            self.socket.send(text(&StreamMessage::Exited { exit })?).await?;
            return Ok(End::Close(Some(close_code::NORMAL)));
        }
        loop {
            tokio::select! {
                item = start.items.recv() => {
                    let Some(item) = item else { return Ok(End::FellBehind) };
                    let last = matches!(item, Item::Message(StreamMessage::Exited { .. }));
                    let message = match item {
                        Item::Output { offset, bytes } => output(offset, &bytes),
                        Item::Message(message) => text(&message)?,
                    };
                    self.socket.send(message).await?;
                    if last {
                        return Ok(End::Close(Some(close_code::NORMAL)));
                    }
                }
                received = self.socket.recv() => match received.transpose()? {
                    None => return Ok(End::Close(None)),
                    Some(Message::Close(_)) => return Ok(End::Close(Some(close_code::NORMAL))),
                    Some(received) => if let Some(code) = self.received(&received, start.watcher).await {
                        return Ok(End::Close(Some(code)));
                    },
                },
            }
        }
    }

    /// Handles a follower's message. Returns `Some` if the message is invalid.
    async fn received(&mut self, received: &Message, watcher: u64) -> Option<u16> {
        match received {
            Message::Binary(bytes) => {
                // Numbers start at 1: 0 has always been applied, and would be confirmed without being typed.
                let numbered = bytes.split_first_chunk::<8>().map(|(number, keys)| (u64::from_be_bytes(*number), keys));
                let Some((sequence @ 1.., keys)) = numbered else { return Some(close_code::POLICY) };
                let (writer, bytes, origin) = (self.writer, keys.to_vec(), InputOrigin::Watcher(watcher));
                let may_answer = self.requester.may_type(&self.app).await;
                let input = PumpInput { writer, sequence, bytes, expect: None, may_answer, origin };
                self.pump.send(PumpEvent::Command(PumpCommand::Input(input)));
                None
            }
            Message::Text(words) => match serde_json::from_str(words) {
                Ok(StreamRequest::View { size }) => {
                    self.attached = true;
                    self.wanted = size;
                    self.pump.send(PumpEvent::Command(PumpCommand::View { watcher, size }));
                    None
                }
                Err(_) => Some(close_code::UNSUPPORTED),
            },
            _ => None,
        }
    }
}

fn text(message: &StreamMessage) -> Result<Message, axum::Error> {
    serde_json::to_string(message).map(|text| Message::Text(text.into())).map_err(axum::Error::new)
}

fn output(offset: u64, bytes: &[u8]) -> Message {
    let mut framed = BytesMut::with_capacity(8 + bytes.len());
    framed.put_u64(offset);
    framed.put_slice(bytes);
    Message::Binary(Bytes::from(framed))
}
