//! OpenAI's Responses, as Codex 0.145 and 0.166 speak it.

use serde_json::{Map, Value, json};

use super::request::{Asked, Kind, Offered, ToolResult, list, said, string, texts};
use super::scenario::{Failure, ToolCall};
use super::voice::{Voice, event, pieces, tokens};

/// How Codex begins what it says in the user's name.
const NOT_THE_USER: [&str; 7] = [
    "<environment_context",
    "<user_instructions",
    "# AGENTS.md",
    "<turn_aborted",
    "<skills",
    "<permissions",
    "<subagent_notification",
];

pub(super) fn read(body: &Value) -> Asked {
    // A single prompt may stand there without being put into a message.
    let alone = [json!({ "role": "user", "content": body["input"] })];
    let items = if body["input"].is_string() { &alone } else { list(&body["input"]) };
    let is_said = |item: &&Value| item["role"] == "user" && matches!(item["type"].as_str(), None | Some("message"));
    let user_texts: Vec<String> = items
        .iter()
        .filter(is_said)
        .flat_map(|item| texts(&item["content"]))
        .filter_map(|text| said(text, &NOT_THE_USER))
        .collect();
    let is_models = |item: &Value| item["role"] == "assistant" || item["type"].as_str().is_some_and(is_call);
    let answered = items.iter().rposition(is_models).map_or(0, |at| at + 1);
    let is_result = |item: &&Value| item["type"].as_str().is_some_and(|kind| kind.ends_with("call_output"));
    let mut asked = Asked {
        model: string(&body["model"]),
        streamed: body["stream"] == true,
        opening: user_texts.first().cloned().unwrap_or_default(),
        user_text: user_texts.last().cloned().unwrap_or_default(),
        tool_results: items[answered..].iter().filter(is_result).map(tool_result).collect(),
        offered: offered(body, items),
        kind: Kind::Conversation,
        length: items.len(),
    };
    asked.kind = kind(body);
    asked
}

fn is_call(kind: &str) -> bool {
    kind.ends_with("_call")
}

fn tool_result(item: &Value) -> ToolResult {
    ToolResult { id: string(&item["call_id"]), text: texts(&item["output"]).join("\n"), is_error: false }
}

