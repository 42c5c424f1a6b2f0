//! OpenAI's Responses, as Codex 0.145 and 0.166 speak it.

use serde_json::{Map, Value, json};

use crate::request::{Asked, Kind, Offered, ToolResult, list, said, string, texts};
use crate::scenario::{Failure, ToolCall};
use crate::voice::{Voice, event, pieces, tokens};

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

pub(crate) fn read(body: &Value) -> Asked {
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
    let results_in = |items: &[Value]| -> Vec<ToolResult> {
        let is_result = |item: &&Value| item["type"].as_str().is_some_and(|kind| kind.ends_with("call_output"));
        items.iter().filter(is_result).map(tool_result).collect()
    };
    let mut asked = Asked {
        model: string(&body["model"]),
        streamed: body["stream"] == true,
        opening: user_texts.first().cloned().unwrap_or_default(),
        user_text: user_texts.last().cloned().unwrap_or_default(),
        reminders: String::new(),
        tool_results: results_in(&items[answered..]),
        offered: offered(body, items),
        kind: Kind::Conversation,
        directory: None,
        heard: user_texts.len() + results_in(items).len(),
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

pub(crate) fn refusal(failure: &Failure) -> Value {
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

/// The two kinds of items that are streamed as text.
struct Streamed {
    prefix: &'static str,
    kind: &'static str,
    part: &'static str,
    /// Where the parts are kept, and what counts them.
    parts: (&'static str, &'static str),
    added: &'static str,
    delta: &'static str,
    done: &'static str,
}

const MESSAGE: Streamed = Streamed {
    prefix: "msg",
    kind: "message",
    part: "output_text",
    parts: ("content", "content_index"),
    added: "response.content_part.added",
    delta: "response.output_text.delta",
    done: "response.output_text.done",
};

const REASONING: Streamed = Streamed {
    prefix: "rs",
    kind: "reasoning",
    part: "summary_text",
    parts: ("summary", "summary_index"),
    added: "response.reasoning_summary_part.added",
    delta: "response.reasoning_summary_text.delta",
    done: "response.reasoning_summary_text.done",
};

pub(crate) struct Answer {
    /// All but the output.
    response: Value,
    output: Vec<Value>,
    /// The last item of the output has begun and not ended, and what it says so far.
    open: Option<(&'static Streamed, String)>,
    offered: Vec<Offered>,
    request: u64,
    sent: u64,
    input_tokens: u64,
    output_tokens: u64,
}

impl Answer {
    pub(crate) fn new(asked: &Asked, request: u64, input_tokens: u64) -> Self {
        let response = json!({
            "id": format!("resp_scripted{request:06}"), "object": "response", "created_at": 1_800_000_000,
            "model": asked.model, "status": "in_progress", "output": [],
        });
        let (output, offered) = (Vec::new(), asked.offered.clone());
        Self { response, output, open: None, offered, request, sent: 0, input_tokens, output_tokens: 0 }
    }

    fn event(&mut self, name: &str, mut data: Value) -> String {
        data["sequence_number"] = self.sent.into();
        self.sent += 1;
        event(name, data)
    }

    /// An event about the item that is being made, which is not among the output yet.
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

    /// An item of this kind that says this.
    fn item(&self, how: &Streamed, text: Option<&str>) -> Value {
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

    /// More of an item of this kind: of the open one, or of a new one.
    fn more(&mut self, how: &'static Streamed, text: &str) -> Vec<String> {
        self.output_tokens += tokens(text);
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

    /// Ends the item that is open.
    fn settle(&mut self) -> Vec<String> {
        let Some((how, text)) = self.open.take() else { return Vec::new() };
        let id = self.id(how.prefix);
        let done = self.item_event(how.done, &id, json!({ how.parts.1: 0, "text": text }));
        let whole = self.item(how, Some(&text));
        vec![done, self.done(whole)]
    }
}

fn part(how: &Streamed, text: &str) -> Value {
    json!({ "type": how.part, "text": text, "annotations": [] })
}

impl Voice for Answer {
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

    fn call(&mut self, call_id: &str, call: &ToolCall) -> Vec<String> {
        let mut events = self.settle();
        // Older versions offer a server's tools as a group, and the tool by its own name.
        let in_group = |group: &str, name: &str| {
            call.name.strip_prefix(group).is_some_and(|rest| rest.trim_start_matches('_') == name)
        };
        let is_meant = |tool: &&Offered| {
            tool.name == call.name || tool.namespace.as_deref().is_some_and(|group| in_group(group, &tool.name))
        };
        let tool = self.offered.iter().find(is_meant).cloned();
        // Text for tools that take text; for the others JSON, written as text too.
        let input = call.input.as_str().map_or_else(|| call.input.to_string(), str::to_owned);
        self.output_tokens += tokens(&input);
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

    fn failure(&mut self, failure: &Failure) -> Vec<String> {
        let mut response = self.response.clone();
        response["status"] = "failed".into();
        response["error"] = error(failure, "code");
        vec![self.event("response.failed", json!({ "response": response }))]
    }

    fn close(&mut self, reason: Option<&str>) -> (Vec<String>, String) {
        let mut events = self.settle();
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
        let response = self.whole();
        events.push(self.event(name, json!({ "response": response })));
        (events, reason.unwrap_or(status).to_owned())
    }

    fn whole(&self) -> Value {
        let mut whole = self.response.clone();
        whole["output"] = self.output.clone().into();
        whole
    }
}
