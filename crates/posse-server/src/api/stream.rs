//! A terminal live, over a WebSocket: a picture first, then its bytes as they come; keys the other way.

use axum::extract::rejection::QueryRejection;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{Message, Utf8Bytes, WebSocket, WebSocketUpgrade};
use axum::extract::{Query, State};
use axum::response::Response;
use bytes::{BufMut, Bytes, BytesMut};
use posse_core::ids::WriterId;
use posse_term::wire::MAX_INPUT;

use super::params::Id;
use super::types::{self, StreamMessage, StreamQuery, StreamRequest};
use super::{ApiError, App, terminals};
use crate::pump::{Command, Event, Handle, Input, Origin};
use crate::watch::{Item, Start};

/// Follow a terminal live
///
/// A WebSocket; see docs/api.md for what is said on it.
#[utoipa::path(get, path = "/terminals/{id}/stream", tag = "terminals", params(("id" = String, Path), StreamQuery),
    responses((status = 101, description = "A WebSocket from here on"), (status = "default", description = "Refused", body = types::Problem)))]
pub(super) async fn stream(
    State(app): State<App>,
    Id(id): Id,
    query: Result<Query<StreamQuery>, QueryRejection>,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, ApiError> {
    let Query(query) = query?;
    let pump = terminals::find(&app, id).await?;
    let upgrade = upgrade.map_err(|_| ApiError::NotAWebSocket)?;
    let upgrade = upgrade.max_message_size(MAX_INPUT + 8);
    Ok(upgrade.on_upgrade(move |socket| async move {
        let writer = WriterId(query.writer.unwrap_or_else(crate::random).max(1));
        let mut from = query.from;
        let mut socket = socket;
        // A watcher that fell behind is let go by the pump; it begins anew with a picture.
        while let End::FellBehind = follow(&mut socket, &pump, writer, from).await {
            from = None;
        }
    }))
}

enum End {
    Closed,
    FellBehind,
}

async fn follow(socket: &mut WebSocket, pump: &Handle, writer: WriterId, from: Option<u64>) -> End {
    let Some(mut start) = pump.ask(|reply| Command::Watch { from, reply }).await else { return End::Closed };
    let watcher = start.watcher;
    let end = converse(socket, pump, writer, &mut start).await;
    pump.send(Event::Command(Command::Unwatch(watcher)));
    end.unwrap_or(End::Closed)
}

/// `Err` when the socket is gone.
async fn converse(
    socket: &mut WebSocket,
    pump: &Handle,
    writer: WriterId,
    start: &mut Start,
) -> Result<End, axum::Error> {
    let begin = StreamMessage::Start { offset: start.offset, size: start.size, continued: start.continued };
    socket.send(text(&begin)).await?;
    socket.send(output(start.offset, &start.bytes)).await?;
    if let Some(exit) = start.exit {
        socket.send(text(&StreamMessage::Exited { exit })).await?;
    }
    loop {
        tokio::select! {
            item = start.items.recv() => match item {
                None => return Ok(End::FellBehind),
                Some(item) => socket.send(message(item)).await?,
            },
            received = socket.recv() => match received.transpose()? {
                None | Some(Message::Close(_)) => return Ok(End::Closed),
                Some(Message::Binary(bytes)) => {
                    let Some((sequence, keys)) = bytes.split_first_chunk::<8>() else { return Ok(End::Closed) };
                    let sequence = u64::from_be_bytes(*sequence);
                    let origin = Origin::Watcher(start.watcher);
                    pump.send(Event::Command(Command::Input(Input { writer, sequence, bytes: keys.to_vec(), expect: None, origin })));
                }
                Some(Message::Text(words)) => match serde_json::from_str(&words) {
                    Ok(StreamRequest::View { size }) => {
                        pump.send(Event::Command(Command::View { watcher: start.watcher, size }));
                    }
                    Err(_) => return Ok(End::Closed),
                },
                Some(Message::Ping(_) | Message::Pong(_)) => {}
            },
        }
    }
}

fn message(item: Item) -> Message {
    match item {
        Item::Output { offset, bytes } => output(offset, &bytes),
        Item::Resized { offset, size } => text(&StreamMessage::Resized { offset, size }),
        Item::InputDone { sequence } => text(&StreamMessage::InputDone { sequence }),
        Item::InputRefused { sequence, why } => text(&StreamMessage::InputRefused { sequence, why: why.into() }),
        Item::Exited { exit } => text(&StreamMessage::Exited { exit }),
    }
}

fn text(message: &StreamMessage) -> Message {
    Message::Text(Utf8Bytes::from(serde_json::to_string(message).unwrap_or_default()))
}

fn output(offset: u64, bytes: &[u8]) -> Message {
    let mut framed = BytesMut::with_capacity(8 + bytes.len());
    framed.put_u64(offset);
    framed.put_slice(bytes);
    Message::Binary(Bytes::from(framed))
}
