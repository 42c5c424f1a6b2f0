//! OpenAI's Responses, as used by Codex 0.145 and 0.166.

use serde_json::{Value, json};

use crate::model::reply::{INPUT_TOKENS, OUTPUT_TOKENS, ReplyPart, ReplyWriter, event};
use crate::model::request::{ModelRequest, ModelToolResult, OfferedTool, RequestKind, list, string, texts};
use crate::scenario::{ServiceFailure, ToolUse};

/// The starts of user messages that Codex writes itself.
const NOT_THE_USER: [&str; 7] = [
    "<environment_context",
    "<user_instructions",
    "# AGENTS.md",
    "<turn_aborted",
    "<skills",
    "<permissions",
    "<subagent_notification",
];

pub(crate) fn read(body: &Value) -> ModelRequest {
    // A single prompt may be a plain string.
    let alone = [json!({ "role": "user", "content": body["input"] })];
    let items = if body["input"].is_string() { &alone } else { list(&body["input"]) };
    let mut asked = ModelRequest::new(body, items, &NOT_THE_USER, |item| {
        let is_result = item["type"].as_str().is_some_and(|kind| kind.ends_with("call_output"));
        is_result.then(|| tool_result(item)).into_iter().collect()
    });
    asked.offered = offered(body, items);
    asked.kind = kind(body);
    asked
}

fn tool_result(item: &Value) -> ModelToolResult {
    ModelToolResult { id: string(&item["call_id"]), text: texts(&item["output"]).join("\n"), is_error: false }
}

/// Reads the tools from the request or, for newer models, from an item of the conversation. Some are in groups.
fn offered(body: &Value, items: &[Value]) -> Vec<OfferedTool> {
    let more = items.iter().filter(|item| item["type"] == "additional_tools").flat_map(|item| list(&item["tools"]));
    let one = |tool: &Value, group: Option<&str>| OfferedTool {
        name: string(if tool["name"].is_null() { &tool["type"] } else { &tool["name"] }),
        namespace: group.map(str::to_owned),
        freeform: tool["type"] == "custom",
    };
    let all = list(&body["tools"]).iter().chain(more);
    all.flat_map(|tool| match tool["type"].as_str() {
        Some("namespace") => list(&tool["tools"]).iter().map(|inner| one(inner, tool["name"].as_str())).collect(),
        _ => vec![one(tool, None)],
    })
    .collect()
}

fn kind(body: &Value) -> RequestKind {
    let metadata = body["client_metadata"]["x-codex-turn-metadata"].as_str().unwrap_or_default();
    let metadata: Value = serde_json::from_str(metadata).unwrap_or_default();
    // Older versions do not name the purpose, but a request for a title has a schema.
    let is_title = metadata["thread_source"] == "thread_title"
        || body["text"]["format"]["schema"]["properties"].as_object().is_some_and(|only| only.keys().eq(["title"]));
    if is_title {
        RequestKind::Side { name: "title", answer: r#"{"title": "A scripted session"}"# }
    } else if metadata["thread_source"].as_str().is_some_and(|source| source.starts_with("subagent")) {
        RequestKind::Subagent
    } else {
        RequestKind::Conversation
    }
}

pub(crate) fn refusal(failure: &ServiceFailure) -> Value {
    json!({ "error": error(failure, "type") })
}

/// Returns the error object; inside a stream its kind is called `code`.
fn error(failure: &ServiceFailure, kind_is: &str) -> Value {
    let (kind, message) = match failure.status {
        401 => ("invalid_api_key", "Incorrect API key provided: dummy."),
        429 => ("rate_limit_exceeded", "Rate limit reached. Please try again in 2s."),
        _ => ("server_error", "The server had an error while processing your request. Sorry about that!"),
    };
    let kind = failure.kind.as_deref().unwrap_or(kind);
    let message = failure.message.as_deref().unwrap_or(message);
    failure.object(json!({ "code": kind, kind_is: kind, "message": message }))
}

pub(crate) struct ResponsesReply {
    response: Value,
    offered: Vec<OfferedTool>,
    request: u64,
    sent: u64,
}

impl ResponsesReply {
    pub(crate) fn new(asked: &ModelRequest, request: u64) -> Self {
        let response = json!({
            "id": format!("resp_scripted{request:06}"), "object": "response", "created_at": 1_800_000_000,
            "model": asked.model, "status": "in_progress", "output": [],
        });
        Self { response, offered: asked.offered.clone(), request, sent: 0 }
    }

    fn event(&mut self, name: &str, mut data: Value) -> String {
        data["sequence_number"] = self.sent.into();
        self.sent += 1;
        event(name, data)
    }

    /// Returns an event about a part. Texts and thoughts have an index of their own inside the item.
    fn part_event(&mut self, at: usize, part: &ReplyPart, name: &str, mut data: Value) -> String {
        data["output_index"] = at.into();
        data["item_id"] = self.item(at, part, false)["id"].clone();
        match part {
            ReplyPart::Text(_) => data["content_index"] = 0.into(),
            ReplyPart::Thought(_) => data["summary_index"] = 0.into(),
            ReplyPart::Call { .. } => {}
        }
        self.event(name, data)
    }

    /// Returns the tool that a call means. Older versions offer a server's tools as a group, with the tool's own name.
    fn tool(&self, called: &str) -> Option<&OfferedTool> {
        let in_group = |group: &str, name: &str| {
            called.strip_prefix(group).is_some_and(|rest| rest.trim_start_matches('_') == name)
        };
        self.offered.iter().find(|tool| {
            tool.name == called || tool.namespace.as_deref().is_some_and(|group| in_group(group, &tool.name))
        })
    }

    fn is_freeform(&self, tool: &ToolUse) -> bool {
        self.tool(&tool.name).is_some_and(|tool| tool.freeform)
    }

    /// Returns a part as an item of the output, which is empty until it is done.
    fn item(&self, at: usize, part: &ReplyPart, done: bool) -> Value {
        let id = |prefix: &str| format!("{prefix}_scripted{:06}x{at}", self.request);
        let status = if done { "completed" } else { "in_progress" };
        let parts = |kind, text| if done { vec![text_part(kind, text)] } else { Vec::new() };
        match part {
            ReplyPart::Text(text) => json!({
                "id": id("msg"), "type": "message", "role": "assistant", "status": status,
                "content": parts("output_text", text),
            }),
            ReplyPart::Thought(text) => {
                let mut item = json!({ "id": id("rs"), "type": "reasoning", "summary": parts("summary_text", text) });
                if done {
                    item["encrypted_content"] = "c2NyaXB0ZWQ=".into();
                }
                item
            }
            ReplyPart::Call { id: call_id, tool: call } => {
                let tool = self.tool(&call.name);
                let name = tool.map_or(&call.name, |tool| &tool.name);
                let input = if done { self.input(call) } else { String::new() };
                if self.is_freeform(call) {
                    return json!({
                        "id": id("ctc"), "type": "custom_tool_call", "call_id": call_id, "name": name, "status": status,
                        "input": input,
                    });
                }
                let mut item = json!({
                    "id": id("fc"), "type": "function_call", "call_id": call_id, "name": name, "status": status,
                    "arguments": input,
                });
                if let Some(group) = tool.and_then(|tool| tool.namespace.as_deref()) {
                    item["namespace"] = group.into();
                }
                item
            }
        }
    }

    /// Returns the event that carries the pieces of a part, without `.delta` or `.done`.
    fn piece_event(&self, part: &ReplyPart) -> &'static str {
        match part {
            ReplyPart::Text(_) => "response.output_text",
            ReplyPart::Thought(_) => "response.reasoning_summary_text",
            ReplyPart::Call { tool, .. } if self.is_freeform(tool) => "response.custom_tool_call_input",
            ReplyPart::Call { .. } => "response.function_call_arguments",
        }
    }
}

