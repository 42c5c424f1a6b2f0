//! HTTP over TCP: for unchanged clients of the original API, and no others.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use posse_core::ids::TerminalId;
use posse_testkit::PATIENCE;
use posse_testkit::TestEnv;
use posse_testkit::files::when;
use serde_json::{Value, json};

use crate::env;

/// Listens on a free port, and returns the address.
pub(crate) fn listen(env: &TestEnv, more: &[&str]) -> SocketAddr {
    let arguments = ["serve", "--json", "--listen", "127.0.0.1:0"].iter().chain(more);
    let answer = env.run(arguments).json();
    answer["listening"]["address"].as_str().unwrap().parse().unwrap()
}

/// A request written by hand, so that nothing tidies it up on the way.
fn raw(address: SocketAddr, request: &str) -> (u16, Value) {
    let mut answer = Vec::new();
    let _ = asking(address, request).read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    (status, serde_json::from_str(body).unwrap_or(Value::Null))
}

/// As a client of the original API asks: everything in the query, nothing in the body.
pub(crate) struct OriginalClient(pub(crate) SocketAddr);

impl OriginalClient {
    pub(crate) fn call(&self, method: &str, path: &str, query: &[(&str, &str)]) -> (u16, Value) {
        let encode = |text: &str| -> String {
            let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.~".contains(&b);
            text.bytes().map(|b| if plain(b) { (b as char).to_string() } else { format!("%{b:02X}") }).collect()
        };
        let query: Vec<String> = query.iter().map(|(name, value)| format!("{name}={}", encode(value))).collect();
        let path = if query.is_empty() { path.to_owned() } else { format!("{path}?{}", query.join("&")) };
        raw(self.0, &format!("{method} {path} HTTP/1.1\r\nHost: localhost:9889\r\nConnection: close\r\n\r\n"))
    }

    #[track_caller]
    pub(crate) fn ok(&self, method: &str, path: &str, query: &[(&str, &str)]) -> Value {
        let (status, body) = self.call(method, path, query);
        assert!(status == 200 || status == 201, "{method} {path} {query:?}: {status} {body}");
        body
    }
}

