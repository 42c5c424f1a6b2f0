//! The scripted models, asked over real connections.
// In a test an unwrap is an assertion.
#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use posse_sim::ModelServer;
use posse_sim::model::{ModelEvent, ModelLog, ModelLogEntry, RequestRole};
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(300);

fn ask(server: &ModelServer, path: &str, body: &Value) -> TcpStream {
    let host = server.url().replace("http://", "");
    let mut stream = TcpStream::connect(host).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let body = body.to_string();
    write!(stream, "POST {path}?beta=true HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n{body}", body.len())
        .unwrap();
    stream
}

/// Everything that comes, until the connection ends.
fn all(mut stream: TcpStream) -> String {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

fn claude(prompt: &str) -> Value {
    json!({ "model": "claude", "stream": true, "max_tokens": 100, "tools": [{ "name": "Bash" }],
        "messages": [{ "role": "user", "content": [{ "type": "text", "text": "<system-reminder>x</system-reminder>" },
            { "type": "text", "text": prompt }] }, { "role": "system", "content": "Available agents" }] })
}

/// The data of the events in a stream, whatever the chunks.
fn events(answer: &str) -> Vec<Value> {
    let data = answer.lines().filter_map(|line| line.strip_prefix("data: "));
    data.filter_map(|data| serde_json::from_str(data).ok()).collect()
}

fn types(answer: &str) -> Vec<String> {
    let mut types: Vec<_> = events(answer).iter().map(|event| event["type"].as_str().unwrap().to_owned()).collect();
    types.dedup();
    types
}

fn word(entry: &ModelLogEntry) -> String {
    let event = format!("{:?}", entry.event);
    event.split(|c: char| !c.is_alphanumeric()).next().unwrap().to_owned()
}

/// Returns the names of the events of requests that played a turn.
fn words(log: &ModelLog) -> Vec<String> {
    let requests: Vec<_> = log.turns().map(|(entry, _)| entry.request).collect();
    log.entries.iter().filter(|entry| requests.contains(&entry.request)).map(word).collect()
}

#[test]
fn messages_reply_has_thought_text_and_tool() {
    let server = ModelServer::script(
        r#"
        [[turn]]
        steps = [{ think = { text = "let me see" } }, { say = "I list the files, all of them." }, { run = { command = "ls -la" } }]
        "#,
    );
    let answer = all(ask(&server, "/v1/messages", &claude("list them")));
    let block = ["content_block_start", "content_block_delta", "content_block_stop"];
    let expected = [&["message_start"][..], &block, &block, &block, &["message_delta", "message_stop"]].concat();
    assert_eq!(types(&answer), expected);
    let events = events(&answer);
    let joined = |field: &str| -> String { events.iter().filter_map(|event| event["delta"][field].as_str()).collect() };
    assert_eq!(joined("text"), "I list the files, all of them.");
    let input: Value = serde_json::from_str(&joined("partial_json")).unwrap();
    assert_eq!(input["command"], "ls -la");
    assert_eq!(joined("stop_reason"), "tool_use");
    assert!(answer.ends_with("0\r\n\r\n"));
    let log = server.log();
    assert_eq!(words(&log), ["Opened", "ToolAsked", "Ended"], "{log}");
    assert_eq!(log.turns().next().unwrap().1.user_text, "list them");
    assert!(log.entries.is_sorted_by_key(|entry| entry.at));
}

#[test]
fn tool_results_lead_to_the_next_turn() {
    let server = ModelServer::script("[[turn]]\nsteps = []\n[[turn]]\nsteps = [{ say = 'second' }]");
    all(ask(&server, "/v1/messages", &claude("go")));
    let mut body = claude("go");
    let messages = body["messages"].as_array_mut().unwrap();
    messages.push(json!({ "role": "assistant", "content": [{ "type": "tool_use", "id": "a" }] }));
    let result = json!({ "type": "tool_result", "tool_use_id": "a", "is_error": true, "content": [{ "text": "no" }] });
    messages.push(json!({ "role": "user", "content": [result] }));
    assert!(all(ask(&server, "/v1/messages", &body)).contains("second"));
    let log = server.log();
    let result = log.tool_results().next().unwrap();
    assert_eq!((result.id.as_str(), result.text.as_str(), result.is_error), ("a", "no", true));
    assert!(log.ended(0) && log.ended(1));
}

#[test]
fn gate_holds_the_stream_until_released() {
    let server = ModelServer::script("[[turn]]\nsteps = [{ say = 'before' }, { wait_for = 'go' }, { say = 'after' }]");
    let mut stream = ask(&server, "/v1/messages", &claude("go"));
    server.wait_for(|log| log.waits_at("go"), PATIENCE);
    let mut seen = vec![0; 4096];
    let read = stream.read(&mut seen).unwrap();
    assert!(!String::from_utf8_lossy(&seen[..read]).contains("after"));
    server.release("go");
    assert!(all(stream).contains("after"));
    let words: Vec<_> = server.log().entries.iter().map(word).collect();
    assert_eq!(words, ["Opened", "Waiting", "Released", "Ended"]);
}

#[test]
fn lost_connection_is_noticed_during_a_wait() {
    let server = ModelServer::script("[[turn]]\nsteps = [{ think = {} }, { wait_for = 'never' }]");
    let stream = ask(&server, "/v1/messages", &claude("go"));
    server.wait_for(|log| log.waits_at("never"), PATIENCE);
    drop(stream);
    let lost = |log: &ModelLog| log.entries.iter().any(|entry| matches!(entry.event, ModelEvent::ConnectionLost));
    let log = server.wait_for(lost, PATIENCE);
    assert_eq!(words(&log), ["Opened", "Waiting", "ConnectionLost"]);
}

#[test]
fn failures_apply_to_their_attempts() {
    let server = ModelServer::script(
        r#"
        [[turn]]
        steps = [
          { fail = { status = 429, message = "slow down", headers = { retry-after = "7", reset = "now+60" }, times = 1 } },
          { say = "half an ans" }, { fail = { dropped = true, times = 2 } }, { fail = { status = 529 } },
        ]
        "#,
    );
    let attempt = || all(ask(&server, "/v1/messages", &claude("go")));
    let limited = attempt();
    assert!(limited.starts_with("HTTP/1.1 429") && limited.contains("retry-after: 7\r\n"), "{limited}");
    assert!(limited.contains("rate_limit_error") && limited.contains("slow down") && !limited.contains("now+"));
    let dropped = attempt();
    assert!(dropped.starts_with("HTTP/1.1 200") && !dropped.ends_with("0\r\n\r\n"), "{dropped}");
    let overloaded = attempt();
    assert_eq!(events(&overloaded).last().unwrap()["error"]["type"], "overloaded_error");
    let log = server.log();
    let attempts: Vec<_> = log.turns().map(|(_, opened)| opened.role).collect();
    let of = |attempt| RequestRole::Turn { scenario: 0, turn: Some(0), attempt };
    assert_eq!(attempts, [of(1), of(2), of(3)]);
    assert_eq!(log.of_turn(0).iter().filter(|event| matches!(event, ModelEvent::Failed { .. })).count(), 2);
}

#[test]
fn side_requests_use_no_turn() {
    let server = ModelServer::script("[[turn]]\nsteps = [{ say = 'the turn' }]");
    let mut title = claude("<session>go</session>");
    title["tools"] = json!([]);
    title["output_config"] = json!({ "format": { "type": "json_schema" } });
    assert!(all(ask(&server, "/v1/messages", &title)).contains("title"));
    let quota = json!({ "model": "haiku", "max_tokens": 1, "messages": [{ "role": "user", "content": "quota" }] });
    let answer = all(ask(&server, "/v1/messages", &quota));
    assert!(
        answer.contains("content-length") && answer.contains(r#""stop_reason":"end_turn""#),
        "not streamed: {answer}"
    );
    assert!(all(ask(&server, "/v1/messages/count_tokens", &json!({}))).contains("input_tokens"));
    let mut helper = claude("look around");
    helper["system"] = json!([{ "text": "x-anthropic-billing-header: cc_is_subagent=true;" }]);
    assert!(!all(ask(&server, "/v1/messages", &helper)).contains("the turn"));
    assert!(all(ask(&server, "/v1/messages", &claude("go"))).contains("the turn"));
    assert!(all(ask(&server, "/v1/messages", &claude("and now?"))).contains("The script is over"));
    let log = server.log();
    let sides = log.opened().filter_map(|(_, o)| if let RequestRole::Side(name) = o.role { Some(name) } else { None });
    assert_eq!(sides.collect::<Vec<_>>(), ["title", "quota", "subagent"]);
}

fn codex(prompt: &str) -> Value {
    let tools = json!([{ "type": "namespace", "name": "functions", "tools": [{ "type": "custom", "name": "exec" }] }]);
    json!({ "model": "gpt", "stream": true, "input": [{ "type": "additional_tools", "tools": tools },
        { "type": "message", "role": "user", "content": [{ "text": "<environment_context>…" }] },
        { "type": "message", "role": "user", "content": [{ "type": "input_text", "text": prompt }] }] })
}

#[test]
fn responses_reply_has_reasoning_text_and_tool() {
    let server = ModelServer::script(
        "[[turn]]\nsteps = [{ think = { text = 'hm' } }, { say = 'I look' }, { run = { command = 'ls', escalated = true } }]",
    );
    let answer = all(ask(&server, "/v1/responses", &codex("go")));
    let events = events(&answer);
    let done: Vec<_> = events.iter().filter(|event| event["type"] == "response.output_item.done").collect();
    let kinds: Vec<_> = done.iter().map(|event| event["item"]["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["reasoning", "message", "custom_tool_call"]);
    assert!(done[2]["item"]["input"].as_str().unwrap().contains("require_escalated"));
    assert_eq!(events[0]["type"], "response.created");
    assert_eq!(events.last().unwrap()["response"]["status"], "completed");
    assert!(events.iter().enumerate().all(|(number, event)| event["sequence_number"] == number));
    assert_eq!(words(&server.log()), ["Opened", "ToolAsked", "Ended"]);

    let mut next = codex("go");
    let items = next["input"].as_array_mut().unwrap();
    items.push(json!({ "type": "custom_tool_call", "call_id": "c" }));
    items.push(json!({ "type": "custom_tool_call_output", "call_id": "c", "output": [{ "text": "done" }] }));
    all(ask(&server, "/v1/responses", &next));
    assert_eq!(server.log().tool_results().next().unwrap().text, "done");
}

#[test]
fn responses_reply_fails_in_the_stream_and_by_status() {
    let server = ModelServer::script(
        "[[turn]]\nsteps = [{ think = {} }, { fail = { status = 429, kind = 'insufficient_quota' } }]
         [[turn]]\nsteps = [{ fail = { status = 429, kind = 'usage_limit_reached', fields = { resets_at = 'now+60' } } }]",
    );
    let mut title = codex("Generate a title");
    title["text"] = json!({ "format": { "schema": { "properties": { "title": {} } } } });
    assert!(all(ask(&server, "/v1/responses", &title)).contains("scripted session"));
    let failed = all(ask(&server, "/v1/responses", &codex("go")));
    assert_eq!(events(&failed).last().unwrap()["response"]["error"]["code"], "insufficient_quota");
    let limited = all(ask(&server, "/v1/responses", &codex("again")));
    let body: Value = serde_json::from_str(limited.split("\r\n\r\n").nth(1).unwrap()).unwrap();
    assert_eq!(body["error"]["type"], "usage_limit_reached");
    assert!(body["error"]["resets_at"].is_u64());
}

#[test]
fn chat_completions_are_streamed_or_whole() {
    let server = ModelServer::script(
        "[[turn]]\nsteps = [{ say = 'I look' }, { run = { command = 'ls' } }]\n[[turn]]\nsteps = [{ say = 'bye' }]",
    );
    let mut body = json!({ "model": "m", "stream": true, "tools": [{ "function": { "name": "bash" } }],
        "messages": [{ "role": "system", "content": "s" }, { "role": "user", "content": "go" }] });
    let answer = all(ask(&server, "/v1/chat/completions", &body));
    assert!(answer.contains("data: [DONE]"));
    let events = events(&answer);
    let arguments = events
        .iter()
        .filter_map(|event| event["choices"][0]["delta"]["tool_calls"][0]["function"]["arguments"].as_str());
    let arguments: Value = serde_json::from_str(&arguments.collect::<String>()).unwrap();
    assert_eq!(arguments["command"], "ls");
    body["stream"] = false.into();
    body["messages"][1]["content"] = "then".into();
    let answer = all(ask(&server, "/v1/chat/completions", &body));
    assert!(answer.contains(r#""content":"bye""#), "{answer}");
}

#[test]
fn dropped_server_ends_its_replies() {
    let server = ModelServer::script("[[turn]]\nsteps = [{ think = {} }, { wait_for = 'never' }]");
    let stream = ask(&server, "/v1/messages", &claude("go"));
    server.wait_for(|log| log.waits_at("never"), PATIENCE);
    drop(server);
    assert!(all(stream).contains("message_start"));
}
