//! Anthropic's Messages, as Claude Code 2.1.197 and 2.1.325 speak it.

use serde_json::{Value, json};

use super::request::{Asked, Kind, Offered, ToolResult, list, said, string, texts};
use super::scenario::{Failure, ToolCall};
use super::voice::{Voice, event, pieces, tokens};

/// How Claude Code begins what it says in the user's name.
const NOT_THE_USER: [&str; 5] =
    ["<local-command", "<command-name>", "Caveat:", "[Request interrupted", "[SYSTEM NOTIFICATION"];

pub(super) fn read(body: &Value, agent_id: Option<&str>) -> Asked {
    let messages = list(&body["messages"]);
    let user_texts: Vec<String> = messages
        .iter()
        .filter(|message| message["role"] == "user")
        .flat_map(|message| texts(&message["content"]))
        .filter_map(|text| said(text, &NOT_THE_USER))
        .collect();
    let answered = messages.iter().rposition(|message| message["role"] == "assistant").map_or(0, |at| at + 1);
    let new_blocks = messages[answered..].iter().flat_map(|message| list(&message["content"]));
    let mut asked = Asked {
        model: string(&body["model"]),
        streamed: body["stream"] == true,
        opening: user_texts.first().cloned().unwrap_or_default(),
        user_text: user_texts.last().cloned().unwrap_or_default(),
        tool_results: new_blocks.filter(|block| block["type"] == "tool_result").map(tool_result).collect(),
        offered: list(&body["tools"]).iter().map(offered).collect(),
        kind: Kind::Conversation,
        length: messages.len(),
    };
    asked.kind = kind(body, &asked, agent_id);
    asked
}

fn tool_result(block: &Value) -> ToolResult {
    let text = texts(&block["content"]).join("\n");
    ToolResult { id: string(&block["tool_use_id"]), text, is_error: block["is_error"] == true }
}

fn offered(tool: &Value) -> Offered {
    Offered { name: string(&tool["name"]), namespace: None, freeform: false }
}

fn kind(body: &Value, asked: &Asked, agent_id: Option<&str>) -> Kind {
    let side = |name, answer| Kind::Side { name, answer };
    // The schema of a title is the only one there is in these versions.
    if !body["output_config"]["format"].is_null() {
        return side("title", r#"{"title": "A scripted session"}"#);
    }
    if asked.offered.is_empty() {
        // A probe of the quota wants one token; summaries of web pages and the like want more.
        return if body["max_tokens"] == 1 { side("quota", "#") } else { side("small", "Nothing to add.") };
    }
    if asked.user_text.starts_with("CRITICAL: Respond with TEXT ONLY") {
        return side("compact", "<analysis>Short.</analysis>\n<summary>\nA scripted session.\n</summary>");
    }
    if asked.user_text.starts_with("[SUGGESTION MODE") {
        return side("suggestion", "");
    }
    let billing = texts(&body["system"]).first().is_some_and(|line| line.contains("cc_is_subagent"));
    if agent_id.is_some() || billing { Kind::Subagent } else { Kind::Conversation }
}

pub(super) fn refusal(failure: &Failure) -> Value {
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
    let mut fields = serde_json::Map::new();
    fields.insert("type".into(), kind.into());
    fields.insert("message".into(), message.into());
    json!({ "type": "error", "error": failure.object(fields), "request_id": "req_scripted" })
}

pub(super) struct Answer {
    message: Value,
    input_tokens: u64,
    output_tokens: u64,
    calls_tools: bool,
}

impl Answer {
    pub(super) fn new(asked: &Asked, request: u64, input_tokens: u64) -> Self {
        let message = json!({
            "id": format!("msg_scripted{request:06}"), "type": "message", "role": "assistant", "model": asked.model,
            "content": [], "stop_reason": null, "stop_sequence": null, "usage": usage(input_tokens, 1),
        });
        Self { message, input_tokens, output_tokens: 1, calls_tools: false }
    }

    /// One block of content: its empty beginning, what it is filled with, and all of it.
    fn block(&mut self, empty: &Value, deltas: Vec<Value>, whole: Value) -> Vec<String> {
        let index = list(&self.message["content"]).len();
        let mut events = vec![event("content_block_start", json!({ "index": index, "content_block": empty }))];
        let delta = |delta| event("content_block_delta", json!({ "index": index, "delta": delta }));
        events.extend(deltas.into_iter().map(delta));
        events.push(event("content_block_stop", json!({ "index": index })));
        if let Some(content) = self.message["content"].as_array_mut() {
            content.push(whole);
        }
        events
    }
}

fn usage(input: u64, output: u64) -> Value {
    json!({ "input_tokens": input, "output_tokens": output, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0 })
}

impl Voice for Answer {
    fn open(&mut self) -> Vec<String> {
        vec![event("message_start", json!({ "message": self.message }))]
    }

    fn text(&mut self, text: &str) -> Vec<String> {
        self.output_tokens += tokens(text);
        let deltas = pieces(text).into_iter().map(|piece| json!({ "type": "text_delta", "text": piece })).collect();
        let of = |text: &str| json!({ "type": "text", "text": text });
        self.block(&of(""), deltas, of(text))
    }

    fn thought(&mut self, text: &str) -> Vec<String> {
        self.output_tokens += tokens(text);
        let delta = |piece| json!({ "type": "thinking_delta", "thinking": piece });
        let mut deltas: Vec<Value> = pieces(text).into_iter().map(delta).collect();
        deltas.push(json!({ "type": "signature_delta", "signature": "c2NyaXB0ZWQ=" }));
        let of = |text: &str, signature: &str| json!({ "type": "thinking", "thinking": text, "signature": signature });
        self.block(&of("", ""), deltas, of(text, "c2NyaXB0ZWQ="))
    }

    fn call(&mut self, id: &str, call: &ToolCall) -> Vec<String> {
        self.calls_tools = true;
        let input = call.input.to_string();
        self.output_tokens += tokens(&input);
        let delta = |piece| json!({ "type": "input_json_delta", "partial_json": piece });
        let deltas = pieces(&input).into_iter().map(delta).collect();
        let of = |input: &Value| json!({ "type": "tool_use", "id": id, "name": call.name, "input": input });
        self.block(&of(&json!({})), deltas, of(&call.input))
    }

    fn failure(&mut self, failure: &Failure) -> Vec<String> {
        vec![event("error", refusal(failure))]
    }

    fn close(&mut self, reason: Option<&str>) -> (Vec<String>, String) {
        let reason = reason.unwrap_or(if self.calls_tools { "tool_use" } else { "end_turn" }).to_owned();
        let usage = usage(self.input_tokens, self.output_tokens);
        self.message["stop_reason"] = reason.as_str().into();
        self.message["usage"] = usage.clone();
        let delta = json!({ "delta": { "stop_reason": reason, "stop_sequence": null }, "usage": usage });
        (vec![event("message_delta", delta), event("message_stop", json!({}))], reason)
    }

    fn whole(&self) -> Value {
        self.message.clone()
    }
}