#[test]
fn a_client_of_the_original_api_works_unchanged() {
    let env = env();
    let client = OriginalClient(listen(&env, &["--no-auth"]));
    assert_eq!(client.ok("GET", "/health", &[])["service"], "posse");
    let work = env.work().to_string_lossy().into_owned();
    let create =
        [("provider", "shell"), ("agent_profile", "developer"), ("session_name", "team"), ("working_directory", &work)];
    let first = client.ok("POST", "/sessions", &create);
    assert_eq!((&first["session_name"], &first["agent_profile"]), (&json!("posse-team"), &json!("developer")));
    assert!(first["name"].as_str().unwrap().starts_with("developer-"));
    assert_eq!(client.call("POST", "/sessions", &create).0, 400, "S-171: the name is taken");
    let more = [("provider", "shell"), ("agent_profile", "reviewer")];
    for _ in 0..4 {
        client.ok("POST", "/sessions/posse-team/terminals", &more);
    }
    assert_eq!(client.call("POST", "/sessions/posse-nobody/terminals", &more).0, 404);
    assert_eq!(client.call("POST", "/sessions", &[("provider", "nonsense"), ("agent_profile", "x")]).0, 400);
    assert_eq!(client.call("POST", "/sessions", &[("agent_profile", "x")]).0, 422);

    let terminals = client.ok("GET", "/sessions/posse-team/terminals", &[]);
    assert_eq!(terminals.as_array().unwrap().len(), 5);
    assert_eq!(
        client.ok("GET", "/sessions", &[]),
        json!([{"id": "posse-team", "name": "posse-team", "status": "detached"}])
    );
    assert_eq!(client.ok("GET", "/sessions/posse-team", &[])["terminals"].as_array().unwrap().len(), 5);
    for terminal in terminals.as_array().unwrap() {
        let path = format!("/terminals/{}", terminal["id"].as_str().unwrap());
        assert_eq!(
            client.ok("GET", &format!("{path}/working-directory"), &[])["working_directory"].as_str(),
            terminal["working_directory"].as_str()
        );
        // Five words that no query string survives by luck.
        client.ok("POST", &format!("{path}/input"), &[("message", "echo \"a+b & c=d; é\" $((6 * 7))")]);
        when("the answer of the shell", || {
            let full = client.ok("GET", &format!("{path}/output"), &[("mode", "full")]);
            full["output"].as_str()?.contains("a+b & c=d; é 42").then_some(())
        });
        let last = client.ok("GET", &format!("{path}/output"), &[("mode", "last")]);
        assert!(last["output"].as_str().unwrap().starts_with("a+b & c=d; é 42"), "{last}");
        let tail = client.ok("GET", &format!("{path}/output"), &[("mode", "tail"), ("lines", "2")]);
        assert!(tail["output"].as_str().unwrap().lines().count() <= 2, "{tail}");
        assert_eq!(client.ok("GET", &path, &[])["status"], "processing");
        client.ok("POST", &format!("{path}/exit"), &[]);
        when("its end", || (!client.ok("GET", &path, &[])["exit"].is_null()).then_some(()));
        let (status, body) = client.call("POST", &format!("{path}/input"), &[("message", "x")]);
        assert_eq!(status, 409, "{body}");
    }
    let gone = terminals[0]["id"].as_str().unwrap();
    assert_eq!(client.ok("DELETE", &format!("/terminals/{gone}"), &[])["success"], true);
    assert_eq!(client.ok("DELETE", &format!("/terminals/{gone}"), &[])["success"], false);
    assert_eq!(client.ok("DELETE", "/sessions/posse-team", &[]), json!({"success": true}));
    assert_eq!(client.call("DELETE", "/sessions/posse-team", &[]).0, 404);
    assert_eq!(client.call("GET", "/sessions/posse-team", &[]).0, 404);
}

