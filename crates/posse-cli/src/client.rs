//! Talking to the daemon, over the same API as everyone. Starts it when it is not there, replaces it when it is
//! older than this program, and reconnects when it dies: requests that may be repeated are repeated.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::SendRequest;
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use posse_api::{DatabaseCondition, Health, Problem, ProblemKind, Stop, Stopped, Success, Terminal};
use posse_term::client::{self as keeper, KeeperError};
use posse_term::lock;
use posse_term::paths::Paths;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::net::UnixStream;
use tokio::time::{Instant, sleep};

use crate::daemon;
use crate::error::Error;
use crate::event_stream::EventStream;
use crate::ui::Ui;

/// The time a daemon has to come back before a request is given up.
const PATIENCE: Duration = Duration::from_secs(15);
/// The time the keeper has to bring back a daemon that crashed: six times its longest pause, because a daemon that crashes again
/// at once is missed, and a busy machine starts it slowly.
const COMES_BACK: Duration = Duration::from_secs(30);
/// The time its socket may be gone. A crash leaves the socket, so the daemon was stopped; a newer one may be about to
/// replace it.
const REPLACED: Duration = Duration::from_secs(1);
/// First and longest pause between two looks whether it is back.
const FIRST_LOOK: Duration = Duration::from_millis(5);
const LAST_LOOK: Duration = Duration::from_millis(250);

/// Safety of sending a request again if its answer was lost.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// It only asks, or carries a number that makes it count once.
    Safe,
    Never,
}

pub(crate) struct Client {
    paths: Paths,
    executable: PathBuf,
    absence: Absence,
    connection: Option<SendRequest<Full<Bytes>>>,
    problem: Option<String>,
}

/// The reaction to a missing daemon.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Absence {
    Start,
    /// Only the keeper brings it back: a daemon that was stopped stays stopped.
    Wait,
}

/// Returns whether a version is older. An older daemon is replaced; a newer one is used, as the API only grows.
fn is_older(theirs: &str, ours: &str) -> bool {
    let numbers =
        |version: &str| -> Vec<u64> { version.split(['.', '-', '+']).map_while(|n| n.parse().ok()).collect() };
    numbers(theirs) < numbers(ours)
}

pub(crate) fn paths() -> Result<Paths, Error> {
    Ok(Paths::resolve(|name: &str| -> Option<OsString> { std::env::var_os(name) })?)
}

pub(crate) fn executable() -> Result<PathBuf, Error> {
    std::env::current_exe().map_err(Error::io("cannot find this program's own file"))
}

fn refused(error: std::io::Error) -> Error {
    Error::io("cannot use the daemon's socket")(error)
}

impl Client {
    /// Connects, starting the daemon if it is not running.
    pub(crate) async fn connect() -> Result<Self, Error> {
        let paths = paths()?;
        paths.prepare()?;
        Self::connect_to(paths).await
    }

    pub(crate) async fn connect_to(paths: Paths) -> Result<Self, Error> {
        let mut client = Self::new(paths)?;
        client.open().await?;
        Ok(client)
    }

