//! `posse hook`: run by agents, at the moments they tell us about. Must be quick and must never get in their way:
//! it prints nothing and always succeeds.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use posse_core::signal::listener::TOO_LARGE;
use serde_json::{Map, Value};

use crate::client;
use crate::error::Exit;

/// A daemon that takes longer is busy with something else; the screen will tell.
const PATIENCE: Duration = Duration::from_secs(1);
/// The largest payload that is read. Payloads contain prompts and results of tools too.
const MOST: u64 = 8 << 20;
/// The fields that are passed on. The rest is the conversation. The input of a tool is compared with the
/// question on the screen.
const KEPT: [&str; 8] =
    ["hook_event_name", "tool_name", INPUT, "background_tasks", "error", "error_type", "notification_type", "source"];
const INPUT: &str = "tool_input";
/// The largest input that is passed on, as JSON. Of a larger one the daemon hears that it is too large.
const LARGEST_INPUT: usize = 1 << 20;

pub(crate) fn run() -> Exit {
    // An agent cannot do anything about a failure.
    let _ = tell();
    Exit::Ok
}

fn tell() -> Option<()> {
    let terminal = std::env::var("POSSE_TERMINAL_ID").ok()?;
    let mut payload = Vec::new();
    std::io::stdin().take(MOST).read_to_end(&mut payload).ok()?;
    let mut payload: Map<String, Value> = serde_json::from_slice(&payload).ok()?;
    payload.retain(|name, _| KEPT.contains(&name.as_str()));
    if let Some(input) = payload.get_mut(INPUT).filter(|input| input.to_string().len() > LARGEST_INPUT) {
        *input = TOO_LARGE.into();
    }
    let body = Value::Object(payload).to_string();
    let mut stream = UnixStream::connect(client::paths().ok()?.daemon_socket()).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    stream.set_write_timeout(Some(PATIENCE)).ok()?;
    let head = format!(
        "POST /terminals/{terminal}/hook HTTP/1.1\r\nhost: posse\r\ncontent-type: application/json\r\n\
         content-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).ok()?;
    stream.write_all(body.as_bytes()).ok()?;
    // Answered means that it counts; until then the agent waits for us.
    stream.read_exact(&mut [0; 12]).ok()
}
