//! Listening on TCP: off until somebody asks for it, on this machine only, and again after a restart.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use axum::extract::State;
use axum::{Extension, Json};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use posse_api::ProblemKind;
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::{AbortHandle, JoinHandle, JoinSet};
use tower::util::MapRequest;

use super::params::Params;
use super::requester::Requester;
use super::{Answer, ApiError, App, door, public_router};
use crate::disk;
use crate::hub::HubCommand;
use crate::run::journal::Failed;

/// The time in which a client must have sent the head of its request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// The most clients that may be connected at once. Each costs memory, and none of ours needs hundreds.
const CONNECTIONS: usize = 256;
/// The most connections that have not sent an admissible request yet. Beyond that the oldest one is closed, so connections
/// that say nothing never keep a client out.
const STRANGERS: usize = 256;
/// The setting that is remembered.
pub(crate) const SETTING: &str = "listen";

/// The environment and directory of terminals whose creator gave none: those of `posse serve --listen`. Never stored.
#[derive(Clone, Debug)]
pub(crate) struct Defaults {
    pub(crate) environment: BTreeMap<String, String>,
    pub(crate) directory: PathBuf,
}

impl Default for Defaults {
    fn default() -> Self {
        let variable = |name| std::env::var(name).ok();
        let names = ["PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ", "SHELL", "POSSE_HOME"];
        let environment: BTreeMap<_, _> =
            names.iter().filter_map(|name| Some(((*name).to_owned(), variable(name)?))).collect();
        let directory = environment.get("HOME").map_or_else(|| "/".into(), PathBuf::from);
        Self { environment, directory }
    }
}

/// A remembered address to listen on.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Place {
    pub(crate) address: SocketAddr,
    pub(crate) auth: bool,
}

/// The TCP listener there is, if any.
#[derive(Clone, Default)]
pub(crate) struct Listeners(Arc<Mutex<Listening>>);

#[derive(Default)]
struct Listening {
    defaults: Option<Defaults>,
    task: Option<JoinHandle<()>>,
    address: Option<SocketAddr>,
    /// Dropping it ends the streams that came in here.
    closing: Option<watch::Sender<()>>,
}

/// One of the `CONNECTIONS`, held as long as any clone exists: a stream outlives its connection's task.
#[derive(Clone)]
pub(super) struct Seat(#[allow(dead_code)] Arc<OwnedSemaphorePermit>);

/// One TCP connection: a stranger until its first admissible request, then the holder of a seat.
#[derive(Clone)]
pub(crate) struct Visitor(Arc<VisitorState>);

struct VisitorState {
    number: u64,
    strangers: Arc<Mutex<Strangers>>,
    seats: Arc<Semaphore>,
    seat: OnceLock<Seat>,
}

/// Connections without a seat, oldest first, and how to close them.
type Strangers = BTreeMap<u64, AbortHandle>;

impl Visitor {
    /// The seat of this connection, taken with its first admissible request.
    pub(super) fn admit(&self) -> Result<Seat, ApiError> {
        if let Some(seat) = self.0.seat.get() {
            return Ok(seat.clone());
        }
        let permit = self.0.seats.clone().try_acquire_owned().map_err(|_| {
            let detail = format!("{CONNECTIONS} clients are connected, which is the limit");
            ApiError::new(ProblemKind::TooManyConnections, detail).with_hint("close some connections and try again")
        })?;
        self.0.leave_strangers();
        Ok(self.0.seat.get_or_init(|| Seat(Arc::new(permit))).clone())
    }
}

impl VisitorState {
    fn leave_strangers(&self) {
        self.strangers.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.number);
    }
}

impl Drop for VisitorState {
    fn drop(&mut self) {
        self.leave_strangers();
    }
}

/// Resolves when the listener a request came through is closed. Streams outlive the connection's own task.
#[derive(Clone)]
pub(super) struct Closed(watch::Receiver<()>);

impl Closed {
    pub(super) async fn wait(mut self) {
        while self.0.changed().await.is_ok() {}
    }
}

impl Listeners {
    pub(super) fn defaults(&self) -> Defaults {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).defaults.clone().unwrap_or_default()
    }

    fn is_at(&self, address: SocketAddr) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).address == Some(address)
    }

    /// Ends listening and every connection that came of it, and returns when the port is free.
    async fn close(&self) {
        let task = {
            let mut listening = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            listening.closing = None;
            listening.address = None;
            listening.task.take()
        };
        if let Some(task) = task {
            task.abort();
            let _ = task.await;
        }
    }
}