    /// Connects if the daemon is running; `None` if it is not.
    pub(crate) async fn connect_if_running() -> Result<Option<Self>, Error> {
        let paths = paths()?;
        match std::fs::symlink_metadata(paths.daemon_socket()) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            _ => paths.prepare()?,
        }
        let mut client = Self::new(paths)?;
        match client.dial().await {
            Ok(()) => Ok(Some(client)),
            Err(error) if error.kind() == ErrorKind::PermissionDenied => Err(refused(error)),
            Err(_) => Ok(None),
        }
    }

    fn new(paths: Paths) -> Result<Self, Error> {
        Ok(Self { paths, executable: executable()?, absence: Absence::Start, connection: None, problem: None })
    }

    /// From now on a daemon that crashes is waited for, and one that was stopped is not started again.
    pub(crate) fn only_running(&mut self) {
        self.absence = Absence::Wait;
    }

    /// A problem that the daemon reported when this client connected.
    pub(crate) fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }

    /// The stream of events, after `last` if given, on a connection of its own.
    pub(crate) async fn listen(&self, last: Option<i64>) -> Result<EventStream, Error> {
        let give_up = Instant::now() + PATIENCE;
        loop {
            let mut client = Self { absence: self.absence, ..Self::new(self.paths.clone())? };
            client.open().await?;
            match client.events(last).await {
                Err(Error::Lost(_)) if Instant::now() < give_up => sleep(FIRST_LOOK).await,
                other => return other,
            }
        }
    }

    /// Connects. If the daemon dies meanwhile, connects to the next one.
    async fn open(&mut self) -> Result<(), Error> {
        let give_up = Instant::now() + if self.absence == Absence::Start { PATIENCE } else { COMES_BACK };
        let (mut pause, mut gone_since) = (FIRST_LOOK, None);
        loop {
            match self.greet().await {
                Err(Error::Lost(_)) if Instant::now() < give_up => {}
                Err(Error::Lost(_)) if self.absence == Absence::Wait => return Err(Error::Stopped),
                other => return other,
            }
            if self.absence == Absence::Wait {
                if self.paths.daemon_socket().exists() {
                    gone_since = None;
                } else if gone_since.get_or_insert_with(Instant::now).elapsed() >= REPLACED {
                    return Err(Error::Stopped);
                }
                sleep(pause).await;
                pause = (pause * 2).min(LAST_LOOK);
            }
        }
    }

    async fn greet(&mut self) -> Result<(), Error> {
        match self.dial().await {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::PermissionDenied => return Err(refused(error)),
            Err(error) if self.absence == Absence::Wait => return Err(Error::Lost(error.to_string())),
            Err(_) => {
                start_daemon(&self.paths, &self.executable).await?;
                self.dial().await.map_err(|error| Error::Lost(error.to_string()))?;
            }
        }
        let health: Health = self.exchange(Method::GET, "/health", &()).await?;
        self.problem = health.problem;
        if is_older(&health.version, posse_api::VERSION) && self.absence == Absence::Start {
            self.stop(false).await?;
            return Err(Error::Lost("an older daemon was stopped".into()));
        }
        Ok(())
    }

    async fn dial(&mut self) -> std::io::Result<()> {
        self.connection = None;
        let stream = self.raw_stream().await?;
        let (sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(std::io::Error::other)?;
        tokio::spawn(connection);
        self.connection = Some(sender);
        Ok(())
    }

    pub(crate) async fn get<T: DeserializeOwned>(&mut self, path: &str) -> Result<T, Error> {
        self.request(Method::GET, path, &(), Repeat::Safe).await
    }

    pub(crate) async fn post<B: Serialize, T: DeserializeOwned>(
        &mut self,
        path: &str,
        body: &B,
        repeat: Repeat,
    ) -> Result<T, Error> {
        self.request(Method::POST, path, body, repeat).await
    }

    pub(crate) async fn delete<T: DeserializeOwned>(&mut self, path: &str) -> Result<T, Error> {
        self.request(Method::DELETE, path, &(), Repeat::Safe).await
    }

    async fn request<B: Serialize, T: DeserializeOwned>(
        &mut self,
        method: Method,
        path: &str,
        body: &B,
        repeat: Repeat,
    ) -> Result<T, Error> {
        let give_up = Instant::now() + PATIENCE;
        loop {
            match self.exchange(method.clone(), path, body).await {
                Err(Error::Lost(_)) if repeat == Repeat::Safe && Instant::now() < give_up => self.open().await?,
                other => return other,
            }
        }
    }

    async fn exchange<B: Serialize, T: DeserializeOwned>(
        &mut self,
        method: Method,
        path: &str,
        body: &B,
    ) -> Result<T, Error> {
        let response = self.send(method, path, body, None).await?;
        let status = response.status();
        let body = response.into_body().collect().await.map_err(|error| Error::Lost(error.to_string()))?.to_bytes();
        if status.is_success() {
            return serde_json::from_slice(&body).map_err(|error| Error::Nonsense(error.to_string()));
        }
        match serde_json::from_slice::<Problem>(&body) {
            // A daemon on its way out will be followed by another.
            Ok(problem) if problem.kind == ProblemKind::Stopping => Err(Error::Lost(problem.detail)),
            Ok(problem) => Err(Error::Refused(problem)),
            Err(_) => Err(Error::Nonsense(format!("{status}: {}", String::from_utf8_lossy(&body)))),
        }
    }

    async fn send<B: Serialize>(
        &mut self,
        method: Method,
        path: &str,
        body: &B,
        last_event: Option<i64>,
    ) -> Result<Response<Incoming>, Error> {
        let has_body = method == Method::POST;
        let mut request = Request::builder().method(method).uri(path).header("host", "posse");
        if let Some(last) = last_event {
            request = request.header("last-event-id", last);
        }
        let body = if has_body {
            request = request.header("content-type", "application/json");
            serde_json::to_vec(body).map_err(|error| Error::Nonsense(error.to_string()))?
        } else {
            Vec::new()
        };
        let request = request.body(Full::new(Bytes::from(body))).map_err(|error| Error::Nonsense(error.to_string()))?;
        let Some(connection) = &mut self.connection else { return Err(Error::Lost("not connected".into())) };
        connection.send_request(request).await.map_err(|error| Error::Lost(error.to_string()))
    }

    /// Stops the daemon, with all terminals or without, and returns when its process has ended; the keeper's too, if
    /// nothing is left for it to keep.
    pub(crate) async fn stop(&mut self, all: bool) -> Result<Stopped, Error> {
        let stopped: Stopped = self.exchange(Method::POST, "/stop", &Stop { all: Some(all) }).await?;
        let mut locks = vec![self.paths.daemon_lock()];
        if stopped.running.is_empty() && stopped.problem.is_none() && stopped.unsaved.is_none() {
            locks.push(self.paths.keeper_lock());
        }
        let waited = tokio::task::spawn_blocking(move || locks.iter().try_for_each(|lock| lock::wait_until_free(lock)));
        let waited = waited.await.unwrap_or_else(|error| Err(std::io::Error::other(error)));
        waited.map_err(Error::io("cannot see the daemon leave"))?;
        Ok(stopped)
    }

    async fn events(mut self, last: Option<i64>) -> Result<EventStream, Error> {
        let response = self.send(Method::GET, "/events", &(), last).await?;
        if !response.status().is_success() {
            return Err(Error::Lost(format!("no events: {}", response.status())));
        }
        Ok(EventStream::new(self, last, response.into_body()))
    }

    /// A connection to the socket and nothing more, for what is not plain HTTP.
    pub(crate) async fn raw_stream(&self) -> std::io::Result<UnixStream> {
        let stream = UnixStream::connect(self.paths.daemon_socket()).await?;
        keeper::require_own(&stream)?;
        Ok(stream)
    }

    /// Posts a request whose answer only confirms success, and prints that.
    pub(crate) async fn act(
        &mut self,
        path: &str,
        body: &impl Serialize,
        repeat: Repeat,
        ui: &Ui,
    ) -> Result<(), Error> {
        let done: Success = self.post(path, body, repeat).await?;
        ui.done(&done, String::new);
        Ok(())
    }

    /// Connects, and finds a terminal.
    pub(crate) async fn with_terminal(name: &str) -> Result<(Self, Terminal), Error> {
        let mut client = Self::connect().await?;
        let terminal = client.find(name).await?;
        Ok((client, terminal))
    }

    /// Finds a terminal by its id, the beginning of its id, or its name.
    pub(crate) async fn find(&mut self, name: &str) -> Result<Terminal, Error> {
        let terminals: Vec<Terminal> = self.get("/terminals").await?;
        choose(terminals, name)
    }
}

