//! OpenAI's Responses, as used by Codex 0.145 and 0.166.

use serde_json::{Value, json};

use crate::model::reply::{INPUT_TOKENS, OUTPUT_TOKENS, ReplyWriter, event, pieces};
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
        400 => ("invalid_request_error", "The request is wrong"),
        401 => ("invalid_api_key", "Incorrect API key provided: dummy."),
        404 => ("model_not_found", "The model does not exist"),
        429 => ("rate_limit_exceeded", "Rate limit reached. Please try again in 2s."),
        _ => ("server_error", "The server had an error while processing your request. Sorry about that!"),
    };
    let kind = failure.kind.as_deref().unwrap_or(kind);
    let message = failure.message.as_deref().unwrap_or(message);
    failure.object(json!({ "code": kind, kind_is: kind, "message": message }))
}

struct StreamedItem {
    prefix: &'static str,
    kind: &'static str,
    part: &'static str,
    /// The fields for the parts and for their index.
    parts: (&'static str, &'static str),
    added: &'static str,
    delta: &'static str,
    done: &'static str,
}

const MESSAGE: StreamedItem = StreamedItem {
    prefix: "msg",
    kind: "message",
    part: "output_text",
    parts: ("content", "content_index"),
    added: "response.content_part.added",
    delta: "response.output_text.delta",
    done: "response.output_text.done",
};

const REASONING: StreamedItem = StreamedItem {
    prefix: "rs",
    kind: "reasoning",
    part: "summary_text",
    parts: ("summary", "summary_index"),
    added: "response.reasoning_summary_part.added",
    delta: "response.reasoning_summary_text.delta",
    done: "response.reasoning_summary_text.done",
};

pub(crate) struct ResponsesReply {
    response: Value,
    output: Vec<Value>,
    /// The open item and its text so far.
    open: Option<(&'static StreamedItem, String)>,
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
        Self { response, output: Vec::new(), open: None, offered: asked.offered.clone(), request, sent: 0 }
    }

    fn event(&mut self, name: &str, mut data: Value) -> String {
        data["sequence_number"] = self.sent.into();
        self.sent += 1;
        event(name, data)
    }

    /// Returns an event about the open item, which is not part of the output yet.
    fn item_event(&mut self, name: &str, item: &str, mut data: Value) -> String {
        data["output_index"] = self.output.len().into();
        data["item_id"] = item.into();
        self.event(name, data)
    }

    fn added(&mut self, item: &Value) -> String {
        self.event("response.output_item.added", json!({ "output_index": self.output.len(), "item": item }))
    }

    fn done(&mut self, item: Value) -> String {
        let event = self.event("response.output_item.done", json!({ "output_index": self.output.len(), "item": item }));
        self.output.push(item);
        event
    }

    fn id(&self, prefix: &str) -> String {
        format!("{prefix}_scripted{:06}x{}", self.request, self.output.len())
    }

    /// Returns an item of this kind with this text.
    fn item(&self, how: &StreamedItem, text: Option<&str>) -> Value {
        let parts: Vec<Value> = text.map(|text| part(how, text)).into_iter().collect();
        let mut item = json!({ "id": self.id(how.prefix), "type": how.kind, how.parts.0: parts });
        if how.kind == MESSAGE.kind {
            item["role"] = "assistant".into();
            item["status"] = if text.is_some() { "completed" } else { "in_progress" }.into();
        } else if text.is_some() {
            item["encrypted_content"] = "c2NyaXB0ZWQ=".into();
        }
        item
    }

    /// Adds text to the open item if it has this kind, or to a new one.
    fn more(&mut self, how: &'static StreamedItem, text: &str) -> Vec<String> {
        let goes_on = self.open.as_ref().is_some_and(|(open, _)| open.kind == how.kind);
        let mut events = Vec::new();
        if !goes_on {
            events.extend(self.settle());
            let empty = self.item(how, None);
            events.push(self.added(&empty));
            let id = self.id(how.prefix);
            events.push(self.item_event(how.added, &id, json!({ how.parts.1: 0, "part": part(how, "") })));
            self.open = Some((how, String::new()));
        }
        let id = self.id(how.prefix);
        for piece in pieces(text) {
            events.push(self.item_event(how.delta, &id, json!({ how.parts.1: 0, "delta": piece })));
        }
        if let Some((_, so_far)) = &mut self.open {
            so_far.push_str(text);
        }
        events
    }

