//! Anthropic's Messages, as used by Claude Code 2.1.197 and 2.1.325.

use serde_json::{Value, json};

use crate::model::reply::{INPUT_TOKENS, OUTPUT_TOKENS, ReplyWriter, event, pieces};
use crate::model::request::{
    ModelRequest, ModelToolResult, OfferedTool, RequestKind, list, reminders, string, texts, user_texts,
};
use crate::scenario::{ServiceFailure, ToolUse};

/// The starts of user messages that Claude Code writes itself.
const NOT_THE_USER: [&str; 5] =
    ["<local-command", "<command-name>", "Caveat:", "[Request interrupted", "[SYSTEM NOTIFICATION"];

/// Claude Code returns it with the thought; it is never checked.
const SIGNATURE: &str = "c2NyaXB0ZWQ=";

pub(crate) fn read(body: &Value, agent_id: Option<&str>) -> ModelRequest {
    let messages = list(&body["messages"]);
    let mut asked = ModelRequest::new(body, messages, &NOT_THE_USER, |message| {
        list(&message["content"]).iter().filter(|block| block["type"] == "tool_result").map(tool_result).collect()
    });
    asked.reminders = user_texts(messages).flat_map(reminders).collect();
    asked.offered = list(&body["tools"]).iter().map(offered).collect();
    asked.kind = kind(body, &asked, agent_id);
    asked
}

fn tool_result(block: &Value) -> ModelToolResult {
    let text = texts(&block["content"]).join("\n");
    ModelToolResult { id: string(&block["tool_use_id"]), text, is_error: block["is_error"] == true }
}

fn offered(tool: &Value) -> OfferedTool {
    OfferedTool { name: string(&tool["name"]), namespace: None, freeform: false }
}

