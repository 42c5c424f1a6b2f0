//! Terminals in tmux, in the keeper's own language: [`wire::Request`](crate::wire::Request)s in,
//! [`wire::Event`](crate::wire::Event)s out.
//!
//! One connection in control mode carries everything. A session of our own, the anchor, holds it; every window with a
//! terminal of ours is linked into that session, because tmux tells a connection only of the session it looks at.
//! Panes are known by their ids, so people may rename, move, split, resize and close what they like.
//!
//! Output is the program's own bytes with offsets, as from the keeper. Bytes that passed while nobody listened are
//! lost: tmux keeps a screen, not a stream. Then a `Checkpoint` with that screen stands in their place, at a higher
//! offset. `docs/decisions/0004-tmux.md` has the choices and the limits.
//!
//! [`start`] connects, `machine` decides, `client` does; `control` reads what tmux says and `command` writes what it is
//! told. In each pane runs a shim ([`run_shim`]), which starts the program and tells through `notes` and the `doorbell`
//! what became of it.

mod applied;
mod capture;
mod client;
mod command;
mod control;
mod doorbell;
mod layout;
mod machine;
mod notes;
mod shim;
mod survey;
mod terminal;
mod version;

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sha2::{Digest, Sha256};
use tokio::sync::mpsc;

use crate::client::Link;
use crate::emulator::HistoryLimit;
use crate::wire::Event;

use client::{Caller, Driver, Start};
use machine::{Config, Machine, Private};
use notes::Notes;
use version::Version;

pub use shim::run_shim;

/// How long tmux may take to say which version it is.
const VERSION_PATIENCE: Duration = Duration::from_secs(10);

/// Whose server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Socket {
    /// One of our own at this socket, without anybody's configuration. It is started when it is not there.
    Private(PathBuf),
    /// The user's, which must be running: by its name (`tmux -L`; the usual one is called `default`) and by the
    /// `TMUX_TMPDIR` it was started with, if any. Its global options are left alone.
    User { name: String, directory: Option<PathBuf> },
}

#[derive(Clone, Debug)]
pub struct Settings {
    pub socket: Socket,
    /// A private directory for what we and the shims write. It tells our terminals from those of others on the same
    /// server, so it must stay the same.
    pub state: PathBuf,
    /// How to start the shim; the file is added as the last argument.
    pub shim: Vec<OsString>,
    pub history: HistoryLimit,
}

#[derive(Debug, thiserror::Error)]
pub enum TmuxError {
    #[error("tmux is not installed: install tmux, or use the embedded backend")]
    Missing,
    #[error("tmux {0} is too old, 3.2 or newer is needed: update tmux, or use the embedded backend")]
    TooOld(String),
    #[error("`tmux -V` says {0:?}, which is no known version: install tmux 3.2 or newer, or use the embedded backend")]
    UnknownVersion(String),
    #[error("cannot start tmux: {0}")]
    Start(String),
    #[error("no tmux server called {0:?} is running: start it with `tmux -L {0}`, or use `--tmux-server private`")]
    NoServer(String),
    #[error("cannot use {path}: {error}")]
    State { path: PathBuf, error: io::Error },
}

/// Whether an earlier daemon has left anything there that must be taken over or ended: a server of our own that runs, or our
/// session on somebody else's. Nothing is started or changed.
pub async fn is_there(settings: &Settings) -> bool {
    match &settings.socket {
        Socket::Private(path) => tokio::net::UnixStream::connect(path).await.is_ok(),
        Socket::User { .. } => caller(OsStr::new("tmux"), settings).has_anchor().await,
    }
}

/// Connects to the server, starting it if need be. Ends when all links are dropped; terminals go on. The events end
/// when the server does, after every terminal was said to be lost.
pub async fn start(settings: Settings) -> Result<(Link, mpsc::UnboundedReceiver<Event>), TmuxError> {
    start_with(OsStr::new("tmux"), settings).await
}

