//! Scripted models: a server on loopback that speaks to agents as their vendors' servers do, and says what a
//! [`Scenario`] tells it to.
//!
//! One server speaks all protocols at once, by path: Anthropic's Messages, OpenAI's Responses and chat completions.
//! It knows nothing about terminals and starts nothing but threads of its own; they are gone when the value is.
//!
//! [`agents`] makes homes in which real agents talk to such a server, without an account and without asking anything
//! first. Nothing is started there either.

pub mod agents;
mod anthropic;
mod chat;
mod http;
pub mod log;
mod openai;
mod play;
mod request;
pub mod scenario;
mod script;
mod shared;
mod tools;
mod voice;

use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

pub use log::{Entry, Event, Log, Opened, Role};
pub use request::ToolResult;
pub use scenario::{Failure, Scenario, Step, ToolCall, Turn};
use shared::Shared;
use voice::Protocol;

/// An agent that reads nothing for so long is stopped; its answer is then lost.
const WRITE_PATIENCE: Duration = Duration::from_secs(10);

/// Serves until it is dropped.
pub struct ModelServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    listening: Option<JoinHandle<()>>,
}

impl ModelServer {
    /// One conversation, or several that are told apart by their openings.
    pub fn start(scenarios: impl IntoIterator<Item = Scenario>) -> std::io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared::new(script::Script::new(scenarios.into_iter().collect())));
        let listening = Some(std::thread::spawn({
            let shared = shared.clone();
            move || listen(&listener, &shared)
        }));
        Ok(Self { address, shared, listening })
    }

    /// A server with one conversation, from the text of a scenario. For tests: what is wrong with it is a panic.
    #[track_caller]
    pub fn script(scenario: &str) -> Self {
        let scenario = Scenario::parse(scenario).unwrap_or_else(|error| panic!("cannot {error}"));
        Self::start([scenario]).unwrap_or_else(|error| panic!("no model server: {error}"))
    }

    /// More conversations. What an agent is to write may depend on its home, and a home on the server.
    pub fn add(&self, scenarios: impl IntoIterator<Item = Scenario>) {
        let scenarios = scenarios.into_iter().collect();
        self.shared.change(|state| state.script.add(scenarios));
    }

    /// What Claude Code calls its base URL.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What the others call theirs.
    pub fn openai_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// When the log's clock stood at zero.
    pub fn started(&self) -> Instant {
        self.shared.started()
    }

    /// What happened so far.
    pub fn log(&self) -> Log {
        self.shared.log()
    }

    /// Opens a gate, for good: answers that wait there go on, later ones do not wait.
    pub fn release(&self, gate: &str) {
        self.shared.change(|state| {
            state.open_gates.insert(gate.to_owned());
            state.record(None, Event::Released { gate: gate.to_owned() });
        });
    }

    /// Waits until the log fits; the answer is whether it did in time. `fits` looks at the log it is given and not
    /// at the server.
    pub fn comes_within(&self, patience: Duration, fits: impl Fn(&Log) -> bool) -> bool {
        self.shared.wait(patience, |state| fits(&state.log))
    }

    /// Waits until the log fits, and gives it. For tests: it has to.
    #[track_caller]
    pub fn wait_for(&self, fits: impl Fn(&Log) -> bool, patience: Duration) -> Log {
        let came = self.comes_within(patience, fits);
        let log = self.log();
        assert!(came, "it never came; what the model server saw:\n{log}");
        log
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.shared.change(|state| {
            state.stopping = true;
            for connection in state.connections.values() {
                let _ = connection.shutdown(Shutdown::Both);
            }
        });
        // Nothing else ends a listener's wait.
        let _ = TcpStream::connect(self.address);
        if let Some(listening) = self.listening.take() {
            let _ = listening.join();
        }
    }
}

fn listen(listener: &TcpListener, shared: &Arc<Shared>) {
    // Every thread ends before this scope does.
    std::thread::scope(|scope| {
        for stream in listener.incoming().flatten() {
            let request = shared.change(|state| {
                let request = state.next_request();
                let clone = stream.try_clone().ok().filter(|_| !state.stopping)?;
                state.connections.insert(request, clone);
                Some(request)
            });
            let Some(request) = request else { return };
            scope.spawn(move || {
                // An agent that goes away in the middle of its request is of no interest.
                let _ = serve(shared, &stream, request);
                let _ = stream.shutdown(Shutdown::Both);
                shared.forget(request);
            });
        }
    });
}

fn serve(shared: &Shared, stream: &TcpStream, request: u64) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(WRITE_PATIENCE))?;
    let Some(asked) = http::read(stream)? else { return Ok(()) };
    let protocol = Protocol::of_path(&asked.path).filter(|_| asked.method == "POST");
    let body = protocol.and_then(|_| serde_json::from_slice::<Value>(&asked.body).ok());
    let (Some(protocol), Some(body)) = (protocol, body) else {
        let (status, body) = other(&asked, protocol.is_some());
        shared.change(|state| {
            let (method, path) = (asked.method.clone(), asked.path.clone());
            state.record(Some(request), Event::Other { method, path, status });
        });
        return http::answer(stream, status, &[], &body.to_string(), asked.method != "HEAD");
    };
    let asked = protocol.read(&body, asked.header("x-claude-code-agent-id"));
    let (role, turn) = shared.change(|state| {
        let (role, turn) = state.script.take(&asked);
        state.record(Some(request), Event::Opened(Box::new(Opened::new(role.clone(), &asked))));
        (role, turn)
    });
    std::thread::scope(|scope| {
        // While an answer pauses nothing is written, and only reading shows that nobody listens any more.
        scope.spawn(|| {
            if !matches!(stream.peek(&mut [0]), Ok(1)) {
                shared.lose(request);
            }
        });
        play::play(shared, stream, (protocol, &asked), request, (role, turn));
        shared.forget(request);
        let _ = stream.shutdown(Shutdown::Both);
    });
    Ok(())
}

/// What agents ask a server besides answers.
fn other(request: &http::Request, unreadable: bool) -> (u16, Value) {
    if unreadable {
        return (400, json!({ "error": { "type": "invalid_request_error", "message": "no JSON" } }));
    }
    match request.method.as_str() {
        "HEAD" => (200, json!({})),
        "GET" if request.path.ends_with("/models") => (200, json!({ "object": "list", "data": [], "has_more": false })),
        "POST" if request.path.ends_with("/count_tokens") => (200, json!({ "input_tokens": 100 })),
        // Reports of all kinds.
        "POST" => (200, json!({})),
        _ => (404, json!({ "error": { "type": "not_found_error", "message": "not here" } })),
    }
}