fn text_part(kind: &str, text: &str) -> Value {
    json!({ "type": kind, "text": text, "annotations": [] })
}

impl ReplyWriter for ResponsesReply {
    fn open(&mut self) -> Vec<String> {
        let response = self.response.clone();
        vec![self.event("response.created", json!({ "response": response }))]
    }

    /// Tools that take text get text, others get JSON as text.
    fn input(&self, tool: &ToolUse) -> String {
        tool.input.as_str().map_or_else(|| tool.input.to_string(), str::to_owned)
    }

    fn begin(&mut self, at: usize, part: &ReplyPart) -> Vec<String> {
        let item = self.item(at, part, false);
        let mut events = vec![self.event("response.output_item.added", json!({ "output_index": at, "item": item }))];
        let (name, kind) = match part {
            ReplyPart::Text(_) => ("response.content_part.added", "output_text"),
            ReplyPart::Thought(_) => ("response.reasoning_summary_part.added", "summary_text"),
            ReplyPart::Call { .. } => return events,
        };
        events.push(self.part_event(at, part, name, json!({ "part": text_part(kind, "") })));
        events
    }

    fn piece(&mut self, at: usize, part: &ReplyPart, piece: &str) -> String {
        let name = format!("{}.delta", self.piece_event(part));
        self.part_event(at, part, &name, json!({ "delta": piece }))
    }

    fn end(&mut self, at: usize, part: &ReplyPart) -> Vec<String> {
        let all = match part {
            ReplyPart::Text(text) | ReplyPart::Thought(text) => json!({ "text": text }),
            ReplyPart::Call { tool, .. } if self.is_freeform(tool) => json!({ "input": self.input(tool) }),
            ReplyPart::Call { tool, .. } => json!({ "arguments": self.input(tool) }),
        };
        let name = format!("{}.done", self.piece_event(part));
        let item = self.item(at, part, true);
        let done = self.part_event(at, part, &name, all);
        vec![done, self.event("response.output_item.done", json!({ "output_index": at, "item": item }))]
    }

    fn failure(&mut self, failure: &ServiceFailure) -> Vec<String> {
        let mut response = self.response.clone();
        response["status"] = "failed".into();
        response["error"] = error(failure, "code");
        vec![self.event("response.failed", json!({ "response": response }))]
    }

    fn close(&mut self, parts: &[ReplyPart]) -> (Vec<String>, &'static str) {
        let status = "completed";
        self.response["status"] = status.into();
        self.response["usage"] = json!({
            "input_tokens": INPUT_TOKENS, "input_tokens_details": { "cached_tokens": 0 },
            "output_tokens": OUTPUT_TOKENS, "output_tokens_details": { "reasoning_tokens": 0 },
            "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS,
        });
        let response = self.whole(parts);
        (vec![self.event("response.completed", json!({ "response": response }))], status)
    }

    fn whole(&self, parts: &[ReplyPart]) -> Value {
        let mut whole = self.response.clone();
        whole["output"] = parts.iter().enumerate().map(|(at, part)| self.item(at, part, true)).collect();
        whole
    }
}