fn kind(body: &Value, asked: &ModelRequest, agent_id: Option<&str>) -> RequestKind {
    let side = |name, answer| RequestKind::Side { name, answer };
    // Only requests for a title have a schema in these versions.
    if !body["output_config"]["format"].is_null() {
        return side("title", r#"{"title": "A scripted session"}"#);
    }
    if asked.offered.is_empty() {
        // A quota probe wants one token; summaries of web pages want more.
        return if body["max_tokens"] == 1 { side("quota", "#") } else { side("small", "Nothing to add.") };
    }
    if asked.user_text.starts_with("CRITICAL: Respond with TEXT ONLY") {
        return side("compact", "<analysis>Short.</analysis>\n<summary>\nA scripted session.\n</summary>");
    }
    if asked.user_text.starts_with("[SUGGESTION MODE") {
        return side("suggestion", "");
    }
    let billing = texts(&body["system"]).first().is_some_and(|line| line.contains("cc_is_subagent"));
    if agent_id.is_some() || billing { RequestKind::Subagent } else { RequestKind::Conversation }
}

pub(crate) fn refusal(failure: &ServiceFailure) -> Value {
    let (kind, message) = match failure.status {
        400 => ("invalid_request_error", "The request is wrong"),
        401 => ("authentication_error", "invalid x-api-key"),
        403 => ("permission_error", "Not allowed"),
        404 => ("not_found_error", "No such model"),
        413 => ("request_too_large", "Request exceeds the maximum size"),
        429 => ("rate_limit_error", "This request would exceed your account's rate limit. Please try again later."),
        529 => ("overloaded_error", "Overloaded"),
        _ => ("api_error", "Internal server error"),
    };
    let kind = failure.kind.as_deref().unwrap_or(kind);
    let message = failure.message.as_deref().unwrap_or(message);
    let error = failure.object(json!({ "type": kind, "message": message }));
    json!({ "type": "error", "error": error, "request_id": "req_scripted" })
}

pub(crate) struct MessagesReply {
    message: Value,
    content: Vec<Value>,
    /// Whether the last block of the content is open.
    open: bool,
}

impl MessagesReply {
    pub(crate) fn new(asked: &ModelRequest, request: u64) -> Self {
        let message = json!({
            "id": format!("msg_scripted{request:06}"), "type": "message", "role": "assistant", "model": asked.model,
            "content": [], "stop_reason": null, "stop_sequence": null, "usage": usage(),
        });
        Self { message, content: Vec::new(), open: false }
    }

    /// Ends the open block and begins another.
    fn begin(&mut self, block: Value) -> Vec<String> {
        let mut events = self.settle();
        let index = self.content.len();
        events.push(event("content_block_start", json!({ "index": index, "content_block": block })));
        self.content.push(block);
        self.open = true;
        events
    }

    fn delta(&mut self, delta: &Value) -> String {
        event("content_block_delta", json!({ "index": self.content.len() - 1, "delta": delta }))
    }

    /// Ends the open block. A thought gets a signature first.
    fn settle(&mut self) -> Vec<String> {
        if !std::mem::take(&mut self.open) {
            return Vec::new();
        }
        let mut events = Vec::new();
        if let Some(thought) = self.content.last_mut().filter(|block| block["type"] == "thinking") {
            thought["signature"] = SIGNATURE.into();
            events.push(self.delta(&json!({ "type": "signature_delta", "signature": SIGNATURE })));
        }
        events.push(event("content_block_stop", json!({ "index": self.content.len() - 1 })));
        events
    }

    /// Adds text to the open block if it has this kind, or to a new one.
    fn more(&mut self, kind: &str, field: &str, text: &str, empty: Value) -> Vec<String> {
        let goes_on = self.open && self.content.last().is_some_and(|block| block["type"] == kind);
        let mut events = if goes_on { Vec::new() } else { self.begin(empty) };
        for piece in pieces(text) {
            events.push(self.delta(&json!({ "type": format!("{kind}_delta"), field: piece })));
        }
        if let Some(block) = self.content.last_mut() {
            block[field] = format!("{}{text}", string(&block[field])).into();
        }
        events
    }
}

fn usage() -> Value {
    json!({
        "input_tokens": INPUT_TOKENS, "output_tokens": OUTPUT_TOKENS,
        "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0,
    })
}

impl ReplyWriter for MessagesReply {
    fn open(&mut self) -> Vec<String> {
        vec![event("message_start", json!({ "message": self.message }))]
    }

    fn text(&mut self, text: &str) -> Vec<String> {
        self.more("text", "text", text, json!({ "type": "text", "text": "" }))
    }

    fn thought(&mut self, text: &str) -> Vec<String> {
        self.more("thinking", "thinking", text, json!({ "type": "thinking", "thinking": "", "signature": "" }))
    }

    fn call(&mut self, id: &str, call: &ToolUse) -> Vec<String> {
        let input = call.input.to_string();
        let mut events = self.begin(json!({ "type": "tool_use", "id": id, "name": call.name, "input": {} }));
        for piece in pieces(&input) {
            events.push(self.delta(&json!({ "type": "input_json_delta", "partial_json": piece })));
        }
        if let Some(block) = self.content.last_mut() {
            block["input"] = call.input.clone();
        }
        events.extend(self.settle());
        events
    }

    fn failure(&mut self, failure: &ServiceFailure) -> Vec<String> {
        vec![event("error", refusal(failure))]
    }

    fn close(&mut self) -> (Vec<String>, &'static str) {
        let mut events = self.settle();
        let calls_tools = self.content.iter().any(|block| block["type"] == "tool_use");
        let reason = if calls_tools { "tool_use" } else { "end_turn" };
        self.message["stop_reason"] = reason.into();
        let delta = json!({ "delta": { "stop_reason": reason, "stop_sequence": null }, "usage": usage() });
        events.extend([event("message_delta", delta), event("message_stop", json!({}))]);
        (events, reason)
    }

    fn whole(&self) -> Value {
        let mut whole = self.message.clone();
        whole["content"] = self.content.clone().into();
        whole
    }
}
