//! Anthropic's Messages, as used by Claude Code 2.1.197 and 2.1.325.

use serde_json::{Value, json};

use crate::model::reply::{INPUT_TOKENS, OUTPUT_TOKENS, ReplyPart, ReplyWriter, calls_tools, event};
use crate::model::request::{
    ModelRequest, ModelToolResult, OfferedTool, RequestKind, list, reminders, string, texts, user_texts,
};
use crate::scenario::ServiceFailure;

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
        401 => ("authentication_error", "invalid x-api-key"),
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
}

impl MessagesReply {
    pub(crate) fn new(asked: &ModelRequest, request: u64) -> Self {
        let message = json!({
            "id": format!("msg_scripted{request:06}"), "type": "message", "role": "assistant", "model": asked.model,
            "content": [], "stop_reason": null, "stop_sequence": null, "usage": usage(),
        });
        Self { message }
    }
}

fn usage() -> Value {
    json!({
        "input_tokens": INPUT_TOKENS, "output_tokens": OUTPUT_TOKENS,
        "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0,
    })
}

fn block(part: &ReplyPart) -> Value {
    match part {
        ReplyPart::Text(text) => json!({ "type": "text", "text": text }),
        ReplyPart::Thought(text) => json!({ "type": "thinking", "thinking": text, "signature": SIGNATURE }),
        ReplyPart::Call { id, tool } => json!({ "type": "tool_use", "id": id, "name": tool.name, "input": tool.input }),
    }
}

fn delta(at: usize, kind: &str, field: &str, text: &str) -> String {
    event("content_block_delta", json!({ "index": at, "delta": { "type": kind, field: text } }))
}

impl ReplyWriter for MessagesReply {
    fn open(&mut self) -> Vec<String> {
        vec![event("message_start", json!({ "message": self.message }))]
    }

    fn begin(&mut self, at: usize, part: &ReplyPart) -> Vec<String> {
        let mut block = block(part);
        match part {
            ReplyPart::Text(_) => block["text"] = "".into(),
            ReplyPart::Thought(_) => block = json!({ "type": "thinking", "thinking": "", "signature": "" }),
            ReplyPart::Call { .. } => block["input"] = json!({}),
        }
        vec![event("content_block_start", json!({ "index": at, "content_block": block }))]
    }

    fn piece(&mut self, at: usize, part: &ReplyPart, piece: &str) -> String {
        match part {
            ReplyPart::Text(_) => delta(at, "text_delta", "text", piece),
            ReplyPart::Thought(_) => delta(at, "thinking_delta", "thinking", piece),
            ReplyPart::Call { .. } => delta(at, "input_json_delta", "partial_json", piece),
        }
    }

    fn end(&mut self, at: usize, part: &ReplyPart) -> Vec<String> {
        let is_thought = matches!(part, ReplyPart::Thought(_));
        let signature = is_thought.then(|| delta(at, "signature_delta", "signature", SIGNATURE));
        signature.into_iter().chain([event("content_block_stop", json!({ "index": at }))]).collect()
    }

    fn failure(&mut self, failure: &ServiceFailure) -> Vec<String> {
        vec![event("error", refusal(failure))]
    }

    fn close(&mut self, parts: &[ReplyPart]) -> (Vec<String>, &'static str) {
        let reason = if calls_tools(parts) { "tool_use" } else { "end_turn" };
        self.message["stop_reason"] = reason.into();
        let delta = json!({ "delta": { "stop_reason": reason, "stop_sequence": null }, "usage": usage() });
        (vec![event("message_delta", delta), event("message_stop", json!({}))], reason)
    }

    fn whole(&self, parts: &[ReplyPart]) -> Value {
        let mut whole = self.message.clone();
        whole["content"] = parts.iter().map(block).collect();
        whole
    }
}
