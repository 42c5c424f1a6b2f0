//! The HTTP API: wire types and routes, a face over the hub's and the pumps' commands. No logic of its own.

pub(crate) mod agents;
mod audit;
mod daemon;
pub(crate) mod door;
mod error;
mod events;
pub(crate) mod listen;
mod loops;
mod params;
mod requester;
mod runs;
mod sessions;
mod stream;
pub(crate) mod terminals;

use std::future::Future;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::time::Duration;

use axum::extract::{DefaultBodyLimit, State};
use axum::http::StatusCode;
use axum::routing::{MethodRouter, get, post};
use axum::serve::Listener;
use axum::{Extension, Json, Router};
use posse_api::{EventBody, LogEvent, ProblemKind, SHELL, Success, Terminal};
use posse_core::ids::{Name, RunId, TerminalId};
use posse_files::providers::{Providers, UserFileError};
use posse_term::paths::Paths;
use posse_term::wire::MAX_INPUT;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{broadcast, mpsc, oneshot};
use tower_http::timeout::RequestBodyTimeoutLayer;
use utoipa::OpenApi;
use utoipa::openapi::{Content, Ref, RefOr, Response, ResponseBuilder};

use crate::auto::Autos;
use crate::disk::{self, Disk};
use crate::first_starts::FirstStarts;
use crate::hub::{GRACE_MS, HubCommand, HubEvent, SessionChoice, TerminalSnapshot};
use crate::loops::Loops;
use crate::notify::Notifier;
use crate::plans::Plans;
use crate::run::{LaunchContext, RunServices, SupervisorError, lock};
use crate::store::{self, Change, StoreRefusal};
use crate::versions::Versions;
use crate::watched_files::WatchedFiles;
use door::Door;
pub(crate) use error::{ApiError, ApiProblem, hint};
use listen::Listeners;
use params::{Id, Params, SessionName};
use requester::{OverTcp, PeerProcess, Requester};

/// The longest request body: the longest input, with every byte of it written as `\u00XX`, and the rest of the request.
const MAX_BODY: usize = 6 * MAX_INPUT + (64 << 10);

/// The maximum pause between two parts of a body.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// The maximum number of events that wait for a follower. A follower that is further behind reads the log.
const EVENTS_WAITING: usize = 1024;

/// The pause before a silent keeper is asked again: no event reports that it answers.
const KEEPER_RETRY: Duration = Duration::from_secs(1);

/// The answer to a request: a value, or why there is none.
type Answer<T> = Result<Json<T>, ApiError>;

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
    pub(crate) loops: Loops,
    pub(crate) plans: Plans,
    pub(crate) autos: Autos,
}

impl App {
    /// `newest` is the number of the newest event in the database.
    pub(crate) fn new(
        hub: mpsc::UnboundedSender<HubEvent>,
        paths: Paths,
        files: WatchedFiles,
        executable: PathBuf,
        newest: i64,
    ) -> Self {
        let services = RunServices::new(files, paths.database(), executable);
        Self {
            hub,
            events: broadcast::channel(EVENTS_WAITING).0,
            newest: Arc::new(AtomicI64::new(newest)),
            listeners: Listeners::default(),
            providers: Arc::new(Providers::new(paths.providers())),
            versions: Arc::default(),
            first_starts: Arc::default(),
            notifier: Notifier::default(),
            loops: Loops::new(services.clone(), paths.home.clone()),
            plans: Plans::new(services.clone(), paths.plans()),
            autos: Autos::new(services, paths.autos()),
            paths,
        }
    }

    /// A provider as the user's files have it now.
    pub(crate) async fn provider(&self, id: &str) -> Result<Arc<posse_agents::Provider>, UserFileError> {
        let (providers, id) = (self.providers.clone(), id.to_owned());
        disk::run(move |disk| providers.load(disk, &id)).await
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

    /// Stores a setting, or removes it.
    async fn set(&self, name: &'static str, value: Option<String>) -> Result<Result<(), StoreRefusal>, ApiError> {
        let events = vec![EventBody::SettingChanged { name: name.into(), value: value.clone() }];
        let change = Box::new(Change::Setting(name, value));
        self.ask(|reply| HubCommand::Commit { change, events, reply }).await
    }

    /// Asks the hub and waits for its answer.
    pub(crate) async fn ask<T>(&self, command: impl FnOnce(oneshot::Sender<T>) -> HubCommand) -> Result<T, ApiError> {
        let (reply, answer) = oneshot::channel();
        let _ = self.hub.send(HubEvent::Command(command(reply)));
        answer.await.map_err(|_| ApiError::stopping())
    }
}

#[cfg(test)]
impl App {
    /// An app with this home, whose hub is the test.
    pub(crate) fn played(home: &std::path::Path) -> (Self, mpsc::UnboundedReceiver<HubEvent>) {
        let (hub, messages) = mpsc::unbounded_channel();
        let home = home.to_owned();
        let paths = Paths { home: home.clone(), runtime: home.clone(), config: home.clone() };
        (App::new(hub, paths, WatchedFiles::start(), home.join("posse"), 0), messages)
    }
}

/// Makes the router and the description of the API from one table. Only `description` uses the latter, so the daemon
/// neither builds nor carries it.
macro_rules! api {
    ($($path:literal => $($method:ident $module:ident::$handler:ident),+;)*) => {
        /// The routes for every client that is admitted.
        fn routes() -> Router<App> {
            Router::new()$(.route($path, MethodRouter::new()$(.$method($module::$handler))+))*
        }

        #[derive(OpenApi)]
        #[openapi(
            info(title = "posse", description = "Terminals that survive, and what runs in them. See docs/api.md."),
            paths($($($module::$handler),+),*),
            components(schemas(posse_api::Problem))
        )]
        struct Description;