    fn settle(&mut self) -> Vec<String> {
        let Some((how, text)) = self.open.take() else { return Vec::new() };
        let id = self.id(how.prefix);
        let done = self.item_event(how.done, &id, json!({ how.parts.1: 0, "text": text }));
        let whole = self.item(how, Some(&text));
        vec![done, self.done(whole)]
    }
}

fn part(how: &StreamedItem, text: &str) -> Value {
    json!({ "type": how.part, "text": text, "annotations": [] })
}

impl ReplyWriter for ResponsesReply {
    fn open(&mut self) -> Vec<String> {
        let response = self.response.clone();
        vec![self.event("response.created", json!({ "response": response }))]
    }

    fn text(&mut self, text: &str) -> Vec<String> {
        self.more(&MESSAGE, text)
    }

    fn thought(&mut self, text: &str) -> Vec<String> {
        self.more(&REASONING, text)
    }

    fn call(&mut self, call_id: &str, call: &ToolUse) -> Vec<String> {
        let mut events = self.settle();
        // Older versions offer a server's tools as a group, with the tool's own name.
        let in_group = |group: &str, name: &str| {
            call.name.strip_prefix(group).is_some_and(|rest| rest.trim_start_matches('_') == name)
        };
        let is_meant = |tool: &&OfferedTool| {
            tool.name == call.name || tool.namespace.as_deref().is_some_and(|group| in_group(group, &tool.name))
        };
        let tool = self.offered.iter().find(is_meant).cloned();
        // Tools that take text get text, others get JSON as text.
        let input = call.input.as_str().map_or_else(|| call.input.to_string(), str::to_owned);
        let freeform = tool.as_ref().is_some_and(|tool| tool.freeform);
        let (kind, field, prefix, name) = if freeform {
            ("custom_tool_call", "input", "ctc", "response.custom_tool_call_input")
        } else {
            ("function_call", "arguments", "fc", "response.function_call_arguments")
        };
        let id = self.id(prefix);
        let mut item = json!({
            "id": id, "type": kind, "call_id": call_id, "name": tool.as_ref().map_or(&call.name, |tool| &tool.name),
            "status": "in_progress", field: "",
        });
        if let Some(group) = tool.filter(|tool| !tool.freeform).and_then(|tool| tool.namespace) {
            item["namespace"] = group.into();
        }
        events.push(self.added(&item));
        for piece in pieces(&input) {
            events.push(self.item_event(&format!("{name}.delta"), &id, json!({ "delta": piece })));
        }
        events.push(self.item_event(&format!("{name}.done"), &id, json!({ field: input })));
        item["status"] = "completed".into();
        item[field] = input.into();
        events.push(self.done(item));
        events
    }

    fn failure(&mut self, failure: &ServiceFailure) -> Vec<String> {
        let mut response = self.response.clone();
        response["status"] = "failed".into();
        response["error"] = error(failure, "code");
        vec![self.event("response.failed", json!({ "response": response }))]
    }

    fn close(&mut self) -> (Vec<String>, &'static str) {
        let mut events = self.settle();
        let status = "completed";
        self.response["status"] = status.into();
        self.response["usage"] = json!({
            "input_tokens": INPUT_TOKENS, "input_tokens_details": { "cached_tokens": 0 },
            "output_tokens": OUTPUT_TOKENS, "output_tokens_details": { "reasoning_tokens": 0 },
            "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS,
        });
        let response = self.whole();
        events.push(self.event("response.completed", json!({ "response": response })));
        (events, status)
    }

    fn whole(&self) -> Value {
        let mut whole = self.response.clone();
        whole["output"] = self.output.clone().into();
        whole
    }
}
