//! The HTTP API: wire types and routes, a face over the hub's and the pumps' commands. No logic of its own.

pub(crate) mod agents;
mod audit;
mod auto;
pub(crate) mod door;
mod error;
mod events;
pub(crate) mod listen;
mod params;
mod plans;
mod requester;
mod runs;
mod sessions;
mod settings;
mod stream;
pub(crate) mod terminals;
mod usage;

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::time::Duration;

use axum::Extension;
use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::routing::{get, post};
use axum::serve::Listener;
use posse_api::{EventBody, LogEvent};
use posse_core::ids::TerminalId;
use posse_files::providers::{ProviderError, Providers};
use posse_term::paths::Paths;
use posse_term::wire::MAX_INPUT;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{broadcast, mpsc, oneshot};
use tower_http::timeout::RequestBodyTimeoutLayer;
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::auto::Autos;
use crate::disk;
use crate::first_starts::FirstStarts;
use crate::hub::{HubCommand, HubEvent};
use crate::notify::Notifier;
use crate::plans::Plans;
use crate::runs::Runs;
use crate::versions::Versions;
use door::Door;
pub(crate) use error::{ApiError, ApiProblem, hint};
use listen::{Defaults, Listeners};
use requester::{OverTcp, PeerProcess};

/// The longest request body: the longest input, with every byte of it written as `\u00XX`, and the rest of the request.
const MAX_BODY: usize = 6 * MAX_INPUT + (64 << 10);

/// How long a body may take between two of its parts.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// How long to wait before a keeper that did not answer is asked again: there is no event for that.
const KEEPER_RETRY: Duration = Duration::from_secs(1);

/// What every handler may use.
#[derive(Clone)]
pub(crate) struct App {
    pub(crate) hub: mpsc::UnboundedSender<HubEvent>,
    pub(crate) events: broadcast::Sender<Arc<LogEvent>>,
    /// The number of the newest event that was published.
    pub(crate) newest: Arc<AtomicI64>,
    pub(crate) paths: Paths,
    pub(crate) listeners: Listeners,
    pub(crate) providers: Arc<Providers>,
    pub(crate) versions: Arc<Versions>,
    pub(crate) first_starts: Arc<FirstStarts>,
    pub(crate) notifier: Notifier,
    pub(crate) runs: Runs,
    pub(crate) plans: Plans,
    pub(crate) autos: Autos,
}

impl App {
    /// A provider as the user's files have it now.
    pub(crate) async fn provider(&self, id: &str) -> Result<Arc<posse_agents::Provider>, ProviderError> {
        let (providers, id) = (self.providers.clone(), id.to_owned());
        disk::run(move |disk| disk.provider(&providers, &id)).await
    }

    /// What terminals get whose maker says nothing about it.
    pub(crate) fn defaults(&self) -> Defaults {
        self.listeners.defaults()
    }

    /// Publishes an event that is not kept.
    pub(crate) fn publish(&self, body: EventBody) {
        let at = jiff::Timestamp::now();
        let _ = self.events.send(Arc::new(LogEvent { seq: None, at, terminal: None, offset: None, body }));
    }

    /// Ends a terminal with every process in it. If the keeper does not answer, it is asked again until it does.
    pub(crate) async fn end_terminal(&self, id: TerminalId, grace_ms: u32) {
        while let Ok(Err(silent)) = self.ask(|reply| HubCommand::Delete { id, grace_ms, reply }).await {
            tracing::warn!("terminal {id} is not ended yet: {silent}");
            tokio::time::sleep(KEEPER_RETRY).await;
        }
    }

    /// Asks the hub and waits for its answer.
    pub(crate) async fn ask<T>(&self, command: impl FnOnce(oneshot::Sender<T>) -> HubCommand) -> Result<T, ApiError> {
        let (reply, answer) = oneshot::channel();
        let _ = self.hub.send(HubEvent::Command(command(reply)));
        answer.await.map_err(|_| ApiError::Stopping)
    }
}