        #[cfg(test)]
        const ROUTES: &[(&str, &str)] = &[$($(($path, stringify!($method))),+),*];
    };
}

api! {
    "/health" => get daemon::health;
    "/sessions" => get sessions::list, post sessions::create;
    "/sessions/{name}" => get sessions::show, delete sessions::delete;
    "/sessions/{name}/terminals" => get sessions::terminals_of, post sessions::add_terminal;
    "/terminals" => get terminals::list, post terminals::create;
    "/terminals/{id}" => get terminals::show, delete terminals::delete;
    "/terminals/{id}/screen" => get terminals::screen;
    "/terminals/{id}/working-directory" => get terminals::working_directory;
    "/terminals/{id}/input" => post terminals::input;
    "/terminals/{id}/question" => get terminals::question;
    "/terminals/{id}/approve" => post terminals::approve;
    "/terminals/{id}/answer" => post terminals::answer_question;
    "/terminals/{id}/deny" => post terminals::deny;
    "/terminals/{id}/explain" => get terminals::explain;
    "/terminals/{id}/output" => get terminals::output;
    "/terminals/{id}/resize" => post terminals::resize;
    "/terminals/{id}/exit" => post terminals::exit;
    "/runs" => get runs::list, post runs::create;
    "/runs/answer" => post runs::answer;
    "/runs/clean" => post runs::clean;
    "/runs/retry" => post runs::retry;
    "/runs/usage" => get runs::usage;
    "/runs/why" => get runs::why;
    "/runs/{id}" => get runs::show, delete runs::drop_run;
    "/runs/{id}/stop" => post runs::stop;
    "/runs/{id}/resume" => post runs::resume;
    "/runs/{id}/journal" => get runs::journal;
    "/runs/{id}/sessions/{session}" => get runs::session;
    "/runs/{id}/sessions/{session}/log" => get runs::session_log;
    "/terminals/{id}/stream" => get stream::stream;
    "/events" => get events::follow;
    "/log" => get events::log;
    "/audit" => get audit::entries;
    "/audit/verify" => get audit::verdict;
}

/// Describes the API. Committed as docs/openapi.json.
pub fn description() -> serde_json::Result<String> {
    let mut api = Description::openapi();
    let problem = Content::new(Some(Ref::from_schema_name("Problem")));
    let refused: RefOr<Response> =
        ResponseBuilder::new().description("Refused").content("application/json", problem).build().into();
    for path in api.paths.paths.values_mut() {
        for operation in [&mut path.get, &mut path.post, &mut path.delete].into_iter().flatten() {
            operation.responses.responses.insert("default".into(), refused.clone());
        }
    }
    Ok(api.to_pretty_json()? + "\n")
}

/// For the private socket: everything, and what only the owner may do.
fn private_router(app: App) -> Router {
    let router = routes()
        .route("/stop", post(daemon::stop))
        .route("/requester", get(requester::show))
        .route("/terminals/{id}/hook", post(terminals::hook))
        .route("/listen", post(listen::listen))
        .route("/settings", post(daemon::change_settings));
    finish(router, app)
}

/// For TCP: behind a door.
fn public_router(app: App, door: Door) -> Router {
    finish(routes(), app).layer(Extension(OverTcp)).layer(axum::middleware::from_fn_with_state(door, door::check))
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

/// Accepts connections only from the user who runs the daemon. The socket's directory is private already; this is a
/// second check.
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn handlers_describe_the_routes_they_have() {
        let description: serde_json::Value = serde_json::from_str(&description().unwrap()).unwrap();
        let paths = description["paths"].as_object().unwrap();
        let described = paths.iter().flat_map(|(path, methods)| {
            methods.as_object().unwrap().keys().map(move |method| (path.as_str(), method.as_str()))
        });
        assert_eq!(described.collect::<BTreeSet<_>>(), ROUTES.iter().copied().collect());
    }
}
