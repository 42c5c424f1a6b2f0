//! PLACEHOLDER so that the server compiles while the backend is being written; overwrite this file.
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use tokio::sync::mpsc;

use crate::client::Link;
use crate::emulator::HistoryLimit;
use crate::wire::Event;

pub enum Socket {
    Private(PathBuf),
    User(Option<String>),
}
pub struct Settings {
    pub socket: Socket,
    pub state: PathBuf,
    pub shim: Vec<OsString>,
    pub history: HistoryLimit,
}
#[derive(Debug, thiserror::Error)]
#[error("tmux is not supported yet")]
pub struct TmuxError;
pub async fn start(_: Settings) -> Result<(Link, mpsc::UnboundedReceiver<Event>), TmuxError> {
    Err(TmuxError)
}
pub fn run_shim(_: &Path) -> io::Result<i32> {
    Ok(1)
}
