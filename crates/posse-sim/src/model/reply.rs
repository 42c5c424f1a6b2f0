//! The replies of the protocols, as text to send.

use serde_json::Value;

use crate::model::request::ModelRequest;
use crate::model::{anthropic, chat, openai};
use crate::scenario::{ServiceFailure, ToolUse};

/// The number of characters in a streamed piece, small enough that a reply has several.
pub(crate) const PIECE: usize = 24;
/// The numbers of tokens that every reply reports.
pub(crate) const INPUT_TOKENS: u64 = 1200;
pub(crate) const OUTPUT_TOKENS: u64 = 60;

/// The protocol of a vendor: its requests and replies.
#[derive(Clone, Copy)]
pub(crate) struct Protocol {
    /// The end of the path of its requests.
    path: &'static str,
    /// Reads a request, given the id of a subagent.
    pub(crate) read: fn(&Value, Option<&str>) -> ModelRequest,
    pub(crate) writer: fn(&ModelRequest, u64) -> Box<dyn ReplyWriter>,
    /// The body of an error.
    pub(crate) refusal: fn(&ServiceFailure) -> Value,
}

const PROTOCOLS: [Protocol; 3] = [
    Protocol {
        path: "/v1/messages",
        read: anthropic::read,
        writer: |asked, request| Box::new(anthropic::MessagesReply::new(asked, request)),
        refusal: anthropic::refusal,
    },
    Protocol {
        path: "/responses",
        read: |body, _| openai::read(body),
        writer: |asked, request| Box::new(openai::ResponsesReply::new(asked, request)),
        refusal: openai::refusal,
    },
    Protocol {
        path: "/chat/completions",
        read: |body, _| chat::read(body),
        writer: |asked, request| Box::new(chat::ChatReply::new(asked, request)),
        refusal: openai::refusal,
    },
];

impl Protocol {
    pub(crate) fn of_path(path: &str) -> Option<Self> {
        PROTOCOLS.into_iter().find(|protocol| path.ends_with(protocol.path))
    }
}

/// A part of a reply. Consecutive texts are one part, and so are consecutive thoughts.
#[derive(Debug)]
pub(crate) enum ReplyPart {
    Text(String),
    Thought(String),
    Call { id: String, tool: ToolUse },
}

/// Writes the events of one reply. A part begins, grows by pieces and ends before the next one begins.
pub(crate) trait ReplyWriter {
    fn open(&mut self) -> Vec<String>;
    /// Returns the input of a tool as it is sent.
    fn input(&self, tool: &ToolUse) -> String {
        tool.input.to_string()
    }
    /// `at` is the number of the part, from 0.
    fn begin(&mut self, at: usize, part: &ReplyPart) -> Vec<String>;
    fn piece(&mut self, at: usize, part: &ReplyPart, piece: &str) -> String;
    fn end(&mut self, at: usize, part: &ReplyPart) -> Vec<String>;
    fn failure(&mut self, failure: &ServiceFailure) -> Vec<String>;
    /// Ends the reply, and returns the reason.
    fn close(&mut self, parts: &[ReplyPart]) -> (Vec<String>, &'static str);
    /// Returns the whole reply at once. The reply must be closed.
    fn whole(&self, parts: &[ReplyPart]) -> Value;
}

pub(crate) fn calls_tools(parts: &[ReplyPart]) -> bool {
    parts.iter().any(|part| matches!(part, ReplyPart::Call { .. }))
}

/// Returns a named server-sent event. Its data repeats the name.
pub(crate) fn event(name: &str, mut data: Value) -> String {
    data["type"] = name.into();
    format!("event: {name}\ndata: {data}\n\n")
}
