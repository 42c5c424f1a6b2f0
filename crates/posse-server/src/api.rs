//! The HTTP API: wire types and routes, a face over the hub's and the pumps' commands. No logic of its own.

mod error;
mod events;
mod stream;
mod terminals;
pub mod types;

use std::future::Future;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::routing::{get, post};
use axum::serve::Listener;
use tokio::net::unix::SocketAddr;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{broadcast, mpsc, oneshot};

pub use error::ApiError;

use crate::hub::{Command, Message};
use crate::record::LogEvent;

/// The longest request body. Input is limited to 1 MiB, JSON may double it.
const MAX_BODY: usize = 4 << 20;

/// What every handler may use.
#[derive(Clone)]
pub(crate) struct App {
    pub(crate) hub: mpsc::UnboundedSender<Message>,
    pub(crate) events: broadcast::Sender<Arc<LogEvent>>,
    /// The number of the newest event that was published.
    pub(crate) newest: Arc<AtomicI64>,
    pub(crate) database: PathBuf,
}

impl App {
    /// Asks the hub and waits for its answer.
    pub(crate) async fn ask<T>(&self, command: impl FnOnce(oneshot::Sender<T>) -> Command) -> Result<T, ApiError> {
        let (reply, answer) = oneshot::channel();
        let _ = self.hub.send(Message::Command(command(reply)));
        answer.await.map_err(|_| ApiError::Stopping)
    }
}

fn router(app: App) -> Router {
    Router::new()
        .route("/health", get(terminals::health))
        .route("/terminals", get(terminals::list).post(terminals::create))
        .route("/terminals/{id}", get(terminals::show).delete(terminals::delete))
        .route("/terminals/{id}/screen", get(terminals::screen))
        .route("/terminals/{id}/input", post(terminals::input))
        .route("/terminals/{id}/output", get(terminals::output))
        .route("/terminals/{id}/resize", post(terminals::resize))
        .route("/terminals/{id}/exit", post(terminals::exit))
        .route("/terminals/{id}/stream", get(stream::stream))
        .route("/events", get(events::follow))
        .route("/log", get(events::log))
        .route("/stop", post(terminals::stop))
        .fallback(error::no_such_route)
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .with_state(app)
}

/// Serves until `stop` resolves.
pub(crate) async fn serve(
    listener: UnixListener,
    app: App,
    stop: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    axum::serve(OwnerOnly(listener), router(app)).with_graceful_shutdown(stop).await
}

/// Accepts connections of the user who runs the daemon, and of nobody else. The socket's directory is
/// private already; this is the second lock on the door.
struct OwnerOnly(UnixListener);

impl Listener for OwnerOnly {
    type Io = UnixStream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (UnixStream, SocketAddr) {
        loop {
            let (stream, address) = Listener::accept(&mut self.0).await;
            let owner = rustix::process::getuid().as_raw();
            if stream.peer_cred().is_ok_and(|peer| peer.uid() == owner) {
                return (stream, address);
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }
}
