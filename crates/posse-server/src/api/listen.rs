//! Listening on TCP: off by default, local only, and restored after a restart.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Mutex;

use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinHandle, JoinSet};
use tower::util::MapRequest;

use super::*;
use crate::run::journal::Failed;

/// The time in which a client must have sent the head of its request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// The most clients that may be connected at once. Each costs memory, and none of ours needs hundreds.
const CONNECTIONS: usize = 256;
/// Maximum number of connections that have not sent an admissible request. Beyond that the oldest is closed, so silent
/// connections never keep a client out.
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

/// A TCP connection. Its requests and their streams hold clones.
#[derive(Clone)]
pub(crate) struct Visitor(Arc<VisitorState>);

struct VisitorState {
    number: u64,
    open: Arc<OpenConnections>,
}

/// Connections by number, oldest first.
type OpenConnections = Mutex<BTreeMap<u64, TcpConnection>>;

struct TcpConnection {
    task: AbortHandle,
    /// The client has sent an admissible request.
    admitted: bool,
}

impl Visitor {
    /// Takes one of the `CONNECTIONS`, with the first admissible request.
    pub(super) fn admit(&self) -> Result<(), ApiError> {
        let mut open = lock(&self.0.open);
        let others = open.iter().filter(|(number, other)| **number != self.0.number && other.admitted).count();
        if others >= CONNECTIONS {
            let detail = format!("{CONNECTIONS} clients are connected, which is the limit");
            let full = ApiError::new(ProblemKind::TooManyConnections, detail);
            return Err(full.with_hint("close some connections and try again"));
        }
        if let Some(connection) = open.get_mut(&self.0.number) {
            connection.admitted = true;
        }
        Ok(())
    }
}

impl Drop for VisitorState {
    fn drop(&mut self) {
        lock(&self.open).remove(&self.number);
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
        lock(&self.0).defaults.clone().unwrap_or_default()
    }

    fn is_at(&self, address: SocketAddr) -> bool {
        lock(&self.0).address == Some(address)
    }

    /// Ends listening and every connection that came of it, and returns when the port is free.
    async fn close(&self) {
        let task = {
            let mut listening = lock(&self.0);
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
        // Everything else goes through ssh.
        Some(address) if !address.ip().is_loopback() => {
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
    lock(&app.listeners.0).defaults = Some(defaults);
    // With the port that was chosen, so that clients find it there again.
    let place = answer.address.map(|address| Place { address, auth: body.auth });
    let remembered = place.map(|place| serde_json::to_string(&place)).transpose().map_err(Failed::from)?;
    app.set(SETTING, remembered).await?.map_err(|refusal| {
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
        // Close our own listener only if it holds this address; otherwise it keeps working.
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
        let mut listening = lock(&app.listeners.0);
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
    let open = Arc::new(OpenConnections::default());
    // They end with this task.
    let mut tasks = JoinSet::new();
    for number in 0.. {
        while tasks.try_join_next().is_some() {}
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
        let visitor = Visitor(Arc::new(VisitorState { number, open: open.clone() }));
        let visited = MapRequest::new(router.clone(), move |mut request: hyper::Request<_>| {
            request.extensions_mut().insert(visitor.clone());
            request
        });
        let service = TowerToHyperService::new(visited);
        let task = tasks.spawn(async move {
            let mut http = http1::Builder::new();
            http.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT);
            let _ = http.serve_connection(TokioIo::new(stream), service).with_upgrades().await;
        });
        lock(&open).insert(number, TcpConnection { task, admitted: false });
        close_oldest_stranger(&open);
        // A client that sends its request with the connection is admitted before the next connection is accepted.
        tokio::task::yield_now().await;
    }
}

fn close_oldest_stranger(open: &OpenConnections) {
    let mut open = lock(open);
    let strangers: Vec<u64> = open.iter().filter(|(_, other)| !other.admitted).map(|(number, _)| *number).collect();
    if strangers.len() > STRANGERS
        && let Some(oldest) = open.remove(&strangers[0])
    {
        oldest.task.abort();
    }
}
