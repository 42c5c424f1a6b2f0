//! Scripted models: a server on loopback that speaks to agents as their vendors' servers do and plays a
//! [`Scenario`].
//!
//! One server speaks all protocols, selected by path: Anthropic's Messages, OpenAI's Responses and chat completions. It
//! knows nothing about terminals. When the value is dropped, replies end and no new ones begin.

mod anthropic;
mod chat;
mod conversation;
mod http;
mod log;
mod openai;
mod play;
mod reply;
mod request;
mod shared;
mod tools;

use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::scenario::{Scenario, ScenarioPlayer};
use crate::watched::Watched;
use play::ReplyPlayer;
use reply::Protocol;
use shared::ServerState;

pub use log::{ModelEvent, ModelLog, ModelLogEntry};
pub use request::{ModelRequest, ModelToolResult, RequestRole};

/// The longest time an agent may not read; then its connection is closed.
const WRITE_PATIENCE: Duration = Duration::from_secs(10);

/// Serves until it is dropped.
pub struct ModelServer {
    address: SocketAddr,
    shared: Arc<Watched<ServerState>>,
    listening: Option<JoinHandle<()>>,
}

impl ModelServer {
    /// Starts a server with one scenario, or with several that differ in their openings.
    ///
    /// # Errors
    /// If a scenario has a step that only an agent understands, or the server cannot listen.
    pub fn start(scenarios: impl IntoIterator<Item = Scenario>) -> std::io::Result<Self> {
        let scenarios = checked(scenarios)?;
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Watched::new(ServerState::new(conversation::ConversationScript::new(scenarios))));
        let listening = Some(std::thread::spawn({
            let shared = shared.clone();
            move || listen(&listener, &shared)
        }));
        Ok(Self { address, shared, listening })
    }

    /// Starts a server with the text of one scenario, for tests. Panics if the scenario is wrong.
    #[track_caller]
    pub fn script(scenario: &str) -> Self {
        let scenario = Scenario::parse(scenario).unwrap_or_else(|error| panic!("cannot {error}"));
        Self::start([scenario]).unwrap_or_else(|error| panic!("no model server: {error}"))
    }

    /// Adds scenarios to a running server: paths in a scenario may depend on a home, and the home on the server.
    ///
    /// # Errors
    /// If a scenario has a step that only an agent understands.
    pub fn add(&self, scenarios: impl IntoIterator<Item = Scenario>) -> std::io::Result<()> {
        let scenarios = checked(scenarios)?;
        self.shared.change(|state| state.script.add(scenarios));
        Ok(())
    }

    /// The base URL for Claude Code.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The base URL for the other agents.
    pub fn openai_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// The zero of the log's clock.
    pub fn started(&self) -> Instant {
        self.shared.look().started
    }

    pub fn log(&self) -> ModelLog {
        self.shared.look().log.clone()
    }

    /// Opens a gate for good.
    pub fn release(&self, gate: &str) {
        self.shared.change(|state| {
            state.open_gates.insert(gate.to_owned());
            state.record(None, ModelEvent::Released { gate: gate.to_owned() });
        });
    }

    /// Waits until the log fits, and returns whether it did in time. `fits` must not call the server.
    pub fn comes_within(&self, patience: Duration, fits: impl Fn(&ModelLog) -> bool) -> bool {
        self.shared.wait(patience, |state| fits(&state.log))
    }

    /// Waits until the log fits and returns it, for tests. Panics if it never fits.
    #[track_caller]
    pub fn wait_for(&self, fits: impl Fn(&ModelLog) -> bool, patience: Duration) -> ModelLog {
        let came = self.comes_within(patience, fits);
        let log = self.log();
        assert!(came, "it never came; what the model server saw:\n{log}");
        log
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.shared.change(|state| state.stopping = true);
        // A connection ends the wait of the listener.
        let _ = TcpStream::connect(self.address);
        if let Some(listening) = self.listening.take() {
            let _ = listening.join();
        }
    }
}

fn listen(listener: &TcpListener, shared: &Arc<Watched<ServerState>>) {
    for stream in listener.incoming().flatten() {
        if shared.look().stopping {
            return;
        }
        let shared = shared.clone();
        std::thread::spawn(move || {
            let request = shared.change(ServerState::next_request);
            // An agent may close its connection in the middle of a request.
            let _ = serve(&shared, &stream, request);
            shared.change(|state| state.unanswered.remove(&request));
            let _ = stream.shutdown(Shutdown::Both);
        });
    }
}

fn serve(shared: &Arc<Watched<ServerState>>, stream: &TcpStream, request: u64) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(WRITE_PATIENCE))?;
    let Some(asked) = http::read(stream)? else { return Ok(()) };
    let protocol = Protocol::of_path(&asked.path).filter(|_| asked.method == "POST");
    let body = protocol.and_then(|_| serde_json::from_slice::<Value>(&asked.body).ok());
    let (Some(protocol), Some(body)) = (protocol, body) else {
        let (status, body) = other(&asked, protocol.is_some());
        let event = ModelEvent::Other { method: asked.method.clone(), path: asked.path.clone(), status };
        shared.record(request, event);
        return http::answer(stream, status, &[], &body.to_string(), asked.method != "HEAD");
    };
    let mut query = (protocol.read)(&body, asked.header("x-claude-code-agent-id"));
    let turn = shared.change(|state| {
        let (role, turn) = state.script.take(&query);
        query.role = role;
        state.record(Some(request), ModelEvent::Opened(Box::new(query.clone())));
        turn
    });
    // During a pause nothing is written, so only a read notices that the agent closed the connection.
    let (watching, connection) = (shared.clone(), stream.try_clone()?);
    std::thread::spawn(move || {
        if !matches!(connection.peek(&mut [0]), Ok(1)) {
            watching.lose(request);
        }
    });
    ReplyPlayer::new(shared, stream, protocol, &query, request).play(turn);
    Ok(())
}

fn checked(scenarios: impl IntoIterator<Item = Scenario>) -> std::io::Result<Vec<Scenario>> {
    let check = |scenario: Scenario| scenario.check_for(ScenarioPlayer::Model).map(|()| scenario);
    scenarios.into_iter().map(check).collect::<Result<_, _>>().map_err(std::io::Error::other)
}

/// Answers requests that are not for a model.
fn other(request: &http::HttpRequest, unreadable: bool) -> (u16, Value) {
    if unreadable {
        return (400, json!({ "error": { "type": "invalid_request_error", "message": "no JSON" } }));
    }
    match request.method.as_str() {
        "HEAD" => (200, json!({})),
        "GET" if request.path.ends_with("/models") => (200, json!({ "object": "list", "data": [], "has_more": false })),
        "POST" if request.path.ends_with("/count_tokens") => (200, json!({ "input_tokens": 100 })),
        // Telemetry.
        "POST" => (200, json!({})),
        _ => (404, json!({ "error": { "type": "not_found_error", "message": "not here" } })),
    }
}
