//! OpenAI's chat completions, as used by opencode and Qwen Code.

use serde_json::{Value, json};

use crate::model::openai::refusal;
use crate::model::reply::{INPUT_TOKENS, OUTPUT_TOKENS, ReplyPart, ReplyWriter, calls_tools};
use crate::model::request::{ModelRequest, ModelToolResult, OfferedTool, RequestKind, list, string, texts};
use crate::scenario::ServiceFailure;

/// The starts of user messages that Qwen Code writes itself.
const NOT_THE_USER: [&str; 2] = ["This is the Qwen Code.", "<environment"];

/// In the system prompt of the model that extracts memories from a finished turn for Qwen Code.
const REMEMBERS: &str = "managed memory extraction subagent";

pub(crate) fn read(body: &Value) -> ModelRequest {
    let messages = list(&body["messages"]);
    let mut asked = ModelRequest::new(body, messages, &NOT_THE_USER, |message| {
        (message["role"] == "tool").then(|| tool_result(message)).into_iter().collect()
    });
    asked.directory = messages.iter().flat_map(|message| texts(&message["content"])).find_map(directory);
    asked.offered = list(&body["tools"]).iter().map(offered).collect();
    let system = messages.iter().filter(|message| message["role"] == "system");
    let remembers = system.flat_map(|message| texts(&message["content"])).any(|text| text.contains(REMEMBERS));
    // Both agents offer tools only in conversations and to the memory extraction.
    if asked.offered.is_empty() {
        asked.kind = RequestKind::Side { name: "title", answer: "A scripted session" };
    } else if remembers {
        asked.kind = RequestKind::Side { name: "memory", answer: "There is nothing to remember." };
    }
    asked
}

/// Returns the directory that Qwen Code names.
fn directory(text: &str) -> Option<String> {
    let (_, after) = text.split_once("I'm currently working in the directory: ")?;
    after.lines().next().map(str::to_owned)
}

fn tool_result(message: &Value) -> ModelToolResult {
    let text = texts(&message["content"]).join("\n");
    ModelToolResult { id: string(&message["tool_call_id"]), text, is_error: false }
}

fn offered(tool: &Value) -> OfferedTool {
    OfferedTool { name: string(&tool["function"]["name"]), namespace: None, freeform: false }
}

pub(crate) struct ChatReply {
    head: Value,
    calls: usize,
}

impl ChatReply {
    pub(crate) fn new(asked: &ModelRequest, request: u64) -> Self {
        let head = json!({
            "id": format!("chatcmpl-scripted{request:06}"), "created": 1_800_000_000, "model": asked.model,
        });
        Self { head, calls: 0 }
    }

    fn of(&self, object: &str, choices: &Value) -> Value {
        let mut whole = self.head.clone();
        whole["object"] = object.into();
        whole["choices"] = choices.clone();
        whole
    }

    fn delta(&self, delta: &Value, reason: Option<&str>) -> String {
        let choices = json!([{ "index": 0, "delta": delta, "finish_reason": reason }]);
        data(&self.of("chat.completion.chunk", &choices))
    }
}

fn reason(parts: &[ReplyPart]) -> &'static str {
    if calls_tools(parts) { "tool_calls" } else { "stop" }
}

fn usage() -> Value {
    let total = INPUT_TOKENS + OUTPUT_TOKENS;
    json!({ "prompt_tokens": INPUT_TOKENS, "completion_tokens": OUTPUT_TOKENS, "total_tokens": total })
}

fn data(value: &Value) -> String {
    format!("data: {value}\n\n")
}

fn call(id: &str, name: &str, arguments: &str) -> Value {
    json!({ "id": id, "type": "function", "function": { "name": name, "arguments": arguments } })
}

impl ReplyWriter for ChatReply {
    fn open(&mut self) -> Vec<String> {
        vec![self.delta(&json!({ "role": "assistant", "content": "" }), None)]
    }

    fn begin(&mut self, _: usize, part: &ReplyPart) -> Vec<String> {
        let ReplyPart::Call { id, tool } = part else { return Vec::new() };
        let mut first = call(id, &tool.name, "");
        first["index"] = self.calls.into();
        vec![self.delta(&json!({ "tool_calls": [first] }), None)]
    }

    fn piece(&mut self, _: usize, part: &ReplyPart, piece: &str) -> String {
        let more = json!({ "index": self.calls, "function": { "arguments": piece } });
        let delta = match part {
            ReplyPart::Text(_) => json!({ "content": piece }),
            ReplyPart::Thought(_) => json!({ "reasoning_content": piece }),
            ReplyPart::Call { .. } => json!({ "tool_calls": [more] }),
        };
        self.delta(&delta, None)
    }

    fn end(&mut self, _: usize, part: &ReplyPart) -> Vec<String> {
        self.calls += usize::from(matches!(part, ReplyPart::Call { .. }));
        Vec::new()
    }

    fn failure(&mut self, failure: &ServiceFailure) -> Vec<String> {
        vec![data(&refusal(failure))]
    }

    fn close(&mut self, parts: &[ReplyPart]) -> (Vec<String>, &'static str) {
        let mut last = self.of("chat.completion.chunk", &json!([]));
        last["usage"] = usage();
        let reason = reason(parts);
        (vec![self.delta(&json!({}), Some(reason)), data(&last), "data: [DONE]\n\n".into()], reason)
    }

    fn whole(&self, parts: &[ReplyPart]) -> Value {
        let (mut text, mut calls) = (String::new(), Vec::new());
        for part in parts {
            match part {
                ReplyPart::Text(more) => text.push_str(more),
                ReplyPart::Thought(_) => {}
                ReplyPart::Call { id, tool } => calls.push(call(id, &tool.name, &tool.input.to_string())),
            }
        }
        let mut message = json!({ "role": "assistant", "content": text });
        if !calls.is_empty() {
            message["tool_calls"] = calls.into();
        }
        let choices = json!([{ "index": 0, "message": message, "finish_reason": reason(parts) }]);
        let mut whole = self.of("chat.completion", &choices);
        whole["usage"] = usage();
        whole
    }
}