/// The same with another tmux than the one in `PATH`.
pub async fn start_with(tmux: &OsStr, settings: Settings) -> Result<(Link, mpsc::UnboundedReceiver<Event>), TmuxError> {
    let state = |error| TmuxError::State { path: settings.state.clone(), error };
    let caller = caller(tmux, &settings);
    check_version(&caller).await?;

    let notes = Notes::open(&settings.state).map_err(state)?;
    let found = notes.found().map_err(state)?;
    // Started by us, a server of theirs would have our environment in all its windows, not theirs.
    let (private, first) = match &settings.socket {
        Socket::Private(_) => (true, Start::IfNeeded),
        Socket::User { .. } => (false, Start::Never),
    };
    let config = Config {
        anchor: caller.anchor.clone(),
        tag: tag(&settings.state),
        private: private.then(|| Private { terminal: terminal_name(Path::exists) }),
        shim: settings.shim,
        notes: notes.clone(),
        history: settings.history,
        seed: seed().map_err(|error| TmuxError::Start(error.to_string()))?,
    };
    let machine = Machine::new(config, found, std::time::Instant::now());
    let ((requests, queue), (events, told)) = (mpsc::unbounded_channel(), mpsc::unbounded_channel());
    let driver = Driver { caller, machine, notes, requests: queue, events };
    let ready = driver.begin(first).await.map_err(|why| match settings.socket {
        Socket::User { name, .. } if is_absence(&why) => TmuxError::NoServer(name),
        _ => TmuxError::Start(why),
    })?;
    tokio::spawn(ready.run());
    Ok((Link::new(requests), told))
}

fn caller(tmux: &OsStr, settings: &Settings) -> Caller {
    let (server, directory): (Vec<OsString>, _) = match &settings.socket {
        Socket::Private(path) => (vec!["-S".into(), path.into(), "-f".into(), "/dev/null".into()], None),
        Socket::User { name, directory } => (vec!["-L".into(), name.into()], directory.clone()),
    };
    // No session of ours begins like that.
    Caller { program: tmux.to_owned(), server, directory, anchor: format!("_posse_{}", tag(&settings.state)) }
}

/// What tells us from others on the same server.
fn tag(state: &Path) -> String {
    Sha256::digest(state.as_os_str().as_bytes()).iter().take(4).map(hexadecimal).collect()
}

/// Whether this is how tmux says that there is no server.
fn is_absence(words: &str) -> bool {
    words.starts_with("no server running") || words.starts_with("error connecting to")
}

async fn check_version(caller: &Caller) -> Result<(), TmuxError> {
    version_of(caller.command()).await.map(drop)
}

/// The version of the tmux in `PATH`, if it will do.
pub async fn installed() -> Result<String, TmuxError> {
    version_of(tokio::process::Command::new("tmux")).await
}

async fn version_of(mut tmux: tokio::process::Command) -> Result<String, TmuxError> {
    let asked = tmux.arg("-V").stdin(std::process::Stdio::null()).output();
    let said = match tokio::time::timeout(VERSION_PATIENCE, asked).await {
        Ok(Ok(output)) => String::from_utf8_lossy(&output.stdout).trim().to_owned(),
        Ok(Err(error)) if error.kind() == io::ErrorKind::NotFound => return Err(TmuxError::Missing),
        Ok(Err(error)) => return Err(TmuxError::Start(error.to_string())),
        Err(_) => return Err(TmuxError::Start("it does not even tell its version".into())),
    };
    match Version::parse(&said) {
        Some(version) if version.will_do() => Ok(version.to_string()),
        Some(version) => Err(TmuxError::TooOld(version.to_string())),
        None => Err(TmuxError::UnknownVersion(said)),
    }
}

/// What programs are told the terminal is: tmux's own description where it is installed.
fn terminal_name(exists: impl Fn(&Path) -> bool) -> &'static str {
    let directories =
        ["/etc/terminfo", "/lib/terminfo", "/usr/share/terminfo", "/usr/lib/terminfo", "/usr/local/share/terminfo"];
    let files = directories.iter().flat_map(|directory| {
        // By the first letter, or by its number where file systems ignore case.
        ["t", "74"].map(|letter| Path::new(directory).join(letter).join("tmux-256color"))
    });
    if files.into_iter().any(|file| exists(&file)) { "tmux-256color" } else { "screen-256color" }
}

fn seed() -> io::Result<[u8; 32]> {
    let mut seed = [0; 32];
    let mut filled = 0;
    while filled < seed.len() {
        filled += rustix::rand::getrandom(&mut seed[filled..], rustix::rand::GetRandomFlags::empty())?;
    }
    Ok(seed)
}

fn hexadecimal(byte: &u8) -> String {
    format!("{byte:02x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_nobody_described_is_not_claimed() {
        assert_eq!(terminal_name(|_| false), "screen-256color");
        assert_eq!(terminal_name(|path| path.starts_with("/lib/terminfo/t")), "tmux-256color");
        assert_eq!(terminal_name(|path| path.ends_with("74/tmux-256color")), "tmux-256color");
    }
}