/// The tools stand in the request, or, for newer models, in an item of the conversation; some in groups.
fn offered(body: &Value, items: &[Value]) -> Vec<Offered> {
    let more = items.iter().filter(|item| item["type"] == "additional_tools").flat_map(|item| list(&item["tools"]));
    let one = |tool: &Value, group: Option<&str>| Offered {
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

fn kind(body: &Value) -> Kind {
    let metadata = body["client_metadata"]["x-codex-turn-metadata"].as_str().unwrap_or_default();
    let metadata: Value = serde_json::from_str(metadata).unwrap_or_default();
    // Older versions do not say what a request is for; the schema of a title gives it away.
    let is_title = metadata["thread_source"] == "thread_title"
        || body["text"]["format"]["schema"]["properties"].as_object().is_some_and(|only| only.keys().eq(["title"]));
    if is_title {
        Kind::Side { name: "title", answer: r#"{"title": "A scripted session"}"# }
    } else if metadata["thread_source"].as_str().is_some_and(|source| source.starts_with("subagent")) {
        Kind::Subagent
    } else {
        Kind::Conversation
    }
}

pub(super) fn refusal(failure: &Failure) -> Value {
    json!({ "error": error(failure, "type") })
}

/// The error's object; inside a stream its kind is called `code`.
fn error(failure: &Failure, kind_is: &str) -> Value {
    let (kind, message) = match failure.status {
        400 => ("invalid_request_error", "The request is wrong"),
        401 => ("invalid_api_key", "Incorrect API key provided: dummy."),
        404 => ("model_not_found", "The model does not exist"),
        429 => ("rate_limit_exceeded", "Rate limit reached. Please try again in 2s."),
        _ => ("server_error", "The server had an error while processing your request. Sorry about that!"),
    };
    let kind = failure.kind.as_deref().unwrap_or(kind);
    let mut fields = Map::new();
    fields.insert("code".into(), kind.into());
    fields.insert(kind_is.into(), kind.into());
    fields.insert("message".into(), failure.message.as_deref().unwrap_or(message).into());
    failure.object(fields)
}

pub(super) struct Answer {
    response: Value,
    offered: Vec<Offered>,
    request: u64,
    sent: u64,
    input_tokens: u64,
    output_tokens: u64,
}

impl Answer {
    pub(super) fn new(asked: &Asked, request: u64, input_tokens: u64) -> Self {
        let response = json!({
            "id": format!("resp_scripted{request:06}"), "object": "response", "created_at": 1_800_000_000,
            "model": asked.model, "status": "in_progress", "output": [],
        });
        Self { response, offered: asked.offered.clone(), request, sent: 0, input_tokens, output_tokens: 0 }
    }

    fn event(&mut self, name: &str, mut data: Value) -> String {
        data["sequence_number"] = self.sent.into();
        self.sent += 1;
        event(name, data)
    }

    /// One item of output: how it begins, the events that fill it, and all of it.
    fn item(&mut self, empty: &Value, filling: Vec<(&str, Value)>, whole: Value) -> Vec<String> {
        let index = list(&self.response["output"]).len();
        let mut events =
            vec![self.event("response.output_item.added", json!({ "output_index": index, "item": empty }))];
        for (name, mut data) in filling {
            data["output_index"] = index.into();
            data["item_id"] = whole["id"].clone();
            events.push(self.event(name, data));
        }
        events.push(self.event("response.output_item.done", json!({ "output_index": index, "item": whole })));
        if let Some(output) = self.response["output"].as_array_mut() {
            output.push(whole);
        }
        events
    }

    fn id(&self, kind: &str) -> String {
        format!("{kind}_scripted{:06}x{}", self.request, list(&self.response["output"]).len())
    }
}

impl Voice for Answer {
    fn open(&mut self) -> Vec<String> {
        let response = self.response.clone();
        vec![self.event("response.created", json!({ "response": response }))]
    }

    fn text(&mut self, text: &str) -> Vec<String> {
        self.output_tokens += tokens(text);
        let part = |text: &str| json!({ "type": "output_text", "text": text, "annotations": [] });
        let id = self.id("msg");
        let of = |status: &str, content: Vec<Value>| json!({ "id": id, "type": "message", "role": "assistant", "status": status, "content": content });
        let mut filling = vec![("response.content_part.added", json!({ "content_index": 0, "part": part("") }))];
        for piece in pieces(text) {
            filling.push(("response.output_text.delta", json!({ "content_index": 0, "delta": piece })));
        }
        filling.push(("response.output_text.done", json!({ "content_index": 0, "text": text })));
        filling.push(("response.content_part.done", json!({ "content_index": 0, "part": part(text) })));
        self.item(&of("in_progress", Vec::new()), filling, of("completed", vec![part(text)]))
    }

    fn thought(&mut self, text: &str) -> Vec<String> {
        self.output_tokens += tokens(text);
        let part = |text: &str| json!({ "type": "summary_text", "text": text });
        let id = self.id("rs");
        let empty = json!({ "id": id, "type": "reasoning", "summary": [] });
        let whole =
            json!({ "id": id, "type": "reasoning", "summary": [part(text)], "encrypted_content": "c2NyaXB0ZWQ=" });
        let mut filling =
            vec![("response.reasoning_summary_part.added", json!({ "summary_index": 0, "part": part("") }))];
        for piece in pieces(text) {
            filling.push(("response.reasoning_summary_text.delta", json!({ "summary_index": 0, "delta": piece })));
        }
        filling.push(("response.reasoning_summary_text.done", json!({ "summary_index": 0, "text": text })));
        self.item(&empty, filling, whole)
    }

    fn call(&mut self, id: &str, call: &ToolCall) -> Vec<String> {
        let tool = self.offered.iter().find(|tool| tool.name == call.name).cloned();
        // Text for tools that take text; for the others JSON, written as text too.
        let input = call.input.as_str().map_or_else(|| call.input.to_string(), str::to_owned);
        self.output_tokens += tokens(&input);
        let freeform = tool.as_ref().is_some_and(|tool| tool.freeform);
        let (kind, field, prefix) =
            if freeform { ("custom_tool_call", "input", "ctc") } else { ("function_call", "arguments", "fc") };
        let mut whole =
            json!({ "id": self.id(prefix), "type": kind, "call_id": id, "name": call.name, "status": "completed" });
        if let Some(group) = tool.filter(|tool| !tool.freeform).and_then(|tool| tool.namespace) {
            whole["namespace"] = group.into();
        }
        let mut empty = whole.clone();
        empty["status"] = "in_progress".into();
        empty[field] = "".into();
        whole[field] = input.as_str().into();
        let (delta, done) = if freeform {
            ("response.custom_tool_call_input.delta", "response.custom_tool_call_input.done")
        } else {
            ("response.function_call_arguments.delta", "response.function_call_arguments.done")
        };
        let mut filling: Vec<_> = pieces(&input).into_iter().map(|piece| (delta, json!({ "delta": piece }))).collect();
        filling.push((done, json!({ field: input })));
        self.item(&empty, filling, whole)
    }

    fn failure(&mut self, failure: &Failure) -> Vec<String> {
        let mut response = self.response.clone();
        response["status"] = "failed".into();
        response["error"] = error(failure, "code");
        vec![self.event("response.failed", json!({ "response": response }))]
    }

    fn close(&mut self, reason: Option<&str>) -> (Vec<String>, String) {
        let (name, status) = match reason {
            None => ("response.completed", "completed"),
            Some(_) => ("response.incomplete", "incomplete"),
        };
        self.response["status"] = status.into();
        self.response["usage"] = json!({
            "input_tokens": self.input_tokens, "input_tokens_details": { "cached_tokens": 0 },
            "output_tokens": self.output_tokens, "output_tokens_details": { "reasoning_tokens": 0 },
            "total_tokens": self.input_tokens + self.output_tokens,
        });
        if let Some(reason) = reason {
            self.response["incomplete_details"] = json!({ "reason": reason });
        }
        let response = self.response.clone();
        (vec![self.event(name, json!({ "response": response }))], reason.unwrap_or(status).to_owned())
    }

    fn whole(&self) -> Value {
        self.response.clone()
    }
}