/// Ensures that a daemon runs. If a damaged database prevents its start, the error names it.
pub(crate) async fn start_daemon(paths: &Paths, executable: &Path) -> Result<u32, Error> {
    let failed = match keeper::start_daemon(paths, executable).await {
        Err(KeeperError::Start(why)) => KeeperError::Start(why),
        other => return Ok(other?),
    };
    let path = paths.database();
    let inspected = tokio::task::spawn_blocking(move || ((daemon::functions().inspect_database)(&path), path)).await;
    match inspected {
        Ok((DatabaseCondition::Damaged(why), path)) => {
            let message = format!("the daemon does not start: the database {} is damaged: {why}", path.display());
            let hint = "`posse doctor --repair` sets it aside and goes on with a new one; terminals go on meanwhile, and \
                        `posse stop --all` ends them";
            Err(Error::new(ProblemKind::Database, message).with_hint(hint))
        }
        _ => Err(failed.into()),
    }
}

fn choose(terminals: Vec<Terminal>, name: &str) -> Result<Terminal, Error> {
    let exact = terminals.iter().position(|t| t.id.as_str() == name || t.name.as_str() == name);
    let mut terminals = terminals;
    if let Some(index) = exact {
        return Ok(terminals.swap_remove(index));
    }
    let mut fits: Vec<Terminal> =
        terminals.into_iter().filter(|t| !name.is_empty() && t.id.as_str().starts_with(name)).collect();
    match fits.len() {
        1 => Ok(fits.swap_remove(0)),
        0 => Err(Error::no_terminal(name)),
        _ => {
            let fits: Vec<&str> = fits.iter().map(|t| t.id.as_str()).collect();
            let message = format!("{name:?} fits several terminals: {}", fits.join(", "));
            Err(Error::new(ProblemKind::Ambiguous, message).with_hint("give more of the id"))
        }
    }
}

/// A random number that identifies a writer: see `Input::writer`.
pub(crate) fn new_writer() -> u64 {
    let mut bytes = [0; 8];
    let _ = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    u64::from_ne_bytes(bytes).max(1)
}

/// A path that exists, without links.
pub(crate) fn real(path: &Path) -> Result<PathBuf, Error> {
    path.canonicalize().map_err(Error::io(path.display().to_string()))
}

/// A path as the API wants it.
pub(crate) fn absolute(path: &Path) -> Result<String, Error> {
    let path = std::path::absolute(path).map_err(Error::io(path.display().to_string()))?;
    path.into_os_string()
        .into_string()
        .map_err(|path| Error::usage(format!("the directory {} is not valid UTF-8, which posse needs", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_older_daemon_is_replaced() {
        assert!(!is_older("0.2.0", "0.2.0"));
        assert!(is_older("0.1.9", "0.2.0"));
        assert!(is_older("0.9.0", "0.10.0"), "numbers, not text");
        assert!(!is_older("0.3.0", "0.2.0"));
        assert!(is_older("nonsense", "0.2.0"));
    }
}
