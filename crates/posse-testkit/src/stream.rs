//! A live terminal for tests: the WebSocket stream over a plain blocking socket.

use std::io;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use posse_api::{StreamMessage, StreamRequest};
use posse_core::ids::TerminalId;
use tokio_tungstenite::tungstenite::{self, Message, WebSocket};

use crate::http;

pub struct Stream {
    socket: WebSocket<UnixStream>,
}

#[derive(Debug)]
pub enum Item {
    Output { offset: u64, bytes: Vec<u8> },
    Word(StreamMessage),
}

impl Stream {
    pub fn open(client: &http::Client, id: TerminalId, from: Option<u64>, writer: u64) -> io::Result<Self> {
        let from = from.map(|from| format!("&from={from}")).unwrap_or_default();
        let url = format!("ws://posse/terminals/{id}/stream?writer={writer}{from}");
        let (socket, _) = tungstenite::client(url, client.connect()?).map_err(io::Error::other)?;
        Ok(Self { socket })
    }

    pub fn set_timeout(&self, timeout: Duration) -> io::Result<()> {
        self.socket.get_ref().set_read_timeout(Some(timeout))
    }

    pub fn next_item(&mut self) -> io::Result<Item> {
        loop {
            match self.socket.read().map_err(io::Error::other)? {
                Message::Binary(framed) => {
                    let (offset, bytes) =
                        framed.split_first_chunk::<8>().ok_or_else(|| io::Error::other("no offset"))?;
                    return Ok(Item::Output { offset: u64::from_be_bytes(*offset), bytes: bytes.to_vec() });
                }
                Message::Text(text) => return serde_json::from_str(&text).map(Item::Word).map_err(io::Error::other),
                Message::Close(_) => return Err(io::ErrorKind::ConnectionAborted.into()),
                _ => {}
            }
        }
    }

    pub fn send(&mut self, sequence: u64, keys: &[u8]) -> io::Result<()> {
        let framed = [&sequence.to_be_bytes(), keys].concat();
        self.socket.send(Message::Binary(framed.into())).map_err(io::Error::other)
    }

    pub fn ask(&mut self, request: &StreamRequest) -> io::Result<()> {
        self.socket.send(Message::Text(serde_json::to_string(request)?.into())).map_err(io::Error::other)
    }
}
