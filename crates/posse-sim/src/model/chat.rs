//! OpenAI's chat completions, as used by opencode and Qwen Code.

use serde_json::{Value, json};

use crate::model::openai::refusal;
use crate::model::reply::{INPUT_TOKENS, OUTPUT_TOKENS, ReplyWriter, pieces};
use crate::model::request::{ModelRequest, ModelToolResult, OfferedTool, RequestKind, list, string, texts};
use crate::scenario::{ServiceFailure, ToolUse};

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
    text: String,
    calls: Vec<Value>,
}

impl ChatReply {
    pub(crate) fn new(asked: &ModelRequest, request: u64) -> Self {
        let head = json!({
            "id": format!("chatcmpl-scripted{request:06}"), "created": 1_800_000_000, "model": asked.model,
        });
        Self { head, text: String::new(), calls: Vec::new() }
    }

    fn chunk(&self, choices: &Value) -> Value {
        let mut chunk = self.head.clone();
        chunk["object"] = "chat.completion.chunk".into();
        chunk["choices"] = choices.clone();
        chunk
    }

    fn delta(&self, delta: &Value, reason: Option<&str>) -> String {
        data(&self.chunk(&json!([{ "index": 0, "delta": delta, "finish_reason": reason }])))
    }

    fn reason(&self) -> &'static str {
        if self.calls.is_empty() { "stop" } else { "tool_calls" }
    }
}

fn usage() -> Value {
    let total = INPUT_TOKENS + OUTPUT_TOKENS;
    json!({ "prompt_tokens": INPUT_TOKENS, "completion_tokens": OUTPUT_TOKENS, "total_tokens": total })
}

fn data(value: &Value) -> String {
    format!("data: {value}\n\n")
}

impl ReplyWriter for ChatReply {
    fn open(&mut self) -> Vec<String> {
        vec![self.delta(&json!({ "role": "assistant", "content": "" }), None)]
    }

    fn text(&mut self, text: &str) -> Vec<String> {
        self.text.push_str(text);
        pieces(text).into_iter().map(|piece| self.delta(&json!({ "content": piece }), None)).collect()
    }

    fn thought(&mut self, text: &str) -> Vec<String> {
        pieces(text).into_iter().map(|piece| self.delta(&json!({ "reasoning_content": piece }), None)).collect()
    }

    fn call(&mut self, id: &str, call: &ToolUse) -> Vec<String> {
        let index = self.calls.len();
        let input = call.input.to_string();
        let of = |input: &str| json!({ "id": id, "type": "function", "function": { "name": call.name, "arguments": input } });
        self.calls.push(of(&input));
        let mut first = of("");
        first["index"] = index.into();
        let mut events = vec![self.delta(&json!({ "tool_calls": [first] }), None)];
        for piece in pieces(&input) {
            let more = json!({ "index": index, "function": { "arguments": piece } });
            events.push(self.delta(&json!({ "tool_calls": [more] }), None));
        }
        events
    }

    fn failure(&mut self, failure: &ServiceFailure) -> Vec<String> {
        vec![data(&refusal(failure))]
    }

    fn close(&mut self) -> (Vec<String>, &'static str) {
        let mut last = self.chunk(&json!([]));
        last["usage"] = usage();
        let reason = self.reason();
        (vec![self.delta(&json!({}), Some(reason)), data(&last), "data: [DONE]\n\n".into()], reason)
    }

    fn whole(&self) -> Value {
        let mut message = json!({ "role": "assistant", "content": self.text });
        if !self.calls.is_empty() {
            message["tool_calls"] = self.calls.clone().into();
        }
        let mut whole = self.head.clone();
        whole["object"] = "chat.completion".into();
        whole["choices"] = json!([{ "index": 0, "message": message, "finish_reason": self.reason() }]);
        whole["usage"] = usage();
        whole
    }
}