/// What everyone may ask who may come in.
fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::with_openapi(Description::openapi())
        .routes(routes!(terminals::health))
        .routes(routes!(agents::list))
        .routes(routes!(sessions::list, sessions::create))
        .routes(routes!(sessions::show, sessions::delete))
        .routes(routes!(sessions::terminals_of, sessions::add_terminal))
        .routes(routes!(terminals::list, terminals::create))
        .routes(routes!(terminals::show, terminals::delete))
        .routes(routes!(terminals::screen))
        .routes(routes!(terminals::working_directory))
        .routes(routes!(terminals::input))
        .routes(routes!(terminals::question))
        .routes(routes!(terminals::approve))
        .routes(routes!(terminals::answer_question))
        .routes(routes!(terminals::deny))
        .routes(routes!(terminals::explain))
        .routes(routes!(terminals::output))
        .routes(routes!(terminals::resize))
        .routes(routes!(terminals::exit))
        .routes(routes!(runs::list, runs::create))
        .routes(routes!(runs::show))
        .routes(routes!(runs::stop))
        .routes(routes!(runs::resume))
        .routes(routes!(runs::journal))
        .routes(routes!(plans::list, plans::begin))
        .routes(routes!(plans::usage))
        .routes(routes!(plans::answer))
        .routes(routes!(plans::retry))
        .routes(routes!(plans::show))
        .routes(routes!(plans::stop))
        .routes(routes!(plans::journal))
        .routes(routes!(plans::clean))
        .routes(routes!(plans::session))
        .routes(routes!(plans::session_log))
        .routes(routes!(auto::list, auto::begin))
        .routes(routes!(auto::show))
        .routes(routes!(auto::go_on))
        .routes(routes!(auto::stop))
        .routes(routes!(auto::retry))
        .routes(routes!(auto::why))
        .routes(routes!(auto::journal))
        .routes(routes!(auto::session))
        .routes(routes!(auto::session_log))
        .routes(routes!(stream::stream))
        .routes(routes!(events::follow))
        .routes(routes!(events::log))
        .routes(routes!(audit::entries))
        .routes(routes!(audit::verdict))
        .routes(routes!(usage::usage))
}

#[derive(OpenApi)]
#[openapi(info(title = "posse", description = "Terminals that survive, and what runs in them. See docs/api.md."))]
struct Description;

/// The API, described. Committed as docs/openapi.json.
pub fn description() -> String {
    let mut text = routes().into_openapi().to_pretty_json().unwrap_or_default();
    text.push('\n');
    text
}

/// For the private socket: everything, and what only the owner may do.
fn private_router(app: App) -> Router {
    let (router, _) = routes().split_for_parts();
    let router = router
        .route("/stop", post(terminals::stop))
        .route("/requester", get(requester::show))
        .route("/terminals/{id}/hook", post(terminals::hook))
        .route("/listen", post(listen::listen));
    let router = router.route("/settings", post(settings::change));
    finish(router, app)
}

/// For TCP: behind a door.
fn public_router(app: App, door: Door) -> Router {
    let (router, _) = routes().split_for_parts();
    finish(router, app).layer(Extension(OverTcp)).layer(axum::middleware::from_fn_with_state(door, door::check))
}

fn finish(router: Router<App>, app: App) -> Router {
    router
        .fallback(error::no_such_route)
        .method_not_allowed_fallback(error::no_such_method)
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .layer(RequestBodyTimeoutLayer::new(BODY_TIMEOUT))
        .with_state(app)
}

/// Serves the private socket until `stop` resolves.
pub(crate) async fn serve(
    listener: UnixListener,
    app: App,
    stop: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let service = private_router(app).into_make_service_with_connect_info::<PeerProcess>();
    axum::serve(OwnerOnly(listener), service).with_graceful_shutdown(stop).await
}

/// Accepts connections of the user who runs the daemon, and of nobody else. The socket's directory is
/// private already; this is the second lock on the door.
struct OwnerOnly(UnixListener);

impl Listener for OwnerOnly {
    type Io = UnixStream;
    type Addr = PeerProcess;

    async fn accept(&mut self) -> (UnixStream, PeerProcess) {
        loop {
            let (stream, _) = Listener::accept(&mut self.0).await;
            let owner = rustix::process::getuid().as_raw();
            if stream.peer_cred().is_ok_and(|peer| peer.uid() == owner) {
                let peer = PeerProcess::of(&stream);
                return (stream, peer);
            }
        }
    }

    fn local_addr(&self) -> io::Result<PeerProcess> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