#[test]
fn without_the_token_nothing_is_said() {
    let env = env();
    let address = listen(&env, &[]);
    let id = env.launch(&["cat"]);
    let token = std::fs::read_to_string(env.paths().token()).unwrap().trim().to_owned();
    assert_eq!(token.len(), 64);
    let ask = |method: &str, path: &str, headers: &str| {
        raw(address, &format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n{headers}\r\n")).0
    };
    let host = "Host: 127.0.0.1:9889\r\n";
    let good = format!("{host}Authorization: Bearer {token}\r\n");
    assert_eq!(ask("GET", "/terminals", &good), 200);
    let routes = [
        ("GET", "/health".to_owned()),
        ("GET", "/terminals".to_owned()),
        ("GET", format!("/terminals/{id}")),
        ("GET", format!("/terminals/{id}/output")),
        ("GET", format!("/terminals/{id}/stream")),
        ("POST", format!("/terminals/{id}/input?message=x")),
        ("DELETE", format!("/terminals/{id}")),
        ("GET", "/events".to_owned()),
        ("GET", "/log".to_owned()),
        ("GET", "/sessions".to_owned()),
        ("POST", "/stop".to_owned()),
        ("GET", "/nowhere".to_owned()),
    ];
    for (method, path) in &routes {
        assert_eq!(ask(method, path, host), 401, "{method} {path} without a token");
        assert_eq!(ask(method, path, &format!("{host}Authorization: Bearer {}\r\n", "0".repeat(64))), 401);
        let foreign_host = format!("Host: evil.example:9889\r\nAuthorization: Bearer {token}\r\n");
        assert_eq!(ask(method, path, &foreign_host), 403, "{method} {path} by another name");
        let foreign_page = format!("{good}Origin: http://evil.example\r\n");
        assert_eq!(ask(method, path, &foreign_page), 403, "{method} {path} from another page");
    }
    assert_eq!(ask("GET", "/terminals", &format!("Authorization: Bearer {token}\r\n")), 403, "no name at all");
    assert_eq!(ask("GET", "http://evil.example/terminals", &good), 403, "a name in the request line counts too");
    assert_eq!(ask("POST", "/stop", &good), 404, "the daemon is stopped by its owner only");
    assert_eq!(ask("POST", "/listen", &good), 404);
    assert_eq!(env.run(["ls", "--json"]).json()[0]["status"], "processing", "nothing was ended");
}

#[test]
fn listening_goes_on_after_a_crash_and_ends_when_told() {
    let env = env();
    let address = listen(&env, &[]);
    let place = address.to_string();
    env.run(["serve", "--listen", &place, "--no-auth"]).ends(0).complains(&["WARNING: no authentication"]);
    env.run(["serve", "--listen", &place]).ok(); // with a token again
    let ask = || raw(address, "GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").0;
    assert_eq!(ask(), 401);
    env.kill_daemon();
    env.run(["serve"]).ok();
    assert_eq!(ask(), 401, "it listens where it did, and asks for what it did");
    env.run(["serve", "--listen", "off"]).ok();
    assert!(TcpStream::connect(address).is_err());
    env.kill_daemon();
    env.run(["serve"]).ok();
    assert!(TcpStream::connect(address).is_err());
}

/// A connection that asks for the stream of a terminal.
pub(crate) fn upgraded(address: SocketAddr, id: TerminalId) -> TcpStream {
    asking(
        address,
        &format!(
            "GET /terminals/{id}/stream HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        ),
    )
}

pub(crate) fn asking(address: SocketAddr, request: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    stream
}

/// The status of the answer.
pub(crate) fn status(stream: &mut TcpStream) -> String {
    let mut head = [0; 12];
    stream.read_exact(&mut head).unwrap();
    String::from_utf8_lossy(&head[9..]).into_owned()
}

#[test]
fn streams_count_among_those_who_are_connected() {
    let env = env();
    let address = listen(&env, &["--no-auth"]);
    let id = env.launch(&["sleep", "1000"]);
    let connect = || upgraded(address, id);
    let mut streams: Vec<TcpStream> = (0..256).map(|_| connect()).collect();
    streams.iter_mut().for_each(|stream| assert_eq!(status(stream), "101"));
    assert_eq!(status(&mut connect()), "503", "the limit is reached");
    streams.pop();
    when("the end of a stream to be counted", || (status(&mut connect()) == "101").then_some(()));
    env.run(["ls"]).ok();
}

#[test]
fn connections_that_say_nothing_keep_no_client_out() {
    let env = env();
    let address = listen(&env, &[]);
    let token = std::fs::read_to_string(env.paths().token()).unwrap().trim().to_owned();
    let request = |more: &str| format!("GET /terminals HTTP/1.1\r\nHost: localhost\r\n{more}\r\n");
    let connect = |number: usize| {
        let mut stream = TcpStream::connect(address).unwrap();
        // Silent, in the middle of its headers, or refused and kept open. The daemon may close it at any time.
        let said = match number % 3 {
            0 => String::new(),
            1 => "GET /terminals HTTP/1.1\r\nHost: local".to_owned(),
            _ => request("Authorization: Bearer wrong\r\n"),
        };
        let _ = stream.write_all(said.as_bytes());
        stream
    };
    // More than may be there, and not so many that the daemon is out of descriptors.
    let mut half_open: Vec<TcpStream> = (0..400).map(connect).collect();
    let good = request(&format!("Connection: close\r\nAuthorization: Bearer {token}\r\n"));
    assert_eq!(raw(address, &good).0, 200, "a client with a token is answered");
    env.run(["ls"]).ok();
    // The oldest was closed to make room, which is why the client was let in.
    // Not waited for: after a while all silent ones are closed.
    let oldest = &mut half_open[0];
    oldest.set_nonblocking(true).unwrap();
    let closed = match oldest.read(&mut [0; 1]) {
        Ok(count) => count == 0,
        Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
    };
    assert!(closed, "the oldest silent connection is still open");
    half_open.extend((400..2000).map(connect));
    assert_eq!(raw(address, &good).0, 200, "a client with a token is answered, however many there are");
}