/// Begins, moves or ends listening on TCP. Only on the private socket.
pub(super) async fn listen(
    State(app): State<App>,
    requester: Requester,
    Params(body): Params<posse_api::Listen>,
) -> Answer<posse_api::Listening> {
    requester.may(&app, "open the daemon to other programs").await?;
    let directory = super::terminals::directory(&body.working_directory).await?;
    let place = match body.address {
        Some(address) if !door::is_allowed(address) => {
            let message =
                format!("{address} can be reached by others; listen on 127.0.0.1 and use `ssh -L` from elsewhere");
            return Err(ApiError::invalid(message));
        }
        address => address.map(|address| Place { address, auth: body.auth }),
    };
    let answer = match &place {
        Some(place) => {
            let address = open(&app, place).await.map_err(|error| {
                ApiError::new(ProblemKind::Listen, format!("cannot listen on {}: {error}", place.address))
                    .with_hint("choose another port with --listen 127.0.0.1:PORT")
            })?;
            posse_api::Listening { address: Some(address), token_file: place.auth.then(|| app.paths.token()) }
        }
        None => {
            app.listeners.close().await;
            posse_api::Listening { address: None, token_file: None }
        }
    };
    let defaults = Defaults { environment: body.environment, directory };
    app.listeners.0.lock().unwrap_or_else(PoisonError::into_inner).defaults = Some(defaults);
    // With the port that was chosen, so that clients find it there again.
    let place = answer.address.map(|address| Place { address, auth: body.auth });
    let remembered = place.map(|place| serde_json::to_string(&place)).transpose().map_err(Failed::from)?;
    let set = app.ask(|reply| HubCommand::Set { name: SETTING, value: remembered, reply }).await?;
    set.map_err(|refusal| {
        let mut error = ApiError::from(refusal);
        error.0.detail.insert_str(0, "this holds until the daemon restarts, but cannot be remembered: ");
        error
    })?;
    Ok(Json(answer))
}

/// Listens, instead of wherever was listened before. The address with its port, which may have been chosen now.
pub(crate) async fn open(app: &App, place: &Place) -> std::io::Result<SocketAddr> {
    let token = if place.auth { Some(disk::at(app.paths.token(), door::token).await?) } else { None };
    let listener = match TcpListener::bind(place.address).await {
        Ok(listener) => {
            app.listeners.close().await;
            listener
        }
        // Held by ourselves, perhaps; if it is not, what works goes on working.
        Err(error) if error.kind() == ErrorKind::AddrInUse && app.listeners.is_at(place.address) => {
            app.listeners.close().await;
            TcpListener::bind(place.address).await?
        }
        Err(error) => return Err(error),
    };
    let address = listener.local_addr()?;
    let (closing, closed) = watch::channel(());
    let router = public_router(app.clone(), door::Door::new(token)).layer(Extension(Closed(closed)));
    let task = tokio::spawn(accept(listener, router));
    {
        let mut listening = app.listeners.0.lock().unwrap_or_else(PoisonError::into_inner);
        (listening.task, listening.address, listening.closing) = (Some(task), Some(address), Some(closing));
    }
    let auth = if place.auth {
        "with a token"
    } else {
        "WITHOUT ANY AUTHENTICATION: every program on this machine may use it"
    };
    tracing::warn!("listening on http://{address} {auth}");
    Ok(address)
}

async fn accept(listener: TcpListener, router: axum::Router) {
    let seats = Arc::new(Semaphore::new(CONNECTIONS));
    let strangers = Arc::new(Mutex::new(Strangers::new()));
    // They end with this task.
    let mut connections = JoinSet::new();
    for number in 0.. {
        while connections.try_join_next().is_some() {}
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                // Out of descriptors, most likely. Trying again at once would only burn the machine.
                tracing::warn!("cannot accept a connection: {error}");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let _ = stream.set_nodelay(true);
        let state = VisitorState { number, strangers: strangers.clone(), seats: seats.clone(), seat: OnceLock::new() };
        let visitor = Visitor(Arc::new(state));
        let visited = MapRequest::new(router.clone(), move |mut request: hyper::Request<_>| {
            request.extensions_mut().insert(visitor.clone());
            request
        });
        let service = TowerToHyperService::new(visited);
        let connection = connections.spawn(async move {
            let mut http = http1::Builder::new();
            http.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT);
            let _ = http.serve_connection(TokioIo::new(stream), service).with_upgrades().await;
        });
        let oldest = {
            let mut strangers = strangers.lock().unwrap_or_else(PoisonError::into_inner);
            strangers.insert(number, connection);
            if strangers.len() > STRANGERS { strangers.pop_first() } else { None }
        };
        if let Some((_, oldest)) = oldest {
            oldest.abort();
        }
        // A client that sends its request with the connection is admitted before the next connection is accepted.
        tokio::task::yield_now().await;
    }
}
